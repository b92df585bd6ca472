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
    parts += [f"{len(release.breaks) - errors:,} silent"] if len(release.breaks) > errors else []
    return ", ".join(parts)


def told(run: Run) -> str:
    """Why a run is as it is: the first thing that breaks with it and not before, and how many more there are."""
    if run.first.fault is not None:
        return run.first.fault
    if run.first.fits:
        return ""
    if not run.new:
        return "some of that is right again"
    finding = run.new[0]
    more = f" (and {len(run.new) - 1:,} more)" if len(run.new) > 1 else ""
    return f"{finding.location.place}: {finding.message}{more}"


def conclusions(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """What follows from the whole, as (label, sentence)."""
    spans = [spanned(first, last) for first, last in matrix.fitting]
    yield "fits", ", ".join(spans) if spans else "none of these releases"
    broken = "; ".join(f"{release.version}: {release.breaks[0].symbol}" for release in first_breaks(matrix))
    if broken:
        yield "breaks", f"first with {broken}"
    if matrix.requirement is None:
        yield "requires", f"no release of {matrix.target}, as far as its metadata say"
    else:
        yield "requires", f"{matrix.requirement}: {_judged(matrix)}"
    if matrix.bound is not None:
        yield "write", f"{matrix.bound}{_edges(matrix)}"


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
    """The release with which it breaks first after each range that fits."""
    places = {release.version: place for place, release in enumerate(matrix.releases)}
    following = (matrix.releases[places[last] + 1 :] for _, last in matrix.fitting)
    return [first for rest in following if (first := next((each for each in rest if each.breaks), None)) is not None]


def _judged(matrix: Matrix) -> str:
    """What the metadata promise, held against what was found."""
    parts = []
    wide, narrow = matrix.too_wide, matrix.too_narrow
    if wide:
        first = wide[0]
        finding = first.breaks[0]
        place = finding.location.place
        others = f" and {counted(len(wide) - 1, 'other')} that it allows" if len(wide) > 1 else ""
        parts.append(f"too wide, it breaks with {first.version}{others} ({place}: {finding.message})")
    if narrow:
        parts.append(f"too narrow, {_versions([release.version for release in narrow])} would do as well")
    if not parts:
        is_there = any(release.is_allowed for release in matrix.releases)
        parts.append("which is right for these releases" if is_there else "which allows none of these releases")
    return "; ".join(parts)


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
    return client, fits, matrix.requirement or "nothing", matrix.bound or "nothing fits"


def _overview(matrices: Sequence[Matrix], width: int) -> Iterator[str]:
    """A row a client: a mark for each release, and what fits."""
    versions = sorted({release.version for matrix in matrices for release in matrix.releases}, key=Version)
    head = f"{len(matrices)} clients on {counted(len(versions), 'release')} of {matrices[0].target}"
    yield harmless(f"{head}, {versions[0]} to {versions[-1]}: + fits, x breaks, ? not read")
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
    return "?" if release.fault is not None else "+" if release.fits else "x"


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
    yield "| release | | first break |"
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
        "requirement": matrix.requirement,
        "bound": matrix.bound,
        "fitting": [list(span) for span in matrix.fitting],
        "too_wide": [release.version for release in matrix.too_wide],
        "too_narrow": [release.version for release in matrix.too_narrow],
        "releases": [_release(release) for release in matrix.releases],
        "notices": list(matrix.notices),
    }


def _release(release: ReleaseVerdict) -> dict[str, Json]:
    verdict = "unread" if release.fault is not None else "fits" if release.fits else "breaks"
    return {
        "version": release.version,
        "verdict": verdict,
        "allowed": release.is_allowed,
        "other_findings": release.others,
        "reason": release.fault,
        "breaks": [brief_finding_json(finding) for finding in release.breaks],
    }
