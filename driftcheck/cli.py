"""The command line: parses, calls, prints, exits."""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from driftcheck import __version__
from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from driftcheck.configuration import Configuration
    from driftcheck.model import Kind, Report
    from driftcheck.progress import Progress

_NOTHING, _FINDINGS, _COULD_NOT_CHECK, _INTERRUPTED = 0, 1, 2, 130

_DESCRIPTION = "Finds where Python code no longer fits the release of vLLM that will run it, before it runs."
_AUDIT = "Holds clients against a release of the target and reports every use that no longer fits."
_AUDIT_NOTES = """\
CLIENT is a path (the working folder by default), NAME of an installed
distribution, or NAME==VERSION from the package index, which is neither built
nor installed. TARGET is vllm (the installed one, the default), vllm==0.16.0,
vllm==latest, a path such as ./vllm, or git+FOLDER@REF of a local clone.

examples:
  driftcheck audit                               this folder, installed vllm
  driftcheck audit src --against vllm==latest    before an upgrade
  driftcheck audit speculators==0.3.0 --against vllm==0.16.0

[tool.driftcheck] in the pyproject.toml of the client's folder, or else of the
working folder, may set against, baseline, python, model, select, ignore and
fail-on.
The command line wins over it.

exit codes:
  0  nothing found at or above --fail-on
  1  something found
  2  could not check: a line on stderr says why
"""
_EXPLAIN = "Says what a kind of finding or a rule means: why it breaks, how it is found, and what to do."
_SURFACE = "Prints what the target offers: the signature of a symbol, as its sources give it."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0 nothing found, 1 findings, 2 could not check."""
    try:
        options = _parser().parse_args(arguments)
        command = {
            "audit": _audit,
            "fix": _fix,
            "restore": _restore,
            "extract": _extract,
            "surface": _surface,
            "explain": _explain,
        }[options.command]
        return command(options)
    except DriftcheckError as error:
        _complain(str(error))
        return _COULD_NOT_CHECK
    except KeyboardInterrupt:
        _complain("interrupted")
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever is left is a fault of ours, and a user needs no traceback
        _confess(error)
        return _COULD_NOT_CHECK


def _complain(message: str) -> None:
    from driftcheck.report.harmless import harmless

    if sys.stderr is not None:
        text = harmless(" ".join(message.split("\n")))
        sys.stderr.write(f"driftcheck: {text}\n")


def _confess(error: Exception) -> None:
    if os.environ.get("DRIFTCHECK_TRACEBACK"):
        import traceback

        traceback.print_exc()
        hint = "the traceback is above"
    else:
        hint = "DRIFTCHECK_TRACEBACK=1 in the environment shows the traceback"
    _complain(f"this is a fault of driftcheck's own, please report it: {type(error).__name__}: {error} ({hint})")


class _Parser(argparse.ArgumentParser):
    """Raises what argparse would print together with the usage, so that an error stays one line."""

    def error(self, message: str) -> NoReturn:
        raise DriftcheckError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="driftcheck", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"driftcheck {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_audit(commands)
    _add_fix(commands)
    _add_surface(commands)
    _add_explain(commands)
    _add_extract(commands)
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    said: str,
    description: str,
    notes: str,
    usage: str | None = None,
) -> _Parser:
    """A command whose help ends in notes that are laid out already."""
    return commands.add_parser(
        name,
        help=said,
        description=description,
        usage=usage,
        epilog=notes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_audit(commands: argparse._SubParsersAction[_Parser]) -> None:
    audit = _command(commands, "audit", "report where clients no longer fit a release", _AUDIT, _AUDIT_NOTES)
    _add_sources(audit)

    report = audit.add_argument_group("the report")
    report.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    report.add_argument(
        "--explain-unresolved", action="store_true", help="list the usages that could not be judged, and why"
    )
    report.add_argument("--select", action="append", metavar="KIND,..", help="report these kinds of finding only")
    report.add_argument("--ignore", action="append", metavar="KIND,..", help="leave these kinds of finding out")
    report.add_argument(
        "--fail-on",
        choices=("error", "silent", "warning", "note"),
        help="exit with 1 for findings of this severity or worse (default: silent)",
    )
    report.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")


def _add_sources(parser: argparse.ArgumentParser) -> None:
    """The options that say which client is meant, and what it is held against."""
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="the code to check")
    releases = parser.add_argument_group("what it is held against")
    releases.add_argument("--against", metavar="TARGET", help="the release that will run the client")
    releases.add_argument(
        "--baseline",
        metavar="TARGET",
        help="the release the client was written for (default: what its metadata say, else the best-fitting one)",
    )
    releases.add_argument(
        "--model",
        metavar="ARCHITECTURE",
        help="the model that will be loaded, LlamaForCausalLM for example: only its classes count",
    )
    _add_reach(releases)
    releases.add_argument(
        "--static", action="store_true", help="read sources only, ask no interpreter for confirmation"
    )
    releases.add_argument(
        "--no-cache", action="store_true", help="look at everything again, even where nothing has changed"
    )


def _add_fix(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.fix_cli import FIX, FIX_NOTES, RESTORE, add_fix, add_restore

    fix = _command(commands, "fix", "repair what an audit finds, and prove it", FIX, FIX_NOTES)
    _add_sources(fix)
    add_fix(fix)
    add_restore(commands.add_parser("restore", help="take a fix back", description=RESTORE, allow_abbrev=False))


def _add_surface(commands: argparse._SubParsersAction[_Parser]) -> None:
    surface = commands.add_parser(
        "surface", help="print what a release offers", description=_SURFACE, allow_abbrev=False
    )
    surface.add_argument("target", metavar="TARGET", help="as for audit --against")
    surface.add_argument("symbol", nargs="?", metavar="SYMBOL", help="a dotted path, vllm.LLM.generate for example")
    surface.add_argument(
        "--compare",
        action="store_true",
        help="hold what the sources say against what inspect.signature says, and print the differences",
    )
    _add_reach(surface)


def _add_explain(commands: argparse._SubParsersAction[_Parser]) -> None:
    explain = commands.add_parser(
        "explain", help="say what a kind of finding or a rule means", description=_EXPLAIN, allow_abbrev=False
    )
    explain.add_argument("name", nargs="?", metavar="KIND|RULE", help="its name in a report (default: list all)")
    explain.add_argument("--format", choices=("text", "markdown"), default="text", help="default: text")


def _add_reach(parser: argparse._ActionsContainer) -> None:
    """The options that say where installed code and releases are looked for, and how long."""
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="the interpreter that has the installed ones (default: the active environment's)",
    )
    parser.add_argument("--offline", action="store_true", help="use what is installed or cached, ask no index")
    parser.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="the longest wait for the index and for the interpreter"
    )


def _add_extract(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.extract_cli import EXTRACT, EXTRACT_NOTES, EXTRACT_USAGE, add_extract

    said = "write the hidden states of a model, to train draft models with"
    add_extract(_command(commands, "extract", said, EXTRACT, EXTRACT_NOTES, EXTRACT_USAGE))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return seconds


def _audit(options: argparse.Namespace) -> int:
    from driftcheck.display import progress_display
    from driftcheck.output import check_output, write_file, write_stdout

    if options.output is not None:
        check_output(options.output)
    clients: list[str] = options.clients or ["."]
    settings = [_settings(options, client) for client in clients]
    reports: list[Report] = []
    failures: list[DriftcheckError] = []
    with progress_display() as progress:
        for client, configuration in zip(clients, settings, strict=True):
            try:
                reports.append(_audited(client, configuration, options, progress))
            except DriftcheckError as error:
                failures.append(error)
    if reports:
        text = _rendered(reports, options, as_list=len(clients) > 1)
        if options.output is None:
            write_stdout(text)
        else:
            write_file(options.output, text)
    for failure in failures:
        _complain(str(failure))
    if failures:
        return _COULD_NOT_CHECK
    is_failed = any(_is_failed(report, configuration) for report, configuration in zip(reports, settings, strict=True))
    return _FINDINGS if is_failed and not options.exit_zero else _NOTHING


def _settings(options: argparse.Namespace, client: str) -> Configuration:
    """What holds for a client: the command line, and where that is silent the client's pyproject.toml."""
    from dataclasses import replace

    from driftcheck.configuration import load_configuration
    from driftcheck.model import Severity

    file = load_configuration(client)
    select, ignore = _kinds(options.select, "--select"), _kinds(options.ignore, "--ignore")
    return replace(
        file,
        against=options.against or file.against,
        baseline=options.baseline or file.baseline,
        python=options.python or file.python,
        model=options.model or file.model,
        select=select or file.select,
        ignore=ignore or (None if select else file.ignore),
        fail_on=Severity(options.fail_on) if options.fail_on else file.fail_on,
    )


