"""Constructors of classes that the target makes itself: it holds a `type[Base]` and calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from driftcheck.compare.acceptance import takes_all
from driftcheck.compare.callsites import CallSite
from driftcheck.compare.members import Override
from driftcheck.compare.overrides import Overrides
from driftcheck.compare.refusals import Complaint, Refused, new_ones, refused_of, worst_of
from driftcheck.compare.release import Release
from driftcheck.model import Certainty, Kind, Severity
from driftcheck.surface.declarations import ClassDeclaration
from driftcheck.surface.signatures import Callee, shape
from driftcheck.surface.types import Class, members_of
from driftcheck.surface.words import encoded

_FILES_READ = 60


class Constructions:
    """Holds the constructors of the client's classes against the calls that make them."""

    def __init__(self, overrides: Overrides) -> None:
        self.overrides = overrides
        self._sites: dict[tuple[int, ClassDeclaration], tuple[CallSite, ...]] = {}
        self._declared: dict[tuple[int, str], list[tuple[bytes, bytes]]] = {}

    def complaint(self, override: Override) -> Complaint | None:
        """What is wrong with a constructor, None where no call of the target's shows that anything is."""
        baseline = self.overrides.baseline
        if baseline is None or override.base is None:
            return None
        refused = self._refused(self.overrides.target, override.class_, self._shapes(baseline, override.class_))
        if refused:
            refused = new_ones(refused, self._refused(baseline, override.class_, {}))
        if not refused:
            return None
        worst = worst_of(refused, override.base.owner.module.path)
        is_sure = not worst.needs_variadic
        return Complaint(
            Kind.INVALID_OVERRIDE,
            Severity.ERROR if is_sure else Severity.WARNING,
            Certainty.LIKELY if is_sure else Certainty.POSSIBLE,
            f"{override.own.owner.name}() does not take what {worst.site.path} passes: {worst.said}",
            worst.problems[0].parameter,
            worst.problems[0].raises,
            worst.site,
        )

    def _shapes(self, release: Release, class_: ClassDeclaration) -> dict[str, object]:
        """What the constructors of a class's bases take in a release, by the dotted paths of the bases."""
        shapes: dict[str, object] = {}
        for base in self._bases(release, class_):
            callee = self._constructor(release, base)
            shapes[base.symbol] = shape(callee.signature) if callee is not None else None
        return shapes

    def _refused(self, release: Release, class_: ClassDeclaration, known: Mapping[str, object]) -> list[Refused]:
        """The calls that make the class and that it does not take; bases that take what is known are left out."""
        own = self._constructor(release, class_)
        if own is None or release.is_target(own.declaration):
            return []
        found: list[Refused] = []
        for base in self._bases(release, class_):
            callee = self._constructor(release, base)
            if callee is None or takes_all(own.signature, callee.signature):
                continue
            if known.get(base.symbol) == shape(callee.signature):
                continue
            sites = [(site, True) for site in self._made(release, base)]
            name = f"{class_.name}.__init__"
            found += refused_of(own.signature, callee.signature, sites, name=name, has_receiver=True)
        return found

    def _constructor(self, release: Release, class_: ClassDeclaration) -> Callee | None:
        found = release.signatures.callee(Class(class_))
        return found if isinstance(found, Callee) else None

    def _bases(self, release: Release, class_: ClassDeclaration) -> Iterator[ClassDeclaration]:
        for entry in release.program.classes.linearize(class_):
            if isinstance(entry, Class) and release.is_target(entry.declaration):
                yield entry.declaration

    def _made(self, release: Release, base: ClassDeclaration) -> tuple[CallSite, ...]:
        """The calls in the target of a value that is the base or any class below it."""
        key = (id(release), base)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = tuple(self._find(release, base))
        return found

    def _find(self, release: Release, base: ClassDeclaration) -> Iterator[CallSite]:
        word = re.escape(encoded(base.name))
        declared = re.compile(rb"\b[tT]ype\[\s*[\"']?(?:\w+\.)*%s\b" % word)
        holders: set[bytes] = set()
        for path in release.sites.files_with(declared, (base.name,)):
            holders.update(name for name, type_ in self._declaring(release, path) if declared.search(type_))
        if not holders:
            return
        holding = release.sites.files_with(_words(holders), {holder.decode() for holder in holders})
        for path in sorted(holding)[:_FILES_READ]:
            data = release.program.target.read(path)
            names = holders | _assigned(data, holders)
            lines = [data.count(b"\n", 0, match.start()) + 1 for match in _words(names).finditer(data)]
            for function, _ in release.sites.sites_on(path, lines):
                scope = release.program.function_scope(function)
                for site in release.sites.calls_in(function):
                    callee = release.program.inference.infer(site.node.func, scope)
                    if any(isinstance(m, Class) and m.is_open and m.declaration is base for m in members_of(callee)):
                        yield site

    def _declaring(self, release: Release, path: str) -> list[tuple[bytes, bytes]]:
        """What a file declares to hold or give a class, each name with the text around its type."""
        key = (id(release), path)
        found = self._declared.get(key)
        if found is None:
            matches = _DECLARING.finditer(release.program.target.read(path))
            found = self._declared[key] = [(match.group(1) or match.group(2), match.group(0)) for match in matches]
        return found


def _words(names: set[bytes]) -> re.Pattern[bytes]:
    return re.compile(rb"\b(?:%s)\b" % b"|".join(sorted(re.escape(name) for name in names)))


def _assigned(data: bytes, names: set[bytes]) -> set[bytes]:
    """The names that get a value in whose expression one of these names stands."""
    anyone = b"|".join(sorted(map(re.escape, names)))
    pattern = re.compile(rb"\b(\w+)[ \t]*(?::[^=\n]{0,80})?=(?!=)[^\n]{0,120}?\b(?:%s)\b" % anyone)
    lines = [line for line in data.split(b"\n") if any(name in line for name in names)]
    return {match.group(1) for line in lines for match in pattern.finditer(line)}


# `name: type[X]` with whatever stands around the type, and `def name(...) -> type[X]`.
_DECLARING = re.compile(
    rb"\b(\w+)[ \t]*:[^=\n]{0,80}\b[tT]ype\[[^\]\n]{1,80}"
    rb"|def[ \t]+(\w+)[ \t]*\([^:]{0,400}->[^:\n]{0,80}\b[tT]ype\[[^\]\n]{1,80}"
)
