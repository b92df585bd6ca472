"""Where a name that is gone from its module stands now."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from driftcheck.surface.program import Program
from driftcheck.surface.syntax import named_parameters
from driftcheck.surface.types import Absent, Class, Function, Module, Unknown, members_of
from driftcheck.surface.words import encoded

_AT_MOST = 24


@dataclass(frozen=True, slots=True)
class NewHome:
    """A module that has the name: `path` and `line` are where it is defined.

    `likeness` is 0 where the baseline had the very thing there as well, 1 where it had none of that name, 2 where it
    had a second one that says the same of itself, and 3 where it had another thing, which can hardly be what the
    client's became.
    """

    module: str
    name: str
    path: str
    line: int
    likeness: int
    is_only: bool = False


class Relocation:
    """Looks through the whole target for names that are gone from where the client seeks them."""

    def __init__(self, program: Program, baseline: Program | None) -> None:
        self.program = program
        self.baseline = baseline
        self._homes: dict[tuple[str, str], NewHome | None] = {}

    def home(self, module: str, name: str) -> NewHome | None:
        """The best place to import the name from: where the baseline has the thing as well, then the shortest path.

        None where nothing of that name, or only things of another sort, are defined anywhere.
        """
        key = (module, name)
        if key not in self._homes:
            self._homes[key] = self._find(module, name)
        return self._homes[key]

    def _find(self, module: str, name: str) -> NewHome | None:
        old = self.baseline.imported_name(module, name) if self.baseline is not None else None
        sort = _sort(old)
        definitions = [home for home in self._definitions(name, old) if not sort or self._sort_of(home) in (sort, "")]
        if not definitions:
            return None
        symbols = {(home.path, home.line): home.module for home in definitions}
        homes = list(definitions)
        for exporter, is_declared in self._exporters(name):
            found = self.program.imported_name(exporter, name)
            place = _place(found)
            # A package that merely uses a thing of another one does not offer it.
            if place in symbols and (is_declared or symbols[place].startswith(f"{exporter}.")):
                homes.append(NewHome(exporter, name, *place, self._likeness(exporter, name, old)))
        best = min(
            homes,
            key=lambda home: (home.likeness, _is_private(home.module), _distance(home.module, module), home.module),
        )
        rivals = {(home.path, home.line) for home in definitions if home.likeness <= best.likeness}
        return replace(best, is_only=len(rivals) == 1)

    def _definitions(self, name: str, old: object) -> list[NewHome]:
        pattern = re.compile(
            rb"^(?:class|def|async def)[ \t]+%s\b|^%s[ \t]*(?::[^=\n]+)?=[^=]" % ((re.escape(encoded(name)),) * 2),
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
            homes.append(NewHome(module, name, path, line, self._likeness(module, name, old)))
            if len(homes) >= _AT_MOST:
                break
        return homes

    def _exporters(self, name: str) -> list[tuple[str, bool]]:
        """Packages whose `__init__` mentions the name, and whether in quotes, as lists of what is handed on do."""
        found: list[tuple[str, bool]] = []
        for path, data in self.program.target_holding(name):
            if path.endswith("/__init__.py"):
                module = self.program.target_index.name_of(path)
                if module is not None:
                    found.append((module, any(quote + encoded(name) + quote in data for quote in (b'"', b"'"))))
        return found

    def _likeness(self, module: str, name: str, old: object) -> int:
        """How the baseline's thing of that name in the module goes with `old`, the one that the client imported."""
        if self.baseline is None or not self.baseline.has_module(module):
            return 1
        found = self.baseline.imported_name(module, name)
        if any(isinstance(member, Absent | Unknown) for member in members_of(found)):
            return 1
        if isinstance(old, Absent):
            # It was gone before the baseline: then it went to where the baseline has it, and nobody can compare.
            return 1
        if _place(old) == _place(found):
            return 0
        # Where there were two that take and give the same, as they say, one has been made to do for both.
        return 2 if _says_the_same(old, found) else 3

    def _sort_of(self, home: NewHome) -> str:
        return _sort(self.program.imported_name(home.module, home.name))


def _says_the_same(one: object, other: object) -> bool:
    """True for two functions that say what each of their parameters is and what they give, and say the same."""
    if not isinstance(one, Function) or not isinstance(other, Function):
        return False
    left, right = one.declaration.node, other.declaration.node
    arguments = named_parameters(left.args)
    if not arguments or any(each.annotation is None for each in arguments) or type(left) is not type(right):
        return False
    if left.returns is None or right.returns is None:
        return False
    return ast.dump(left.args) == ast.dump(right.args) and ast.dump(left.returns) == ast.dump(right.returns)


def _sort(found: object) -> str:
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
