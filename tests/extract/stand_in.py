"""A stand-in for the engine: it takes prompts and writes, through the real writer, states that follow from the tokens.

As a script it is a whole run, to be killed: it takes the output folder, the layout and the number of samples, and then
perhaps the number of a sample that fails.
"""

from __future__ import annotations

import random
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from driftcheck.extract.extraction import Job, Outcome, Result, extract, locked
from driftcheck.extract.layouts import LAYOUTS, Sample, Shape
from driftcheck.extract.meter import Meter
from driftcheck.extract.resume import Names, fingerprint
from driftcheck.extract.writing import Writer

SHAPE = Shape(layers=3, hidden_size=8, dtype="float32")


def samples(count: int) -> list[Sample]:
    """Prompts of 1 to 40 tokens."""
    numbers = random.Random(count)
    return [Sample(place, [numbers.randrange(100) for _ in range(numbers.randrange(1, 41))]) for place in range(count)]


def states_of(sample: Sample) -> bytes:
    """What stands for a sample's hidden states."""
    count = len(sample.tokens) * SHAPE.layers * SHAPE.hidden_size
    numbers = random.Random(",".join(map(str, sample.tokens)))
    return struct.pack(f"<{count}f", *(numbers.random() for _ in range(count)))


class PoisonError(Exception):
    """What a sample raises that can't be read; it has no text, as an assertion has none."""


class StandIn:
    """Reads as an engine does: a batch at a time, the samples of one before any of the next."""

    def __init__(
        self,
        folder: Path,
        layout: str,
        *,
        poison: int | None = None,
        pause: float = 0,
        room: int = 1 << 16,
        journal: str = "samples.jsonl",
    ) -> None:
        self.memory = memoryview(bytearray(room))
        self.writer = Writer(folder, LAYOUTS[layout], SHAPE, self.memory, journal=journal, threads=3)
        self.batches: list[list[int]] = []
        self._poison, self._pause = poison, pause
        self._missing: list[tuple[int, int]] = []

    def capture(self, samples: Sequence[Sample], done: Iterable[int]) -> None:
        there = set(done)
        self.batches.append([sample.number for sample in samples if sample.number not in there])
        self._missing = [(sample.number, 0) for sample in samples if sample.number not in there]
        for sample in samples:
            if sample.number == self._poison:
                raise PoisonError
            if sample.number not in there:
                extent = self.writer.room(sample)
                content = states_of(sample)
                self.writer.bytes_of(extent)[: len(content)] = content
                self._missing = [entry for entry in self._missing if entry[0] != sample.number]
                self.writer.write(sample, extent, lambda: time.sleep(self._pause))

    def collect(self, *, flush: bool = False) -> Outcome:
        if flush:
            self.writer.flush()
        written, failures = self.writer.collect()
        return Outcome(tuple(written), tuple(failures), tuple(self._missing), self.writer.most_in_use)


def job(folder: Path, layout: str, prompts: Sequence[Sample], *, stops_on_error: bool = False) -> Job:
    """A run over prompts, some of them at a time."""
    description = {
        "model": "stand-in",
        "format": layout,
        "data": {"path": "p", "shard": [0, 1], "prompts": fingerprint(prompts)},
    }
    return Job(folder, Names(), layout, description, prompts, batch_tokens=100, stops_on_error=stops_on_error)


def run(folder: Path, layout: str, count: int, *, poison: int | None = None, pause: float = 0) -> Result:
    """A whole run."""
    with locked(folder, Names()):
        whole = job(folder, layout, samples(count))
        return extract(whole, lambda: StandIn(folder, layout, poison=poison, pause=pause), Meter(1))


if __name__ == "__main__":
    poisoned = int(sys.argv[4]) if len(sys.argv) > 4 else None
    run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), poison=poisoned, pause=0.004)
