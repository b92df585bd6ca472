"""What formats for services are made from: a report, and where in the repository its client stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driftcheck.model import Accepted, Certainty, Finding, Replacement, Report, Severity
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import named


@dataclass(frozen=True, slots=True)
class Placed:
    """A report with what a service needs besides.

    `folder` leads from the repository's root to the client's, "" or ending with a slash. `fail_on` is the least
    severity that fails the audit. `replacements` says what the fix of a finding comes to, by its fingerprint.
    """

    report: Report
    folder: str = ""
    fail_on: Severity = Severity.SILENT
    replacements: Mapping[str, Sequence[Replacement]] = field(default_factory=dict)

    def path(self, path: str) -> str:
        """A path of the client's, from the repository's root."""
        return harmless(self.folder + path)

    def fails(self, finding: Finding) -> bool:
        """True where the finding alone would fail the audit."""
        return finding.severity.rank >= self.fail_on.rank


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a kind of finding means: a line, a paragraph, and a whole page of Markdown."""

    title: str
    why: str
    page: str


def ordered(report: Report) -> list[Finding]:
    """The findings by place, whichever order they came in."""
    return sorted(report.findings, key=_order)


def ordered_accepted(report: Report) -> list[Accepted]:
    """The findings that don't count, by place."""
    return sorted(report.accepted, key=lambda entry: _order(entry.finding))


def _order(finding: Finding) -> tuple[object, ...]:
    return (
        finding.location,
        finding.kind.value,
        finding.symbol,
        finding.parameter or "",
        finding.message,
        finding.fingerprint,
    )


def headline(finding: Finding) -> str:
    """The finding in a sentence, with how sure it is where that is less than certain."""
    doubt = "" if finding.certainty is Certainty.CERTAIN else f" ({finding.certainty.value})"
    return harmless(finding.message) + doubt


def consequence(finding: Finding) -> str:
    """What it comes to when the line runs, "" where the message says it."""
    if finding.raises is None or finding.raises in finding.message:
        return ""
    return f"raises {harmless(finding.raises)}"


def proof(report: Report, finding: Finding) -> str:
    """The place in the target that proves the finding, "" where there is none."""
    evidence = finding.evidence
    if evidence.path is None:
        return ""
    line = "" if evidence.line is None else f":{evidence.line}"
    confirmed = f", confirmed by {evidence.confirmed_by}" if evidence.confirmed_by else ""
    return harmless(f"{evidence.path}{line} in {release(report)}{confirmed}")


def remedy(finding: Finding) -> str:
    """What repairs it and how far that can be trusted, "" where nothing is known."""
    return "" if finding.fix is None else harmless(f"fix ({finding.fix.applicability}): {finding.fix.description}")


def reason(report: Report, finding: Finding) -> str:
    """The rule that knows the finding, with what it says of why; "" without a rule."""
    if finding.rule is None:
        return ""
    said = dict(report.reasons).get(finding.rule, "")
    return harmless(f"{finding.rule}: {said}" if said else f"rule {finding.rule}")


def told(report: Report, finding: Finding) -> list[str]:
    """All of a finding in lines, the headline first."""
    age = f"the same with {before(report)}" if finding.drift is False and report.baseline is not None else ""
    parts = (
        headline(finding),
        consequence(finding),
        proof(report, finding),
        age,
        reason(report, finding),
        remedy(finding),
    )
    return [part for part in parts if part]


def release(report: Report) -> str:
    """The target and its release: `vllm 0.16.0`."""
    return _named(report.target.name, report.target.version)


def before(report: Report) -> str:
    """The baseline and its release, "" without one."""
    return "" if report.baseline is None else _named(report.baseline.name, report.baseline.version)


def client(report: Report) -> str:
    """The client and its version."""
    return _named(report.client.name, report.client.version)


def _named(name: str, version: str | None) -> str:
    return harmless(named(name, version))
