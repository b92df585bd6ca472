"""Names and versions of distributions, as their files and the index spell them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def normalized(name: str) -> str:
    """The name as the index compares it: lower case, runs of `-`, `_` and `.` made one `-`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parsed_version(text: str) -> Version | None:
    """The version, or None where the text is none."""
    from packaging.version import Version

    try:
        return Version(text)
    except ValueError:
        # Not only InvalidVersion: Python refuses to read a number of thousands of digits.
        return None


def is_older(text: str | None, other: str | None) -> bool:
    """True where both texts are versions, and the first is the lower."""
    own, others = parsed_version(text or ""), parsed_version(other or "")
    return own is not None and others is not None and own < others


def sorted_versions(texts: Iterable[str]) -> list[Version]:
    """The versions among the texts, each once, oldest first."""
    return sorted({version for text in texts if (version := parsed_version(text)) is not None})


def newest(versions: Sequence[str]) -> str | None:
    """The newest final version, or the newest prerelease where there is no other."""
    parsed = sorted_versions(versions)
    finals = [version for version in parsed if not version.is_prerelease]
    return str((finals or parsed)[-1]) if parsed else None


def nearest(versions: Sequence[str], wanted: Version, count: int = 3) -> list[str]:
    """The versions round the one that is missing, oldest first."""
    parsed = sorted_versions(versions)
    finals = [version for version in parsed if not version.is_prerelease] or parsed
    after = sum(version < wanted for version in finals)
    start = max(0, min(after - (count + 1) // 2, len(finals) - count))
    return [str(version) for version in finals[start : start + count]]
