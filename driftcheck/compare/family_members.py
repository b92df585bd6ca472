"""What each class of a family makes of a read or a call: it fits, breaks in some way, or can't be told."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from driftcheck.compare.bind import bind
from driftcheck.compare.release import Release
from driftcheck.model import Kind
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.signatures import Callee
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Absent, Class, External, Function, Instance, Tuple, Type, Unknown
from driftcheck.usage.usages import CallUsage, FamilyUsage


@dataclass(frozen=True, slots=True)
class Break:
    """One class that a usage does not fit: in which way, and where its source says so."""

    class_: ClassDeclaration
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

    def __init__(self, release: Release) -> None:
        self.release = release
        self.program = release.program
        self._attributes: dict[tuple[ClassDeclaration, str], Type] = {}
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
        for class_ in self.program.families.classes(usage.family):
            found = self._asked(class_, usage)
            if isinstance(found, Break):
                breaks.append(found)
            elif found:
                fitting.add(class_.name)
        return Outcome(tuple(breaks), frozenset(fitting))

    def new_name(self, outcome: Outcome, before: Past) -> str | None:
        """A method that nearly all classes without the name have now, and none of them had before."""
        lost = [found.class_ for found in outcome.breaks]
        counts: dict[str, int] = {}
        for class_ in lost:
            for function in class_.methods():
                if function.name not in before.methods:
                    counts[function.name] = counts.get(function.name, 0) + 1
        likely = [name for name, count in sorted(counts.items()) if count * 2 > len(lost)]
        return likely[0] if len(likely) == 1 else None

    def _methods_of(self, family: str) -> frozenset[str]:
        """Whatever any class of a family has in its body."""
        found = self._methods.get(family)
        if found is None:
            classes = self.program.families.classes(family)
            found = self._methods[family] = frozenset(name for class_ in classes for name in class_.members)
        return found

    def _signatures_of(self, family: str, name: str) -> dict[str, str]:
        """What the classes of a family take in a call of a method, by the class's name."""
        found = self._signatures.get((family, name))
        if found is None:
            found = self._signatures[family, name] = {}
            for class_ in self.program.families.classes(family):
                type_ = self._attribute(class_, name)
                callee = self.release.signatures.callee(type_) if isinstance(type_, Function) else None
                if isinstance(callee, Callee):
                    found.setdefault(class_.name, f"{callee.name}{callee.signature}")
        return found

    def _asked(self, class_: ClassDeclaration, usage: FamilyUsage) -> Break | bool:
        """How a class breaks, True where it fits, False where that can't be told."""
        name = usage.name or "forward"
        found = self._attribute(class_, name)
        if isinstance(found, Absent):
            raises = f"AttributeError: '{class_.name}' object has no attribute '{name}'"
            return Break(class_, Kind.UNRESOLVED_ATTRIBUTE, f"have no {name}", None, raises, class_.line)
        if usage.call is None:
            return not isinstance(found, Unknown)
        callee = self.release.signatures.callee(found) if isinstance(found, Function) else Unknown("no function")
        if isinstance(callee, Unknown):
            return False
        assert isinstance(found, Function)
        return self._unbound(class_, usage, callee) or self._unpacked(class_, usage, callee, found.declaration) or True

    def _attribute(self, class_: ClassDeclaration, name: str) -> Type:
        """What objects of a class have under a name; Absent where only a base outside the target could have it."""
        found = self._attributes.get((class_, name))
        if found is None:
            receiver = Instance(Class(class_))
            found = self.program.inference.attribute(receiver, name)
            if isinstance(found, Unknown):
                found = self.release.judge.hidden([receiver], name, found) or found
            self._attributes[class_, name] = found
        return found

    def _unbound(self, class_: ClassDeclaration, usage: FamilyUsage, callee: Callee) -> Break | None:
        assert usage.call is not None
        common = (usage.place, usage.scope, usage.guards, usage.is_typing_only)
        call = CallUsage(*common, usage.call, Unknown("member of a family"), usage.unpacked)
        problems = bind(callee.signature, self.release.judge.arguments(call), callee=callee.name, has_receiver=True)
        if not problems:
            return None
        problem = problems[0]
        ways = {
            Kind.MISSING_ARGUMENT: f"need '{problem.parameter}'",
            Kind.UNKNOWN_ARGUMENT: f"take no '{problem.parameter}'",
        }
        way = ways.get(problem.kind, f"refuse it ({problem.message})") + _where(usage)
        signature = f"{callee.name}{callee.signature}"
        return Break(class_, problem.kind, way, problem.parameter, problem.raises, callee.line, signature)

    def _unpacked(
        self, class_: ClassDeclaration, usage: FamilyUsage, callee: Callee, function: FunctionDeclaration
    ) -> Break | None:
        given = self._values_given(function) if usage.count else None
        if given is None or given == usage.count:
            return None
        values = "one value" if given == 1 else f"{given} values"
        raises = f"ValueError: {'not enough' if 1 < given < usage.count else 'too many'} values to unpack"
        way = f"give {values} where {usage.count} are unpacked{_where(usage)}"
        return Break(class_, Kind.RETURN_CHANGED, way, None, raises, callee.line, f"{callee.name}{callee.signature}")

    def _values_given(self, function: FunctionDeclaration) -> int | None:
        """How many values a function surely returns; 1 for a single tensor, None where that can't be told.

        Annotations lie more often than code does: what is no tuple in any `return` is one value only if they agree.
        """
        counts: set[int | None] = set()
        scope = self.program.function_scope(function)
        for node in own_nodes(function.body):
            if isinstance(node, ast.Return) and node.value is not None:
                if isinstance(node.value, ast.Tuple):
                    counts.add(len(node.value.elts))
                else:
                    type_ = self.program.inference.infer(node.value, scope)
                    counts.add(len(type_.items) if isinstance(type_, Tuple) else None)
        if len(counts) != 1:
            return None
        count = counts.pop()
        returns = function.node.returns
        if count is not None or returns is None:
            return count
        declared = self.program.annotations.instance(returns, self.program.scope_of_function(function))
        is_tensor = isinstance(declared, Instance) and declared.class_ == External("torch.Tensor")
        return 1 if is_tensor else None


def _where(usage: FamilyUsage) -> str:
    """The method that is called, where it is not the member itself."""
    return f" in {usage.name}()" if usage.name else ""
