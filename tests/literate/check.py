"""What is checked of each case."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from driftcheck.model import Certainty, Finding, Report, Severity
from driftcheck.tree import MemoryTree, SourceTree
from tests.literate.assertions import ClientFile, ExpectedFinding, qualifier, read_client_file
from tests.literate.document import BASELINE, BOTH, TARGET, Case, CaseSyntaxError

Audit = Callable[[SourceTree, SourceTree, "SourceTree | None"], Report]
Render = Callable[[Report], str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as the case says; `line` is the place in the Markdown file."""

    line: int
    summary: str
    details: tuple[str, ...] = ()
    is_about_wording: bool = False


@dataclass(frozen=True, slots=True)
class _Client:
    """The client of a case, ready to be audited."""

    case: Case
    files: dict[str, ClientFile]

    def tree(self, *, backwards: bool = False) -> MemoryTree:
        items = list(self.files.items())
        order = reversed(items) if backwards else items
        return MemoryTree({path: file.text for path, file in order}, self.case.settings.client_name)

    def markdown_line(self, path: str, line: int) -> int:
        block = self.case.files.get(path)
        return self.case.line if block is None else block.line + line - 1

    def source(self, path: str, line: int) -> str:
        file = self.files.get(path)
        lines = file.text.split("\n") if file is not None else []
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def check(case: Case, audit: Audit, render: Render) -> tuple[tuple[Problem, ...], str | None]:
    """Everything that is wrong with a case, and the text report where the case has one."""
    try:
        client = _Client(case, {path: read_client_file(path, block) for path, block in case.client_blocks().items()})
    except CaseSyntaxError as error:
        return (Problem(error.line, error.message),), None
    unparsable = tuple(_unparsable(case, client))
    if unparsable:
        return unparsable, None
    report = audit(client.tree(), case.target_tree(), case.baseline_tree())
    problems = [
        *_compare_findings(client, report),
        *_compare_unresolved(client, report),
        *_check_report(client, report),
        *_check_baseline(client, audit),
    ]
    problems += _check_fix(client, report)
    again = audit(client.tree(backwards=True), case.target_tree(backwards=True), case.baseline_tree(backwards=True))
    if repr(again) != repr(report):
        problems.append(_difference(case, report, again))
    if case.report is None:
        return tuple(problems), None
    text = render(report)
    if text.rstrip("\n") != case.report.text.rstrip("\n"):
        problems.append(_report_difference(case.report.line, case.report.text, text))
    return tuple(problems), text


def _unparsable(case: Case, client: _Client) -> Iterator[Problem]:
    """Python files that don't parse although nobody said so: almost always the author's slip."""
    for path, block in case.files.items():
        if not path.endswith(".py") or path in case.settings.unparsable:
            continue
        text = client.files[path].text if path in client.files else block.text
        try:
            ast.parse(text)
        except SyntaxError as error:
            where = block.line + (error.lineno or 1) - 1
            advice = "name it in `unparsable` if that is meant"
            yield Problem(where, f"{path}:{error.lineno} does not parse ({error.msg}): {advice}")
    for path in case.settings.unparsable:
        if path not in case.files:
            yield Problem(case.line, f"`unparsable` names {path}, which the case does not have")


def _compare_findings(client: _Client, report: Report) -> Iterator[Problem]:
    expected = [finding for file in client.files.values() for finding in file.findings]
    missing, unasserted = _match(expected, report.findings)
    lines = {(each.path, each.line) for each in missing}
    lines |= {(each.location.path, each.location.line) for each in unasserted}
    for path, line in sorted(lines):
        here = [each for each in missing if (each.path, each.line) == (path, line)]
        got = [each for each in unasserted if (each.location.path, each.location.line) == (path, line)]
        summary = "another finding" if here and got else "a finding that did not come" if here else "unasserted finding"
        shown = {name for each in here for name, _ in each.qualifiers}
        yield Problem(
            client.markdown_line(path, line),
            f"{path}:{line}: {summary}",
            (
                f"code      {client.source(path, line)}",
                *(f"expected  {each}" for each in here),
                *(f"got       {_describe(each, shown)}" for each in got),
                *(() if got else ("got       nothing else on this line",)),
            ),
        )


def _compare_unresolved(client: _Client, report: Report) -> Iterator[Problem]:
    """One assertion speaks for every usage of its line that has the reason: `a.b()` is an attribute and a call."""
    expected = [each for file in client.files.values() for each in file.unresolved]
    if not expected and not client.case.settings.unresolved:
        return
    unasserted = [other for other in report.unresolved if not any(each.matches(other) for each in expected)]
    for each in expected:
        if any(each.matches(other) for other in report.unresolved):
            continue
        on_line = [other for other in unasserted if (other.path, other.line) == (each.path, each.line)]
        got = tuple(f"got       {other.usage}: {other.reason}" for other in on_line)
        yield Problem(
            client.markdown_line(each.path, each.line),
            f"{each.path}:{each.line}: a usage is not unresolved as expected",
            (
                f"code      {client.source(each.path, each.line)}",
                f"expected  {each}",
                *(got or ("got       nothing unresolved on this line",)),
            ),
        )
    for other in unasserted:
        yield Problem(
            client.markdown_line(other.path, other.line),
            f"{other.path}:{other.line}: unasserted unresolved usage",
            (f"code      {client.source(other.path, other.line)}", f"got       {other.usage}: {other.reason}"),
        )


