"""What sort of thing a name stands for, and whether the use that a client makes of it still fits when that changes."""

from __future__ import annotations

from dataclasses import dataclass

from driftcheck.model import Certainty, Severity
from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.inference import is_generator
from driftcheck.surface.types import Absent, Class, Function, Instance, Literal, Module, Type, Unknown

_CALLABLE = frozenset(("function", "async function", "class"))


def form_of(type_: Type) -> str:
    """The sort of a value: function, async function, class, module or value; "" where it can't be told."""
    if isinstance(type_, Function):
        return "async function" if type_.declaration.is_async and not is_generator(type_.declaration) else "function"
    if isinstance(type_, Class):
        return "class"
    if isinstance(type_, Module):
        return "module"
    return "value" if isinstance(type_, Instance | Literal) else ""


def is_async(declaration: object) -> bool:
    """True for a function whose call gives a coroutine."""
    return isinstance(declaration, FunctionDeclaration) and declaration.is_async and not is_generator(declaration)


@dataclass(frozen=True, slots=True)
class KindChange:
    """A change of sort that a use does not survive."""

    message: str
    severity: Severity
    certainty: Certainty
    raises: str | None


def attribute_change(before: str, after: str, result: Type, *, is_called: bool) -> KindChange | None:
    """A method that became a property or a plain value and is called, or the reverse and is read."""
    if before in _CALLABLE and after not in _CALLABLE and is_called:
        if after == "value" and not _may_be_called(result):
            name = _described(result)
            return KindChange(
                f"was a {before} and is a property or plain value now",
                Severity.ERROR,
                Certainty.CERTAIN,
                f"TypeError: '{name}' object is not callable",
            )
        return None
    if before == "value" and after == "function" and not is_called and not isinstance(result, Unknown | Absent):
        return KindChange(
            "was a property or plain value and is a method now, which nobody calls",
            Severity.SILENT,
            Certainty.LIKELY,
            None,
        )
    return None


def call_change(before: bool, after: bool, *, is_awaited: bool, is_discarded: bool) -> KindChange | None:
    """A function that became asynchronous and is not awaited, or the reverse and is."""
    if not before and after and not is_awaited and is_discarded:
        return KindChange(
            "is asynchronous now, and nobody awaits it: nothing of it runs", Severity.SILENT, Certainty.CERTAIN, None
        )
    if before and not after and is_awaited:
        return KindChange(
            "is no longer asynchronous, and its result is awaited",
            Severity.ERROR,
            Certainty.LIKELY,
            "TypeError: object can't be used in 'await' expression",
        )
    return None


def reference_change(before: str, after: str, role: str) -> KindChange | None:
    """A class that is something else now, named where only a class will do."""
    if before != "class" or after not in ("function", "async function", "module"):
        return None
    raises = {
        "base": "TypeError: a function can't be a base class",
        "isinstance": "TypeError: isinstance() arg 2 must be a type, a tuple of types, or a union",
        "except": "TypeError: catching classes that do not inherit from BaseException is not allowed",
    }[role]
    return KindChange(f"was a class and is a {after} now", Severity.ERROR, Certainty.CERTAIN, raises)


def _may_be_called(type_: Type) -> bool:
    if isinstance(type_, Literal):
        return False
    if isinstance(type_, Instance) and not isinstance(type_.class_, Class):
        return type_.class_.path not in _NEVER_CALLED
    return True


def _described(type_: Type) -> str:
    if isinstance(type_, Literal):
        return type(type_.value).__name__
    if isinstance(type_, Instance) and not isinstance(type_.class_, Class):
        return type_.class_.path.rpartition(".")[2]
    return "value"


_NEVER_CALLED = frozenset(
    f"builtins.{name}" for name in ("bool", "int", "float", "str", "bytes", "list", "dict", "tuple", "set", "frozenset")
)
