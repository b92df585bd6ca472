"""The drift that no call of the client's shows: in its classes that derive from the target's, and in its patches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from driftcheck.compare.confirm import Judged
from driftcheck.compare.earlier import Key, key_of
from driftcheck.compare.findings import Findings
from driftcheck.compare.judge import Judge
from driftcheck.compare.patches import Patches
from driftcheck.compare.release import Release
from driftcheck.compare.subclasses import Answers, Subclasses
from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration
from driftcheck.surface.types import Class, Instance, members_of
from driftcheck.usage.usages import AttributeUsage, CallUsage, ClassUsage, PatchUsage


def hidden_drift(
    judged: Sequence[Judged],
    findings: Findings,
    baseline: Judge | None,
    *,
    is_own: bool,
    client: Sequence[ModuleDeclaration],
    instantiated: Collection[str],
    patches_before: Mapping[Key, PatchUsage],
) -> tuple[Answers, Answers]:
    """What is found in the client's classes, and in its patches.

    `findings` holds the target and the baseline's verdicts; `baseline` is the judge that gave them, None where there is
    none, or where the target is the very release that the client was written for (`is_own`). `client` are the client's
    modules, `instantiated` the symbols of the classes that it calls, `patches_before` the patches as the baseline sees
    them.
    """
    target = Release(findings.judge, findings.extensions)
    before = Release(baseline, findings.extensions) if baseline is not None else None
    subclasses = Subclasses(target, before, is_own=is_own, instantiated=instantiated, client=client)
    classes = [(usage, findings.earlier(usage) is not None) for usage, _ in judged if isinstance(usage, ClassUsage)]
    patches = []
    for usage, _ in judged:
        if isinstance(usage, PatchUsage):
            patches.append((usage, patches_before.get(key_of(usage)) if before is not None else None))
    reads = {
        (usage.location.path, verdict.symbol)
        for usage, verdict in judged
        if isinstance(usage, AttributeUsage) and verdict.status == "broken" and not usage.is_stored
    }
    overridden = {
        (base.symbol, name)
        for usage, _ in classes
        for base in subclasses.members.target_classes(usage.declaration)
        for name in usage.declaration.members
    }
    questions = Patches(subclasses.overrides, findings.relocation, overridden, is_own=is_own)
    return subclasses.ask(classes), questions.ask(patches, reads)


def mocked(judged: Sequence[Judged]) -> dict[tuple[str, str, str], list[str]]:
    """The places that tests put something else in for a while: their scopes, by file, owner and name."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for usage, _ in judged:
        if isinstance(usage, PatchUsage) and usage.is_temporary:
            owner = usage.owner.class_ if isinstance(usage.owner, Instance) else usage.owner
            symbol = owner.declaration.symbol if isinstance(owner, Class) else getattr(owner, "name", "")
            found.setdefault((usage.location.path, symbol, usage.name), []).append(usage.scope)
    return found


def called_classes(usage: CallUsage) -> Iterator[ClassDeclaration]:
    """The classes that a call surely makes an instance of."""
    for member in members_of(usage.callee):
        if isinstance(member, Class) and not member.is_open and not usage.is_typing_only:
            yield member.declaration
