"""What all verdicts come to: findings, usages checked, and usages that could not be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from driftcheck.compare.confirm import Judged
from driftcheck.compare.findings import Findings
from driftcheck.compare.subclasses import Answers
from driftcheck.model import Count, Finding, Unresolved, UsageCounts
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    ClassUsage,
    EnvironmentUsage,
    Guard,
    ImportUsage,
    PatchUsage,
    ReferenceUsage,
    ReturnUsage,
    StringUsage,
    Usage,
)


@dataclass(slots=True)
class Result:
    """What the verdicts come to."""

    findings: list[Finding] = field(default_factory=list)
    unresolved: list[Unresolved] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)

    def leave(self, usage: Usage, sort: str, reason: str) -> None:
        """Counts a usage that could not be judged."""
        self.unresolved.append(Unresolved(usage.location.path, usage.location.line, reason, sort))
        self.checked[f"{sort} unresolved"] += 1

    def add(self, sort: str, answers: Answers) -> None:
        """Takes over what was asked of many usages at once."""
        self.findings += answers.findings
        self.checked[sort] += answers.checked
        self.checked[f"{sort} unresolved"] += len(answers.unresolved)
        self.unresolved += [Unresolved(path, line, reason, sort) for path, line, reason in answers.unresolved]


def answer(judged: Sequence[Judged], findings: Findings) -> Result:
    """The findings of all judged usages, and the counts of what was judged."""
    result = Result()
    findings.failed_imports = {
        (usage.location.path, module)
        for usage, verdict in judged
        if isinstance(usage, ImportUsage) and verdict.status == "broken"
        for module in _with_parents(usage.module)
    }
    fitting = fitting_guards(judged)
    findings.variables_read = {u.name for u, _ in judged if isinstance(u, EnvironmentUsage) and not u.is_set}
    # Callees that were settled as attributes: that they can't be called as well says nothing new.
    settled: set[int] = set()
    for usage, verdict in judged:
        if verdict.is_own:
            continue
        sort = _SORTS[type(usage)]
        if verdict.status == "unresolved" and verdict.absent is not None and findings.was_own(usage, verdict):
            verdict = replace(verdict, status="broken")
        if isinstance(usage, AttributeUsage) and usage.is_called and verdict.status != "broken":
            # What is called counts once, as a call.
            result.findings += findings.changed(usage, verdict)
            continue
        if verdict.status == "unresolved":
            if sort and not (isinstance(usage, CallUsage) and id(usage.node.func) in settled):
                result.leave(usage, sort, verdict.reason)
            continue
        if sort and verdict.status == "broken" and any(guard.handles in fitting for guard in usage.guards):
            result.leave(usage, sort, "handler of what does not fail")
            continue
        if isinstance(usage, CallUsage) and findings.is_replaced(usage, verdict):
            result.leave(usage, sort, "replaced by the client")
            continue
        if isinstance(usage, AttributeUsage) and verdict.status == "broken":
            answer = findings.attribute(usage, verdict)
            settled.add(id(usage.node))
            if isinstance(answer, str):
                result.leave(usage, sort, answer)
                continue
            result.findings += [answer] if answer is not None else []
        elif isinstance(usage, ImportUsage) and verdict.status == "broken":
            if findings.is_put_in_place(usage):
                result.leave(usage, sort, "module that the client may put in place")
                continue
            found = findings.imported(usage, verdict)
            result.findings += [found] if found is not None else []
        elif isinstance(usage, CallUsage):
            doubt = findings.doubt_of_call(usage, verdict)
            if doubt:
                result.leave(usage, sort, doubt)
                continue
            result.findings += findings.call(usage, verdict)
        elif isinstance(usage, ReturnUsage | EnvironmentUsage | StringUsage | ReferenceUsage):
            result.findings += findings.other(usage, verdict)
        if isinstance(usage, AttributeUsage | CallUsage | ImportUsage) and verdict.status == "fits":
            result.findings += findings.changed(usage, verdict)
        if sort:
            result.checked[sort] += 1
    return result


def fitting_guards(judged: Sequence[Judged]) -> set[Guard]:
    """The guards around usages that all fit: their handlers are for what does not fail."""
    failing = {guard for usage, verdict in judged if verdict.status == "broken" for guard in usage.guards}
    return {guard for usage, verdict in judged if verdict.status == "fits" for guard in usage.guards} - failing


def _with_parents(module: str) -> Iterator[str]:
    """A module's dotted name, and those of the packages around it."""
    while module:
        yield module
        module = module.rpartition(".")[0]


# What is done with a result, and how a class is named, count with the call and the name themselves.
_SORTS: dict[type[Usage], str] = {
    ImportUsage: "imports",
    AttributeUsage: "attributes",
    CallUsage: "calls",
    # Answered together, once everything is read.
    ClassUsage: "",
    PatchUsage: "",
    EnvironmentUsage: "strings",
    StringUsage: "strings",
    ReturnUsage: "",
    ReferenceUsage: "",
}


def counts(result: Result) -> UsageCounts:
    """The counts as a report holds them."""

    def count(sort: str) -> Count:
        return Count(result.checked[sort], result.checked[f"{sort} unresolved"])

    return UsageCounts(
        count("imports"), count("calls"), count("attributes"), count("overrides"), count("patches"), count("strings")
    )
