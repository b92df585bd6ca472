"""The report for programs, to the schema in docs/report.schema.json: the same input gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from driftcheck.model import (
    Accepted,
    ClientSummary,
    Evidence,
    Finding,
    Fix,
    Report,
    Skipped,
    TargetSummary,
    Unresolved,
    UsageCounts,
)
from driftcheck.report.placed import ordered, ordered_accepted

SCHEMA_VERSION = 1

Json: TypeAlias = "bool | int | str | Sequence[Json] | dict[str, Json] | None"


def render_json(report: Report, *, explain_unresolved: bool = False) -> str:
    """The report as one object.

    The text is ASCII throughout: whatever a terminal might obey is escaped, and any encoding of stdout will do.
    """
    return json_text(_report(report, explain_unresolved=explain_unresolved))


def render_json_list(reports: Sequence[Report], *, explain_unresolved: bool = False) -> str:
    """The reports of several clients, as `render_json` writes each, under the key `reports` of one object."""
    audits = [_report(report, explain_unresolved=explain_unresolved) for report in reports]
    return json_text({"schema": SCHEMA_VERSION, "reports": audits})


def json_text(document: object) -> str:
    """A document as JSON, ASCII throughout: whatever a terminal might obey is escaped, and any encoding will do."""
    return json.dumps(document, indent=2, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"


def _report(report: Report, *, explain_unresolved: bool) -> dict[str, Json]:
    client = report.client
    document: dict[str, Json] = {
        "schema": SCHEMA_VERSION,
        "client": {
            "name": client.name,
            "version": client.version,
            "origin": client.origin,
            "files": client.files,
            "files_using_target": client.files_using_target,
        },
        "target": target_json(report.target),
        "baseline": None if report.baseline is None else target_json(report.baseline),
        "usages": _usages(report.usages),
    }
    if explain_unresolved:
        document["unresolved"] = [_unresolved(usage) for usage in sorted(report.unresolved)]
    document["skipped"] = [_skipped(file) for file in sorted(client.skipped)]
    document["notices"] = list(report.notices)
    document["findings"] = [finding_json(finding) for finding in ordered(report)]
    document["accepted"] = [_accepted(entry) for entry in ordered_accepted(report)]
    return document


def target_json(target: TargetSummary) -> dict[str, Json]:
    """A release of the target as one object."""
    return {"name": target.name, "version": target.version, "origin": target.origin, "chosen": target.chosen}


def origin_json(thing: ClientSummary | TargetSummary) -> dict[str, Json]:
    """What a client or a release is, and where it came from."""
    return {"name": thing.name, "version": thing.version, "origin": thing.origin}


def brief_finding_json(finding: Finding) -> dict[str, Json]:
    """A finding as one object, as far as a report on several releases or clients has it."""
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        "path": finding.location.path,
        "line": finding.location.line,
        "symbol": finding.symbol,
        "parameter": finding.parameter,
        "message": finding.message,
        "evidence": finding.evidence.path,
        "evidence_line": finding.evidence.line,
        "fingerprint": finding.fingerprint,
    }


def _usages(usages: UsageCounts) -> dict[str, Json]:
    counts = {
        "imports": usages.imports,
        "calls": usages.calls,
        "attributes": usages.attributes,
        "overrides": usages.overrides,
        "patches": usages.patches,
        "strings": usages.strings,
    }
    return {sort: {"checked": count.checked, "unresolved": count.unresolved} for sort, count in counts.items()}


def _unresolved(usage: Unresolved) -> dict[str, Json]:
    return {"path": usage.path, "line": usage.line, "usage": usage.usage, "reason": usage.reason}


def _skipped(file: Skipped) -> dict[str, Json]:
    return {"path": file.path, "reason": file.reason}


def finding_json(finding: Finding) -> dict[str, Json]:
    """A finding as one object."""
    place = finding.location
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        "drift": finding.drift,
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line or place.line,
        "end_column": place.end_column or place.column,
        "symbol": finding.symbol,
        "parameter": finding.parameter,
        "message": finding.message,
        "raises": finding.raises,
        "evidence": _evidence(finding.evidence),
        "rule": finding.rule,
        "fix": None if finding.fix is None else _fix(finding.fix),
        "fingerprint": finding.fingerprint,
    }


def _accepted(entry: Accepted) -> dict[str, Json]:
    return {"how": entry.how, "reason": entry.reason, "finding": finding_json(entry.finding)}


def _evidence(evidence: Evidence) -> dict[str, Json]:
    return {
        "path": evidence.path,
        "line": evidence.line,
        "signature": evidence.signature,
        "baseline_signature": evidence.baseline_signature,
        "source": evidence.source,
        "confirmed_by": evidence.confirmed_by,
    }


def _fix(fix: Fix) -> dict[str, Json]:
    return {"applicability": fix.applicability, "description": fix.description}
