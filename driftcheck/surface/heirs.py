"""The classes that derive from one, found by the text of class statements and read only where they may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration

if TYPE_CHECKING:
    from driftcheck.surface.program import Program

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^)]*)\)", re.MULTILINE)
_NAME = re.compile(rb"\w+")


class Heirs:
    """Finds the classes of the target that derive from one, and of what has been read of the client where asked."""

    def __init__(self, program: Program, *, with_client: bool = False) -> None:
        self.program = program
        self.with_client = with_client
        self._named: dict[str, set[tuple[str, str]]] = {}
        self._noted: set[str] = set()
        self._has_client = False
        self._memo: dict[ClassDeclaration, tuple[ClassDeclaration, ...]] = {}

    def of(self, class_: ClassDeclaration) -> tuple[ClassDeclaration, ...]:
        """The classes that derive from a class, or may, where one of their bases can't be read."""
        found = self._memo.get(class_)
        if found is None:
            found = self._memo[class_] = tuple(self._search(class_))
        return found

    def _search(self, class_: ClassDeclaration) -> Iterator[ClassDeclaration]:
        seen: set[tuple[str, str]] = set()
        pending = [class_.name]
        while pending:
            for module_name, name in sorted(self._naming(pending.pop())):
                if (module_name, name) in seen:
                    continue
                seen.add((module_name, name))
                pending.append(name)
                module = self.program.module(module_name)
                for heir in _classes_named(module, name) if module is not None else ():
                    if heir is not class_ and self.program.classes.is_subclass(heir, class_) is not False:
                        yield heir

    def _naming(self, name: str) -> set[tuple[str, str]]:
        """The class statements that name a class among their bases, as (module, class)."""
        index = self.program.target_index
        for path, data in self.program.target_holding(name):
            if path not in self._noted:
                self._noted.add(path)
                self._note(index.name_of(path) or "", data)
        if self.with_client and not self._has_client:
            self._has_client = True
            for module_name in self.program.loaded_modules():
                module = self.program.module(module_name)
                if module is not None and not self.program.is_target(module_name):
                    self._note(module_name, module.text.encode())
        return self._named.get(name, set())

    def _note(self, module_name: str, data: bytes) -> None:
        for heir, bases in _CLASS.findall(data):
            for base in set(_NAME.findall(bases)):
                self._named.setdefault(base.decode(), set()).add((module_name, heir.decode()))


def _classes_named(module: ModuleDeclaration, name: str) -> Iterator[ClassDeclaration]:
    """The classes of that name in a module: its own, those inside other classes, and those that functions make."""
    pending: list[ModuleDeclaration | ClassDeclaration] = [module]
    while pending:
        place = pending.pop()
        names = place.names if isinstance(place, ModuleDeclaration) else place.members
        for bound, bindings in names.items():
            for binding in bindings:
                if binding.class_ is not None:
                    pending.append(binding.class_)
                    if bound == name:
                        yield binding.class_
