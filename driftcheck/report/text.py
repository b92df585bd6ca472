"""The report for people: by file, each finding with its place, the target's signature that proves it, and a summary."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from driftcheck.model import Certainty, Evidence, Finding, Location, Report
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import Line, Piece, cells, cut, cut_apart, cut_start, named, pack, wrap
from driftcheck.report.signature import LONGEST_SIGNATURE, Change, WrittenSignature, parse_signature, signature_changes
from driftcheck.report.summary import summary, unresolved_usages

_STYLES = {
    "error": "bold red",
    "silent": "bold magenta",
    "warning": "bold yellow",
    "note": "bold cyan",
    "good": "bold green",
    "heading": "bold",
    "path": "bold underline",
    "label": "blue",
    "gutter": "blue",
    "-": "red",
    "+": "green",
    "~": "yellow",
    ">": "yellow",
    "- at fault": "bold red",
    "+ at fault": "bold green",
    "> at fault": "bold yellow",
}
_MOST_EXCERPTS = 3
_MOST_CHANGES_DETAILED = 6
_MOST_LINES_PACKED = 2
_MOST_CHARACTERS = 400  # of a source line on either side of a place: no terminal is that wide
_NARROWEST = 40
_SENTENCE = re.compile(r".*?\.(?=\s+[A-Z]|$)")


def render_text(report: Report, *, width: int = 100, colour: bool = False, explain_unresolved: bool = False) -> str:
    """The report as text of at most `width` columns, with terminal escape codes only where `colour` is set."""
    width = max(width, _NARROWEST)
    lines = list(_findings(report, width))
    if explain_unresolved and report.unresolved:
        lines += [*unresolved_usages(report.unresolved, width), ()]
    lines += summary(report, width, explained=explain_unresolved)
    return _coloured(lines) if colour else _plain(lines)


def _plain(lines: Iterable[Line]) -> str:
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def _coloured(lines: Iterable[Line]) -> str:
    from rich.color import ColorSystem
    from rich.style import Style

    styles = {name: Style.parse(style) for name, style in _STYLES.items()}

    def piece(text: str, style: str) -> str:
        return styles[style].render(text, color_system=ColorSystem.STANDARD) if style else text

    return "".join("".join(piece(text, style) for text, style in line) + "\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _Page:
    """What stays the same from finding to finding: the room there is, the quoted sources, the names of releases."""

    width: int
    digits: int
    sources: Mapping[tuple[str, int], str]
    target: str
    baseline: str
    reasons: Mapping[str, str]

    @property
    def room(self) -> int:
        """The cells to the right of the gutter."""
        return self.width - self.digits - 4

    def gutter(self, sign: str, number: int | str = "") -> Piece:
        """The left margin: a line number, and a sign that says what stands to its right."""
        return f" {number:>{self.digits}} {sign} ", sign if sign in _STYLES else "gutter"


def _findings(report: Report, width: int) -> Iterator[Line]:
    findings = sorted(report.findings, key=lambda finding: (finding.location, finding.kind.value, finding.symbol))
    page = _Page(
        width=width,
        digits=max((len(str(finding.location.line)) for finding in findings), default=1),
        sources={(path, line): text for path, line, text in report.sources},
        target=named(report.target.name, report.target.version),
        baseline="" if report.baseline is None else named(report.baseline.name, report.baseline.version),
        reasons=dict(report.reasons),
    )
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.location.path, []).append(finding)
    for path, in_file in by_path.items():
        yield ((cut_start(harmless(path), width), "path"),)
        yield ()
        shown: set[Evidence] = set()
        for group in _same_cause(in_file):
            yield from _group(page, group, repeated=group[0].evidence in shown)
            shown.add(group[0].evidence)
            yield ()


def _same_cause(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Findings that differ in nothing but their place, which are told once."""
    groups: dict[Finding, list[Finding]] = {}
    for finding in findings:
        nowhere = replace(finding, location=Location("", 0), scope="", snippet="", fingerprint="")
        groups.setdefault(nowhere, []).append(finding)
    return groups.values()


