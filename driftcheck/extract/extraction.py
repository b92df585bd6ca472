"""The use case behind `driftcheck extract`: batches go to an engine, and what becomes of samples is written down."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from driftcheck.errors import DriftcheckError
from driftcheck.extract.layouts import Sample
from driftcheck.extract.meter import Meter
from driftcheck.extract.plan import batches
from driftcheck.extract.resume import Names, finish, prepare
from driftcheck.extract.writing import Failure, Record

# So many samples that fail one after another have a reason that the next one has too.
_TOO_MANY = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of samples since it was last asked for."""

    written: tuple[Record, ...]
    failed: tuple[Failure, ...]
    missing: tuple[tuple[int, int], ...]
    """Samples of which rows are missing, and how many rows are there."""
    most_memory: int = 0


class Capturing(Protocol):
    """What reads prompts and writes their states."""

    def capture(self, samples: Sequence[Sample], done: Iterable[int]) -> None:
        """Reads a batch; of the samples in `done` nothing is written. Raises whatever the model's engine raises."""

    def collect(self, *, flush: bool = False) -> Outcome:
        """What has been written since the last time; with `flush`, after everything has been."""


class EngineError(DriftcheckError):
    """What no other prompt would mend, with the traceback."""

    stage = "engine"
    what = "the engine failed"
    advice = ""

    def __init__(self, text: str, errors: str = Names().errors) -> None:
        super().__init__(f"{self.what}: {_last_line(text)}; {errors} has the traceback{self.advice}")
        self.traceback = text


class LoadError(EngineError):
    """A model that vLLM did not load."""

    stage = "load"
    what = "vllm can't load the model"


class LostWorkerError(EngineError):
    """A process of the engine's that has ended."""

    stage = "engine"
    what = "the engine is gone"
    advice = ", and the same command goes on where this one was"


class CaptureError(EngineError):
    """States that could not be taken from a model."""

    stage = "capture"
    what = "the states could not be taken"


@dataclass(frozen=True, slots=True)
class Job:
    """All that a run needs to know."""

    folder: Path
    names: Names
    layout: str
    description: Mapping[str, Any]
    samples: Sequence[Sample]
    batch_tokens: int
    bad: Mapping[int, str] = field(default_factory=dict)
    """Rows of the data that are no prompts, and why."""
    stops_on_error: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended."""

    written: int
    there: int
    failed: Mapping[int, str]
    most_memory: int


def locked(folder: Path, names: Names) -> AbstractContextManager[object]:
    """Holds the folder for one process; raises DriftcheckError where another has it."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / names.lock)
    try:
        return lock.acquire(blocking=False)
    except Timeout:
        raise DriftcheckError(f"another driftcheck extract is writing to {folder}") from None


def extract(job: Job, engine: Callable[[], Capturing], meter: Meter) -> Result:
    """Extracts what is not there yet; the engine is made when there is something to do.

    Whatever ends a run, the same job goes on where it was: at most the samples of the batches under way are read again.
    """
    done = prepare(job.folder, job.names, job.layout, job.description)
    return _Run(job, done, meter).result(engine)


