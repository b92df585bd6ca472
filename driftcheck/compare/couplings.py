"""What a client couples to: the symbols of the target behind its usages, each as both releases have it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from driftcheck.compare.earlier import Before, Earlier, key_of
from driftcheck.compare.judge import Judge, Verdict
from driftcheck.compare.members import Members
from driftcheck.compare.reading import Reading
from driftcheck.compare.release import Release, name_place
from driftcheck.model import Arguments, ParameterKind, Signature
from driftcheck.surface.declarations import ClassDeclaration
from driftcheck.surface.types import Class, Instance, Module
from driftcheck.symbol_upgrade import Role, Use
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    ClassUsage,
    EnvironmentUsage,
    ImportUsage,
    PatchUsage,
    ReferenceUsage,
    StringUsage,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Coupling:
    """One use of a symbol that neither release is known to refuse.

    `before` is its path in the older release, `symbol` in the newer one. `given` are the parameters that a call gives,
    None where that can't be told or it is no call.
    """

    use: Use
    symbol: str
    before: str
    given: frozenset[str] | None = None


def couplings(target: Reading, earlier: Reading, before: Before) -> list[Coupling]:
    """All that the client couples to and that both releases have, sorted by its places.

    What could not be judged is among it, as long as it is known what it is a use of.
    """
    found = _Couplings(target, earlier, before)
    return sorted(found.all(), key=lambda each: (each.use, each.symbol, each.before))


class _Couplings:
    def __init__(self, target: Reading, earlier: Reading, before: Before) -> None:
        self.target = target
        self.before = before
        self.judge = target.judge
        self.members = Members(Release(target.judge))
        self.members_before = Members(Release(earlier.judge))
        self.earlier_judge = earlier.judge

    def all(self) -> Iterator[Coupling]:
        refused = {_end(usage) for usage, verdict in self.target.judged if _is_refused(usage, verdict)}
        for usage, verdict in self.target.judged:
            if usage.is_typing_only or not self.target.reachability.is_reachable(usage.location.path, usage.scope):
                continue
            earlier = self.before.verdicts.get(key_of(usage))
            if earlier is None or "broken" in (verdict.status, earlier.status):
                continue
            if isinstance(usage, AttributeUsage) and usage.is_called and _end(usage) in refused:
                # That the name is there helps nobody.
                continue
            if isinstance(usage, ClassUsage):
                yield from self._overrides(usage)
            elif isinstance(usage, PatchUsage):
                yield from self._patched(usage)
            else:
                yield from self._used(usage, verdict, earlier)

    def _used(self, usage: Usage, verdict: Verdict, earlier: Earlier) -> Iterator[Coupling]:
        role = _role(usage)
        if role is None or verdict.is_own or not self._are_targets(role, verdict.symbol, earlier.symbol):
            return
        given: frozenset[str] | None = None
        if verdict.callee is not None and verdict.arguments is not None:
            given = _given(verdict.callee.signature, verdict.arguments)
        yield Coupling(Use(usage.location, role, usage.scope), verdict.symbol, earlier.symbol, given)

    def _are_targets(self, role: Role, symbol: str, before: str) -> bool:
        if role == "variable":
            return bool(symbol and before)
        return self.judge.program.is_target(symbol) and self.earlier_judge.program.is_target(before)

    def _overrides(self, usage: ClassUsage) -> Iterator[Coupling]:
        """The target's definitions that those of a class of the client's stand before."""
        class_ = usage.declaration
        for owner in self.members.client_classes(class_):
            if owner is not class_ and self.members.target_classes(owner):
                # It has a class statement of its own.
                continue
            for name in owner.members:
                if not name.startswith("__") or name in ("__init__", "__call__"):
                    yield from self._override(class_, owner, name)

    def _override(self, class_: ClassDeclaration, owner: ClassDeclaration, name: str) -> Iterator[Coupling]:
        now = self.members.override(class_, owner, name)
        was = self.members_before.override(class_, owner, name)
        if now is None or was is None or now.base is None or was.base is None:
            return
        function = now.own.function
        if function is not None:
            use = Use(name_place(function), "override", owner.qualified_name)
            yield Coupling(use, now.base.symbol, was.base.symbol)

    def _patched(self, usage: PatchUsage) -> Iterator[Coupling]:
        before = (self.before.patches or {}).get(key_of(usage))
        symbol = _patched_symbol(usage, self.judge)
        old = _patched_symbol(before, self.earlier_judge) if before is not None else None
        if symbol is not None and old is not None:
            yield Coupling(Use(usage.location, "patch", usage.scope), symbol, old)


def _is_refused(usage: Usage, verdict: Verdict) -> bool:
    return isinstance(usage, CallUsage) and verdict.status == "broken"


def _end(usage: Usage) -> tuple[str, int, int]:
    """Where a usage ends, which for a call is where the name of what it calls does."""
    place = usage.location
    return place.path, place.end_line, place.end_column


def _role(usage: Usage) -> Role | None:
    if isinstance(usage, CallUsage):
        return "super" if _is_of_super(usage.node.func) else "call"
    if isinstance(usage, AttributeUsage):
        if usage.is_called:
            return "super" if _is_of_super(usage.node) else "call"
        return "attribute"
    if isinstance(usage, ImportUsage):
        return "import"
    if isinstance(usage, ReferenceUsage):
        return "base" if usage.role == "base" else "reference"
    if isinstance(usage, EnvironmentUsage):
        return "variable"
    return "string" if isinstance(usage, StringUsage) and usage.role == "path" else None


def _is_of_super(called: ast.expr) -> bool:
    value = called.value if isinstance(called, ast.Attribute) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"


def _patched_symbol(usage: PatchUsage, judge: Judge) -> str | None:
    """The path of what a patch puts something in the place of, where it is defined; None where it is not one thing."""
    owner = usage.owner.class_ if isinstance(usage.owner, Instance) else usage.owner
    if isinstance(owner, Module):
        return f"{owner.name}.{usage.name}" if judge.program.is_target(owner.name) else None
    if not isinstance(owner, Class):
        return None
    for entry in judge.program.classes.linearize(owner.declaration):
        if isinstance(entry, Class) and usage.name in entry.declaration.members:
            symbol = entry.declaration.symbol
            return f"{symbol}.{usage.name}" if judge.program.is_target(symbol) else None
    return None


def _given(signature: Signature, arguments: Arguments) -> frozenset[str] | None:
    """The parameters that a call gives, None where unpacked arguments hide which these are."""
    if arguments.is_open:
        return None
    positional = [
        parameter.name
        for parameter in signature.parameters
        if parameter.kind in (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)
    ]
    named = {argument.keyword for argument in arguments.keywords if argument.keyword is not None}
    return frozenset(named.union(positional[: len(arguments.positional)]))
