"""One client on many releases: with which it works, what breaks first, and what its metadata should say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from driftcheck.apart import shared_out
from driftcheck.assembly import unread
from driftcheck.audit import DEFAULT_TARGET, Sources, releases_in, sources_of
from driftcheck.errors import DriftcheckError
from driftcheck.model import Finding, Identity, Kind, Matrix, ReleaseVerdict, Report, Severity
from driftcheck.origins.baseline import Requirement, requirement_of
from driftcheck.origins.offers import offers
from driftcheck.origins.select import target_tree
from driftcheck.origins.settings import Settings
from driftcheck.progress import UNWATCHED, Progress, Task
from driftcheck.readings import Shared
from driftcheck.surface.program import IMPORT_ERRORS, NAME_ERRORS
from driftcheck.tree import SourceTree
from driftcheck.usage.optional_modules import OptionalModules

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
    common = _Common.of(read, sources.client)
    verdicts = tuple(
        _verdict(version, report, requirement, common) for version, report in zip(releases, reports, strict=True)
    )
    uses_target = bool(read[-1].client.files_using_target)
    unbroken = _unbroken(verdicts)
    spans = tuple((span[0].version, span[-1].version) for span in unbroken)
    bound = _bound(verdicts, unbroken, sources.baseline.version if sources.baseline is not None else None)
    has_fits = any(verdict.fits for verdict in verdicts)
    # Where all are as bad none of them is to be preferred.
    has_best = not has_fits and any(verdict.breaks for verdict in verdicts)
    return Matrix(
        client=read[-1].client,
        target=DEFAULT_TARGET,
        baseline=read[-1].baseline,
        requirement=requirement.text if requirement is not None else None,
        releases=verdicts,
        fitting=spans if has_fits else (),
        bound=bound if has_fits and uses_target else None,
        best=spans if has_best else (),
        best_bound=bound if has_best else None,
        notices=(*sources.notices, *_notices(read[-1], verdicts, common, uses_target=uses_target)),
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


@dataclass(frozen=True, slots=True)
class _Common:
    """What all releases that were read have: the findings at silent or above, and the errors among them.

    `errors` are without what the client provides for: the imports of a module that it does without. `is_compared` where
    there are several releases.
    """

    findings: frozenset[Identity]
    errors: frozenset[Identity]
    is_compared: bool

    @classmethod
    def of(cls, reports: Sequence[Report], client: SourceTree) -> _Common:
        """What these reports on a client have in common."""
        severe = [{finding.identity for finding in _severe(report)} for report in reports]
        errors = [
            {finding.identity for finding in report.findings if finding.severity is Severity.ERROR}
            for report in reports
        ]
        lasting = frozenset.intersection(*map(frozenset, errors))
        optional = OptionalModules(client)
        provided = {
            finding.identity
            for finding in reports[-1].findings
            if finding.identity in lasting and _is_provided_for(finding, optional)
        }
        return cls(frozenset.intersection(*map(frozenset, severe)), lasting - provided, len(reports) > 1)


def _is_provided_for(finding: Finding, optional: OptionalModules) -> bool:
    """True for an import that fails while its module is imported, where the client goes on without that module."""
    catching = {Kind.UNRESOLVED_MODULE: IMPORT_ERRORS, Kind.UNRESOLVED_SYMBOL: NAME_ERRORS}.get(finding.kind)
    return catching is not None and not finding.scope and optional.is_optional(finding.location.path, catching)


def _verdict(version: str, report: Report | str, requirement: Requirement | None, common: _Common) -> ReleaseVerdict:
    """What a release says; what the baseline has too is no break where every release has it.

    What only some have is one, whichever the baseline is: it may be a guess. With one release there are no others.
    """
    is_allowed = requirement.allows(version) if requirement is not None else None
    if isinstance(report, str):
        return ReleaseVerdict(version, is_allowed=is_allowed, fault=report)
    breaks: list[Finding] = []
    everywhere: list[Finding] = []
    for finding in _severe(report):
        if finding.is_break() or finding.identity not in common.findings:
            breaks.append(finding)
        elif finding.identity in common.errors:
            (everywhere if common.is_compared else breaks).append(finding)
    others = len(report.findings) - len(breaks) - len(everywhere)
    return ReleaseVerdict(version, tuple(breaks), tuple(everywhere), others, is_allowed)


def _notices(
    report: Report, verdicts: Sequence[ReleaseVerdict], common: _Common, *, uses_target: bool
) -> Iterator[str]:
    """What has to be known to take the verdicts for what they are; the report is that on the newest release."""
    if not uses_target:
        yield f"no file of the client uses {DEFAULT_TARGET}"
    yield from unread(report.client)
    counted = {finding.identity for verdict in verdicts for finding in (*verdict.breaks, *verdict.everywhere)}
    left = [finding for finding in _severe(report) if finding.identity not in counted]
    having = "all of these releases have" if common.is_compared else "the release it was written for has as well"
    provided = [finding for finding in left if finding.severity is Severity.ERROR]
    silent = [finding for finding in left if finding.severity is not Severity.ERROR]
    if provided:
        what = "a failing import" if len(provided) == 1 else f"{len(provided):,} failing imports"
        yield f"not counted: {what} that {having}, in modules that it does without{_first(provided)}"
    if silent:
        what = "a silent failure" if len(silent) == 1 else f"{len(silent):,} silent failures"
        yield f"not counted: {what} that {having}{_first(silent)}"


def _first(findings: Sequence[Finding]) -> str:
    return f" ({findings[0].location.place}: {findings[0].message})"


def _unbroken(verdicts: Sequence[ReleaseVerdict]) -> list[list[ReleaseVerdict]]:
    """The releases without a break, in runs; what could not be read ends no run, and begins none."""
    spans: list[list[ReleaseVerdict]] = []
    is_broken = True
    for verdict in verdicts:
        if verdict.breaks:
            is_broken = True
        elif verdict.is_unbroken:
            if is_broken:
                spans.append([])
            spans[-1].append(verdict)
            is_broken = False
    return spans


def _bound(
    verdicts: Sequence[ReleaseVerdict], spans: Sequence[Sequence[ReleaseVerdict]], baseline: str | None
) -> str | None:
    """The requirement that allows the run around the baseline, or else the newest run, and nothing beyond."""
    if not spans:
        return None
    span = next((span for span in spans if any(each.version == baseline for each in span)), spans[-1])
    after = verdicts.index(span[-1]) + 1
    following = next((each.version for each in verdicts[after:] if each.breaks), None)
    upper = f",<{following}" if following is not None else ""
    return f"{DEFAULT_TARGET}>={span[0].version}{upper}"
