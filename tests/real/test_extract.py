"""`driftcheck extract` on a real vLLM: every captured layer of every prompt is that of transformers."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
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


@functools.cache
def interpreter(release: str) -> Path:
    """The Python of an environment with driftcheck, installed as anyone would, beside that vLLM."""
    folder = Path(tempfile.mkdtemp(prefix="driftcheck-extract-"))
    python = folder / "bin" / "python"
    for command in (
        ["venv", "--python", sys.executable, str(folder)],
        ["pip", "install", "--python", str(python), str(ROOT)],
    ):
        subprocess.run(["uv", *command], check=True, capture_output=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (vllm,) = interpreter_of(f"vllm-{release}").parents[1].glob("lib/python3.*/site-packages")
    (packages / "vllm.pth").write_text(f"{vllm}\n", encoding="utf-8")
    return python


def run(release: str, *arguments: str) -> dict[str, Any]:
    """What the experiment says that runs in the environment with that release."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_MLA_DISABLE": "1",  # there is none for CPUs
    }
    command = [str(interpreter(release)), str(EXPERIMENT), *arguments]
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
    found = run(release, model, layout)
    assert (found["code"], found["errors"]) == (0, "")
    assert_right(found["samples"], 71)


def assert_right(samples: list[dict[str, Any]], count: int, layers: int = LAYERS) -> None:
    """All samples are there, with their own tokens, and each layer's states are those of transformers."""
    assert len(samples) == count
    wrong = {
        number: sample
        for number, sample in enumerate(samples)
        if not sample["own"]
        or len(sample["errors"]) != layers
        or any(error is None or not error < TOLERANCE for error in sample["errors"])
    }
    assert wrong == {}


@pytest.mark.parametrize("release", ["0.16.0", "0.30.0"])
def test_a_prompt_that_fails_is_found_and_costs_no_other(release: str) -> None:
    found = run(release, "poisoned", "speculators")
    assert found["code"] == 1
    assert_right(found["samples"], 70)
    (entry,) = (json.loads(line) for line in found["errors"].splitlines())
    assert (entry["sample"], entry["stage"], entry["error"]) == (20, "engine", "AssertionError")
    assert "in look" in entry["traceback"]


@pytest.mark.parametrize("release", ["0.16.0", "0.30.0"])
def test_the_generator_gives_what_the_command_writes(release: str) -> None:
    found = run(release, "generator")
    assert found["layers"] == [0, 3]
    assert_right(found["samples"], 75, layers=2)
