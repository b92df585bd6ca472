"""One client on many releases: with which it works, what breaks first, and what its metadata should say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from driftcheck.apart import shared_out
from driftcheck.assembly import unread
from driftcheck.audit import DEFAULT_TARGET, Sources, releases_in, sources_of
from driftcheck.errors import DriftcheckError
from driftcheck.model import Finding, Identity, Matrix, ReleaseVerdict, Report
from driftcheck.origins.baseline import Requirement, requirement_of
from driftcheck.origins.offers import offers
from driftcheck.origins.select import target_tree
from driftcheck.origins.settings import Settings
from driftcheck.progress import UNWATCHED, Progress, Task
from driftcheck.readings import Shared
from driftcheck.tree import SourceTree

# So many releases before the oldest one that a client has to do with are looked at where nobody says which.
_BEFORE = 5


def releases_of(text: str | None, *, pre: bool = False, offline: bool = False) -> list[str]:
    """The releases in a range such as '>=0.11', the oldest first; all of them where there is no range.

    Prereleases only where asked for. Raises DriftcheckError where the text is no range, or no release is in it.
    """
    if text is not None:
        return [name.partition("==")[2] for name in reversed(releases_in(text, offline=offline, pre=pre))]
    from driftcheck.origins.names import parsed_version

    known = offers(DEFAULT_TARGET, Settings(offline=offline))
    versions = [(offer.version, parsed_version(offer.version)) for offer in known if not offer.yanked]
    found = [text for text, version in versions if version is not None and (pre or not version.is_prerelease)]
    if not found:
        where = "in the cache, and --offline asks no index" if offline else "on the index"
        raise DriftcheckError(f"no release of {DEFAULT_TARGET} is {where}")
    return found


def matrix(
    client: str,
    releases: Sequence[str],
    *,
    chosen: bool = True,
    baseline: str | None = None,
    python: str | None = None,
    offline: bool = False,
    timeout: float | None = None,
    model: str | None = None,
    remember: bool = True,
    progress: Progress = UNWATCHED,
) -> Matrix:
    """Audits a client, named as on the command line, against each of these releases, statically.

    Where they are not `chosen` by the user, those long before the client are left out. The other arguments are as for
    `audit`. Raises DriftcheckError where the client can't be read; a release that can't be is told in its verdict.
    """
    sources = sources_of(
        client,
        against=f"{DEFAULT_TARGET}=={releases[-1]}",
        baseline=baseline,
        python=python,
        static=True,
        offline=offline,
        timeout=timeout,
        model=model,
        remember=remember,
        progress=progress,
    )
    requirement = requirement_of(sources.client, DEFAULT_TARGET)
    looked_at = list(releases) if chosen else _recent(releases, sources, requirement)
    settings = Settings(offline=offline, timeout=timeout)

    def found(version: str) -> SourceTree:
        return target_tree(f"{DEFAULT_TARGET}=={version}", settings=settings)

    with progress.task(f"Auditing {sources.client.name} on {len(looked_at)} releases", len(looked_at)) as task:
        return matrix_of(sources, looked_at, found, task)


def matrix_of(
    sources: Sources, releases: Sequence[str], found: Callable[[str], SourceTree], task: Task | None = None
) -> Matrix:
    """Audits what was found of a client against each of these releases, the oldest first.

    `found` gives a release by its version, or raises DriftcheckError; raises one itself where that is so for all.
    """
    requirement = requirement_of(sources.client, DEFAULT_TARGET)
    reports = _reports(sources, releases, found, task)
    read = [report for report in reports if isinstance(report, Report)]
    if not read:
        raise DriftcheckError(f"no release can be read: {reports[0]}")
    everywhere = frozenset.intersection(
        *(frozenset(finding.identity for finding in _severe(report)) for report in read)
    )
    verdicts = tuple(
        _verdict(version, report, requirement, everywhere if len(read) > 1 else None)
        for version, report in zip(releases, reports, strict=True)
    )
    uses_target = bool(read[-1].client.files_using_target)
    fitting = _fitting(verdicts)
    return Matrix(
        client=read[-1].client,
        target=DEFAULT_TARGET,
        baseline=read[-1].baseline,
        requirement=requirement.text if requirement is not None else None,
        releases=verdicts,
        fitting=tuple((span[0].version, span[-1].version) for span in fitting),
        bound=_bound(verdicts, fitting, sources.baseline.version if sources.baseline is not None else None)
        if uses_target
        else None,
        notices=(*sources.notices, *_notices(read, verdicts, uses_target=uses_target)),
    )


def _recent(releases: Sequence[str], sources: Sources, requirement: Requirement | None) -> list[str]:
    """The releases from a few before the oldest one that the client has to do with."""
    written_for = sources.baseline.version if sources.baseline is not None else None
    concerned = [
        place
        for place, version in enumerate(releases)
        if version == written_for
        or (requirement is not None and requirement.has_lower_bound and requirement.allows(version))
    ]
    return list(releases[max(0, min(concerned) - _BEFORE) :]) if concerned else list(releases)


def _reports(
    sources: Sources, releases: Sequence[str], found: Callable[[str], SourceTree], task: Task | None
) -> list[Report | str]:
    """The report with each release, or why there is none.

    What is not remembered is audited: the first of them here, which reads the client and its baseline for all, and of
    the others half in a second process.
    """
    reports: dict[str, Report | str] = {}
    for version in releases:
        known = _remembered(sources, version, found)
        if known is not None:
            reports[version] = known
    if task is not None:
        task.advance(len(reports))
    missing = [version for version in releases if version not in reports]
    if missing:
        one = _Releases(sources, found, Shared())
        first, *others = missing
        reports[first] = one.audited(first, processes=None)
        if task is not None:
            task.advance()
        reports.update(zip(others, shared_out(others, one.audited, task), strict=True))
    return [reports[version] for version in releases]


def _remembered(sources: Sources, version: str, found: Callable[[str], SourceTree]) -> Report | str | None:
    """What is known already of one release: the report of an earlier audit, or why there can be none."""
    try:
        return replace(sources, target=found(version)).remembered()
    except DriftcheckError as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class _Releases:
    """One client's releases in turn; what the first audit leaves is `shared` by the others."""

    sources: Sources
    found: Callable[[str], SourceTree]
    shared: Shared

    def audited(self, version: str, *, processes: int | None = 1) -> Report | str:
        """The report with one release, or why there is none; by two processes where that is left open."""
        try:
            return replace(self.sources, target=self.found(version)).audited(processes=processes, shared=self.shared)
        except DriftcheckError as error:
            return str(error)


