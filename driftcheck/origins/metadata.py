"""What a distribution says of itself: core metadata, RECORD, and the TOML that projects are described in."""

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


def parse_record(data: bytes) -> dict[str, str]:
    """Path to `algorithm=hash` as RECORD writes them, "" where it gives no hash; raises ValueError for damage."""
    import csv
    import io

    try:
        rows = csv.reader(io.StringIO(data.decode("utf-8")))
        return {row[0]: row[1] if len(row) > 1 else "" for row in rows if row}
    except csv.Error as error:
        raise ValueError(str(error)) from error


def parse_toml(data: bytes) -> dict[str, Any]:
    """The tables of a TOML file; raises ValueError where it is none."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(data.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def with_extra(requirement: str, extra: str) -> str:
    """The requirement of an extra, with the condition as a marker."""
    text, separator, marker = requirement.partition(";")
    condition = f'extra == "{extra}"'
    return f"{text.strip()} ; ({marker.strip()}) and {condition}" if separator else f"{text.strip()} ; {condition}"


def _line(value: object) -> str | None:
    return str(value).strip() or None if value is not None else None
