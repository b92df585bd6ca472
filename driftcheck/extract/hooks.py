# mypy: disable-error-code="import-not-found"
"""Hooks on a model's decoder layers, and a wrapper round the function that runs a step with them.

In a pipeline each stage has some of the layers. What a stage takes goes to the next one with what the model itself
hands on, so that the last stage has the states of all layers, and writes them as if there were no pipeline.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from driftcheck.extract import internals


class Hooks:
    """What every stage does: it sees what its layers give, and what earlier stages have taken.

    A fault in what is done here is told later, by `problem`; in the middle of a step it would take the engine down.
    """

    def __init__(self, worker: Any, layers: Sequence[int]) -> None:
        configuration = internals.configuration_of(worker)
        self.count = len(layers)
        self.hidden_size = internals.hidden_size(configuration)
        self.problem: str | None = None
        self.rows = 0
        """How many rows the step under way has, 0 where none of them is wanted."""
        self.seen: set[int] = set()
        model = internals.model_of(worker)
        modules = decoder_layers(model, internals.text_configuration(configuration))
        for place, number in enumerate(layers):
            if not internals.is_elsewhere(modules[number]):
                modules[number].register_forward_hook(self._hook(place))
        internals.wrap_execution(worker, self._around)

    def begin(self, step: Any) -> bool:
        """Gets ready for a step; False where nothing of it is wanted."""
        raise NotImplementedError

    def take(self, place: int, hidden: Any, residual: Any) -> None:
        """Takes a layer's states, rows of hidden states and perhaps of what is to be added to them."""
        raise NotImplementedError

    def end(self, step: Any, result: Any) -> None:
        """Does what is to be done when all layers of this stage have run."""
        raise NotImplementedError

    def _around(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(step: Any, *arguments: Any, **options: Any) -> Any:
            passed = internals.taken_over(arguments, options)
            self.guarded(lambda: self._begin(step, passed))
            try:
                result = execute(step, *arguments, **options)
                if self.rows:
                    self.guarded(lambda: self.end(step, result))
                return result
            finally:
                self.rows = 0

        return execute_model

    def _begin(self, step: Any, passed: Mapping[int, Any]) -> None:
        self.seen.clear()
        rows = internals.rows_in_step(step)
        if rows and self.problem is None and self.begin(step):
            self.rows = rows
            for place, states in passed.items():
                self._take(place, states)

    def guarded(self, action: Callable[[], None]) -> None:
        """Does something whose failure is told later."""
        try:
            action()
        except Exception:  # noqa: BLE001 (in the middle of a step, it would take the engine down)
            self.rows = 0
            self.problem = self.problem or traceback.format_exc()

    def _hook(self, place: int) -> Callable[[Any, Any, Any], None]:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            if self.rows:
                self.guarded(lambda: self._take(place, output))

        return hook

    def _take(self, place: int, output: Any) -> None:
        if place in self.seen:
            raise RuntimeError("a decoder layer ran twice in one step: which of its outputs is meant is not known")
        self.seen.add(place)
        hidden, residual = hidden_and_residual(output)
        if hidden.dim() != 2 or hidden.shape[0] < self.rows or hidden.shape[1] != self.hidden_size:
            raise RuntimeError(
                f"a decoder layer gave states of shape {tuple(hidden.shape)} for {self.rows} tokens of"
                f" {self.hidden_size} numbers"
            )
        self.take(place, hidden[: self.rows], None if residual is None else residual[: self.rows])


class Relay(Hooks):
    """A stage that is not the last: it hands on what it takes, and what it was handed."""

    def __init__(self, worker: Any, layers: Sequence[int]) -> None:
        super().__init__(worker, layers)
        self._is_wanted = False
        self._taken: dict[int, Any] = {}

    def expect(self, *, is_anything: bool) -> None:
        """Says whether of the steps that come anything is wanted."""
        self._is_wanted = is_anything
        self.problem = None

    def begin(self, _step: Any) -> bool:
        self._taken = {}
        return self._is_wanted

    def take(self, place: int, hidden: Any, residual: Any) -> None:
        # Tensors of their own: the next layer may write to these.
        self._taken[place] = hidden.clone() if residual is None else hidden + residual

    def end(self, _step: Any, result: Any) -> None:
        internals.hand_on(result, self._taken)
        self._taken = {}


class Copy(Hooks):
    """A worker of the last stage that holds a copy of what another writes: it takes off what is handed on."""

    def __init__(self, worker: Any) -> None:
        super().__init__(worker, ())

    def begin(self, _step: Any) -> bool:
        return False


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
