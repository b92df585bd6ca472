"""The report as GitLab's code quality JSON, which a merge request shows beside its lines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from driftcheck.model import Finding, Severity
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import Json, json_text
from driftcheck.report.placed import Placed, ordered, told

_SEVERITIES = {
    Severity.ERROR: "critical",
    Severity.SILENT: "major",
    Severity.WARNING: "minor",
    Severity.NOTE: "info",
}


def render_gitlab(reports: Sequence[Placed]) -> str:
    """One issue for each finding that counts; GitLab has no mark for one that doesn't."""
    seen: set[str] = set()
    issues: list[Json] = [_issue(placed, finding, seen) for placed in reports for finding in ordered(placed.report)]
    return json_text(issues)


def _issue(placed: Placed, finding: Finding, seen: set[str]) -> dict[str, Json]:
    place = finding.location
    return {
        "description": "; ".join(told(placed.report, finding)),
        "check_name": f"driftcheck/{finding.kind.value}",
        "fingerprint": _fingerprint(placed, finding, seen),
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": placed.path(place.path),
            "lines": {"begin": max(place.line, 1), "end": max(place.end_line, place.line, 1)},
        },
    }


def _fingerprint(placed: Placed, finding: Finding, seen: set[str]) -> str:
    """Unlike every other in the file, since GitLab shows only the first issue of those with the same one."""
    text = f"{placed.folder}\0{harmless(placed.report.client.name)}\0{harmless(finding.fingerprint)}"
    number = 1
    while (fingerprint := hashlib.sha256(f"{text}\0{number}".encode()).hexdigest()[:32]) in seen:
        number += 1
    seen.add(fingerprint)
    return fingerprint
