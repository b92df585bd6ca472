"""Scopes of known values: the parameters and locals of a function that is followed, the variables of comprehensions."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import Binding, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.scopes import FunctionScope, Scope
from driftcheck.surface.types import Literal, Type, Unknown
from driftcheck.surface.values import Value, is_type

if TYPE_CHECKING:
    from driftcheck.surface.program import Program


class ValueScope:
    """Names with known values in front of another scope: a helper's parameters and locals, comprehension variables.

    A name in `values` whose value is None is bound to something unknown. `around` is the scope of the function in which
    the function at hand was made.
    """

    __slots__ = ("around", "module", "outer", "program", "values")

    def __init__(self, outer: Scope, values: dict[str, Value | None], around: ValueScope | None = None) -> None:
        self.program: Program = outer.program
        self.module: ModuleDeclaration = outer.module
        self.outer = outer
        self.values = values
        self.around = around

    @property
    def memo(self) -> dict[int, Type] | None:
        return None

    def owner(self, name: str) -> ValueScope | None:
        """The nearest scope of values that binds the name."""
        scope: Scope | None = self
        while isinstance(scope, ValueScope):
            if name in scope.values:
                return scope
            scope = scope.around if scope.around is not None else scope.outer
        return None

    def lookup(self, name: str, *, typing: bool = False) -> Type:
        owner = self.owner(name)
        if owner is not None:
            value = owner.values[name]
            if value is not None and is_type(value.value):
                found: Type = value.value
                return found
            if value is not None and isinstance(value.value, str | int | float | bytes | None):
                return Literal(value.value)
            if value is not None or not isinstance(owner.outer, FunctionScope):
                return Unknown("value of a helper")
            return owner.outer.lookup(name, typing=typing)
        return self._behind().lookup(name, typing=typing)

    def narrowed(self, node: ast.Attribute) -> Type | None:
        return None

    def bindings(self, name: str) -> tuple[list[Binding], Scope]:
        if self.owner(name) is not None:
            return [], self
        return self._behind().bindings(name)

    def _behind(self) -> Scope:
        return self.around if self.around is not None else self.outer

    @property
    def function(self) -> FunctionDeclaration | None:
        return self.outer.function

    @property
    def enclosing(self) -> Scope | None:
        return self.outer.enclosing


@dataclass(eq=False, frozen=True, slots=True)
class Closure:
    """A function made while another runs, with the names it sees."""

    declaration: FunctionDeclaration
    scope: ValueScope
