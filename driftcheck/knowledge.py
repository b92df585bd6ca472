"""What is peculiar to a target and can't be told from its sources: read from `rules/<target>/target.toml`."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

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


Membership = Literal["registered", "makes parts", "part"]


@dataclass(frozen=True, slots=True)
class Family:
    """Classes of whose objects clients get one without saying of which.

    Its members are `registered` under a name, are those whose constructor `makes parts` in a row, or are such a `part`.
    `attributes` says which family an attribute of a member belongs to ("part[]" for a row of them), `reached` are the
    ends of the dotted paths by which clients get at a member, and `known` are the classes to name first.
    """

    name: str
    members: Membership
    attributes: tuple[tuple[str, str], ...]
    reached: tuple[str, ...]
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Registry:
    """Where a target keeps the classes that a configuration chooses by name, and the function that makes their parts.

    `module` holds the tables of names to (module, class), whose modules are below `package`; `tables` are those of the
    classes that clients mostly mean. `maker` is given the function that makes one part; `chooser` makes an object of a
    registered class, which the configuration chooses where the call does not.
    """

    module: str
    package: str
    tables: tuple[str, ...]
    maker: str
    chooser: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of one target; a target without a folder has nothing peculiar."""

    name: str
    environment: Environment | None = None
    rpc: Rpc | None = None
    mixins: tuple[Mixin, ...] = ()
    registry: Registry | None = None
    families: tuple[Family, ...] = ()


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


@functools.cache
def own_digest() -> str:
    """A hash of driftcheck itself, its rules included: another version may say something else."""
    digest = hashlib.sha256()
    for folder, pattern in ((Path(__file__).parent, "**/*.py"), (rules_folder(), "**/*.toml")):
        for file in sorted(folder.glob(pattern)):
            digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


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
        registry = table.get("registry")
        return Knowledge(
            table["name"],
            Environment(environment["module"], environment["prefix"]) if environment is not None else None,
            Rpc(tuple(rpc["methods"]), tuple(rpc["classes"])) if rpc is not None else None,
            tuple(Mixin(entry["parameter"], tuple(entry["classes"])) for entry in table.get("mixin", ())),
            _registry(registry) if registry is not None else None,
            _families(table.get("family", ())),
        )
    except (KeyError, TypeError) as error:
        raise DriftcheckError(f"rules/{file.parent.name}/target.toml can't be used: {error}") from error


def _registry(table: dict[str, Any]) -> Registry:
    return Registry(table["module"], table["package"], tuple(table["tables"]), table["maker"], table["chooser"])


def _families(tables: list[dict[str, Any]]) -> tuple[Family, ...]:
    families = tuple(map(_family, tables))
    names = {family.name for family in families}
    unknown = {leads_to.removesuffix("[]") for family in families for _, leads_to in family.attributes} - names
    if unknown:
        raise TypeError(f"no family is named {min(unknown)!r}")
    return families


def _family(table: dict[str, Any]) -> Family:
    members: Membership = table["members"]
    if members not in get_args(Membership):
        raise TypeError(f"a family's members can't be {members!r}")
    attributes = tuple(sorted(table.get("attributes", {}).items()))
    return Family(table["name"], members, attributes, tuple(table.get("reached", ())), tuple(table.get("known", ())))
