"""The runtime surface of a real vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.surface.runtime import RuntimeSurface, probe

pytestmark = pytest.mark.vllm

SYMBOLS = (
    "vllm.v1.core.sched.scheduler.Scheduler",
    "vllm.v1.core.sched.scheduler.Scheduler.schedule",
    "vllm.v1.core.kv_cache_utils.get_kv_cache_config_from_groups",
    "vllm.config.SchedulerConfig",
    "vllm.v1.request.Request",
    "vllm.LLM",
    "vllm.LLM.generate",
    "vllm.envs.VLLM_LOGGING_LEVEL",
    "vllm.envs.VLLM_NO_SUCH_VARIABLE",
    "vllm.model_executor.models.interfaces.supports_eagle3",
    "vllm.model_executor.models.llama.LlamaModel.get_input_embeddings",
    "vllm.model_executor.models.llama.LlamaModel.embed_input_ids",
    "vllm._xpu_ops.xpu_ops",
)


def test_what_speculators_needs_of_0_16_0(vllm_0_16_0: Path, tmp_path: Path) -> None:
    surface = probe(vllm_0_16_0, SYMBOLS, cache_folder=tmp_path, cache_key="0.16.0")
    parameters = {
        name: {parameter.name: parameter.is_required for parameter in symbol.signature.parameters}
        for name, symbol in surface.symbols.items()
        if symbol.signature
    }
    assert parameters["vllm.v1.core.sched.scheduler.Scheduler"]["block_size"] is True
    assert parameters["vllm.v1.core.sched.scheduler.Scheduler.schedule"] == {}
    assert "kv_cache_specs" not in parameters["vllm.v1.core.kv_cache_utils.get_kv_cache_config_from_groups"]
    assert parameters["vllm.config.SchedulerConfig"]["is_encoder_decoder"] is True
    assert "eos_token_id" in parameters["vllm.v1.request.Request"]
    assert parameters["vllm.LLM"]["model"] is True
    scheduler = surface.symbols["vllm.v1.core.sched.scheduler.Scheduler"]
    assert scheduler.path == "vllm/v1/core/sched/scheduler.py"
    statuses = [surface.symbols[name].status for name in SYMBOLS]
    assert statuses == ["found"] * 8 + ["missing", "found", "missing", "found", "failed"]
    assert surface.notice is not None
    assert "vllm._xpu_ops" in surface.notice
    assert surface.processes == 1
    again = probe(vllm_0_16_0, SYMBOLS[:-1], cache_folder=tmp_path, cache_key="0.16.0")
    assert again.processes == 0
    assert all(again.symbols[name] == surface.symbols[name] for name in SYMBOLS[:-1])


def test_all_of_0_16_0_can_be_read(vllm_0_16_0_surface: RuntimeSurface) -> None:
    modules = vllm_0_16_0_surface.modules
    importable = [module for module in modules.values() if module.failure is None]
    public = [
        symbol
        for module in importable
        for symbol in module.symbols
        if symbol.signature and not any(part.startswith("_") for part in symbol.name.split("."))
    ]
    assert vllm_0_16_0_surface.processes == 1
    assert len(importable) > 1250
    assert len(public) > 13_000
    assert {module.failure.exception for module in modules.values() if module.failure} <= {
        "AttributeError",
        "ImportError",
        "ModuleNotFoundError",
        "RuntimeError",
    }
