"""The commands `gate` and `environment`: all that an interpreter has installed, before it runs and at a glance."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from driftcheck.audit_cli import (
    COULD_NOT_CHECK,
    FINDINGS,
    NOTHING,
    add_model,
    add_reach,
    add_releases,
    add_static,
    manner_of,
    settings_of,
    text_of,
)
from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from driftcheck.environment import Environment
    from driftcheck.model import EnvironmentEntry

GATE = "Audits what a command's Python has installed, and becomes the command if all of it fits."
GATE_USAGE = "driftcheck gate [options] -- COMMAND..."
GATE_NOTES = """\
All installed distributions that use vllm are held against the installed vllm,
or those that --client names. If they fit, driftcheck is replaced by COMMAND:
the same process, signals and exit code. If not, COMMAND is not started, and the
report goes to stderr. Its Python is told from COMMAND (python, torchrun, any
script for a Python), else it is the active environment's; --python names it.

examples:
  driftcheck gate --cache -- python train.py --epochs 3
  srun driftcheck gate --cache --client speculators -- torchrun train.py

exit codes:
  that of COMMAND if it was started, else
  1  something does not fit
  2  could not check: a line on stderr says why
"""
ENVIRONMENT = "Holds every installed distribution that uses vllm against it, and prints one table."
ENVIRONMENT_NOTES = """\
examples:
  driftcheck environment --python .venv          the installed vllm
  driftcheck environment --against vllm==latest  would they survive an upgrade?

exit codes:
  0  all of them fit
  1  something does not fit
  2  something could not be checked
"""


_LARGEST = 1024 * 1024


def add_gate(parser: argparse.ArgumentParser) -> None:
    """The arguments of `gate` in front of its command."""
    _add_clients(parser)
    parser.add_argument(
        "--cache", action="store_true", help="go on at once where nothing has changed since the last clean pass"
    )
    _add_what_counts(parser)
    asked = parser.add_argument_group("how it is asked")
    add_model(asked)
    add_reach(asked)
    add_static(asked)
    parser.set_defaults(against=None, baseline=None, no_cache=False, format="text", program=[])


def add_environment(parser: argparse.ArgumentParser) -> None:
    """The arguments of `environment`."""
    _add_clients(parser)
    add_releases(parser.add_argument_group("what they are held against"))
    _add_what_counts(parser)
    report = parser.add_argument_group("the report")
    report.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def _add_clients(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--client", action="append", default=[], metavar="NAME", help="look at this one only; may be given again"
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="NAME", help="leave this one out; may be given again"
    )


def _add_what_counts(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("which findings count")
    which.add_argument("--select", action="append", metavar="KIND,..", help="these kinds of finding only")
    which.add_argument("--ignore", action="append", metavar="KIND,..", help="none of these kinds of finding")
    which.add_argument(
        "--fail-on",
        choices=("error", "silent", "warning", "note"),
        help="what is this bad or worse does not fit (default: silent)",
    )


def run_gate(options: argparse.Namespace, complain: Callable[[str], None]) -> int:
    """Becomes the command if all fits; else says what does not and gives the exit code."""
    from driftcheck.clean_passes import CleanPass
    from driftcheck.origins.commands import interpreter_of, program_of
    from driftcheck.origins.distributions import search_path_of
    from driftcheck.origins.settings import Settings

    command: list[str] = options.program
    program = program_of(command)
    python = str(interpreter_of(command)) if options.python is None else options.python
    options.python = python
    settings = Settings(offline=options.offline, python=python, timeout=options.timeout)
    passed: CleanPass | None = None
    if options.cache:
        executable, search_path = search_path_of(settings)
        passed = CleanPass(settings.cache, search_path, [str(executable), *_asked(options)])
        said = passed.holds()
        if said is not None:
            _tell(f"{said} (nothing has changed)")
            return _become(program, command)
    environment = _environment(options, "vllm")
    entries, placed = environment.audited()
    for entry in entries:
        if entry.fault is not None:
            complain(f"{entry.name} could not be checked: {entry.fault}")
    failing = [each for each, entry in zip(placed, _checked(entries), strict=True) if entry.is_failed]
    if failing:
        sys.stderr.write(text_of([each.report for each in failing], sys.stderr))
    if any(entry.fault is not None for entry in entries):
        return COULD_NOT_CHECK
    if failing:
        _tell(f"{command[0]} was not started: what is installed does not fit, see above; --skip NAME leaves one out")
        return FINDINGS
    said = _verdict(environment, entries)
    _tell(said)
    for entry in _checked(entries):
        if entry.report is not None and entry.report.baseline is None:
            _tell(f"{entry.name} was judged without a baseline, so what is new there is only possible")
    if passed is not None:
        passed.keep(environment.trees(), said)
    return _become(program, command)


def _asked(options: argparse.Namespace) -> list[str]:
    """All that decides what counts: the options, and the file that is silent where they speak, unread."""
    own = {name: value for name, value in vars(options).items() if name not in ("program", "timeout")}
    try:
        with open("pyproject.toml", "rb") as file:
            configuration = file.read(_LARGEST)
    except OSError:
        configuration = b""
    return [repr(sorted(own.items())), os.getcwd(), repr(configuration)]


def _checked(entries: Sequence[EnvironmentEntry]) -> list[EnvironmentEntry]:
    return [entry for entry in entries if entry.fault is None]


def _verdict(environment: Environment, entries: Sequence[EnvironmentEntry]) -> str:
    target = f"{environment.target.name} {environment.target.version or ''}".rstrip()
    if not entries:
        return f"nothing that is installed uses {target}"
    names = ", ".join(f"{entry.name} {entry.version or ''}".rstrip() for entry in entries)
    return f"{names} {'fit' if len(entries) > 1 else 'fits'} {target}"


def _tell(text: str) -> None:
    from driftcheck.report.harmless import harmless

    if sys.stderr is not None:
        sys.stderr.write(f"driftcheck: {harmless(text)}\n")


def _become(program: str, command: Sequence[str]) -> int:
    """Replaces this process by the command; comes back only where that fails."""
    import signal

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    # Python ignores these, and what is ignored stays so in the program that takes its place.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(program, list(command))  # noqa: S606 - the very command that the user wrote
    except OSError as error:
        raise DriftcheckError(f"{command[0]} can't be started: {error.strerror}") from error


def run_environment(options: argparse.Namespace) -> int:
    """Prints the table and gives the exit code."""
    from driftcheck.output import write_stdout
    from driftcheck.report.environment_text import render_environment, render_environment_json

    environment = _environment(options, options.against or "vllm")
    entries, _ = environment.audited()
    target = environment.target
    if options.format == "json":
        text = render_environment_json(target.name, target.version, entries)
    else:
        named = f"{target.name} {target.version or ''}".rstrip()
        text = render_environment(named, entries)
    write_stdout(text)
    if any(entry.fault is not None for entry in entries):
        return COULD_NOT_CHECK
    return FINDINGS if any(entry.is_failed for entry in entries) else NOTHING


def _environment(options: argparse.Namespace, target: str) -> Environment:
    from driftcheck.environment import Environment

    own = settings_of(options, ".")
    return Environment(
        lambda client: settings_of(options, client),
        manner_of(options),
        target=target,
        python=own.python,
        clients=options.client,
        skipped=options.skip,
    )
