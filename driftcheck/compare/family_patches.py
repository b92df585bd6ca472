"""Whether a function put in the place of a family's method takes what the target's own classes pass to it."""

from __future__ import annotations

from driftcheck.compare.bind import BindingProblem, bind
from driftcheck.compare.family_facts import FamilyFacts, Site
from driftcheck.compare.release import Release, name_place
from driftcheck.model import Certainty, Evidence, Finding, Kind, Severity
from driftcheck.surface.types import Function
from driftcheck.usage.usages import FamilyUsage

_NAMES_SHOWN = 3


class FamilyPatches:
    """Judges what a client puts in the place of `forward` of whatever member it gets hold of."""

    def __init__(self, target: Release, facts: FamilyFacts) -> None:
        self.target = target
        self.facts = facts
        self._found: dict[int, tuple[FamilyUsage, list[tuple[Site, BindingProblem]]]] = {}

    def callers(self, usage: FamilyUsage) -> frozenset[str]:
        """The classes whose calls a replacement does not take."""
        return frozenset(site.owner for site, _ in self._refused(usage))

    def ask(self, usage: FamilyUsage, before: frozenset[str] | None, *, is_own: bool) -> Finding | None:
        """The finding for a replacement that calls of the target do not fit; `before` are the callers at the baseline.

        `is_own` where the target is the very release that the client was written for.
        """
        refused = self._refused(usage)
        if not refused:
            return None
        assert isinstance(usage.value, Function)
        declaration = usage.value.declaration
        drift: bool | None = False if is_own else None
        if before is not None:
            drift = any(refusing.owner not in before for refusing, _ in refused)
        is_narrowed = self.target.program.families.is_narrowed(usage.family)
        site, problem = refused[0]
        names = list(dict.fromkeys(refusing.owner for refusing, _ in refused))
        shown = ", ".join(names[:_NAMES_SHOWN]) + (" and others" if len(names) > _NAMES_SHOWN else "")
        message = (
            f"{declaration.name}(), put in the place of forward() of whatever {usage.family} is loaded, does not take "
            f"what {shown} pass{'es' if len(names) == 1 else ''}: {problem.message}"
        )
        members = [member.class_ for member in self.facts.members(usage.family, "forward")]
        return Finding(
            Kind.INVALID_PATCH,
            Severity.ERROR if is_narrowed else Severity.WARNING,
            Certainty.LIKELY if is_narrowed else Certainty.POSSIBLE,
            name_place(declaration),
            f"{self.target.program.families.leading(usage.family, members)[0].symbol}.forward",
            message,
            problem.parameter,
            problem.raises,
            drift,
            Evidence(site.path, site.line),
            scope=declaration.qualified_name.replace(".<locals>", "").rpartition(".")[0],
        )

    def _refused(self, usage: FamilyUsage) -> list[tuple[Site, BindingProblem]]:
        """The calls of a member that the replacement does not take, with what is wrong and the class that calls."""
        known = self._found.get(id(usage))
        if known is None:
            known = self._found[id(usage)] = (usage, self._search(usage))
        return known[1]

    def _search(self, usage: FamilyUsage) -> list[tuple[Site, BindingProblem]]:
        if usage.name != "forward" or not isinstance(usage.value, Function):
            return []
        declaration = usage.value.declaration
        own = self.target.signatures.signature(declaration, skips_first=True)
        if own is None:
            return []
        found = []
        for site in self.facts.sites(usage.family):
            problems = bind(own, site.arguments, callee=declaration.name, has_receiver=True)
            if problems:
                found.append((site, problems[0]))
        return sorted(found, key=lambda entry: (entry[0].owner, entry[0].path, entry[0].line))
