# mypy: disable-error-code="import-not-found"
"""vLLM as extraction uses it: public calls, one batch of prompts after another, and nothing generated."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError
from driftcheck.extract import internals
from driftcheck.extract.architecture import language_part, model_folder, read_configuration
from driftcheck.extract.extraction import CaptureError, LoadError, LostWorkerError, Outcome
from driftcheck.extract.layouts import Sample, Shape
from driftcheck.extract.workers import Workers
from driftcheck.extract.writing import Failure, Record

# With anything else there would be no states, or those of others.
_FIXED = {
    "enforce_eager": True,
    "enable_prefix_caching": False,
    "data_parallel_size": 1,
    "speculative_config": None,
    "runner": "auto",
}


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What decides how the model is loaded and run."""

    model: str
    max_model_len: int
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    dtype: str = "auto"
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, which win over all others."""


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """What is captured, and how it is written."""

    folder: Path
    layers: Sequence[int]
    layout: str
    journal: str
    host_memory: int
    writers: int = 4


class Engine:
    """A loaded model that writes the hidden states of the prompts it is given."""

    def __init__(self, settings: EngineSettings, capture: CaptureSettings) -> None:
        # In this process, the same prompts make the same steps, and a step that fails ends no engine.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        # The model gets one place more than the longest prompt has, for the token that it would generate.
        os.environ.setdefault("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1")
        # What is said on the way is no part of what the command prints.
        os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
        from vllm import LLM

        arguments = engine_arguments(settings)
        others = multiprocessing.active_children()  # a script can have some of its own
        try:
            self._llm = LLM(**arguments)
        except Exception as error:
            raise LoadError("".join(traceback.format_exception(error))) from error
        self._workers = Workers([each for each in multiprocessing.active_children() if each not in others])
        started = self._called(
            "driftcheck_start",
            {
                "layers": list(capture.layers),
                "layout": capture.layout,
                "folder": str(capture.folder),
                "journal": capture.journal,
                "host_memory": capture.host_memory,
                "writers": capture.writers,
            },
        )
        (shape,) = (each for each in started if each)
        self.shape = Shape(shape["layers"], shape["hidden_size"], shape["dtype"])

    def capture(self, samples: Sequence[Sample], done: Iterable[int]) -> None:
        """Reads a batch of prompts; raises what vLLM raises, after which the engine is ready for the next batch."""
        from vllm import SamplingParams

        there = set(done)
        expected = [(each.number, list(each.tokens), each.mask, each.number not in there) for each in samples]
        self._called("driftcheck_expect", expected)
        prompts = [{"prompt_token_ids": tokens} for _, tokens, _, _ in expected]
        parameters = SamplingParams(max_tokens=1, temperature=0.0, detokenize=False)
        try:
            with self._workers.guarded():
                self._llm.generate(prompts, parameters, use_tqdm=False)
        except LostWorkerError:
            raise
        except Exception:
            internals.forget_requests(self._llm)
            raise

    def _called(self, method: str, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
        """Has every worker run one of the methods that extraction gives them, and gives what they return."""
        with self._workers.guarded():
            replies: list[dict[str, Any]] = self._llm.collective_rpc(method, args=arguments, kwargs=options)
            return replies

    def collect(self, *, flush: bool = False) -> Outcome:
        """What has been written, or could not be; with `flush`, after all that is captured has been.

        Raises CaptureError where the capture itself went wrong, which no other prompt would mend.
        """
        replies = self._called("driftcheck_collect", flush=flush)
        for each in replies:  # a stage's own fault comes before what its lack leads to
            if each["problem"] is not None:
                raise CaptureError(each["problem"])
        (reply,) = (each for each in replies if "written" in each)
        return Outcome(
            tuple(
                Record(sample, path, tokens, size, checksums)
                for sample, tokens, size, path, checksums in reply["written"]
            ),
            tuple(Failure(*each) for each in reply["failed"]),
            tuple((sample, rows) for sample, rows in reply["missing"]),
            reply["most_memory"],
        )


def engine_arguments(settings: EngineSettings) -> dict[str, Any]:
    """The arguments of `vllm.LLM`."""
    from driftcheck.extract.capture import EXTENSION

    arguments: dict[str, Any] = {
        "model": settings.model,
        "dtype": settings.dtype,
        "max_model_len": settings.max_model_len + 1,
        "tensor_parallel_size": settings.tensor_parallel_size,
        "pipeline_parallel_size": settings.pipeline_parallel_size,
        "worker_extension_cls": EXTENSION,
        "enforce_eager": True,  # compiled models run no hooks
        "enable_prefix_caching": False,  # a prefix that is not computed has no states
        "async_scheduling": False,  # after a step that failed, no other is under way
        "skip_tokenizer_init": not _asks_for_tokenizer(settings),
        "trust_remote_code": True,
        "disable_log_stats": True,
        **_set(
            max_num_batched_tokens=settings.max_num_batched_tokens,
            gpu_memory_utilization=settings.gpu_memory_utilization,
        ),
    }
    for name, only in _FIXED.items():
        if settings.extra.get(name, only) != only:
            raise DriftcheckError(f"--engine {name}: extraction needs {only!r}")
    return {**arguments, **settings.extra}


def _asks_for_tokenizer(settings: EngineSettings) -> bool:
    """True for a language model inside another model, such as Kimi-K2.5: vLLM makes that one's processor at the start.

    The processor looks up tokens, whether there will be an image or not. All other models do without a tokenizer.
    """
    folder = model_folder(settings.model, settings.extra.get("revision"))
    configuration = read_configuration(folder)
    return language_part(configuration) != configuration and any(folder.glob("*token*"))


def _set(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