class _Run:
    def __init__(self, job: Job, done: Mapping[int, Record], meter: Meter) -> None:
        self._job = job
        self._there = dict(done)
        self._records = dict(done)
        self._meter = meter
        self._failed: dict[int, str] = {}
        self._in_a_row = 0
        self._most_memory = 0
        self._errors = job.folder / job.names.errors

    def result(self, make_engine: Callable[[], Capturing]) -> Result:
        job = self._job
        self._errors.unlink(missing_ok=True)
        for number, reason in job.bad.items():
            self._fail(number, "data", reason, reason)
        if any(sample.number not in self._records for sample in job.samples):
            try:
                engine = make_engine()
                for batch in batches(job.samples, job.batch_tokens):
                    done = {sample.number for sample in batch if sample.number in self._there}
                    if len(done) < len(batch):
                        self._capture(engine, batch, done)
                self._collect(engine, flush=True)
            except EngineError as error:
                self._note(None, error.stage, _last_line(error.traceback), error.traceback)
                raise type(error)(error.traceback, self._errors.name) from error
            finally:
                self._meter.close()
        lost = [sample.number for sample in job.samples if sample.number not in {*self._records, *self._failed}]
        if lost:
            raise DriftcheckError(f"{len(lost)} samples, {lost[0]} first, were neither written nor refused")
        wanted = {sample.number for sample in job.samples}
        records = [record for number, record in self._records.items() if number in wanted]
        finish(job.folder, job.names, job.description, records, list(self._failed))
        there = sum(number in wanted for number in self._there)
        return Result(len(records) - there, there, self._failed, self._most_memory)

    def _capture(self, engine: Capturing, batch: Sequence[Sample], done: set[int]) -> None:
        """Reads a batch; where it fails, its halves, down to the sample that does it."""
        try:
            engine.capture(batch, done)
        except EngineError:
            raise
        except Exception as error:  # noqa: BLE001 (what it is decides nothing: any of it may be one sample's fault)
            self._bisect(engine, batch, done, error)
            return
        outcome = self._collect(engine)
        missing = {number: rows for number, rows in outcome.missing if number not in done}
        for sample in batch:
            if sample.number in missing:
                text = f"{missing[sample.number]} of {len(sample.tokens)} rows came out of the model"
                self._fail(sample.number, "capture", text, text)
            elif sample.number not in done:
                self._in_a_row = 0

    def _bisect(self, engine: Capturing, batch: Sequence[Sample], done: set[int], error: Exception) -> None:
        text = "".join(traceback.format_exception(error))
        try:
            outcome = self._collect(engine)
        except DriftcheckError:
            raise
        except Exception as second:
            self._note(None, "engine", _last_line(text), text)
            raise DriftcheckError(
                f"the engine is gone: {_last_line(text)}; {self._errors.name} has the traceback, and the same command"
                " goes on where this one was"
            ) from second
        missing = {number for number, _ in outcome.missing}
        left = [sample for sample in batch if sample.number in missing and sample.number not in done]
        if len(left) > 1 or (left and len(batch) > 1):
            half = max(len(left) // 2, 1)
            for part in (left[:half], left[half:]):
                if part:
                    self._capture(engine, part, set())
        elif left:
            self._fail(left[0].number, "engine", _last_line(text), text)

    def _collect(self, engine: Capturing, *, flush: bool = False) -> Outcome:
        outcome = engine.collect(flush=flush)
        self._most_memory = max(self._most_memory, outcome.most_memory)
        for record in outcome.written:
            self._records[record.sample] = record
        if outcome.written:
            self._meter.advance(
                len(outcome.written),
                sum(record.tokens for record in outcome.written),
                sum(record.bytes for record in outcome.written),
            )
        for failure in outcome.failed:
            self._note(failure.sample, "write", _last_line(failure.text), failure.text)
        if outcome.failed:
            first = outcome.failed[0]
            reason = "its disk is full" if first.is_full else _last_line(first.text)
            raise DriftcheckError(
                f"{self._job.folder} can't be written: {reason}; {len(self._records)} of {len(self._job.samples)}"
                " samples are there, and the same command goes on with the others"
            )
        return outcome

    def _fail(self, number: int, stage: str, reason: str, text: str) -> None:
        self._note(number, stage, reason, text)
        self._failed[number] = reason
        if self._job.stops_on_error:
            raise DriftcheckError(f"sample {number}: {reason}")
        if stage != "data":
            self._in_a_row += 1
            if self._in_a_row >= _TOO_MANY:
                raise DriftcheckError(f"{_TOO_MANY} samples failed one after another, the last with: {reason}")

    def _note(self, number: int | None, stage: str, reason: str, text: str) -> None:
        entry = {"sample": number, "stage": stage, "error": reason, "traceback": text}
        try:
            with self._errors.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            if stage != "write":
                raise DriftcheckError(f"{self._errors} can't be written: {error.strerror}") from error


def _last_line(text: str) -> str:
    """The last line of a traceback: the exception, and its class where it has no text."""
    return text.strip().splitlines()[-1]
