# mypy: disable-error-code="import-not-found"
"""Shards that Ray runs, one of which loses its process, against the same prompts undivided.

Run with the number of shards beside an installed driftcheck with Ray.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from extraction import distance, made, prompts, read
from processes import below, holds

_LAYOUT = "speculators"
_SAMPLES = 5
_OPTIONS = ("--layers", "0,1,2,3", "--dtype", "float32", "--no-smoke", "--max-num-batched-tokens", "128")


def extract(*arguments: object) -> list[str]:
    """The command."""
    return [sys.executable, "-m", "driftcheck", "extract", *map(str, arguments)]


def sharded(folder: Path, output: Path, shards: str) -> dict[str, Any]:
    """How a run of shards ends whose second one is killed when some of its samples are there."""
    arguments = extract(folder / "model", folder / "data.jsonl", "--output", output, "--ray", shards, *_OPTIONS)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        journal = output / f"samples-1-of-{shards}.jsonl"
        while process.poll() is None and lines(journal) < _SAMPLES:
            time.sleep(0.01)
        there = lines(journal)
        running = [each for each in below(process.pid) if holds(each, journal)]
        for each in running:
            os.kill(each, signal.SIGKILL)
        said, errors = process.communicate()
    sys.stderr.write(errors)
    ends = [line for line in said.splitlines() if line.startswith(("shard", "result"))]
    return {"code": process.returncode, "killed": len(running), "there": there, "said": sorted(ends)}


def lines(journal: Path) -> int:
    """How many samples a shard has noted so far."""
    return journal.read_bytes().count(b"\n") if journal.is_file() else 0


def compared(output: Path, undivided: Path, merged: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """How the samples of two manifests differ: what is said of them, and how far the states are apart."""
    said = ("sample", "tokens", "bytes")
    known = [[{name: entry[name] for name in said} for entry in each["samples"]] for each in (merged, whole)]
    furthest, same = 0.0, 0
    for ours, theirs in zip(merged["samples"], whole["samples"], strict=True):
        tokens, states, mask = read(output, _LAYOUT, ours["sample"])
        expected = read(undivided, _LAYOUT, theirs["sample"])
        assert (tokens, mask) == (expected[0], expected[2])
        same += ours["crc32"] == theirs["crc32"]
        for pair in zip(states, expected[1], strict=True):
            found = distance(*pair)
            assert found is not None
            furthest = max(furthest, found)
    return {"is_said": known[0] == known[1], "count": len(known[0]), "furthest": furthest, "same_bytes": same}


def tried(shards: str) -> dict[str, Any]:
    """How the shards ended, were merged by the command, and differ from an undivided run."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made("llama", folder / "model")
        rows = [{"input_ids": tokens} for tokens in prompts()]
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        output, undivided, joint = folder / "shards", folder / "undivided", folder / "joint"
        found = sharded(folder, output, shards)
        arguments = extract(folder / "model", folder / "data.jsonl", "--output", undivided, *_OPTIONS)
        whole = subprocess.run(arguments, capture_output=True, text=True, check=False)
        merged = subprocess.run(
            extract("merge", output, "--output", joint), capture_output=True, text=True, check=False
        )
        found["codes"] = [whole.returncode, merged.returncode]
        found["merged"] = merged.stdout.strip()
        manifests = [json.loads((each / "manifest.json").read_text()) for each in (joint, undivided, output)]
        places = [[entry["path"] for entry in each["samples"]] for each in (manifests[0], manifests[2])]
        found["places"] = places[0] == [f"../shards/{place}" for place in places[1]]
        found.update(compared(output, undivided, *manifests[:2]))
        return found


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(tried(sys.argv[1])) + "\n")
