"""The commands that help to set driftcheck up: `configuration` and `completion`."""

from __future__ import annotations

import argparse
import sys

CONFIGURATION = (
    "Prints what [tool.driftcheck] in a pyproject.toml may say, and what it says here; checks it on the way."
)
COMPLETION = "Prints what has a shell complete driftcheck's commands and options."
COMPLETION_NOTES = """\
examples:
  driftcheck completion bash > ~/.local/share/bash-completion/completions/driftcheck
  driftcheck completion zsh > ~/.zfunc/_driftcheck    ~/.zfunc being on fpath
  driftcheck completion fish > ~/.config/fish/completions/driftcheck.fish
"""
SHELLS = ("bash", "zsh", "fish", "tcsh")
_FILES = frozenset(("FILE", "PATH", "CLIENT", "DIR"))


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """The arguments of `configuration`."""
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of the table instead")


def add_completion(parser: argparse.ArgumentParser) -> None:
    """The arguments of `completion`."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def run_configuration(options: argparse.Namespace) -> int:
    """Prints the keys with what they are set to, or the schema."""
    from driftcheck.configuration import KEYS, load_configuration, schema
    from driftcheck.output import columns, write_stdout
    from driftcheck.report.harmless import harmless

    if options.schema:
        import json

        write_stdout(json.dumps(schema(), indent=2) + "\n")
        return 0
    settings = load_configuration(".")
    column = max(len(key.name) for key in KEYS) + 4
    lines = []
    for key in KEYS:
        lines += _wrapped(key.description, f"  {key.name}".ljust(column), " " * column, columns(sys.stdout))
        value = getattr(settings, key.name.replace("-", "_"))
        if value is not None:
            lines.append(" " * column + f"= {harmless(_written(value))}")
    write_stdout("".join(f"{line}\n" for line in lines))
    return 0


def _wrapped(text: str, first: str, others: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 60), initial_indent=first, subsequent_indent=others)


def _written(value: object) -> str:
    """A value as TOML has it."""
    import json
    from enum import Enum

    if isinstance(value, Enum):
        return json.dumps(value.value)
    if isinstance(value, (tuple, frozenset)):
        texts = [each.value if isinstance(each, Enum) else str(each) for each in value]
        return json.dumps(sorted(texts) if isinstance(value, frozenset) else texts)
    return json.dumps(value)


def run_completion(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Prints the script for a shell."""
    import shtab

    from driftcheck.output import write_stdout

    _complete_files(parser)
    write_stdout(shtab.complete(parser, shell=options.shell) + "\n")
    return 0


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Has arguments that are files completed as such, in all commands."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command)
        elif action.metavar in _FILES:
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
