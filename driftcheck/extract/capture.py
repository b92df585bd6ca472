# mypy: disable-error-code="import-not-found"
"""What vLLM's workers load: it takes the states of a step's rows, finds out whose they are, and has them written.

The engine gives `HiddenStates` to vLLM by name (`worker_extension_cls`), which makes it a base of its worker class; its
methods are called through `collective_rpc`. One worker writes: the first of those that share the last layers. Nothing
here waits for the device: sums go to a staging buffer on the compute stream, from there on a stream of their own to
page-locked memory, and from there, in threads, to files.
"""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftcheck.extract import internals
from driftcheck.extract.hooks import Copy, Hooks, Relay
from driftcheck.extract.layouts import LAYOUTS, Layout, Sample, Shape
from driftcheck.extract.writing import Extent, Writer

EXTENSION = f"{__name__}.HiddenStates"
_STAGING_BUFFERS = 2


class HiddenStates:
    """The methods that a worker gains; their names are ours alone, since vLLM refuses what a worker has already."""

    _driftcheck: _Capture | Relay | Copy | None = None

    def driftcheck_start(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Puts the hooks in place and gives what will be captured, on the worker that writes it."""
        worker: Any = self
        if not internals.is_last_stage():
            self._driftcheck = Relay(worker, settings["layers"])
        elif internals.tensor_rank() == 0:
            self._driftcheck = capture = _Capture(worker, settings)
            return {
                "layers": capture.shape.layers,
                "hidden_size": capture.shape.hidden_size,
                "dtype": capture.shape.dtype,
            }
        elif not internals.is_first_stage():
            self._driftcheck = Copy(worker)
        return {}

    def driftcheck_expect(self, samples: Sequence[tuple[int, list[int], bytes, bool]]) -> None:
        """Says which prompts come next, and of which of them the states are wanted; others are forgotten."""
        if isinstance(self._driftcheck, _Capture):
            self._driftcheck.expect(
                [(Sample(number, tokens, mask), wanted) for number, tokens, mask, wanted in samples]
            )
        elif isinstance(self._driftcheck, Relay):
            self._driftcheck.expect(is_anything=any(wanted for *_, wanted in samples))

    def driftcheck_collect(self, *, flush: bool = False) -> dict[str, Any]:
        """What has become of the samples so far: those written, those that failed, and what else went wrong."""
        if isinstance(self._driftcheck, _Capture):
            return self._driftcheck.collect(flush=flush)
        return {"problem": None if self._driftcheck is None else self._driftcheck.problem}


@dataclass(slots=True)
class _Active:
    """A prompt under way: how many of its rows are there, and where."""

    sample: Sample
    is_wanted: bool
    filled: int = 0
    extent: Extent | None = None


@dataclass(slots=True)
class _Staging:
    """A buffer on the device that holds a step's states until they are copied, and when that is."""

    states: Any
    copied: Any = None


@dataclass(slots=True)
class _Step:
    """The step under way: where its rows go, whose prompts begin, and how much of each was there before."""

    staging: _Staging
    begun: dict[str, list[int] | None]
    before: dict[str, int]


class _Capture(Hooks):
    """The capture of the worker that writes."""

    def __init__(self, worker: Any, settings: Mapping[str, Any]) -> None:
        import torch

        super().__init__(worker, settings["layers"])
        configuration = internals.configuration_of(worker)
        dtype = str(internals.data_type(configuration)).removeprefix("torch.")
        self.shape = Shape(self.count, self.hidden_size, dtype)
        self._layout: Layout = LAYOUTS[settings["layout"]]
        self._runner = internals.runner_of(worker)
        self._waiting: dict[tuple[int, ...], deque[tuple[Sample, bool]]] = defaultdict(deque)
        self._active: dict[str, _Active] = {}
        self._step: _Step | None = None
        self._steps = 0
        self._deferred: list[Callable[[], None]] = []
        self._device = next(internals.model_of(worker).parameters()).device
        self._has_streams = self._device.type == "cuda"
        self._copying = torch.cuda.Stream(self._device) if self._has_streams else None
        rows = internals.most_tokens_a_step(configuration)
        self._staging = [self._staging_buffer(rows) for _ in range(_STAGING_BUFFERS if self._has_streams else 1)]
        # One array for all samples that wait: page-locked memory is slow to get, and this is all there will be.
        self._memory = torch.empty(int(settings["host_memory"]), dtype=torch.uint8, pin_memory=self._has_streams)
        self._writer = Writer(
            Path(settings["folder"]),
            self._layout,
            self.shape,
            memoryview(self._memory.numpy()),
            journal=settings["journal"],
            threads=int(settings["writers"]),
        )

    def _staging_buffer(self, rows: int) -> _Staging:
        import torch

        size = (rows, self.shape.layers) if self._layout.by_token else (self.shape.layers, rows)
        dtype = getattr(torch, self.shape.dtype)
        return _Staging(torch.empty((*size, self.shape.hidden_size), dtype=dtype, device=self._device))

    def expect(self, samples: Sequence[tuple[Sample, bool]]) -> None:
        self.guarded(self._start_copies)
        for active in self._active.values():
            if active.extent is not None:
                self._writer.release(active.extent)
        self._active.clear()
        self._waiting.clear()
        self.problem = None
        for sample, is_wanted in samples:
            self._waiting[tuple(sample.tokens)].append((sample, is_wanted))

    def collect(self, *, flush: bool) -> dict[str, Any]:
        self.guarded(self._start_copies)
        if flush:
            self._writer.flush()
        written, failures = self._writer.collect()
        missing = [(active.sample.number, active.filled) for active in self._active.values() if active.is_wanted]
        for waiting in self._waiting.values():
            missing += [(sample.number, 0) for sample, is_wanted in waiting if is_wanted]
        return {
            "written": [(each.sample, each.tokens, each.bytes, each.path, dict(each.crc32)) for each in written],
            "failed": [(each.sample, each.is_full, each.text) for each in failures],
            "missing": missing,
            "problem": self.problem,
            "most_memory": self._writer.most_in_use,
        }

    def begin(self, step: Any) -> bool:
        self._start_copies()
        if not (self._waiting or self._active):
            return False
        staging = self._staging[self._steps % len(self._staging)]
        self._steps += 1
        if staging.copied is not None:
            self._current_stream().wait_event(staging.copied)
        self._step = _Step(staging, dict(internals.prompts_begun(step)), internals.computed_before(step))
        return True

    def take(self, place: int, hidden: Any, residual: Any) -> None:
        """Puts a layer's states into the staging buffer."""
        import torch

        assert self._step is not None
        states = self._step.staging.states
        target = states[: self.rows, place] if self._layout.by_token else states[place, : self.rows]
        if residual is None:
            target.copy_(hidden)
        else:
            torch.add(hidden, residual, out=target)

    def end(self, step: Any, _result: Any) -> None:
        current = self._step
        assert current is not None
        if len(self.seen) != self.shape.layers:
            raise RuntimeError(f"{len(self.seen)} of {self.shape.layers} decoder layers ran in a step")
        if self._copying is not None:
            self._deferred.append(functools.partial(self._copying.wait_event, self._current_stream().record_event()))
        for identity, row, count in internals.rows_of_requests(self._runner, step):
            active = self._active_of(identity, current)
            if active is not None and active.is_wanted and count:
                self._keep(identity, active, current, row, count)
        if self._copying is not None:
            self._deferred.append(functools.partial(self._mark, current.staging))

    def _mark(self, staging: _Staging) -> None:
        """Notes when a buffer is free again."""
        assert self._copying is not None
        staging.copied = self._copying.record_event()

    def _start_copies(self) -> None:
        """Starts the copies of the step before.

        Between the end of a step and the begin of the next vLLM fetches the tokens that it has sampled; behind copies
        of ours they would have to wait, and the device with them.
        """
        import torch

        deferred, self._deferred = self._deferred, []
        with torch.inference_mode():  # as steps run; what is made in it can't be written to outside
            for action in deferred:
                action()

    def _active_of(self, identity: str, step: _Step) -> _Active | None:
        """The prompt that a request stands for: the one with its tokens, whatever the request is called."""
        active = self._active.get(identity)
        if active is None and step.begun.get(identity) is not None:
            key = tuple(step.begun[identity] or ())
            waiting = self._waiting.get(key)
            if waiting:
                active = self._active[identity] = _Active(*waiting.popleft())
                if not waiting:
                    del self._waiting[key]
        return active

    def _keep(self, identity: str, active: _Active, step: _Step, row: int, count: int) -> None:
        offset = step.before.get(identity, active.filled)
        count = min(count, len(active.sample.tokens) - offset)
        if offset == 0:
            active.filled = 0  # begun, or begun again after it had to make room for others
        if count <= 0:
            return
        if offset != active.filled:
            raise RuntimeError(
                f"sample {active.sample.number} goes on at token {offset} when {active.filled} are there"
            )
        if active.extent is None:
            active.extent = self._room(active.sample)
        self._copy(active, step.staging, row, offset, count)
        active.filled += count
        if active.filled == len(active.sample.tokens):
            del self._active[identity]
            self._deferred.append(functools.partial(self._write, active.sample, active.extent))

    def _write(self, sample: Sample, extent: Extent) -> None:
        self._writer.write(sample, extent, self._copied() if self._copying is not None else _at_once)

    def _room(self, sample: Sample) -> Extent:
        extent = self._writer.room_now(sample)
        if extent is None:
            self._start_copies()  # what has no room is to have that of these
            extent = self._writer.room(sample)
        return extent

    def _copy(self, active: _Active, staging: _Staging, row: int, offset: int, count: int) -> None:
        assert active.extent is not None
        begin, width = active.extent.begin, self.shape.row
        pieces = []
        if self._layout.by_token:
            pieces.append((staging.states[row : row + count], offset * self.shape.token))
        else:
            tokens = len(active.sample.tokens)
            for place in range(self.shape.layers):
                pieces.append((staging.states[place, row : row + count], (place * tokens + offset) * width))
        for states, at in pieces:
            target = self._memory[begin + at : begin + at + states.nbytes].view(states.dtype).view(states.shape)
            self._deferred.append(functools.partial(self._copy_over, target, states))

    def _copy_over(self, target: Any, states: Any) -> None:
        import torch

        if self._copying is None:
            target.copy_(states)
            return
        with torch.cuda.stream(self._copying):
            target.copy_(states, non_blocking=True)

    def _current_stream(self) -> Any:
        import torch

        return torch.cuda.current_stream(self._device)

    def _copied(self) -> Callable[[], None]:
        """Waits for what the copying stream has been given so far; waiting threads sleep."""
        import torch

        event = torch.cuda.Event(blocking=True)
        event.record(self._copying)
        wait: Callable[[], None] = event.synchronize
        return wait


def _at_once() -> None:
    """Nothing to wait for."""
