"""Flags that the client's classes keep: class attributes, properties, what methods store on the instance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from driftcheck.surface.branches import branches_around
from driftcheck.surface.classes import Store
from driftcheck.surface.declarations import Binding, ClassDeclaration
from driftcheck.surface.scopes import Scope
from driftcheck.surface.types import Class, Function, Type
from driftcheck.surface.values import MISFITS, Value

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts


class KnownMembers:
    """Finds the one value that an attribute of a client's class has under the target at hand."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self._members: dict[tuple[ClassDeclaration, str], Value | None] = {}

    def member(self, owner: Type, class_: Class, name: str) -> Value | None:
        """A flag that a class of the client's has, or stores on its instances in one place; facts only."""
        key = (class_.declaration, name)
        if key not in self._members:
            self._members[key] = None
            try:
                found = self._value(owner, class_, name)
            except MISFITS:
                found = None
            self._members[key] = found if found is not None and found.is_fact else None
        return self._members[key]

    def _value(self, owner: Type, class_: Class, name: str) -> Value | None:
        classes = self.program.classes
        bindings: list[tuple[Binding, Scope]] = []
        stores: list[Store] = []
        for base in classes.mro(class_):
            if not isinstance(base, Class):
                continue
            declaration = base.declaration
            own = declaration.members.get(name, [])
            stored = list(classes.stores(declaration, name))
            if (own or stored) and not self.program.is_client(declaration.module.name):
                return None
            bindings += [(binding, self.program.class_scope(declaration)) for binding in own]
            stores += stored
            if any(binding.function for binding in own):
                break
        if len(stores) == 1 and not bindings:
            return self.facts.names.bound(stores[0].binding, self.program.function_scope(stores[0].function))
        if not stores and len(bindings) == 1:
            binding, home = bindings[0]
            if binding.function is None:
                return self.facts.names.bound(binding, home)
            if classes.role(binding.function) == "property":
                return self.facts.followed.read(Function(binding.function, owner, class_, skips_first=True))
        if not bindings and len({store.function for store in stores}) == 1:
            return self._stored(name, stores)
        return None

    def _stored(self, name: str, stores: list[Store]) -> Value | None:
        """What the last sure one of several stores in one method gives."""
        function = stores[0].function
        placed: list[Binding] = []
        for store in stores:
            contexts = branches_around(function.body, store.binding.node)
            if contexts is None:
                return None
            placed.append(replace(store.binding, contexts=contexts))
        return self.facts.names.chosen(name, placed, self.program.function_scope(function), in_order=True)
