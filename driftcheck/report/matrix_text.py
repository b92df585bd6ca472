"""What many releases say of clients: for people as text or Markdown, for programs as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.version import Version

from driftcheck.model import Finding, Identity, Matrix, ReleaseVerdict, Severity
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import SCHEMA_VERSION, Json, brief_finding_json, json_text, origin_json
from driftcheck.report.layout import cells, counted, hanging, named, wrap

_LABEL_WIDTH = len("requires")
# Of a longer message the rest is in the other formats.
_MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring releases with which the same things break; `new` are those that did not with the one before."""

    releases: tuple[ReleaseVerdict, ...]
    new: tuple[Finding, ...]

    @property
    def first(self) -> ReleaseVerdict:
        """The oldest of them."""
        return self.releases[0]

    @property
    def span(self) -> str:
        """The releases, in words."""
        return spanned(self.first.version, self.releases[-1].version)


def runs(matrix: Matrix) -> list[Run]:
    """The releases in runs, the oldest first."""
    found: list[Run] = []
    before: frozenset[Identity] = frozenset()
    for release in matrix.releases:
        now = frozenset(finding.identity for finding in release.breaks)
        if found and now == before and release.fault is None and found[-1].first.fault is None:
            found[-1] = Run((*found[-1].releases, release), found[-1].new)
            continue
        new = tuple(finding for finding in release.breaks if finding.identity not in before)
        found.append(Run((release,), new))
        before = now
    return found


def spanned(first: str, last: str) -> str:
    """A range of releases, in words."""
    return first if first == last else f"{first} to {last}"


def numbers(release: ReleaseVerdict) -> str:
    """How a client does with a release, in words."""
    if release.fault is not None:
        return "not read"
    if release.fits:
        return "fits"
    errors = sum(finding.severity is Severity.ERROR for finding in release.breaks)
    parts = [counted(errors, "error")] if errors else []
    silent = len(release.breaks) - errors
    parts += [counted(silent, "silent failure")] if silent else []
    parts += [f"{counted(len(release.everywhere), 'error')} everywhere"] if release.everywhere else []
    return ", ".join(parts)


def verdict_word(release: ReleaseVerdict) -> str:
    """What a program is told of a release: "unread", "fits", "breaks", or "everywhere" for what all of them have."""
    if release.fault is not None:
        return "unread"
    if release.fits:
        return "fits"
    return "breaks" if release.breaks else "everywhere"


def told(run: Run) -> str:
    """Why a run is as it is: the first thing that breaks with it and not before, and how many more there are.

    Where nothing is new it is the first of what still breaks, and where nothing breaks, of what does everywhere.
    """
    first = run.first
    if first.fault is not None:
        return first.fault
    if run.new:
        return in_brief(run.new)
    if first.breaks:
        return f"some of that is right again, and still {in_brief(first.breaks)}"
    return f"in all of these releases: {in_brief(first.everywhere)}" if first.everywhere else ""


def in_brief(findings: Sequence[Finding]) -> str:
    """The first of the findings, and how many more there are."""
    more = f" (and {len(findings) - 1:,} more)" if len(findings) > 1 else ""
    return f"{findings[0].location.place}: {findings[0].message}{more}"


