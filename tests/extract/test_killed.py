"""Runs that are killed go on where they were, and in the end nothing shows it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import stand_in

ROOT = Path(__file__).parents[2]
SAMPLES = 60
# Three kills each; by hand, more of them.
ROUNDS = int(os.environ.get("DRIFTCHECK_KILLED_ROUNDS", "2"))


def start(folder: Path, layout: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.extract.stand_in", str(folder), layout, str(SAMPLES), *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder: Path, layout: str, *more: str) -> None:
    with start(folder, layout, *more) as process:
        output, errors = process.communicate()
    assert (process.returncode, output, errors) == (0, "", "")


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the lock, which stays behind empty."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def lines(journal: Path) -> int:
    """How many samples a run has noted so far."""
    return journal.read_bytes().count(b"\n") if journal.is_file() else 0


@pytest.mark.parametrize("layout", ["speculators", "safetensors"])
def test_a_run_that_is_killed_ends_as_one_that_is_not(layout: str, tmp_path: Path) -> None:
    """Killed as soon as so many samples are there, while the next ones are being written."""
    finish(tmp_path / "undisturbed", layout)
    expected = contents(tmp_path / "undisturbed")
    assert len(json.loads(expected["manifest.json"])["samples"]) == SAMPLES
    chance = random.Random(layout)
    for attempt in range(ROUNDS):
        folder = tmp_path / str(attempt)
        for samples in sorted(chance.sample(range(1, SAMPLES - 10), 3)):
            with start(folder, layout) as process:
                while lines(folder / "samples.jsonl") < samples and process.poll() is None:
                    time.sleep(chance.uniform(0, 0.004))
                process.send_signal(signal.SIGKILL)
            assert process.returncode == -signal.SIGKILL
        finish(folder, layout)
        assert contents(folder) == expected


def test_what_is_there_is_not_read_again(tmp_path: Path) -> None:
    stand_in.run(tmp_path, "speculators", SAMPLES)
    again = stand_in.run(tmp_path, "speculators", SAMPLES)
    assert (again.written, again.there) == (0, SAMPLES)


def test_a_file_that_is_cut_or_gone_is_written_again(tmp_path: Path) -> None:
    stand_in.run(tmp_path, "speculators", SAMPLES)
    expected = contents(tmp_path)
    (tmp_path / "data_7.pt").write_bytes(b"cut")
    (tmp_path / "data_8.pt").unlink()
    again = stand_in.run(tmp_path, "speculators", SAMPLES)
    assert (again.written, again.there) == (2, SAMPLES - 2)
    assert contents(tmp_path) == expected


def test_a_torn_line_of_the_journal_counts_for_nothing(tmp_path: Path) -> None:
    stand_in.run(tmp_path, "speculators", SAMPLES)
    expected = contents(tmp_path)
    manifest = json.loads(expected["manifest.json"])
    lines = [json.dumps(entry) for entry in manifest["samples"][:5]]
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "samples.jsonl").write_text("\n".join(lines)[:-10], encoding="utf-8")
    again = stand_in.run(tmp_path, "speculators", SAMPLES)
    assert again.there == 4
    assert contents(tmp_path) == expected
