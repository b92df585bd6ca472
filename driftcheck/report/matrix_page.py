"""What many releases say of clients, as one HTML page that needs nothing else and can be passed on."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from driftcheck.model import Finding, Matrix
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import named
from driftcheck.report.matrix_text import Run, conclusions, heading, numbers, runs, told

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
summary { cursor: pointer } li { margin: .4rem 0 } .where { color: var(--quiet) }
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


def render_matrix_page(matrices: Sequence[Matrix]) -> str:
    """The page: an overview of the clients, then a sortable table for each with all that breaks in every release."""
    return "".join(f"{line}\n" for line in _page(matrices))


def _page(matrices: Sequence[Matrix]) -> Iterator[str]:
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
    if len(matrices) > 1:
        yield from _overview(matrices)
    for number, matrix in enumerate(matrices):
        yield from _client(number, matrix)
    yield f"<script>\n{_SCRIPT}</script>"
    yield "</body>"
    yield "</html>"


def _overview(matrices: Sequence[Matrix]) -> Iterator[str]:
    yield f"<h1>{len(matrices)} clients of {_text(matrices[0].target)}</h1>"
    yield _head("client", "fits", "requires", "should require")
    for number, matrix in enumerate(matrices):
        said = dict(conclusions(matrix))
        cells = (said["fits"], matrix.requirement or "nothing", matrix.bound or "nothing fits")
        link = f'<a href="#client-{number}">{_text(named(matrix.client.name, matrix.client.version))}</a>'
        yield f"<tr><td>{link}</td>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"
    yield "</tbody></table>"


def _client(number: int, matrix: Matrix) -> Iterator[str]:
    yield f'<h2 id="client-{number}">{_text(heading(matrix))}</h2>'
    yield "<dl>"
    for label, said in (*conclusions(matrix), *(("note", notice) for notice in matrix.notices)):
        yield f"<dt>{label}</dt><dd>{_text(said)}</dd>"
    yield "</dl>"
    yield _head("release", "breaks", "first of what is new")
    for place, run in enumerate(runs(matrix)):
        yield from _row(place, run)
    yield "</tbody></table>"


def _row(place: int, run: Run) -> Iterator[str]:
    first = run.first
    state = "unread" if first.fault is not None else "fits" if first.fits else "breaks"
    count = -1 if first.fault is not None else len(first.breaks)
    yield f'<tr class="{state}"><td data-key="{place:06}">{_text(run.span)}</td>'
    yield f'<td data-key="{count:06}">{_text(numbers(first))}</td><td>'
    if first.breaks:
        yield f"<details><summary>{_text(told(run))}</summary><ul>"
        for finding in first.breaks:
            yield from _finding(finding, is_new=finding in run.new)
        yield "</ul></details>"
    else:
        yield _text(told(run))
    yield "</td></tr>"


def _finding(finding: Finding, *, is_new: bool) -> Iterator[str]:
    place = f"{finding.location.path}:{finding.location.line}"
    new = " <strong>new</strong>" if is_new else ""
    doubt = "" if finding.certainty.value == "certain" else f" ({finding.certainty.value})"
    kind = f"{finding.severity.value} {finding.kind.value}"
    yield f"<li><code>{_text(place)}</code> {_text(finding.message + doubt)}{new}"
    if finding.snippet:
        yield f"<br><code>{_text(finding.snippet)}</code>"
    proof = finding.evidence.path
    if proof is not None:
        line = f":{finding.evidence.line}" if finding.evidence.line is not None else ""
        yield f'<br><span class="where">{_text(kind)}, {_text(proof + line)}</span>'
    yield "</li>"


def _head(*names: str) -> str:
    cells = "".join(f"<th><button>{name}</button></th>" for name in names)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>"


def _text(text: str) -> str:
    """Text in which nothing is markup."""
    return html.escape(harmless(text))
