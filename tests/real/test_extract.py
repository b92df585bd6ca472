"""`driftcheck extract` on a real vLLM: every captured layer of every prompt is that of transformers."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from .environments import bytecode_folder, interpreter_of
from .wide import wide

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[2]
EXPERIMENT = Path(__file__).parent / "experiments" / "extraction.py"
FILES = Path(__file__).parent / "experiments" / "extraction_files.py"
TRAINING = Path(__file__).parent / "experiments" / "extraction_training.py"
KILLED = Path(__file__).parent / "experiments" / "extraction_killed.py"
RANKS = Path(__file__).parent / "experiments" / "extraction_ranks.py"
RAY = Path(__file__).parent / "experiments" / "extraction_ray.py"
SHARDS = Path(__file__).parent / "experiments" / "shards.py"
# float32 sums in another order differ by some 1e-6.
TOLERANCE = 1e-5
LAYERS = 4
RELEASES = ("0.16.0", "0.17.1", "0.20.2", "0.30.0", "0.32.0")
MODELS = ("llama", "qwen", "oss", "gemma", "deepseek", "kimi")
# With numba at hand 0.32.0 goes through its modules for kernels on CPUs, and ends at one of llvmlite.
KIMI_FAILS = ("0.32.0", "kimi")
# By turns, so that each model and each release is tried with both.
LAYOUTS = ("speculators", "safetensors") * 4
# Each on one core, since vLLM would have a NUMA node for each.
TWO_WORKERS = {"VLLM_CPU_OMP_THREADS_BIND": "0|1"}
FOUR_WORKERS = {"VLLM_CPU_OMP_THREADS_BIND": "0|1|0|1"}
# 0.16.0 has no attention of DeepSeek's own kind (MLA) for CPUs, and expands it.
MODELS_OF_RANKS = (("0.16.0", "llama"), ("0.16.0", "deepseek"), ("0.30.0", "llama"), ("0.30.0", "mla"))
# What the samples wait in that ranks capture, and how many steps of theirs it takes at least.
MEMORY, STEPS = 4_000_000, 3
Run: TypeAlias = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Gives what an experiment says that runs in the environment with a release."""

    @functools.cache
    def interpreter(release: str) -> Path:
        return environment_beside(release, tmp_path_factory.mktemp(f"vllm-{release}"))

    def run(release: str, *arguments: str, experiment: Path = EXPERIMENT, **more: str) -> dict[str, Any]:
        return answer(interpreter(release), experiment, *arguments, **more)

    return run


