# mypy: disable-error-code="import-not-found"
"""Contracts that show without a model: configurations, requests and the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from making import BLOCK, block_hasher, configuration, finish, outcome, prompt, report, request, scheduler
from vllm.config import SchedulerConfig
from vllm.model_executor.models.interfaces import supports_eagle3
from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration
from vllm.v1.core import kv_cache_utils
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec


def _groups() -> list[KVCacheGroupSpec]:
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=2, head_size=64, dtype=torch.float32)
    return [KVCacheGroupSpec(["layer"], spec)]


def _cache() -> KVCacheConfig:
    return KVCacheConfig(num_blocks=64, kv_cache_tensors=[], kv_cache_groups=_groups())


def _scheduled(tokens: int, *, prefix_caching: bool | None, hashed: bool) -> Any:
    """How many tokens of one prompt the first step takes."""
    config = configuration(prefix_caching=prefix_caching)
    which = scheduler(config, _cache())
    which.add_request(request("a", prompt(tokens), block_hasher(config) if hashed else None))
    return which.schedule().num_scheduled_tokens


def request_without_block_hasher() -> dict[str, Any]:
    return {
        "broken": outcome(lambda: _scheduled(BLOCK + 8, prefix_caching=None, hashed=False)),
        "kept": outcome(lambda: _scheduled(BLOCK + 8, prefix_caching=None, hashed=True)),
        "without caching": outcome(lambda: _scheduled(BLOCK + 8, prefix_caching=False, hashed=False)),
        "less than a block": outcome(lambda: _scheduled(BLOCK - 8, prefix_caching=None, hashed=False)),
    }


def uninitialized_none_hash() -> dict[str, Any]:
    """Has to come first, since what it asks about is global."""
    config = configuration()
    return {
        "broken": outcome(lambda: request("a", prompt(BLOCK), block_hasher(config, initialize=False)) and None),
        "kept": outcome(lambda: len(request("a", prompt(BLOCK), block_hasher(config)).block_hashes)),
    }


def _twice(*, prefix_caching: bool | None) -> list[int]:
    """The tokens that are scheduled for a prompt, and for the same prompt again."""
    config = configuration(prefix_caching=prefix_caching)
    which, hasher = scheduler(config, _cache()), block_hasher(config)
    counts = []
    for name in ("a", "b"):
        which.add_request(request(name, prompt(2 * BLOCK + 8), hasher))
        counts.append(which.schedule().num_scheduled_tokens[name])
        finish(which, name)
    return counts


def prefix_cached_capture() -> dict[str, Any]:
    return {
        "broken": outcome(lambda: _twice(prefix_caching=None)),
        "kept": outcome(lambda: _twice(prefix_caching=False)),
    }


def _steps(*, chunked: bool) -> list[dict[str, int]]:
    """The tokens that two prompts of 200 get at each step of 256, until there is nothing to schedule."""
    which = scheduler(configuration(prefix_caching=False, chunked_prefill=chunked), _cache())
    for name in ("a", "b"):
        which.add_request(request(name, prompt(200)))
    steps = []
    while (step := which.schedule()).total_num_scheduled_tokens:
        steps.append(dict(step.num_scheduled_tokens))
    return steps


def chunked_capture() -> dict[str, Any]:
    return {"broken": outcome(lambda: _steps(chunked=True)), "kept": outcome(lambda: _steps(chunked=False))}


def scheduler_config_by_hand() -> dict[str, Any]:
    def made(**given: Any) -> dict[str, Any]:
        config = SchedulerConfig(**given)
        names = ("max_num_batched_tokens", "max_num_seqs", "enable_chunked_prefill", "async_scheduling")
        return {name: getattr(config, name) for name in names}

    return {
        "broken": outcome(lambda: made(max_model_len=256)),
        "without max_model_len": outcome(lambda: made(is_encoder_decoder=False)),
        "kept": outcome(lambda: made(max_model_len=256, is_encoder_decoder=False)),
        "for an encoder and decoder": outcome(lambda: made(max_model_len=256, is_encoder_decoder=True)),
        "derived field": outcome(
            lambda: made(max_model_len=256, is_encoder_decoder=False, max_num_encoder_input_tokens=1)
        ),
    }


def unresolved_kv_cache_layout() -> dict[str, Any]:
    """Asked only where the release resolves layouts at all."""

    def blocks(config: Any) -> int:
        made = kv_cache_utils.get_kv_cache_config_from_groups(
            vllm_config=config, kv_cache_groups=_groups(), available_memory=1 << 22
        )
        return int(made.num_blocks)

    unresolved, resolved = configuration(), configuration()
    if hasattr(resolved.cache_config, "get_resolved_kv_cache_layout"):
        from vllm.v1.attention.backends.utils import resolve_kv_cache_layout

        resolve_kv_cache_layout(resolved, [["LBNHC"]])
    return {"broken": outcome(lambda: blocks(unresolved)), "kept": outcome(lambda: blocks(resolved))}


def models_without_eagle3() -> dict[str, Any]:
    from vllm.model_executor.models.deepseek_v2 import DeepseekV3ForCausalLM
    from vllm.model_executor.models.kimi_k25 import KimiK25ForConditionalGeneration
    from vllm.model_executor.models.llama import LlamaForCausalLM

    classes = (DeepseekV3ForCausalLM, KimiK25ForConditionalGeneration, LlamaForCausalLM)
    return {each.__name__: supports_eagle3(each) for each in classes}


def forward_without_keywords() -> dict[str, Any]:
    """The model's own forward, around two functions that a client could put in place of the inner one."""

    def four(input_ids: Any, positions: Any, intermediate_tensors: Any = None, inputs_embeds: Any = None) -> str:
        return "ran"

    def any_keywords(input_ids: Any, positions: Any, **kwargs: Any) -> str:
        return "ran"

    def run(inner: Callable[..., str]) -> Any:
        model = SimpleNamespace(language_model=SimpleNamespace(model=inner))
        return Qwen3VLForConditionalGeneration.forward(model, torch.zeros(4), torch.zeros(4))

    return {
        "supports_eagle3": supports_eagle3(Qwen3VLForConditionalGeneration),
        "broken": outcome(lambda: run(four)),
        "kept": outcome(lambda: run(any_keywords)),
    }


if __name__ == "__main__":
    report(
        {
            "uninitialized-none-hash": uninitialized_none_hash,
            "request-without-block-hasher": request_without_block_hasher,
            "prefix-cached-capture": prefix_cached_capture,
            "chunked-capture": chunked_capture,
            "scheduler-config-by-hand": scheduler_config_by_hand,
            "unresolved-kv-cache-layout": unresolved_kv_cache_layout,
            "models-without-eagle3": models_without_eagle3,
            "forward-without-keywords": forward_without_keywords,
        }
    )
