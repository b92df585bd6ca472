"""What `fix` made of the findings, as text for people and as JSON for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from driftcheck.model import Finding, FixedFinding, LeftFinding, Repair
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import json_text
from driftcheck.report.layout import counted, listed, wrap


@dataclass(frozen=True, slots=True)
class Told:
    """A repair, with the patch where there is one, and where else the edits are, in words."""

    repair: Repair
    patch: bytes | None = None
    written: str = ""


_SAID = {
    "proved": "fixed",
    "unproved": "fixed, not proved",
    "unsafe": "left, an unsafe fix",
    "person": "needs a person",
}


def render_repair(repair: Repair, *, width: int = 100, written: str = "") -> str:
    """The findings by file with what became of each, and a summary; `written` says where the edits are."""
    lines: list[str] = []
    for path, entries in groupby(repair.findings, key=lambda each: each.finding.location.path):
        lines += [path, *(line for entry in entries for line in _entry(entry, width)), ""]
    lines += _summary(repair, width, written)
    return "".join(f"{harmless(line).rstrip()}\n" for line in lines)


def _entry(entry: FixedFinding, width: int) -> Iterator[str]:
    finding = entry.finding
    head = f"{finding.location.line:>5}  {_SAID[entry.status]}: "
    said = finding.message
    if entry.status in ("proved", "unproved"):
        description = finding.fix.description if finding.fix is not None else ""
        done = f"{description}; {entry.note}" if description else entry.note
    else:
        done = entry.note
    yield from _wrapped(head + said, width, " " * 7)
    yield from _wrapped(f"       = {done}", width, " " * 9)


def _wrapped(text: str, width: int, indent: str) -> Iterator[str]:
    start = text[: len(text) - len(text.lstrip())]
    first, *rest = wrap(text.lstrip(), width - len(indent), len(start) - len(indent))
    yield start + first
    yield from (indent + line for line in rest)


def _summary(repair: Repair, width: int, written: str) -> Iterator[str]:
    counts = Counter(each.status for each in repair.findings)
    # A folder has no version, and is named once.
    releases = [release for release in repair.releases if release != repair.target.name]
    target = f"{repair.target.name} {', '.join(releases)}".rstrip()
    if not repair.findings:
        yield f"Nothing to fix: {repair.client.name} fits {target}."
        return
    files = len({each.finding.location.path for each in repair.findings if each.status in ("proved", "unproved")})
    done = counts["proved"] + counts["unproved"]
    parts = [f"Fixed {done} of {counted(len(repair.findings), 'finding')}"]
    if done:
        parts[0] += f" in {counted(files, 'file')}, {counts['proved']} of them proved"
    if counts["unsafe"]:
        parts.append(f"{counts['unsafe']} more with --unsafe")
    if counts["person"]:
        parts.append(f"{counts['person']} {'needs' if counts['person'] == 1 else 'need'} a person")
    yield from _wrapped("; ".join(parts) + ".", width, "  ")
    yield from _wrapped(f"  against  {target}: {_left(repair)}", width, " " * 11)
    if written:
        yield from _wrapped(f"  edits    {written}", width, " " * 11)
    for notice in repair.notices:
        yield from _wrapped(f"  note     {notice}", width, " " * 11)


def _left(repair: Repair) -> str:
    if not repair.left:
        return "nothing is left that fails or silently does something else"
    by_release = Counter(each.release for each in repair.left)
    if len(repair.releases) == 1:
        kinds = Counter(each.finding.kind.value for each in repair.left)
        return f"{len(repair.left)} left ({', '.join(f'{number} {kind}' for kind, number in sorted(kinds.items()))})"
    return listed(f"{number} left with {release}" for release, number in by_release.items())


def render_repair_json(repairs: Sequence[Told], *, as_list: bool = False) -> str:
    """The same for programs: findings with status and note, what is left at `silent` or above, and the patch.

    Of several clients there is one object all the same, with a list under the key `repairs`.
    """
    told = [_repair(each) for each in repairs]
    content = {"schema": 1, "repairs": told} if as_list else {"schema": 1, **told[0]}
    return json_text(content)


def _repair(told: Told) -> dict[str, object]:
    repair, notices = told.repair, list(told.repair.notices)
    patch = None
    try:
        patch = told.patch.decode() if told.patch is not None else None
    except UnicodeDecodeError:
        notices.append("the patch has bytes of another encoding, which JSON can't hold: take it from --format text")
    return {
        "client": {"name": repair.client.name, "version": repair.client.version, "origin": repair.client.origin},
        "target": repair.target.name,
        "releases": list(repair.releases),
        "written": told.written or None,
        "patch": patch,
        "findings": [_finding(entry) for entry in repair.findings],
        "left": [_left_finding(each) for each in repair.left],
        "notices": notices,
    }


def _shared(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "path": finding.location.path,
        "line": finding.location.line,
        "symbol": finding.symbol,
        "parameter": finding.parameter,
        "message": finding.message,
        "rule": finding.rule,
        "fix": None
        if finding.fix is None
        else {"applicability": finding.fix.applicability, "description": finding.fix.description},
        "fingerprint": finding.fingerprint,
    }


def _finding(entry: FixedFinding) -> dict[str, object]:
    return {**_shared(entry.finding), "status": entry.status, "note": entry.note}


def _left_finding(left: LeftFinding) -> dict[str, object]:
    """A finding with both of its lines: that of the file as it was, and that of the file after the edits."""
    lines = {"line": left.line_before, "line_after": left.finding.location.line}
    return {"release": left.release, **_shared(left.finding), **lines}