def environment_beside(release: str, folder: Path, extra: str = "") -> Path:
    """The Python of an environment with driftcheck, installed as anyone would, beside that vLLM."""
    python = folder / "bin" / "python"
    for command in (
        ["venv", "--python", sys.executable, str(folder)],
        # Else uv takes the wheel that it has built of this folder before, whatever has changed in it.
        ["pip", "install", "--python", str(python), "--reinstall-package", "driftcheck", f"{ROOT}{extra}"],
    ):
        subprocess.run(["uv", *command], check=True, capture_output=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (vllm,) = interpreter_of(f"vllm-{release}").parents[1].glob("lib/python3.*/site-packages")
    (packages / "vllm.pth").write_text(f"{vllm}\n", encoding="utf-8")
    return python


def answer(interpreter: Path, experiment: Path, *arguments: str, **more: str) -> dict[str, Any]:
    """What an experiment says, with more in its environment."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        # Each process would else compile all of vLLM and torch again; the environments themselves stay as they are.
        "PYTHONPYCACHEPREFIX": str(bytecode_folder()),
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_MLA_DISABLE": "1",  # older releases have none for CPUs; `mla` switches it on
        **more,
    }
    command = [str(interpreter), str(experiment), *arguments]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=3600)
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = json.loads(next(line for line in reversed(finished.stdout.splitlines()) if line.startswith("{")))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("release", "model", "layout"),
    [
        ("0.16.0", "llama", "speculators"),
        # A processor of images that looks up tokens at the start, which later releases go on without.
        ("0.16.0", "kimi", "safetensors"),
        *(
            wide(release, model, layout)
            for place, release in enumerate(RELEASES)
            for model, layout in zip(MODELS, LAYOUTS[place % 2 :], strict=False)
            if (release, model) not in {("0.16.0", "llama"), ("0.16.0", "kimi"), KIMI_FAILS}
        ),
        wide("0.30.0", "mla", "speculators"),
    ],
)
def test_every_layer_of_every_prompt_is_that_of_transformers(run: Run, release: str, model: str, layout: str) -> None:
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


@pytest.mark.parametrize(
    ("release", "tensors", "stages"),
    [wide(release, *sizes) for release in ("0.16.0", "0.30.0") for sizes in (("1", "2"), ("2", "1"))],
)
def test_states_of_several_workers_are_written_once(run: Run, release: str, tensors: str, stages: str) -> None:
    found = run(release, "qwen", "safetensors", tensors, stages, **TWO_WORKERS)
    assert (found["code"], found["errors"]) == (0, "")
    assert_right(found["samples"], 71)


@pytest.fixture(scope="module")
def folder_of_one_rank(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Gives a folder with what one rank of a release has written of a model."""

    @functools.cache
    def folder_of(release: str, model: str) -> Path:
        folder = tmp_path_factory.mktemp(f"{model}-{release}")
        found = run(release, str(folder), model, "1", "1", experiment=RANKS)
        assert (found["code"], found["writers"]) == (0, [0])
        assert_right(found["samples"], 71)
        return folder

    return folder_of


@pytest.mark.parametrize(
    ("release", "model", "tensors", "stages"),
    [wide(*each, *sizes) for each in MODELS_OF_RANKS for sizes in (("2", "1"), ("1", "2"), ("2", "2"))],
)
def test_several_ranks_write_what_one_does_and_wait_for_no_disk(
    run: Run, folder_of_one_rank: Callable[[str, str], Path], release: str, model: str, tensors: str, stages: str
) -> None:
    """The disk stands still until the memory is full: all ranks go on until then, and one writes it all, once."""
    folder = folder_of_one_rank(release, model)
    workers = FOUR_WORKERS if (tensors, stages) == ("2", "2") else TWO_WORKERS
    found = run(release, str(folder), model, tensors, stages, experiment=RANKS, **workers)
    assert found["code"] == 0
    assert_right(found["samples"], 71)
    assert found["furthest_from_one_rank"] < TOLERANCE
    assert found["writers"] == [int(tensors) * (int(stages) - 1)]
    assert found["writes"] == found["listed"] == list(range(71))
    assert len(found["steps"]) == int(tensors) * int(stages)
    assert len(set(found["steps"])) == 1
    assert min(found["steps_before_the_first_write"]) >= STEPS
    assert (found["in_vain"], found["most_memory"] <= MEMORY) == (0, True)


@pytest.mark.parametrize(
    ("release", "tensors", "stages", "rank"),
    [
        wide(release, *sizes, rank)
        for release in ("0.16.0", "0.30.0")
        for sizes in (("2", "1"), ("1", "2"))
        for rank in "01"
    ],
)
def test_a_worker_that_is_killed_is_named_and_costs_nothing(
    run: Run, release: str, tensors: str, stages: str, rank: str
) -> None:
    found = run(release, tensors, stages, rank, experiment=KILLED, **TWO_WORKERS)
    reason = f"VllmWorker-{rank} was ended by SIGKILL, as the kernel does where memory runs out"
    said = f"{reason}; errors.jsonl has the traceback, and the same command goes on where this one was"
    assert (found["code"], found["said"]) == (2, [f"driftcheck: the engine is gone: {said}"])
    (entry,) = found["noted"]
    assert (entry["sample"], entry["stage"], entry["error"]) == (None, "engine", reason)
    assert found["left"] == []
    assert found["there"] >= 30
    assert (found["codes"], found["is_the_same"]) == ([0, 0], True)
    assert found["result"].endswith(f" {71 - found['there']} samples written, {found['there']} were there")


@pytest.mark.wide
def test_shards_that_ray_runs_are_joined(tmp_path: Path) -> None:
    """Two at a time, each with an engine of its own; and shards that fail are run again, two times at most."""
    python = environment_beside("0.16.0", tmp_path, "[ray]")
    ended = answer(python, SHARDS)
    assert ended == {
        "ended": {"0": 0, "1": 10, "2": "RuntimeError: shard 2 can't go on", "3": 30},
        "tries": {"0": 1, "1": 3, "2": 3, "3": 1},
    }
    found = answer(python, EXPERIMENT, "llama", "speculators", "1", "1", "2")
    assert (found["code"], found["errors"]) == (0, "")
    assert_right(found["samples"], 71)


@pytest.mark.wide
def test_shards_of_which_one_loses_its_process_hold_what_an_undivided_run_holds(tmp_path: Path) -> None:
    """Ray starts the lost one again, which goes on where it was; and the manifests are joined once more by hand."""
    found = answer(environment_beside("0.30.0", tmp_path, "[ray]"), RAY, "2")
    whole = "71 samples, all as their manifests say"
    assert (found["code"], found["killed"], found["codes"]) == (0, 1, [0, 0])
    assert 5 <= found["there"] < 35  # killed in its midst
    assert found["said"] == [f"result       {whole}", "shard 0/2    is done", "shard 1/2    is done"]
    assert found["merged"] == f"result       {whole}"
    assert (found["places"], found["is_said"], found["count"]) == (True, True, 71)
    assert found["furthest"] < TOLERANCE


@pytest.mark.wide
@pytest.mark.parametrize(("layout", "name"), [("speculators", "vllm-0.16.0"), ("safetensors", "speculators-0.9.0")])
def test_speculators_trains_from_what_is_written(run: Run, layout: str, name: str, tmp_path: Path) -> None:
    """speculators 0.3.0, which is beside vLLM 0.16.0, and 0.9.0, without any."""
    assert run("0.16.0", "extract", str(tmp_path), layout, experiment=TRAINING) == {"code": 0}
    found = answer(interpreter_of(name), TRAINING, "train", str(tmp_path), TORCHDYNAMO_DISABLE="1")
    assert len(found["samples"]) == 4
    for sample in found["samples"]:
        assert sample["tokens"] and sample["mask"]
        assert max(sample["errors"]) < TOLERANCE
    assert found["losses"] == sorted(found["losses"], reverse=True)
    assert 0 < found["losses"][-1] < found["losses"][0] / 2
    assert found["trained"] > 10


@pytest.mark.parametrize("release", [wide("0.16.0"), wide("0.30.0")])
def test_a_prompt_that_fails_is_found_and_costs_no_other(run: Run, release: str) -> None:
    found = run(release, "poisoned", "speculators")
    assert found["code"] == 1
    assert_right(found["samples"], 70)
    (entry,) = (json.loads(line) for line in found["errors"].splitlines())
    assert (entry["sample"], entry["stage"], entry["error"]) == (20, "engine", "AssertionError")
    assert "in look" in entry["traceback"]


@pytest.mark.parametrize("release", [wide("0.16.0"), wide("0.30.0")])
def test_the_generator_gives_what_the_command_writes(run: Run, release: str) -> None:
    found = run(release, "generator")
    assert found["layers"] == [0, 3]
    assert_right(found["samples"], 75, layers=2)


def test_data_sets_are_read_and_samples_are_trained_from(run: Run) -> None:
    """The environment has speculators 0.3.0 and datasets."""
    found = run("0.16.0", experiment=FILES)
    rows = [[[0, [1, 2, 3], [0, 1, 1]], [1, [4], [1]]], [[2, "has no tokens"]]]
    assert found["tables"] == {"parquet": rows, "arrow": rows, "saved": rows, "parts": rows}
    assert found["training"]["found"] == ["data_0.pt", "data_1.pt"]
    assert found["training"]["samples"] == [
        {"states": True, "last": True, "tokens": [1, 2, 3, 4], "mask": [1, 1, 1, 1]},
        {"states": True, "last": True, "tokens": [1, 2, 3, 4, 5, 6, 7, 8], "mask": [1, 0, 1, 0, 1, 0, 1, 0]},
    ]
