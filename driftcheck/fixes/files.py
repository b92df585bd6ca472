"""Files that are read, made and replaced so that whatever happens meanwhile leaves each of them old or new."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.bytecode import forget
from driftcheck.fixes.changes import check_path
from driftcheck.origins.limits import MEMBER_BYTES

_SECOND = 1_000_000_000
_UNTOUCHED = "nothing has been changed"


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file that gets other content: what it holds now (None where it is missing) and what it will hold.

    `file` is the place itself, no link; `path` is what messages call it; the content goes to `temporary`, beside it.
    """

    file: Path
    path: str
    current: bytes | None
    content: bytes
    temporary: Path
    mode: int


def real_path(root: Path, path: str) -> str:
    """The path of the file that a path leads to, relative to the real root: links are followed.

    Raises DriftcheckError where it leads out of the root or to what may not be changed.
    """
    check_path(path)
    base = os.path.realpath(root)
    real = os.path.realpath(os.path.join(base, path))
    if not real.startswith(os.path.join(base, "")):
        raise DriftcheckError(f"{path} is a link that leads out of its folder; {_UNTOUCHED}")
    inside = Path(os.path.relpath(real, base)).as_posix()
    check_path(inside)
    return inside


def read(file: Path, path: str) -> bytes:
    """The bytes of a regular file; raises DriftcheckError, OSError where there is none or it can't be read."""
    about = os.stat(file)
    if not stat.S_ISREG(about.st_mode):
        raise DriftcheckError(f"{path} is no regular file; {_UNTOUCHED}")
    if about.st_size > MEMBER_BYTES:
        raise DriftcheckError(f"{path} has more than the {MEMBER_BYTES:,} bytes that are read; {_UNTOUCHED}")
    with open(file, "rb") as stream:
        return stream.read(MEMBER_BYTES + 1)


def check_writable(file: Path, path: str) -> os.stat_result:
    """What the system says of a file; raises DriftcheckError where it or its folder is read-only.

    The mode counts for the administrator too, whom the system lets write everywhere: it says what the owner wants.
    """
    about, folder = os.stat(file), os.stat(file.parent)
    if not about.st_mode & 0o222 or not os.access(file, os.W_OK):
        raise DriftcheckError(f"{path} is read-only; {_UNTOUCHED}")
    if not folder.st_mode & 0o222 or not os.access(file.parent, os.W_OK | os.X_OK):
        raise DriftcheckError(f"the folder of {path} is read-only; {_UNTOUCHED}")
    return about


def create(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes a new file, on the disk when this returns; raises OSError, FileExistsError for one that is there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(file, flags, mode)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stage(replacements: Iterable[Replacement]) -> None:
    """Writes all new content beside the files: after that only renames are left to do.

    Raises DriftcheckError; what is staged by then stays for `unstage`.
    """
    for replacement in replacements:
        try:
            create(replacement.temporary, replacement.content)
            _dress(replacement)
        except OSError as error:
            raise _failure(replacement, error) from error


def swap(replacements: Iterable[Replacement]) -> None:
    """Puts staged content in place, file by file; raises DriftcheckError where a file isn't what it was any more."""
    folders: dict[Path, None] = {}
    for replacement in replacements:
        try:
            if _held(replacement) != replacement.current:
                raise DriftcheckError(f"{replacement.path} is being edited by somebody else; try again")
            forget(replacement.file)
            os.replace(replacement.temporary, replacement.file)
        except OSError as error:
            raise _failure(replacement, error) from error
        folders[replacement.file.parent] = None
    for folder in folders:
        sync_folder(folder)


def unstage(temporaries: Iterable[Path]) -> None:
    """Removes staged content that was not put in place."""
    for temporary in temporaries:
        with suppress(OSError):
            os.unlink(temporary)


def sync_folder(folder: Path) -> None:
    """Has the names in a folder written to the disk, where the system can do that."""
    if os.name == "nt":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _held(replacement: Replacement) -> bytes | None:
    try:
        return read(replacement.file, replacement.path)
    except FileNotFoundError:
        return None


def _dress(replacement: Replacement) -> None:
    """Gives staged content the mode and owner of the file that it replaces, and another time.

    Python takes bytecode for that of a source with the same size and second of modification, so the second goes up.
    """
    temporary, now = replacement.temporary, time.time_ns()
    mode = replacement.mode & 0o777
    if replacement.current is not None:
        about = os.stat(replacement.file)
        now = max(now, (int(about.st_mtime) + 1) * _SECOND)
        mode = stat.S_IMODE(about.st_mode)
        own = os.stat(temporary)
        if hasattr(os, "chown") and (own.st_uid, own.st_gid) != (about.st_uid, about.st_gid):
            try:
                os.chown(temporary, about.st_uid, about.st_gid)
            except OSError:
                # The file becomes the writer's, and with that loses what it could do in the owner's name.
                mode &= 0o777
    os.chmod(temporary, mode)
    os.utime(temporary, ns=(now, now))


def _failure(replacement: Replacement, error: OSError) -> DriftcheckError:
    return DriftcheckError(f"cannot write {replacement.path}: {error.strerror or error}")
