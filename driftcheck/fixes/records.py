"""RECORD of installed distributions: which files they own, and what an edit makes of their hashes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change, Changes, ordered
from driftcheck.fixes.files import read

_HASHES = ("sha256", "sha384", "sha512")


def with_record(changes: Iterable[Change], root: Path) -> Changes:
    """The changes, and with them those of each RECORD below `root` that gives hashes of the files they change.

    A file that no RECORD lists has none to be kept true: it is of an editable installation, where RECORD only lists
    what leads to the project, or of a distribution without RECORD. Raises DriftcheckError where one can't be read.
    """
    meant = ordered(changes)
    found = list(meant)
    by_path = {change.path: change for change in meant}
    if meant:
        for path, data in _records(root):
            # Decoding and parsing all of them takes long where much is installed.
            if any(_raw(name) in data for name in by_path):
                found.append(Change(path, data, _updated(data, by_path)))
    return ordered(found)


def library_folders(root: Path, heads: Collection[str]) -> tuple[str, ...]:
    """The folders below `root` in which wheels bring the libraries that their compiled modules load.

    They are those beside the packages of that name (`package.libs/`), of the distributions that own the packages or
    modules given.
    """
    found: set[str] = set()
    for _, data in _records(root):
        if b".libs/" not in data:
            continue
        paths = [row[0] for row in map(_row, data.split(b"\n")) if row]
        if any(path == head or path.startswith(f"{head}/") for path in paths for head in heads):
            found.update(head for head, slash, _ in (path.partition("/") for path in paths) if slash)
    return tuple(sorted(name for name in found if name.endswith(".libs") and (root / name).is_dir()))


def _records(root: Path) -> Iterator[tuple[str, bytes]]:
    """Every RECORD of the folder with its path."""
    try:
        names = sorted(os.listdir(root))
    except OSError as error:
        raise DriftcheckError(f"cannot list {root}: {error.strerror or error}") from error
    for name in names:
        path = f"{name}/RECORD"
        if name.endswith(".dist-info") and not name.startswith(".") and (root / path).is_file():
            try:
                yield path, read(root / path, path)
            except OSError as error:
                raise DriftcheckError(f"cannot read {path}: {error.strerror or error}") from error


def _updated(data: bytes, changes: Mapping[str, Change]) -> bytes:
    """RECORD with what is true of the files after their changes; the other lines stay to the byte."""
    lines = data.split(b"\n")
    for index, line in enumerate(lines):
        row = _row(line)
        if len(row) > 2 and row[0] in changes:
            end = b"\r" if line.endswith(b"\r") else b""
            lines[index] = _line([row[0], *_about(changes[row[0]].after, row), *row[3:]]) + end
    return b"\n".join(lines)


def _about(content: bytes, row: list[str]) -> tuple[str, str]:
    """Hash and size as the line gives them: what it leaves out is left out again."""
    algorithm = row[1].partition("=")[0]
    made = hashlib.new(algorithm if algorithm in _HASHES else _HASHES[0], content)
    text = base64.urlsafe_b64encode(made.digest()).decode().rstrip("=")
    return f"{made.name}={text}" if row[1] else "", str(len(content)) if row[2] else ""


def _row(line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.rstrip(b"\r").decode("utf-8", "surrogateescape")]), [])
    except csv.Error:
        return []


def _line(row: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(row)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _raw(path: str) -> bytes:
    """The path as it stands in RECORD, if it has no quotes in it, which are doubled there."""
    return path.partition('"')[0].encode("utf-8", "surrogateescape")