def _check_report(client: _Client, report: Report) -> Iterator[Problem]:
    """What holds of every report, whatever it finds."""
    case = client.case
    skipped = {each.path for each in report.client.skipped}
    expected_skips = {path for path in case.settings.unparsable if not path.startswith((BASELINE, TARGET, BOTH))}
    for path in sorted(skipped ^ expected_skips):
        happened = "was skipped" if path in skipped else "was not skipped, although `unparsable` names it"
        yield Problem(client.markdown_line(path, 1), f"{path} {happened}")
    keys = [(each.location, each.kind.value) for each in report.findings]
    if keys != sorted(keys):
        yield Problem(case.line, "the findings are not sorted by place and kind")
    has_baseline = case.baseline_tree() is not None
    for finding in report.findings:
        where = client.markdown_line(finding.location.path, finding.location.line)
        place = f"{finding.location.path}:{finding.location.line}"
        if not client.source(finding.location.path, finding.location.line):
            yield Problem(where, f"{place}: a finding stands on a line that the client does not have")
        if finding.drift is not None and not has_baseline:
            yield Problem(where, f"{place}: drift is {finding.drift} without a baseline")
        if finding.certainty is Certainty.POSSIBLE and finding.severity.rank > Severity.WARNING.rank:
            yield Problem(where, f"{place}: what is only possible is at most a warning", (_describe(finding, ()),))


def _check_baseline(client: _Client, audit: Audit) -> Iterator[Problem]:
    """The client once worked: against its own baseline nothing at or above silent, unless the case says otherwise."""
    baseline = client.case.baseline_tree()
    if baseline is None:
        return
    broken = [each for each in audit(client.tree(), baseline, None).findings if each.severity.rank >= 2]
    if client.case.settings.broken_at_baseline:
        if not broken:
            yield Problem(client.case.line, "`broken-at-baseline` is set, but the client is clean against the baseline")
        return
    for each in broken:
        yield Problem(
            client.markdown_line(each.location.path, each.location.line),
            f"{each.location.path}:{each.location.line}: the client does not fit its own baseline",
            (
                f"code      {client.source(each.location.path, each.location.line)}",
                f"got       {_describe(each, ())}",
            ),
        )


def _check_fix(client: _Client, report: Report) -> Iterator[Problem]:
    """The client as it is once it is fixed: as the case says, right, and fixed for good."""
    case = client.case
    if not case.fixed and not any(each.fix is not None and each.fix.edits for each in report.findings):
        return
    files, left = _fixed(case, client.tree())
    for path, block in case.fixed.items():
        text = files.get(path, client.files[path].text)
        if text != block.text:
            yield Problem(block.line, f"{path} is another once it is fixed", tuple(_lines_changed(block.text, text)))
    for path, text in files.items():
        where = case.files[path].line
        if case.fixed and path not in case.fixed:
            details = tuple(_lines_changed(client.files[path].text, text))
            yield Problem(where, f"{path} is fixed too, and the case does not say how it is then", details)
    known = {(each.kind, each.location.path, each.symbol, each.parameter) for each in report.findings}
    for finding in left:
        if (finding.kind, finding.location.path, finding.symbol, finding.parameter) not in known:
            yield Problem(case.line, "the fix makes something else wrong", (_describe(finding, ()),))
    texts = {path: files.get(path, file.text) for path, file in client.files.items()}
    again, _ = _fixed(case, MemoryTree(texts, case.settings.client_name))
    for path in again:
        details = tuple(_lines_changed(files.get(path, ""), again[path]))
        yield Problem(case.files[path].line, f"{path} is fixed again when it is fixed already", details)


def _fixed(case: Case, client: SourceTree) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """The client's files that a fix changes, and what is at `silent` or above afterwards."""
    from driftcheck.audit import Sources
    from driftcheck.fixing import Choice, fixed

    target, baseline = case.target_tree(), case.baseline_tree()
    releases = [target, baseline] if case.settings.portable and baseline is not None else [target]
    model = case.settings.model or None
    repair, changes = fixed(
        [Sources(client, each, baseline, None, (), model, None, None) for each in releases], Choice(is_unsafe=True)
    )
    return {each.path: each.after.decode() for each in changes}, tuple(each.finding for each in repair.left)


def _lines_changed(wanted: str, got: str) -> Iterator[str]:
    yield from difflib.unified_diff(wanted.splitlines(), got.splitlines(), "expected", "got", lineterm="", n=2)


def _difference(case: Case, report: Report, again: Report) -> Problem:
    details = [
        f"{name}: {getattr(report, name)!r}\n   then: {getattr(again, name)!r}"
        for name in report.__dataclass_fields__
        if repr(getattr(report, name)) != repr(getattr(again, name))
    ]
    return Problem(case.line, "the same files in another order give another report", tuple(details))


def _report_difference(line: int, expected: str, got: str) -> Problem:
    difference = difflib.unified_diff(
        expected.rstrip("\n").split("\n"), got.rstrip("\n").split("\n"), "the case", "the audit", lineterm="", n=2
    )
    summary = "the text report reads differently (pytest --update-reports rewrites it)"
    return Problem(line, summary, tuple(difference), is_about_wording=True)


def _describe(finding: Finding, qualifiers: Iterable[str]) -> str:
    shown = [f"{name}={qualifier(finding, name)}" for name in sorted({"severity", "certainty", "drift", *qualifiers})]
    return f'[{finding.kind.value}] "{finding.message}" {" ".join(shown)}'


def _match(
    expected: Sequence[ExpectedFinding], actual: Sequence[Finding]
) -> tuple[list[ExpectedFinding], list[Finding]]:
    """Pairs the two sides one to one, as many as can be; gives what is left of either."""
    partner: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for candidate, finding in enumerate(actual):
            if candidate not in tried and expected[index].matches(finding):
                tried.add(candidate)
                if candidate not in partner or place(partner[candidate], tried):
                    partner[candidate] = index
                    return True
        return False

    missing = [each for index, each in enumerate(expected) if not place(index, set())]
    return missing, [finding for candidate, finding in enumerate(actual) if candidate not in partner]
