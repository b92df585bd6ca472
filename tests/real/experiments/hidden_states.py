# mypy: disable-error-code="import-not-found"
"""The hidden states that speculators' own generator takes from a tiny random model, held against transformers.

Run with the name of the model. Which speculators it is, as published or fixed, is a matter of the PYTHONPATH. Only
what a machine without a GPU lacks is stubbed.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tiny_models import LAYERS, MOST_TOKENS, SHAPE, VOCABULARY, deepseek, prompt
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast
from vllm.platforms import current_platform


def _llama() -> Any:
    return LlamaConfig(**SHAPE, num_attention_heads=2, num_key_value_heads=2)


_MODELS: dict[str, Callable[[], Any]] = {"llama": _llama, "deepseek": lambda: deepseek(**SHAPE)}


def _made(name: str, folder: Path) -> Any:
    """A model of random weights, which is also saved, with a tokenizer."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(_MODELS[name](), dtype=torch.float32).eval()
    model.save_pretrained(folder)
    words = {"<s>": 0, "</s>": 1, **{f"w{number}": number for number in range(2, VOCABULARY)}}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<s>"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    return model


def _batches() -> dict[str, list[list[int]]]:
    """What one engine is asked for, call after call: later ones meet what earlier ones left."""
    mixed = [prompt(length, length) for length in (1, 15, 16, 17, 64, 200)]
    prefix = prompt(64, 300)
    return {
        "mixed lengths": mixed,
        "the same batch again": mixed,
        "in another order": mixed[::-1],
        "one alone": [prompt(100, 301)],
        "the same one again": [prompt(100, 301)],
        "a shared prefix": [prefix + prompt(20, 302), prefix + prompt(40, 303)],
        "the prefix in a later call": [prompt(10, 304), prefix + prompt(33, 305)],
        "an identical pair": [prompt(80, 306), prompt(80, 306), prompt(9, 307)],
        "longer than the model": [prompt(5, 308), prompt(MOST_TOKENS + 50, 309)],
        "more prompts than a step takes": [prompt(3 + number % 7, 400 + number) for number in range(40)],
        "more tokens than a step takes": [prompt(500, 500 + number) for number in range(20)],
    }


def _without_gpu() -> None:
    """Stands in for a GPU's memory; and the machine knows float32 only, else `dtype="auto"` makes bfloat16 of it."""
    torch.cuda.mem_get_info = lambda *_: (1 << 28, 1 << 30)
    torch.cuda.empty_cache = lambda: None
    type(current_platform).supported_dtypes = [torch.float32]


def _distances(model: Any, tokens: list[int], states: list[Any]) -> list[float | None]:
    """How far each layer's states are from those of transformers, relative to their size; None for another shape."""
    with torch.no_grad():
        expected = [each[0] for each in model(torch.tensor([tokens]), output_hidden_states=True).hidden_states[1:]]
        # What transformers gives last has been through the norm.
        found = [*states[:-1], model.model.norm(states[-1])]
    return [
        ((ours - theirs).norm() / theirs.norm()).item() if ours.shape == theirs.shape else None
        for ours, theirs in zip(found, expected, strict=True)
    ]


def _judged(model: Any, prompt: list[int], result: dict[str, Any]) -> dict[str, Any]:
    tokens = prompt[: MOST_TOKENS - 1]  # one is left for the token that would be generated
    states = result["hidden_states"]
    return {
        "tokens": len(tokens),
        "its own": result["input_ids"].tolist() == tokens,
        "dtypes": sorted({str(each.dtype) for each in states}),
        "errors": _distances(model, tokens, states),
    }


def hidden_states(name: str) -> dict[str, Any]:
    """Of each batch what became of its prompts, or what making the generator raised, or generating."""
    from speculators.data_generation import vllm_hidden_states_generator as generation

    if name == "deepseek":  # a kernel for CPUs turns positions wrongly for it
        generation.VllmConfig = functools.partial(generation.VllmConfig, compilation_config={"custom_ops": ["none"]})
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = _made(name, Path(folder))
        generator = None
        try:
            generator = generation.VllmHiddenStatesGenerator(folder, list(range(LAYERS)), max_model_len=MOST_TOKENS)
            for batch, prompts in _batches().items():
                results = generator.generate(prompts)
                answers[batch] = [_judged(model, *each) for each in zip(prompts, results, strict=True)]
        except Exception as error:  # noqa: BLE001 (what it raises is the answer)
            answers["raised"] = f"{type(error).__name__}: {error}"
        finally:
            if generator is not None:
                generator.executor.shutdown()
    return answers


if __name__ == "__main__":
    _without_gpu()
    sys.stdout.write("\n" + json.dumps(hidden_states(sys.argv[1])) + "\n")
