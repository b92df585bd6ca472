"""Which commit of the target made each finding: the client is read with some commits between baseline and target.

A finding is there at the target and not at the baseline, so that a commit on the way can be found by halves. Those that
touch the files which the finding is about are tried first; that the one found makes the difference is always looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from driftcheck.assembly import going_back, unread
from driftcheck.audit import DEFAULT_TARGET, Sources
from driftcheck.errors import DriftcheckError
from driftcheck.model import Finding, Identity, Report, TargetSummary
from driftcheck.origins.baseline import baseline_specification
from driftcheck.origins.git import GitTree, commit_named
from driftcheck.origins.git_history import (
    Way,
    clone_folder,
    commit_at,
    leads_back,
    places_touching,
    release_ref,
    way_between,
)
from driftcheck.origins.parts import PartialTree, commits_cache, installed_part
from driftcheck.origins.select import client_tree
from driftcheck.origins.settings import Settings
from driftcheck.progress import UNWATCHED, Progress
from driftcheck.readings import Shared
from driftcheck.surface.modules import ModuleIndex
from driftcheck.tree import SourceTree
from driftcheck.upstream import Blame, BlamedFinding, Commit
from driftcheck.usage.importers import imported_modules

# Merges of what was merged are followed so far; beyond that the merge itself is named.
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Ends:
    """The two commits of a clone that are held against each other, and why that baseline, where nobody named it."""

    folder: Path
    older: str
    newer: str
    baseline: str
    target: str
    chosen: str | None = None


def ends_of(
    client: SourceTree, repository: str, *, against: str | None, baseline: str | None, settings: Settings
) -> Ends:
    """The commits of a clone that the words mean: refs, or releases (`vllm==0.16.0`) that have a tag.

    Without words it is HEAD, and the release that the client was written for. Raises DriftcheckError where the clone
    has no such commit.
    """
    folder = clone_folder(repository)
    target = against or "HEAD"
    newer = _commit_meant(folder, target)
    chosen: str | None = None
    if baseline is None:
        version = installed_part(GitTree(folder, newer)).version
        found = baseline_specification(client, DEFAULT_TARGET, held_against=version, settings=settings)
        if found is None:
            raise DriftcheckError(f"{client.name} does not say what it was written for; name a ref with --baseline")
        baseline, chosen = found
    return Ends(folder, _commit_meant(folder, baseline), newer, baseline, target, chosen)


def _commit_meant(folder: Path, word: str) -> str:
    name, equals, version = word.partition("==")
    if not equals:
        return commit_named(folder, word)
    found = release_ref(folder, name.strip(), version.strip())
    if found is None:
        raise DriftcheckError(f"the clone {folder} has no tag of {word}; fetch its tags, or name a ref instead")
    return found


def blame(
    client: str | SourceTree,
    repository: str,
    *,
    against: str | None = None,
    baseline: str | None = None,
    counts: Callable[[Report], Report] = lambda report: report,
    model: str | None = None,
    settings: Settings | None = None,
    remember: bool = True,
    progress: Progress = UNWATCHED,
) -> Blame:
    """The commits of a clone that made what is found in a client, named as on the command line or at hand.

    `counts` leaves of a report the findings that are asked for. Raises DriftcheckError where client, clone or commits
    can't be had, or the clone's history between the two ends.
    """
    settings = settings or Settings()
    tree = client_tree(client, settings=settings) if isinstance(client, str) else client
    ends = ends_of(tree, repository, against=against, baseline=baseline, settings=settings)
    way = way_between(ends.folder, ends.older, ends.newer)
    kept = commits_cache(settings)
    older = installed_part(GitTree(ends.folder, ends.older), kept)
    newer = installed_part(GitTree(ends.folder, ends.newer), kept)
    for each, word in ((older, ends.baseline), (newer, ends.target)):
        if not ModuleIndex(each).sources:
            raise DriftcheckError(f"{word} of the clone {ends.folder} holds no Python package")
    sources = Sources(tree, newer, older, ends.chosen, (), model, None, settings.cache if remember else None)
    with progress.task(f"Looking for what broke {tree.name}") as task:
        blaming = _Blaming(ends.folder, sources, task.advance)
        report = counts(blaming.report)
        wanted = [finding for finding in report.findings if finding.drift is not False]
        blamed = {id(each.finding): each for each in blaming.blamed(way, wanted)}
    return Blame(
        client=report.client,
        target=_named(newer, ends.target),
        baseline=replace(_named(older, ends.baseline), chosen=ends.chosen),
        findings=tuple(blamed[id(finding)] for finding in wanted),
        others=len(report.findings) - len(wanted),
        commits=len(way.commits) - 1,
        asked=blaming.asked,
        notices=(*_direction(ends), *report.notices, *unread(report.client)),
    )


def _direction(ends: Ends) -> tuple[str, ...]:
    """The notice that the way leads back to what the client was written after, which may be meant."""
    if not leads_back(ends.folder, ends.older, ends.newer):
        return ()
    return (going_back(ends.baseline, ends.target),)


def _named(tree: SourceTree, word: str) -> TargetSummary:
    return TargetSummary(tree.name, tree.version, f"git tag of {word}" if "==" in word else f"git ref {word}")


@dataclass(slots=True)
class _Open:
    """A finding whose commit is still to be found: it is not there at the place `low` of a way and there at `high`.

    `places` are those of the commits that touch what the finding is about.
    """

    finding: Finding
    low: int
    high: int
    places: list[int]

    @property
    def next_place(self) -> int:
        """Where to look next: before the middle one of the commits in question, else in the middle."""
        places = [place for place in self.places if self.low < place <= self.high]
        if not places:
            return (self.low + self.high) // 2
        place = places[len(places) // 2]
        return place - 1 if place - 1 > self.low else place if place < self.high else (self.low + self.high) // 2

    def narrow(self, place: int, *, is_there: bool) -> None:
        """Takes in what was seen at a place."""
        if self.low < place < self.high:
            self.low, self.high = (self.low, place) if is_there else (place, self.high)

    @property
    def is_found(self) -> bool:
        """True where the commit can be no other any more."""
        return self.high - self.low == 1


class _Blaming:
    """One search under way: what is found at which commit is asked once."""

    def __init__(self, folder: Path, sources: Sources, advance: Callable[[], None]) -> None:
        self.folder = folder
        self.sources = sources
        self.advance = advance
        self.report = sources.audited()
        self.asked = 0
        self._view: SourceTree = sources.client
        self._shared = Shared()
        self._contents: dict[str, bytes] = {}
        self._found: dict[tuple[tuple[str, ...], frozenset[tuple[str, str]]], frozenset[Identity]] = {}
        self._index = ModuleIndex(sources.client)
        self._touching: dict[tuple[Way, tuple[str, ...]], list[int]] = {}
        assert sources.baseline is not None
        self._older_index = ModuleIndex(sources.baseline)

    def blamed(self, way: Way, findings: Sequence[Finding]) -> Iterator[BlamedFinding]:
        """What made each of the findings, in no order."""
        wanted = list(findings)
        if any(finding.drift is None for finding in wanted):
            # Nobody has asked the baseline about these.
            before = self._identities(way.commits[0])
            old = [finding for finding in wanted if finding.drift is None and finding.identity in before]
            yield from (BlamedFinding(finding, None, reason="it is found with the baseline too") for finding in old)
            wanted = [finding for finding in wanted if finding not in old]
        if wanted:
            self._look_at(wanted, way.commits[-1])
            yield from self._located(way, wanted, None, 0)

    def _located(
        self, way: Way, findings: Sequence[Finding], merge: Commit | None, depth: int
    ) -> Iterator[BlamedFinding]:
        """What made findings that are there at the end of a way and not at its beginning."""
        by_place: dict[int, list[Finding]] = {}
        for finding, place in self._places(way, findings):
            by_place.setdefault(place, []).append(finding)
        for place, group in sorted(by_place.items()):
            commit = commit_at(self.folder, way.maker(place))
            if way.is_lost(place):
                yield from (BlamedFinding(finding, commit, merge, is_lost=True) for finding in group)
            else:
                yield from self._made(commit, way.commits[place - 1], group, merge, depth)

    def _made(
        self, commit: Commit, before: str, findings: Sequence[Finding], merge: Commit | None, depth: int
    ) -> Iterator[BlamedFinding]:
        """What made findings that are there at a commit and not at the one before it: where it is a merge, look on."""
        rest = list(findings)
        if len(commit.parents) > 1:
            self._look_at(rest, commit.name)
        others = [parent for parent in commit.parents if parent != before]
        if len(commit.parents) > 1 and depth < _DEEPEST:
            for parent in others:
                there = self._identities(parent)
                brought = [finding for finding in rest if finding.identity in there]
                if brought:
                    rest = [finding for finding in rest if finding.identity not in there]
                    way = way_between(self.folder, before, parent)
                    yield from self._located(way, brought, merge or commit, depth + 1)
        yield from (BlamedFinding(finding, commit, merge) for finding in rest)

    def _places(self, way: Way, findings: Sequence[Finding]) -> Iterator[tuple[Finding, int]]:
        """Where on a way each finding begins; what is seen at one commit narrows down all of them."""
        end = len(way.commits) - 1
        unsettled = [_Open(finding, 0, end, self._about(way, finding)) for finding in findings]
        while unsettled:
            yield from ((each.finding, each.high) for each in unsettled if each.is_found)
            unsettled = [each for each in unsettled if not each.is_found]
            if not unsettled:
                return
            self._look_closer([each.finding for each in unsettled], way.commits[-1])
            place = unsettled[0].next_place
            there = self._identities(way.commits[place])
            for each in unsettled:
                each.narrow(place, is_there=each.finding.identity in there)

    def _about(self, way: Way, finding: Finding) -> list[int]:
        """The places of the commits that touch the files in which the finding's symbol is and was."""
        paths = {finding.evidence.path} if finding.evidence.path is not None else set()
        module = finding.symbol
        while module and module not in self._older_index.sources:
            module = module.rpartition(".")[0]
        if module:
            paths.add(self._older_index.sources[module])
        key = (way, tuple(sorted(paths)))
        if key not in self._touching:
            self._touching[key] = places_touching(self.folder, way, key[1])
        return self._touching[key]

    # What is found at a commit

    def _identities(self, commit: str) -> frozenset[Identity]:
        """What is found in the client as it is looked at now, with the target as it was at a commit."""
        assert isinstance(self.sources.target, PartialTree)
        target = installed_part(GitTree(self.folder, commit), self.sources.target.cache_folder, self._contents)
        key = (tuple(self._view.paths), frozenset((path, target.digest(path)) for path in target.paths))
        if key not in self._found:
            if not ModuleIndex(target).sources:
                raise DriftcheckError(f"{commit[:12]} of the clone {self.folder} holds no Python package")
            report = replace(self.sources, target=target).audited(self._view, shared=self._shared)
            self._found[key] = frozenset(finding.identity for finding in report.findings)
            self.asked += 1
            self.advance()
        return self._found[key]

    def _look_closer(self, findings: Sequence[Finding], commit: str) -> None:
        """Leaves more of the client out, where half of what is looked at is settled."""
        paths = {finding.location.path for finding in findings}
        if 2 * len(self._reached(paths)) <= len(self._view.paths):
            self._look_at(findings, commit)

    def _look_at(self, findings: Sequence[Finding], commit: str) -> None:
        """Looks at the files of findings from here on, and at what they import, if that is enough to find them.

        `commit` is one where they are there.
        """
        reached = self._reached({finding.location.path for finding in findings})
        enough = self._view if reached.issubset(self._view.paths) else self.sources.client
        if len(reached) < len(enough.paths):
            self._see(PartialTree(self.sources.client, reached))
            if {finding.identity for finding in findings} <= self._identities(commit):
                return
        self._see(enough)

    def _see(self, view: SourceTree) -> None:
        if view is not self._view:
            self._view, self._shared = view, Shared()

    def _reached(self, paths: Collection[str]) -> set[str]:
        """The files, and those of the client that they import, directly or through others."""
        found = set(paths)
        pending = sorted(paths)
        while pending:
            path = pending.pop()
            name = self._index.name_of(path)
            if name is None:
                continue
            for imported in imported_modules(name, self.sources.client.read(path), self._index):
                reached = self._index.sources[imported]
                if reached not in found:
                    found.add(reached)
                    pending.append(reached)
        return found
