"""Constructors of classes that the target makes itself: it holds a `type[Base]` and calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from driftcheck.compare.acceptance import takes_all, without_variadics
from driftcheck.compare.bind import bind
from driftcheck.compare.callsites import CallSite
from driftcheck.compare.members import Override
from driftcheck.compare.overrides import Complaint, Overrides, Refused
from driftcheck.compare.release import Release
from driftcheck.model import Certainty, Kind, Severity, Signature
from driftcheck.surface.declarations import ClassDeclaration
from driftcheck.surface.signatures import Callee
from driftcheck.surface.types import Class, members_of

_FILES_READ = 60


class Constructions:
    """Holds the constructors of the client's classes against the calls that make them."""

    def __init__(self, overrides: Overrides) -> None:
        self.overrides = overrides
        self._sites: dict[tuple[int, ClassDeclaration], tuple[CallSite, ...]] = {}

    def complaint(self, override: Override) -> Complaint | None:
        """What is wrong with a constructor, None where no call of the target's shows that anything is."""
        baseline = self.overrides.baseline
        refused = self._refused(self.overrides.target, override.class_)
        if not refused or baseline is None:
            return None
        known = {shape for each in self._refused(baseline, override.class_) for shape in each.shapes}
        new = [each for each in refused if not each.shapes & known]
        if not new:
            return None
        worst = min(new, key=lambda each: (each.needs_variadic, each.site.path, each.site.line))
        said = "; ".join(problem.message for problem in worst.problems)
        is_sure = not worst.needs_variadic
        return Complaint(
            Kind.INVALID_OVERRIDE,
            Severity.ERROR if is_sure else Severity.WARNING,
            Certainty.LIKELY if is_sure else Certainty.POSSIBLE,
            f"{override.own.owner.name}() does not take what {worst.site.path} passes: {said}",
            worst.problems[0].parameter,
            worst.problems[0].raises,
            worst.site,
        )

    def _refused(self, release: Release, class_: ClassDeclaration) -> list[Refused]:
        own = self._constructor(release, class_)
        if own is None or release.is_target(own.declaration):
            return []
        found: list[Refused] = []
        for base in self._bases(release, class_):
            callee = self._constructor(release, base)
            if callee is None or takes_all(own.signature, callee.signature):
                continue
            plain: Signature = without_variadics(callee.signature)
            for site in self._made(release, base):
                problems = bind(own.signature, site.arguments, callee=f"{class_.name}.__init__", has_receiver=True)
                if problems and not bind(callee.signature, site.arguments):
                    found.append(Refused(site, problems, True, bool(bind(plain, site.arguments))))
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
        word = re.escape(base.name.encode())
        declared = re.compile(rb"\b[tT]ype\[\s*[\"']?(?:\w+\.)*%s\b" % word)
        if not release.sites.mentions(declared):
            return
        holders: set[bytes] = set()
        for path in release.sites.files_with(declared):
            data = release.program.target.read(path)
            for match in _DECLARING.finditer(data):
                if declared.search(match.group(0)):
                    holders.add(match.group(1) or match.group(2))
        if not holders:
            return
        for path in sorted(release.sites.files_with(_words(holders)))[:_FILES_READ]:
            data = release.program.target.read(path)
            names = holders | _assigned(data, holders)
            lines = [data.count(b"\n", 0, match.start()) + 1 for match in _words(names).finditer(data)]
            for function, _ in release.sites.sites_on(path, lines):
                scope = release.program.function_scope(function)
                for site in release.sites.calls_in(function):
                    callee = release.program.inference.infer(site.node.func, scope)
                    if any(isinstance(m, Class) and m.is_open and m.declaration is base for m in members_of(callee)):
                        yield site


def _words(names: set[bytes]) -> re.Pattern[bytes]:
    return re.compile(rb"\b(?:%s)\b" % b"|".join(sorted(re.escape(name) for name in names)))


def _assigned(data: bytes, names: set[bytes]) -> set[bytes]:
    """The names that get a value in whose expression one of these names stands."""
    anyone = b"|".join(sorted(map(re.escape, names)))
    pattern = re.compile(rb"\b(\w+)[ \t]*(?::[^=\n]{0,80})?=(?!=)[^\n]{0,120}?\b(?:%s)\b" % anyone)
    return {match.group(1) for match in pattern.finditer(data)}


# `name: type[X]` with whatever stands around the type, and `def name(...) -> type[X]`.
_DECLARING = re.compile(
    rb"\b(\w+)[ \t]*:[^=\n]{0,80}\b[tT]ype\[[^\]\n]{1,80}"
    rb"|def[ \t]+(\w+)[ \t]*\([^:]{0,400}->[^:\n]{0,80}\b[tT]ype\[[^\]\n]{1,80}"
)
