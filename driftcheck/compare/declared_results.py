"""Whether what a method of the client's is declared to give is still what its base is declared to give.

A call by name (`collective_rpc("warm_up")`) uses a result where no type leads to the override, so that the declarations
are all there is to compare.
"""

from __future__ import annotations

import ast

from driftcheck.compare.members import Definition
from driftcheck.compare.release import Release
from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import NONE, Class, External, Instance, Literal, Tuple, Type, members_of

# Values of these are never values of another class, apart from numbers, which stand in for each other.
_PLAIN = frozenset(
    f"builtins.{name}" for name in ("bool", "int", "float", "complex", "str", "bytes", "list", "dict", "set", "tuple")
)
_NUMBERS = frozenset(f"builtins.{name}" for name in ("bool", "int", "float", "complex"))
# What bases of other libraries make of a class's values; nothing plain, or the plain thing named.
_MADE = {
    "builtins.object": "",
    "abc.ABC": "",
    "typing.Generic": "",
    "enum.Enum": "",
    "typing.NamedTuple": "builtins.tuple",
    "typing.TypedDict": "builtins.dict",
}


def changed_result(target: Release, baseline: Release, own: Definition, base: Definition, before: Definition) -> str:
    """What the base is declared to give now, where the override still gives what it gave before; "" otherwise."""
    if own.function is None or base.function is None or before.function is None:
        return ""
    given, wanted = _declared(target, own.function), _declared(target, base.function)
    given_before, wanted_before = _declared(baseline, own.function), _declared(baseline, before.function)
    if given is None or wanted is None or given_before is None or wanted_before is None:
        return ""
    if not _are_disjoint(target, given, wanted) or _are_disjoint(baseline, given_before, wanted_before):
        return ""
    if _asks_its_base(own.function) or _gives(target, own.function, wanted):
        return ""
    returns = base.function.node.returns
    return str(returns.value) if isinstance(returns, ast.Constant) else ast.unparse(returns or ast.Constant(None))


def _asks_its_base(function: FunctionDeclaration) -> bool:
    """True where `super()` is asked for the result, whatever the override declares."""
    return any(isinstance(node, ast.Name) and node.id == "super" for node in own_nodes(function.body))


def _gives(release: Release, function: FunctionDeclaration, wanted: Type) -> bool:
    """True where some value that is returned is of a wanted type after all, whatever the override declares."""
    scope = release.program.function_scope(function)
    returned = [node.value for node in own_nodes(function.body) if isinstance(node, ast.Return)]
    types = [release.program.inference.infer(value, scope) for value in returned if value is not None]
    known = [value for type_ in types for value in _values(type_) if _class_of(value) is not None]
    return any(not _are_disjoint(release, value, wanted) for value in known)


def _declared(release: Release, function: FunctionDeclaration) -> Type | None:
    if function.node.returns is None:
        return None
    return release.program.annotations.instance(function.node.returns, release.program.scope_of_function(function))


def _are_disjoint(release: Release, one: Type, other: Type) -> bool:
    """True where surely no value is of both types; None is left out, unless it is all there is."""
    return all(_differ(release, first, second) for first in _values(one) for second in _values(other))


def _values(type_: Type) -> list[Type]:
    members = list(members_of(type_))
    return [member for member in members if member != NONE] or members


def _differ(release: Release, one: Type, other: Type) -> bool:
    first, second = _class_of(one), _class_of(other)
    if isinstance(first, str) and isinstance(second, str):
        return first != second and not {first, second} <= _NUMBERS
    if isinstance(first, str):
        first, second = second, first
    if not isinstance(first, Class):
        return False
    classes = release.program.classes
    linear = classes.linearize(first.declaration)
    if isinstance(second, str):
        made = [
            _MADE.get(base.path, second) if isinstance(base, External) else second
            for base in linear
            if not isinstance(base, Class)
        ]
        return second not in made
    if not isinstance(second, Class):
        return False
    return (
        classes.is_subclass(first.declaration, second.declaration) is False
        and classes.is_subclass(second.declaration, first.declaration) is False
    )


def _class_of(type_: Type) -> Class | str | None:
    """The class of a value, or the path of a plain built-in one; None where neither is known."""
    if isinstance(type_, Tuple):
        return "builtins.tuple"
    if isinstance(type_, Literal):
        return f"builtins.{type(type_.value).__name__}"
    if not isinstance(type_, Instance):
        return None
    if isinstance(type_.class_, Class):
        return type_.class_
    return type_.class_.path if type_.class_.path in _PLAIN else None
