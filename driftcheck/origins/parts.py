"""Parts of trees: what a project would install of its sources, or the files of a client that matter for a question."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from pathlib import Path

from driftcheck.origins.layout import installed_root
from driftcheck.tree import SourceTree


class PartialTree:
    """Some files of a tree, which is otherwise the same; `cache_folder` is where a target's sources are remembered."""

    def __init__(self, tree: SourceTree, paths: Collection[str], cache_folder: Path | None = None) -> None:
        self._tree = tree
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
        return self._tree.read(path)

    def digest(self, path: str) -> str:
        if path not in self._paths:
            raise KeyError(path)
        return self._tree.digest(path)


def installed_part(tree: SourceTree, cache_folder: Path | None = None) -> PartialTree:
    """What a checkout's project would install: its packages, without tests, examples and what else lies beside."""
    root, heads = installed_root(tree.paths)
    wanted = {f"{root}{head}" for head in heads}
    places = tuple(f"{head}/" for head in wanted)
    kept = {path for path in tree.paths if path in wanted or path.startswith(places)}
    return PartialTree(tree, kept or set(tree.paths), cache_folder)
