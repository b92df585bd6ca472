"""Runs the probe in the target's interpreter: bounded in time and output, restarted without what killed it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError

OLDEST_PYTHON = (3, 9)
PROBE = Path(__file__).with_name("probe.py")
ANSWER_LIMIT = 256 * 1024 * 1024
START_PATIENCE = 30.0
_RESTARTS = 5
_TAIL = 8192

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Death:
    exception: str
    message: str


class Session:
    """The processes of one `probe`: asks, restarts, and gathers raw answers."""

    def __init__(
        self,
        interpreter: str | os.PathLike[str],
        timeout: float,
        patience: float,
        environment: Mapping[str, str] | None,
    ) -> None:
        self.executable = _executable(interpreter)
        self.timeout = timeout
        self.patience = patience
        self.variables = _variables(environment)
        self.answers: dict[str, dict[str, Record]] = {"symbol": {}, "module": {}}
        self.python: str | None = None
        self.folders: list[str] = []
        self.processes = 0
        self.given_up = ""
        self._refused: dict[str, Record] = {}

    def ask(self, wanted: Mapping[str, list[str]]) -> None:
        """Run the probe until everything is answered, or time, restarts or progress run out."""
        deadline = time.monotonic() + self.timeout
        while True:
            left = {kind: [name for name in names if name not in self.answers[kind]] for kind, names in wanted.items()}
            if not any(left.values()):
                return
            if self.given_up or self.processes > _RESTARTS:
                self.given_up = self.given_up or f"the interpreter died {self.processes} times"
                self._tell_refused(left)
                return
            self._run({"symbols": left["symbol"], "modules": left["module"], "refused": self._refused}, deadline)

    def _tell_refused(self, left: Mapping[str, list[str]]) -> None:
        """What an earlier run died of is known, though no other run came to say so."""
        for subject, reason in self._refused.items():
            failure = {**reason, "subject": subject}
            for name in left["symbol"]:
                if f"{name}.".startswith((f"{subject}.", f"{subject}:")):
                    self.answers["symbol"][name] = {"name": name, "status": "failed", "failure": failure}
            if subject in left["module"]:
                self.answers["module"][subject] = {"name": subject, "failure": failure}

    def _run(self, request: Record, deadline: float) -> None:
        self.processes += 1
        with tempfile.TemporaryDirectory(prefix="driftcheck-", ignore_cleanup_errors=True) as folder:
            answer = Path(folder) / "answer"
            answer.touch()
            Path(folder, "request").write_text(json.dumps({**request, "answer_limit": ANSWER_LIMIT}), "ascii")
            # An empty folder to run in: neither the user's folder nor ours can shadow a module, and what imports write
            # beside them goes away.
            work = Path(folder) / "work"
            work.mkdir()
            death = self._watch([self.executable, str(PROBE), f"{folder}/request", str(answer)], work, answer, deadline)
            before = sum(map(len, self.answers.values()))
            ended, subject = self._read(answer)
        if ended:
            return
        if subject is not None and subject not in self._refused:
            self._refused[subject] = {"exception": death.exception, "message": death.message}
        elif sum(map(len, self.answers.values())) == before:
            self.given_up = death.message
        if time.monotonic() >= deadline:
            self.given_up = f"the limit of {self.timeout:g} s was reached"

    def _watch(self, command: list[str], work: Path, answer: Path, deadline: float) -> _Death:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=work,
                env=self.variables,
                start_new_session=True,
            )
        except OSError as error:
            raise _wrong_interpreter(self.executable, error.strerror or str(error)) from None
        assert process.stderr is not None
        stream = _Tail(process.stderr.fileno())
        start = last = time.monotonic()
        size, message = 0, ""
        try:
            while process.poll() is None and not message:
                if not stream.wait(0.05):
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.05)
                now, grown = time.monotonic(), answer.stat().st_size
                size, last = (grown, now) if grown != size else (size, last)
                if now >= deadline:
                    message = f"did not finish within the limit of {self.timeout:g} s"
                elif now - last >= self.patience and size:
                    message = f"did not finish within {self.patience:g} s"
                elif not size and now - start >= START_PATIENCE:
                    message = f"did not start within {START_PATIENCE:g} s"
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            stream.drain()
            process.stderr.close()
        death = _death(process.returncode, message)
        if not answer.stat().st_size:
            detail = stream.last_line()
            raise _wrong_interpreter(self.executable, f"{death.message}: {detail}" if detail else death.message)
        return death

    def _read(self, answer: Path) -> tuple[bool, str | None]:
        """Take the answers in; says whether the probe came to its end, and else what it was at."""
        started, ended, open_subjects = False, False, list[str]()
        with answer.open("rb") as file:
            lines = file.read(ANSWER_LIMIT + 1024).split(b"\n")
        for line in lines:
            record = _decoded(line)
            sort = record.get("record")
            if sort == "start":
                self._check_start(record)
                started = True
            elif sort == "begin":
                open_subjects.append(str(record.get("subject")))
            elif sort == "import":
                with suppress(ValueError):
                    open_subjects.remove(str(record.get("name")))
            elif sort in ("symbol", "module"):
                body = record.get("answer")
                open_subjects.clear()
                if isinstance(body, dict) and isinstance(body.get("name"), str):
                    self.answers[sort][body["name"]] = body
            elif sort == "limit":
                ended, self.given_up = True, f"the answer is larger than {ANSWER_LIMIT >> 20} MB"
            elif sort == "end":
                ended = True
        if not started:
            raise _wrong_interpreter(self.executable, "it does not answer as Python does")
        if ended and not self.given_up:
            self.given_up = "the interpreter gave no answer"
        return ended, open_subjects[-1] if open_subjects else None

    def _check_start(self, record: Record) -> None:
        version = record.get("python")
        if not isinstance(version, list) or not all(isinstance(part, int) for part in version):
            raise _wrong_interpreter(self.executable, "it gave no version")
        self.python = ".".join(map(str, version))
        if tuple(version) < OLDEST_PYTHON:
            raise _wrong_interpreter(self.executable, f"it is Python {self.python}")
        self.folders = [folder for folder in record.get("path", ()) if isinstance(folder, str)]


class _Tail:
    """The end of what a process writes to a pipe, read without ever blocking it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._open = True
        self._text = b""
        os.set_blocking(descriptor, False)

    def wait(self, seconds: float) -> bool:
        """Read what comes within that time; False once the pipe is closed."""
        if self._open and select.select([self._descriptor], [], [], seconds)[0]:
            self._take()
        return self._open

    def drain(self) -> None:
        """Read what is left, up to what a pipe holds: someone may still be writing."""
        for _ in range(32):
            if not self._open or not select.select([self._descriptor], [], [], 0)[0]:
                return
            self._take()

    def last_line(self) -> str:
        """The last line that is not empty, cut to a bearable length."""
        lines = self._text.decode("utf-8", "replace").strip().splitlines()
        return "".join(character for character in lines[-1] if character.isprintable())[:200] if lines else ""

    def _take(self) -> None:
        try:
            chunk = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return
        self._open = bool(chunk)
        self._text = (self._text + chunk)[-_TAIL:]


