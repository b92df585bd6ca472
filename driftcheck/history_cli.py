"""The command `history`: what became of one symbol over the releases."""

from __future__ import annotations

import argparse
import sys

from driftcheck.audit_cli import NOTHING, positive_seconds

HISTORY = "Says since when a symbol is there, and what changed about it with which release."
HISTORY_NOTES = """\
SYMBOL is a dotted path (vllm.LLM.generate, a module, a class, a field of a
configuration), a name in it that one thing alone has (Scheduler.schedule), or
the name of an environment variable (VLLM_PLUGINS). What moved is followed, in
both directions. Every release is read from the package index, and kept in the
cache; nothing is installed or run.

examples:
  driftcheck history vllm.v1.core.sched.scheduler.Scheduler.__init__
  driftcheck history vllm.config.SchedulerConfig.max_num_seqs --releases '>=0.11'
  driftcheck history VLLM_USE_V1 --format json

exit codes:
  0  the history is printed
  2  no release could be read or none has the symbol: a line on stderr says why
"""
FORMATS = ("text", "json", "markdown")


def add_history(parser: argparse.ArgumentParser) -> None:
    """The arguments of `history`."""
    parser.add_argument("symbol", metavar="SYMBOL", help="a dotted path or an environment variable")
    parser.add_argument("--releases", metavar="RANGE", help="'>=0.11,<0.18' for example (default: every release)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--offline", action="store_true", help="use the releases that are cached, ask no index")
    parser.add_argument(
        "--timeout", type=positive_seconds, metavar="SECONDS", help="the longest wait for an answer of the index"
    )


def run_history(options: argparse.Namespace) -> int:
    """Prints the history and gives the exit code."""
    from driftcheck.display import progress_display
    from driftcheck.history import history
    from driftcheck.output import columns, write_stdout

    with progress_display() as progress:
        found = history(
            options.symbol, options.releases, offline=options.offline, timeout=options.timeout, progress=progress
        )
    if options.format == "json":
        from driftcheck.report.history_json import render_history_json

        text = render_history_json(found)
    elif options.format == "markdown":
        from driftcheck.report.history_markdown import render_history_markdown

        text = render_history_markdown(found)
    else:
        from driftcheck.report.history_text import render_history

        text = render_history(found, width=columns(sys.stdout))
    write_stdout(text)
    return NOTHING
