"""What is ahead of a client: what a coming release breaks, then what the target says will end, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from driftcheck.assembly import completed, fingerprinted, unread
from driftcheck.audit import Sources
from driftcheck.compare.announcements import Announcements
from driftcheck.compare.deprecation import ending_release
from driftcheck.model import Finding, Kind, Report
from driftcheck.origins.names import parsed_version
from driftcheck.readings import Readings
from driftcheck.upstream import AnnouncedEnd, Forecast


def forecast_of(sources: Sources, counts: Callable[[Report], Report] = lambda report: report) -> Forecast:
    """What is ahead of the client with the target, as far as `counts` leaves it in a report.

    What was broken with the baseline already is not ahead. Raises DriftcheckError where the client can't be read.
    """
    report = counts(sources.asked(_announced))
    breaks = tuple(finding for finding in report.findings if finding.is_break())
    ending = [finding for finding in report.findings if finding.kind is Kind.DEPRECATED_USAGE]
    ends = tuple(_ends(ending, report.target.version))
    notices = (*report.notices, *unread(report.client))
    return Forecast(report.client, report.target, report.baseline, breaks, ends, notices)


def _announced(report: Report, readings: Readings) -> Report:
    """The report with what the target announces besides."""
    reading = readings.reading
    found = Announcements(reading.program, reading.judge.forwarding).findings(reading.judged)
    known = {(finding.location.path, finding.location.line) for finding in report.findings if _is_end(finding)}
    lines = {module.path: module.lines for module in reading.client.modules}
    new = [
        completed(finding, lines)
        for finding in found
        if (finding.location.path, finding.location.line) not in known
        and reading.reachability.is_reachable(finding.location.path, finding.scope)
    ]
    findings = sorted([*report.findings, *dict.fromkeys(new)], key=_order)
    return replace(report, findings=tuple(fingerprinted(findings)))


def _is_end(finding: Finding) -> bool:
    return finding.kind is Kind.DEPRECATED_USAGE


def _order(finding: Finding) -> tuple[object, ...]:
    place = finding.location
    return place.path, place.line, place.column, finding.kind.value, finding.symbol, finding.message


def _ends(findings: Sequence[Finding], version: str | None) -> Iterator[AnnouncedEnd]:
    """The ends by release, the nearest first, and at the end those without one."""
    by_release: dict[str, list[Finding]] = {}
    for finding in findings:
        release = ending_release(finding.message) or ""
        by_release.setdefault(release.removesuffix(".0") if release.count(".") > 1 else release, []).append(finding)
    own = parsed_version(version or "")
    for release in sorted(by_release, key=_numbers):
        ends_with = parsed_version(release)
        is_overdue = own is not None and ends_with is not None and ends_with.release <= own.release
        yield AnnouncedEnd(release or None, tuple(by_release[release]), is_overdue)


def _numbers(release: str) -> tuple[bool, tuple[int, ...]]:
    version = parsed_version(release)
    return version is None, version.release if version is not None else ()
