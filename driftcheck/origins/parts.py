"""Parts of trees: what a project would install of its sources, or the files of a client that matter for a question."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from pathlib import Path

from driftcheck.origins.layout import installed_root
from driftcheck.origins.settings import Settings
from driftcheck.tree import SourceTree

# So many files of many commits are held in memory, which is some 250 MB of sources.
_MOST_CONTENTS = 20_000


class PartialTree:
    """Some files of a tree, which is otherwise the same; `cache_folder` is where a target's sources are remembered.

    `contents` are files by their digests that trees of one origin share, so that each is read once.
    """

    def __init__(
        self,
        tree: SourceTree,
        paths: Collection[str],
        cache_folder: Path | None = None,
        contents: dict[str, bytes] | None = None,
    ) -> None:
        self._tree = tree
        self._contents = contents
        self._paths = dict.fromkeys(path for path in sorted(tree.paths) if path in paths)
        self.roots = tree.roots
        self.cache_folder = cache_folder
        self.unlisted: tuple[tuple[str, str], ...] = getattr(tree, "unlisted", ())

    @property
    def name(self) -> str:
        return self._tree.name

    @property
    def version(self) -> str | None:
        return self._tree.version

    @property
    def origin(self) -> str:
        return self._tree.origin

    @property
    def paths(self) -> Collection[str]:
        return self._paths.keys()

    @property
    def requirements(self) -> tuple[str, ...]:
        return self._tree.requirements

    @property
    def uploaded(self) -> date | None:
        return self._tree.uploaded

    def read(self, path: str) -> bytes:
        if path not in self._paths:
            raise KeyError(path)
        if self._contents is None:
            return self._tree.read(path)
        digest = self._tree.digest(path)
        found = self._contents.get(digest)
        if found is None:
            found = self._tree.read(path)
            if len(self._contents) < _MOST_CONTENTS:
                self._contents[digest] = found
        return found

    def digest(self, path: str) -> str:
        if path not in self._paths:
            raise KeyError(path)
        return self._tree.digest(path)


def installed_part(
    tree: SourceTree, cache_folder: Path | None = None, contents: dict[str, bytes] | None = None
) -> PartialTree:
    """What a checkout's project would install: its packages, without tests, examples and what else lies beside.

    The other arguments are as for `PartialTree`.
    """
    root, heads = installed_root(tree.paths)
    wanted = {f"{root}{head}" for head in heads}
    places = tuple(f"{head}/" for head in wanted)
    kept = {path for path in tree.paths if path in wanted or path.startswith(places)}
    return PartialTree(tree, kept or set(tree.paths), cache_folder, contents)


def commits_cache(settings: Settings) -> Path:
    """Where the sources of commits are remembered: apart from those of releases, which they would soon outnumber."""
    return settings.cache / "commits"
