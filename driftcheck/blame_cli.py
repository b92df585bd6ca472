"""The command `blame`: which commits of the target broke clients."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from driftcheck.audit_cli import (
    COULD_NOT_CHECK,
    NOTHING,
    add_model,
    asked_of_clients,
    counting,
    selection_of,
    settings_of,
)
from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from driftcheck.progress import Progress
    from driftcheck.upstream import Blame

BLAME = "Says which commit of the target made each finding, from a local clone of it."
BLAME_NOTES = """\
REF is a ref of the clone, or a release that has a tag in it, vllm==0.16.0. The
commits between the baseline and the target are looked at by halves, those first
that touch what a finding is about; nothing is checked out, built or run. Of
several commits that broke a thing again after it was mended one is named. What
was merged is followed into its branch.

examples:
  driftcheck blame --repository ~/vllm                        this folder, HEAD
  driftcheck blame speculators==0.3.0 --repository ~/vllm --against v0.16.0
  driftcheck blame src --repository ~/vllm --select unknown-argument

exit codes:
  0  the commits are printed
  2  could not check: a line on stderr says why
"""


def add_blame(parser: argparse.ArgumentParser) -> None:
    """The arguments of `blame`."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="the code to check, as for audit")
    releases = parser.add_argument_group("what it is held against")
    releases.add_argument("--repository", metavar="FOLDER", required=True, help="the local clone of the target")
    releases.add_argument("--against", metavar="REF", help="the commit that will run the client (default: HEAD)")
    releases.add_argument(
        "--baseline", metavar="REF", help="the commit the client was written for (default: the tag of that release)"
    )
    add_model(releases)
    releases.add_argument("--python", metavar="PATH", help="the interpreter that has the installed client")
    releases.add_argument("--offline", action="store_true", help="use what is installed or cached, ask no index")
    releases.add_argument(
        "--no-cache", action="store_true", help="look at everything again, even where nothing has changed"
    )
    which = parser.add_argument_group("which findings are asked about")
    which.add_argument("--select", action="append", metavar="KIND,..", help="these kinds of finding only")
    which.add_argument("--ignore", action="append", metavar="KIND,..", help="none of these kinds of finding")
    which.add_argument("--exclude", action="append", metavar="GLOB", help="none of what is found in these files")
    report = parser.add_argument_group("the report")
    report.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    parser.set_defaults(fail_on=None)


def run_blame(options: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Prints the commits and gives the exit code; `complain` is told of failures."""
    _, is_complete = asked_of_clients(
        options,
        lambda client, progress: _blame(client, options, progress),
        lambda found: _rendered(found, options),
        complain,
    )
    return NOTHING if is_complete else COULD_NOT_CHECK


def _blame(client: str, options: argparse.Namespace, progress: Progress) -> Blame:
    from driftcheck.blame import blame
    from driftcheck.fetching import Fetching
    from driftcheck.origins.settings import Settings

    configuration = settings_of(options, client)
    try:
        return blame(
            client,
            options.repository,
            against=options.against,
            baseline=options.baseline,
            counts=counting(selection_of(configuration)),
            model=configuration.model,
            settings=Settings(offline=options.offline, python=configuration.python, progress=Fetching(progress)),
            remember=not options.no_cache,
            progress=progress,
        )
    except DriftcheckError as error:
        raise DriftcheckError(f"{client}: {error}") from error


def _rendered(blames: list[Blame], options: argparse.Namespace) -> str:
    from driftcheck.output import columns
    from driftcheck.report.blame_text import render_blame, render_blame_json, render_blame_markdown

    if options.format == "json":
        return render_blame_json(blames)
    if options.format == "markdown":
        return "\n".join(render_blame_markdown(blame) for blame in blames)
    width = columns(sys.stdout if options.output is None else None)
    return "\n".join(render_blame(blame, width=width) for blame in blames)