def _group(page: _Page, group: list[Finding], *, repeated: bool) -> Iterator[Line]:
    finding = group[0]
    certainty = "" if finding.certainty is Certainty.CERTAIN else f", {finding.certainty.value}"
    head = f"{finding.severity.value}[{finding.kind.value}{certainty}]: "
    first, *others = wrap(harmless(finding.message), page.width - 4, first=len(head) - 4)
    yield ((head, finding.severity.value), (first, "heading"))
    yield from (((f"    {line}", "heading"),) for line in others)
    raises = _raises(finding)
    for place in group[:_MOST_EXCERPTS]:
        raises = yield from _excerpt(page, place, raises)
    if len(group) > _MOST_EXCERPTS:
        yield from _remark(
            page, "also at lines " + ", ".join(str(place.location.line) for place in group[_MOST_EXCERPTS:])
        )
    if raises:
        yield from _remark(page, raises)
    yield from _evidence(page, finding, repeated=repeated)
    if finding.drift is False:
        yield from _remark(page, f"the same with {page.baseline}")
    yield from _remedy(page, finding)


def _raises(finding: Finding) -> str:
    if finding.raises is None or finding.raises in finding.message:
        return ""
    return harmless(f"raises {finding.raises}")


def _excerpt(page: _Page, finding: Finding, label: str) -> Generator[Line, None, str]:
    """The source line without its indentation, carets under the place; gives back a label that doesn't fit."""
    location, style = finding.location, finding.severity.value
    source = page.sources.get((location.path, location.line))
    if source is None or not source.strip():
        yield page.gutter("|", location.line), (cut(harmless(finding.snippet), page.room), "")
        return label
    before, marked, after = _parts(source.rstrip(), location)
    if cells(before) + cells(marked) > page.room:
        before = cut_start(before, page.room // 4)
        marked = cut(marked, page.room - cells(before))
    after = cut(after, max(page.room - cells(before) - cells(marked), 1))
    yield page.gutter("|", location.line), (before + marked + after, "")
    carets = " " * cells(before) + "^" * cells(marked)
    if label and cells(carets) + 1 + cells(label) <= page.room:
        yield page.gutter("|"), (f"{carets} {label}", style)
        return ""
    yield page.gutter("|"), (carets, style)
    return label


def _parts(source: str, location: Location) -> tuple[str, str, str]:
    """The line before, within and after the place, harmless, without indentation; the place is never empty."""
    end = location.end_column - 1 if location.end_line in (0, location.line) else len(source)
    start = max(min(location.column - 1, len(source) - 1), 0)
    end = min(max(end, start + 1), len(source))
    indent = min(len(source) - len(source.lstrip()), start)
    first, last = max(indent, start - _MOST_CHARACTERS), start + _MOST_CHARACTERS
    pieces = source[first:start], source[start : min(end, last)], source[end:last]
    before, marked, after = (harmless(piece.replace("\t", "    ")) for piece in pieces)
    return before, marked, after


def _evidence(page: _Page, finding: Finding, *, repeated: bool) -> Iterator[Line]:
    evidence = finding.evidence
    place = "" if evidence.path is None else evidence.path + ("" if evidence.line is None else f":{evidence.line}")
    confirmed = f", confirmed by {evidence.confirmed_by}" if evidence.confirmed_by else ""
    if place or confirmed or evidence.signature:
        where = f"{place} in {page.target}" if place else page.target
        yield from _remark(page, where + confirmed, (f" {'':>{page.digits}}::: ", "gutter"))
    if repeated:
        return
    if evidence.signature is not None:
        yield from _signature(page, finding, evidence.signature)
    if evidence.source is not None:
        yield page.gutter("|"), (cut(harmless(evidence.source), page.room), "")


def _signature(page: _Page, finding: Finding, text: str) -> Iterator[Line]:
    """The target's signature, and line by line what the baseline's had otherwise."""
    text = harmless(text, LONGEST_SIGNATURE)
    before = finding.evidence.baseline_signature
    before = None if before is None else harmless(before, LONGEST_SIGNATURE)
    new = parse_signature(text)
    old = None if before is None else parse_signature(before)
    if new is None or (before is not None and old is None):
        if before is not None and before != text:
            yield from _replaced(page, before, text)
        else:
            yield page.gutter("|"), (cut(text, page.room), "")
        return
    changes = signature_changes(old, new)
    returns_changed = old is not None and old.returns != new.returns
    name = harmless(_callable_name(finding.symbol))
    whole = f"{name}({', '.join(parameter.text for parameter in new.parameters)}){_after(new)}"
    is_marked = any(change.mark != " " or change.parameter.bare_name == finding.parameter for change in changes)
    if cells(whole) <= page.room and not is_marked and not returns_changed:
        yield page.gutter("|"), (whole, "")
        return
    yield page.gutter("|"), (cut(f"{name}(", page.room), "")
    yield from _parameters(page, changes, finding.parameter)
    if old is not None and returns_changed:
        yield from _replaced(page, f"){_after(old)}", f"){_after(new)}")
    else:
        yield page.gutter("|"), (cut(f"){_after(new)}", page.room), "")


def _replaced(page: _Page, before: str, now: str) -> Iterator[Line]:
    """What the baseline had and what the target has in its place, the difference to be seen."""
    before, now = cut_apart(before, now, page.room)
    yield page.gutter("-"), (before, "-")
    yield page.gutter("+"), (now, "+")


def _parameters(page: _Page, changes: tuple[Change, ...], at_fault: str | None) -> Iterator[Line]:
    """What changed on lines of its own, the rest packed; where much changed only the parameter at fault stands out."""
    is_detailed = sum(change.mark != " " for change in changes) <= _MOST_CHANGES_DETAILED

    def manner(change: Change) -> tuple[str, bool]:
        is_at_fault = change.parameter.bare_name == at_fault
        mark = ">" if is_at_fault and change.mark == " " else change.mark
        return mark, is_at_fault or (is_detailed and mark != " ")

    for (mark, stands_out), group in groupby(changes, manner):
        run = list(group)
        if not stands_out:
            yield from (_parameter(page, mark, line) for line in _packed(run, page.room - 4))
            continue
        for change in run:
            text = f"{change.parameter.text},"
            if change.before is not None:
                before, text = cut_apart(f"{change.before.text},", text, page.room - 4)
                yield _parameter(page, "-", before)
            is_at_fault = change.parameter.bare_name == at_fault
            yield _parameter(page, "+" if mark == "~" else mark, text, is_at_fault=is_at_fault)


def _parameter(page: _Page, mark: str, text: str, *, is_at_fault: bool = False) -> Line:
    sign, style = ("|", "") if mark == " " else (mark, f"{mark} at fault" if is_at_fault else mark)
    return page.gutter(sign), (f"    {cut(text, page.room - 4)}", style)


def _packed(changes: list[Change], room: int) -> list[str]:
    """Parameters as written where there is room, else in outline, and of very many only the first and the last."""
    lines = pack([change.parameter.text for change in changes], room)
    if len(lines) > _MOST_LINES_PACKED or changes[0].mark != " ":
        lines = pack([change.parameter.outline for change in changes], room)
    return lines if len(lines) <= _MOST_LINES_PACKED else [lines[0], "…", lines[-1]]


def _after(signature: WrittenSignature) -> str:
    return f" {signature.returns}" if signature.returns else ""


def _callable_name(symbol: str) -> str:
    """How the symbol is called: a function by its name, a method after its class, a constructor by its class."""
    *parents, name = symbol.split(".")
    if name in ("__init__", "__new__") and parents:
        return parents[-1]
    return f"{parents[-1]}.{name}" if parents and parents[-1][:1].isupper() else name


def _remedy(page: _Page, finding: Finding) -> Iterator[Line]:
    if finding.rule is not None:
        reason = page.reasons.get(finding.rule, "")
        yield from _remark(page, f"{finding.rule}: {_first_sentence(reason)}" if reason else f"rule {finding.rule}")
    if finding.fix is not None:
        yield from _remark(page, f"fix ({finding.fix.applicability}): {finding.fix.description}")


def _first_sentence(text: str) -> str:
    """The text up to the first full stop that ends a sentence: those in `0.12.0` end none."""
    match = _SENTENCE.match(text)
    return match.group() if match is not None else text


def _remark(page: _Page, text: str, margin: Piece | None = None) -> Iterator[Line]:
    margin = margin or page.gutter("=")
    first, *others = wrap(harmless(text), page.room, first=cells(margin[0]) - page.digits - 4)
    yield margin, (first, "")
    yield from (((" " * (page.digits + 4) + line, ""),) for line in others)
