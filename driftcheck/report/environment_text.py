"""What an environment's distributions come to: one table for people, the same as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driftcheck.model import EnvironmentEntry
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import SCHEMA_VERSION, Json, json_text
from driftcheck.report.layout import cells, counted, cut
from driftcheck.report.summary import numbers

_HEADS = ("distribution", "version", "requires", "verdict")
_WIDEST_PIN = 32


def render_environment(target: str, entries: Sequence[EnvironmentEntry]) -> str:
    """A row for each distribution that uses the target, and a line that sums them up."""
    rows = [_HEADS, *(_row(entry) for entry in entries)]
    columns = [max(cells(row[index]) for row in rows) for index in range(3)]
    lines = []
    for row in rows:
        first = "  ".join(text + " " * (column - cells(text)) for text, column in zip(row[:3], columns, strict=True))
        lines.append(f"{first}  {row[3]}".rstrip())
    return "".join(f"{line}\n" for line in [*(lines if entries else ()), *_summary(target, entries, bool(entries))])


def render_environment_json(target: str, version: str | None, entries: Sequence[EnvironmentEntry]) -> str:
    """The same as one object, ASCII throughout."""
    document: Json = {
        "schema": SCHEMA_VERSION,
        "target": {"name": target, "version": version},
        "clients": [_entry(entry) for entry in entries],
    }
    return json_text(document)


def _row(entry: EnvironmentEntry) -> tuple[str, str, str, str]:
    pin = harmless("; ".join(entry.requires)) or "-"
    unmet = " (not met)" if entry.is_met is False else ""
    return harmless(entry.name), harmless(entry.version or "-"), cut(pin, _WIDEST_PIN) + unmet, _verdict(entry)


def _verdict(entry: EnvironmentEntry) -> str:
    if entry.fault is not None:
        return f"could not be checked: {harmless(entry.fault)}"
    assert entry.report is not None
    found = numbers(entry.report.findings) if entry.report.findings else ""
    if entry.is_failed:
        return f"does not fit: {found}"
    return f"fits ({found})" if found else "fits"


def _summary(target: str, entries: Sequence[EnvironmentEntry], has_table: bool) -> Iterator[str]:
    if has_table:
        yield ""
    failed = sum(entry.is_failed for entry in entries)
    unchecked = sum(entry.fault is not None for entry in entries)
    named = harmless(target)
    if not entries:
        yield f"Nothing that is installed uses {named}."
    elif not failed and not unchecked:
        yield f"{counted(len(entries), 'distribution')} that {'use' if len(entries) > 1 else 'uses'} {named}: all fit."
    else:
        bad = [f"{failed:,} {'do' if failed != 1 else 'does'} not fit"] if failed else []
        bad += [f"{unchecked:,} could not be checked"] if unchecked else []
        yield f"{counted(len(entries), 'distribution')} that {'use' if len(entries) > 1 else 'uses'} {named}: " + (
            " and ".join(bad) + "; driftcheck audit NAME says more."
        )


def _entry(entry: EnvironmentEntry) -> dict[str, Json]:
    findings = entry.report.findings if entry.report is not None else ()
    severities: dict[str, Json] = {
        severity: sum(finding.severity.value == severity for finding in findings)
        for severity in ("error", "silent", "warning", "note")
    }
    verdict = "unchecked" if entry.fault is not None else "drifted" if entry.is_failed else "fits"
    return {
        "name": entry.name,
        "version": entry.version,
        "requires": list(entry.requires),
        "requirement_met": entry.is_met,
        "verdict": verdict,
        "findings": severities,
        "reason": entry.fault,
    }
