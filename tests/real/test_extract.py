"""`driftcheck extract` on a real vLLM: every captured layer of every prompt is that of transformers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .environments import interpreter_of

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[2]
EXPERIMENT = Path(__file__).parent / "experiments" / "extraction.py"
# float32 sums in another order differ by some 1e-6.
TOLERANCE = 1e-5
LAYERS = 4


def run(release: str, experiment: Path, *arguments: str) -> dict[str, Any]:
    """What an experiment says that runs in the environment with that release."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_MLA_DISABLE": "1",  # there is none for CPUs
    }
    command = [str(interpreter_of(f"vllm-{release}")), str(experiment), *arguments]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1200)
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = json.loads(next(line for line in reversed(finished.stdout.splitlines()) if line.startswith("{")))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("release", ["0.16.0", "0.30.0"])
@pytest.mark.parametrize(
    ("model", "layout"),
    [
        ("llama", "speculators"),
        ("qwen", "safetensors"),
        ("oss", "speculators"),
        ("gemma", "safetensors"),
        ("deepseek", "speculators"),
    ],
)
def test_every_layer_of_every_prompt_is_that_of_transformers(release: str, model: str, layout: str) -> None:
    found = run(release, EXPERIMENT, model, layout)
    assert found["code"] == 0
    assert len(found["samples"]) == 71
    wrong = {
        number: sample
        for number, sample in enumerate(found["samples"])
        if not sample["own"]
        or len(sample["errors"]) != LAYERS
        or any(error is None or not error < TOLERANCE for error in sample["errors"])
    }
    assert wrong == {}
