# mypy: disable-error-code="import-not-found"
"""What Ray makes of shards that fail, some of them for good."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from driftcheck.extract.clusters import run_shards


def work(folder: str, shard: int) -> int:
    """Shard 1 fails twice, once with an exception and once with its process; shard 2 fails for good."""
    tries = Path(folder, str(shard))
    tries.write_text(tries.read_text() + "." if tries.exists() else ".")
    if shard == 2 or (shard == 1 and tries.read_text() == "."):
        raise RuntimeError(f"shard {shard} can't go on")
    if shard == 1 and tries.read_text() == "..":
        os.kill(os.getpid(), signal.SIGKILL)
    return shard * 10


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        ended = dict(run_shards(functools.partial(work, scratch), 4, gpus=1))
        counts = {path.name: len(path.read_text()) for path in Path(scratch).iterdir()}
    sys.stdout.write("\n" + json.dumps({"ended": ended, "tries": counts}) + "\n")