def _death(code: int, message: str) -> _Death:
    if message:
        return _Death("Timeout", message)
    if code < 0:
        with suppress(ValueError):
            return _Death("Crash", f"the interpreter was killed by {signal.Signals(-code).name}")
        return _Death("Crash", f"the interpreter was killed by signal {-code}")
    return _Death("Exit", f"the interpreter ended with status {code}")


def _executable(interpreter: str | os.PathLike[str]) -> str:
    """The interpreter's absolute path, links kept: an environment's python is a link."""
    name = os.fspath(interpreter)
    found = name if os.sep in name else shutil.which(name)
    if found is None or not os.path.exists(found):
        raise _wrong_interpreter(name, "there is no such file")
    if not os.path.isfile(found) or not os.access(found, os.X_OK):
        raise _wrong_interpreter(name, "it is not a program")
    return os.path.abspath(found)


def _wrong_interpreter(name: str, reason: str) -> DriftcheckError:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return DriftcheckError(
        f"{name} can't be used as Python: {reason}; give --python an interpreter of {oldest} or later"
    )


def _variables(environment: Mapping[str, str] | None) -> dict[str, str]:
    """The user's variables; relative folders on PYTHONPATH keep their meaning, as the probe runs in another folder."""
    variables = {**os.environ, "PYTHONHASHSEED": "0", **(environment or {})}
    if variables.get("PYTHONPATH"):
        entries = variables["PYTHONPATH"].split(os.pathsep)
        variables["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in entries)
    return variables


def _decoded(line: bytes) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
