"""Which commits of the target made the findings: for people as text or Markdown, for programs as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driftcheck.report.foot import markdown_foot, release_chosen
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import SCHEMA_VERSION, Json, brief_finding_json, json_text, origin_json, target_json
from driftcheck.report.layout import counted, hanging, named, sourced, wrap
from driftcheck.report.placed import headline
from driftcheck.upstream import Blame, BlamedFinding, Commit

_SHORT = 12
_INDENT = 4
# Where the target proves a finding is the matter of an audit; here it is the commit.
_OF_THE_TARGET = ("evidence", "evidence_line")


def render_blame(blame: Blame, *, width: int) -> str:
    """The commits, in the order of what they made, each with its findings below."""
    return "".join(f"{harmless(line)}\n" for line in _text(blame, width))


def _text(blame: Blame, width: int) -> Iterator[str]:
    yield from wrap(_heading(blame), width)
    for group in _groups(blame):
        yield ""
        yield from _wrapped(_made(group[0]), width, 0)
        for each in group:
            place = each.finding.location.place
            yield from _wrapped(f"{place}: {headline(each.finding)}", width, 2)
    yield ""
    yield from wrap(_end(blame), width)
    if chosen := release_chosen(blame.baseline):
        yield from _wrapped(chosen, width, 0)
    for notice in blame.notices:
        yield from _wrapped(f"note: {notice}", width, 0)


def _wrapped(text: str, width: int, first: int) -> Iterator[str]:
    return hanging(" " * first, text, indent=_INDENT, width=width, first=first - _INDENT)


def _heading(blame: Blame) -> str:
    return f"{named(blame.client.name, blame.client.version)}: {sourced(blame.baseline)} to {sourced(blame.target)}"


def _groups(blame: Blame) -> list[list[BlamedFinding]]:
    """The findings of each commit together, the commit of the earliest day first, and at the end those without one."""
    groups: dict[tuple[str, str, bool, str], list[BlamedFinding]] = {}
    for each in blame.findings:
        merge = each.merge.name if each.merge is not None else ""
        name = each.commit.name if each.commit is not None else ""
        groups.setdefault((name, merge, each.is_lost, each.reason), []).append(each)
    return sorted(groups.values(), key=lambda group: _day(group[0].commit))


def _day(commit: Commit | None) -> tuple[bool, str, str]:
    if commit is None:
        return True, "", ""
    return False, str(commit.day or ""), commit.name


def _made(each: BlamedFinding) -> str:
    """What made a finding, in words."""
    if each.commit is None:
        return f"no commit: {each.reason}"
    said = _commit(each.commit)
    if each.merge is not None:
        said += f", merged by {_commit(each.merge)}"
    return f"{said}, which the target does not have" if each.is_lost else said


def _commit(commit: Commit) -> str:
    day = f" {commit.day}" if commit.day is not None else ""
    return f"{commit.name[:_SHORT]}{day} {commit.subject}"


def _end(blame: Blame) -> str:
    made = len({each.commit.name for each in blame.findings if each.commit is not None})
    found = counted(len(blame.findings), "finding")
    others = f", {blame.others:,} there with the baseline too" if blame.others else ""
    between = f"{counted(blame.commits, 'commit')} between the two, {blame.asked:,} looked at"
    if not blame.findings:
        return f"Nothing to blame on a commit{others}; {between}."
    return f"{found} made by {counted(made, 'commit')}{others}; {between}."


def render_blame_markdown(blame: Blame) -> str:
    """The same as Markdown: a table of findings with their commits."""
    return "".join(f"{line}\n" for line in _markdown(blame))


def _markdown(blame: Blame) -> Iterator[str]:
    from driftcheck.report.markdown import code, plain

    yield f"## {plain(_heading(blame))}"
    yield ""
    if blame.findings:
        yield "| commit | where | what |"
        yield "| --- | --- | --- |"
    for group in _groups(blame):
        for each in group:
            place = code(each.finding.location.place)
            yield f"| {plain(_made(each))} | {place} | {plain(headline(each.finding))} |"
    if blame.findings:
        yield ""
    yield plain(_end(blame))
    yield from markdown_foot(blame.baseline, blame.notices)


def render_blame_json(blames: Sequence[Blame]) -> str:
    """The same as one object, ASCII throughout: each finding with its commit, named whole."""
    document: Json = {"schema": SCHEMA_VERSION, "blames": [_json(blame) for blame in blames]}
    return json_text(document)


def _json(blame: Blame) -> dict[str, Json]:
    return {
        "client": origin_json(blame.client),
        "target": target_json(blame.target),
        "baseline": target_json(blame.baseline),
        "findings": [_finding(each) for each in blame.findings],
        "other_findings": blame.others,
        "commits": blame.commits,
        "commits_looked_at": blame.asked,
        "notices": list(blame.notices),
    }


def _finding(each: BlamedFinding) -> dict[str, Json]:
    brief = brief_finding_json(each.finding)
    return {
        **{name: value for name, value in brief.items() if name not in _OF_THE_TARGET},
        "commit": None if each.commit is None else _commit_json(each.commit),
        "merge": None if each.merge is None else _commit_json(each.merge),
        "lost": each.is_lost,
        "reason": each.reason or None,
    }


def _commit_json(commit: Commit) -> dict[str, Json]:
    return {"name": commit.name, "day": None if commit.day is None else str(commit.day), "subject": commit.subject}
