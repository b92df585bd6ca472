"""Whether one signature takes every call that another allows, and what it lacks of it."""

from __future__ import annotations

from collections.abc import Iterator

from driftcheck.compare.bind import bind
from driftcheck.compare.counterparts import counterparts
from driftcheck.model import Argument, Arguments, Parameter, ParameterKind, Signature

_VALUE = "…"


def without_variadics(signature: Signature) -> Signature:
    """The signature without `*args` and `**kwargs`."""
    return Signature(tuple(p for p in signature.parameters if not p.is_variadic), signature.returns)


def takes_all(own: Signature, base: Signature) -> bool:
    """True where whatever call the base's named parameters allow is one that the override takes too."""
    if any(
        parameter.is_variadic and all(other.kind is not parameter.kind for other in own.parameters)
        for parameter in base.parameters
    ):
        return False
    return not any(bind(own, arguments) for arguments in _probes(base))


def _probes(signature: Signature) -> Iterator[Arguments]:
    """Calls that together use every parameter in every way it can be given, the fewest and the most of them."""
    named = [parameter for parameter in signature.parameters if not parameter.is_variadic]
    positional = [p for p in named if p.kind is not ParameterKind.KEYWORD_ONLY]
    only_positional = [p for p in named if p.kind is ParameterKind.POSITIONAL_ONLY]
    for chosen in (named, [p for p in named if p.is_required]):
        by_place = [p for p in positional if p in chosen]
        # Places are filled from the left: a required parameter has no optional one before it.
        yield Arguments(
            tuple(Argument(_VALUE) for _ in by_place),
            tuple(Argument(_VALUE, p.name) for p in chosen if p.kind is ParameterKind.KEYWORD_ONLY),
        )
        yield Arguments(
            tuple(Argument(_VALUE) for p in only_positional if p in chosen),
            tuple(Argument(_VALUE, p.name) for p in chosen if p.kind is not ParameterKind.POSITIONAL_ONLY),
        )


def gained_parameters(own: Signature, base: Signature, before: Signature) -> list[Parameter]:
    """The base's new parameters that the other signature has no place for; renamed ones are not new."""
    kinds = {parameter.kind for parameter in own.parameters}
    continued = set(counterparts(before, base).values())
    new: list[Parameter] = []
    for parameter in base.parameters:
        if parameter.is_variadic:
            if any(old.kind is parameter.kind for old in before.parameters) or parameter.kind in kinds:
                continue
        elif (
            parameter.name in continued
            or before.parameter(parameter.name) is not None
            or own.parameter(parameter.name) is not None
            or ParameterKind.VAR_KEYWORD in kinds
            or (parameter.kind is not ParameterKind.KEYWORD_ONLY and ParameterKind.VAR_POSITIONAL in kinds)
        ):
            continue
        new.append(parameter)
    return new
