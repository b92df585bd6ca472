"""What `[tool.driftcheck]` of a pyproject.toml says, checked key by key; the command line wins over it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from driftcheck.errors import DriftcheckError
from driftcheck.model import Kind, Severity

_FILE = "pyproject.toml"
_LARGEST = 1024 * 1024


_MOST_PATTERNS = 100
_LONGEST_PATTERN = 300


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the table: what it holds, and what it is for."""

    name: str
    form: Literal["string", "boolean", "severity", "kinds", "patterns"]
    description: str


KEYS = (
    Key("against", "string", "The release that will run the client: vllm, vllm==0.16.0, a path, git+FOLDER@REF."),
    Key("baseline", "string", "The release the client was written for, where its metadata don't say."),
    Key("select", "kinds", "Report these kinds of finding only."),
    Key("ignore", "kinds", "Leave these kinds of finding out."),
    Key("fail-on", "severity", "Fail for findings of this severity or worse."),
    Key("python", "string", "The interpreter that has the installed ones; only in the working folder's file."),
    Key("model", "string", "The architecture of the model that will be loaded, LlamaForCausalLM for example."),
    Key("exclude", "patterns", "Leave out what is found in files whose path fits one of these patterns."),
    Key("known", "string", "The file of known findings, in the folder of the pyproject.toml or below it."),
    Key("new-only", "boolean", "Report only what was not found with the baseline."),
)


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
    exclude: tuple[str, ...] | None = None
    known: str | None = None
    new_only: bool | None = None
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
    try:
        if not path.is_file():
            return None
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
    known = tuple(key.name for key in KEYS)
    unknown = next((key for key in table if key not in known), None)
    if unknown is not None:
        raise DriftcheckError(f"{path}: [tool.driftcheck] has no key {unknown!r}{nearest(unknown, known)}")
    values = {key.name: _value(key, table[key.name], path) for key in KEYS if key.name in table}
    notices: tuple[str, ...] = ()
    if "python" in values and not may_name_python:
        del values["python"]
        notices = ("'python' in the client's own pyproject.toml is not followed; --python names an interpreter",)
    if "known" in values:
        values["known"] = _below(path, str(values["known"]))
    return Configuration(**{name.replace("-", "_"): value for name, value in values.items()}, notices=notices)


def _below(path: Path, name: str) -> str:
    """A file that the one at `path` names, which has to lie in its folder: what is read there is also written."""
    folder = Path(path).parent
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise DriftcheckError(f"{path}: known in [tool.driftcheck] leads out of its folder; name a file within it")
    return str(file)


def _value(key: Key, value: object, path: Path) -> Any:
    where = f"{path}: {key.name} in [tool.driftcheck]"
    if key.form == "boolean":
        if not isinstance(value, bool):
            raise DriftcheckError(f"{where} must be true or false, not {_toml_type(value)}")
        return value
    if key.form in ("kinds", "patterns"):
        return _listed(key, value, where)
    if not isinstance(value, str):
        raise DriftcheckError(f"{where} must be a string, not {_toml_type(value)}")
    if key.form == "severity":
        known = {severity.value: severity for severity in Severity}
        if value not in known:
            raise DriftcheckError(f"{where} can't be {value!r}{nearest(value, known)}")
        return known[value]
    if not value.strip():
        raise DriftcheckError(f"{where} is empty; leave it out, or say what it is")
    return value


def _listed(key: Key, value: object, where: str) -> frozenset[Kind] | tuple[str, ...]:
    if not isinstance(value, list):
        raise DriftcheckError(f"{where} must be a list of {key.form}, not {_toml_type(value)}")
    names = []
    for name in value:
        if not isinstance(name, str):
            raise DriftcheckError(f"{where} must hold strings, not {_toml_type(name)}")
        names.append(name)
    if key.form == "patterns":
        return checked_patterns(names, where)
    if not names and key.name == "select":
        raise DriftcheckError(f"{where} is empty, which would leave every finding out")
    try:
        return parse_kinds(names)
    except DriftcheckError as error:
        raise DriftcheckError(f"{where}: {error}") from error


def checked_patterns(patterns: Iterable[str], where: str) -> tuple[str, ...]:
    """Patterns of paths that are short and few enough to be tried on every path; raises DriftcheckError otherwise."""
    found = tuple(patterns)
    if len(found) > _MOST_PATTERNS or any(len(pattern) > _LONGEST_PATTERN for pattern in found):
        raise DriftcheckError(f"{where} holds more than {_MOST_PATTERNS} patterns, or one that is far too long")
    return found


def schema() -> dict[str, object]:
    """The JSON schema of the table, for editors and for tools that check a pyproject.toml."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "urn:driftcheck:configuration:1",
        "title": "driftcheck",
        "description": "What [tool.driftcheck] in a pyproject.toml may say; the command line wins over it.",
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _schema_of(key) for key in KEYS},
    }


def _schema_of(key: Key) -> dict[str, object]:
    description = {"description": key.description}
    if key.form == "boolean":
        return {**description, "type": "boolean"}
    if key.form == "severity":
        return {**description, "enum": [severity.value for severity in Severity]}
    if key.form == "kinds":
        least = {"minItems": 1} if key.name == "select" else {}
        return {**description, "type": "array", "items": {"enum": [kind.value for kind in Kind]}, **least}
    if key.form == "patterns":
        items = {"type": "string", "maxLength": _LONGEST_PATTERN}
        return {**description, "type": "array", "items": items, "maxItems": _MOST_PATTERNS}
    return {**description, "type": "string", "pattern": r"\S"}


def _toml_type(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")
