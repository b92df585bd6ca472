"""Which interpreter counts, and where it looks for modules: told without starting it where that is certain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from driftcheck.errors import DriftcheckError

_SECONDS = 60.0
_OUTPUT_BYTES = 4_000_000
_MARK = "driftcheck-interpreter:"
_SCRIPT = f"""
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import json
sys.stdout.write("\\n{_MARK}" + json.dumps([sys.path, list(sys.version_info[:3])]) + "\\n")
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter: its executable, and the folders where it looks for modules, in order."""

    executable: Path
    search_path: tuple[str, ...]


def find_interpreter(python: str | None, environment: Mapping[str, str] | None = None) -> Path:
    """The interpreter's executable: the one given, else the active environment's, else the one that runs driftcheck.

    An environment's folder or a command's name stand for the interpreter too. Raises DriftcheckError where there is
    none.
    """
    variables = os.environ if environment is None else environment
    if python is not None:
        given = Path(python).expanduser()
        if given.is_dir():
            return _of_environment(given, f"--python {python}")
        if given.is_file():
            if not os.access(given, os.X_OK):
                raise DriftcheckError(f"--python {python} is not executable; name a Python interpreter")
            return Path(os.path.abspath(given))
        found = shutil.which(python) if os.sep not in python else None
        if found is None:
            raise DriftcheckError(
                f"--python {python}: no such interpreter; name an executable or an environment's folder"
            )
        return Path(os.path.abspath(found))
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = variables.get(variable)
        if folder:
            return _of_environment(Path(folder), f"{variable}={folder}")
    return Path(sys.executable)


def plain_environment(executable: Path, environment: Mapping[str, str] | None = None) -> Interpreter | None:
    """The interpreter of a virtual environment that sees its own site-packages alone, told by its files.

    None where that is not certain. The folders are incomplete: what is not found there may be found by asking.
    """
    variables = os.environ if environment is None else environment
    if variables.get("PYTHONPATH") or variables.get("PYTHONHOME"):
        return None
    prefix = executable.parent.parent
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").lower().splitlines()
    except (OSError, ValueError):
        return None
    settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    if settings.get("include-system-site-packages", "false") != "false":
        return None
    if sys.platform == "win32":
        folders = [prefix / "Lib" / "site-packages"]
    else:
        folders = sorted(prefix.glob("lib/python3.*/site-packages"))
    if len(folders) != 1 or not folders[0].is_dir():
        return None
    return Interpreter(executable, (str(folders[0]),))


def ask_interpreter(executable: Path, seconds: float | None = None) -> Interpreter:
    """Start the interpreter once and have it print where it looks for modules, within a number of seconds."""
    output = run_bounded([str(executable), "-c", _SCRIPT], seconds=seconds or _SECONDS, output_bytes=_OUTPUT_BYTES)
    for line in reversed(output.splitlines()):
        if line.startswith(_MARK):
            try:
                search_path, version = json.loads(line.removeprefix(_MARK))
                if tuple(version) < (3,):
                    break
                return Interpreter(executable, tuple(str(entry) for entry in search_path))
            except (ValueError, TypeError):
                break
    raise DriftcheckError(f"{executable} does not answer as a Python 3 interpreter; name another one with --python")


def run_bounded(command: Sequence[str], *, seconds: float, output_bytes: int) -> str:
    """What a command prints to its standard output; it is ended, with its children, where it exceeds a bound.

    Raises DriftcheckError where it cannot be started, fails, runs too long or prints too much.
    """
    shown = command[0]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise DriftcheckError(
            f"cannot start {shown}: {error.strerror}; name another interpreter with --python"
        ) from error
    streams = [bytearray(), bytearray()]
    over = threading.Event()
    readers = [
        threading.Thread(target=_drain, args=(pipe, kept, output_bytes, over, process), daemon=True)
        for pipe, kept in zip((process.stdout, process.stderr), streams, strict=True)
    ]
    with process:
        for reader in readers:
            reader.start()
        try:
            code = process.wait(seconds)
            for reader in readers:
                # A child of the command may hold the pipe open for as long as it likes.
                reader.join(1.0)
        except subprocess.TimeoutExpired as error:
            end(process)
            raise DriftcheckError(f"{shown} gave no answer in {seconds:g} s; name another one with --python") from error
        except BaseException:
            end(process)
            raise
        finally:
            if any(reader.is_alive() for reader in readers):
                end(process)
                for reader in readers:
                    reader.join(1.0)
    if over.is_set():
        raise DriftcheckError(f"{shown} printed more than {output_bytes:,} bytes; name another one with --python")
    if code != 0:
        last = streams[1].decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit code {code}"]
        raise DriftcheckError(f"{shown} failed: {last[0][:200]}; name another interpreter with --python")
    return streams[0].decode("utf-8", "replace")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started in a session of its own, and its children."""
    import signal

    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        process.kill()


def _drain(pipe: object, kept: bytearray, bound: int, over: threading.Event, process: subprocess.Popen[bytes]) -> None:
    """Read a pipe to its end or to the bound, whichever comes first."""
    read = getattr(pipe, "read1")  # noqa: B009
    try:
        while piece := read(65_536):
            kept += piece
            if len(kept) > bound:
                over.set()
                end(process)
                return
    except (OSError, ValueError):
        return


def _of_environment(folder: Path, given_as: str) -> Path:
    names = ("Scripts/python.exe", "python.exe") if sys.platform == "win32" else ("bin/python", "bin/python3")
    for name in names:
        if (folder / name).is_file():
            return Path(os.path.abspath(folder / name))
    raise DriftcheckError(f"{given_as} holds no Python interpreter; name one with --python")
