"""What a constructor accepts, and how that is put together where one function hands on to another."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.types import Unknown

ANYTHING = Signature((Parameter("args", ParameterKind.VAR_POSITIONAL), Parameter("kwargs", ParameterKind.VAR_KEYWORD)))
# Takes the keywords that a library takes and drops.
DROPPED = Parameter("data", ParameterKind.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Constructor:
    """What one class, or what stands behind it, contributes: see `Callee` for the fields."""

    signature: Signature
    place: FunctionDeclaration | ClassDeclaration
    name: str
    stated: Signature | None = None
    raises: str = "TypeError"
    drops_keywords: bool = False

    @property
    def seen(self) -> Signature:
        """What `inspect.signature` says."""
        return self.signature if self.stated is None else self.stated


def handed_on(signature: Signature, old: Constructor | Unknown, hands_on: tuple[bool, bool]) -> Signature | Unknown:
    """What a function accepts that names some parameters itself and hands the others on."""
    if not any(hands_on):
        return signature
    if isinstance(old, Unknown):
        return old
    positional, keywords = hands_on
    own = [p for p in signature.parameters if not p.is_variadic]
    names = {parameter.name for parameter in own}
    taken: list[Parameter] = []
    for parameter in old.signature.parameters:
        if parameter.name in names:
            continue
        if parameter.kind is ParameterKind.VAR_POSITIONAL:
            if positional:
                taken.append(parameter)
        elif parameter.kind is ParameterKind.VAR_KEYWORD:
            if keywords:
                taken.append(parameter)
        elif positional and keywords:
            taken.append(parameter)
        elif keywords and parameter.kind is not ParameterKind.POSITIONAL_ONLY:
            taken.append(replace(parameter, kind=ParameterKind.KEYWORD_ONLY))
        elif positional and parameter.kind is not ParameterKind.KEYWORD_ONLY:
            taken.append(replace(parameter, kind=ParameterKind.POSITIONAL_ONLY))
    order = list(ParameterKind)
    merged = sorted([*own, *taken], key=lambda parameter: order.index(parameter.kind))
    return Signature(tuple(merged), signature.returns)


def signature_of(known: Callable[..., Any]) -> Signature:
    """The signature of a callable of Python's own library; raises ValueError or TypeError where it has none."""
    kinds = list(ParameterKind)
    parameters = tuple(
        Parameter(
            parameter.name,
            kinds[int(parameter.kind)],
            None if parameter.default is inspect.Parameter.empty else repr(parameter.default),
        )
        for parameter in inspect.signature(known).parameters.values()
    )
    return Signature(parameters)


def takes_anything(signature: Signature) -> bool:
    """True where the variadic parameters are all there is."""
    kinds = [parameter.kind for parameter in signature.parameters]
    return kinds == [ParameterKind.VAR_POSITIONAL, ParameterKind.VAR_KEYWORD]


def with_parameter(signature: Signature, parameter: Parameter) -> Signature:
    """The signature with one parameter more at its end, renamed where the name is taken."""
    names = {known.name for known in signature.parameters}
    while parameter.name in names:
        parameter = replace(parameter, name=f"{parameter.name}_")
    return Signature((*signature.parameters, parameter), signature.returns)
