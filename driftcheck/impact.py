"""What a change of the target breaks in clients: each is read as it was before the change and as it is after it."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from driftcheck.apart import may_work_apart, shared_out
from driftcheck.assembly import backwards, going_back, unread
from driftcheck.audit import DEFAULT_TARGET, Sources
from driftcheck.errors import DriftcheckError
from driftcheck.footprints import footprint_of
from driftcheck.model import Report, Severity, TargetSummary
from driftcheck.origins.git import GitTree, commit_named
from driftcheck.origins.git_history import clone_folder, common_commit, leads_back
from driftcheck.origins.names import parsed_version
from driftcheck.origins.parts import commits_cache, installed_part
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import Settings
from driftcheck.progress import UNWATCHED, Progress
from driftcheck.selection import Selection, selected, suppressed
from driftcheck.surface.modules import ModuleIndex
from driftcheck.tree import SourceTree
from driftcheck.upstream import ClientImpact, Impact

# Where so many files have changed, hardly any client is left that rests on none of them.
_MANY = 100
_DIFFERENCE = re.compile(r"(?P<before>.*?)(?P<dots>\.\.\.?)(?P<after>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the target, as two trees, the paths that differ between them, and what has to be known of it."""

    before: SourceTree
    after: SourceTree
    changed: tuple[str, ...]
    notices: tuple[str, ...] = ()


def change_of(text: str, repository: str, settings: Settings) -> Change:
    """The change that `A..B` names, both refs of a local clone, or releases such as `vllm==0.16.0`.

    As for git, what is left out is HEAD, and `A...B` is what B has done since it left A; `git+FOLDER@A..B` names the
    clone as well. Raises DriftcheckError where it names no two trees, or such as have nothing to do with each other.
    """
    repository, text = _clone_and_refs(text.strip(), repository)
    match = _DIFFERENCE.fullmatch(text)
    if match is None or not (match["before"] or match["after"]):
        raise DriftcheckError(
            f"{text!r} names no change; write A..B with two refs of the clone, main..HEAD for example"
        )
    first, second = match["before"] or "HEAD", match["after"] or "HEAD"
    try:
        change = _change_from(text, first, second, match["dots"], repository, settings)
    except DriftcheckError as error:
        if parsed_version(first) is None or parsed_version(second) is None:
            raise
        releases = f"{DEFAULT_TARGET}=={first}..{DEFAULT_TARGET}=={second}"
        raise DriftcheckError(f"{error}; two releases are written {releases}") from error
    return replace(change, notices=_direction(change, first, second, repository))


def _clone_and_refs(text: str, repository: str) -> tuple[str, str]:
    """The clone and what follows it: `git+../vllm@main..topic` names both at once."""
    if not text.startswith("git+"):
        return repository, text
    place = text.removeprefix("git+").removeprefix("file://")
    cuts = [match.start() for match in re.finditer("@", place) if ".." in place[match.end() :]]
    cut = next((cut for cut in cuts if os.path.isdir(place[:cut])), cuts[0] if cuts else None)
    return (repository, text) if cut is None else (place[:cut], place[cut + 1 :])


def _direction(change: Change, first: str, second: str, repository: str) -> tuple[str, ...]:
    """The notice that a change leads back to what was before it, which may be meant."""
    told = backwards(_summary(change.before), _summary(change.after))
    if told or _is_target(first) or _is_target(second):
        return told
    folder = clone_folder(repository)
    if leads_back(folder, commit_named(folder, first), commit_named(folder, second)):
        return (going_back(first, second),)
    return ()


def _change_from(text: str, first: str, second: str, dots: str, repository: str, settings: Settings) -> Change:
    if dots == "...":
        if _is_target(first) or _is_target(second):
            raise DriftcheckError(f"{text}: releases have left no common commit; write two dots")
        folder = clone_folder(repository)
        common = common_commit(folder, commit_named(folder, first), commit_named(folder, second))
        before: SourceTree = installed_part(GitTree(folder, common), commits_cache(settings))
    else:
        before = _tree(first, repository, settings)
    return change_between(before, _tree(second, repository, settings))


