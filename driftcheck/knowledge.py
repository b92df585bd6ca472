"""What is peculiar to a target and can't be told from its sources: read from `rules/<target>/target.toml`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a target keeps the names of its environment variables, and how they begin."""

    module: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Rpc:
    """Methods that call a worker's method by its name, and the classes that answer, as dotted paths."""

    methods: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mixin:
    """A parameter that names a class which the target mixes into its own, and those classes, as dotted paths.

    Names that both have are refused.
    """

    parameter: str
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of one target; a target without a folder has nothing peculiar."""

    name: str
    environment: Environment | None = None
    rpc: Rpc | None = None
    mixins: tuple[Mixin, ...] = ()


def rules_folder() -> Path:
    """The folder of the rules: beside the package in a checkout, inside it once installed."""
    inside = Path(__file__).parent / "_rules"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "rules"


def knowledge_of(names: Collection[str]) -> Knowledge | None:
    """What is known of the target with one of these top-level packages; raises DriftcheckError for a broken file."""
    for name in sorted(names):
        file = rules_folder() / name / "target.toml"
        if name.isidentifier() and file.is_file():
            return _read(file)
    return None


@functools.cache
def attributes_of_libraries() -> dict[str, frozenset[str]]:
    """The attributes of well-known classes of other libraries, by the class's dotted path."""
    table = read_toml(rules_folder() / "libraries.toml")
    return {path: frozenset(entry["attributes"]) for path, entry in table.items()}


def read_toml(file: Path) -> dict[str, Any]:
    """A TOML file of the rules; raises DriftcheckError where it can't be read."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DriftcheckError(f"{'/'.join(file.parts[-2:])} can't be read: {error}") from error


def _read(file: Path) -> Knowledge:
    table = read_toml(file)
    try:
        environment = table.get("environment")
        rpc = table.get("rpc")
        return Knowledge(
            table["name"],
            Environment(environment["module"], environment["prefix"]) if environment is not None else None,
            Rpc(tuple(rpc["methods"]), tuple(rpc["classes"])) if rpc is not None else None,
            tuple(Mixin(entry["parameter"], tuple(entry["classes"])) for entry in table.get("mixin", ())),
        )
    except (KeyError, TypeError) as error:
        raise DriftcheckError(f"rules/{file.parent.name}/target.toml can't be used: {error}") from error
