"""Which modules of a client import which, read from the text of their import statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from driftcheck.surface.modules import ModuleIndex

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)|import[ \t]+([^\n]+))", re.MULTILINE
)
_NAME = re.compile(rb"[\w.]+")


def with_importers(chosen: set[str], sources: Mapping[str, bytes], index: ModuleIndex) -> set[str]:
    """The chosen modules and every module that imports one of them, directly or through others.

    Parsing is left to later: an import in a string counts as well, which costs a look and nothing else.
    """
    importers: dict[str, set[str]] = {}
    for name, data in sources.items():
        for imported in imported_modules(name, data, index):
            importers.setdefault(imported, set()).add(name)
    found = set(chosen)
    pending = sorted(chosen)
    while pending:
        for importer in sorted(importers.get(pending.pop(), ())):
            if importer not in found:
                found.add(importer)
                pending.append(importer)
    return found


def imported_modules(name: str, data: bytes, index: ModuleIndex) -> Iterator[str]:
    """The modules of a client that the text of one of them says it imports."""
    if b"import" not in data:
        return
    is_package = index.sources[name].endswith("__init__.py")
    for match in _IMPORT.finditer(data):
        base, names, modules = match.groups()
        if modules is not None:
            for part in modules.split(b","):
                first = _NAME.search(part)
                if first is not None and first.group().decode(errors="replace") in index.sources:
                    yield first.group().decode(errors="replace")
            continue
        module = _absolute(base.decode(errors="replace"), name, is_package=is_package)
        if module in index.sources:
            yield module
        if module in index.namespaces or module in index.sources:
            for found in _NAME.finditer(names):
                submodule = f"{module}.{found.group().decode(errors='replace')}"
                if submodule in index.sources:
                    yield submodule


def _absolute(base: str, name: str, *, is_package: bool) -> str:
    relative = base.lstrip(".")
    level = len(base) - len(relative)
    if not level:
        return relative
    package = name if is_package else name.rpartition(".")[0]
    for _ in range(level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{relative}" if relative and package else relative or package
