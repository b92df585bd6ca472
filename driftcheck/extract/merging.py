"""Joins what shards have written: every file is read and checked, and one manifest lists them all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError
from driftcheck.extract.layouts import LAYOUTS
from driftcheck.extract.resume import names_of, read_json, record_of, write_json
from driftcheck.extract.writing import Record


def merge(folders: Sequence[Path], output: Path) -> int:
    """Writes the joint manifest into the output folder and gives the number of samples.

    Raises DriftcheckError where a shard is missing, two differ in what they hold, or a file is not what its manifest
    says.
    """
    found = [(path, read_json(path)) for folder in folders for path in _manifests(folder)]
    if not found:
        raise DriftcheckError(f"{folders[0]}: there is no manifest in it; merge takes folders of finished runs")
    first_path, first = found[0]
    shards = [tuple(manifest.get("data", {}).get("shard", (0, 1))) for _, manifest in found]
    for path, manifest in found[1:]:
        for name in _differences(first, manifest):
            raise DriftcheckError(f"{path} and {first_path} are not of one extraction: {name} differs")
    missing = sorted({(part, shards[0][1]) for part in range(shards[0][1])} - set(shards))
    if missing:
        raise DriftcheckError(f"shard {missing[0][0]}/{missing[0][1]} is missing")
    if len(set(shards)) < len(shards):
        raise DriftcheckError("a shard is there twice")
    samples: dict[int, dict[str, Any]] = {}
    for path, manifest in found:
        for entry in manifest["samples"]:
            _check(path.parent, record_of(entry), manifest["format"])
            place = os.path.relpath(path.parent / entry["path"], output)
            samples[entry["sample"]] = {**entry, "path": place}
    failed = sorted(number for _, manifest in found for number in manifest["failed"])
    joint = {**first, "data": {"path": first["data"]["path"], "shard": [0, 1]}}
    output.mkdir(parents=True, exist_ok=True)
    entries = [samples[number] for number in sorted(samples)]
    write_json(output / names_of((0, 1)).manifest, {**joint, "failed": failed, "samples": entries})
    return len(entries)


def _manifests(folder: Path) -> Iterator[Path]:
    """The manifests of a folder: those of its shards, else the one there is."""
    whole = folder / names_of((0, 1)).manifest
    parts = sorted(folder.glob("manifest-*-of-*.json"))
    yield from parts or ([whole] if whole.is_file() else [])


def _differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*first, *other} - {"samples", "failed", "data"}):
        if first.get(name) != other.get(name):
            yield name
    if first["data"]["path"] != other["data"]["path"] or first["data"]["shard"][1] != other["data"]["shard"][1]:
        yield "data"


def _check(folder: Path, record: Record, layout: str) -> None:
    path = folder / record.path
    try:
        if path.stat().st_size != record.bytes:
            raise ValueError("its size is another")
        with path.open("rb") as file:
            if LAYOUTS[layout].read_checksums(file) != dict(record.crc32):
                raise ValueError("its checksum is another")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
        message = f"{path} is not what the manifest says: {reason}; remove it and extract again"
        raise DriftcheckError(message) from error
