"""What a run will take, worked out before anything is loaded: tokens, steps, bytes, memory, time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.extract.layouts import DATA_TYPES, Sample, Shape
from driftcheck.extract.writing import Record

DEFAULT_STEP = 8192
DEFAULT_HOST_MEMORY = 4 << 30
_STEPS_A_BATCH = 32
# What a file has beside its states: eight bytes a token for the tokens and for the mask, and headers.
_BYTES_A_TOKEN, _BYTES_A_FILE = 16, 4096
# What stays free on the disk, for journals and for others.
_MARGIN = 16 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """The figures of a run."""

    samples: int
    done: int
    tokens: int
    longest: int
    steps: int
    bytes_a_token: int
    bytes: int
    free: int
    host_memory: int
    batch_tokens: int

    def check_disk(self, folder: Path) -> None:
        """Raises DriftcheckError where the disk can't hold what is to be written."""
        if self.bytes + _MARGIN > self.free:
            raise DriftcheckError(
                f"{folder}: {size(self.bytes)} are to be written and {size(self.free)} are free;"
                " make room, name a folder on a larger disk, or take less with --limit, --layers or --shard"
            )

    def lines(self, rate: float) -> Iterator[tuple[str, str]]:
        """The plan in words: name and value."""
        done = f", {self.done} of them are there" if self.done else ""
        yield "samples", f"{self.samples:,}{done}"
        yield "tokens", f"{self.tokens:,} in {self.steps:,} steps or more, the longest prompt has {self.longest:,}"
        yield "written", f"{size(self.bytes)}, {self.bytes_a_token:,} bytes a token; {size(self.free)} are free"
        yield "memory", f"{size(self.host_memory)} of this machine's hold what waits to be written, never more"
        yield "time", f"{duration(self.tokens / rate)} at {rate:,.0f} tokens a second"


def planned(
    samples: Sequence[Sample],
    done: Mapping[int, Record],
    shape: Shape,
    folder: Path,
    *,
    step: int | None = None,
    host_memory: int | None = None,
) -> Plan:
    """The plan for the samples that are not there yet."""
    step = step or DEFAULT_STEP
    batch_tokens = _STEPS_A_BATCH * step
    left = [sample for sample in samples if sample.number not in done]
    tokens = sum(len(sample.tokens) for sample in left)
    longest = max((len(sample.tokens) for sample in left), default=0)
    return Plan(
        samples=len(samples),
        done=len(samples) - len(left),
        tokens=tokens,
        longest=longest,
        steps=-(-tokens // step),
        bytes_a_token=shape.token,
        bytes=tokens * (shape.token + _BYTES_A_TOKEN) + len(left) * _BYTES_A_FILE,
        free=_free(folder),
        host_memory=_memory(tokens * shape.token + len(left) * 4096, longest * shape.token, host_memory),
        batch_tokens=batch_tokens,
    )


def _memory(everything: int, largest: int, wanted: int | None) -> int:
    """How much memory samples wait in: two of the largest at least, and no more than all of them need."""
    least = 2 * (largest + 4096)
    if wanted is not None and wanted < least:
        raise DriftcheckError(f"--host-memory {wanted}: the largest sample, and one beside it, need {least} bytes")
    return max(least, min(wanted or DEFAULT_HOST_MEMORY, everything))


def batches(samples: Sequence[Sample], most_tokens: int) -> Iterator[list[Sample]]:
    """Samples in the order of the data, as many at a time as have that many tokens together.

    The same data make the same batches whatever is there already, so that a sample is always computed beside the same
    others.
    """
    batch: list[Sample] = []
    tokens = 0
    for sample in samples:
        if batch and tokens + len(sample.tokens) > most_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(sample)
        tokens += len(sample.tokens)
    if batch:
        yield batch


def planned_dtype(wanted: str, configured: str | None) -> str:
    """The type that vLLM will compute in, as far as it can be told beforehand."""
    if wanted != "auto":
        name = {"half": "float16", "float": "float32"}.get(wanted, wanted)
    else:
        name = configured if configured is not None and configured != "float32" else "bfloat16"
    if name not in DATA_TYPES:
        raise DriftcheckError(f"--dtype {wanted}: states are written as {', '.join(DATA_TYPES)}, and not as {name}")
    return name


def writers() -> int:
    """How many threads write: the other cores are for the engine, and more than some threads no disk keeps busy."""
    return max(4, min((os.cpu_count() or 1) // 2, 16))


def _free(folder: Path) -> int:
    """What is free on the disk of a folder that may not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def size(number: float) -> str:
    """A number of bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit in {"bytes", "kB"} else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.2f} TB"


def duration(seconds: float) -> str:
    """A time in words."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s"
