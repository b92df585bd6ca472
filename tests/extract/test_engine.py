"""What vLLM is given, as far as the model decides it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.extract.engine import EngineSettings, engine_arguments

LANGUAGE = {"model_type": "deepseek_v3", "num_hidden_layers": 4}


def arguments(folder: Path, configuration: dict[str, Any], *files: str, **extra: Any) -> dict[str, Any]:
    """What vLLM is given for a model of that configuration, which has such files beside it."""
    (folder / "config.json").write_text(json.dumps(configuration), encoding="utf-8")
    for name in files:
        (folder / name).write_text("", encoding="utf-8")
    return engine_arguments(EngineSettings(str(folder), 64, extra=extra))


def test_a_language_model_needs_no_tokenizer(tmp_path: Path) -> None:
    assert arguments(tmp_path, LANGUAGE, "tokenizer.json")["skip_tokenizer_init"] is True


@pytest.mark.parametrize("file", ["tokenizer_config.json", "tiktoken.model"])
def test_the_processor_of_a_model_around_it_asks_for_the_tokenizer(tmp_path: Path, file: str) -> None:
    configuration = {"model_type": "kimi_k25", "text_config": LANGUAGE}
    assert arguments(tmp_path, configuration)["skip_tokenizer_init"] is True
    assert arguments(tmp_path, configuration, file)["skip_tokenizer_init"] is False
    assert arguments(tmp_path, configuration, file, skip_tokenizer_init=True)["skip_tokenizer_init"] is True


def test_what_extraction_rests_on_cannot_be_switched_off(tmp_path: Path) -> None:
    with pytest.raises(DriftcheckError, match="--engine enable_prefix_caching: extraction needs False"):
        arguments(tmp_path, LANGUAGE, enable_prefix_caching=True)
