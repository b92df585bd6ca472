"""The report as JUnit XML, which every CI service shows among its tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from driftcheck.model import Finding
from driftcheck.report.harmless import harmless
from driftcheck.report.placed import Placed, client, headline, ordered, ordered_accepted, release, told


def render_junit(reports: Sequence[Placed]) -> str:
    """A suite for each client, a test case for each finding; what would not fail the audit does not fail its case."""
    suites = [list(_cases(placed)) for placed in reports]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites {_totals(suites)}>"]
    for placed, cases in zip(reports, suites, strict=True):
        name = f"{client(placed.report)} with {release(placed.report)}"
        lines.append(f"  <testsuite name={_quoted(name)} {_counts(cases)}>")
        lines += [line for case, _ in cases for line in case]
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "".join(f"{line}\n" for line in lines)


_Case = tuple[list[str], str]
"""The lines of a test case, and how it ended: "passed", "failed" or "skipped"."""


def _totals(suites: Sequence[Sequence[_Case]]) -> str:
    return f'name="driftcheck" {_counts([case for cases in suites for case in cases])}'


def _counts(cases: Sequence[_Case]) -> str:
    ended = [how for _, how in cases]
    failures, skipped = ended.count("failed"), ended.count("skipped")
    return f'tests="{len(ended)}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'


def _cases(placed: Placed) -> Iterator[_Case]:
    report = placed.report
    for finding in ordered(report):
        text = escape("\n".join(told(report, finding)))
        if placed.fails(finding):
            kind = _quoted(f"{finding.severity.value}[{finding.kind.value}]")
            body = f"<failure message={_quoted(headline(finding))} type={kind}>{text}</failure>"
            yield _case(placed, finding, body), "failed"
        else:
            yield _case(placed, finding, f"<system-out>{text}</system-out>"), "passed"
    for entry in ordered_accepted(report):
        reason = f"{entry.how}: {harmless(entry.reason)}" if entry.reason else entry.how
        yield _case(placed, entry.finding, f"<skipped message={_quoted(reason)}/>"), "skipped"
    for file in sorted(report.client.skipped):
        name, folder = _quoted("can be read"), _quoted(placed.path(file.path))
        yield (
            [
                f'    <testcase classname={folder} name={name} file={folder} time="0">',
                f"      <skipped message={_quoted(harmless(file.reason))}/>",
                "    </testcase>",
            ],
            "skipped",
        )
    if not report.findings:
        name = _quoted(f"fits {release(report)}")
        yield [f'    <testcase classname={_quoted(harmless(report.client.name))} name={name} time="0"/>'], "passed"


def _case(placed: Placed, finding: Finding, body: str) -> list[str]:
    path = placed.path(finding.location.path)
    name = f"{finding.kind.value} {harmless(finding.symbol)} at line {finding.location.line}"
    head = f"    <testcase classname={_quoted(path)} name={_quoted(name)} file={_quoted(path)}"
    return [f'{head} line="{finding.location.line}" time="0">', f"      {body}", "    </testcase>"]


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'
