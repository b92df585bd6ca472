"""Runs the probe in the target's interpreter: bounded in time and output, restarted without what killed it."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from driftcheck.errors import DriftcheckError
from driftcheck.progress import Progress, Task

OLDEST_PYTHON = (3, 9)
PROBE = Path(__file__).with_name("probe.py")
ANSWER_LIMIT = 256 * 1024 * 1024
START_PATIENCE = 30.0
_RESTARTS = 5
_REAP_PATIENCE = 10.0
_TICK = 0.05
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
        progress: Progress,
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
        self._progress = progress
        self._task: Task

    def ask(self, wanted: Mapping[str, list[str]]) -> None:
        """Run the probe until everything is answered, or time, restarts or progress run out."""
        total = sum(map(len, wanted.values()))
        if not total:
            return
        with self._progress.task("Asking the target's Python", total) as self._task:
            self._ask(wanted, time.monotonic() + self.timeout)

    def _ask(self, wanted: Mapping[str, list[str]], deadline: float) -> None:
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
        known = self._known()
        with tempfile.TemporaryDirectory(prefix="driftcheck-", ignore_cleanup_errors=True) as folder:
            Path(folder, "request").write_text(json.dumps({**request, "answer_limit": ANSWER_LIMIT}), "ascii")
            # An empty folder to run in: neither the user's folder nor ours can shadow a module, and what imports write
            # beside them goes away.
            work = Path(folder) / "work"
            work.mkdir()
            with open(Path(folder) / "answer", "xb+") as file:
                answer = _Answer(file, self)
                death = self._watch(
                    [self.executable, str(PROBE), f"{folder}/request", file.name], work, answer, deadline
                )
        if answer.ended:
            self.given_up = self.given_up or "the interpreter gave no answer"
        elif answer.subject is not None and answer.subject not in self._refused:
            self._refused[answer.subject] = {"exception": death.exception, "message": death.message}
        elif self._known() == known:
            self.given_up = death.message
        if not answer.ended and time.monotonic() >= deadline:
            self.given_up = f"the limit of {self.timeout:g} s was reached"

    def _known(self) -> int:
        return sum(map(len, self.answers.values()))

    def _watch(self, command: list[str], work: Path, answer: _Answer, deadline: float) -> _Death:
        """Run the command to its end, or to a limit, taking its answers as they come; nothing of it is left running."""
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
        last, message = time.monotonic(), ""
        try:
            while process.poll() is None and not message:
                if not stream.wait(_TICK):
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_TICK)
                now = time.monotonic()
                if answer.take():
                    last = now
                if now >= deadline:
                    message = f"did not finish within the limit of {self.timeout:g} s"
                elif answer.started and now - last >= self.patience:
                    message = f"did not finish within {self.patience:g} s"
                elif not answer.started and now - last >= START_PATIENCE:
                    message = f"did not start within {START_PATIENCE:g} s"
                elif answer.size > 2 * ANSWER_LIMIT:
                    message = "wrote without end into its answer"
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            # What the kernel itself can't end, a read from a dead network disk for example, is left to it.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_PATIENCE)
            stream.close()
            process.stderr.close()
        answer.take()
        death = _death(process.returncode, message)
        if not answer.started:
            reason = death.message if process.returncode or message else "it does not answer as Python does"
            raise _wrong_interpreter(self.executable, ": ".join(filter(None, (reason, stream.last_line()))))
        return death

    def begun(self, version: tuple[int, ...], folders: list[str]) -> None:
        """Take note of which Python answers, and of the folders that its packages are in."""
        self.python = ".".join(map(str, version))
        self.folders = folders
        if version < OLDEST_PYTHON:
            raise _wrong_interpreter(self.executable, f"it is Python {self.python}")

    def answered(self, kind: str, answer: Record) -> None:
        """Take one answer in."""
        self.answers[kind][answer["name"]] = answer
        self._task.advance()


class _Answer:
    """The lines that the probe writes, handed on as they come; what it was at when it stopped is `subject`."""

    def __init__(self, file: BinaryIO, session: Session) -> None:
        self.started = self.ended = False
        self.size = 0
        self._file = file
        self._session = session
        self._partial = b""
        self._open: list[str] = []

    @property
    def subject(self) -> str | None:
        """The import or symbol begun last and not finished."""
        return self._open[-1] if self._open else None

    def take(self) -> bool:
        """Read what has come since the last time; False where nothing has."""
        chunk = self._file.read(2 * ANSWER_LIMIT)
        self.size += len(chunk)
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        for line in lines:
            self._line(_decoded(line))
        return bool(chunk)

    def _line(self, record: Record) -> None:
        sort, body = record.get("record"), record.get("answer")
        if sort == "start":
            version, folders = record.get("python"), record.get("path", [])
            if isinstance(version, list) and all(isinstance(part, int) for part in version):
                self.started = True
                self._session.begun(tuple(version), [folder for folder in folders if isinstance(folder, str)])
        elif sort == "begin":
            self._open.append(str(record.get("subject")))
        elif sort == "import":
            with suppress(ValueError):
                self._open.remove(str(record.get("name")))
        elif sort in ("symbol", "module"):
            self._open.clear()
            if isinstance(body, dict) and isinstance(body.get("name"), str):
                self._session.answered(sort, body)
        elif sort == "limit":
            self._session.given_up = f"the answer is larger than {ANSWER_LIMIT >> 20} MB"
            self.ended = True
        elif sort == "end":
            self.ended = True


class _Tail:
    """The end of what a process writes to a pipe, read without ever blocking it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._open = True
        self._text = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(descriptor, selectors.EVENT_READ)
        os.set_blocking(descriptor, False)

    def wait(self, seconds: float) -> bool:
        """Read what comes within that time; False once the pipe is closed."""
        if self._open and self._selector.select(seconds):
            self._take()
        return self._open

    def close(self) -> None:
        """Read what is left, up to what a pipe holds, since someone may still be writing; then wait no more."""
        for _ in range(32):
            if not self.wait(0):
                break
        self._selector.close()

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


def _death(code: int | None, message: str) -> _Death:
    if message or code is None:
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
        # An empty entry means the present folder; hardly ever does anyone mean that.
        variables["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in entries if entry)
    return variables


def _decoded(line: bytes) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
