"""The folder that keeps what files held before they were fixed, and the lock on it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    import filelock

UNFINISHED = (".making-", ".removing-")
"""How the names of folders begin that are not whole: a run that was killed has left them."""

_LOCK = "lock"
_LOCK_SECONDS = 30
_ATTEMPTS = 100


def state_folder(root: Path) -> Path:
    """Where the originals of a working copy's files are kept: in it, so that they move and go with it."""
    return root / ".driftcheck"


def user_state_folder(root: Path) -> Path:
    """Where the originals of installed files are kept: `site-packages` should get no foreign folder."""
    from platformdirs import user_state_path

    real = os.path.realpath(root)
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return user_state_path("driftcheck", appauthor=False) / "fixes" / name


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Keeps other processes out of the state folder, makes it where it is missing, and removes it when it is empty.

    Raises DriftcheckError where it can't be made or another process doesn't let go of it.
    """
    if state.is_symlink():
        raise DriftcheckError(f"{state} is a link, and originals are kept in a folder of its own; remove it")
    try:
        holder = _acquired(state)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DriftcheckError(f"cannot keep originals in {state}: {reason}; nothing has been changed") from error
    try:
        yield
    finally:
        _tidy(state)
        holder.release()


def _acquired(state: Path) -> filelock.BaseFileLock:
    import filelock

    lock = state / _LOCK
    for _ in range(_ATTEMPTS):
        state.mkdir(parents=True, exist_ok=True)
        try:
            # A link is not opened here, and so not by the lock either.
            os.close(os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
            meant = os.stat(lock).st_ino
            holder = filelock.FileLock(str(lock))
            holder.acquire(timeout=_LOCK_SECONDS)
        except filelock.Timeout as error:
            raise DriftcheckError(
                f"another process has been at work in {state} for {_LOCK_SECONDS} s; end it and try again"
            ) from error
        except FileNotFoundError:
            continue
        # Who had the lock before may have removed the folder with it: a lock on a file that is gone keeps nobody out.
        with suppress(OSError):
            if os.stat(lock).st_ino == meant:
                with suppress(FileExistsError), open(state / ".gitignore", "x", encoding="ascii") as stream:
                    stream.write("*\n")
                return holder
        holder.release()
    raise DriftcheckError(f"other processes remove {state} again and again; try again when they are done")


def _tidy(state: Path) -> None:
    """Removes what killed runs have left unfinished, and the folder itself where nothing else is in it."""
    with suppress(OSError):
        for name in sorted(os.listdir(state)):
            if name.startswith(UNFINISHED):
                shutil.rmtree(state / name)
        if set(os.listdir(state)) <= {_LOCK, ".gitignore"}:
            for name in (".gitignore", _LOCK):
                os.unlink(state / name)
            os.rmdir(state)