def conclusions(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """What follows from the whole, as (label, sentence)."""
    yield "fits", _spans(matrix.fitting) or f"none of these releases{_hindrance(matrix)}"
    if matrix.best_bound is not None:
        yield "best", f"{_spans(matrix.best)}, where nothing else breaks ({matrix.best_bound})"
    broken = "; ".join(f"{release.version}: {release.breaks[0].symbol}" for release in first_breaks(matrix))
    if broken:
        yield "breaks", f"first with {broken}"
    if matrix.baseline is None:
        yield "baseline", "none: all that is wrong counts, whether or not it was ever right"
    elif matrix.baseline.chosen is not None and matrix.baseline.version is not None:
        yield "baseline", f"{matrix.baseline.version}, {matrix.baseline.chosen}"
    if matrix.requirement is None:
        yield "requires", f"no release of {matrix.target}, as far as its metadata say"
    else:
        yield "requires", f"{matrix.requirement}: {_judged(matrix)}"
    if matrix.bound is not None:
        yield "write", f"{matrix.bound}{_edges(matrix)}"


def _spans(spans: Sequence[tuple[str, str]]) -> str:
    return ", ".join(spanned(first, last) for first, last in spans)


def _hindrance(matrix: Matrix) -> str:
    """What stands in the way of all of the releases, where something does."""
    found = [(*release.everywhere, *release.breaks) for release in matrix.releases if release.is_misfit]
    common = set.intersection(*({finding.identity for finding in findings} for findings in found))
    hindrances = [finding for finding in found[-1] if finding.identity in common]
    return f": all have {in_brief(hindrances)}" if hindrances and len(found) > 1 else ""


def _edges(matrix: Matrix) -> str:
    """What the range to be written rests on, where it goes to the edge of what was looked at."""
    assert matrix.bound is not None
    oldest, newest = matrix.releases[0].version, matrix.releases[-1].version
    edges = [f"older than {oldest}"] if matrix.bound.startswith(f"{matrix.target}>={oldest},") else []
    if "<" not in matrix.bound:
        edges = [f"older than {oldest}"] if matrix.bound == f"{matrix.target}>={oldest}" else []
        edges.append(f"newer than {newest}")
    return f" (nothing {' or '.join(edges)} was looked at)" if edges else ""


def first_breaks(matrix: Matrix) -> list[ReleaseVerdict]:
    """The release with which it breaks first after each range that fits, or after each of the best."""
    places = {release.version: place for place, release in enumerate(matrix.releases)}
    following = (matrix.releases[places[last] + 1 :] for _, last in (*matrix.fitting, *matrix.best))
    return [first for rest in following if (first := next((each for each in rest if each.breaks), None)) is not None]


def _judged(matrix: Matrix) -> str:
    """What the metadata promise, held against what was found."""
    allowed = [release.version for release in matrix.releases if release.is_allowed]
    wide, narrow = matrix.too_wide, _versions([release.version for release in matrix.too_narrow])
    if not allowed:
        return f"which allows none of these releases{f'; {narrow} would do' if narrow else ''}"
    parts = []
    if wide:
        first = wide[0]
        why = f" ({in_brief(first.breaks or first.everywhere)})" if matrix.fitting else ""
        parts.append(f"too wide, it breaks with {_some(wide, allowed)}{why}")
    if narrow:
        parts.append(f"too narrow, {narrow} would do as well")
    return "; ".join(parts) or "which is right for these releases"


def _some(releases: Sequence[ReleaseVerdict], allowed: Sequence[str]) -> str:
    """Some of the releases that the metadata allow, in words."""
    if len(releases) == 1:
        return releases[0].version
    if len(releases) == len(allowed):
        return f"all {len(releases):,} of these that it allows"
    return f"{releases[0].version} and {counted(len(releases) - 1, 'other')} that it allows"


def _versions(versions: Sequence[str]) -> str:
    most = 4
    shown = ", ".join(versions[:most])
    return f"{shown} and {len(versions) - most:,} more" if len(versions) > most else shown


def render_matrix(matrices: Sequence[Matrix], *, width: int) -> str:
    """One table a client, and what follows from it below; at the end one row a client, where there are several."""
    parts = ["".join(f"{line}\n" for line in _text(matrix, width)) for matrix in matrices]
    if len(matrices) > 1:
        parts.append("".join(f"{line}\n" for line in _overview(matrices, width)))
    return "\n".join(parts)


def overview_cells(matrix: Matrix) -> tuple[str, str, str, str]:
    """A client's row among others: its name, what fits, what it requires, and what it should."""
    client = named(matrix.client.name, matrix.client.version)
    fits = _versions([spanned(first, last) for first, last in matrix.fitting]) or "none"
    if matrix.best:
        fits += f", best {_versions([spanned(first, last) for first, last in matrix.best])}"
    bound = f"{matrix.bound}{_edges(matrix)}" if matrix.bound is not None else "nothing fits"
    return client, fits, matrix.requirement or "nothing", bound


def _overview(matrices: Sequence[Matrix], width: int) -> Iterator[str]:
    """A row a client: a mark for each release, and what fits."""
    versions = sorted({release.version for matrix in matrices for release in matrix.releases}, key=Version)
    head = f"{len(matrices)} clients on {counted(len(versions), 'release')} of {matrices[0].target}"
    used = {_mark(release) for matrix in matrices for release in matrix.releases}
    best = "~ is no worse than any, " if "~" in used else ""
    yield harmless(f"{head}, {versions[0]} to {versions[-1]}: + fits, {best}x breaks, ? not read")
    yield ""
    rows = [tuple(map(harmless, overview_cells(matrix))) for matrix in matrices]
    first = max(cells(row[0]) for row in rows)
    second = max(cells(row[1]) for row in rows)
    with_marks = first + len(versions) + second + 6 <= width
    for matrix, row in zip(matrices, rows, strict=True):
        marks = f"{_marks(matrix, versions)}  " if with_marks else ""
        yield f"  {row[0]}{' ' * (first - cells(row[0]))}  {marks}{row[1]}"


def _marks(matrix: Matrix, versions: Sequence[str]) -> str:
    """A mark for each of these releases, a space for one that was not looked at."""
    known = {release.version: release for release in matrix.releases}
    return "".join(_mark(known[version]) if version in known else " " for version in versions)


def _mark(release: ReleaseVerdict) -> str:
    if release.fault is not None:
        return "?"
    return "+" if release.fits else "~" if release.is_unbroken else "x"


def _text(matrix: Matrix, width: int) -> Iterator[str]:
    yield heading(matrix)
    yield ""
    rows = [(run.span, numbers(run.first), told(run)) for run in runs(matrix)]
    first = max(cells(span) for span, _, _ in rows)
    for span, number, why in rows:
        yield f"  {span:<{first}}  {number}"
        lines = wrap(harmless(why), max(width - first - 4, 40)) if why else []
        yield from (f"{'':{first + 4}}{line}" for line in lines[:_MOST_LINES])
    yield ""
    for label, said in (*conclusions(matrix), *(("note", notice) for notice in matrix.notices)):
        indent = _LABEL_WIDTH + 4
        yield from hanging(f"  {label:<{_LABEL_WIDTH}}  ", harmless(said), indent=indent, width=width)


def heading(matrix: Matrix) -> str:
    """The client, what it was written for, and how many releases were looked at."""
    client = matrix.client
    name = named(client.name, client.version)
    written = f", written for {matrix.baseline.version}" if matrix.baseline and matrix.baseline.version else ""
    return harmless(f"{name} on {counted(len(matrix.releases), 'release')} of {matrix.target}{written}")


def render_matrix_markdown(matrices: Sequence[Matrix]) -> str:
    """The same as Markdown: a table a client, after one of all clients where there are several."""
    parts = ["".join(f"{line}\n" for line in _markdown(matrix)) for matrix in matrices]
    if len(matrices) > 1:
        parts.insert(0, "".join(f"{line}\n" for line in _markdown_overview(matrices)))
    return "\n".join(parts)


def _markdown_overview(matrices: Sequence[Matrix]) -> Iterator[str]:
    from driftcheck.report.markdown import plain

    yield "| client | fits | requires | should require |"
    yield "| --- | --- | --- | --- |"
    for matrix in matrices:
        yield f"| {' | '.join(map(plain, overview_cells(matrix)))} |"


def _markdown(matrix: Matrix) -> Iterator[str]:
    from driftcheck.report.markdown import plain

    yield f"## {plain(heading(matrix))}"
    yield ""
    yield "| release | breaks | first of what is new |"
    yield "| --- | --- | --- |"
    for run in runs(matrix):
        mark = "**fits**" if run.first.fits else plain(numbers(run.first))
        yield f"| {plain(run.span)} | {mark} | {plain(told(run))} |"
    yield ""
    for label, said in (*conclusions(matrix), *(("note", notice) for notice in matrix.notices)):
        yield f"- {label}: {plain(said)}"


def render_matrix_json(matrices: Sequence[Matrix]) -> str:
    """The same as one object, ASCII throughout: each release with the findings that break there."""
    document: Json = {"schema": SCHEMA_VERSION, "matrices": [_json(matrix) for matrix in matrices]}
    return json_text(document)


def _json(matrix: Matrix) -> dict[str, Json]:
    return {
        "client": origin_json(matrix.client),
        "target": matrix.target,
        "baseline": matrix.baseline.version if matrix.baseline is not None else None,
        "baseline_chosen": matrix.baseline.chosen if matrix.baseline is not None else None,
        "requirement": matrix.requirement,
        "bound": matrix.bound,
        "fitting": [list(span) for span in matrix.fitting],
        "best": [list(span) for span in matrix.best],
        "best_bound": matrix.best_bound,
        "is_promise_kept": matrix.is_promise_kept,
        "too_wide": [release.version for release in matrix.too_wide],
        "too_narrow": [release.version for release in matrix.too_narrow],
        "releases": [_release(release) for release in matrix.releases],
        "notices": list(matrix.notices),
    }


def _release(release: ReleaseVerdict) -> dict[str, Json]:
    return {
        "version": release.version,
        "verdict": verdict_word(release),
        "allowed": release.is_allowed,
        "other_findings": release.others,
        "reason": release.fault,
        "breaks": [brief_finding_json(finding) for finding in release.breaks],
        "everywhere": [brief_finding_json(finding) for finding in release.everywhere],
    }
