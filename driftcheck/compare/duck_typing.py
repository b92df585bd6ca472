"""What a client does with whatever model is loaded: for which classes of the family it breaks, one finding a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from driftcheck.compare.confirm import Judged
from driftcheck.compare.earlier import Key, key_of
from driftcheck.compare.family_facts import FamilyFacts
from driftcheck.compare.family_members import Break, FamilyMembers, Outcome, Past
from driftcheck.compare.family_patches import FamilyPatches
from driftcheck.compare.findings import Findings, guard_against
from driftcheck.compare.judge import Judge
from driftcheck.compare.release import Release
from driftcheck.compare.subclasses import Answers
from driftcheck.model import Certainty, Evidence, Finding, Kind, Location, Severity
from driftcheck.origins.names import is_older
from driftcheck.usage.usages import FamilyUsage

_ERRORS = frozenset(("AttributeError", "TypeError", "ValueError", "Exception", "BaseException"))
# What breaks for so many classes breaks for whichever is loaded; what breaks for so few at the baseline was fine there.
_NEARLY_ALL, _HARDLY_ANY = 0.9, 0.1
_NAMES_SHOWN, _WAYS_SHOWN = 3, 3


class DuckTyping:
    """Judges usages of members of families; `past` is what the baseline made of a usage, None where it knows none.

    `is_own` where the target is the very release that the client was written for, `is_early` where it is an older one.
    """

    def __init__(
        self, asked: Asked, past: Callable[[FamilyUsage], Past | None], *, is_own: bool, is_early: bool
    ) -> None:
        self.members = asked.members
        self.patches = asked.patches
        self.families = asked.program.families
        self.past = past
        self.is_own = is_own
        self.is_early = is_early

    def ask(self, usages: Iterable[FamilyUsage]) -> Answers:
        """The answers about usages."""
        answers = Answers()
        for usage in usages:
            answers.checked += 1
            if not _is_judged(usage):
                continue
            found = self._patched(usage) if usage.use == "patch" else self._judge(usage)
            if found is not None and found not in answers.findings:
                answers.findings.append(found)
        return answers

    def _patched(self, usage: FamilyUsage) -> Finding | None:
        before = self.past(usage)
        return self.patches.ask(usage, before.callers if before is not None else None, is_own=self.is_own)

    def _judge(self, usage: FamilyUsage) -> Finding | None:
        now = self.members.outcome(usage)
        if not now.breaks:
            return None
        before = self.past(usage)
        drift = False if self.is_own else _is_drift(now, before) if before is not None else None
        if usage.name and not drift:
            # A client may give the objects attributes of its own, and reads those of the models that it was made for.
            return None
        is_all = now.share >= _NEARLY_ALL and (before is None or before.share <= _HARDLY_ANY)
        is_narrowed = self.families.is_narrowed(usage.family)
        is_error = is_narrowed or (is_all and drift is True)
        total = now.judged
        if usage.name and before is not None and not is_error:
            # That some have never had it says nothing.
            now = now.without(before.broken)
        leading = self._leading(usage.family, now)
        first = leading[0]
        message = self._message(usage, total, leading)
        if first.kind is Kind.UNRESOLVED_ATTRIBUTE and before is not None:
            new = self.members.new_name(usage.family, now, before)
            message += f"; {new} is {'there instead' if self.is_early else 'new'}" if new is not None else ""
        signature = before.signatures.get(first.class_.name) if before is not None else None
        return Finding(
            first.kind,
            Severity.ERROR if is_error else Severity.WARNING,
            Certainty.LIKELY if is_error else Certainty.POSSIBLE,
            _place_of(usage),
            f"{first.class_.symbol}.{usage.name or 'forward'}",
            message,
            first.parameter,
            first.raises,
            drift,
            Evidence(first.class_.path, first.line, first.signature, signature),
            scope=usage.scope,
        )

    def _leading(self, family: str, outcome: Outcome) -> list[Break]:
        """The breaks, those of the most frequent way first, and of each way the well-known classes."""
        counts: dict[str, int] = {}
        for found in outcome.breaks:
            counts[found.way] = counts.get(found.way, 0) + 1
        order = {
            class_: place
            for place, class_ in enumerate(self.families.leading(family, [found.class_ for found in outcome.breaks]))
        }
        return sorted(outcome.breaks, key=lambda found: (-counts[found.way], found.way, order[found.class_]))

    def _message(self, usage: FamilyUsage, total: int, leading: Sequence[Break]) -> str:
        ways: dict[str, list[str]] = {}
        for found in leading:
            ways.setdefault(found.way, []).append(found.class_.name)
        count = len(leading)
        subject = f"{'all' if count == total else f'{count} of'} {total} {usage.family}s"
        if total == 1:
            return f"{leading[0].class_.name} {_of_one(leading[0].way)}"
        if len(ways) == 1:
            said = leading[0].way if count > 1 else _of_one(leading[0].way)
            return f"{subject} {said} ({_some(next(iter(ways.values())))})"
        shown = [_said(way, names) for way, names in list(ways.items())[:_WAYS_SHOWN]]
        rest = sum(map(len, list(ways.values())[_WAYS_SHOWN:]))
        return f"{subject} do not take this call: {'; '.join(shown)}" + (f"; {rest} otherwise" if rest else "")


def _is_judged(usage: FamilyUsage) -> bool:
    return not usage.is_typing_only and guard_against(usage.guards, _ERRORS) is None


def _is_drift(now: Outcome, before: Past) -> bool:
    if now.share >= _NEARLY_ALL and before.share <= _HARDLY_ANY and before.judged:
        return True
    return bool(now.broken & before.fitting)


def _of_one(way: str) -> str:
    """What is said of many, of one."""
    verb, _, rest = way.partition(" ")
    return f"{'has' if verb == 'have' else f'{verb}s'} {rest}"


def _said(way: str, names: Sequence[str]) -> str:
    return f"{len(names)} {way} ({_some(names)})" if len(names) > 1 else f"{names[0]} {_of_one(way)}"


def _some(names: Sequence[str]) -> str:
    """The first names, and how many others there are."""
    rest = len(names) - _NAMES_SHOWN
    if rest == 1:
        return ", ".join(names)
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {rest} others" if rest > 0 else "")


def _place_of(usage: FamilyUsage) -> Location:
    """The place of the attribute's name alone, which is on the last line of a chain."""
    place = usage.location
    if usage.use == "call":
        return place
    column = max(1, place.end_column - len(usage.name))
    return Location(place.path, place.end_line, column, place.end_line, place.end_column)


