"""The client's classes that derive from the target's: every question about them, asked of both releases."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from driftcheck.compare.abstracts import Abstracts
from driftcheck.compare.bases import Bases
from driftcheck.compare.collisions import Collision, Collisions
from driftcheck.compare.construction import Constructions
from driftcheck.compare.dead_overrides import DeadOverride, DeadOverrides
from driftcheck.compare.derived_fixes import are_behind, new_parameters
from driftcheck.compare.handed_over import HandedOver
from driftcheck.compare.initialization import Initialization, Unset, evaluated_always
from driftcheck.compare.layouts import changed_ways
from driftcheck.compare.members import Definition, Override
from driftcheck.compare.overrides import Overrides
from driftcheck.compare.refusals import Complaint
from driftcheck.compare.release import Release, name_place
from driftcheck.model import Certainty, Evidence, Finding, Fix, Kind, Severity
from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration
from driftcheck.surface.types import Class
from driftcheck.usage.places import location_of
from driftcheck.usage.usages import ClassUsage


@dataclass(slots=True)
class Answers:
    """What a number of questions came to: findings, how much was judged, and what could not be, with its reason."""

    findings: list[Finding] = field(default_factory=list)
    checked: int = 0
    unresolved: list[tuple[str, int, str]] = field(default_factory=list)


class Subclasses:
    """Asks of each class of the client's what no call of the client's shows.

    `baseline` is None where there is none; `is_own` says that the target is the very release the client was written
    for. `instantiated` holds the symbols of the classes that the client calls, `client` its modules.
    """

    def __init__(
        self,
        target: Release,
        baseline: Release | None,
        *,
        is_own: bool,
        instantiated: Collection[str],
        client: Sequence[ModuleDeclaration],
    ) -> None:
        self.target = target
        self.baseline = baseline
        self.is_own = is_own
        self.instantiated = set(instantiated)
        self.overrides = Overrides(target, baseline)
        self.members = self.overrides.members
        self.constructions = Constructions(self.overrides)
        self.dead = DeadOverrides(target, baseline, list(client)) if baseline is not None else None
        self.abstracts = Abstracts(target)
        self.abstracts_before = Abstracts(baseline) if baseline is not None else None
        self.handed_over = HandedOver(client)
        self.client = client
        self.collisions = Collisions(target, baseline) if baseline is not None else None
        self.bases = Bases(target)
        self.bases_before = Bases(baseline) if baseline is not None else None
        self.initialization = Initialization(target)
        self.initialization_before = Initialization(baseline) if baseline is not None else None

    def ask(self, usages: Sequence[tuple[ClassUsage, bool]]) -> Answers:
        """The answers about class statements; each comes with whether the baseline reached the statement, too."""
        answers = Answers()
        parents = {
            entry.declaration
            for usage, _ in usages
            for entry in self.target.program.classes.linearize(usage.declaration)[1:]
            if isinstance(entry, Class)
        }
        seen: dict[Finding, None] = {}
        for usage, was_there in usages:
            if usage.is_typing_only:
                continue
            class_ = usage.declaration
            is_leaf = class_ not in parents
            for finding in self._class_findings(usage, is_leaf=is_leaf, was_there=was_there):
                seen[finding] = None
            for finding in self._override_findings(usage, answers, was_there=was_there):
                seen[finding] = None
        if self.collisions is not None:
            for collision in self.collisions.mixed_in(self.client):
                seen[self._collision_finding(collision)] = None
        answers.findings = list(seen)
        return answers

    # Overrides

    def _override_findings(self, usage: ClassUsage, answers: Answers, *, was_there: bool) -> Iterator[Finding]:
        class_ = usage.declaration
        for owner in self.members.client_classes(class_):
            is_mixin = owner is not class_
            if is_mixin and self.members.target_classes(owner):
                # It has a class statement of its own that asks.
                continue
            for name in owner.members:
                if name.startswith("__") and name not in ("__init__", "__call__"):
                    continue
                override = self.members.override(class_, owner, name)
                if override is None or override.own.function is None:
                    continue
                yield from self._judged(usage, override, answers, was_there=was_there)

    def _judged(self, usage: ClassUsage, override: Override, answers: Answers, *, was_there: bool) -> Iterator[Finding]:
        own = override.own
        assert own.function is not None
        place = (own.owner.module.path, own.function.line)
        if override.base is None:
            before = self.overrides.before(override)
            if override.hidden_by:
                # The target's own class had it; now only a base that can't be read may have.
                answers.unresolved += [(*place, override.hidden_by)] if before is not None else []
            elif self.dead is not None and was_there:
                dead = self.dead.find(override.class_, own.owner, own.name)
                if dead is not None:
                    answers.checked += 1
                    yield self._dead_finding(dead)
            return
        answers.checked += 1
        if self.is_own:
            return
        if own.name == "__init__":
            complaint = self.constructions.complaint(override)
        else:
            complaint = self.overrides.complaint(override)
        before = self.overrides.before(override)
        if complaint is not None and not was_there and self.baseline is not None:
            # Code for the target alone has not drifted; what the target's own calls pass breaks it all the same.
            is_sure = complaint.severity is Severity.ERROR and complaint.certainty is Certainty.CERTAIN
            complaint = complaint if is_sure else None
        if complaint is not None:
            found = self._finding(own, complaint, override.base, before.base if before is not None else None)
            yield found if was_there else replace(found, drift=None)
        if was_there or self.baseline is None:
            yield from self._taken_apart(own, override.base, before.base if before is not None else None)

    def _dead_finding(self, dead: DeadOverride) -> Finding:
        """What nobody calls any more is lost; what an older release does not call yet may never have been needed."""
        own = dead.own
        assert own.function is not None
        return Finding(
            Kind.DEAD_OVERRIDE,
            Severity.WARNING if dead.is_early and dead.successor is None else Severity.SILENT,
            Certainty.LIKELY,
            name_place(own.function),
            dead.base.symbol,
            dead.message,
            drift=True,
            evidence=Evidence(dead.class_.module.path, dead.class_.line, baseline_signature=_shown(dead.base)),
            scope=own.owner.qualified_name,
        )

    def _taken_apart(self, own: Definition, base: Definition, before: Definition | None) -> Iterator[Finding]:
        """What an override does with an argument otherwise than its base does."""
        if own.function is None or base.function is None:
            return
        for changed in changed_ways(own.function, base.function, before.function if before is not None else None):
            is_drift = changed.was is not None
            yield Finding(
                Kind.INVALID_OVERRIDE,
                Severity.SILENT,
                Certainty.LIKELY,
                location_of(own.owner.module, changed.node),
                base.symbol,
                f"{own.shown}() takes {changed.parameter} apart by {changed.way}, "
                + (f"as {base.shown}() did; " if is_drift else f"{base.shown}() does not; ")
                + ("its layout is another now" if is_drift else "both are given the same"),
                changed.parameter,
                None,
                is_drift if self.baseline is not None else None,
                Evidence(base.owner.module.path, changed.line, changed.now, changed.was),
                scope=f"{own.owner.qualified_name}.{own.name}",
            )

    def _finding(self, own: Definition, complaint: Complaint, base: Definition, before: Definition | None) -> Finding:
        assert own.function is not None
        site = complaint.site
        return Finding(
            complaint.kind,
            complaint.severity,
            complaint.certainty,
            name_place(own.function),
            base.symbol,
            complaint.message,
            complaint.parameter,
            complaint.raises,
            True if self.baseline is not None else None,
            Evidence(
                site.path if site is not None else base.owner.module.path,
                site.line if site is not None else base.binding.line,
                _shown(base),
                _shown(before) if before is not None else None,
            ),
            fix=_fix(complaint, own, base, before),
            scope=own.owner.qualified_name,
        )

    # Class statements

    def _class_findings(self, usage: ClassUsage, *, is_leaf: bool, was_there: bool) -> Iterator[Finding]:
        class_ = usage.declaration
        if not self.is_own and (was_there or self.baseline is None):
            yield from self._base_findings(usage)
            if self.collisions is not None:
                yield from (self._collision_finding(found) for found in self.collisions.hidden(class_))
        yield from self._abstract_findings(usage, is_leaf=is_leaf, was_there=was_there)
        if self.initialization_before is not None and was_there and not self.is_own:
            yield from self._skipped_findings(usage, self.initialization_before)

    def _collision_finding(self, collision: Collision) -> Finding:
        own, other = collision.own, collision.other
        return Finding(
            Kind.NAME_COLLISION,
            Severity.SILENT if collision.raises is None else Severity.ERROR,
            Certainty.LIKELY,
            name_place(own.function) if own.function is not None else name_place(own.owner),
            other.symbol,
            collision.message,
            None,
            collision.raises,
            True,
            Evidence(other.owner.module.path, other.binding.line, _shown(other)),
            scope=own.owner.qualified_name,
        )

    def _base_findings(self, usage: ClassUsage) -> Iterator[Finding]:
        problem = self.bases.problem(usage.declaration)
        if problem is None:
            return
        if self.bases_before is not None and self.bases_before.problem(usage.declaration) is not None:
            return
        is_error = problem.raises is not None
        yield Finding(
            Kind.UNRESOLVED_BASE,
            Severity.ERROR if is_error else Severity.WARNING,
            Certainty.CERTAIN if is_error else Certainty.POSSIBLE,
            name_place(usage.declaration),
            problem.base.symbol,
            f"class {usage.declaration.name}: {problem.message}",
            None,
            problem.raises,
            True if self.baseline is not None else None,
            Evidence(problem.base.module.path, problem.base.line),
            scope=usage.scope,
        )

    def _abstract_findings(self, usage: ClassUsage, *, is_leaf: bool, was_there: bool) -> Iterator[Finding]:
        class_ = usage.declaration
        open_ = self.abstracts.open(class_)
        missing = [definition for definition in open_.missing if self.target.is_target(definition.owner)]
        if not missing or open_.hidden_by:
            return
        drift: bool | None = False if self.is_own else None
        if self.abstracts_before is not None and was_there:
            known = {definition.name for definition in self.abstracts_before.open(class_).missing}
            new = [definition for definition in missing if definition.name not in known]
            drift, missing = bool(new), new or missing
        if class_.symbol in self.instantiated:
            certainty = Certainty.CERTAIN
        elif class_ in self.handed_over:
            certainty = Certainty.LIKELY
        elif is_leaf and drift is not False and not self.abstracts.declares(class_):
            certainty = Certainty.LIKELY if drift else Certainty.POSSIBLE
        else:
            return
        if certainty is Certainty.LIKELY and not drift:
            # What is handed over is not always instantiated: some classes only hold static methods.
            certainty = Certainty.POSSIBLE
        names = ", ".join(definition.name for definition in missing)
        for definition in missing:
            yield Finding(
                Kind.MISSING_ABSTRACT_METHOD,
                Severity.WARNING if certainty is Certainty.POSSIBLE else Severity.ERROR,
                certainty,
                name_place(class_),
                definition.symbol,
                f"{class_.name} lacks the abstract {definition.form} {definition.name} of {definition.owner.name}",
                None,
                f"TypeError: Can't instantiate abstract class {class_.name} "
                f"without an implementation for abstract methods {names}",
                drift,
                Evidence(definition.owner.module.path, definition.binding.line, _shown(definition)),
                scope=usage.scope,
            )

    # Attributes that a skipped constructor would set

    def _skipped_findings(self, usage: ClassUsage, initialization: Initialization) -> Iterator[Finding]:
        """One finding for each constructor that is skipped, whatever number of attributes it would have set."""
        class_ = usage.declaration
        before = initialization.unset(class_)
        new = [unset for name, unset in self.initialization.unset(class_).items() if name not in before]
        of: dict[ClassDeclaration, list[tuple[bool, Unset]]] = {}
        for unset in new:
            is_read = self._is_read(class_, unset)
            if is_read is not None and unset.skipped.owner is not None:
                of.setdefault(unset.skipped.owner, []).append((is_read, unset))
        for owner, found in of.items():
            found.sort(key=lambda each: not each[0])
            yield self._skipped_finding(usage, owner, found)

    def _is_read(self, class_: ClassDeclaration, unset: Unset) -> bool | None:
        """True where the reading surely comes to pass, False where it may, None where nobody calls the method."""
        reader = unset.reader
        if self.target.program.classes.role(reader) == "property":
            return unset.is_certain
        callers = list(self.overrides.reach.callers(class_, reader))
        if not callers:
            return None
        if not reader.name.startswith("_"):
            return unset.is_certain
        # A step of another method is as sure as that method's way to it.
        return unset.is_certain and any(id(site.node) in evaluated_always(site.function) for site in callers)

    def _skipped_finding(self, usage: ClassUsage, owner: ClassDeclaration, found: list[tuple[bool, Unset]]) -> Finding:
        class_ = usage.declaration
        own = self.members.definition(class_, "__init__")
        assert own is not None and own.function is not None
        is_certain, unset = found[0]
        others = ", ".join(other.name for _, other in found[1:])
        also = f" (and {others})" if others else ""
        return Finding(
            Kind.SKIPPED_INIT,
            Severity.ERROR if is_certain else Severity.WARNING,
            Certainty.LIKELY if is_certain else Certainty.POSSIBLE,
            name_place(own.function),
            f"{owner.symbol}.{unset.name}",
            f"{class_.name} skips {owner.name}.__init__, which sets {unset.name} now{also}; "
            f"the inherited {unset.reader.name}() reads it",
            None,
            f"AttributeError: '{class_.name}' object has no attribute '{unset.name}'",
            True,
            Evidence(unset.reader.module.path, unset.line),
            scope=own.owner.qualified_name,
        )


def _fix(complaint: Complaint, own: Definition, base: Definition, before: Definition | None) -> Fix | None:
    """The parameters that an override lacks, where that is what is wrong with it."""
    if complaint.kind is not Kind.INVALID_OVERRIDE or own.function is None:
        return None
    if own.signature is None or base.signature is None:
        return None
    if complaint.parameter is None and not are_behind(own.signature, base.signature):
        return None
    earlier = before.signature if before is not None else None
    return new_parameters(name_place(own.function), own.signature, base.signature, earlier)


def _shown(definition: Definition) -> str:
    signature = definition.signature
    return f"{definition.shown}{signature if signature is not None else ''}"
