"""The command `matrix`: clients on many releases, in one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from driftcheck.audit_cli import COULD_NOT_CHECK, FINDINGS, NOTHING, add_model, asked_of_clients

if TYPE_CHECKING:
    from driftcheck.configuration import Configuration
    from driftcheck.model import Matrix
    from driftcheck.progress import Progress

MATRIX = "Holds clients against many releases and says with which they work, and what breaks first."
MATRIX_NOTES = """\
What breaks is what an audit finds at severity silent or above and the baseline
or another of the releases has right; an error in all of them is told as such.
Releases are read from the package index; the second time, what was read and
found before is used. Without --releases, those are looked at that came out
since a few before the oldest one the client has to do with.

examples:
  driftcheck matrix                                  this folder
  driftcheck matrix speculators==0.3.0 --releases '>=0.9'
  driftcheck matrix trl verl lmcache --format html --output matrix.html

exit codes:
  0  the releases that each client's metadata allow fit
  1  one of these breaks, they allow none of those looked at, or nothing fits
  2  could not check: a line on stderr says why
"""


def add_matrix(parser: argparse.ArgumentParser) -> None:
    """The arguments of `matrix`."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="the code to check, as for audit")
    releases = parser.add_argument_group("what it is held against")
    releases.add_argument("--releases", metavar="RANGE", help="the releases to look at, '>=0.11,<0.18' for example")
    releases.add_argument("--pre", action="store_true", help="look at prereleases too")
    releases.add_argument("--baseline", metavar="TARGET", help="the release the client was written for, as for audit")
    add_model(releases)
    releases.add_argument("--python", metavar="PATH", help="the interpreter that has the installed client")
    releases.add_argument("--offline", action="store_true", help="use what is installed or cached, ask no index")
    releases.add_argument(
        "--no-cache", action="store_true", help="look at everything again, even where nothing has changed"
    )
    report = parser.add_argument_group("the report")
    report.add_argument("--format", choices=("text", "json", "markdown", "html"), default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    report.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")


def run_matrix(options: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Prints the matrix of each client and gives the exit code; `complain` is told of failures."""
    from driftcheck.matrix import releases_of
    from driftcheck.output import check_output

    if options.output is not None:
        # Before the index is asked which releases there are.
        check_output(options.output)
    releases = releases_of(options.releases, pre=options.pre, offline=options.offline)
    matrices, is_complete = asked_of_clients(
        options,
        lambda client, progress: _matrix(client, releases, options, progress),
        lambda found: _rendered(found, options),
        complain,
    )
    faults = [fault for matrix in matrices for fault in _faults(matrix)]
    for fault in faults:
        complain(fault)
    if faults or not is_complete:
        return COULD_NOT_CHECK
    return NOTHING if options.exit_zero or all(matrix.is_promise_kept for matrix in matrices) else FINDINGS


def _matrix(client: str, releases: list[str], options: argparse.Namespace, progress: Progress) -> Matrix:
    from driftcheck.configuration import load_configuration
    from driftcheck.matrix import matrix

    file: Configuration = load_configuration(client)
    return matrix(
        client,
        releases,
        chosen=options.releases is not None,
        baseline=options.baseline or file.baseline,
        python=options.python or file.python,
        offline=options.offline,
        model=options.model or file.model,
        remember=not options.no_cache,
        progress=progress,
    )


def _faults(matrix: Matrix) -> Iterator[str]:
    """What to say where releases could not be read: how many, and why the first one."""
    from driftcheck.report.layout import counted

    unread = [release for release in matrix.releases if release.fault is not None]
    if unread:
        number = counted(len(unread), "release")
        yield f"{matrix.client.name}: {number} could not be read ({unread[0].version}: {unread[0].fault})"


def _explanations() -> dict[str, str]:
    """What `driftcheck explain` says of each kind of finding and each rule, by name."""
    from driftcheck.explanation import as_text, kind_explanations, rule_explanations

    entries = {**kind_explanations(), **rule_explanations()}
    return {name: "\n".join(as_text(entry)) for name, entry in entries.items()}


def _rendered(matrices: list[Matrix], options: argparse.Namespace) -> str:
    if options.format == "html":
        from driftcheck.report.matrix_page import render_matrix_page

        return render_matrix_page(matrices, _explanations())
    from driftcheck.output import columns
    from driftcheck.report.matrix_text import render_matrix, render_matrix_json, render_matrix_markdown

    if options.format == "json":
        return render_matrix_json(matrices)
    if options.format == "markdown":
        return render_matrix_markdown(matrices)
    return render_matrix(matrices, width=columns(sys.stdout if options.output is None else None))
