"""The end of the text report: what was found, what it was held against, what was checked and what could not be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from driftcheck.model import Count, Finding, Report, Severity, TargetSummary, Unresolved
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import Line, cells, counted, listed, named, pack, wrap

_NOUNS = {
    "imports": ("import", "imports"),
    "calls": ("call", "calls"),
    "attributes": ("attribute", "attributes"),
    "overrides": ("override", "overrides"),
    "patches": ("patch", "patches"),
    "strings": ("string", "strings"),
}
_SEVERITY_NOUNS = {
    Severity.ERROR: ("error", "errors"),
    Severity.SILENT: ("silent failure", "silent failures"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.NOTE: ("note", "notes"),
}
_MANY_FINDINGS = 10
_MOST_SKIPPED = 10
_MOST_SYMBOLS = 5
_LABEL_WIDTH = len("unresolved")


def summary(report: Report, width: int, *, explained: bool) -> Iterator[Line]:
    """The last lines of the report; `explained` says that the unresolved usages have been listed above."""
    yield from _verdict(report, width)
    client = report.client
    files = counted(client.files, "file")
    use = "none of them using" if client.files_using_target == 0 else f"{client.files_using_target:,} of them using"
    yield from _row(
        "client",
        f"{_release(client.name, client.version)}, {client.origin}: {files}, {use} {report.target.name}",
        width,
    )
    yield from _row("target", _described(report.target), width)
    if report.baseline is None:
        yield from _row("baseline", "none: drift can't be told from what was broken before", width)
    else:
        yield from _row("baseline", _described(report.baseline), width)
    yield from _usages(report, width, explained=explained)
    if report.accepted:
        yield from _row("accepted", f"{accepted_in_words(report)}, all listed by --format json", width)
    yield from _skipped(report, width)
    for notice in report.notices:
        yield from _row("note", notice, width, style="note")


def unresolved_usages(usages: tuple[Unresolved, ...], width: int) -> Iterator[Line]:
    """The usages that could not be judged, by reason, the most frequent one first, and where they are."""
    by_reason: dict[str, list[Unresolved]] = {}
    for usage in sorted(usages):
        by_reason.setdefault(usage.reason, []).append(usage)
    yield ((f"Unresolved: {counted(len(usages), 'usage')}", "heading"),)
    for reason, group in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        sorts = Counter(usage.usage for usage in group)
        names = listed(counted(number, *_nouns(sort)) for sort, number in sorted(sorts.items()))
        yield ()
        head, *others = wrap(harmless(reason), width - 2, first=cells(names))
        yield ((f"{names}: ", "heading"), (head, ""))
        yield from (((f"  {other}", ""),) for other in others)
        by_path: dict[str, Counter[int]] = {}
        for usage in group:
            by_path.setdefault(usage.path, Counter())[usage.line] += 1
        for path, lines in by_path.items():
            places = [f"{line} ({number}x)" if number > 1 else str(line) for line, number in lines.items()]
            yield from _places(harmless(path), places, width)


def _nouns(sort: str) -> tuple[str, str]:
    """The singular and plural of a sort of usage, whichever of them it is named by."""
    return next((nouns for nouns in _NOUNS.values() if sort in nouns), (harmless(sort), harmless(sort)))


def _places(path: str, places: list[str], width: int) -> Iterator[Line]:
    whole = f"  {path}: {', '.join(places)}"
    if cells(whole) <= width:
        yield ((whole, ""),)
        return
    yield ((f"  {path}:", ""),)
    packed = pack(places, width - 4)
    packed[-1] = packed[-1].removesuffix(",")
    yield from (((f"    {line}", ""),) for line in packed)


def _verdict(report: Report, width: int) -> Iterator[Line]:
    findings = report.findings
    if not findings:
        yield (("Nothing found.", "good"),)
        return
    worst = max((finding.severity for finding in findings), key=lambda severity: severity.rank)
    head = f"Found {numbers(findings)}"
    files = len({finding.location.path for finding in findings})
    first, *others = wrap(f"in {counted(files, 'file')}{_drift(report)}.", width, first=cells(head) + 1)
    yield ((f"{head} ", worst.value), (first, ""))
    yield from (((line, ""),) for line in others)
    if len(findings) > _MANY_FINDINGS:
        yield from _kinds(findings, width)


def numbers(findings: Sequence[Finding]) -> str:
    """How many findings of each severity there are, in words: `2 errors and 1 warning`."""
    by_severity = Counter(finding.severity for finding in findings)
    return listed(
        counted(by_severity[severity], *nouns) for severity, nouns in _SEVERITY_NOUNS.items() if by_severity[severity]
    )


def accepted_in_words(report: Report) -> str:
    """How many findings don't count, and why: `2 known from before, 1 suppressed in the source`; "" for none."""
    known = sum(entry.how == "known" for entry in report.accepted)
    counts = ((known, "known from before"), (len(report.accepted) - known, "suppressed in the source"))
    return ", ".join(f"{number:,} {said}" for number, said in counts if number)


