"""Holds what the sources say of a target against what its interpreter says, callable by callable.

Two signatures agree where their parameters have the same names, kinds and order, and the same ones have defaults. What
the static surface leaves open ("unknown") is counted apart and never as agreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driftcheck.surface.signatures import Callee, Signatures, shape
from driftcheck.surface.types import Absent, Class, Function, Instance, Type, Unknown, members_of, union

if TYPE_CHECKING:
    from driftcheck.model import Signature
    from driftcheck.surface.program import Program
    from driftcheck.surface.runtime import RuntimeModule, RuntimeSymbol

_CALLABLES = frozenset(("class", "function", "async-function", "builtin", "callable", "bound-method"))
_MEMBERS = frozenset(("method", "class-method", "static-method"))


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """One callable on which the two disagree; `static` is None where the sources leave it open, `cause` says why.

    `path` and `line` are where the sources define it, where they do.
    """

    symbol: str
    kind: str
    cause: str
    static: str | None
    runtime: str
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many callables were held against each other, how many agree, and every one that does not."""

    modules: int
    compared: int
    equal: int
    differences: tuple[Difference, ...]

    @property
    def share(self) -> float:
        """The share of callables that agree, of all that were compared; 1.0 where there were none."""
        return self.equal / self.compared if self.compared else 1.0

    def causes(self) -> list[tuple[str, int]]:
        """The causes of differences with their counts, the most frequent first."""
        counts = Counter(difference.cause for difference in self.differences)
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def hold(program: Program, modules: Iterable[RuntimeModule], signatures: Signatures | None = None) -> Agreement:
    """Compare every public class, function and method that the modules define."""
    signatures = signatures or Signatures(program)
    count = equal = 0
    differences: list[Difference] = []
    seen = 0
    for module in modules:
        if module.failure is not None:
            continue
        seen += 1
        for symbol in module.symbols:
            if symbol.signature is None or not is_public(symbol.name):
                continue
            count += 1
            difference = _difference(program, signatures, module.name, symbol)
            if difference is None:
                equal += 1
            else:
                differences.append(difference)
    return Agreement(seen, count, equal, tuple(sorted(differences, key=lambda found: (found.symbol, found.kind))))


def is_public(name: str) -> bool:
    """True where no part of a dotted name begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def _difference(program: Program, signatures: Signatures, module: str, symbol: RuntimeSymbol) -> Difference | None:
    assert symbol.signature is not None
    name = f"{module}.{symbol.name}"
    kind = symbol.kind or ""
    found = static_callee(program, signatures, module, symbol.name, is_member=kind in _MEMBERS)
    if not isinstance(found, Callee):
        return Difference(name, kind, f"unknown: {found.reason}", None, str(symbol.signature))
    stated = found.stated if found.stated is not None else found.signature
    if shape(stated) == shape(symbol.signature):
        return None
    cause = " and ".join(differences_of(stated, symbol.signature))
    return Difference(name, kind, cause, str(stated), str(symbol.signature), found.path, found.line)


def static_callee(
    program: Program, signatures: Signatures, module: str, name: str, *, is_member: bool
) -> Callee | Unknown:
    """What the sources say of a call of `module.name`; methods are taken from an instance."""
    first, *rest = name.split(".")
    type_: Type = program.module_attribute(module, first)
    for index, part in enumerate(rest):
        if isinstance(type_, Absent):
            return Unknown(f"{type_.name} is not there")
        if index == len(rest) - 1 and is_member and isinstance(type_, Class):
            type_ = program.classes.attribute(Instance(type_, exact=True), part)
        else:
            type_ = program.inference.attribute(type_, part)
    if isinstance(type_, Absent):
        return Unknown(f"{type_.name} is not there")
    return signatures.callee(union([_as_written(member) for member in members_of(type_)]))


def _as_written(type_: Type) -> Type:
    """A kernel as the function that is written: its parameters can be compared, though a call meets something else."""
    is_kernel = isinstance(type_, Function) and type_.transformed.endswith("kernel")
    return replace(type_, transformed="") if is_kernel and isinstance(type_, Function) else type_


def differences_of(static: Signature, runtime: Signature) -> Iterator[str]:
    """In words and without names, how two signatures differ."""
    ours = {parameter.name: parameter for parameter in static.parameters}
    theirs = {parameter.name: parameter for parameter in runtime.parameters}
    if any(name not in theirs for name in ours):
        yield "parameters that the interpreter does not see"
    if any(name not in ours for name in theirs):
        yield "parameters that the sources do not show"
    common = [name for name in ours if name in theirs]
    if any(ours[name].kind is not theirs[name].kind for name in common):
        yield "another kind of parameter"
    if any((ours[name].default is None) is not (theirs[name].default is None) for name in common):
        yield "a default on one side"
    if common != [name for name in theirs if name in ours]:
        yield "another order"
