"""Which Python a command will run, told from its words and from the script that it starts."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.origins.interpreter import find_interpreter

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?(?:\.exe)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# A script whose interpreter's path is too long for its first line, or relative to the script, starts it from sh.
_FROM_SHELL = re.compile(
    rb"^'''exec' (?:\"\$\(dirname[^\n]*?\)\"/)?['\"]?(?P<path>[^'\"\n]+?)['\"]? \"\$0\"", re.MULTILINE
)
_HEAD = 4096


def program_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """The file that a command's first word stands for; raises DriftcheckError where there is none to be run."""
    if not command:
        raise DriftcheckError("name the command to run, after --")
    found = _which(command[0], environment)
    if found is None:
        raise DriftcheckError(f"{command[0]}: there is no such program; check its name, and PATH")
    return found


def interpreter_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Path:
    """The Python that a command will run, as far as its words tell: `python`, `torchrun`, `srun python`, `bash run.sh`.

    Where no word is a Python or a script for one, it is the active environment's, else the first on PATH.
    """
    variables = os.environ if environment is None else environment
    program_of(command, environment)
    for word in command:
        if word.startswith("-") or _ASSIGNMENT.fullmatch(word):
            continue
        found = _which(word, environment)
        python = None if found is None else _python(found, environment)
        if python is not None:
            return Path(os.path.abspath(python))
    if variables.get("VIRTUAL_ENV") or variables.get("CONDA_PREFIX"):
        return find_interpreter(None, variables)
    first = _which("python", environment) or _which("python3", environment)
    if first is None:
        raise DriftcheckError(f"which Python {command[0]} runs can't be told; name it with --python")
    return Path(os.path.abspath(first))


def _which(word: str, environment: Mapping[str, str] | None) -> str | None:
    if "\0" in word:
        return None
    path = None if environment is None else environment.get("PATH")
    return shutil.which(word, path=path)


def _python(program: str, environment: Mapping[str, str] | None) -> str | None:
    """The program itself where it is a Python, or the one that its first lines name."""
    if _PYTHON.fullmatch(os.path.basename(program)):
        return program
    try:
        with open(program, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if not head.startswith(b"#!"):
        return None
    words = os.fsdecode(head.partition(b"\n")[0][2:]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and not _ASSIGNMENT.fullmatch(word)]
    if not words:
        return None
    if _PYTHON.fullmatch(os.path.basename(words[0])):
        return _which(words[0], environment)
    match = _FROM_SHELL.search(head)
    if match is None:
        return None
    # Relative to the script, and to the folder that a link to it leads to.
    path = os.path.join(os.path.dirname(os.path.realpath(program)), os.fsdecode(match["path"]))
    return path if os.access(path, os.X_OK) else None
