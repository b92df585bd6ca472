"""Writes what the command line has to say: to stdout, or to a file that is replaced whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from driftcheck.errors import DriftcheckError

_PLAIN_WIDTH = 100
_WIDEST = 120


def is_coloured(stream: TextIO | None) -> bool:
    """True where the stream may get colours: NO_COLOR forbids them, FORCE_COLOR asks for them, else a terminal does."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO | None) -> int:
    """How wide text for the stream may be; what is no terminal gets the same width everywhere."""
    if stream is None or not stream.isatty():
        return _PLAIN_WIDTH
    import shutil

    return min(shutil.get_terminal_size((_PLAIN_WIDTH, 24)).columns, _WIDEST)


_SOURCES = (".py", ".pyi", ".pyx", ".toml", ".cfg")


def check_output(path: str, option: str = "--output") -> None:
    """Raises DriftcheckError where no report may be written at the path, before any work is done for it."""
    if Path(path).suffix in _SOURCES and Path(path).is_file():
        raise DriftcheckError(f"{option} {path} is a source file, which would be lost: name another")
    if not path or Path(path).is_dir():
        raise DriftcheckError(f"{option} {path} is a folder: name a file")
    if os.path.islink(os.path.realpath(path)):
        raise DriftcheckError(f"{option} {path} is a link that leads nowhere: name a file")
    if not _is_special(path) and not Path(os.path.realpath(path)).parent.is_dir():
        raise DriftcheckError(f"{option} {path}: its folder does not exist")


def write_file(path: str, text: str, option: str = "--output") -> None:
    """Replaces the file, links followed, by a complete new one; a device or pipe is written to as it is."""
    content = text.encode("utf-8", errors="backslashreplace")
    try:
        if _is_special(path):
            Path(path).write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise DriftcheckError(f"{option} {path} can't be written: {error.strerror}") from error


def write_report(text: str, path: str | None) -> None:
    """Writes what a command has to say to the file that the user names, or prints it where none is named."""
    if path is None:
        write_stdout(text)
    else:
        write_file(path, text)


def _is_special(path: str) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def _replace(target: Path, content: bytes) -> None:
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}")
    # A new file and nothing else: whoever else may write to the folder could have put a link in its place.
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        if target.exists():
            unfinished.chmod(stat.S_IMODE(target.stat().st_mode))
        unfinished.replace(target)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def write_stdout(text: str) -> None:
    """Prints the text; a reader that has gone (`| head`) is no error, a full disk is."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    said = text.encode(encoding, errors="backslashreplace").decode(encoding)
    _put_out(lambda: sys.stdout.write(said))


def write_stdout_bytes(content: bytes) -> None:
    """The same for bytes, as they are: a patch has each file's lines in the file's own encoding."""
    _put_out(lambda: sys.stdout.buffer.write(content))


def _put_out(write: Callable[[], object]) -> None:
    if sys.stdout is None:
        raise DriftcheckError("stdout is closed: nothing can be printed; --output names a file instead")
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would be flushed, and fail again, when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise DriftcheckError(f"stdout can't be written: {error.strerror}") from error