def _kinds(values: Sequence[str] | None, option: str) -> frozenset[Kind]:
    from driftcheck.configuration import listed_names, parse_kinds

    try:
        return parse_kinds(listed_names(values))
    except DriftcheckError as error:
        raise DriftcheckError(f"{option}: {error}") from error


def _audited(client: str, settings: Configuration, options: argparse.Namespace, progress: Progress) -> Report:
    from driftcheck.audit import audit

    return select_findings(audit(client, against=settings.against, **_asked(settings, options, progress)), settings)


def _asked(settings: Configuration, options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """How a client and what it is held against are to be found and read, as `audit` wants it, all but the target."""
    return {
        "baseline": settings.baseline,
        "python": settings.python,
        "static": options.static,
        "offline": options.offline,
        "timeout": options.timeout,
        "model": settings.model,
        "remember": not options.no_cache,
        "progress": progress,
    }


def select_findings(report: Report, settings: Configuration) -> Report:
    """The report with the findings that are asked for, and a notice that counts the others."""
    from dataclasses import replace

    kept = tuple(
        finding
        for finding in report.findings
        if (settings.select is None or finding.kind in settings.select)
        and (settings.ignore is None or finding.kind not in settings.ignore)
    )
    notices = report.notices + settings.notices
    if len(kept) < len(report.findings):
        left_out = Counter(finding.kind.value for finding in report.findings)
        left_out.subtract(finding.kind.value for finding in kept)
        counts = ", ".join(f"{number} {kind}" for kind, number in sorted(left_out.items()) if number)
        notices += (f"left out by --select or --ignore, or the same in pyproject.toml: {counts}",)
    return replace(report, findings=kept, notices=notices)


def _rendered(reports: Sequence[Report], options: argparse.Namespace, *, as_list: bool) -> str:
    explain: bool = options.explain_unresolved
    if options.format == "json":
        from driftcheck.report.json_report import render_json, render_json_list

        if as_list:
            return render_json_list(reports, explain_unresolved=explain)
        return render_json(reports[0], explain_unresolved=explain)
    from driftcheck.output import columns, is_coloured
    from driftcheck.report.text import render_text

    stream = sys.stdout if options.output is None else None
    width, colour = columns(stream), options.output is None and is_coloured(stream)
    return "\n".join(render_text(report, width=width, colour=colour, explain_unresolved=explain) for report in reports)


def _is_failed(report: Report, settings: Configuration) -> bool:
    from driftcheck.model import Severity

    threshold = (settings.fail_on or Severity.SILENT).rank
    return any(finding.severity.rank >= threshold for finding in report.findings)


def _fix(options: argparse.Namespace) -> int:
    from driftcheck.audit import sources_of
    from driftcheck.display import progress_display
    from driftcheck.fix_cli import run_fix
    from driftcheck.output import write_stdout

    clients: list[str] = options.clients or ["."]
    if len(clients) > 1 and options.overlay is not None:
        raise DriftcheckError("--overlay takes one client at a time")
    settings = [_settings(options, client) for client in clients]
    codes: list[int] = []
    patch = ""
    with progress_display() as progress:
        for client, configuration in zip(clients, settings, strict=True):
            find = functools.partial(sources_of, client, **_asked(configuration, options, progress))
            code, changes = run_fix(client, configuration, options, progress, find)
            codes.append(code)
            patch += changes
    write_stdout(patch)
    return max(codes)


def _restore(options: argparse.Namespace) -> int:
    from driftcheck.fix_cli import run_restore

    return run_restore(options)


def _extract(options: argparse.Namespace) -> int:
    from driftcheck.extract_cli import run_extract

    return run_extract(options)


def _surface(options: argparse.Namespace) -> int:
    from driftcheck.display import progress_display
    from driftcheck.inspection import describe
    from driftcheck.output import write_stdout
    from driftcheck.report.harmless import harmless

    with progress_display() as progress:
        lines = list(
            describe(
                options.target,
                options.symbol,
                compare=options.compare,
                python=options.python,
                offline=options.offline,
                timeout=options.timeout,
                progress=progress,
            )
        )
    write_stdout("".join(f"{harmless(line)}\n" for line in lines))
    return _NOTHING


def _explain(options: argparse.Namespace) -> int:
    from driftcheck.explanation import as_page, as_text, explained, overview
    from driftcheck.output import columns, write_stdout
    from driftcheck.report.harmless import harmless

    width = columns(sys.stdout)
    if options.name is None:
        lines = list(overview(width=width))
    else:
        entry = explained(options.name)
        lines = as_page(entry).splitlines() if options.format == "markdown" else list(as_text(entry, width=width))
    write_stdout("".join(f"{harmless(line)}\n" for line in lines))
    return _NOTHING
