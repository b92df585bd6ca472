"""The command `impact`: what a change of the target breaks in clients."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from driftcheck.audit_cli import FINDINGS, NOTHING, add_model, selection_of, settings_of
from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from driftcheck.upstream import Impact

IMPACT = "Says which usages of clients a change of the target breaks, before it is merged or released."
IMPACT_NOTES = """\
A and B are refs of a local clone of the target (--repository), of which nothing
is checked out; A...B is what B has done since it left A, as for git diff.
git+FOLDER@A..B names the clone as well. Both may be releases too,
vllm==0.16.0..vllm==0.17.0. CLIENT is as for audit; without one, the
interpreter's distributions that use the target are looked at, not the working
folder. What counts is what was right before the change and is not after it.

examples:
  driftcheck impact --target-diff main...HEAD verl==0.9.1 trl==1.9.2 ../ours
  driftcheck impact --target-diff v0.16.0..main --repository ~/vllm speculators
  driftcheck impact --target-diff vllm==0.16.0..vllm==0.17.0 lmcache --places

exit codes:
  0  nothing breaks
  1  something breaks
  2  could not check: a line on stderr says why
"""


def add_impact(parser: argparse.ArgumentParser) -> None:
    """The arguments of `impact`."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="the code to check, as for audit")
    change = parser.add_argument_group("what has changed")
    change.add_argument("--target-diff", metavar="A..B", required=True, help="the change, as two refs or releases")
    change.add_argument(
        "--repository", metavar="FOLDER", default=".", help="the clone that has the refs (default: the working folder)"
    )
    add_model(change)
    change.add_argument("--python", metavar="PATH", help="the interpreter that has the installed clients")
    change.add_argument("--offline", action="store_true", help="use what is installed or cached, ask no index")
    change.add_argument(
        "--no-cache", action="store_true", help="look at everything again, even where nothing has changed"
    )
    which = parser.add_argument_group("which findings count")
    which.add_argument("--select", action="append", metavar="KIND,..", help="these kinds of finding only")
    which.add_argument("--ignore", action="append", metavar="KIND,..", help="none of these kinds of finding")
    which.add_argument(
        "--fail-on",
        choices=("error", "silent", "warning", "note"),
        help="what is this bad or worse counts (default: silent)",
    )
    report = parser.add_argument_group("the report")
    report.add_argument("--places", action="store_true", help="name every place in the clients (JSON always does)")
    report.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    report.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")
    parser.set_defaults(against=None, baseline=None)


def run_impact(options: argparse.Namespace) -> int:
    """Prints what breaks and gives the exit code."""
    from dataclasses import replace

    from driftcheck.display import progress_display
    from driftcheck.fetching import Fetching
    from driftcheck.impact import change_of, impact, installed_clients
    from driftcheck.model import Severity
    from driftcheck.origins.settings import Settings
    from driftcheck.output import check_output, write_report

    if options.output is not None:
        check_output(options.output)
    with progress_display() as progress:
        settings = Settings(offline=options.offline, python=options.python, progress=Fetching(progress))
        change = change_of(options.target_diff, options.repository, settings)
        clients = list(options.clients) or installed_clients(change, settings)
        if not options.clients:
            said = "no CLIENT was named, so what the interpreter has installed that uses the target was looked at"
            change = replace(change, notices=(*change.notices, said))
        if not clients:
            raise DriftcheckError("no installed distribution uses the target; name a CLIENT, or --python PATH")
        found = impact(
            change,
            clients,
            lambda client: selection_of(settings_of(options, client)),
            settings,
            fail_on=Severity(options.fail_on or "silent"),
            model=options.model,
            remember=not options.no_cache,
            progress=progress,
        )
    text = _rendered(found, options)
    write_report(text, options.output)
    faults = [client for client in found.clients if client.fault is not None]
    if faults:
        raise DriftcheckError("; ".join(f"{client.name} could not be checked: {client.fault}" for client in faults))
    breaks = any(client.breaks for client in found.clients)
    return FINDINGS if breaks and not options.exit_zero else NOTHING


def _rendered(found: Impact, options: argparse.Namespace) -> str:
    from driftcheck.output import columns
    from driftcheck.report.impact_text import render_impact, render_impact_json, render_impact_markdown

    if options.format == "json":
        return render_impact_json(found)
    if options.format == "markdown":
        return render_impact_markdown(found, with_places=options.places)
    width = columns(sys.stdout if options.output is None else None)
    return render_impact(found, width=width, with_places=options.places)
