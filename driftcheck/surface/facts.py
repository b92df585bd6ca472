"""Conditions that are settled by the target at hand: versions, `hasattr`, signatures, `find_spec`, `TYPE_CHECKING`.

Ordinary booleans are never folded: a flag that some method sets to False is no fact. A condition is decided where a
fact of the target takes part in it.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import Condition, Context
from driftcheck.surface.evaluation import Evaluator
from driftcheck.surface.followed_calls import FollowedCalls
from driftcheck.surface.given_arguments import GivenArguments
from driftcheck.surface.known_members import KnownMembers
from driftcheck.surface.known_names import KnownNames, names_type_checking
from driftcheck.surface.outside_calls import OutsideCalls
from driftcheck.surface.probes import Probes
from driftcheck.surface.scopes import Scope
from driftcheck.surface.shapes import Shapes
from driftcheck.surface.types import Class, Function, Instance, Lambda, Module, Type
from driftcheck.surface.values import Value, truth_of

if TYPE_CHECKING:
    from driftcheck.surface.program import Program

_TEXT_VERSIONS = frozenset(("__version__", "version", "VERSION"))
_TUPLE_VERSIONS = frozenset(("__version_tuple__", "version_tuple"))


class Facts:
    """Decides conditions for one target."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = KnownNames(self)
        self.members = KnownMembers(self)
        self.given = GivenArguments(self)
        self.shapes = Shapes(self)
        self.outside = OutsideCalls(self)
        self.probes = Probes(self)
        self.followed = FollowedCalls(self)
        self._evaluator = Evaluator(self)

    def truth(self, test: ast.expr, scope: Scope, *, typing: bool = False) -> bool | None:
        """Whether a condition holds; None where no fact decides it. `typing` evaluates as a type checker would."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if names_type_checking(test):
            return typing
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(test.operand, scope, typing=typing)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self.truth(value, scope, typing=typing) for value in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        value = self.evaluate(test, scope)
        return truth_of(value.value) if value is not None and value.is_fact else None

    def is_typing_only(self, contexts: tuple[Context, ...]) -> bool:
        """True where a statement stands under `if TYPE_CHECKING`."""
        return any(
            isinstance(context, Condition) and context.value and names_type_checking(context.test)
            for context in contexts
        )

    def evaluate(self, node: ast.expr, scope: Scope) -> Value | None:
        """The value of an expression where it is known before the program runs."""
        return self._evaluator.evaluate(node, scope)

    def elements(self, node: ast.expr, scope: Scope) -> list[Value | None] | None:
        """The values of a comprehension's elements or of an iterable, None each where unknown; None where unlisted."""
        return self._evaluator.elements(node, scope)

    def named(self, name: str, scope: Scope) -> Value | None:
        """What a name stands for."""
        return self.names.named(name, scope)

    def argument(self, node: ast.expr, scope: Scope) -> Value | None:
        """The value of an expression, or the class, function or instance that it is of the program's."""
        found = self.evaluate(node, scope)
        if found is not None:
            return found
        type_ = self.program.inference.infer(node, scope)
        if isinstance(type_, Module | Class | Function | Lambda):
            return Value(type_, self.is_of_target(type_))
        if isinstance(type_, Instance) and isinstance(type_.class_, Class):
            return Value(type_)
        return None

    # The target

    @property
    def version(self) -> Value | None:
        """The target's version, as text."""
        version = self.program.target.version
        return Value(version, is_fact=True) if version else None

    def is_of_target(self, type_: Type) -> bool:
        """True for a module, class, function or instance of the target's."""
        if isinstance(type_, Module):
            return self.program.is_target(type_.name)
        if isinstance(type_, Instance):
            return isinstance(type_.class_, Class) and self.is_of_target(type_.class_)
        if isinstance(type_, Class | Function):
            return self.program.is_target(type_.declaration.module.name)
        return False

    def has_attribute(self, owner: Type, name: str) -> bool | None:
        """Whether a thing of the target has an attribute; None where that can't be told."""
        return self.probes.has_attribute(owner, name)

    def typed(self, type_: Type) -> Value | None:
        """A module, class or function as a value: what matters is that it is there."""
        if isinstance(type_, Module | Function) or (isinstance(type_, Class) and not type_.is_open):
            return Value(type_, self.is_of_target(type_))
        return None

    def names_version(self, module: str, name: str) -> bool:
        """True where a name of a module of the target is the target's version, whatever file it is written to."""
        return self.version_named(module, name) is not None

    def version_named(self, module: str, name: str) -> Value | None:
        """What a name of the target's version is, where the module holds it."""
        top, _, rest = module.partition(".")
        if not self.program.is_target(module) or rest not in ("", "version", "_version") or self.version is None:
            return None
        if (
            top != self.program.target.name.replace("-", "_")
            and self.program.target.name in self.program.target_index.top_level
        ):
            return None
        if name == "__version__" or (rest and name in _TEXT_VERSIONS):
            return self.version
        if name == "__version_tuple__" or (rest and name in _TUPLE_VERSIONS):
            parts = re.split(r"[.+]", self.version.value)
            return Value(tuple(int(part) if part.isdigit() else part for part in parts), is_fact=True)
        return None
