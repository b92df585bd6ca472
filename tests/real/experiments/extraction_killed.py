# mypy: disable-error-code="import-not-found"
"""Kills a process of a run over several workers in the midst of it, and has the same command go on.

Run with the sizes of the tensor and the pipeline parallelism and the rank of the worker to kill, beside an installed
driftcheck.
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

from extraction import made, prompts
from processes import below, title

from driftcheck.cli import main

# What has not ended so many seconds after a worker is gone hangs.
_PATIENCE = 120
_SAMPLES = 30
_OPTIONS = ("--layers", "0,1,2,3", "--dtype", "float32", "--no-smoke", "--max-num-batched-tokens", "128")


def command(folder: Path, output: Path, tensors: str, stages: str) -> list[str]:
    """An extraction in two batches, whose samples are written as they come.

    It is this file that runs it, since what vLLM lacks on CPUs is mended in workers that import it.
    """
    workers = ("--tensor-parallel-size", tensors, "--pipeline-parallel-size", stages)
    program = (sys.executable, __file__, "extract", str(folder / "model"), str(folder / "data.jsonl"))
    return [*program, "--output", str(output), *_OPTIONS, *workers, "--engine", "max_num_seqs=16"]


def killed(arguments: list[str], output: Path, rank: int) -> dict[str, Any]:
    """How a run ends one of whose workers is killed when some samples are there."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and lines(output / "samples.jsonl") < _SAMPLES:
            time.sleep(0.01)
        descendants = below(process.pid)
        workers = [each for each in descendants if "Worker" in title(each)]
        os.kill(workers[rank], signal.SIGKILL)
        began = time.monotonic()
        try:
            _, errors = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            errors += "\nit hangs"
        seconds = time.monotonic() - began
    sys.stderr.write(errors)
    return {
        "code": process.returncode,
        "said": [line for line in errors.splitlines() if line.startswith(("driftcheck: ", "it hangs"))],
        "seconds": seconds,
        "there": lines(output / "samples.jsonl"),
        "left": [title(each) for each in descendants if title(each)],
        "noted": [json.loads(line) for line in (output / "errors.jsonl").read_text(encoding="utf-8").splitlines()],
    }


def lines(journal: Path) -> int:
    """How many samples a run has noted so far."""
    return journal.read_bytes().count(b"\n") if journal.is_file() else 0


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a finished run but its lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


def tried(tensors: str, stages: str, rank: str) -> dict[str, Any]:
    """How the killed run ended, and whether the one after it has left what an undisturbed one leaves."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made("llama", folder / "model")
        rows = [{"input_ids": tokens} for tokens in prompts()]
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        disturbed, undisturbed = folder / "disturbed", folder / "undisturbed"
        arguments = command(folder, disturbed, tensors, stages)
        found = killed(arguments, disturbed, int(rank))
        again = subprocess.run(arguments, capture_output=True, text=True, check=False)
        whole = subprocess.run(command(folder, undisturbed, tensors, stages), capture_output=True, check=False)
        found["codes"] = [again.returncode, whole.returncode]
        found["result"] = next(line for line in again.stdout.splitlines() if line.startswith("result"))
        found["is_the_same"] = contents(disturbed) == contents(undisturbed)
        return found


if __name__ == "__main__":
    if sys.argv[1] == "extract":
        sys.exit(main(sys.argv[1:]))
    sys.stdout.write("\n" + json.dumps(tried(*sys.argv[1:])) + "\n")