def change_between(before: SourceTree, after: SourceTree) -> Change:
    """What differs between two trees of the target; raises DriftcheckError where one is none."""
    indexes = [ModuleIndex(tree) for tree in (before, after)]
    for tree, index in zip((before, after), indexes, strict=True):
        if not index.sources:
            raise DriftcheckError(f"{tree.origin} holds no Python package")
    if indexes[0].top_level.isdisjoint(indexes[1].top_level):
        raise DriftcheckError(f"{before.origin} and {after.origin} have no package in common")
    known = set(before.paths)
    differ = {path for path in after.paths if path not in known or _digest(before, path) != _digest(after, path)}
    return Change(before, after, tuple(sorted(differ | known.difference(after.paths))))


def _digest(tree: SourceTree, path: str) -> str | None:
    """A hash of the file; None for an extension module, of which no more is known than that it is there."""
    try:
        return tree.digest(path)
    except (DriftcheckError, KeyError):
        return None


def _tree(word: str, repository: str, settings: Settings) -> SourceTree:
    if not _is_target(word):
        return installed_part(GitTree(clone_folder(repository), word), commits_cache(settings))
    tree = target_tree(word, settings=settings)
    return installed_part(tree, commits_cache(settings)) if isinstance(tree, GitTree) else tree


def _is_target(word: str) -> bool:
    return "==" in word or word.startswith("git+")


def impact(
    change: Change,
    clients: Sequence[str | SourceTree],
    selection_of: Callable[[str], Selection],
    settings: Settings,
    *,
    fail_on: Severity = Severity.SILENT,
    model: str | None = None,
    remember: bool = True,
    progress: Progress = UNWATCHED,
) -> Impact:
    """What a change breaks in clients, named as on the command line or at hand.

    What counts is at severity `fail_on` or worse, was not found before the change and is of the client's `selection_of`
    its name. A client that can't be checked is told in its own entry.
    """
    asked = _Asked(change, selection_of, settings, fail_on, model, settings.cache if remember else None)
    with progress.task(f"Reading {len(clients)} clients", len(clients)) as task:
        # By itself an audit takes a second process for a large client; of several clients each has one.
        processes = 1 if len(clients) > 1 and may_work_apart() else None
        found = shared_out(clients, functools.partial(asked.answer, processes=processes), task)
    return Impact(_summary(change.before), _summary(change.after), change.changed, tuple(found), change.notices)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What holds for all clients."""

    change: Change
    selection_of: Callable[[str], Selection]
    settings: Settings
    fail_on: Severity
    model: str | None
    cache: Path | None

    def answer(self, client: str | SourceTree, *, processes: int | None) -> ClientImpact:
        """What the change breaks in one client."""
        name = client if isinstance(client, str) else client.name
        try:
            tree = client_tree(client, settings=self.settings) if isinstance(client, str) else client
            sources = Sources(tree, self.change.after, self.change.before, None, (), self.model, None, self.cache)
            untouched = self._untouched(sources)
            if untouched is not None:
                return untouched
            return self._told(selected(suppressed(sources.audited(processes=processes)), self.selection_of(name)))
        except DriftcheckError as error:
            return ClientImpact(name, None, fault=str(error))

    def _untouched(self, sources: Sources) -> ClientImpact | None:
        """What there is to say where nothing of what the client rests on has changed.

        Not asked where so much has changed that it is likely.
        """
        change, client = self.change, sources.client
        if not change.changed:
            return ClientImpact(client.name, client.version, others=None, is_untouched=True)
        may_be = self.cache is not None and getattr(change.before, "cache_folder", None) is not None
        if not may_be or len(change.changed) > _MANY or sources.remembered() is not None:
            return None
        footprint = footprint_of(sources, self.settings.cache)
        if not footprint.is_untouched(change.after):
            return None
        return ClientImpact(client.name, client.version, others=None, is_untouched=True, notices=footprint.notices)

    def _told(self, report: Report) -> ClientImpact:
        breaks = tuple(finding for finding in report.findings if finding.is_break(self.fail_on))
        client, others = report.client, len(report.findings) - len(breaks)
        return ClientImpact(client.name, client.version, breaks, others, notices=(*report.notices, *unread(client)))


def _summary(tree: SourceTree) -> TargetSummary:
    return TargetSummary(tree.name, tree.version, tree.origin)


def installed_clients(change: Change, settings: Settings) -> list[str | SourceTree]:
    """The installed distributions that use the target, sorted by name; raises DriftcheckError without interpreter."""
    from driftcheck.origins.distributions import users_of

    packages = sorted(ModuleIndex(change.after).top_level & ModuleIndex(change.before).top_level)
    name = change.after.name
    return [*users_of(name if name in packages else packages[0], settings)]
