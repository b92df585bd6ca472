"""The report as commands of a GitHub workflow, which become annotations beside the lines of a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from driftcheck.model import Finding, Severity
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import counted
from driftcheck.report.placed import Placed, ordered, release, told
from driftcheck.report.summary import accepted_in_words, numbers

_LEVELS = {Severity.ERROR: "error", Severity.SILENT: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
# GitHub shows so many annotations of each level of a step, and drops the others without a word.
_MOST = 10


def render_github(reports: Sequence[Placed]) -> str:
    """An annotation for each finding, the worst first, and a line for people on each client."""
    lines: list[str] = []
    shown: Counter[str] = Counter()
    left_out: list[str] = []
    found = [(placed, finding) for placed in reports for finding in ordered(placed.report)]
    for placed, finding in sorted(found, key=lambda entry: -entry[1].severity.rank):
        level = _LEVELS[finding.severity]
        shown[level] += 1
        if shown[level] <= _MOST:
            lines.append(_annotation(placed, finding, level))
        else:
            left_out.append(_line(placed, finding))
    lines += left_out
    lines += [_verdict(placed) for placed in reports]
    return "".join(f"{line}\n" for line in lines)


def _annotation(placed: Placed, finding: Finding, level: str) -> str:
    place = finding.location
    properties = {
        "file": placed.path(place.path),
        "line": str(place.line),
        "endLine": str(max(place.end_line, place.line)),
    }
    if place.end_line in (0, place.line):
        properties |= {"col": str(place.column), "endColumn": str(max(place.end_column, place.column))}
    properties["title"] = f"driftcheck {finding.kind.value}"
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{level} {written}::{_data(chr(10).join(told(placed.report, finding)))}"


def _line(placed: Placed, finding: Finding) -> str:
    """What is beyond what GitHub shows, for the log. A space in front, so that nothing in it is taken for a command."""
    first = told(placed.report, finding)[0]
    place = f"{placed.path(finding.location.path)}:{finding.location.line}"
    return f" {place}: {finding.severity.value}[{finding.kind.value}]: {first}"


def _verdict(placed: Placed) -> str:
    report = placed.report
    fits = f"{harmless(report.client.name)}, held against {release(report)}"
    said = f"found {numbers(report.findings)}" if report.findings else "nothing found"
    accepted = f"; accepted: {accepted_in_words(report)}" if report.accepted else ""
    skipped = f"; {counted(len(report.client.skipped), 'file')} could not be read" if report.client.skipped else ""
    return f" {fits}: {said}{accepted}{skipped}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
