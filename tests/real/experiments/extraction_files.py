# mypy: disable-error-code="import-not-found"
"""Data sets that pyarrow and datasets write, and what speculators' own data set class reads of extracted samples."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from pyarrow import parquet
from speculators.train.data import Eagle3SampleFileDataset

from driftcheck.extract.data import Limits, read_rows
from driftcheck.extract.layouts import LAYOUTS, Sample, Shape
from driftcheck.extract.writing import Writer

ROWS: list[dict[str, Any]] = [
    {"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1], "extra": "a"},
    {"input_ids": [4], "loss_mask": [1], "extra": "b"},
    {"input_ids": [], "loss_mask": [], "extra": "c"},
]


def read(path: Path) -> list[Any]:
    """The samples and bad rows of a data set."""
    rows = read_rows(path, Limits(vocabulary=10, longest=10), lambda: None)
    samples = [[sample.number, list(sample.tokens), list(sample.mask)] for sample in rows.samples]
    return [samples, [[row.number, row.reason] for row in rows.bad]]


def tables(folder: Path) -> dict[str, Any]:
    """The same rows in every form."""
    data = Dataset.from_list(ROWS)
    data.to_parquet(folder / "data.parquet")
    data.save_to_disk(folder / "saved")
    (arrow,) = (folder / "saved").glob("*.arrow")
    parts = folder / "parts"
    parts.mkdir()
    table = data.with_format("arrow")[:]
    parquet.write_table(table.slice(0, 1), parts / "a.parquet")
    parquet.write_table(table.slice(1), parts / "b.parquet")
    return {
        "parquet": read(folder / "data.parquet"),
        "arrow": read(arrow),
        "saved": read(folder / "saved"),
        "parts": read(parts),
    }


def training(folder: Path) -> dict[str, Any]:
    """What speculators makes of two samples, one of them without a loss mask."""
    shape = Shape(layers=4, hidden_size=8, dtype="bfloat16")
    memory = torch.empty(1 << 20, dtype=torch.uint8)
    writer = Writer(
        folder, LAYOUTS["speculators"], shape, memoryview(memory.numpy()), journal="samples.jsonl", threads=2
    )
    torch.manual_seed(1)
    states = [torch.randn(4, tokens, 8).bfloat16() for tokens in (5, 9)]
    for number, layers in enumerate(states):
        tokens = list(range(layers.shape[1]))
        sample = Sample(number, tokens, bytes(token % 2 for token in tokens) if number else None)
        extent = writer.room(sample)
        target = memory[extent.begin : extent.begin + layers.nbytes]
        target.copy_(layers.view(torch.uint8).flatten())
        writer.write(sample, extent, lambda: None)
    writer.flush()
    data = Eagle3SampleFileDataset(max_len=32, file_list=[str(folder / f"data_{number}.pt") for number in range(2)])
    answers = []
    for number, layers in enumerate(states):
        found = data[number]
        expected = torch.cat(list(layers[:3]), dim=-1).float()[:-1]
        answers.append(
            {
                "states": torch.equal(found["hidden_states"], expected),
                "last": torch.equal(found["verifier_last_hidden_states"], layers[3].float()[1:]),
                "tokens": found["input_ids"].tolist(),
                "mask": found["loss_mask"].tolist(),
            }
        )
    return {"found": [path.name for path in sorted(folder.glob("*pt"))], "samples": answers}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "states").mkdir()
        answer = {"tables": tables(Path(scratch)), "training": training(Path(scratch) / "states")}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