def _severe(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.is_severe]


def _verdict(
    version: str, report: Report | str, requirement: Requirement | None, everywhere: frozenset[Identity] | None
) -> ReleaseVerdict:
    """What a release says; what the baseline has too is no break where every release has it (`everywhere`).

    What only some have is one, whichever the baseline is: it may be a guess.
    """
    is_allowed = requirement.allows(version) if requirement is not None else None
    if isinstance(report, str):
        return ReleaseVerdict(version, is_allowed=is_allowed, fault=report)
    breaks = tuple(
        finding
        for finding in _severe(report)
        if finding.is_break() or (everywhere is not None and finding.identity not in everywhere)
    )
    return ReleaseVerdict(version, breaks, len(report.findings) - len(breaks), is_allowed)


def _notices(read: Sequence[Report], verdicts: Sequence[ReleaseVerdict], *, uses_target: bool) -> Iterator[str]:
    """What has to be known to take the verdicts for what they are."""
    if not uses_target:
        yield f"no file of the client uses {DEFAULT_TARGET}"
    yield from unread(read[-1].client)
    counted = {finding.identity for verdict in verdicts for finding in verdict.breaks}
    left = [finding for finding in _severe(read[-1]) if finding.identity not in counted]
    if left:
        place = f"{left[0].location.place}: {left[0].message}"
        number = "a finding" if len(left) == 1 else f"{len(left):,} findings"
        yield f"not counted: {number} that all of these releases have ({place})"


def _fitting(verdicts: Sequence[ReleaseVerdict]) -> list[list[ReleaseVerdict]]:
    """The releases that fit, in runs; what could not be read ends no run, and begins none."""
    spans: list[list[ReleaseVerdict]] = []
    is_broken = True
    for verdict in verdicts:
        if verdict.breaks:
            is_broken = True
        elif verdict.fits:
            if is_broken:
                spans.append([])
            spans[-1].append(verdict)
            is_broken = False
    return spans


def _bound(
    verdicts: Sequence[ReleaseVerdict], fitting: Sequence[Sequence[ReleaseVerdict]], baseline: str | None
) -> str | None:
    """The requirement that allows the run around the baseline, or else the newest run, and nothing beyond."""
    if not fitting:
        return None
    span = next((span for span in fitting if any(each.version == baseline for each in span)), fitting[-1])
    after = verdicts.index(span[-1]) + 1
    following = next((each.version for each in verdicts[after:] if each.breaks), None)
    upper = f",<{following}" if following is not None else ""
    return f"{DEFAULT_TARGET}>={span[0].version}{upper}"