class Asked:
    """What is asked of one release about members of families."""

    def __init__(self, judge: Judge) -> None:
        release = Release(judge)
        facts = FamilyFacts(release)
        self.program = release.program
        self.members = FamilyMembers(facts, judge)
        self.patches = FamilyPatches(release, facts)

    def past(self, usage: FamilyUsage) -> Past:
        """What it made of one usage, if it is the baseline."""
        return self.members.past(usage, self.patches.callers(usage) if usage.use == "patch" else frozenset())

    def pasts(self, judged: Sequence[Judged]) -> dict[Key, Past]:
        """What it made of all usages of members of families."""
        usages = [usage for usage, _ in judged if isinstance(usage, FamilyUsage) and _is_judged(usage)]
        return {key_of(usage): self.past(usage) for usage in usages}


def duck_typing(
    judged: Sequence[Judged],
    findings: Findings,
    target: Asked,
    baseline: Judge | None,
    pasts: Mapping[Key, Past] | None,
    *,
    is_own: bool,
) -> Answers:
    """What is found where the client touches members of families.

    `findings` holds the baseline's verdicts; `baseline` is the judge that gave them, None where there is none, or where
    the target is the very release that the client was written for (`is_own`). `pasts` is what that one made of the
    usages, None where it is still to be asked.
    """
    usages = [usage for usage, _ in judged if isinstance(usage, FamilyUsage)]
    if not usages:
        return Answers()
    asked = Asked(baseline) if baseline is not None and pasts is None else None

    def past(usage: FamilyUsage) -> Past | None:
        if findings.earlier(usage) is None:
            return None
        return asked.past(usage) if asked is not None else (pasts or {}).get(key_of(usage))

    is_early = baseline is not None and is_older(target.program.target.version, baseline.program.target.version)
    return DuckTyping(target, past, is_own=is_own, is_early=is_early).ask(usages)
