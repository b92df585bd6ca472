"""Which findings of an audit count: as the client's comments, the known ones and the user's options say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from driftcheck.configuration import nearest
from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import rules_folder
from driftcheck.known_findings import Entry, entry_of, matched
from driftcheck.model import Accepted, Finding, Kind, Report, Suppression


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user asks for; None where it doesn't matter.

    `exclude` are patterns of paths, `changed` the only paths whose findings are wanted.
    """

    select: frozenset[Kind] | None = None
    ignore: frozenset[Kind] | None = None
    exclude: tuple[str, ...] = ()
    new_only: bool = False
    changed: frozenset[str] | None = None
    notices: tuple[str, ...] = ()


def selected(report: Report, selection: Selection) -> Report:
    """The report with the findings that are asked for, and notices that count the others.

    Raises DriftcheckError where only what is new is asked for, and nothing tells what that is.
    """
    if selection.new_only and report.baseline is None:
        raise DriftcheckError(
            f"{report.client.name}: what is new can't be told without a baseline; name one with --baseline"
        )
    notices: tuple[str, ...] = ()
    kept, left_out = [], Counter[str]()
    for finding in report.findings:
        why = _left_out(finding, selection)
        if why is None:
            kept.append(finding)
        elif why:
            left_out[why] += 1
    by_kind = ", ".join(f"{number} {kind}" for kind, number in sorted(left_out.items()) if kind in _KINDS)
    if by_kind:
        notices += (f"left out by --select or --ignore, or the same in pyproject.toml: {by_kind}",)
    for why in (_OLD, _UNCHANGED):
        if left_out[why]:
            notices += (f"left out: {left_out[why]:,} {why}",)
    client = report.client
    return replace(
        report,
        findings=tuple(kept),
        accepted=tuple(entry for entry in report.accepted if _left_out(entry.finding, selection) is None),
        unresolved=tuple(usage for usage in report.unresolved if not is_excluded(usage.path, selection.exclude)),
        client=replace(
            client, skipped=tuple(file for file in client.skipped if not is_excluded(file.path, selection.exclude))
        ),
        notices=report.notices + selection.notices + notices,
    )


_KINDS = frozenset(kind.value for kind in Kind)
_OLD = "that were found with the baseline too (--new-only)"
_UNCHANGED = "in files that have not changed (--diff-base)"


def _left_out(finding: Finding, selection: Selection) -> str | None:
    """Why a finding is left out, "" where that is not worth a word; None where it is kept."""
    path = finding.location.path
    if is_excluded(path, selection.exclude):
        return ""
    is_chosen = selection.select is None or finding.kind in selection.select
    if not is_chosen or (selection.ignore is not None and finding.kind in selection.ignore):
        return finding.kind.value
    if selection.new_only and finding.drift is not True:
        return _OLD
    return _UNCHANGED if selection.changed is not None and path not in selection.changed else None


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """True where a pattern fits the path or a folder above it; one without a slash fits any part of the path."""
    parts = path.split("/")
    above = ["/".join(parts[: number + 1]) for number in range(len(parts))]
    return any(
        any(fnmatchcase(name, pattern.strip("/")) for name in (above if "/" in pattern.strip("/") else parts))
        for pattern in patterns
    )


def suppressed(report: Report) -> Report:
    """The report with the findings accepted that the client's comments suppress, and notices on those comments."""
    by_path: dict[str, list[Suppression]] = {}
    for suppression in report.suppressions:
        by_path.setdefault(suppression.path, []).append(suppression)
    used: set[tuple[Suppression, str]] = set()
    kept: list[Finding] = []
    accepted: list[Accepted] = []
    for finding in report.findings:
        for suppression in by_path.get(finding.location.path, ()):
            name = _named(finding, suppression)
            if name is not None:
                used.add((suppression, name))
                accepted.append(Accepted(finding, "suppressed", suppression.reason))
                break
        else:
            kept.append(finding)
    skipped = {file.path for file in report.client.skipped}
    notices = tuple(
        notice
        for suppression in sorted(report.suppressions, key=lambda each: (each.path, each.line))
        for notice in _complaints(suppression, used, report)
        if suppression.path not in skipped
    )
    return replace(
        report,
        findings=tuple(kept),
        accepted=(*report.accepted, *accepted),
        notices=report.notices + notices,
    )


def _named(finding: Finding, suppression: Suppression) -> str | None:
    """The name by which a suppression takes a finding out, None where it does not."""
    if suppression.fault is not None or not suppression.first <= finding.location.line <= suppression.last:
        return None
    return next((name for name in suppression.names if name in (finding.kind.value, finding.rule)), None)


def _complaints(suppression: Suppression, used: set[tuple[Suppression, str]], report: Report) -> list[str]:
    place = f"{suppression.path}:{suppression.line}"
    if suppression.fault is not None:
        return [f"the comment at {place} is not followed: {suppression.fault}"]
    unused = [name for name in suppression.names if (suppression, name) not in used]
    if not unused:
        return []
    known = sorted(_KINDS | {file.stem for file in rules_folder().glob("*/*.toml")})
    unheard = [name for name in unused if name not in known]
    if unheard:
        return [f"the comment at {place}: unknown kind of finding {name!r}{nearest(name, known)}" for name in unheard]
    target = f"{report.target.name} {report.target.version}" if report.target.version else report.target.name
    return [f"unused: ignore[{', '.join(unused)}] at {place} suppresses nothing with {target}; take it out"]


def without_known(
    report: Report, entries: Sequence[Entry], name: str, exists: Callable[[str], bool]
) -> tuple[Report, list[Entry]]:
    """The report with the known findings accepted, and the entries of this client's that were not found again.

    `name` is the file's, `exists` says which paths of the client are there. Entries for files that could not be read
    are not given up, nor are any where only another part of the client was looked at.
    """
    own = [entry for entry in entries if entry.client == report.client.name]
    known, gone = matched(own, [entry_of(report, finding) for finding in report.findings], exists)
    accepted = [Accepted(finding, "known", name) for index, finding in enumerate(report.findings) if index in known]
    kept = tuple(finding for index, finding in enumerate(report.findings) if index not in known)
    skipped = {file.path for file in report.client.skipped}
    # Where none of their files is there, this is a part of what the file was written for.
    is_whole = any(exists(entry.path) for entry in own)
    left = [entry for entry in gone if is_whole and entry.path not in skipped]
    return replace(report, findings=kept, accepted=(*report.accepted, *accepted)), left
