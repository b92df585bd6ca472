"""`--model` names an architecture of the target, and what is no such name is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.cli import main

REGISTRY = """
_TEXT_GENERATION_MODELS = {
    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
    "PhiForCausalLM": ("phi", "PhiForCausalLM"),
}
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client and a target with two architectures, only one of which has a class."""
    models = tmp_path / "target" / "vllm" / "model_executor" / "models"
    models.mkdir(parents=True)
    for package in (models, models.parent, models.parent.parent):
        (package / "__init__.py").touch()
    (models / "registry.py").write_text(REGISTRY, encoding="utf-8")
    (models / "llama.py").write_text("class LlamaForCausalLM: ...\n", encoding="utf-8")
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "app.py").write_text("import vllm\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(*options: str, target: str = "./target") -> int:
    return main(["audit", "client", "--against", target, "--offline", *options])


def test_an_architecture_of_the_target_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit("--model", "LlamaForCausalLM") == 0
    assert capsys.readouterr().err == ""


def test_an_unknown_architecture_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit("--model", "LlamaForCasualLM") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "driftcheck: the target has no architecture 'LlamaForCasualLM': did you mean 'LlamaForCausalLM'?\n"
    )


def test_an_architecture_whose_class_is_gone_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit("--model", "PhiForCausalLM") == 2
    assert capsys.readouterr().err.endswith("no architecture 'PhiForCausalLM': did you mean 'LlamaForCausalLM'?\n")


def test_a_target_without_architectures_has_none(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folders / "other" / "library").mkdir(parents=True)
    (folders / "other" / "library" / "__init__.py").touch()
    (folders / "client" / "app.py").write_text("import library\n", encoding="utf-8")
    assert audit("--model", "LlamaForCausalLM", target="./other") == 2
    assert "nothing is known of the target's architectures" in capsys.readouterr().err


def test_the_setting_in_pyproject_counts_too(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folders / "client" / "pyproject.toml").write_text("tool.driftcheck.model = 'Nothing'\n", encoding="utf-8")
    assert audit() == 2
    assert "no architecture 'Nothing'" in capsys.readouterr().err
