"""What the baseline says of the client's usages, as far as comparing needs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from driftcheck.compare.additions import Name
from driftcheck.compare.bind import BindingProblem
from driftcheck.compare.family_members import Past
from driftcheck.compare.judge import Status, Verdict
from driftcheck.compare.kinds import is_async
from driftcheck.model import Signature, Skipped
from driftcheck.surface.shelf import Learned
from driftcheck.usage.usages import (
    AttributeUsage,
    EnvironmentUsage,
    FamilyUsage,
    ImportUsage,
    PatchUsage,
    ReturnUsage,
    StringUsage,
    Usage,
)

Key = tuple[object, ...]
"""What identifies a usage in the client, whichever release it is held against."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the baseline says of one usage: its verdict without the trees that it was read from.

    `signature` is what a call met there, `is_async` whether that was a coroutine function.
    """

    status: Status
    symbol: str
    form: str
    deprecation: str | None
    signature: Signature | None
    is_async: bool
    problems: tuple[BindingProblem, ...]


@dataclass(slots=True)
class Before:
    """All that one run over the client found at the baseline.

    `verdicts` holds what it says of each usage, `additions` what the client put on the target, `instantiated` the
    symbols of the classes that it makes instances of, `named` what it names in strings, `stores` what it stores on
    instances, `skipped` the files that could not be followed. `patches` are the patches as the baseline sees them, None
    where they have not been kept: they lead back into its trees. `pasts` is what families made of the client's usages
    of their members, None where that is still to be asked. `learned` is what another process learned of the baseline's
    sources.
    """

    verdicts: dict[Key, Earlier]
    additions: set[Name] = field(default_factory=set)
    instantiated: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    stores: set[tuple[str, str]] = field(default_factory=set)
    skipped: tuple[Skipped, ...] = ()
    patches: dict[Key, PatchUsage] | None = None
    pasts: dict[Key, Past] | None = None
    learned: Learned | None = None


def earlier_verdicts(judged: Iterable[tuple[Usage, Verdict]]) -> dict[Key, Earlier]:
    """What each usage's verdict comes to, by usage."""
    return {key_of(usage): _earlier(verdict) for usage, verdict in judged}


def _earlier(verdict: Verdict) -> Earlier:
    callee = verdict.callee
    return Earlier(
        verdict.status,
        verdict.symbol,
        verdict.form,
        verdict.deprecation,
        callee.signature if callee is not None else None,
        callee is not None and is_async(callee.declaration),
        verdict.problems,
    )


def key_of(usage: Usage) -> Key:
    """What identifies a usage in the client, whichever release it is held against."""
    place = usage.location
    if isinstance(usage, ImportUsage):
        return ("import", place.path, place.line, place.column, usage.module, usage.name)
    if isinstance(usage, EnvironmentUsage):
        return ("variable", place.path, place.line, place.column, usage.name)
    if isinstance(usage, StringUsage):
        return ("string", place.path, place.line, place.column, usage.text)
    if isinstance(usage, ReturnUsage):
        return ("result", place.path, place.line, place.column, usage.use, usage.name)
    if isinstance(usage, FamilyUsage):
        return ("family", place.path, place.line, place.column, usage.use, usage.name)
    if isinstance(usage, AttributeUsage):
        return ("attribute", place.path, place.line, place.column, place.end_line, place.end_column, usage.name)
    return (type(usage).__name__, place.path, place.line, place.column, place.end_line, place.end_column)
