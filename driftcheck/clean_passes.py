"""Audits of an environment that found nothing, kept until a file changes that could have made a difference."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from driftcheck.kept import keep
from driftcheck.knowledge import own_digest
from driftcheck.origins.distributions import distributions_on
from driftcheck.origins.folders import FolderTree

_LARGEST = 4 * 1024 * 1024
_MOST = 64

Place = tuple[str, tuple[str, ...] | None]
"""A folder, and what in it belongs to a tree; None for all of it."""


class CleanPass:
    """The last clean pass of the same question: `parts` is all that was asked, `search_path` where modules are."""

    def __init__(self, cache: Path, search_path: Sequence[str], parts: Iterable[str]) -> None:
        asked = hashlib.sha256("\0".join((own_digest(), *search_path, *parts)).encode("utf-8", "surrogateescape"))
        self._path = cache / "passes" / f"{asked.hexdigest()[:40]}.json"
        self._search_path = tuple(search_path)

    def holds(self) -> str | None:
        """What the last clean pass said, None where there is none or anything has changed since."""
        try:
            if not self._path.is_file() or self._path.is_symlink() or self._path.stat().st_size > _LARGEST:
                return None
            known = json.loads(self._path.read_bytes())
            said, digest = known["said"], known["digest"]
            places = [(str(base), None if heads is None else tuple(map(str, heads))) for base, heads in known["places"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return str(said) if digest == self._digest(places) else None

    def keep(self, trees: Iterable[FolderTree], said: str) -> None:
        """Keeps that nothing was found in these trees, with the words that say so."""
        places = sorted({(str(tree.base), tree.heads) for tree in trees}, key=repr)
        document = {"said": said, "digest": self._digest(places), "places": places}
        keep(self._path, json.dumps(document).encode("utf-8", "surrogateescape"), most=_MOST)

    def _digest(self, places: Iterable[Place]) -> str:
        """A hash of what is installed: every distribution's RECORD, and every file of the trees.

        Compiled modules are hundreds of megabytes; of those it is size and time.
        """
        digest = hashlib.sha256()
        for distribution in distributions_on(self._search_path):
            digest.update(f"{distribution.information}\0".encode("utf-8", "surrogateescape"))
            digest.update(hashlib.sha256(distribution.record or b"").digest())
        for base, heads in places:
            tree = FolderTree(Path(base), heads)
            for path in tree.paths:
                digest.update(f"{base}\0{path}\0".encode("utf-8", "surrogateescape"))
                digest.update(_content(os.path.join(base, path)))
        return digest.hexdigest()


def _content(file: str) -> bytes:
    try:
        if file.endswith((".py", ".pyi")):
            with open(file, "rb") as stream:
                return hashlib.sha256(stream.read()).digest()
        about = os.stat(file)
    except OSError as error:
        return str(error.errno).encode()
    return f"{about.st_size} {about.st_mtime_ns}".encode()
