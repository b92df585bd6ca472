"""What a fix comes to once it is worked out: files, their bytes before and their bytes after."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from driftcheck.errors import DriftcheckError
from driftcheck.origins.limits import SOURCE_SUFFIXES


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One file that becomes another; the path is POSIX and relative to the root of its tree."""

    path: str
    before: bytes
    after: bytes


Changes: TypeAlias = tuple[Change, ...]
"""Changes by their paths, one for each, none of which leaves its file as it is."""


def ordered(changes: Iterable[Change]) -> Changes:
    """The changes by their paths, without those that change nothing.

    Raises DriftcheckError for a path that may not be changed, and ValueError where two changes have the same path.
    """
    kept = tuple(sorted(change for change in changes if change.before != change.after))
    for change in kept:
        check_path(change.path)
    if len({change.path for change in kept}) != len(kept):
        raise ValueError("two changes of one file")
    return kept


def check_path(path: str) -> None:
    """Raises DriftcheckError where a path is not below its root, or is in or of what is hidden there.

    What is hidden belongs to other programs, some of which run what it says: `.git/config`, `.envrc`.
    """
    *folders, name = path.split("/")
    is_hidden = any(folder.startswith(".") for folder in folders) or (
        name.startswith(".") and not name.endswith(SOURCE_SUFFIXES)
    )
    if is_hidden or "" in (*folders, name) or re.search(r"[\x00\\]|^[A-Za-z]:", path):
        raise DriftcheckError(f"{path!r} is no path that may be changed: it is hidden, or not below its folder")
