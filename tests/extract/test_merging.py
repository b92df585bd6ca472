"""Shards in one folder or in several, joined and checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.extract.extraction import Job, extract
from driftcheck.extract.layouts import LAYOUTS
from driftcheck.extract.merging import merge
from driftcheck.extract.meter import Meter
from driftcheck.extract.resume import names_of

from . import stand_in


def shard(folder: Path, part: int, count: int, layout: str = "speculators", layers: int = 3) -> None:
    """One shard of 30 samples."""
    prompts = [sample for sample in stand_in.samples(30) if sample.number % count == part]
    description = {
        "layers": layers,
        "format": layout,
        "data": {"path": "p", "shard": [part, count], "prompts": str(part)},
    }
    names = names_of((part, count))
    job = Job(folder, names, layout, description, prompts, batch_tokens=100)
    extract(job, lambda: stand_in.StandIn(folder, layout, journal=names.journal), Meter(1))


def samples(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))["samples"]
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shards_of_one_folder(layout: str, tmp_path: Path) -> None:
    for part in range(3):
        shard(tmp_path, part, 3, layout)
    assert merge([tmp_path], tmp_path) == 30
    joint = samples(tmp_path / "manifest.json")
    assert [entry["sample"] for entry in joint] == list(range(30))
    assert {entry["path"] for entry in joint} == {LAYOUTS[layout].path(number) for number in range(30)}


def test_shards_of_several_folders(tmp_path: Path) -> None:
    for part in range(2):
        shard(tmp_path / f"part{part}", part, 2)
    assert merge([tmp_path / "part1", tmp_path / "part0"], tmp_path / "all") == 30
    joint = samples(tmp_path / "all" / "manifest.json")
    assert [entry["path"] for entry in joint][:2] == ["../part0/data_0.pt", "../part1/data_1.pt"]


def test_a_run_without_shards_is_checked_too(tmp_path: Path) -> None:
    shard(tmp_path, 0, 1)
    before = (tmp_path / "manifest.json").read_bytes()
    assert merge([tmp_path], tmp_path / "checked") == 30
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    for part in (0, 2):
        shard(tmp_path, part, 3)
    with pytest.raises(DriftcheckError, match=r"^shard 1/3 is missing$"):
        merge([tmp_path], tmp_path)


def test_a_shard_is_not_taken_twice(tmp_path: Path) -> None:
    for part in range(2):
        shard(tmp_path, part, 2)
    with pytest.raises(DriftcheckError, match=r"^a shard is there twice$"):
        merge([tmp_path, tmp_path], tmp_path / "all")


def test_shards_of_different_extractions_are_not_joined(tmp_path: Path) -> None:
    shard(tmp_path / "a", 0, 2)
    shard(tmp_path / "b", 1, 2, layers=4)
    with pytest.raises(DriftcheckError, match=r"are not of one extraction: layers differs"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all")


@pytest.mark.parametrize("damage", ["bit", "cut", "gone"])
def test_a_damaged_file_is_named(damage: str, tmp_path: Path) -> None:
    shard(tmp_path, 0, 1, "safetensors")
    path = tmp_path / "hidden_states" / "hs_7.safetensors"
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        content[-3] ^= 1
        path.write_bytes(content if damage == "bit" else content[:-3])
    with pytest.raises(DriftcheckError, match=r"hs_7.safetensors is not what the manifest says"):
        merge([tmp_path], tmp_path / "all")


def test_a_folder_without_a_finished_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(DriftcheckError, match=r"there is no manifest in it"):
        merge([tmp_path], tmp_path)
