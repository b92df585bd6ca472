"""Which modules a source tree holds, by dotted name."""

from __future__ import annotations

from driftcheck.tree import SourceTree

SOURCE_SUFFIXES = (".py", ".pyi")
EXTENSION_SUFFIXES = (".so", ".pyd")
_ROOTS: tuple[str, ...] = ("",)


class ModuleIndex:
    """The modules of a tree: sources, packages without `__init__` (namespaces) and extension modules."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.sources: dict[str, str] = {}
        self.extensions: set[str] = set()
        self.namespaces: set[str] = set()
        self._ranks: dict[str, tuple[int, bool]] = {}
        self._shadowed: list[tuple[str, str]] = []
        roots = tuple(getattr(tree, "roots", _ROOTS)) or _ROOTS
        for path in tree.paths:
            self._add(path, roots)
        for name, path in self._shadowed:
            self.sources[self._own_name(name, path)] = path
        self.top_level = {name.partition(".")[0] for name in (*self.sources, *self.extensions)}

    def _add(self, path: str, roots: tuple[str, ...]) -> None:
        is_source = path.endswith(SOURCE_SUFFIXES)
        if not is_source and not path.endswith(EXTENSION_SUFFIXES):
            return
        relative, rank = path, len(roots)
        for place, root in enumerate(roots):
            if root and path.startswith(root.rstrip("/") + "/"):
                relative, rank = path[len(root.rstrip("/")) + 1 :], place
                break
        folder, _, file = relative.rpartition("/")
        stem = file.partition(".")[0]
        package = folder.replace("/", ".")
        if stem == "__init__":
            name = package
        else:
            name = f"{package}.{stem}" if package else stem
        if not name:
            return
        if is_source:
            self._add_source(name, path, (rank, stem != "__init__"))
        else:
            self.extensions.add(name)
        while package and package not in self.namespaces:
            self.namespaces.add(package)
            package = package.rpartition(".")[0]

    def _add_source(self, name: str, path: str, rank: tuple[int, bool]) -> None:
        known = self.sources.get(name)
        if known is None:
            self.sources[name], self._ranks[name] = path, rank
            return
        # A stub beside its source says less than the source: what runs wins.
        if known.endswith(".py") != path.endswith(".py"):
            if path.endswith(".py"):
                self.sources[name], self._ranks[name] = path, rank
            return
        # Of two files with one name that is imported which comes first, and of a package and a module the package.
        if rank < self._ranks[name]:
            self.sources[name], self._ranks[name], path = path, rank, known
        self._shadowed.append((name, path))

    def _own_name(self, name: str, path: str) -> str:
        """A name for a file that no import leads to by its own, so that it is read all the same."""
        whole = path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")
        if whole and whole not in self.sources and whole not in self.namespaces:
            return whole
        while name in self.sources:
            name += "~"
        return name

    def __contains__(self, name: str) -> bool:
        return name in self.sources or name in self.extensions or name in self.namespaces

    def name_of(self, path: str) -> str | None:
        """The dotted name of a source file of the tree, None where it is no module."""
        if not hasattr(self, "_names"):
            self._names = {source: name for name, source in self.sources.items()}
        return self._names.get(path)
