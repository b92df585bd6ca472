"""Reports kept in the user's cache folder, by the content of all that went into them.

What has the same content gives the same report, so a second audit of what has not changed only has to look at hashes.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.kept import keep
from driftcheck.knowledge import own_digest
from driftcheck.model import Report
from driftcheck.tree import SourceTree

_KEPT_FILES = 1024
_LARGEST = 64_000_000


class Remembered:
    """The report of one audit, if it was made before; `parts` is whatever else than the trees decides what it says."""

    def __init__(self, folder: Path, trees: Iterable[SourceTree | None], parts: Iterable[str | None]) -> None:
        digest = hashlib.sha256()
        for part in (own_digest(), sys.version, *(repr(part) for part in parts), *map(content_digest, trees)):
            digest.update(part.encode("utf-8", "surrogateescape") + b"\0")
        self._path = folder / "reports" / f"{digest.hexdigest()[:40]}.json"

    def report(self) -> Report | None:
        """The report, None where there is none, or what is there can't be used."""
        import msgspec

        try:
            if not self._path.is_file() or self._path.is_symlink() or self._path.stat().st_size > _LARGEST:
                return None
            found = msgspec.json.decode(self._path.read_bytes(), type=Report)
            os.utime(self._path)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return found

    def keep(self, report: Report) -> None:
        """Keeps the report for the next time; where it can't be written, the next time takes as long again."""
        import msgspec

        try:
            content = msgspec.json.encode(report)
        except UnicodeEncodeError:
            # A name that no text can hold, in the client's own source.
            return
        keep(self._path, content, most=_KEPT_FILES)


def content_digest(tree: SourceTree | None) -> str:
    """A hash of all that an audit can learn from a tree."""
    if tree is None:
        return ""
    digest = hashlib.sha256()
    for part in (tree.name, tree.version, tree.origin, tree.roots, tree.requirements, getattr(tree, "unlisted", ())):
        digest.update(repr(part).encode("utf-8", "surrogateescape") + b"\0")
    for path in sorted(tree.paths):
        digest.update(f"{path} {_content(tree, path)}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _content(tree: SourceTree, path: str) -> str:
    try:
        return tree.digest(path)
    except (DriftcheckError, KeyError) as error:
        # A compiled module, which is there and nothing else; or a file that can't be read, and why.
        return str(error)
