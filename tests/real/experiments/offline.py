# mypy: disable-error-code="import-not-found"
"""Contracts of the offline API, on a tiny model for embeddings."""

from __future__ import annotations

import functools
import os
from typing import Any

from making import folder, has_parameters, outcome, prompt, report
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
from vllm import LLM, TokensPrompt

_LEAVE = "VLLM_ALLOW_INSECURE_SERIALIZATION"


@functools.cache
def _llm() -> Any:
    """The engine runs in a process of its own, which has leave to unpickle."""
    os.environ[_LEAVE] = "1"
    model = folder()
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(model)
    return LLM(
        model=model,
        runner="pooling",
        convert="embed",
        load_format="dummy",
        dtype="float32",
        max_model_len=256,
        enforce_eager=True,
    )


def encode_without_pooling_task() -> dict[str, Any]:
    prompts = [TokensPrompt(prompt_token_ids=prompt(8)), TokensPrompt(prompt_token_ids=prompt(4))]
    return {
        "broken": outcome(lambda: len(_llm().encode(prompts))),
        "kept": outcome(lambda: len(_llm().encode(prompts, pooling_task="embed"))),
    }


def function_for_workers() -> dict[str, Any]:
    kept = outcome(lambda: _llm().apply_model(has_parameters))
    del os.environ[_LEAVE]
    return {"kept": kept, "broken": outcome(lambda: _llm().apply_model(has_parameters))}


if __name__ == "__main__":
    report({"encode-without-pooling-task": encode_without_pooling_task, "function-for-workers": function_for_workers})
