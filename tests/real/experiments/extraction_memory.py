# mypy: disable-error-code="import-not-found"
"""How much memory a run takes as it goes on: prompts are read again and again, and their states written.

Run with the number of minutes beside an installed driftcheck, and perhaps the size of the tensor parallelism. What the
last third of the time has more than the first leaks; the first minute is left out, in which buffers are filled.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from extraction import made, prompts
from processes import resident

from driftcheck.extract.engine import CaptureSettings, Engine, EngineSettings
from driftcheck.extract.layouts import LAYOUTS, Sample

_INTERVAL = 10
_LEFT_OUT = 60


def growth(minutes: float, tensors: int) -> dict[str, Any]:
    """The memory at intervals, its means in the first and the last third, and how many samples were written."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made("llama", folder / "model")
        layout = "speculators"
        output = folder / "states"
        (output / LAYOUTS[layout].path(0)).parent.mkdir(parents=True)
        engine = Engine(
            EngineSettings(
                str(folder / "model"),
                max_model_len=512,
                tensor_parallel_size=tensors,
                max_num_batched_tokens=1024,
                dtype="float32",
            ),
            CaptureSettings(output, (0, 3), layout, "samples.jsonl", 1 << 24, 2),
        )
        samples = [Sample(number, tokens) for number, tokens in enumerate(prompts())]
        began = shown = time.monotonic()
        found: dict[str, Any] = {"samples": 0, "resident": []}
        while time.monotonic() - began < minutes * 60:
            engine.capture(samples, ())
            outcome = engine.collect(flush=True)
            assert not outcome.failed and not outcome.missing
            found["samples"] += len(outcome.written)
            if time.monotonic() - shown >= _INTERVAL and time.monotonic() - began >= _LEFT_OUT:
                shown = time.monotonic()
                found["resident"].append(resident(os.getpid()))
                sys.stderr.write(f"{found['samples']} samples, {found['resident'][-1]} bytes\n")
    third = len(found["resident"]) // 3
    found["first"], found["last"] = (
        sum(part) / third for part in (found["resident"][:third], found["resident"][-third:])
    )
    return found


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(growth(float(sys.argv[1]), int((sys.argv[2:] or ["1"])[0]))) + "\n")
