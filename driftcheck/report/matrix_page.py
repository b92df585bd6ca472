"""What many releases say of clients, as one HTML page that needs nothing else and can be passed on."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from driftcheck.model import Evidence, Finding, Identity, Matrix, ReleaseVerdict
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import named
from driftcheck.report.matrix_text import Run, conclusions, heading, numbers, overview_cells, runs, told

_STYLE = """\
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; --quiet: #8888 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
th button { font: inherit; font-weight: 600; background: none; border: 0; padding: 0; color: inherit; cursor: pointer }
td:first-child, td:nth-child(2) { white-space: nowrap }
code { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere }
.fits { color: var(--good) } .breaks { color: var(--bad) } .unread { color: var(--quiet) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem } dt { font-weight: 600 } dd { margin: 0 }
pre { white-space: pre-wrap } summary { cursor: pointer } li { margin: .4rem 0 }
section { display: none } section:target { display: block } body:has(section:target) main { display: none }
"""
# Sorts the table whose head is pressed; a second time the other way round.
_SCRIPT = """\
for (const table of document.querySelectorAll("table")) {
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const up = button.dataset.up !== "yes";
      button.dataset.up = up ? "yes" : "no";
      const rows = [...table.tBodies[0].rows];
      const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent;
      rows.sort((a, b) => key(a).localeCompare(key(b), undefined, {numeric: true}) * (up ? 1 : -1));
      table.tBodies[0].append(...rows);
    });
  });
}
"""
_NO_EXPLANATIONS: Mapping[str, str] = {}


def render_matrix_page(matrices: Sequence[Matrix], explanations: Mapping[str, str] = _NO_EXPLANATIONS) -> str:
    """The page: an overview of the clients, then a sortable table for each with all that breaks in every release.

    Each finding has a page of its own in it, shown when its link is followed, and so has each kind of finding and each
    rule of which `explanations` has a text.
    """
    return "".join(f"{line}\n" for line in _page(matrices, explanations))


def _page(matrices: Sequence[Matrix], explanations: Mapping[str, str]) -> Iterator[str]:
    names = ", ".join(named(matrix.client.name, matrix.client.version) for matrix in matrices)
    target = matrices[0].target if matrices else ""
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    # Nothing that a name in somebody's sources says may be run, or loaded from anywhere.
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    yield "script-src 'unsafe-inline'\">"
    yield f"<title>{_text(names)} and the releases of {_text(target)}</title>"
    yield f"<style>\n{_STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield "<main>"
    if len(matrices) > 1:
        yield from _overview(matrices)
    for number, matrix in enumerate(matrices):
        yield from _client(number, matrix)
    yield "</main>"
    entries = [entry for number, matrix in enumerate(matrices) for entry in _entries(number, matrix)]
    for entry in entries:
        yield from _finding_page(entry, explanations)
    for name in sorted({name for entry in entries for name in _names(entry.finding)} & explanations.keys()):
        # Each line by itself: of a text as a whole the ends of lines would be escaped.
        lines = "\n".join(map(_text, explanations[name].splitlines()))
        yield f'<section id="about-{_text(name)}"><p><a href="#client-0">all releases</a></p>'
        yield f"<pre>{lines}</pre></section>"
    yield f"<script>\n{_SCRIPT}</script>"
    yield "</body>"
    yield "</html>"


def _overview(matrices: Sequence[Matrix]) -> Iterator[str]:
    yield f"<h1>{len(matrices)} clients of {_text(matrices[0].target)}</h1>"
    yield _head("client", "fits", "requires", "should require")
    for number, matrix in enumerate(matrices):
        name, *others = overview_cells(matrix)
        link = f'<a href="#client-{number}">{_text(name)}</a>'
        yield f"<tr><td>{link}</td>{''.join(f'<td>{_text(cell)}</td>' for cell in others)}</tr>"
    yield "</tbody></table>"


def _client(number: int, matrix: Matrix) -> Iterator[str]:
    yield f'<h2 id="client-{number}">{_text(heading(matrix))}</h2>'
    yield "<dl>"
    for label, said in (*conclusions(matrix), *(("note", notice) for notice in matrix.notices)):
        yield f"<dt>{label}</dt><dd>{_text(said)}</dd>"
    yield "</dl>"
    yield _head("release", "breaks", "first of what is new")
    pages = {entry.finding.identity: entry.anchor for entry in _entries(number, matrix)}
    for place, run in enumerate(runs(matrix)):
        yield from _row(place, run, pages)
    yield "</tbody></table>"


def _row(place: int, run: Run, pages: Mapping[Identity, str]) -> Iterator[str]:
    first = run.first
    state = "unread" if first.fault is not None else "fits" if first.fits else "breaks"
    count = -1 if first.fault is not None else len(first.breaks) + len(first.everywhere)
    yield f'<tr class="{state}"><td data-key="{place:06}">{_text(run.span)}</td>'
    yield f'<td data-key="{count:06}">{_text(numbers(first))}</td><td>'
    if first.is_misfit:
        yield f"<details><summary>{_text(told(run))}</summary><ul>"
        for finding in first.breaks:
            yield _item(finding, pages[finding.identity], "new" if finding in run.new else "")
        for finding in first.everywhere:
            yield _item(finding, pages[finding.identity], "everywhere")
        yield "</ul></details>"
    else:
        yield _text(told(run))
    yield "</td></tr>"


def _item(finding: Finding, anchor: str, mark: str) -> str:
    marked = f" <strong>{mark}</strong>" if mark else ""
    link = f'<a href="#{anchor}"><code>{_text(finding.location.place)}</code></a>'
    return f"<li>{link} {_text(finding.message + _doubt(finding))}{marked}</li>"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One finding of a client, whichever releases it breaks with: the first of these says what it is."""

    anchor: str
    client: int
    target: str
    baseline: str
    finding: Finding
    releases: tuple[ReleaseVerdict, ...]
    count: int


