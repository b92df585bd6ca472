"""Whether what a client puts in the place of the target's things still has a place, and still fits it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from driftcheck.compare.acceptance import gained_parameters, takes_all
from driftcheck.compare.callsites import CallSite
from driftcheck.compare.counterparts import near_name
from driftcheck.compare.derived_fixes import new_parameters
from driftcheck.compare.members import Definition
from driftcheck.compare.overrides import Overrides
from driftcheck.compare.refusals import Complaint, Refused, new_ones, refused_of, worst_of
from driftcheck.compare.release import Release, name_place
from driftcheck.compare.relocation import Relocation
from driftcheck.compare.subclasses import Answers
from driftcheck.compare.swaps import Place, Swaps
from driftcheck.model import Certainty, Evidence, Finding, Fix, Kind, Location, Severity, Signature
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.signatures import parameters_of
from driftcheck.surface.types import Absent, Class, Function, Instance, Lambda, Module, Unknown
from driftcheck.usage.usages import PatchUsage


class Patches:
    """Judges patches against two releases; `overridden` holds the (class, method) that the client overrides.

    `is_own` where the target is the very release that the client was written for.
    """

    def __init__(
        self, overrides: Overrides, relocation: Relocation, overridden: Collection[tuple[str, str]], *, is_own: bool
    ) -> None:
        self.is_own = is_own
        self.overrides = overrides
        self.overridden = overridden
        self.swaps = Swaps(overrides)
        self.target = overrides.target
        self.baseline = overrides.baseline
        self.relocation = relocation

    def ask(
        self, usages: Collection[tuple[PatchUsage, PatchUsage | None]], reads: Collection[tuple[str, str]]
    ) -> Answers:
        """The answers about patches, each with what the baseline makes of it.

        `reads` holds the (file, dotted path) of what the client reads though it is not there: reported already.
        """
        answers = Answers()
        seen: dict[Finding, None] = {}
        for usage, before in usages:
            found = self._judge(usage, before, reads)
            if isinstance(found, str):
                answers.unresolved.append((usage.location.path, usage.location.line, found))
                continue
            answers.checked += 1
            if found is not None and not usage.is_typing_only:
                seen[found] = None
        answers.findings = list(seen)
        return answers

    def _judge(
        self, usage: PatchUsage, before: PatchUsage | None, reads: Collection[tuple[str, str]]
    ) -> Finding | str | None:
        now = self._place(self.target, usage)
        if now is None:
            return "patch of something that is no one class or module"
        old = self._place(self.baseline, before) if self.baseline is not None and before is not None else None
        if isinstance(now.type, Absent):
            if old is None or isinstance(old.type, Absent | Unknown):
                return None
            if usage.is_path or (usage.location.path, f"{now.symbol}.{usage.name}") in reads:
                return None
            return self._gone(usage, now, old)
        if old is not None and (moved := self._moved(usage, now, old)) is not None:
            return moved
        if isinstance(now.declaration, ClassDeclaration):
            answer = self.swaps.judge(usage.type, now, old) if old is not None else None
            return self._finding(usage, now, old, answer) if isinstance(answer, Complaint) else answer
        own = self._signature(usage, now)
        if own is None or now.signature is None:
            return self._unjudged(usage, now)
        refused = self._refused(usage, now, old, own)
        return refused or (self._gained(usage, now, old, own) if old is not None else None)

    def _unjudged(self, usage: PatchUsage, now: Place) -> str | None:
        """Why a patch can't be judged any further: None where its being there is all that there is to ask."""
        if now.signature is None or usage.value is None:
            return None
        return usage.type.reason if isinstance(usage.type, Unknown) else None

    # What is there

    def _place(self, release: Release | None, usage: PatchUsage) -> Place | None:
        if release is None:
            return None
        owner = usage.owner.class_ if isinstance(usage.owner, Instance) else usage.owner
        if isinstance(owner, Module):
            type_ = release.program.module_attribute(owner.name, usage.name)
            declaration = type_.declaration if isinstance(type_, Function | Class) else None
            signature: Signature | None = None
            if isinstance(type_, Function) and not type_.transformed:
                signature = release.signatures.signature(type_.declaration, skips_first=False)
            return Place(owner, type_, None, declaration, signature)
        if not isinstance(owner, Class):
            return None
        members = self.overrides.members if release is self.target else self.overrides.members_before
        assert members is not None
        found = members.first(owner.declaration, usage.name)
        if isinstance(found, Definition):
            type_ = release.program.classes.attribute(Instance(Class(owner.declaration)), usage.name)
            type_ = Unknown("member") if isinstance(type_, Absent) else type_
            return Place(owner.declaration, type_, found, found.function, found.signature)
        type_ = release.program.classes.attribute(Instance(Class(owner.declaration)), usage.name)
        return Place(owner.declaration, Unknown(found) if isinstance(found, str) else type_)

    def _signature(self, usage: PatchUsage, now: Place) -> Signature | None:
        """What the replacement takes where it stands, without a receiver."""
        type_ = usage.type
        is_member = not isinstance(now.owner, Module)
        form = now.definition.form if now.definition is not None else ""
        if usage.wrapped:
            skips = usage.wrapped in ("bound method", "class method")
        else:
            # A plain function on a class is a method; on an object, or instead of a static method, it is itself.
            skips = is_member and not isinstance(usage.owner, Instance) and form not in ("static method", "")
        if isinstance(type_, Function):
            if type_.transformed:
                return None
            return self.target.signatures.signature(type_.declaration, skips_first=skips or type_.skips_first)
        if isinstance(type_, Lambda):
            parameters = parameters_of(type_.node.args)
            return Signature(parameters[1:] if skips and parameters and not parameters[0].is_variadic else parameters)
        return None

    # Gone

    def _gone(self, usage: PatchUsage, now: Place, old: Place) -> Finding:
        sort = "name" if isinstance(now.owner, Module) else "attribute"
        # What an older release does not have yet may never have been needed there.
        is_early = self.baseline is not None and self.target.is_older_than(self.baseline)
        message = f"{now.shown} has no {sort} {usage.name} {'yet' if is_early else 'any more'}"
        raises: str | None = None
        if usage.needs_name:
            shown = f"<module '{now.shown}'>" if isinstance(now.owner, Module) else f"<class '{now.symbol}'>"
            raises = f"AttributeError: {shown} does not have the attribute '{usage.name}'"
        else:
            message += ": what is put there is never used"
        if isinstance(now.owner, Module):
            home = self.relocation.home(now.owner.name, usage.name)
            message += f"; {home.name} is in {home.module}" if home is not None else ""
            is_replaced = home is not None
        else:
            successor = self._successor(now.owner, old.owner, usage.name)
            message += f"; {successor} is {'there instead' if is_early else 'new'}" if successor is not None else ""
            is_replaced = successor is not None
        severity = Severity.WARNING if is_early and not is_replaced else Severity.SILENT
        return Finding(
            Kind.DEAD_PATCH,
            Severity.ERROR if usage.needs_name else severity,
            Certainty.CERTAIN,
            usage.location,
            f"{now.symbol}.{usage.name}",
            message,
            None,
            raises,
            True,
            self._evidence(now, old),
            scope=usage.scope,
        )

    def _successor(self, now: ClassDeclaration, old: Module | ClassDeclaration, name: str) -> str | None:
        before = set(old.members) if isinstance(old, ClassDeclaration) else set()
        return near_name(name, [candidate for candidate in now.members if candidate not in before])

    def _moved(self, usage: PatchUsage, now: Place, old: Place) -> Finding | None:
        """A function or class that its module only hands on now: whoever uses it where it went is not reached."""
        if not isinstance(now.owner, Module) or now.declaration is None or old.declaration is None:
            return None
        home, was = now.declaration.module.name, old.declaration.module.name
        if was != now.owner.name or home == was or not self.target.program.is_target(home):
            return None
        module = self.target.program.module(now.owner.name)
        if module is None or self._is_used(module.text, usage.name):
            return None
        return Finding(
            Kind.DEAD_PATCH,
            Severity.SILENT,
            Certainty.LIKELY,
            usage.location,
            f"{home}.{usage.name}",
            f"{usage.name} is defined in {home} now, and {now.owner.name} only hands it on: "
            "what is put there is not what the target uses",
            None,
            None,
            True,
            self._evidence(now, old),
            scope=usage.scope,
        )

    def _is_used(self, text: str, name: str) -> bool:
        """True where a module uses a name other than to import it or to list it among its own."""
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return True
        return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))

    # Calls that the replacement refuses

    def _refused(self, usage: PatchUsage, now: Place, old: Place | None, own: Signature) -> Finding | None:
        refused = self._refusals(self.target, now, own, usage)
        if not refused:
            return None
        drift: bool | None = False if self.is_own else None
        if old is not None and self.baseline is not None:
            new = new_ones(refused, self._refusals(self.baseline, old, own, usage))
            drift, refused = bool(new), new or refused
        worst = worst_of(refused, now.path)
        # Who has put something on one object, or in a test, knows who calls it. What never fitted need never be called
        # either: by a method that the client has its own version of, say.
        is_narrow = usage.is_temporary or isinstance(usage.owner, Instance)
        is_sure = not worst.needs_variadic and not is_narrow and bool(drift or not self._is_overridden(worst.site))
        certainty = Certainty.CERTAIN if worst.is_typed and drift else Certainty.LIKELY
        complaint = Complaint(
            Kind.INVALID_PATCH,
            Severity.ERROR if is_sure else Severity.WARNING,
            certainty if is_sure else Certainty.POSSIBLE,
            f"{self._replacement(usage)} does not take what {worst.site.path} passes: {worst.said}",
            worst.problems[0].parameter,
            worst.problems[0].raises,
            worst.site,
        )
        return self._finding(usage, now, old, complaint, drift=drift)

    def _is_overridden(self, site: CallSite) -> bool:
        function: FunctionDeclaration | None = site.function
        while function is not None and function.owner is None:
            function = function.outer
        return (
            function is not None
            and function.owner is not None
            and (function.owner.symbol, function.name) in self.overridden
        )

    def _refusals(self, release: Release, place: Place, own: Signature, usage: PatchUsage) -> list[Refused]:
        if place.signature is None or takes_all(own, place.signature):
            return []
        sites = list(self._sites(release, place, usage.name))
        name = usage.type.declaration.qualified_name if isinstance(usage.type, Function) else "<lambda>"
        has_receiver = not isinstance(place.owner, Module)
        return refused_of(own, place.signature, sites, name=name, has_receiver=has_receiver)

    def _sites(self, release: Release, place: Place, name: str) -> Iterator[tuple[CallSite, bool]]:
        if isinstance(place.owner, Module):
            for site in release.sites.of_name(place.owner.name, name):
                yield site, True
            for site in release.sites.of_method(name, place.owner.name):
                receiver = release.sites.receiver(site)
                if isinstance(receiver, Module) and receiver.name == place.owner.name:
                    yield site, True
            return
        if place.definition is None:
            return
        reach = self.overrides.reach if release is self.target else self.overrides.reach_before
        assert reach is not None
        yield from reach.sites_of_member(place.owner, place.definition)

    # Parameters that were gained

    def _gained(self, usage: PatchUsage, now: Place, old: Place, own: Signature) -> Finding | None:
        if now.signature is None or old.signature is None:
            return None
        new = gained_parameters(own, now.signature, old.signature)
        if not new:
            return None
        names = ", ".join(f"'{parameter.name}'" for parameter in new)
        complaint = Complaint(
            Kind.INVALID_PATCH,
            Severity.WARNING,
            Certainty.LIKELY,
            f"{self._replacement(usage)} lacks {names}, new in {now.shown}.{usage.name}()",
            new[0].name,
        )
        return self._finding(usage, now, old, complaint)

    # Findings

    def _replacement(self, usage: PatchUsage) -> str:
        owner = usage.owner.class_ if isinstance(usage.owner, Instance) else usage.owner
        shown = owner.declaration.name if isinstance(owner, Class) else owner.name if isinstance(owner, Module) else ""
        name = f"{usage.type.declaration.name}()" if isinstance(usage.type, Function) else "the lambda"
        return f"{name}, put in the place of {shown}.{usage.name},"

    def _finding(
        self, usage: PatchUsage, now: Place, old: Place | None, complaint: Complaint, *, drift: bool | None = True
    ) -> Finding:
        location, scope = self._where(usage)
        evidence = self._evidence(now, old)
        if complaint.site is not None:
            site = complaint.site
            evidence = Evidence(site.path, site.line, evidence.signature, evidence.baseline_signature)
        return Finding(
            complaint.kind,
            complaint.severity,
            complaint.certainty,
            location,
            f"{now.symbol}.{usage.name}",
            complaint.message,
            complaint.parameter,
            complaint.raises,
            drift,
            evidence,
            fix=self._fix(usage, now, old, complaint, location),
            scope=scope,
        )

    def _fix(
        self, usage: PatchUsage, now: Place, old: Place | None, complaint: Complaint, location: Location
    ) -> Fix | None:
        """The parameters that the replacement lacks, where that is what is wrong and the client has its definition."""
        own = self._signature(usage, now)
        if complaint.parameter is None or location == usage.location or own is None or now.signature is None:
            return None
        return new_parameters(location, own, now.signature, old.signature if old is not None else None)

    def _where(self, usage: PatchUsage) -> tuple[Location, str]:
        """The replacement's own definition, where the client has it: that is what has to change."""
        declaration = usage.type.declaration if isinstance(usage.type, Function) else None
        if declaration is None or not declaration.module.has_tree or self.target.is_target(declaration):
            return usage.location, usage.scope
        return name_place(declaration), declaration.qualified_name.replace(".<locals>", "").rpartition(".")[0]

    def _evidence(self, now: Place, old: Place | None) -> Evidence:
        return Evidence(*self._source(now), _shown(now), _shown(old) if old is not None else None)

    def _source(self, place: Place) -> tuple[str | None, int | None]:
        declaration = place.declaration
        if declaration is not None:
            return declaration.module.path, declaration.line
        if isinstance(place.owner, Module):
            module = self.target.program.module(place.owner.name)
            return (module.path, 1) if module is not None else (None, None)
        return place.owner.module.path, place.owner.line


def _shown(place: Place) -> str | None:
    if place.signature is None or not isinstance(place.declaration, FunctionDeclaration):
        return None
    return f"{place.declaration.qualified_name}{place.signature}"
