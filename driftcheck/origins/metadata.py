"""What a distribution says of itself: core metadata, pyproject.toml, RECORD."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Metadata:
    """The name, the version and the requirements; extras are written as markers, as `Requires-Dist` does."""

    name: str | None = None
    version: str | None = None
    requirements: tuple[str, ...] = ()


def parse_core_metadata(data: bytes) -> Metadata:
    """What METADATA or PKG-INFO says; absent or undecodable fields are left out."""
    import email.parser

    message = email.parser.HeaderParser().parsestr(data.decode("utf-8", "replace"))
    return Metadata(
        name=_line(message.get("Name")),
        version=_line(message.get("Version")),
        requirements=tuple(" ".join(str(value).split()) for value in message.get_all("Requires-Dist", [])),
    )


def parse_pyproject(data: bytes) -> Metadata:
    """What the `[project]` table of pyproject.toml says; raises ValueError where it is no TOML."""
    project = parse_toml(data).get("project")
    if not isinstance(project, dict):
        return Metadata()
    requirements = [text for text in _list(project.get("dependencies")) if isinstance(text, str)]
    extras = project.get("optional-dependencies")
    for extra, texts in extras.items() if isinstance(extras, dict) else ():
        requirements += [_with_extra(text, extra) for text in _list(texts) if isinstance(text, str)]
    name, version = project.get("name"), project.get("version")
    return Metadata(
        name=name if isinstance(name, str) else None,
        version=version if isinstance(version, str) else None,
        requirements=tuple(requirements),
    )


def parse_toml(data: bytes) -> dict[str, Any]:
    """The tables of a TOML file; raises ValueError where it is none."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    return tomllib.loads(data.decode("utf-8"))


def parse_record(data: bytes) -> dict[str, str]:
    """Path to `algorithm=hash` as RECORD writes them, "" where it gives no hash."""
    import csv
    import io

    try:
        rows = csv.reader(io.StringIO(data.decode("utf-8")))
        return {row[0]: row[1] if len(row) > 1 else "" for row in rows if row}
    except csv.Error as error:
        raise ValueError(str(error)) from error


def _with_extra(requirement: str, extra: str) -> str:
    text, separator, marker = requirement.partition(";")
    condition = f'extra == "{extra}"'
    return f"{text.strip()} ; ({marker.strip()}) and {condition}" if separator else f"{text.strip()} ; {condition}"


def _line(value: object) -> str | None:
    return str(value).strip() or None if value is not None else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
