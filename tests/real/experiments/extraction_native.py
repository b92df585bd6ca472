# mypy: disable-error-code="import-not-found"
"""vLLM's own way to write hidden states, `extract_hidden_states`, held against transformers, and its speed.

Run with `states`, a model's name and arguments of `LLM` as JSON, beside an installed driftcheck: what becomes of the
prompts that ours is asked too. Or with `rate`, a model's folder, the folder to write to, how many prompts, how long,
and arguments: how many tokens a second are read and written, in rounds. What a machine without a GPU lacks is stood in
for.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from extraction import distance, made, prompts, references
from safetensors.torch import load_file
from tiny_models import LAYERS, MOST_TOKENS

ROUNDS = 3
_TOLERANCE = 1e-5 if not torch.cuda.is_available() else 5e-2


def arguments(layers: Sequence[int], folder: Path) -> dict[str, Any]:
    """What switches it on; a layer's states are those that the next layer gets, so that it counts from 1."""
    numbers = [layer + 1 for layer in layers]
    return {
        "speculative_config": {
            "method": "extract_hidden_states",
            "num_speculative_tokens": 1,
            "draft_model_config": {"hf_config": {"eagle_aux_hidden_state_layer_ids": numbers}},
        },
        "kv_transfer_config": {
            "kv_connector": "ExampleHiddenStatesConnector",
            "kv_role": "kv_producer",
            "kv_connector_extra_config": {"shared_storage_path": str(folder)},
        },
    }


def paths(engine: Any, given: Sequence[Sequence[int]]) -> list[Path]:
    """Has prompts read, and gives the files that their states will be in."""
    from vllm import SamplingParams

    parameters = SamplingParams(max_tokens=1, temperature=0.0, detokenize=False)
    asked = [{"prompt_token_ids": list(tokens)} for tokens in given]
    outputs = engine.generate(asked, parameters, use_tqdm=False)
    return [Path(output.kv_transfer_params["hidden_states_path"]) for output in outputs]


def wait(files: Sequence[Path]) -> None:
    """Waits until all is written: a file is locked, through one beside it, until it is whole."""
    import fcntl

    for path in files:
        lock = Path(f"{path}.lock")
        if lock.exists():
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
        while not path.exists():
            time.sleep(0.001)


def states(name: str, more: dict[str, Any]) -> dict[str, Any]:
    """Of how many prompts every layer is that of transformers, in a first call and in a second one."""
    from vllm import LLM

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = made(name, folder / "model")
        given = prompts()
        dtype = "float32" if not torch.cuda.is_available() else "bfloat16"
        engine = LLM(
            **{
                "model": str(folder / "model"),
                "dtype": dtype,
                "max_model_len": MOST_TOKENS + 1,
                "enforce_eager": True,
                "enable_prefix_caching": False,
                "skip_tokenizer_init": True,
                "max_num_seqs": 16,
                "gpu_memory_utilization": 0.3,
                **arguments(range(LAYERS), folder / "states"),
                **more,
            }
        )
        found: dict[str, Any] = {}
        for call in ("first", "second"):
            files = paths(engine, given)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and not all(path.exists() for path in files):
                time.sleep(0.1)
            time.sleep(1)
            found[call] = judged(model, given, files)
        return found


def judged(model: Any, given: Sequence[Sequence[int]], files: Sequence[Path]) -> dict[str, Any]:
    """How many prompts are right, whose file is missing, and which are how far away."""
    worst, missing, wrong = 0.0, [], []
    for number, (tokens, path) in enumerate(zip(given, files, strict=True)):
        if not path.exists():
            missing.append(number)
            continue
        content = load_file(path)
        expected = references(model, tokens)
        layers = [each.float() for each in content["hidden_states"].unbind(1)]
        errors = [distance(*pair) for pair in zip(layers, expected, strict=True)]
        far = max(error if error is not None and math.isfinite(error) else 9.0 for error in errors)
        if content["token_ids"].tolist() != list(tokens) or far >= _TOLERANCE:
            wrong.append((number, len(tokens), far))
        else:
            worst = max(worst, far)
    return {"right": len(given) - len(missing) - len(wrong), "worst": worst, "missing": missing, "wrong": wrong}


def rates(model: Path, folder: Path, count: int, length: int, more: dict[str, Any]) -> dict[str, Any]:
    """Tokens a second of each round."""
    from vllm import LLM

    layers = more.pop("layers")
    chance = random.Random(1)
    given = [[chance.randrange(2, 1000) for _ in range(length)] for _ in range(count)]
    common = {
        "model": str(model),
        "load_format": "dummy",
        "max_model_len": length + 1,
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "skip_tokenizer_init": True,
        **more,
    }
    found: dict[str, Any] = {"written": []}
    engine = LLM(**common, **arguments(layers, folder))
    for place in range(ROUNDS + 1):  # kernels are made in the first
        began = time.perf_counter()
        files = paths(engine, given)
        wait(files)
        if place:
            found["written"].append(count * length / (time.perf_counter() - began))
        found["bytes"] = sum(path.stat().st_size for path in files)
        for path in files:
            path.unlink()
    return found


class _Done:
    """A stream or an event of a machine on which all is done at once."""

    def __init__(self, **_options: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        pass

    def wait_event(self, _event: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True


def _without_gpu() -> None:
    """The connector copies on a stream of its own to page-locked memory, which there is on GPUs only."""
    empty_like = torch.empty_like

    def pageable(*given: Any, **options: Any) -> Any:
        options.pop("pin_memory", None)
        return empty_like(*given, **options)

    torch.cuda.Stream = torch.cuda.Event = _Done
    torch.cuda.stream = contextlib.nullcontext
    torch.empty_like = pageable


if __name__ == "__main__":
    os.environ.setdefault("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1")
    if not torch.cuda.is_available():
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # what stands in is in this process only
        _without_gpu()
    what, *rest = sys.argv[1:]
    if what == "states":
        try:
            answer = states(rest[0], json.loads(rest[1]))
        except Exception as error:  # noqa: BLE001 (what it raises is the answer)
            answer = {"raised": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"}
    else:
        model, folder, count, length, more = rest
        answer = rates(Path(model), Path(folder), int(count), int(length), json.loads(more))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
