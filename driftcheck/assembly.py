"""From findings to the report: what each quotes, and what it is known by."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

from driftcheck.model import ClientSummary, Finding, Kind, TargetSummary
from driftcheck.origins.names import is_older
from driftcheck.usage.files import Lines


def without_consequences(findings: list[Finding]) -> list[Finding]:
    """The findings without what `super()` lacks in an override that is reported as one that nobody calls any more."""
    dead = {
        (finding.location.path, finding.scope, finding.symbol.rpartition(".")[2])
        for finding in findings
        if finding.kind is Kind.DEAD_OVERRIDE
    }
    return [found for found in findings if found.kind is not Kind.UNRESOLVED_ATTRIBUTE or not _is_within(found, dead)]


def _is_within(finding: Finding, dead: set[tuple[str, str, str]]) -> bool:
    class_, _, method = finding.scope.rpartition(".")
    is_own_name = finding.symbol.rpartition(".")[2] == method
    return is_own_name and finding.message.startswith("super() of ") and (finding.location.path, class_, method) in dead


def completed(finding: Finding, lines: Lines) -> Finding:
    """The finding with the source line it stands on."""
    line = _line(finding.location.path, finding.location.line, lines)
    return replace(finding, snippet=line.strip())


def fingerprinted(findings: list[Finding]) -> list[Finding]:
    """The findings with fingerprints that don't depend on line numbers; equal ones are numbered."""
    seen: Counter[str] = Counter()
    numbered: list[Finding] = []
    for finding in findings:
        parts = (
            finding.kind.value,
            finding.location.path,
            finding.scope,
            finding.symbol,
            finding.parameter or "",
            finding.snippet,
        )
        base = "\0".join(parts)
        seen[base] += 1
        text = base if seen[base] == 1 else f"{base}\0{seen[base]}"
        numbered.append(
            replace(finding, fingerprint=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16])
        )
    return numbered


def _line(path: str, line: int, lines: Lines) -> str:
    known = lines.get(path, [])
    return known[line - 1] if 0 < line <= len(known) else ""


def unread(client: ClientSummary) -> tuple[str, ...]:
    """The notice that files of the client could not be read, for what does not list them; none where all could be."""
    skipped = sorted(client.skipped)
    if not skipped:
        return ()
    number = "a file" if len(skipped) == 1 else f"{len(skipped):,} files"
    return (f"not checked: {number} that can't be read ({skipped[0].path}: {skipped[0].reason})",)


def backwards(before: TargetSummary, after: TargetSummary) -> tuple[str, ...]:
    """The notice that a way between two releases leads back to an older one, which may be meant; none where not."""
    return (going_back(before.version, after.version),) if is_older(after.version, before.version) else ()


def going_back(before: str | None, after: str | None) -> str:
    """The notice itself, of two releases or refs by their names."""
    return f"{after} is older than {before}: this is what going back means"


def quoted(findings: list[Finding], lines: Lines) -> list[tuple[str, int, str]]:
    """The source lines that a report on the findings quotes, as (path, line, text)."""
    places = {(finding.location.path, line) for finding in findings for line in _shown_lines(finding)}
    return sorted((path, line, _line(path, line, lines)) for path, line in places)


def _shown_lines(finding: Finding) -> range:
    place = finding.location
    return range(place.line, min(max(place.end_line, place.line), place.line + 5) + 1)
