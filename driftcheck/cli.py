"""The command line: parses, calls, prints, exits."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from driftcheck import __version__
from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from driftcheck.report.repair_text import Told

_NOTHING, _COULD_NOT_CHECK, _INTERRUPTED = 0, 2, 130
_LONGEST_SAID = 300

_DESCRIPTION = "Finds where Python code no longer fits the release of vLLM that will run it, before it runs."
_EXPLAIN = "Says what a kind of finding or a rule means: why it breaks, how it is found, and what to do."
_SURFACE = "Prints what the target offers: the signature of a symbol, as its sources give it."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0 nothing found, 1 findings, 2 could not check."""
    try:
        own, following = _divided(sys.argv[1:] if arguments is None else arguments)
        options = command_parser().parse_args(own)
        if following is not None:
            options.program = following
        command = {
            "audit": _audit,
            "completion": _completion,
            "configuration": _configuration,
            "environment": _environment,
            "gate": _gate,
            "fix": _fix,
            "matrix": _matrix,
            "upgrade": _upgrade,
            "restore": _restore,
            "extract": _extract,
            "surface": _surface,
            "history": _history,
            "forecast": _forecast,
            "impact": _impact,
            "blame": _blame,
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
        if _follows_interruption(error):
            _complain("interrupted")
            return _INTERRUPTED
        _confess(error)
        return _COULD_NOT_CHECK


def _follows_interruption(error: BaseException | None) -> bool:
    """True where something failed while it was cleaning up after Ctrl-C."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _divided(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """The arguments of driftcheck's own, and after `--` those of the command that `gate` is to become."""
    words = list(arguments)
    if words[:1] != ["gate"] or "--" not in words:
        return words, None
    end = words.index("--")
    return words[:end], words[end + 1 :]


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
    said = str(error)
    said = f"{said[:_LONGEST_SAID]}…" if len(said) > _LONGEST_SAID else said
    _complain(f"this is a fault of driftcheck's own, please report it: {type(error).__name__}: {said} ({hint})")


class _Parser(argparse.ArgumentParser):
    """Raises what argparse would print together with the usage, so that an error stays one line.

    No argument may be empty: an unset variable of a shell is no choice of what happens without the option.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.register("type", None, _filled)

    def error(self, message: str) -> NoReturn:
        raise DriftcheckError(f"{message} (see {self.prog} --help)")


def _filled(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return text


def command_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(prog="driftcheck", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"driftcheck {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    # It is handed all the arguments of a command, which that looks at itself and names by their options.
    commands.type = str
    _add_audit(commands)
    _add_fix(commands)
    _add_gate(commands)
    _add_surface(commands)
    _add_matrix(commands)
    _add_upgrade(commands)
    _add_history(commands)
    _add_forecast(commands)
    _add_impact(commands)
    _add_blame(commands)
    _add_explain(commands)
    _add_extract(commands)
    _add_setup(commands)
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
    from driftcheck.audit_cli import AUDIT, AUDIT_NOTES, add_audit

    add_audit(_command(commands, "audit", "report where clients no longer fit a release", AUDIT, AUDIT_NOTES))


def _add_fix(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.audit_cli import add_sources
    from driftcheck.fix_cli import FIX, FIX_NOTES, RESTORE, add_fix, add_restore

    fix = _command(commands, "fix", "repair what an audit finds, and prove it", FIX, FIX_NOTES)
    add_sources(fix)
    add_fix(fix)
    add_restore(commands.add_parser("restore", help="take a fix back", description=RESTORE, allow_abbrev=False))


def _add_gate(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.gate_cli import (
        ENVIRONMENT,
        ENVIRONMENT_NOTES,
        GATE,
        GATE_NOTES,
        GATE_USAGE,
        add_environment,
        add_gate,
    )

    add_gate(_command(commands, "gate", "audit an environment, then run a command in it", GATE, GATE_NOTES, GATE_USAGE))
    said = "say which installed distributions fit"
    add_environment(_command(commands, "environment", said, ENVIRONMENT, ENVIRONMENT_NOTES))


def _add_matrix(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.matrix_cli import MATRIX, MATRIX_NOTES, add_matrix

    add_matrix(_command(commands, "matrix", "say which releases clients work with", MATRIX, MATRIX_NOTES))


def _add_upgrade(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.upgrade_cli import UPGRADE, UPGRADE_NOTES, add_upgrade

    add_upgrade(_command(commands, "upgrade", "say what an upgrade means for clients", UPGRADE, UPGRADE_NOTES))


def _add_surface(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.audit_cli import add_reach

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
    add_reach(surface)


def _add_history(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.history_cli import HISTORY, HISTORY_NOTES, add_history

    said = "say what became of a symbol over the releases"
    add_history(_command(commands, "history", said, HISTORY, HISTORY_NOTES))


def _add_impact(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.impact_cli import IMPACT, IMPACT_NOTES, add_impact

    add_impact(_command(commands, "impact", "say whom a change of the target breaks", IMPACT, IMPACT_NOTES))


def _add_blame(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.blame_cli import BLAME, BLAME_NOTES, add_blame

    add_blame(_command(commands, "blame", "say which commits of the target broke clients", BLAME, BLAME_NOTES))


def _add_forecast(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.forecast_cli import FORECAST, FORECAST_NOTES, add_forecast

    add_forecast(_command(commands, "forecast", "say what is ahead of clients", FORECAST, FORECAST_NOTES))


def _add_explain(commands: argparse._SubParsersAction[_Parser]) -> None:
    explain = commands.add_parser(
        "explain", help="say what a kind of finding or a rule means", description=_EXPLAIN, allow_abbrev=False
    )
    explain.add_argument("name", nargs="?", metavar="KIND|RULE", help="its name in a report (default: list all)")
    explain.add_argument("--format", choices=("text", "markdown"), default="text", help="default: text")


def _add_extract(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.extract_cli import EXTRACT, EXTRACT_NOTES, EXTRACT_USAGE, add_extract

    said = "write the hidden states of a model, to train draft models with"
    add_extract(_command(commands, "extract", said, EXTRACT, EXTRACT_NOTES, EXTRACT_USAGE))


def _add_setup(commands: argparse._SubParsersAction[_Parser]) -> None:
    from driftcheck.setup_cli import COMPLETION, COMPLETION_NOTES, CONFIGURATION, add_completion, add_configuration

    said = "list the keys of [tool.driftcheck]"
    add_configuration(commands.add_parser("configuration", help=said, description=CONFIGURATION, allow_abbrev=False))
    said = "print a script for a shell's completion"
    add_completion(_command(commands, "completion", said, COMPLETION, COMPLETION_NOTES))


def _configuration(options: argparse.Namespace) -> int:
    from driftcheck.setup_cli import run_configuration

    return run_configuration(options)


def _completion(options: argparse.Namespace) -> int:
    from driftcheck.setup_cli import run_completion

    return run_completion(options, command_parser())


def _audit(options: argparse.Namespace) -> int:
    from driftcheck.audit_cli import run_audit

    return run_audit(options, _complain)


def _gate(options: argparse.Namespace) -> int:
    from driftcheck.gate_cli import run_gate

    return run_gate(options, _complain)


def _environment(options: argparse.Namespace) -> int:
    from driftcheck.gate_cli import run_environment

    return run_environment(options)


def _fix(options: argparse.Namespace) -> int:
    from driftcheck.audit import sources_of
    from driftcheck.audit_cli import manner_of, settings_of
    from driftcheck.display import progress_display
    from driftcheck.fix_cli import run_fix, tell_fixes

    clients: list[str] = options.clients or ["."]
    if len(clients) > 1 and options.overlay is not None:
        raise DriftcheckError("--overlay takes one client at a time")
    settings = [settings_of(options, client) for client in clients]
    manner = manner_of(options)
    told: list[Told] = []
    try:
        with progress_display() as progress:
            for client, configuration in zip(clients, settings, strict=True):
                find = functools.partial(sources_of, client, **manner.asked(configuration, progress))
                told.append(run_fix(client, configuration, options, progress, find))
    except DriftcheckError:
        # What was done before is told all the same.
        if told:
            tell_fixes(told, options, as_list=len(clients) > 1)
        raise
    return tell_fixes(told, options, as_list=len(clients) > 1)


def _matrix(options: argparse.Namespace) -> int:
    from driftcheck.matrix_cli import run_matrix

    return run_matrix(options, _complain)


def _upgrade(options: argparse.Namespace) -> int:
    from driftcheck.upgrade_cli import run_upgrade

    return run_upgrade(options, _complain)


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


def _history(options: argparse.Namespace) -> int:
    from driftcheck.history_cli import run_history

    return run_history(options)


def _impact(options: argparse.Namespace) -> int:
    from driftcheck.impact_cli import run_impact

    return run_impact(options)


def _blame(options: argparse.Namespace) -> int:
    from driftcheck.blame_cli import run_blame

    return run_blame(options, _complain)


def _forecast(options: argparse.Namespace) -> int:
    from driftcheck.forecast_cli import run_forecast

    return run_forecast(options, _complain)


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
