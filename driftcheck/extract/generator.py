# mypy: disable-error-code="import-not-found"
"""The class that scripts take from speculators, with the same constructor and `generate()`, on another engine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driftcheck.extract.architecture import architecture_of, model_folder
from driftcheck.extract.engine import CaptureSettings, Engine, EngineSettings
from driftcheck.extract.layouts import LAYOUTS, Sample, Shape
from driftcheck.extract.plan import planned_dtype
from driftcheck.extract.resume import Names

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder of its own is made in it)
_LAYOUT = "speculators"
_HOST_MEMORY = 1 << 30


class VllmHiddenStatesGenerator:
    """Gives the hidden states of chosen layers for prompts of tokens.

    `layer_ids` are counted from 0; without them they are 2, N / 2, N - 3 and N - 1 of N layers. What is longer than
    `max_model_len - 1` tokens is cut. `dtype` and `engine_arguments` are for `vllm.LLM`.
    """

    def __init__(
        self,
        model_path: str,
        layer_ids: list[int] | None = None,
        max_model_len: int = 2048,
        gpu_memory_utilization: float = 0.8,
        tensor_parallel_size: int = 1,
        *,
        dtype: str = "auto",
        engine_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.model_path = model_path
        self.tensor_parallel_size = tensor_parallel_size
        self._longest = max_model_len - 1
        architecture = architecture_of(model_folder(model_path))
        layers = architecture.chosen_layers("auto" if layer_ids is None else ",".join(map(str, layer_ids)))
        self.layer_ids = list(layers)
        shape = Shape(len(layers), architecture.hidden_size, planned_dtype(dtype, architecture.dtype))
        # In memory where there is such a folder: what is written is read at once.
        place = str(_IN_MEMORY) if _IN_MEMORY.is_dir() else None
        self._scratch = tempfile.TemporaryDirectory(prefix="driftcheck-", dir=place)
        self._folder = Path(self._scratch.name)
        settings = EngineSettings(
            model_path,
            max_model_len=max_model_len,
            tensor_parallel_size=tensor_parallel_size,
            gpu_memory_utilization=gpu_memory_utilization,
            dtype=dtype,
            extra=engine_arguments or {},
        )
        memory = max(2 * (max_model_len + 1) * shape.token, _HOST_MEMORY)
        self._engine = Engine(settings, CaptureSettings(self._folder, layers, _LAYOUT, Names().journal, memory))

    def generate(self, token_ids: Any) -> list[dict[str, Any]]:
        """The states of each prompt, in the order of the prompts.

        Each has `input_ids`, `hidden_states`, a tensor a layer, and `loss_mask`, which is None.
        """
        import torch

        prompts: Sequence[Any] = token_ids.tolist() if isinstance(token_ids, torch.Tensor) else token_ids
        if not prompts:
            raise ValueError("token_ids cannot be empty")
        samples = []
        for number, prompt in enumerate(prompts):
            tokens = prompt.tolist() if isinstance(prompt, torch.Tensor) else list(prompt)
            if not tokens:
                raise ValueError(f"prompt {number} has no tokens")
            samples.append(Sample(number, tokens[: self._longest]))
        self._engine.capture(samples, ())
        outcome = self._engine.collect(flush=True)
        if outcome.failed:
            raise RuntimeError(outcome.failed[0].text)
        if outcome.missing:
            number, rows = outcome.missing[0]
            raise RuntimeError(f"{rows} of {len(samples[number].tokens)} rows of prompt {number} came out of the model")
        return [self._read(sample) for sample in samples]

    def _read(self, sample: Sample) -> dict[str, Any]:
        import torch

        path = self._folder / LAYOUTS[_LAYOUT].path(sample.number)
        found = torch.load(path, weights_only=True, map_location="cpu")
        path.unlink()
        return {"input_ids": found["input_ids"], "hidden_states": found["hidden_states"], "loss_mask": None}
