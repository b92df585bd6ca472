"""The command, as far as it goes without vLLM: what it shows, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftcheck.cli import main
from driftcheck.extract.architecture import architecture_of, revision_of
from driftcheck.extract.smoke import model_in_small, shrunk

TEXT = {
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "dtype": "bfloat16",
    "n_routed_experts": 384,
    "first_k_dense_replace": 1,
    "layer_types": ["full"] * 61,
    "num_attention_heads": 64,
}
WRAPPED = {"architectures": ["WrappedForConditionalGeneration"], "text_config": TEXT, "vision_config": {"depth": 61}}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(WRAPPED), encoding="utf-8")
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"input_ids": [1] * 2048}, {"input_ids": [1] * 5000}, {"input_ids": []}, {"input_ids": [3, 4]}]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def plan(*arguments: object) -> int:
    return main(["extract", *map(str, arguments), "--plan", "--force", "--no-smoke"])


def test_the_plan(model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(model, data, "--output", tmp_path / "states") == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["data"] == "4 rows, 1 too long and cut, 1 no prompts (row 2 has no tokens)"
    assert shown["samples"] == "3"
    assert shown["tokens"] == "6,146 in 1 steps or more, the longest prompt has 4,096"
    assert shown["written"].startswith("352.5 MB, 57,344 bytes a token; ")
    assert shown["memory"].startswith("469.8 MB of this machine's")
    assert shown["time"] == "0 min 00 s at 10,000 tokens a second"


def test_a_shard_of_the_first_rows(model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--shard", "1/2", "--limit", "3", "--max-model-len", "16", "--too-long", "skip", "--rate", "1")
    assert plan(model, data, "--output", tmp_path / "states", *options) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (shown["data"], shown["samples"]) == ("1 rows, 1 too long and left out", "0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layers", "61"], "--layers 61: WrappedForConditionalGeneration has the layers 0 to 60"),
        (["--layers", "1,1"], "--layers 1,1: a layer stands there twice"),
        (["--layers", "x"], "--layers x: give numbers such as 2,30,58,60, or auto"),
        (
            ["--dtype", "float64"],
            "--dtype float64: states are written as bfloat16, float16, float32, and not as float64",
        ),
        (["--engine", "seed"], "--engine seed: give an argument of vllm.LLM and its value, KEY=VALUE"),
        (["--engine", "enable-prefix-caching=true"], "--engine enable_prefix_caching: extraction needs False"),
        (["--engine", "data_parallel_size=2"], "--engine data_parallel_size: extraction needs 1"),
        (["--host-memory", "1M"], "--host-memory 1048576: the largest sample, and one beside it, need 469770240 bytes"),
        (["--on-error", "stop"], "data.jsonl: row 2 has no tokens"),
        (["--shard", "2/2"], "argument --shard: '2/2' is no part such as 0/8, with parts counted from 0"),
        (["--host-memory", "much"], "argument --host-memory: 'much' is no size such as 512M or 8G"),
        (["--limit", "0"], "argument --limit: '0' is no positive number"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    message: str,
    model: Path,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan(model, data, "--output", tmp_path / "states", *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("driftcheck: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_disk_that_can_t_hold_it_is_refused_before_anything_is_loaded(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four layers of 10**12 numbers fill any disk."""
    text = {**TEXT, "hidden_size": 10**12}
    (model / "config.json").write_text(json.dumps({**WRAPPED, "text_config": text}), encoding="utf-8")
    (tmp_path / "data.jsonl").write_text(json.dumps({"input_ids": [1] * 4000}) + "\n", encoding="utf-8")
    assert plan(model, tmp_path / "data.jsonl", "--output", tmp_path / "states") == 2
    error = capsys.readouterr().err
    assert "32000.00 TB are to be written and" in error
    assert "make room, name a folder on a larger disk, or take less" in error
    assert not (tmp_path / "states").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "can't be read"), ("[]", "holds no configuration"), ("{}", "does not say num_hidden_layers")],
)
def test_a_folder_that_is_no_model(
    content: str, message: str, model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / "config.json").write_text(content, encoding="utf-8")
    assert plan(model, data, "--output", tmp_path / "states") == 2
    assert message in capsys.readouterr().err


def test_one_argument_is_not_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extract", "model", "--output", str(tmp_path)]) == 2
    assert "name a model and its prompts" in capsys.readouterr().err


def test_layers_are_chosen_as_speculators_chooses_them(model: Path) -> None:
    architecture = architecture_of(model)
    assert architecture.chosen_layers("auto") == (2, 30, 58, 60)
    assert architecture.chosen_layers("60,0") == (60, 0)


def test_a_model_in_small_differs_in_what_makes_it_large_only() -> None:
    small = shrunk(WRAPPED)
    text: dict[str, Any] = small["text_config"]
    assert {name: value for name, value in text.items() if value != TEXT[name]} == {
        "num_hidden_layers": 2,
        "n_routed_experts": 16,
        "layer_types": ["full", "full"],
    }
    assert {**small, "text_config": TEXT} == WRAPPED


def test_a_model_in_small_has_all_files_but_weights(model: Path, tmp_path: Path) -> None:
    for name in ("modeling.py", "tokenizer.json", "model.safetensors", "model.safetensors.index.json"):
        (model / name).write_text("{}", encoding="utf-8")
    model_in_small(model, tmp_path / "small")
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == [
        "config.json",
        "modeling.py",
        "tokenizer.json",
    ]


def test_a_revision_is_another_for_other_weights_and_for_another_configuration(model: Path) -> None:
    (model / "model.safetensors").write_bytes(bytes(1 << 18))
    (model / "README.md").write_text("a model", encoding="utf-8")
    before = revision_of(model)
    (model / "README.md").write_text("the model", encoding="utf-8")
    assert revision_of(model) == before
    content = bytearray(1 << 18)
    content[1 << 17] = 1
    (model / "model.safetensors").write_bytes(content)
    tuned = revision_of(model)
    (model / "config.json").write_text("{}", encoding="utf-8")
    assert len({before, tuned, revision_of(model)}) == 3


def test_a_revision_of_the_hub_is_its_commit(tmp_path: Path) -> None:
    folder = tmp_path / "models--a--b" / "snapshots" / "1f0c"
    folder.mkdir(parents=True)
    assert revision_of(folder) == "1f0c"


def test_a_model_in_small_has_a_layer_for_each_stage() -> None:
    text: dict[str, Any] = shrunk(WRAPPED, 4)["text_config"]
    assert (text["num_hidden_layers"], text["layer_types"]) == (4, ["full"] * 4)
