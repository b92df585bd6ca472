"""What `[tool.driftcheck]` of a pyproject.toml says, checked key by key; the command line wins over it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.model import Kind, Severity

_FILE = "pyproject.toml"
_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of one table; None where it doesn't say."""

    against: str | None = None
    baseline: str | None = None
    python: str | None = None
    model: str | None = None
    select: frozenset[Kind] | None = None
    ignore: frozenset[Kind] | None = None
    fail_on: Severity | None = None
    notices: tuple[str, ...] = ()


def load_configuration(client: str) -> Configuration:
    """The settings for a client: those of its own folder, or else those of the working folder.

    `python` names a program to run, so it counts only in the working folder's file: a client that was merely fetched
    must not choose what is executed. Raises DriftcheckError for a file or key that can't be used.
    """
    here = Path.cwd()
    folder = Path(client)
    if folder.is_dir() and folder.resolve() != here:
        table = _table(folder / _FILE)
        if table is not None:
            return _checked(table, folder / _FILE, may_name_python=False)
    table = _table(here / _FILE)
    return Configuration() if table is None else _checked(table, Path(_FILE), may_name_python=True)


def listed_names(values: Iterable[str] | None) -> list[str]:
    """The names in texts that hold several, with commas between them."""
    names = (name.strip() for value in values or () for name in value.split(","))
    return [name for name in names if name]


def parse_kinds(names: Iterable[str]) -> frozenset[Kind]:
    """The kinds of those names; raises DriftcheckError, with the nearest name, for one there is none of."""
    known = {kind.value: kind for kind in Kind}
    kinds = set()
    for name in names:
        if name not in known:
            raise DriftcheckError(f"unknown kind of finding {name!r}{nearest(name, known)}")
        kinds.add(known[name])
    return frozenset(kinds)


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that proposes the known name nearest to a wrong one, or names them all where they are few."""
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f": choose from {', '.join(names)}" if len(names) <= 10 else ""


def _table(path: Path) -> Mapping[str, object] | None:
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if b"driftcheck" not in content:
            return None
        if len(content) > _LARGEST:
            raise DriftcheckError(f"{path} is larger than 1 MiB: its [tool.driftcheck] is not read")
        document = _parsed(content.decode("utf-8"))
    except OSError as error:
        raise DriftcheckError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DriftcheckError(f"{path} is no valid TOML: {error}") from error
    tool = document.get("tool")
    table = tool.get("driftcheck") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise DriftcheckError(f"{path}: tool.driftcheck must be a table")
    return table


def _parsed(text: str) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _checked(table: Mapping[str, object], path: Path, *, may_name_python: bool) -> Configuration:
    known = ("against", "baseline", "select", "ignore", "fail-on", "python", "model")
    unknown = next((key for key in table if key not in known), None)
    if unknown is not None:
        raise DriftcheckError(f"{path}: [tool.driftcheck] has no key {unknown!r}{nearest(unknown, known)}")
    python = _text(table, "python", path)
    notices: tuple[str, ...] = ()
    if python is not None and not may_name_python:
        python, notices = (
            None,
            ("'python' in the client's own pyproject.toml is not followed; --python names an interpreter",),
        )
    return Configuration(
        against=_text(table, "against", path),
        baseline=_text(table, "baseline", path),
        python=python,
        model=_text(table, "model", path),
        select=_kinds(table, "select", path),
        ignore=_kinds(table, "ignore", path),
        fail_on=_severity(table, path),
        notices=notices,
    )


def _text(table: Mapping[str, object], key: str, path: Path) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise DriftcheckError(f"{path}: {key} in [tool.driftcheck] must be a string, not {_toml_type(value)}")
    return value


def _kinds(table: Mapping[str, object], key: str, path: Path) -> frozenset[Kind] | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, list):
        raise DriftcheckError(f"{path}: {key} in [tool.driftcheck] must be a list of kinds, not {_toml_type(value)}")
    names = []
    for name in value:
        if not isinstance(name, str):
            raise DriftcheckError(f"{path}: {key} in [tool.driftcheck] must hold strings, not {_toml_type(name)}")
        names.append(name)
    if not names and key == "select":
        raise DriftcheckError(f"{path}: select in [tool.driftcheck] is empty, which would leave every finding out")
    try:
        return parse_kinds(names)
    except DriftcheckError as error:
        raise DriftcheckError(f"{path}: {key} in [tool.driftcheck]: {error}") from error


def _severity(table: Mapping[str, object], path: Path) -> Severity | None:
    value = _text(table, "fail-on", path)
    if value is None:
        return None
    known = {severity.value: severity for severity in Severity}
    if value not in known:
        raise DriftcheckError(f"{path}: fail-on in [tool.driftcheck] can't be {value!r}{nearest(value, known)}")
    return known[value]


def _toml_type(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")
