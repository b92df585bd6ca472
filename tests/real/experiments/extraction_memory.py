# mypy: disable-error-code="import-not-found"
"""How much memory a run takes as it goes on: prompts are read again and again, and their states written.

Run with the number of minutes beside an installed driftcheck. What grows after the first minute leaks.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from extraction import made, prompts

from driftcheck.extract.engine import CaptureSettings, Engine, EngineSettings
from driftcheck.extract.layouts import LAYOUTS, Sample

_INTERVAL = 30


def resident() -> int:
    """The bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def growth(minutes: float) -> dict[str, Any]:
    """The memory at intervals, and how many samples were written."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made("llama", folder / "model")
        layout = "speculators"
        output = folder / "states"
        (output / LAYOUTS[layout].path(0)).parent.mkdir(parents=True)
        engine = Engine(
            EngineSettings(str(folder / "model"), max_model_len=512, max_num_batched_tokens=1024, dtype="float32"),
            CaptureSettings(output, (0, 3), layout, "samples.jsonl", 1 << 24, 2),
        )
        samples = [Sample(number, tokens) for number, tokens in enumerate(prompts())]
        began = shown = time.monotonic()
        found: dict[str, Any] = {"samples": 0, "resident": [resident()]}
        while time.monotonic() - began < minutes * 60:
            engine.capture(samples, ())
            outcome = engine.collect(flush=True)
            assert not outcome.failed and not outcome.missing
            found["samples"] += len(outcome.written)
            if time.monotonic() - shown >= _INTERVAL:
                shown = time.monotonic()
                found["resident"].append(resident())
                sys.stderr.write(f"{found['samples']} samples, {found['resident'][-1]} bytes\n")
    return found


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(growth(float(sys.argv[1]))) + "\n")
