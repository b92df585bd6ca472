"""The command `forecast`: what is ahead of clients."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from driftcheck.audit_cli import (
    COULD_NOT_CHECK,
    FINDINGS,
    NOTHING,
    add_model,
    asked_of_clients,
    counting,
    selection_of,
    settings_of,
)

if TYPE_CHECKING:
    from driftcheck.progress import Progress
    from driftcheck.upstream import Forecast

FORECAST = "Says what is ahead of clients: what breaks with a coming release, and what it announces to end."
FORECAST_NOTES = """\
What breaks is what an audit finds at severity silent or above and the baseline
had right: git+FOLDER@main of a clone tells what the next release will break.
What ends is what TARGET says of itself: things marked as deprecated, modules,
functions and arguments it warns of, fields whose text says so; each with the
release that it names, the nearest first.

examples:
  driftcheck forecast                                   this folder, newest vllm
  driftcheck forecast speculators==0.3.0 --against vllm==0.16.0
  driftcheck forecast src --against git+../vllm@main

exit codes:
  0  nothing breaks, whatever is announced
  1  something breaks
  2  could not check: a line on stderr says why
"""


def add_forecast(parser: argparse.ArgumentParser) -> None:
    """The arguments of `forecast`."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="the code to check, as for audit")
    releases = parser.add_argument_group("what it is held against")
    releases.add_argument("--against", metavar="TARGET", help="as for audit (default: vllm==latest)")
    releases.add_argument("--baseline", metavar="TARGET", help="the release the client was written for, as for audit")
    add_model(releases)
    releases.add_argument("--python", metavar="PATH", help="the interpreter that has the installed ones")
    releases.add_argument("--offline", action="store_true", help="use what is installed or cached, ask no index")
    which = parser.add_argument_group("which findings count")
    which.add_argument("--select", action="append", metavar="KIND,..", help="these kinds of finding only")
    which.add_argument("--ignore", action="append", metavar="KIND,..", help="none of these kinds of finding")
    which.add_argument("--exclude", action="append", metavar="GLOB", help="none of what is found in these files")
    report = parser.add_argument_group("the report")
    report.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    report.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")
    parser.set_defaults(fail_on=None)


def run_forecast(options: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Prints what is ahead of each client and gives the exit code; `complain` is told of failures."""
    forecasts, is_complete = asked_of_clients(
        options,
        lambda client, progress: _forecast(client, options, progress),
        lambda found: _rendered(found, options),
        complain,
    )
    if not is_complete:
        return COULD_NOT_CHECK
    return FINDINGS if any(forecast.breaks for forecast in forecasts) and not options.exit_zero else NOTHING


def _forecast(client: str, options: argparse.Namespace, progress: Progress) -> Forecast:
    from driftcheck.audit import DEFAULT_TARGET, sources_of
    from driftcheck.forecast import forecast_of

    settings = settings_of(options, client)
    sources = sources_of(
        client,
        against=settings.against or f"{DEFAULT_TARGET}==latest",
        baseline=settings.baseline,
        python=settings.python,
        static=True,
        offline=options.offline,
        model=settings.model,
        progress=progress,
    )
    with progress.task(f"Reading {sources.client.name}"):
        return forecast_of(sources, counting(selection_of(settings)))


def _rendered(forecasts: list[Forecast], options: argparse.Namespace) -> str:
    from driftcheck.output import columns
    from driftcheck.report.forecast_text import render_forecasts, render_forecasts_json, render_forecasts_markdown

    if options.format == "json":
        return render_forecasts_json(forecasts)
    if options.format == "markdown":
        return render_forecasts_markdown(forecasts)
    return render_forecasts(forecasts, width=columns(sys.stdout if options.output is None else None))
