# mypy: disable-error-code="import-not-found"
"""What the experiments share: configurations, schedulers and requests of the vLLM that runs them."""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vllm import SamplingParams
from vllm.config import CacheConfig, DeviceConfig, LoadConfig, ModelConfig, ParallelConfig, SchedulerConfig, VllmConfig
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

BLOCK = 32
_MODEL_VOCABULARY = 512
_MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": _MODEL_VOCABULARY,
    "max_position_embeddings": 512,
    "torch_dtype": "float32",
}


def folder() -> str:
    """A folder with the config of a tiny Llama, without weights or tokenizer."""
    made = tempfile.mkdtemp()
    (Path(made) / "config.json").write_text(json.dumps(_MODEL))
    return made


def configuration(
    *, prefix_caching: bool | None = None, chunked_prefill: bool = True, batch: int = 256, extension: str = ""
) -> VllmConfig:
    """That model with a few settings; with `prefix_caching` None the release's own default stands."""
    model = folder()
    caching = {} if prefix_caching is None else {"enable_prefix_caching": prefix_caching}
    return VllmConfig(
        model_config=ModelConfig(
            model=model,
            tokenizer=model,
            skip_tokenizer_init=True,
            dtype="float32",
            max_model_len=256,
            enforce_eager=True,
        ),
        cache_config=CacheConfig(block_size=BLOCK, **caching),
        parallel_config=ParallelConfig(worker_extension_cls=extension),
        scheduler_config=SchedulerConfig(
            max_model_len=256,
            is_encoder_decoder=False,
            max_num_batched_tokens=batch,
            max_num_seqs=8,
            enable_chunked_prefill=chunked_prefill,
            async_scheduling=False,
        ),
        device_config=DeviceConfig(),
        load_config=LoadConfig(load_format="dummy"),
    )


def scheduler(config: VllmConfig, cache: KVCacheConfig) -> Scheduler:
    """A scheduler made as a client makes it."""
    config.cache_config.num_gpu_blocks = cache.num_blocks
    return Scheduler(
        vllm_config=config,
        kv_cache_config=cache,
        structured_output_manager=StructuredOutputManager(vllm_config=config),
        block_size=config.cache_config.block_size,
    )


def prompt(tokens: int, first: int = 1) -> list[int]:
    """So many tokens, the same ones each time."""
    return [(first + index) % _MODEL_VOCABULARY for index in range(tokens)]


def request(name: str, prompt: list[int], hasher: Callable[..., Any] | None = None) -> Request:
    """A request for one token after a prompt."""
    given: dict[str, Any] = {
        "request_id": name,
        "prompt_token_ids": prompt,
        "sampling_params": SamplingParams(max_tokens=1, temperature=0.0),
        "pooling_params": None,
    }
    if "eos_token_id" in inspect.signature(Request).parameters:
        given["eos_token_id"] = None
    if hasher is not None:
        given["block_hasher"] = hasher
    return Request(**given)


def block_hasher(config: VllmConfig, *, initialize: bool = True) -> Callable[..., Any]:
    """A hasher of blocks, after the hash of an empty prefix was set, or before."""
    function = get_hash_fn_by_name(config.cache_config.prefix_caching_hash_algo)
    if initialize:
        init_none_hash(function)
    hasher: Callable[..., Any] = get_request_block_hasher(BLOCK, function)
    return hasher


def finish(which: Scheduler, *names: str) -> None:
    """Ends requests whose tokens nobody samples."""
    which.finish_requests(list(names), RequestStatus.FINISHED_ABORTED)


def has_parameters(model: Any) -> bool:
    """What is asked of a model within its worker, from a module that the worker can import."""
    return any(True for _ in model.parameters())


def outcome(action: Callable[[], Any]) -> Any:
    """What an action returns, or the name and the first line of what it raises."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 (what it raises is the answer)
        return f"{type(error).__name__}: {str(error).strip()}"


def report(experiments: dict[str, Callable[[], dict[str, Any]]]) -> None:
    """Runs them in their order and prints one line of JSON: what each contract led to, kept and broken."""
    answers = {name: outcome(experiment) for name, experiment in experiments.items()}
    sys.stdout.write("\n" + json.dumps(answers) + "\n")
