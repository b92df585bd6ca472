"""What a real vLLM does where a contract is broken, and where it is kept: the proofs of the rules about contracts.

The experiments run in the interpreter of that vLLM, one process for those of one file, since importing vLLM is what
takes the time.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from driftcheck.rule_files import rules_of
from driftcheck.surface.runtime import RuntimeSurface, RuntimeSymbol

from .environments import interpreter_of

EXPERIMENTS = Path(__file__).parent / "experiments"
RELEASES = ("0.16.0", "0.30.0")
BLOCK = 32
# Of each rule, what it takes to believe it: from the answers of an experiment and the release it ran on.
Proof = Callable[[Any, str], None]


def request_without_block_hasher(seen: Any, release: str) -> None:
    raised = "AssertionError: " if release == "0.16.0" else "IndexError: list index out of range"
    assert seen == {
        "broken": raised,
        "kept": {"a": BLOCK + 8},
        "without caching": {"a": BLOCK + 8},
        "less than a block": {"a": BLOCK - 8},
    }


def uninitialized_none_hash(seen: Any, release: str) -> None:
    assert seen == {"broken": "NameError: name 'NONE_HASH' is not defined", "kept": 1}


def prefix_cached_capture(seen: Any, release: str) -> None:
    whole = 2 * BLOCK + 8
    assert seen == {"broken": [whole, 8], "kept": [whole, whole]}


def chunked_prefill(seen: Any, release: str) -> None:
    assert seen == {"broken": [{"a": 200, "b": 56}, {"b": 144}], "kept": [{"a": 200}, {"b": 200}]}


def rows_of_a_batch(seen: Any, release: str) -> None:
    """The third prompt takes the first one's place, before the second one, which the scheduler names first."""
    assert seen == {
        "steps": [[["a", 30], ["b", 34]], [["c", 18], ["b", 46]], [["c", 2]]],
        "broken": {"a": True, "b": False, "c": False},
        "kept": {"a": True, "b": True, "c": True},
    }


def scheduler_config_by_hand(seen: Any, release: str) -> None:
    fields = {
        "max_num_batched_tokens": 2048,
        "max_num_seqs": 128,
        "enable_chunked_prefill": True,
        "async_scheduling": None,
    }
    assert "is_encoder_decoder\n  Field required" in seen["broken"]
    assert "max_model_len\n  Field required" in seen["without max_model_len"]
    assert "max_num_encoder_input_tokens\n  Unexpected keyword argument" in seen["derived field"]
    assert seen["kept"] == fields
    assert seen["for an encoder and decoder"] == {**fields, "enable_chunked_prefill": False}


def unresolved_kv_cache_layout(seen: Any, release: str) -> None:
    """Before 0.29 there was nothing to resolve."""
    assert seen["kept"] == 128
    if release == "0.16.0":
        assert seen["broken"] == 128
    else:
        assert seen["broken"].startswith("ValueError: KV cache layout has not been resolved yet")


def models_without_eagle3(seen: Any, release: str) -> None:
    declared = release != "0.16.0"
    assert seen == {
        "DeepseekV3ForCausalLM": declared,
        "KimiK25ForConditionalGeneration": declared,
        "LlamaForCausalLM": True,
    }


def forward_without_keywords(seen: Any, release: str) -> None:
    assert seen["supports_eagle3"] is True
    assert seen["broken"].startswith("TypeError")
    assert "unexpected keyword argument 'deepstack_input_embeds'" in seen["broken"]
    assert seen["kept"] == "ran"


def execute_without_sample(seen: Any, release: str) -> None:
    assert seen["kept"] == ["NoneType", "ModelRunnerOutput"] * 2
    assert seen["broken"].startswith("RuntimeError")
    assert "sample_tokens() must be called after execute_model() returns None" in seen["broken"]


def single_reply_as_list(seen: Any, release: str) -> None:
    """One worker's reply is a list here, and its first item is what a client gets that takes it for all replies."""
    assert seen == {"parameters": ["unique_reply_rank"], "reply": ["c"], "broken": "c", "kept": ["c"]}


