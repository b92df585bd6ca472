# mypy: disable-error-code="import-not-found"
"""What several ranks capture, held against what one captures and against transformers: who writes it, and when.

Run with a folder, the name of a model and the sizes of the tensor and the pipeline parallelism, beside an installed
driftcheck; in the same folder with both sizes 1 first. The disk stands still until the memory is full that samples
wait in: steps that waited for the disk would never come.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import extraction
import torch
from extraction import before_capture, command, distance, judged, made, read

from driftcheck.cli import main
from driftcheck.extract.layouts import Sample
from driftcheck.extract.writing import Extent, Record, Writer

_LAYOUT = "safetensors"
# Of the 10.5 MB that all samples have.
_MEMORY = 4_000_000
# Whatever waits for longer waits for the disk, which is let go then.
_PATIENCE = 300


class Log:
    """What the ranks tell of, in the order in which it happens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._disk = path.with_suffix(".stands-still")

    def begin(self) -> None:
        """Begins anew, and stops the disk."""
        self._path.unlink(missing_ok=True)
        self._disk.touch()

    def tell(self, what: str, number: int) -> None:
        """Adds a line, in one call, since others add lines as well."""
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps([torch.distributed.get_rank(), what, number]).encode() + b"\n")

    def entries(self) -> list[tuple[int, str, int]]:
        """Rank, what it tells of, and a number."""
        return [tuple(json.loads(line)) for line in self._path.read_text(encoding="utf-8").splitlines()]

    def let_go(self) -> None:
        """Has the disk go on."""
        self._disk.unlink(missing_ok=True)

    def wait(self) -> None:
        """Waits for the disk."""
        end = time.monotonic() + _PATIENCE
        while self._disk.exists():
            if time.monotonic() > end:
                self.tell("waits in vain", 0)
                self.let_go()
            time.sleep(0.001)


def watch(log: Log) -> None:
    """Has workers, which import this file too, tell of their steps and of what they write."""
    write, room = Writer._written_file, Writer.room

    def written(writer: Writer, sample: Sample, extent: Extent) -> Record:
        log.wait()
        record = write(writer, sample, extent)
        log.tell("wrote", sample.number)
        return record

    def waited(writer: Writer, sample: Sample) -> Extent:
        log.tell("is full", writer.most_in_use)
        log.let_go()
        return room(writer, sample)

    def count_steps(runner: Any) -> None:
        execute = runner.execute_model

        def counted(step: Any, *arguments: Any, **options: Any) -> Any:
            result = execute(step, *arguments, **options)
            if step.total_num_scheduled_tokens:
                log.tell("stepped", step.total_num_scheduled_tokens)
            return result

        runner.execute_model = counted

    Writer._written_file = written  # type: ignore[assignment,method-assign]
    Writer.room = waited  # type: ignore[assignment,method-assign]
    before_capture(count_steps)


def captured(folder: Path, name: str, tensors: str, stages: str, log: Log) -> dict[str, Any]:
    """How the command ended, what it has written, who did, and how far it is from what one rank has written."""
    alone, output = folder / "states-1-1", folder / f"states-{tensors}-{stages}"
    model = made(name, folder / "model")
    log.begin()
    arguments = command(name, folder, output, _LAYOUT, tensors, stages)
    code = main([*arguments, "--no-smoke", "--host-memory", str(_MEMORY)])
    entries = log.entries()
    first = next(place for place, (_, what, _) in enumerate(entries) if what == "wrote")
    steps = Counter(rank for rank, what, _ in entries if what == "stepped")
    before = Counter(rank for rank, what, _ in entries[:first] if what == "stepped")
    numbers = [entry["sample"] for entry in json.loads((output / "manifest.json").read_text())["samples"]]
    return {
        "code": code,
        "samples": judged(name, model, output, _LAYOUT),
        "writers": sorted({rank for rank, what, _ in entries if what == "wrote"}),
        "writes": sorted(number for _, what, number in entries if what == "wrote"),
        "listed": numbers,
        "steps": [steps[rank] for rank in range(int(tensors) * int(stages))],
        "steps_before_the_first_write": [before[rank] for rank in range(int(tensors) * int(stages))],
        "most_memory": max(number for _, what, number in entries if what == "is full"),
        "in_vain": sum(what == "waits in vain" for _, what, _ in entries),
        "same_bytes": sum(
            (output / path).read_bytes() == (alone / path).read_bytes()
            for path in (f"hidden_states/hs_{number}.safetensors" for number in numbers)
        ),
        "furthest_from_one_rank": max(furthest(output, alone, number) for number in numbers),
    }


def furthest(ours: Path, theirs: Path, number: int) -> float:
    """The largest distance between the layers that two runs have written of a sample."""
    pairs = zip(read(ours, _LAYOUT, number)[1], read(theirs, _LAYOUT, number)[1], strict=True)
    return max(distance(*pair) or 0.0 for pair in pairs)


_folder, _name, _tensors, _stages = sys.argv[1:]
_log = Log(Path(_folder, f"log-{_tensors}-{_stages}"))
extraction.prepare(_name)
watch(_log)

if __name__ == "__main__":
    Path(_folder).mkdir(parents=True, exist_ok=True)
    sys.stdout.write("\n" + json.dumps(captured(Path(_folder), _name, _tensors, _stages, _log)) + "\n")
