"""Writes samples while the next ones are computed: a bounded piece of memory, threads that write, a journal."""

from __future__ import annotations

import bisect
import errno
import json
import os
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from driftcheck.extract.layouts import Layout, Sample, Shape

PARTIAL = ".partial"
_ALIGNMENT = 4096


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a sample that is written."""

    sample: int
    path: str
    tokens: int
    bytes: int
    crc32: Mapping[str, str]

    def line(self) -> str:
        """Its line in the journal."""
        entry = {
            "sample": self.sample,
            "path": self.path,
            "tokens": self.tokens,
            "bytes": self.bytes,
            "crc32": dict(self.crc32),
        }
        return json.dumps(entry, separators=(",", ":")) + "\n"


@dataclass(frozen=True, slots=True)
class Failure:
    """A sample that could not be written, and the whole traceback."""

    sample: int
    is_full: bool
    text: str


@dataclass(frozen=True, slots=True)
class Extent:
    """A piece of the memory that samples wait in."""

    begin: int
    size: int


class Memory:
    """Hands out pieces of one buffer, the first that fits; never more than the buffer has."""

    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer
        self._free = [(0, buffer.nbytes)]

    def take(self, size: int) -> Extent | None:
        """A piece of that many bytes, None where no free one is large enough."""
        size = -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
        for place, (begin, free) in enumerate(self._free):
            if free >= size:
                if free == size:
                    del self._free[place]
                else:
                    self._free[place] = (begin + size, free - size)
                return Extent(begin, size)
        return None

    def give(self, extent: Extent) -> None:
        """Takes a piece back, and joins it to its free neighbours."""
        place = bisect.bisect(self._free, (extent.begin, 0))
        begin, size = extent.begin, extent.size
        if place < len(self._free) and begin + size == self._free[place][0]:
            size += self._free.pop(place)[1]
        if place and sum(self._free[place - 1]) == begin:
            begin, before = self._free.pop(place - 1)
            size += before
            place -= 1
        self._free.insert(place, (begin, size))


class Writer:
    """Threads that write samples out of the memory, each file whole or not at all.

    A file is written under another name, to the disk, renamed, and then noted in the journal; whatever kills the
    process or the machine, a file that the journal has is whole, and was written by this run or one before.
    """

    def __init__(
        self, folder: Path, layout: Layout, shape: Shape, memory: memoryview, *, journal: str, threads: int
    ) -> None:
        self._folder, self._layout, self._shape = folder, layout, shape
        self._memory = Memory(memory)
        self._changed = threading.Condition()
        self._queue: SimpleQueue[tuple[Sample, Extent, Callable[[], None]] | None] = SimpleQueue()
        self._pending = 0
        self._in_use = 0
        self._most_in_use = 0
        self._written: list[Record] = []
        self._failures: list[Failure] = []
        self._journal = os.open(folder / journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    @property
    def most_in_use(self) -> int:
        """The most bytes of the memory that were ever in use at a time."""
        return self._most_in_use

    def room_now(self, sample: Sample) -> Extent | None:
        """Memory for a sample's states, None where there is none now."""
        with self._changed:
            return self._taken(sample)

    def _taken(self, sample: Sample) -> Extent | None:
        extent = self._memory.take(len(sample.tokens) * self._shape.token)
        if extent is not None:
            self._in_use += extent.size
            self._most_in_use = max(self._most_in_use, self._in_use)
        return extent

    def room(self, sample: Sample) -> Extent:
        """Memory for a sample's states; waits until there is some.

        Raises MemoryError where none will come, because nothing waits to be written.
        """
        with self._changed:
            while (extent := self._taken(sample)) is None:
                if not self._pending:
                    size = len(sample.tokens) * self._shape.token
                    raise MemoryError(
                        f"sample {sample.number} needs {size} bytes of the {self._memory.buffer.nbytes} that samples"
                        " wait in, and nothing is left there to be written"
                    )
                self._changed.wait()
            return extent

    def bytes_of(self, extent: Extent) -> memoryview:
        """The memory that a piece stands for."""
        return self._memory.buffer[extent.begin : extent.begin + extent.size]

    def release(self, extent: Extent) -> None:
        """Gives a piece back."""
        with self._changed:
            self._memory.give(extent)
            self._in_use -= extent.size
            self._changed.notify_all()

    def write(self, sample: Sample, extent: Extent, ready: Callable[[], None]) -> None:
        """Has a sample written, once `ready` returns: then its states are all there."""
        with self._changed:
            self._pending += 1
        self._queue.put((sample, extent, ready))

    def collect(self) -> tuple[list[Record], list[Failure]]:
        """What has been written since the last time, and what could not be."""
        with self._changed:
            written, self._written = self._written, []
            failures, self._failures = self._failures, []
        return written, failures

    def flush(self) -> None:
        """Waits until nothing is left to write."""
        with self._changed:
            while self._pending:
                self._changed.wait()

    def close(self) -> None:
        """Ends the threads when all is written."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        os.close(self._journal)

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            sample, extent, ready = task
            record: Record | None = None
            failure: Failure | None = None
            try:
                ready()
                record = self._written_file(sample, extent)
            except Exception as error:  # noqa: BLE001 (whatever it is, the run has to hear of it)
                is_full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
                failure = Failure(sample.number, is_full, traceback.format_exc())
            with self._changed:
                if record is not None:
                    self._written.append(record)
                if failure is not None:
                    self._failures.append(failure)
                self._memory.give(extent)
                self._in_use -= extent.size
                self._pending -= 1
                self._changed.notify_all()

    def _written_file(self, sample: Sample, extent: Extent) -> Record:
        path = self._folder / self._layout.path(sample.number)
        partial = path.with_name(f".{path.name}{PARTIAL}")
        states = self.bytes_of(extent)[: len(sample.tokens) * self._shape.token]
        try:
            with partial.open("wb") as file:
                checksums = self._layout.write(file, sample, self._shape, states)
                file.flush()
                # Else, after a power failure, the journal might list a file that has nothing in it.
                os.fsync(file.fileno())
            size = partial.stat().st_size
            partial.replace(path)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise
        record = Record(sample.number, self._layout.path(sample.number), len(sample.tokens), size, checksums)
        line = record.line().encode()
        # One call appends the line whole; a kill may still cut it, and what reads the journal knows.
        if os.write(self._journal, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))
        return record
