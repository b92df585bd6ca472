"""Where a name that is gone from its module stands now."""

from __future__ import annotations

import re
from dataclasses import dataclass

from driftcheck.surface.program import Program
from driftcheck.surface.types import Absent, Class, Function, Module, Unknown, members_of

_AT_MOST = 24


@dataclass(frozen=True, slots=True)
class NewHome:
    """A module that has the name: `path` and `line` are where it is defined, `is_old` where the baseline had it too."""

    module: str
    name: str
    path: str
    line: int
    is_old: bool


class Relocation:
    """Looks through the whole target for names that are gone from where the client seeks them."""

    def __init__(self, program: Program, baseline: Program | None) -> None:
        self.program = program
        self.baseline = baseline
        self._homes: dict[tuple[str, str], NewHome | None] = {}

    def home(self, module: str, name: str) -> NewHome | None:
        """The best place to import the name from: one that the baseline has as well wins, then the shortest path.

        None where nothing of that name, or only things of another sort, are defined anywhere.
        """
        key = (module, name)
        if key not in self._homes:
            self._homes[key] = self._find(module, name)
        return self._homes[key]

    def _find(self, module: str, name: str) -> NewHome | None:
        sort = self._sort_of(self.baseline, module, name) if self.baseline is not None else ""
        definitions = [home for home in self._definitions(name) if not sort or self._sort(home, name) in (sort, "")]
        if not definitions:
            return None
        symbols = {(home.path, home.line) for home in definitions}
        homes = list(definitions)
        for exporter in self._exporters(name):
            found = self.program.imported_name(exporter, name)
            place = _place(found)
            if place in symbols:
                homes.append(NewHome(exporter, name, *place, self._was_in(exporter, name)))
        return min(
            homes,
            key=lambda home: (not home.is_old, _is_private(home.module), _distance(home.module, module), home.module),
        )

    def _definitions(self, name: str) -> list[NewHome]:
        pattern = re.compile(
            rb"^(?:class|def|async def)[ \t]+%s\b|^%s[ \t]*(?::[^=\n]+)?=[^=]" % ((re.escape(name.encode()),) * 2),
            re.MULTILINE,
        )
        homes: list[NewHome] = []
        for path, data in self.program.target_holding(name):
            match = pattern.search(data)
            if match is None:
                continue
            module = self.program.target_index.name_of(path)
            if module is None or isinstance(self.program.imported_name(module, name), Absent):
                continue
            line = data.count(b"\n", 0, match.start()) + 1
            homes.append(NewHome(module, name, path, line, self._was_in(module, name)))
            if len(homes) >= _AT_MOST:
                break
        return homes

    def _exporters(self, name: str) -> list[str]:
        """Packages whose `__init__` mentions the name, which may hand it on."""
        found: list[str] = []
        for path, _ in self.program.target_holding(name):
            if path.endswith("/__init__.py"):
                module = self.program.target_index.name_of(path)
                if module is not None:
                    found.append(module)
        return found

    def _was_in(self, module: str, name: str) -> bool:
        if self.baseline is None or not self.baseline.has_module(module):
            return False
        found = self.baseline.imported_name(module, name)
        return not any(isinstance(member, Absent | Unknown) for member in members_of(found))

    def _sort(self, home: NewHome, name: str) -> str:
        return self._sort_of(self.program, home.module, name)

    def _sort_of(self, program: Program | None, module: str, name: str) -> str:
        if program is None:
            return ""
        found = program.imported_name(module, name)
        if isinstance(found, Class):
            return "class"
        if isinstance(found, Function):
            return "function"
        return "module" if isinstance(found, Module) else ""


def _place(found: object) -> tuple[str, int]:
    if isinstance(found, Class | Function):
        return found.declaration.module.path, found.declaration.line
    return "", 0


def _is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def _distance(module: str, other: str) -> tuple[int, int]:
    """How far apart two modules are: parts not shared, then length."""
    one, two = module.split("."), other.split(".")
    shared = 0
    for left, right in zip(one, two, strict=False):
        if left != right:
            break
        shared += 1
    return len(one) + len(two) - 2 * shared, len(one)
