"""The report as Markdown, for the summary of a job or a comment: what was found, what changed, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from driftcheck.model import Finding, Report
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import counted, cut, cut_apart
from driftcheck.report.placed import (
    Placed,
    before,
    client,
    consequence,
    headline,
    ordered,
    ordered_accepted,
    proof,
    reason,
    release,
    remedy,
)
from driftcheck.report.signature import LONGEST_SIGNATURE, Change, parse_signature, signature_changes
from driftcheck.report.summary import accepted_in_words, numbers

# GitHub takes one mebibyte of a step's summary; of a report that long nobody reads the end.
_LONGEST = 900_000
_MOST_DETAILS = 50
# Of a signature of more parameters those are left out that are as before; one that can't be taken apart is cut.
_MOST_PARAMETERS, _MOST_CHARACTERS = 60, 2000
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~&@$])")
_TICKS = re.compile(r"`+")


def render_markdown(reports: Sequence[Placed]) -> str:
    """The reports one after another, each with a table of its findings and what changed in the target below it."""
    text = "\n".join("".join(f"{line}\n" for line in _report(placed)) for placed in reports)
    if len(text) <= _LONGEST:
        return text
    whole = text[: text.rindex("\n", 0, _LONGEST)]
    return f"{whole}\n\nThe rest is left out: the report is too long to be shown here.\n"


def _report(placed: Placed) -> Iterator[str]:
    report = placed.report
    fits = "does not fit" if any(placed.fails(finding) for finding in report.findings) else "fits"
    yield f"## {plain(client(report))} {fits} {plain(release(report))}"
    yield ""
    if report.findings:
        files = counted(len({finding.location.path for finding in report.findings}), "file")
        written = f" The code was written for {plain(before(report))}." if report.baseline is not None else ""
        yield f"{numbers(report.findings)} in {files}.{written}"
        yield ""
        yield "| | where | what | what to do |"
        yield "| --- | --- | --- | --- |"
        yield from (_row(placed, finding) for finding in ordered(report))
        yield ""
        yield from _changes(report)
    else:
        yield "Nothing found."
        yield ""
    if report.accepted:
        yield "<details>"
        yield f"<summary>Accepted: {plain(accepted_in_words(report))}</summary>"
        yield ""
        for entry in ordered_accepted(report):
            place = code(f"{placed.path(entry.finding.location.path)}:{entry.finding.location.line}")
            why = f": {plain(entry.reason)}" if entry.reason else ""
            yield f"- {place} {plain(headline(entry.finding))} ({entry.how}{why})"
        yield ""
        yield "</details>"
        yield ""
    yield from _foot(placed)


def _row(placed: Placed, finding: Finding) -> str:
    what = plain(headline(finding))
    raised = consequence(finding)
    if raised:
        what += f"; {plain(raised)}"
    if finding.drift is False:
        what += f"; the same with {plain(before(placed.report))}"
    place = code(f"{placed.path(finding.location.path)}:{finding.location.line}")
    kind = f"**{finding.severity.value}** {finding.kind.value}"
    return f"| {kind} | {place} | {what} | {plain(remedy(finding)) or 'for a person'} |"


def _changes(report: Report) -> Iterator[str]:
    """What is otherwise in the target than in the baseline, each thing once."""
    seen: set[tuple[object, ...]] = set()
    details: list[list[str]] = []
    for finding in ordered(report):
        key = (finding.symbol, finding.evidence, finding.rule)
        if key in seen:
            continue
        seen.add(key)
        details.append(list(_change(report, finding)))
    details = [detail for detail in details if detail]
    if not details:
        return
    yield "<details>"
    yield f"<summary>What changed in {plain(report.target.name)}</summary>"
    for detail in details[:_MOST_DETAILS]:
        yield ""
        yield from detail
    if len(details) > _MOST_DETAILS:
        yield ""
        yield f"And {len(details) - _MOST_DETAILS:,} more."
    yield ""
    yield "</details>"
    yield ""


def _change(report: Report, finding: Finding) -> Iterator[str]:
    where, why = proof(report, finding), reason(report, finding)
    lines = list(_signature(finding))
    if not (where or why or lines):
        return
    yield f"**{code(finding.symbol)}**{f', {plain(where)}' if where else ''}"
    if why:
        yield ""
        yield plain(why)
    if lines:
        yield ""
        fence = "`" * max(3, *(len(run) + 1 for line in lines for run in [*_TICKS.findall(line), ""]))
        yield f"{fence}diff"
        yield from lines
        yield fence


def _signature(finding: Finding) -> Iterator[str]:
    evidence = finding.evidence
    if evidence.signature is None:
        if evidence.source is not None:
            yield f"  {harmless(evidence.source)}"
        return
    text, old_text = harmless(evidence.signature, LONGEST_SIGNATURE), None
    if evidence.baseline_signature is not None:
        old_text = harmless(evidence.baseline_signature, LONGEST_SIGNATURE)
    new = parse_signature(text)
    old = None if old_text is None else parse_signature(old_text)
    if new is None or (old_text is not None and old is None):
        if old_text is not None and old_text != text:
            before, now = cut_apart(old_text, text, _MOST_CHARACTERS)
            yield f"- {before}"
            yield f"+ {now}"
        else:
            yield f"  {cut(text, _MOST_CHARACTERS)}"
        return
    yield "  ("
    is_short = len(new.parameters) > _MOST_PARAMETERS
    for is_left_out, changes in groupby(signature_changes(old, new), lambda change: is_short and change.mark == " "):
        yield from ["      …"] if is_left_out else _changed(changes)
    yield f"  ) {new.returns}".rstrip()


def _changed(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        if change.before is not None:
            yield f"-     {change.before.text},"
        yield f"{'+' if change.mark == '~' else change.mark}     {change.parameter.text},"


def _foot(placed: Placed) -> Iterator[str]:
    report = placed.report
    client_ = report.client
    yield f"- client: {plain(client(report))}, {plain(client_.origin)}: {counted(client_.files, 'file')}"
    yield f"- target: {plain(release(report))}, {plain(report.target.origin)}"
    if report.baseline is None:
        yield "- baseline: none, so drift can't be told from what was broken before"
    else:
        chosen = f" ({plain(report.baseline.chosen)})" if report.baseline.chosen else ""
        yield f"- baseline: {plain(before(report))}, {plain(report.baseline.origin)}{chosen}"
    counts = [getattr(report.usages, sort) for sort in report.usages.__slots__]
    checked, unresolved = sum(count.checked for count in counts), sum(count.unresolved for count in counts)
    yield f"- checked: {counted(checked, 'use')}; unresolved: {unresolved:,}"
    for file in sorted(client_.skipped):
        yield f"- skipped: {code(placed.path(file.path))}, {plain(file.reason)}"
    for notice in report.notices:
        yield f"- note: {plain(notice)}"


def plain(text: str) -> str:
    """Text in which nothing is markup, a mention or a cell's end."""
    return _SPECIAL.sub(r"\\\1", harmless(text)).replace("://", "\\://")


def code(text: str) -> str:
    """Text as code, whatever backticks it has; a pipe would end a table's cell even there."""
    shown = harmless(text).replace("|", "\\|")
    runs = {len(run) for run in _TICKS.findall(shown)}
    fence = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    padding = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{padding}{shown}{padding}{fence}"
