"""Fixtures with a real vLLM; a test that uses one carries the marker `vllm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .environments import interpreter_of


@pytest.fixture(scope="session")
def vllm_0_16_0() -> Path:
    """The Python of an environment with vLLM 0.16.0 (built for CPU) and speculators 0.3.0."""
    return interpreter_of("vllm-0.16.0")
