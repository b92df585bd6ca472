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
        roots = tuple(getattr(tree, "roots", _ROOTS)) or _ROOTS
        for path in tree.paths:
            self._add(path, roots)
        self.top_level = {name.partition(".")[0] for name in (*self.sources, *self.extensions)}

    def _add(self, path: str, roots: tuple[str, ...]) -> None:
        is_source = path.endswith(SOURCE_SUFFIXES)
        if not is_source and not path.endswith(EXTENSION_SUFFIXES):
            return
        relative = path
        for root in roots:
            if root and path.startswith(root.rstrip("/") + "/"):
                relative = path[len(root.rstrip("/")) + 1 :]
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
            # A stub beside its source says less than the source: what runs wins.
            if name not in self.sources or path.endswith(".py"):
                self.sources[name] = path
        else:
            self.extensions.add(name)
        while package and package not in self.namespaces:
            self.namespaces.add(package)
            package = package.rpartition(".")[0]

    def __contains__(self, name: str) -> bool:
        return name in self.sources or name in self.extensions or name in self.namespaces

    def name_of(self, path: str) -> str | None:
        """The dotted name of a source file of the tree, None where it is no module."""
        if not hasattr(self, "_names"):
            self._names = {source: name for name, source in self.sources.items()}
        return self._names.get(path)
