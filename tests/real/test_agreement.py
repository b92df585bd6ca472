"""The sources of a real vLLM held against its own interpreter, callable by callable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driftcheck.origins.folders import folder_tree
from driftcheck.surface.agreement import Agreement, hold
from driftcheck.surface.program import Program
from driftcheck.surface.runtime import RuntimeSurface, probe

from .environments import modules_of

pytestmark = pytest.mark.vllm


def agreement(interpreter: Path, surface: RuntimeSurface) -> Agreement:
    (sources,) = interpreter.parents[1].glob("lib/python3.*/site-packages/vllm")
    return hold(Program(folder_tree(sources)), surface.modules.values())


def check(found: Agreement, callables: int) -> None:
    """As good as the interpreter: 99.5 % agree, and what the sources say is wrong for one in a thousand at most."""
    assert found.compared >= callables
    assert found.share >= 0.995
    wrong = [difference for difference in found.differences if difference.static is not None]
    assert len(wrong) <= found.compared / 1000, wrong
    assert all(difference.cause for difference in found.differences)


def test_vllm_0_16_0(vllm_0_16_0: Path, vllm_0_16_0_surface: RuntimeSurface) -> None:
    check(agreement(vllm_0_16_0, vllm_0_16_0_surface), 13_000)


def test_vllm_0_30_0(vllm_0_30_0: Path) -> None:
    """All but the modules for AMD's GPUs, each of which ends an interpreter that has none; a probe then gives up."""
    modules = [name for name in modules_of(vllm_0_30_0, "vllm") if not re.search(r"\b(amd|rocm)|_rocm", name)]
    surface = probe(vllm_0_30_0, modules=modules, timeout=1200, patience=600)
    check(agreement(vllm_0_30_0, surface), 20_000)
