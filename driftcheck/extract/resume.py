"""What an output folder holds already, and what it will hold when the run is over."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError
from driftcheck.extract.layouts import LAYOUTS, Sample
from driftcheck.extract.writing import PARTIAL, Record

VERSION = 1


@dataclass(frozen=True, slots=True)
class Names:
    """The files beside the samples; each shard has its own, so that shards can share a folder."""

    suffix: str = ""

    @property
    def journal(self) -> str:
        """The samples that are written, while the run goes on."""
        return f"samples{self.suffix}.jsonl"

    @property
    def description(self) -> str:
        """What is extracted, of what, and how."""
        return f"extraction{self.suffix}.json"

    @property
    def manifest(self) -> str:
        """The description and all samples, when the run is over."""
        return f"manifest{self.suffix}.json"

    @property
    def errors(self) -> str:
        """The samples that there will not be, and why."""
        return f"errors{self.suffix}.jsonl"

    @property
    def lock(self) -> str:
        """Held by the process that writes."""
        return f".extraction{self.suffix}.lock"


def names_of(shard: tuple[int, int]) -> Names:
    """The names that a shard's files have."""
    return Names() if shard == (0, 1) else Names(f"-{shard[0]}-of-{shard[1]}")


def prepare(folder: Path, names: Names, layout: str, description: Mapping[str, Any]) -> dict[int, Record]:
    """Makes the folder ready, and gives the samples that are in it already.

    Raises DriftcheckError where it holds something else than what is to be written into it.
    """
    (folder / LAYOUTS[layout].path(0)).parent.mkdir(parents=True, exist_ok=True)
    path = folder / names.description
    if path.is_file():
        _check_same(path, description)
    done = written(folder, names)
    for partial in (folder / LAYOUTS[layout].path(0)).parent.glob(f".*{PARTIAL}"):
        if not names.suffix or _number(partial) is None:
            with suppress(OSError):
                partial.unlink()
    _mend_journal(folder / names.journal)
    write_json(path, description)
    return done


def written(folder: Path, names: Names) -> dict[int, Record]:
    """The samples that a journal or a manifest lists and whose files are there, of the right size."""
    records = {record.sample: record for record in _records(folder, names)}
    return {number: record for number, record in sorted(records.items()) if _is_whole(folder, record)}


def _is_whole(folder: Path, record: Record) -> bool:
    try:
        return (folder / record.path).stat().st_size == record.bytes
    except OSError:
        return False


def _records(folder: Path, names: Names) -> Iterator[Record]:
    manifest = folder / names.manifest
    if manifest.is_file():
        for entry in read_json(manifest).get("samples", []):
            yield record_of(entry)
    journal = folder / names.journal
    if journal.is_file():
        for line in journal.read_bytes().split(b"\n")[:-1]:
            with suppress(ValueError, KeyError, TypeError):
                yield record_of(json.loads(line))


def record_of(entry: Mapping[str, Any]) -> Record:
    """A record as a journal or manifest has it."""
    return Record(int(entry["sample"]), entry["path"], entry["tokens"], entry["bytes"], entry["crc32"])


def _mend_journal(journal: Path) -> None:
    """Cuts off what a killed process has left of its last line."""
    with suppress(FileNotFoundError):
        content = journal.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.truncate(journal, end)


def _number(partial: Path) -> int | None:
    digits = "".join(character for character in partial.name if character.isdigit())
    return int(digits) if digits else None


def _check_same(path: Path, description: Mapping[str, Any]) -> None:
    before = read_json(path)
    now = json.loads(json.dumps(description))
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise DriftcheckError(
                f"{path.parent} holds another extraction: {name} was {_short(before.get(name))} and is"
                f" {_short(now.get(name))}; name another folder"
            )


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def finish(
    folder: Path, names: Names, description: Mapping[str, Any], records: Iterable[Record], bad: Sequence[int]
) -> None:
    """Writes the manifest; the journal has done its work then."""
    samples = [json.loads(record.line()) for record in sorted(records, key=lambda record: record.sample)]
    write_json(folder / names.manifest, {**description, "failed": sorted(bad), "samples": samples})
    with suppress(FileNotFoundError):
        (folder / names.journal).unlink()


def fingerprint(samples: Iterable[Sample]) -> str:
    """Stands for the prompts: the same for the same numbers, tokens and masks."""
    digest = hashlib.blake2b(digest_size=16)
    for sample in samples:
        digest.update(f"{sample.number} {len(sample.tokens)} ".encode())
        digest.update(array("i", sample.tokens).tobytes())
        digest.update(sample.mask)
    return digest.hexdigest()


def read_json(path: Path, otherwise: str = "is not what driftcheck extract writes") -> dict[str, Any]:
    """A file that holds one object; raises DriftcheckError, with `otherwise` for a file that holds anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DriftcheckError(f"{path} can't be read: {error}") from error
    if not isinstance(content, dict):
        raise DriftcheckError(f"{path} {otherwise}")
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replaces a file whole or not at all."""
    partial = path.with_name(f".{path.name}{PARTIAL}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise DriftcheckError(f"{path} can't be written: {error.strerror}") from error