def _drift(report: Report) -> str:
    """How many of the findings are drift, and how many are as old as the baseline."""
    if report.baseline is None:
        return ""
    baseline = _release(report.baseline.name, report.baseline.version)
    number = len(report.findings)
    new = sum(finding.drift is True for finding in report.findings)
    old = sum(finding.drift is False for finding in report.findings)
    if new == number:
        return f", {'not' if number == 1 else 'none of them'} there with {baseline}"
    if old == number:
        return f", {'' if number == 1 else 'all of them '}there with {baseline} too"
    return f", {old:,} of them there with {baseline} too" if old else ""


def _kinds(findings: tuple[Finding, ...], width: int) -> Iterator[Line]:
    """Of very many findings: how many there are of each kind, and the symbols that most of them are about."""
    kinds = Counter(finding.kind.value for finding in findings)
    yield from _row("kinds", ", ".join(f"{number:,} {kind}" for kind, number in _most_first(kinds)), width)
    symbols = [
        (symbol, number)
        for symbol, number in _most_first(Counter(finding.symbol for finding in findings))
        if number > 1
    ]
    for index, (symbol, number) in enumerate(symbols[:_MOST_SYMBOLS]):
        yield from _row("most often" if index == 0 else "", f"{number:,} {symbol}", width)


def _most_first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _usages(report: Report, width: int, *, explained: bool) -> Iterator[Line]:
    counts: dict[str, Count] = {sort: getattr(report.usages, sort) for sort in _NOUNS}
    checked = [counted(count.checked, *_NOUNS[sort]) for sort, count in counts.items() if count.checked]
    unresolved = [counted(count.unresolved, *_NOUNS[sort]) for sort, count in counts.items() if count.unresolved]
    yield from _row("checked", ", ".join(checked) or "nothing", width)
    if unresolved:
        hint = "" if explained else " (--explain-unresolved lists them)"
        yield from _row("unresolved", ", ".join(unresolved) + hint, width)
    else:
        # The third answer is always given: nothing left open says more than silence.
        yield from _row("unresolved", "nothing", width)


def _skipped(report: Report, width: int) -> Iterator[Line]:
    skipped = report.client.skipped
    if not skipped:
        return
    yield from _row("skipped", counted(len(skipped), "file"), width, style="warning")
    for file in skipped[:_MOST_SKIPPED]:
        yield from _row("", f"{file.path}: {file.reason}", width)
    if len(skipped) > _MOST_SKIPPED:
        yield from _row("", f"and {len(skipped) - _MOST_SKIPPED:,} more, all listed by --format json", width)


def _row(label: str, text: str, width: int, style: str = "label") -> Iterator[Line]:
    indent = _LABEL_WIDTH + 4
    first, *others = wrap(harmless(text), max(width - indent, 20))
    yield ((f"  {label:<{_LABEL_WIDTH}}  ", style), (first, ""))
    yield from (((" " * indent + line, ""),) for line in others)


def _described(target: TargetSummary) -> str:
    chosen = f" ({target.chosen})" if target.chosen else ""
    return f"{_release(target.name, target.version)}, {target.origin}{chosen}"


def _release(name: str, version: str | None) -> str:
    return harmless(named(name, version))