def _entries(number: int, matrix: Matrix) -> list[_Entry]:
    """What breaks in a client, in the order of its files."""
    broken: dict[Identity, list[ReleaseVerdict]] = {}
    first: dict[Identity, Finding] = {}
    for release in matrix.releases:
        for finding in (*release.breaks, *release.everywhere):
            first.setdefault(finding.identity, finding)
            known = broken.setdefault(finding.identity, [])
            if not known or known[-1] is not release:
                known.append(release)
    ordered = sorted(first, key=lambda identity: (first[identity].location, identity))
    return [
        _Entry(
            f"finding-{number}-{place}",
            number,
            matrix.target,
            named(matrix.target, matrix.baseline.version) if matrix.baseline is not None else "",
            first[identity],
            tuple(broken[identity]),
            len(matrix.releases),
        )
        for place, identity in enumerate(ordered)
    ]


def _finding_page(entry: _Entry, explanations: Mapping[str, str]) -> Iterator[str]:
    """All that is known of one finding, shown alone when its link is followed."""
    finding = entry.finding
    yield f'<section id="{entry.anchor}"><p><a href="#client-{entry.client}">all releases</a></p>'
    yield f"<h2>{_text(finding.message)}</h2>"
    yield "<dl>"
    versions = ", ".join(release.version for release in entry.releases)
    proof, fix = finding.evidence, finding.fix
    told_of = [
        ("kind", f"{finding.severity.value} {finding.kind.value}{_doubt(finding)}"),
        ("place", finding.location.place),
        ("code", finding.snippet),
        ("symbol", finding.symbol),
        ("raises", finding.raises or ""),
        (named(entry.target, entry.releases[0].version), _proof(finding)),
        (entry.baseline, "the same" if finding.drift is False else _earlier(proof)),
        ("rule", finding.rule or ""),
        ("fix", f"{fix.description} ({fix.applicability})" if fix is not None else ""),
        ("breaks with", f"{len(entry.releases)} of {entry.count} releases: {versions}"),
    ]
    for label, said in told_of:
        if said:
            yield f"<dt>{_text(label)}</dt><dd><code>{_text(said)}</code></dd>"
    about = [f'<a href="#about-{_text(name)}">{_text(name)}</a>' for name in _names(finding) if name in explanations]
    if about:
        yield f"<dt>more</dt><dd>what {' and '.join(about)} means</dd>"
    yield "</dl></section>"


def _names(finding: Finding) -> tuple[str, ...]:
    """What there may be an explanation of: the kind, and the rule that knows the finding."""
    return (finding.kind.value, finding.rule) if finding.rule is not None else (finding.kind.value,)


def _earlier(proof: Evidence) -> str:
    """The signature that the baseline had, where it had another."""
    return (proof.baseline_signature or "") if proof.baseline_signature != proof.signature else ""


def _doubt(finding: Finding) -> str:
    return "" if finding.certainty.value == "certain" else f" ({finding.certainty.value})"


def _proof(finding: Finding) -> str:
    """Where the release proves it, and what stands there."""
    proof = finding.evidence
    if proof.path is None:
        return ""
    line = f":{proof.line}" if proof.line is not None else ""
    return f"{proof.path}{line}{f' {proof.signature}' if proof.signature else ''}"


def _head(*names: str) -> str:
    cells = "".join(f"<th><button>{name}</button></th>" for name in names)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>"


def _text(text: str) -> str:
    """Text in which nothing is markup."""
    return html.escape(harmless(text))
