"""Receivers that only names tell: `anything.kv_cache_manager.coordinator`, where one class alone has it so."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration
from driftcheck.surface.types import NONE, Absent, Class, Instance, Type, members_of, told_by_names

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

# A name that more files hold than this is a word, not a name.
_MOST_FILES = 60
# Shorter names, and those of one word, are used by everybody for anything.
_TELLING = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")

_LETTER = re.compile(rb"\w")
_SELF = re.compile(r"\bself\Z")


class NameChains:
    """Follows two attribute names in a row, each of which leads to one class of the target, whoever stores it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._held: dict[str, ClassDeclaration | None] = {}
        self._own: dict[tuple[str, str], bool] = {}

    def attribute(self, node: ast.Attribute, scope: Scope) -> Type | None:
        """What `….first.second` is where nothing is known of what `first` is read of; None where names don't tell."""
        first = _attribute_read(node.value, scope)
        if first is None or not _TELLING.fullmatch(first) or not self.program.is_client(scope.module.name):
            return None
        holder = self._class_held_as(first)
        if holder is None or self._may_be_clients(first, node.attr):
            return None
        found = self.program.inference.attribute(Instance(Class(holder)), node.attr)
        if not isinstance(found, Instance) or not isinstance(found.class_, Class):
            return None
        return told_by_names(found) if self.program.is_target(found.class_.declaration.module.name) else None

    def _class_held_as(self, name: str) -> ClassDeclaration | None:
        """The class of the target of which every attribute of that name holds an object."""
        if name not in self._held:
            self._held[name] = None
            self._held[name] = self._search(name)
        return self._held[name]

    def _search(self, name: str) -> ClassDeclaration | None:
        sources = self.program.target_holding(name)
        if len(sources) > _MOST_FILES:
            return None
        # What only ends in "self" is no receiver.
        pattern = re.compile(rb"self\.%s[ \t]*(:[^=\n]+)?=[^=]" % name.encode())
        found: set[ClassDeclaration | None] = set()
        for path, data in sources:
            module_name = self.program.target_index.name_of(path)
            for match in pattern.finditer(data):
                if match.start() and _LETTER.match(data, match.start() - 1):
                    continue
                module = self.program.module(module_name) if module_name is not None else None
                found.add(self._held_at(module, data.count(b"\n", 0, match.start()) + 1, name))
                if len(found) > 1 or None in found:
                    return None
        return found.pop() if found else None

    def _held_at(self, module: ModuleDeclaration | None, line: int, name: str) -> ClassDeclaration | None:
        """The class of what the class around a line has under the name."""
        for class_ in module.classes() if module is not None else ():
            if class_.line <= line <= (class_.node.end_lineno or 0):
                return _only_class(self.program.inference.attribute(Instance(Class(class_)), name))
        return None

    def _may_be_clients(self, first: str, second: str) -> bool:
        """True where the client keeps something under the first name that may have the second."""
        key = (first, second)
        if key not in self._own:
            self._own[key] = self._is_own(first, second)
        return self._own[key]

    def _is_own(self, first: str, second: str) -> bool:
        stored = re.compile(rf"\.{first}(?=[ \t]*(:[^=\n]+)?=[^=])")
        for module in self.program.client_modules_holding(first):
            starts = (match.start() for match in stored.finditer(module.text))
            if any(not _SELF.search(module.text, max(0, start - 5), start) for start in starts):
                return True
            for class_ in module.classes():
                if first not in class_.members and next(self.program.classes.stores(class_, first), None) is None:
                    continue
                held = _only_class(self.program.inference.attribute(Instance(Class(class_)), first))
                found = self.program.inference.attribute(Instance(Class(held)), second) if held is not None else None
                if not isinstance(found, Absent):
                    return True
        return False


def _attribute_read(node: ast.expr, scope: Scope) -> str | None:
    """The name of the attribute that an expression reads, directly or through a local name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if not isinstance(node, ast.Name):
        return None
    bindings, home = scope.bindings(node.id)
    values = [binding.value for binding in bindings]
    names = {value.attr if isinstance(value, ast.Attribute) else None for value in values}
    is_plain = home.function is not None and all(not binding.path and not binding.element for binding in bindings)
    return names.pop() if is_plain and len(names) == 1 else None


def _only_class(type_: Type) -> ClassDeclaration | None:
    """The class of a value, None aside."""
    found = {
        member.class_.declaration if isinstance(member, Instance) and isinstance(member.class_, Class) else None
        for member in members_of(type_)
        if member != NONE
    }
    return found.pop() if len(found) == 1 else None
