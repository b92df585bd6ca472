"""A class of the client's in the place of one of the target's: whether it is made and used as the target does now."""

from __future__ import annotations

from dataclasses import dataclass

from driftcheck.compare.callsites import CallSite
from driftcheck.compare.members import Definition
from driftcheck.compare.overrides import Overrides
from driftcheck.compare.refusals import Complaint, Refused, new_ones, refused_of, worst_of
from driftcheck.compare.release import Release
from driftcheck.model import Certainty, Kind, Severity, Signature
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.types import Class, Module, Type, Unknown


@dataclass(frozen=True, slots=True)
class Place:
    """What a release has where a patch goes: `definition` for members of classes, `declaration` for modules' names."""

    owner: Module | ClassDeclaration
    type: Type
    definition: Definition | None = None
    declaration: FunctionDeclaration | ClassDeclaration | None = None
    signature: Signature | None = None

    @property
    def symbol(self) -> str:
        """The dotted path of the owner."""
        return self.owner.name if isinstance(self.owner, Module) else self.owner.symbol

    @property
    def shown(self) -> str:
        """What a message calls the owner."""
        return self.owner.name

    @property
    def path(self) -> str:
        """The file that holds the owner, "" for a module."""
        return "" if isinstance(self.owner, Module) else self.owner.module.path


class Swaps:
    """Judges classes that stand in for others."""

    def __init__(self, overrides: Overrides) -> None:
        self.overrides = overrides
        self.target = overrides.target
        self.baseline = overrides.baseline

    def judge(self, type_: Type, now: Place, old: Place) -> Complaint | str | None:
        """What is wrong with a class put where a module has one, or the reason why that can't be told."""
        if not isinstance(now.owner, Module) or not isinstance(type_, Class):
            return None
        assert isinstance(now.declaration, ClassDeclaration)
        if self.target.is_target(type_.declaration):
            return None
        is_derived = self.target.program.classes.is_subclass(type_.declaration, now.declaration)
        if is_derived is None:
            return "class with a base that can't be read"
        made = self._constructor(type_, now, old)
        return made or (None if is_derived else self._members(type_.declaration, now, old))

    def _constructor(self, replacement: Class, now: Place, old: Place) -> Complaint | None:
        """The calls of the class in the module that gets another one."""
        refused = self._refused(self.target, now, replacement)
        if refused and self.baseline is not None:
            refused = new_ones(refused, self._refused(self.baseline, old, replacement))
        if not refused:
            return None
        worst = worst_of(refused, "")
        return Complaint(
            Kind.INVALID_PATCH,
            Severity.ERROR,
            Certainty.LIKELY,
            f"{replacement.declaration.name}() does not take what {worst.site.path} passes: {worst.said}",
            worst.problems[0].parameter,
            worst.problems[0].raises,
            worst.site,
        )

    def _refused(self, release: Release, place: Place, replacement: Class) -> list[Refused]:
        own, base = release.signatures.callee(replacement), release.signatures.callee(place.type)
        if isinstance(own, Unknown) or isinstance(base, Unknown) or release.is_target(own.declaration):
            return []
        if not isinstance(place.owner, Module) or not isinstance(place.declaration, ClassDeclaration):
            return []
        sites = [(site, True) for site in release.sites.of_name(place.owner.name, place.declaration.name)]
        return refused_of(own.signature, base.signature, sites, name=own.name, has_receiver=True)

    def _members(self, replacement: ClassDeclaration, now: Place, old: Place) -> Complaint | None:
        """Methods that the target's class has gained and calls, and that the class in its place lacks."""
        assert isinstance(now.declaration, ClassDeclaration) and isinstance(now.owner, Module)
        if not isinstance(old.declaration, ClassDeclaration) or self.overrides.members_before is None:
            return None
        missing: list[tuple[str, CallSite | None]] = []
        for name in now.declaration.members:
            definition = self.overrides.members.definition(now.declaration, name)
            if definition is None or definition.function is None or name.startswith("__"):
                continue
            if self.overrides.members_before.first(old.declaration, name) is not None:
                continue
            if self.overrides.members.first(replacement, name) is None:
                missing.append((name, self._use(now, definition)))
        if not missing:
            return None
        missing.sort(key=lambda each: (each[1] is None, each[0]))
        name, site = missing[0]
        more = f", nor {', '.join(other for other, _ in missing[1:])}" if len(missing) > 1 else ""
        called = f", which {site.path} calls" if site is not None else ""
        return Complaint(
            Kind.INVALID_PATCH,
            Severity.ERROR if site is not None else Severity.WARNING,
            Certainty.LIKELY if site is not None else Certainty.POSSIBLE,
            f"{replacement.name}, put in the place of {now.declaration.name}, has no {name}{called}{more}",
            name,
            f"AttributeError: '{replacement.name}' object has no attribute '{name}'" if site is not None else None,
            site,
        )

    def _use(self, now: Place, definition: Definition) -> CallSite | None:
        """A call of a method in the module that gets the other class, the class's own methods left out.

        Elsewhere it may be the target's own class that arrives.
        """
        assert isinstance(now.owner, Module) and isinstance(now.declaration, ClassDeclaration)
        for site, is_typed in self.overrides.reach.sites_of_member(now.declaration, definition):
            if is_typed and site.module.name == now.owner.name and site.function.owner is not now.declaration:
                return site
        return None
