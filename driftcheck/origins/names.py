"""Names and versions of distributions, as their files and the index spell them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def normalized(name: str) -> str:
    """The name as the index compares it: lower case, runs of `-`, `_` and `.` made one `-`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parsed_version(text: str) -> Version | None:
    """The version, or None where the text is none."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        return None


def sorted_versions(texts: Iterable[str]) -> list[Version]:
    """The versions among the texts, each once, oldest first."""
    return sorted({version for text in texts if (version := parsed_version(text)) is not None})
