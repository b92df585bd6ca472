"""What each class of a family makes of a read or a call: it fits, breaks in some way, or can't be told."""

from __future__ import annotations

from dataclasses import dataclass

from driftcheck.compare.bind import bind
from driftcheck.compare.family_facts import FamilyClass, FamilyFacts, Member
from driftcheck.compare.judge import Judge
from driftcheck.model import Kind
from driftcheck.surface.types import Unknown
from driftcheck.usage.usages import CallUsage, FamilyUsage


@dataclass(frozen=True, slots=True)
class Break:
    """One class that a usage does not fit: in which way, and where its source says so."""

    class_: FamilyClass
    kind: Kind
    way: str
    parameter: str | None
    raises: str | None
    line: int
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a family makes of a usage: the classes that break, and the names of those that take it."""

    breaks: tuple[Break, ...]
    fitting: frozenset[str]

    @property
    def judged(self) -> int:
        """How many classes could be judged."""
        return len(self.breaks) + len(self.fitting)

    @property
    def share(self) -> float:
        """The share of the judged classes that break."""
        return len(self.breaks) / self.judged if self.judged else 0.0

    @property
    def broken(self) -> frozenset[str]:
        """The names of the classes that break."""
        return frozenset(found.class_.name for found in self.breaks)

    def without(self, names: frozenset[str]) -> Outcome:
        """The outcome where some of the classes that break are not counted."""
        return Outcome(tuple(found for found in self.breaks if found.class_.name not in names), self.fitting)


@dataclass(frozen=True, slots=True)
class Past:
    """What a family made of a usage at the baseline, in names alone.

    `broken` and `fitting` are the classes that broke and those that took it, `methods` those that any class of the
    family had, `signatures` what each class took in such a call, `callers` the classes whose calls a replacement did
    not take.
    """

    judged: int
    broken: frozenset[str]
    fitting: frozenset[str]
    methods: frozenset[str]
    signatures: dict[str, str]
    callers: frozenset[str]

    @property
    def share(self) -> float:
        """The share of the judged classes that broke."""
        return 1 - len(self.fitting) / self.judged if self.judged else 0.0


class FamilyMembers:
    """Asks the classes of a family in one release."""

    def __init__(self, facts: FamilyFacts, judge: Judge) -> None:
        self.facts = facts
        self.judge = judge
        self._outcomes: dict[int, tuple[FamilyUsage, Outcome]] = {}
        self._methods: dict[str, frozenset[str]] = {}
        self._signatures: dict[tuple[str, str], dict[str, str]] = {}

    def past(self, usage: FamilyUsage, callers: frozenset[str]) -> Past:
        """What is kept of this release where it is the baseline; `callers` do not fit what a usage puts in place."""
        outcome = self.outcome(usage) if usage.use != "patch" else Outcome((), frozenset())
        signatures = self._signatures_of(usage.family, usage.name or "forward") if usage.call is not None else {}
        methods = self._methods_of(usage.family)
        return Past(outcome.judged, outcome.broken, outcome.fitting, methods, signatures, callers)

    def outcome(self, usage: FamilyUsage) -> Outcome:
        """What the classes of the usage's family make of it."""
        known = self._outcomes.get(id(usage))
        if known is None:
            known = self._outcomes[id(usage)] = (usage, self._outcome(usage))
        return known[1]

    def _outcome(self, usage: FamilyUsage) -> Outcome:
        breaks: list[Break] = []
        fitting: set[str] = set()
        for member in self.facts.members(usage.family, usage.name or "forward"):
            found = self._asked(member, usage)
            if isinstance(found, Break):
                breaks.append(found)
            elif found:
                fitting.add(member.class_.name)
        return Outcome(tuple(breaks), frozenset(fitting))

    def new_name(self, family: str, outcome: Outcome, before: Past) -> str | None:
        """A method that nearly all classes without the name have now, and none of them had before."""
        lost = {found.class_.symbol for found in outcome.breaks}
        counts: dict[str, int] = {}
        for names in self.facts.names(family):
            for method in names.methods if names.symbol in lost else ():
                if method not in before.methods:
                    counts[method] = counts.get(method, 0) + 1
        likely = [name for name, count in sorted(counts.items()) if count * 2 > len(lost)]
        return likely[0] if len(likely) == 1 else None

    def _methods_of(self, family: str) -> frozenset[str]:
        """Whatever any class of a family has in its body."""
        found = self._methods.get(family)
        if found is None:
            found = frozenset(name for names in self.facts.names(family) for name in names.every)
            self._methods[family] = found
        return found

    def _signatures_of(self, family: str, name: str) -> dict[str, str]:
        """What the classes of a family take in a call of a method, by the class's name."""
        found = self._signatures.get((family, name))
        if found is None:
            found = self._signatures[family, name] = {}
            for member in self.facts.members(family, name):
                if member.signature is not None:
                    found.setdefault(member.class_.name, f"{member.callee}{member.signature}")
        return found

    def _asked(self, member: Member, usage: FamilyUsage) -> Break | bool:
        """How a class breaks, True where it fits, False where that can't be told."""
        class_ = member.class_
        if member.state == "absent":
            name = usage.name or "forward"
            raises = f"AttributeError: '{class_.name}' object has no attribute '{name}'"
            return Break(class_, Kind.UNRESOLVED_ATTRIBUTE, f"have no {name}", None, raises, class_.line)
        if usage.call is None:
            return member.state != "unknown"
        if member.state != "method":
            return False
        return self._unbound(member, usage) or self._unpacked(member, usage) or True

    def _unbound(self, member: Member, usage: FamilyUsage) -> Break | None:
        assert usage.call is not None
        assert member.signature is not None
        common = (usage.place, usage.scope, usage.guards, usage.is_typing_only)
        call = CallUsage(*common, usage.call, Unknown("member of a family"), usage.unpacked)
        problems = bind(member.signature, self.judge.arguments(call), callee=member.callee, has_receiver=True)
        if not problems:
            return None
        problem = problems[0]
        ways = {
            Kind.MISSING_ARGUMENT: f"need '{problem.parameter}'",
            Kind.UNKNOWN_ARGUMENT: f"take no '{problem.parameter}'",
        }
        way = ways.get(problem.kind, f"refuse it ({problem.message})") + _where(usage)
        signature = f"{member.callee}{member.signature}"
        return Break(member.class_, problem.kind, way, problem.parameter, problem.raises, member.line, signature)

    def _unpacked(self, member: Member, usage: FamilyUsage) -> Break | None:
        counts = self.facts.counts(usage.family, usage.name or "forward") if usage.count else {}
        given = counts.get(member.class_.symbol)
        if given is None or given == usage.count:
            return None
        values = "one value" if given == 1 else f"{given} values"
        raises = f"ValueError: {'not enough' if 1 < given < usage.count else 'too many'} values to unpack"
        way = f"give {values} where {usage.count} are unpacked{_where(usage)}"
        signature = f"{member.callee}{member.signature}"
        return Break(member.class_, Kind.RETURN_CHANGED, way, None, raises, member.line, signature)


def _where(usage: FamilyUsage) -> str:
    """The method that is called, where it is not the member itself."""
    return f" in {usage.name}()" if usage.name else ""
