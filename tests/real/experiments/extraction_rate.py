# mypy: disable-error-code="import-not-found"
"""How fast prompts are read bare, and how fast with their states written, by one engine after one load.

Run with a model's folder (a config.json will do), the folder to write to, the layout, how many prompts, how long, and
then, as JSON, the engine's arguments, with `layers` and `writers` among them where they matter. Bare, the hooks are
there and take nothing. Bare and captured rounds take turns.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vllm import SamplingParams

from driftcheck.extract.architecture import architecture_of
from driftcheck.extract.engine import CaptureSettings, Engine, EngineSettings
from driftcheck.extract.layouts import LAYOUTS, Sample
from driftcheck.extract.plan import DEFAULT_HOST_MEMORY, DEFAULT_STEP, batches, writers

ROUNDS = 3
_STEPS_A_BATCH = 32


def rates(model: Path, folder: Path, layout: str, count: int, length: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Tokens a second of each round, and what was written."""
    architecture = architecture_of(model)
    (folder / LAYOUTS[layout].path(0)).parent.mkdir(parents=True, exist_ok=True)
    layers = architecture.chosen_layers(arguments.pop("layers", "auto"))
    threads = arguments.pop("writers", writers())
    step = arguments.get("max_num_batched_tokens", DEFAULT_STEP)
    settings = EngineSettings(
        str(model), max_model_len=length, max_num_batched_tokens=step, extra={"load_format": "dummy", **arguments}
    )
    host_memory = max(DEFAULT_HOST_MEMORY, 2 * length * len(layers) * architecture.hidden_size * 4)
    capture = CaptureSettings(folder, layers, layout, "samples.jsonl", host_memory, threads)
    engine = Engine(settings, capture)
    chance = random.Random(1)
    samples = [
        Sample(number, [chance.randrange(architecture.vocabulary) for _ in range(length)]) for number in range(count)
    ]
    parts = list(batches(samples, _STEPS_A_BATCH * step))
    parameters = SamplingParams(max_tokens=1, temperature=0.0, detokenize=False)

    def bare() -> None:
        for part in parts:
            prompts = [{"prompt_token_ids": list(sample.tokens)} for sample in part]
            engine._llm.generate(prompts, parameters, use_tqdm=False)

    def captured() -> None:
        for part in parts:
            engine.capture(part, ())
            outcome = engine.collect()
            assert not outcome.missing and not outcome.failed, outcome
        outcome = engine.collect(flush=True)
        assert not outcome.failed, outcome
        found["most_memory"] = outcome.most_memory

    found: dict[str, Any] = {"bytes": count * length * engine.shape.token, "bare": [], "captured": []}
    bare()  # kernels are made, buffers filled
    for _ in range(ROUNDS):
        for name, work in (("bare", bare), ("captured", captured)):
            found[name].append(count * length / seconds(work))
    found["peak_memory_of_the_process"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def seconds(work: Callable[[], None]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    model, folder, layout, count, length, *more = sys.argv[1:]
    given = json.loads(more[0]) if more else {}
    answer = rates(Path(model), Path(folder), layout, int(count), int(length), given)
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
