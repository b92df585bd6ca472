"""Puts changes into the files that they were made for, all of them or none, with the originals kept."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change, Changes, ordered
from driftcheck.fixes.files import Replacement, check_writable, read, real_path, stage, swap, unstage
from driftcheck.fixes.journal import Entry, Transaction, begin, digest, discard, transactions
from driftcheck.fixes.restoring import put_back
from driftcheck.fixes.state import locked


def write(changes: Iterable[Change], root: Path, state: Path) -> Changes:
    """Replaces the files below `root`, and what was replaced (links followed); `state` keeps the originals.

    A run that is killed leaves every file old or new, and `restore` puts the new ones back. Raises DriftcheckError,
    with every file as it was, where one of them isn't what its change says, can't be written, or lies elsewhere.
    """
    meant = ordered(changes)
    if not meant:
        return ()
    base = Path(os.path.realpath(root))
    with locked(state):
        files = [_checked(change, base) for change in _without_links(meant, base)]
        for killed in transactions(state):
            unstage(killed.temporaries(base))
        transaction = begin(state, [(entry, change.before) for entry, change in files])
        wanted = tuple(change for _, change in files)
        try:
            _carry_out(transaction, wanted, base)
        except BaseException as error:
            unstage(transaction.temporaries(base))
            try:
                put_back(base, transaction, edited="leave")
                discard(transaction)
            except DriftcheckError as trouble:
                raise DriftcheckError(f"{error}; some files are changed, and restoring failed: {trouble}") from error
            if isinstance(error, DriftcheckError):
                raise DriftcheckError(f"{error}; all files are as they were") from error
            raise
    return wanted


def _without_links(changes: Changes, root: Path) -> Changes:
    """The changes with the paths of the files themselves; raises DriftcheckError where two paths are one file."""
    found: dict[str, Change] = {}
    for change in changes:
        path = real_path(root, change.path)
        first = found.setdefault(path, change)
        if (first.before, first.after) != (change.before, change.after):
            raise DriftcheckError(
                f"{first.path} and {change.path} are one file, and their fixes differ; nothing has been changed"
            )
    return ordered(Change(path, change.before, change.after) for path, change in found.items())


def _checked(change: Change, root: Path) -> tuple[Entry, Change]:
    """What is to be written down of a change; raises DriftcheckError where it can't be made."""
    file = root / change.path
    try:
        about = check_writable(file, change.path)
        content = read(file, change.path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DriftcheckError(f"cannot read {change.path}: {reason}; nothing has been changed") from error
    if content != change.before:
        raise DriftcheckError(f"{change.path} has been edited since it was read; nothing has been changed, try again")
    return Entry(change.path, digest(change.before), digest(change.after), about.st_mode & 0o7777), change


def _carry_out(transaction: Transaction, changes: Changes, root: Path) -> None:
    replacements = [
        Replacement(
            root / change.path, change.path, change.before, change.after, transaction.temporary(root, index), entry.mode
        )
        for index, (entry, change) in enumerate(zip(transaction.entries, changes, strict=True))
    ]
    stage(replacements)
    swap(replacements)
