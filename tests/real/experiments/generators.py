# mypy: disable-error-code="import-not-found"
"""The same awkward inputs through speculators' own generator, or ours: of which batches the states come out right.

Run with `speculators` or `driftcheck`, where vLLM and the one or the other is. One generator is asked for batch after
batch, so that what one leaves behind meets the next; the last ones are those that end a generator.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import hidden_states
from tiny_models import LAYERS, MOST_TOKENS, prompt

TOLERANCE = 1e-5


def batches() -> dict[str, list[list[int]]]:
    """Those of the other experiment, and more; what is known to end speculators' generator comes last."""
    given = hidden_states._batches()
    many = given.pop("more prompts than a step takes")
    return {
        **given,
        "12 prompts": many[:12],
        "40 prompts": many,
        "an empty prompt": [[], prompt(9, 1)],
        "after it": many[:3],
    }


def made(whose: str, folder: str) -> Any:
    """A generator of theirs or ours."""
    if whose == "speculators":
        from speculators.data_generation.vllm_hidden_states_generator import VllmHiddenStatesGenerator

        return VllmHiddenStatesGenerator(folder, list(range(LAYERS)), max_model_len=MOST_TOKENS)
    from driftcheck.extract import generator

    return generator.VllmHiddenStatesGenerator(
        folder, list(range(LAYERS)), max_model_len=MOST_TOKENS, dtype="float32", engine_arguments={"max_num_seqs": 32}
    )


def judged(whose: str) -> dict[str, str]:
    """Of each batch how many of its prompts came out right, or what was raised."""
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        model = hidden_states._made("llama", Path(folder))
        generator = made(whose, folder)
        for name, prompts in batches().items():
            try:
                results = generator.generate(prompts)
            except Exception as error:  # noqa: BLE001 (what it raises is the answer)
                answers[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
                continue
            seen = [hidden_states._judged(model, *each) for each in zip(prompts, results, strict=True)]
            right = sum(each["its own"] and all(_is_small(error) for error in each["errors"]) for each in seen)
            answers[name] = f"{right} of {len(prompts)}"
    return answers


def _is_small(error: float | None) -> bool:
    return error is not None and error < TOLERANCE


if __name__ == "__main__":
    hidden_states._without_gpu()
    sys.stdout.write("\n" + json.dumps(judged(sys.argv[1])) + "\n")
    sys.stdout.flush()
