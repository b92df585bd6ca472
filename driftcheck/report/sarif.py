"""The report as SARIF 2.1.0, for code scanning, editors and dashboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driftcheck.model import Accepted, Finding, Kind, Location, Severity
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import Json, json_text
from driftcheck.report.placed import Meaning, Placed, ordered, ordered_accepted, release, told

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS = {Severity.ERROR: "error", Severity.SILENT: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
# What GitHub shows of a run at most; of more results it takes the worst.
_MOST_RESULTS = 5000
_MOST_CHARACTERS = 1000
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def render_sarif(reports: Sequence[Placed], meanings: Mapping[str, Meaning], version: str) -> str:
    """The reports as one log, a run for each client; `meanings` are those of all kinds, `version` is driftcheck's.

    Findings that don't count are marked as suppressed, and known ones as unchanged. The text is ASCII.
    """
    runs: list[Json] = [_run(placed, meanings, version, number) for number, placed in enumerate(reports)]
    document: Json = {"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}
    return json_text(document)


def _run(placed: Placed, meanings: Mapping[str, Meaning], version: str, number: int) -> dict[str, Json]:
    report = placed.report
    entries: list[Finding | Accepted] = [*ordered(report), *ordered_accepted(report)]
    left_out = len(entries) - _MOST_RESULTS
    if left_out > 0:
        worst = sorted(range(len(entries)), key=lambda index: -_found(entries[index]).severity.rank)
        entries = [entries[index] for index in sorted(worst[:_MOST_RESULTS])]
    used = {_found(entry).kind for entry in entries}
    kinds = [kind for kind in Kind if kind in used]
    # Two runs of one tool in one upload have to differ in their category.
    category = f"driftcheck/{number}/" if number else "driftcheck/"
    return {
        "tool": {
            "driver": {
                "name": "driftcheck",
                "semanticVersion": version,
                "rules": [_rule(kind, meanings[kind.value]) for kind in kinds],
            }
        },
        "automationDetails": {"id": category},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository, or of the client."}}},
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": _notifications(placed, max(left_out, 0))}
        ],
        "results": [_result(placed, entry, kinds) for entry in entries],
        "properties": {"client": harmless(report.client.name), "target": release(report)},
    }


def _found(entry: Finding | Accepted) -> Finding:
    return entry.finding if isinstance(entry, Accepted) else entry


def _rule(kind: Kind, meaning: Meaning) -> dict[str, Json]:
    title = meaning.title[:1].upper() + meaning.title[1:].rstrip(".") + "."
    return {
        "id": kind.value,
        "name": "".join(part.capitalize() for part in kind.value.split("-")),
        "shortDescription": {"text": title[:_MOST_CHARACTERS]},
        "fullDescription": {"text": meaning.why[:_MOST_CHARACTERS]},
        "help": {"text": meaning.page, "markdown": meaning.page},
        "properties": {"tags": ["compatibility", "api-drift"]},
    }


def _result(placed: Placed, entry: Finding | Accepted, kinds: Sequence[Kind]) -> dict[str, Json]:
    finding = _found(entry)
    report = placed.report
    first, *others = told(report, finding)
    message = first.rstrip(".") + "." + "".join(f"\n{other}" for other in others)
    result: dict[str, Json] = {
        "ruleId": finding.kind.value,
        "ruleIndex": kinds.index(finding.kind),
        "level": _LEVELS[finding.severity],
        "message": {"text": message},
        "locations": [_location(placed, finding)],
        "partialFingerprints": {"driftcheck/v1": harmless(finding.fingerprint)},
        "properties": {
            "severity": finding.severity.value,
            "certainty": finding.certainty.value,
            "symbol": harmless(finding.symbol),
            "rule": None if finding.rule is None else harmless(finding.rule),
            "drift": finding.drift,
        },
    }
    replacements = placed.replacements.get(finding.fingerprint)
    if replacements and finding.fix is not None:
        result["fixes"] = [_fix(placed, finding)]
    if report.accepted:
        known = isinstance(entry, Accepted) and entry.how == "known"
        result["baselineState"] = "unchanged" if known else "new"
        result["suppressions"] = [_suppression(entry)] if isinstance(entry, Accepted) else []
    return result


def _suppression(entry: Accepted) -> dict[str, Json]:
    kind = "external" if entry.how == "known" else "inSource"
    return {"kind": kind, "justification": harmless(entry.reason) or "known from before"}


def _location(placed: Placed, finding: Finding) -> dict[str, Json]:
    region = _region(finding.location)
    if finding.snippet:
        region["snippet"] = {"text": harmless(finding.snippet)}
    location: dict[str, Json] = {
        "physicalLocation": {"artifactLocation": _artifact(placed, finding.location.path), "region": region}
    }
    if finding.scope:
        location["logicalLocations"] = [{"fullyQualifiedName": harmless(finding.scope)}]
    return location


def _region(place: Location) -> dict[str, Json]:
    region: dict[str, Json] = {"startLine": max(place.line, 1), "startColumn": max(place.column, 1)}
    if place.end_line >= place.line and place.end_column:
        region |= {"endLine": place.end_line, "endColumn": place.end_column}
    return region


def _artifact(placed: Placed, path: str) -> dict[str, Json]:
    raw = (placed.folder + path).encode("utf-8", "surrogatepass")
    return {"uri": "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in raw), "uriBaseId": _ROOT}


def _fix(placed: Placed, finding: Finding) -> dict[str, Json]:
    assert finding.fix is not None
    by_path: dict[str, list[Json]] = {}
    for change in placed.replacements[finding.fingerprint]:
        # Whole lines, from the first column of one to the first of another; nothing is deleted where both are one.
        deleted: Json = {"startLine": change.first, "startColumn": 1, "endLine": change.end, "endColumn": 1}
        replacement: Json = {"deletedRegion": deleted, "insertedContent": {"text": change.text}}
        by_path.setdefault(change.path, []).append(replacement)
    changes: list[Json] = [
        {"artifactLocation": _artifact(placed, path), "replacements": replacements}
        for path, replacements in sorted(by_path.items())
    ]
    said = harmless(f"{finding.fix.description} ({finding.fix.applicability})")
    return {"description": {"text": said}, "artifactChanges": changes}


def _notifications(placed: Placed, left_out: int) -> list[Json]:
    found: list[Json] = [{"level": "note", "message": {"text": harmless(notice)}} for notice in placed.report.notices]
    if left_out:
        said = f"{left_out:,} more findings, none of them worse, are left out: a run shows {_MOST_RESULTS:,} at most"
        found.append({"level": "warning", "message": {"text": said}})
    for file in sorted(placed.report.client.skipped):
        found.append(
            {
                "level": "warning",
                "message": {"text": f"could not be read: {harmless(file.reason)}"},
                "locations": [{"physicalLocation": {"artifactLocation": _artifact(placed, file.path)}}],
            }
        )
    return found
