"""Of which classes exactly a value of the target's is, where its own code makes every such value by calling them.

What is declared may be of any class below, the client's among them. What is made by a call is of the class that is
called: only who derives from the maker, or replaces what it calls, has a say in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from driftcheck.compare.release import Release
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Class, External, Function, Instance, Type, members_of

_LONGEST_WAY = 5
Made = frozenset[ClassDeclaration]


class Makers:
    """Follows values of the target back to the calls of classes that made them."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.program = release.program
        self.heirs = release.judge.heirs
        self._memo: dict[int, Made | None] = {}

    def classes(self, node: ast.expr, function: FunctionDeclaration) -> Made | None:
        """The classes of what an expression in a function can be, None where somebody else may have made it."""
        key = id(node)
        if key not in self._memo:
            found = self._made(node, function, _LONGEST_WAY)
            is_replaced = found is not None and any(self._is_replaced(made) for made in found)
            self._memo[key] = None if is_replaced else found
        return self._memo[key]

    def _made(self, node: ast.expr, function: FunctionDeclaration, way: int) -> Made | None:
        if way == 0:
            return None
        if isinstance(node, ast.Constant) and node.value is None:
            return frozenset()
        if isinstance(node, ast.Name):
            return self._held_by_name(node.id, function, way)
        if isinstance(node, ast.Attribute):
            return self._held_by_receiver(node, function, way)
        return self._given_by_call(node, function, way) if isinstance(node, ast.Call) else None

    def _each(self, values: Iterable[tuple[ast.expr | None, FunctionDeclaration]], way: int) -> Made | None:
        """What all of some values can be together."""
        found: set[ClassDeclaration] = set()
        for value, function in values:
            made = self._made(value, function, way - 1) if value is not None else None
            if made is None:
                return None
            found |= made
        return frozenset(found) or None

    def _held_by_name(self, name: str, function: FunctionDeclaration, way: int) -> Made | None:
        scope = self.program.function_scope(function)
        bindings = scope.locals.get(name, [])
        if name in scope.parameters or any(binding.element or binding.path for binding in bindings):
            return None
        return self._each([(binding.value, function) for binding in bindings], way)

    def _held_by_receiver(self, node: ast.Attribute, function: FunctionDeclaration, way: int) -> Made | None:
        owner = function.owner
        if owner is None or not _is_receiver(node.value, function) or self._has_client_heirs(owner):
            return None
        linear = [entry.declaration for entry in self.program.classes.linearize(owner) if isinstance(entry, Class)]
        stores = [
            store
            for holder in dict.fromkeys([*linear, *self.heirs.of(owner)])
            for store in self.program.classes.stores(holder, node.attr)
        ]
        if any(store.binding.element or store.binding.path for store in stores):
            return None
        return self._each([(store.binding.value, store.function) for store in stores], way)

    def _given_by_call(self, node: ast.Call, function: FunctionDeclaration, way: int) -> Made | None:
        scope = self.program.function_scope(function)
        made = [_exact_class(member) for member in members_of(self.program.inference.infer(node, scope))]
        if None not in made:
            return frozenset(class_ for class_ in made if class_ is not None)
        callee = self.program.inference.infer(node.func, scope)
        if isinstance(callee, External) and callee.path == "typing.cast" and len(node.args) == 2:
            return self._made(node.args[1], function, way - 1)
        if not isinstance(callee, Function) or not self.release.is_target(callee.declaration):
            return None
        inner = callee.declaration
        if (
            inner.node.decorator_list
            or self._is_replaced(inner)
            or (inner.owner is not None and self._has_client_heirs(inner.owner))
        ):
            return None
        returned = [each for each in own_nodes(inner.body) if isinstance(each, ast.Return)]
        return self._each([(each.value, inner) for each in returned], way)

    def _is_replaced(self, declaration: ClassDeclaration | FunctionDeclaration) -> bool:
        """True where the client puts something else in the place of what has that name, wherever it is looked up."""
        return any(name == declaration.name for _, name in self.release.replaced)

    def _has_client_heirs(self, class_: ClassDeclaration) -> bool:
        return any(not self.release.is_target(heir) for heir in self.heirs.of(class_))


def _exact_class(type_: Type) -> ClassDeclaration | None:
    if isinstance(type_, Instance) and type_.exact and isinstance(type_.class_, Class):
        return type_.class_.declaration
    return None


def _is_receiver(node: ast.expr, function: FunctionDeclaration) -> bool:
    first = next(iter([*function.node.args.posonlyargs, *function.node.args.args]), None)
    return isinstance(node, ast.Name) and first is not None and node.id == first.arg
