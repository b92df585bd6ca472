# mypy: disable-error-code="import-not-found"
"""What vLLM's workers load: hooks on decoder layers, and a wrapper that says whose rows came out of them.

The engine gives `HiddenStates` to vLLM by name (`worker_extension_cls`), which makes it a base of its worker class; its
methods are called through `collective_rpc`. Nothing here waits for the device: sums go to a staging buffer on the
compute stream, from there on a stream of their own to page-locked memory, and from there, in threads, to files.
"""

from __future__ import annotations

import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftcheck.extract import internals
from driftcheck.extract.layouts import LAYOUTS, Layout, Sample, Shape
from driftcheck.extract.writing import Extent, Writer

EXTENSION = f"{__name__}.HiddenStates"
_STAGING_BUFFERS = 2


class HiddenStates:
    """The methods that a worker gains; their names are ours alone, since vLLM refuses what a worker has already."""

    _driftcheck: _Capture | None = None

    def driftcheck_start(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Puts the hooks in place and gives what will be captured, None on workers that hold copies only."""
        worker: Any = self
        if internals.tensor_rank() != 0:
            return {}
        self._driftcheck = _Capture(worker, settings)
        shape = self._driftcheck.shape
        return {"layers": shape.layers, "hidden_size": shape.hidden_size, "dtype": shape.dtype}

    def driftcheck_expect(self, samples: Sequence[tuple[int, list[int], bytes, bool]]) -> None:
        """Says which prompts come next, and of which of them the states are wanted; others are forgotten."""
        if self._driftcheck is not None:
            self._driftcheck.expect(
                [(Sample(number, tokens, mask), wanted) for number, tokens, mask, wanted in samples]
            )

    def driftcheck_collect(self, *, flush: bool = False) -> dict[str, Any]:
        """What has become of the samples so far: those written, those that failed, and what else went wrong."""
        return {} if self._driftcheck is None else self._driftcheck.collect(flush=flush)


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
    """The step under way: how many rows, where they go, and which layers have come by."""

    rows: int
    staging: _Staging
    begun: dict[str, list[int] | None]
    before: dict[str, int]
    seen: set[int] = field(default_factory=set)


class _Capture:
    """One worker's capture."""

    def __init__(self, worker: Any, settings: Mapping[str, Any]) -> None:
        import torch

        configuration = internals.configuration_of(worker)
        wanted: list[int] = list(settings["layers"])
        layers = decoder_layers(internals.model_of(worker), internals.text_configuration(configuration))
        dtype = str(internals.data_type(configuration)).removeprefix("torch.")
        self.shape = Shape(len(wanted), internals.hidden_size(configuration), dtype)
        self._layout: Layout = LAYOUTS[settings["layout"]]
        self._runner = internals.runner_of(worker)
        self._waiting: dict[tuple[int, ...], deque[tuple[Sample, bool]]] = defaultdict(deque)
        self._active: dict[str, _Active] = {}
        self._step: _Step | None = None
        self._steps = 0
        self._problem: str | None = None
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
        for place, number in enumerate(wanted):
            layers[number].register_forward_hook(self._hook(place))
        internals.wrap_execution(worker, self._around)

    def _staging_buffer(self, rows: int) -> _Staging:
        import torch

        size = (rows, self.shape.layers) if self._layout.by_token else (self.shape.layers, rows)
        dtype = getattr(torch, self.shape.dtype)
        return _Staging(torch.empty((*size, self.shape.hidden_size), dtype=dtype, device=self._device))

    def expect(self, samples: Sequence[tuple[Sample, bool]]) -> None:
        for active in self._active.values():
            if active.extent is not None:
                self._writer.release(active.extent)
        self._active.clear()
        self._waiting.clear()
        self._problem = None
        for sample, is_wanted in samples:
            self._waiting[tuple(sample.tokens)].append((sample, is_wanted))

    def collect(self, *, flush: bool) -> dict[str, Any]:
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
            "problem": self._problem,
            "most_memory": self._writer.most_in_use,
        }

    def _around(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(step: Any, *arguments: Any, **options: Any) -> Any:
            """Runs a step, and takes what its layers gave; a fault here is told later and stops no step."""
            self._guarded(lambda: self._begin(step))
            try:
                result = execute(step, *arguments, **options)
                self._guarded(lambda: self._end(step))
                return result
            finally:
                self._step = None

        return execute_model

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:  # noqa: BLE001 (in the middle of a step, it would take the engine down)
            self._step = None
            self._problem = self._problem or traceback.format_exc()

    def _begin(self, step: Any) -> None:
        rows = internals.rows_in_step(step)
        if rows == 0 or self._problem is not None or not (self._waiting or self._active):
            return
        staging = self._staging[self._steps % len(self._staging)]
        self._steps += 1
        if staging.copied is not None:
            self._current_stream().wait_event(staging.copied)
        self._step = _Step(rows, staging, dict(internals.prompts_begun(step)), internals.computed_before(step))

    def _hook(self, place: int) -> Callable[[Any, Any, Any], None]:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            if self._step is not None:
                self._guarded(lambda: self._take(place, output))

        return hook

    def _take(self, place: int, output: Any) -> None:
        """Puts a layer's states into the staging buffer; `_step` is not None."""
        import torch

        step = self._step
        assert step is not None
        if place in step.seen:
            raise RuntimeError("a decoder layer ran twice in one step: which of its outputs is meant is not known")
        step.seen.add(place)
        hidden, residual = hidden_and_residual(output)
        if hidden.dim() != 2 or hidden.shape[0] < step.rows or hidden.shape[1] != self.shape.hidden_size:
            raise RuntimeError(
                f"a decoder layer gave states of shape {tuple(hidden.shape)} for {step.rows} tokens of"
                f" {self.shape.hidden_size} numbers"
            )
        states = step.staging.states
        target = states[: step.rows, place] if self._layout.by_token else states[place, : step.rows]
        if residual is None:
            target.copy_(hidden[: step.rows])
        else:
            torch.add(hidden[: step.rows], residual[: step.rows], out=target)

    def _end(self, step: Any) -> None:
        current = self._step
        if current is None:
            return
        if len(current.seen) != self.shape.layers:
            raise RuntimeError(f"{len(current.seen)} of {self.shape.layers} decoder layers ran in a step")
        if self._copying is not None:
            self._copying.wait_stream(self._current_stream())
        for identity, row, count in internals.rows_of_requests(self._runner, step):
            active = self._active_of(identity, current)
            if active is not None and active.is_wanted and count:
                self._keep(identity, active, current, row, count)
        if self._copying is not None:
            current.staging.copied = self._copying.record_event()

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
            active.extent = self._writer.room(active.sample)
        self._copy(active, step.staging, row, offset, count)
        active.filled += count
        if active.filled == len(active.sample.tokens):
            ready = self._copied() if self._copying is not None else _at_once
            del self._active[identity]
            self._writer.write(active.sample, active.extent, ready)

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
            self._copy_over(target, states)

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


def hidden_and_residual(output: Any) -> tuple[Any, Any]:
    """The two parts of what a decoder layer gives, whose sum is its state; the second is None where there is one."""
    if not isinstance(output, (tuple, list)):
        return output, None
    hidden = output[0]
    residual = output[1] if len(output) > 1 else None
    if residual is not None and getattr(residual, "shape", None) != hidden.shape:
        raise RuntimeError("a decoder layer gave something beside its states that is no residual")
    return hidden, residual


def decoder_layers(model: Any, text_configuration: Any) -> Any:
    """The list of a model's decoder layers, inside a multimodal model those of its language model.

    It is the list that is as long as the configuration says; of several that are, the one nearest to the top.
    """
    import torch

    if hasattr(model, "get_language_model"):
        model = model.get_language_model()
    count = text_configuration.num_hidden_layers
    found = [
        (name.count("."), name, module)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == count and not _sees(name)
    ]
    if not found:
        raise RuntimeError(f"{type(model).__name__} has no list of {count} decoder layers")
    nearest = min(depth for depth, _, _ in found)
    near = [(name, module) for depth, name, module in found if depth == nearest]
    if len(near) > 1:
        names = ", ".join(name for name, _ in near)
        raise RuntimeError(f"{type(model).__name__} has several lists of {count} layers: {names}")
    return near[0][1]


def _sees(name: str) -> bool:
    """True for a part of a model that reads pictures or sounds."""
    return any(word in name for word in ("vision", "visual", "audio", "encoder", "image", "video"))
