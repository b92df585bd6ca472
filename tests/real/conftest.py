"""Fixtures with a real vLLM; a test that uses one carries the marker `vllm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.surface.runtime import RuntimeSurface, probe

from .environments import interpreter_of, modules_of


@pytest.fixture(scope="session")
def vllm_0_16_0() -> Path:
    """The Python of an environment with vLLM 0.16.0 (built for CPU) and speculators 0.3.0."""
    return interpreter_of("vllm-0.16.0")


@pytest.fixture(scope="session")
def vllm_0_30_0() -> Path:
    """The Python of an environment with vLLM 0.30.0 (built for CPU)."""
    return interpreter_of("vllm-0.30.0")


@pytest.fixture(scope="session")
def vllm_0_16_0_surface(vllm_0_16_0: Path) -> RuntimeSurface:
    """All that the modules of vLLM 0.16.0 define, as inspect sees it there."""
    return probe(vllm_0_16_0, modules=modules_of(vllm_0_16_0, "vllm"), timeout=600, patience=300)
