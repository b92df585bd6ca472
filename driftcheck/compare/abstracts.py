"""Abstract methods that a class of the client's leaves open, so that it can't be instantiated."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from driftcheck.compare.members import Definition, Members
from driftcheck.compare.release import Release
from driftcheck.surface.declarations import ClassDeclaration
from driftcheck.surface.types import Class, External

_DECORATORS = frozenset(("abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod"))
# Classes whose metaclass is ABCMeta, or one that derives from it.
_ABSTRACT_BASES = frozenset(("abc.ABC", "typing.Protocol", "typing_extensions.Protocol"))
_METACLASSES = frozenset(("abc.ABCMeta", "enum.ABCMeta"))


@dataclass(frozen=True, slots=True)
class Open:
    """What a class leaves open; `hidden_by` is a base that can't be read and may fill it."""

    missing: tuple[Definition, ...]
    hidden_by: str = ""


class Abstracts:
    """Computes which abstract methods a class leaves open in one release."""

    def __init__(self, release: Release) -> None:
        self.program = release.program
        self.members = Members(release)
        self._memo: dict[ClassDeclaration, Open] = {}

    def open(self, class_: ClassDeclaration) -> Open:
        """The abstract methods for which nothing along the resolution order stands in."""
        found = self._memo.get(class_)
        if found is None:
            found = self._memo[class_] = self._open(class_)
        return found

    def declares(self, class_: ClassDeclaration) -> bool:
        """True where the body of a class has an abstract method of its own, or the class is named as abstract."""
        if any(self._is_abstract(definition) for name in class_.members if (definition := self._own(class_, name))):
            return True
        bases = [ast.unparse(base).rpartition(".")[2] for base in class_.node.bases]
        return "ABC" in bases or "Protocol" in bases or self._has_metaclass(class_)

    def _open(self, class_: ClassDeclaration) -> Open:
        linear = self.program.classes.linearize(class_)
        if not any(self._makes_abstract(entry) for entry in linear):
            return Open(())
        missing: list[Definition] = []
        hidden = ""
        seen: set[str] = set()
        for entry in linear:
            if not isinstance(entry, Class):
                continue
            for name in entry.declaration.members:
                if name in seen:
                    continue
                seen.add(name)
                definition = self._own(entry.declaration, name)
                if definition is None or not self._is_abstract(definition):
                    continue
                first = self.members.first(class_, name)
                if isinstance(first, str):
                    hidden = first
                elif first is not None and self._is_abstract(first):
                    missing.append(first)
        return Open(tuple(missing), hidden)

    def _own(self, class_: ClassDeclaration, name: str) -> Definition | None:
        return self.members.definition(class_, name)

    def _is_abstract(self, definition: Definition) -> bool:
        if definition.function is None:
            return False
        for node in definition.function.node.decorator_list:
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if name in _DECORATORS:
                return True
        return False

    def _makes_abstract(self, entry: object) -> bool:
        if isinstance(entry, External):
            return entry.path in _ABSTRACT_BASES
        return isinstance(entry, Class) and self._has_metaclass(entry.declaration)

    def _has_metaclass(self, class_: ClassDeclaration) -> bool:
        for keyword in class_.node.keywords:
            if keyword.arg == "metaclass":
                type_ = self.program.inference.infer(keyword.value, self.program.scope_of_class(class_))
                if isinstance(type_, External) and type_.path in _METACLASSES:
                    return True
        return False
