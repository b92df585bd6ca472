"""What `inspect.signature` and `dataclasses.fields` show of the target's functions and classes, as names."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from driftcheck.model import Parameter, ParameterKind
from driftcheck.surface.types import NONE, Class, Function, Instance, Type, members_of
from driftcheck.surface.values import Named, Names

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts
    from driftcheck.surface.signatures import Signatures

_KINDS = {
    ParameterKind.POSITIONAL_ONLY: inspect.Parameter.POSITIONAL_ONLY,
    ParameterKind.POSITIONAL_OR_KEYWORD: inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ParameterKind.VAR_POSITIONAL: inspect.Parameter.VAR_POSITIONAL,
    ParameterKind.KEYWORD_ONLY: inspect.Parameter.KEYWORD_ONLY,
    ParameterKind.VAR_KEYWORD: inspect.Parameter.VAR_KEYWORD,
}


class _NotALiteral:
    """Stands for a default that is there and not known."""


class Shapes:
    """Reads the parameters and fields of what the target holds."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self._signatures: Signatures | None = None

    def described(self, type_: Type, read: Callable[[Type], Names | None]) -> Names | None:
        """What is read of a type; of one of several, what all of them have and what some have."""
        found: list[Names] = []
        for member in members_of(type_):
            if member == NONE:
                continue
            if not self.facts.is_of_target(member):
                return None
            names = read(member)
            if names is None:
                return None
            found.append(names)
        if len(found) == 1:
            return found[0]
        if not found:
            return None
        sure = tuple(name for name in found[0].sure if all(name in names.sure for names in found))
        every = {name for names in found for name in (*names.sure, *names.possible)}
        return Names(sure, frozenset(every) - set(sure), any(names.is_open for names in found))

    @property
    def signatures(self) -> Signatures:
        """The signatures of the program, read when somebody first asks for one."""
        if self._signatures is None:
            from driftcheck.surface.signatures import Signatures

            self._signatures = Signatures(self.program)
        return self._signatures

    def parameters(self, type_: Type) -> Names | None:
        """The parameters that `inspect.signature` shows of a function, method or class."""
        if not isinstance(type_, Function | Class):
            return None
        callee = self.signatures.callee(type_)
        signature = getattr(callee, "stated", None) or getattr(callee, "signature", None)
        if signature is None:
            return None
        entries = tuple(_parameter(parameter) for parameter in signature.parameters)
        return Names(tuple(entry.name for entry in entries), entries=entries)

    def fields(self, type_: Type) -> Names | None:
        """The fields of a dataclass, struct, model or named tuple."""
        class_ = type_.class_ if isinstance(type_, Instance) else type_
        if not isinstance(class_, Class):
            return None
        constructors = self.signatures.constructors
        fields = constructors.fields
        for base in self.program.classes.linearize(class_.declaration):
            if isinstance(base, Class):
                transformation = constructors.decorators.dataclass_transformation(base.declaration)
                if transformation is not None:
                    return _named(fields.of_dataclass(base.declaration, transformation))
        for path in self.program.classes.external_bases(class_.declaration):
            name = path.rpartition(".")[2]
            if name == "Struct":
                return _named(fields.of_struct(class_.declaration))
            if name in ("BaseModel", "RootModel", "BaseSettings"):
                return _named(fields.of_model(class_.declaration))
            if name == "NamedTuple":
                return _named(fields.of_named_tuple(class_.declaration))
        return None


def _parameter(parameter: Parameter) -> inspect.Parameter:
    default: Any = inspect.Parameter.empty
    if parameter.default is not None:
        try:
            default = ast.literal_eval(parameter.default)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            default = _NotALiteral()
    kind = _KINDS[parameter.kind]
    if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        default = inspect.Parameter.empty
    return inspect.Parameter(parameter.name, kind, default=default)


def _named(names: Iterable[str]) -> Names:
    ordered = tuple(names)
    return Names(ordered, entries=tuple(Named(name) for name in ordered))