def encode_without_pooling_task(seen: Any, release: str) -> None:
    assert seen["broken"].startswith("ValueError: pooling_task required for `LLM.encode`")
    assert seen["kept"] == 2


def function_for_workers(seen: Any, release: str) -> None:
    assert seen["kept"] == [True]
    assert seen["broken"].startswith("TypeError: Object of type <class 'function'> is not serializable")


PROOFS: dict[str, tuple[tuple[str, Proof], ...]] = {
    "chunked-capture": (("scheduling", chunked_prefill), ("executing", rows_of_a_batch)),
    "encode-without-pooling-task": (("offline", encode_without_pooling_task),),
    "execute-without-sample": (("executing", execute_without_sample),),
    "forward-without-keywords": (("scheduling", forward_without_keywords),),
    "function-for-workers": (("offline", function_for_workers),),
    "models-without-eagle3": (("scheduling", models_without_eagle3),),
    "prefix-cached-capture": (("scheduling", prefix_cached_capture),),
    "request-without-block-hasher": (("scheduling", request_without_block_hasher),),
    "scheduler-config-by-hand": (("scheduling", scheduler_config_by_hand),),
    "single-reply-as-list": (("executing", single_reply_as_list),),
    "uninitialized-none-hash": (("scheduling", uninitialized_none_hash),),
    "unresolved-kv-cache-layout": (("scheduling", unresolved_kv_cache_layout),),
}


# What no CPU shows, with what was seen: docs/fixes.md has the run.
SEEN_ON_A_GPU = {"reordered-capture"}


@functools.cache
def answers(file: str, release: str) -> dict[str, Any]:
    """What the experiments of one file led to with that release; the interpreter runs them once."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(EXPERIMENTS),  # its workers are processes of their own
        "PYTHONDONTWRITEBYTECODE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "CRITICAL",
    }
    command = [str(interpreter_of(f"vllm-{release}")), str(EXPERIMENTS / f"{file}.py")]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1200)
    assert finished.returncode == 0, finished.stderr[-3000:]
    # An engine may have its say as it ends, after the answers.
    found = json.loads(next(line for line in reversed(finished.stdout.splitlines()) if line.startswith("{")))
    assert isinstance(found, dict)
    return found


@pytest.mark.vllm
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("rule", PROOFS)
def test_the_real_vllm_does_what_the_rule_says(rule: str, release: str) -> None:
    for file, proof in PROOFS[rule]:
        proof(answers(file, release)[rule], release)


@pytest.mark.vllm
def test_get_input_embeddings(vllm_0_16_0_surface: RuntimeSurface) -> None:
    """Of the inner models nearly all have the new name, and none that takes positions has the old one."""
    symbols = {
        f"{module.name}.{symbol.name}": symbol
        for module in vllm_0_16_0_surface.modules.values()
        if module.name.startswith("vllm.model_executor.models.")
        for symbol in module.symbols
    }

    def has(owner: str, method: str) -> bool:
        return any(f"{each}.{method}" in symbols for each in (owner, *symbols[owner].bases))

    inner = [name for name, symbol in symbols.items() if symbol.kind == "class" and _is_inner(name, symbols)]
    new = [name for name in inner if has(name, "embed_input_ids")]
    old = [name for name in inner if has(name, "get_input_embeddings")]
    assert len(inner) > 90
    assert len(new) / len(inner) > 0.9
    assert old == []


def _is_inner(name: str, symbols: Mapping[str, RuntimeSymbol]) -> bool:
    """A model inside another: it is called …Model, and its own forward takes tokens and positions."""
    forward = symbols.get(f"{name}.forward")
    taken = [parameter.name for parameter in forward.signature.parameters] if forward and forward.signature else []
    return name.endswith("Model") and taken[:2] == ["input_ids", "positions"]


def test_every_rule_that_detects_is_proved() -> None:
    """A rule that finds what no signature shows is believed by what the real vLLM does, and by nothing less."""
    assert {rule.id for rule in rules_of({"vllm"}) if rule.detects} <= PROOFS.keys() | SEEN_ON_A_GPU
    assert PROOFS.keys() <= {rule.id for rule in rules_of({"vllm"})}
