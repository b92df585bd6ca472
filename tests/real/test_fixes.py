"""A client that `driftcheck fix` repaired, on a real vLLM: speculators' own generator runs and is right.

As published it was written for vLLM 0.11.0 and dies. Whether what comes out is right is asked of transformers, layer by
layer, since a fix that merely ends the crashes leaves wrong rows behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .environments import interpreter_of
from .wide import wide

pytestmark = pytest.mark.vllm
EXPERIMENT = Path(__file__).parent / "experiments" / "hidden_states.py"
RELEASES = ("0.16.0", "0.17.1")
# float32 sums in another order differ by some 1e-6.
TOLERANCE = 1e-5
LAYERS = 4


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A release that an environment has, beside speculators 0.3.0."""
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def overlay(release: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the fixed copy of the installed speculators, to be put before it on the PYTHONPATH."""
    folder = tmp_path_factory.mktemp(f"vllm-{release}")
    python = str(interpreter_of(f"vllm-{release}"))
    command = [sys.executable, "-m", "driftcheck", "fix", "speculators", "--python", python]
    finished = subprocess.run(
        [*command, "--baseline", "vllm==0.11.0", "--unsafe", "--overlay", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode in {0, 1}, finished.stderr
    return folder


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with speculators fixed for all releases from 0.11 to 0.17 at once, which were all asked."""
    folder = tmp_path_factory.mktemp("portable")
    command = [sys.executable, "-m", "driftcheck", "fix", "speculators==0.3.0", "--compat", ">=0.11,<0.18", "--unsafe"]
    finished = subprocess.run([*command, "--overlay", str(folder)], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "nothing is left that fails or silently does something else" in " ".join(finished.stdout.split())
    return folder


def hidden_states(release: str, model: str, overlay: Path | None) -> dict[str, Any]:
    """What the generator gives with that release, the installed one or that of the overlay."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(overlay or ""),  # its workers are processes of their own
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "CRITICAL",
        "VLLM_MLA_DISABLE": "1",  # there is none for CPUs
    }
    command = [str(interpreter_of(f"vllm-{release}")), str(EXPERIMENT), model]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1200)
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = json.loads(next(line for line in reversed(finished.stdout.splitlines()) if line.startswith("{")))
    assert isinstance(found, dict)
    return found


def assert_right(found: dict[str, Any]) -> None:
    """Every prompt of every batch got its own rows, and each layer's are those of transformers."""
    assert "raised" not in found, found["raised"]
    assert {name: len(results) for name, results in found.items()} == {
        "mixed lengths": 6,
        "the same batch again": 6,
        "in another order": 6,
        "one alone": 1,
        "the same one again": 1,
        "a shared prefix": 2,
        "the prefix in a later call": 2,
        "an identical pair": 3,
        "longer than the model": 2,
        "more prompts than a step takes": 40,
        "more tokens than a step takes": 20,
    }
    wrong = {
        (name, index, result["tokens"]): result
        for name, results in found.items()
        for index, result in enumerate(results)
        if not result["its own"]
        or result["dtypes"] != ["torch.float32"]
        or len(result["errors"]) != LAYERS
        or any(error is None or not error < TOLERANCE for error in result["errors"])
    }
    assert wrong == {}


def test_the_published_generator_dies(release: str) -> None:
    (raised,) = hidden_states(release, "llama", None).values()
    assert raised.startswith("ValidationError: 1 validation error for SchedulerConfig\nis_encoder_decoder\n")


@pytest.mark.parametrize("release", [wide("0.16.0"), "0.17.1"], indirect=True)
def test_the_fixed_generator_is_right(release: str, overlay: Path) -> None:
    assert_right(hidden_states(release, "llama", overlay))


@pytest.mark.parametrize("release", [wide("0.16.0"), wide("0.17.1")], indirect=True)
def test_one_source_for_several_releases_is_right(release: str, portable: Path) -> None:
    assert_right(hidden_states(release, "llama", portable))


@pytest.mark.parametrize("release", RELEASES[:1], indirect=True)
def test_the_fixed_generator_is_right_for_a_model_with_experts(release: str, overlay: Path) -> None:
    """DeepSeek-V3, which the published generator would refuse, since it asks for SupportsEagle3."""
    assert_right(hidden_states(release, "deepseek", overlay))
