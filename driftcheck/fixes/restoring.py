"""Puts files back as they were before they were fixed, and loses nothing that was written since."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.files import Replacement, create, read, real_path, stage, swap, sync_folder, unstage
from driftcheck.fixes.journal import Transaction, digest, discard, transactions
from driftcheck.fixes.state import locked


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, what holds the edits that were made since the fix, and how many fixes before it are left."""

    paths: tuple[str, ...]
    edits: tuple[str, ...]
    left: int


def restore(root: Path, state: Path, *, everything: bool = False, force: bool = False) -> Restored:
    """Takes back the newest fix below `root` or, with `everything`, all of them; what is taken back is forgotten.

    Raises DriftcheckError, with every file as it was, where one has been edited or removed since it was fixed. With
    `force` it is put back all the same and the edited text stays beside it, as `module.py.edited`. A run that is
    killed leaves every file old or new, and can be repeated.
    """
    base = Path(os.path.realpath(root))
    if not state.is_symlink() and not state.is_dir():
        raise _nothing(base)
    paths: dict[str, None] = {}
    edits: list[str] = []
    with locked(state):
        known = transactions(state)
        if not known:
            raise _nothing(base)
        chosen = known if everything else known[:1]
        edited = _edited(base, chosen)
        if edited and not force:
            others = f" and {len(edited) - 1} more" if len(edited) > 1 else ""
            have = "have" if others else "has"
            raise DriftcheckError(
                f"{edited[0]}{others} {have} been edited or removed since the fix, and nothing has been restored; "
                "restore --force keeps what was edited beside the file"
            )
        for transaction in chosen:
            put = put_back(base, transaction, edited="aside")
            paths |= dict.fromkeys(put.paths)
            edits += put.edits
            discard(transaction)
    return Restored(tuple(sorted(paths)), tuple(edits), len(known) - len(chosen))


def put_back(root: Path, transaction: Transaction, *, edited: Literal["aside", "leave"]) -> Restored:
    """Puts the originals of one transaction back; files that were edited since keep their text aside, or are left.

    Raises DriftcheckError where a file can't be written; it may be repeated then.
    """
    unstage(transaction.temporaries(root))
    replacements: list[Replacement] = []
    asides: list[Replacement] = []
    for index, entry in enumerate(transaction.entries):
        current = _current(root, entry.path)
        found = digest(current) if current is not None else None
        if found == entry.before or (found != entry.after and edited == "leave"):
            continue
        replacement = Replacement(
            root / entry.path,
            entry.path,
            current,
            transaction.original(index),
            transaction.temporary(root, index),
            entry.mode,
        )
        replacements.append(replacement)
        if found != entry.after:
            asides.append(replacement)
    try:
        for replacement in asides:
            replacement.file.parent.mkdir(parents=True, exist_ok=True)
        stage(replacements)
        edits = [_set_aside(replacement) for replacement in asides if replacement.current is not None]
        swap(replacements)
    except OSError as error:
        raise DriftcheckError(f"cannot restore: {error.strerror or error}") from error
    finally:
        unstage(transaction.temporaries(root))
    return Restored(tuple(replacement.path for replacement in replacements), tuple(edits), 0)


def _edited(root: Path, chosen: Sequence[Transaction]) -> list[str]:
    """The files that hold neither what a fix made of them nor what they held before."""
    digests: dict[str, str | None] = {}
    found: dict[str, None] = {}
    for transaction in chosen:
        for entry in transaction.entries:
            if entry.path not in digests:
                current = _current(root, entry.path)
                digests[entry.path] = digest(current) if current is not None else None
            if digests[entry.path] not in (entry.before, entry.after):
                found[entry.path] = None
            digests[entry.path] = entry.before
    return sorted(found)


def _current(root: Path, path: str) -> bytes | None:
    """What a file holds, None where it is missing; raises DriftcheckError where a link has taken its place."""
    if real_path(root, path) != path:
        raise DriftcheckError(f"{path} has become a link since the fix; nothing has been restored")
    try:
        return read(root / path, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DriftcheckError(f"cannot read {path}: {error.strerror or error}; nothing has been restored") from error


def _set_aside(replacement: Replacement) -> str:
    """Keeps what a file holds under a name that is free, and gives its path."""
    assert replacement.current is not None
    number = 1
    while True:
        suffix = ".edited" if number == 1 else f".edited-{number}"
        try:
            create(replacement.file.with_name(replacement.file.name + suffix), replacement.current, replacement.mode)
        except FileExistsError:
            number += 1
            continue
        sync_folder(replacement.file.parent)
        return replacement.path + suffix


def _nothing(root: Path) -> DriftcheckError:
    return DriftcheckError(f"nothing has been fixed in {root}: there is nothing to restore")
