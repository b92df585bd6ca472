"""Batches, samples that fail, and folders that are not what they should be."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.extract.extraction import CaptureError, LostWorkerError, Outcome, extract, locked
from driftcheck.extract.layouts import Sample
from driftcheck.extract.meter import Meter
from driftcheck.extract.plan import batches
from driftcheck.extract.resume import Names, names_of

from . import stand_in

ROOT = Path(__file__).parents[2]


def errors(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "errors.jsonl").read_text(encoding="utf-8").splitlines()]


def test_one_sample_that_fails_costs_no_other(tmp_path: Path) -> None:
    engine = stand_in.StandIn(tmp_path, "speculators", poison=17)
    result = extract(stand_in.job(tmp_path, "speculators", stand_in.samples(40)), lambda: engine, Meter(1))
    assert (result.written, dict(result.failed)) == (39, {17: "tests.extract.stand_in.PoisonError"})
    (entry,) = errors(tmp_path)
    assert (entry["sample"], entry["stage"]) == (17, "engine")
    assert "raise PoisonError" in str(entry["traceback"])  # an exception without text is not lost
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["failed"] == [17]
    assert [entry["sample"] for entry in manifest["samples"]] == [*range(17), *range(18, 40)]
    assert not (tmp_path / "data_17.pt").exists()
    assert all(batch.count(number) <= 1 for batch in engine.batches for number in batch)


def test_a_sample_that_failed_is_tried_again_by_the_next_run(tmp_path: Path) -> None:
    stand_in.run(tmp_path, "speculators", 40, poison=17)
    again = stand_in.run(tmp_path, "speculators", 40)
    assert (again.written, again.there, dict(again.failed)) == (1, 39, {})
    assert not (tmp_path / "errors.jsonl").exists()


def test_the_first_failure_ends_a_run_that_is_to_stop(tmp_path: Path) -> None:
    whole = stand_in.job(tmp_path, "speculators", stand_in.samples(40), stops_on_error=True)
    with pytest.raises(DriftcheckError, match=r"^sample 17: tests\.extract\.stand_in\.PoisonError$"):
        extract(whole, lambda: stand_in.StandIn(tmp_path, "speculators", poison=17), Meter(1))


def test_failure_after_failure_ends_the_run(tmp_path: Path) -> None:
    class Broken(stand_in.StandIn):
        def capture(self, samples: object, done: object) -> None:
            self._missing = [(sample.number, 0) for sample in samples]  # type: ignore[attr-defined]
            raise RuntimeError("out of order")

    whole = stand_in.job(tmp_path, "speculators", stand_in.samples(60))
    with pytest.raises(DriftcheckError, match="20 samples failed one after another, the last with: RuntimeError: out"):
        extract(whole, lambda: Broken(tmp_path, "speculators"), Meter(1))
    assert len(errors(tmp_path)) == 20


def test_an_engine_that_is_gone_ends_the_run_and_leaves_its_traceback(tmp_path: Path) -> None:
    class Gone(stand_in.StandIn):
        def capture(self, samples: object, done: object) -> None:
            raise RuntimeError("the worker died")

        def collect(self, *, flush: bool = False) -> Outcome:
            raise RuntimeError("no one answers")

    whole = stand_in.job(tmp_path, "speculators", stand_in.samples(60))
    with pytest.raises(DriftcheckError, match="the engine is gone: RuntimeError: the worker died"):
        extract(whole, lambda: Gone(tmp_path, "speculators"), Meter(1))
    assert [entry["error"] for entry in errors(tmp_path)] == ["RuntimeError: the worker died"]
    assert stand_in.run(tmp_path, "speculators", 60).written == 60


def test_what_no_prompt_would_mend_ends_the_run(tmp_path: Path) -> None:
    class Blind(stand_in.StandIn):
        def collect(self, *, flush: bool = False) -> Outcome:
            raise CaptureError("Traceback\nRuntimeError: 3 of 4 decoder layers ran in a step\n")

    whole = stand_in.job(tmp_path, "speculators", stand_in.samples(60))
    with pytest.raises(CaptureError, match="3 of 4 decoder layers ran"):
        extract(whole, lambda: Blind(tmp_path, "speculators"), Meter(1))
    assert [entry["stage"] for entry in errors(tmp_path)] == ["capture"]


def test_the_errors_of_a_shard_are_where_it_says(tmp_path: Path) -> None:
    class Gone(stand_in.StandIn):
        def capture(self, samples: object, done: object) -> None:
            raise LostWorkerError("Traceback\nVllmWorker-1 was ended by SIGKILL\n")

    whole = replace(stand_in.job(tmp_path, "speculators", stand_in.samples(9)), names=names_of((1, 2)))
    message = "the engine is gone: VllmWorker-1 was ended by SIGKILL; errors-1-of-2.jsonl has the traceback, and the"
    with pytest.raises(LostWorkerError, match=message):
        extract(whole, lambda: Gone(tmp_path, "speculators"), Meter(1))
    assert (tmp_path / "errors-1-of-2.jsonl").is_file()


def test_rows_that_are_no_prompts_are_written_down(tmp_path: Path) -> None:
    prompts = [sample for sample in stand_in.samples(40) if sample.number != 3]
    whole = stand_in.job(tmp_path, "safetensors", prompts)
    whole = type(whole)(**{**{name: getattr(whole, name) for name in whole.__slots__}, "bad": {3: "has no tokens"}})
    result = extract(whole, lambda: stand_in.StandIn(tmp_path, "safetensors"), Meter(1))
    assert (result.written, dict(result.failed)) == (39, {3: "has no tokens"})
    assert [(entry["sample"], entry["stage"], entry["error"]) for entry in errors(tmp_path)] == [
        (3, "data", "has no tokens")
    ]


def test_another_extraction_is_not_overwritten(tmp_path: Path) -> None:
    stand_in.run(tmp_path, "speculators", 40)
    with pytest.raises(DriftcheckError, match=r"holds another extraction: data was .* name another folder"):
        stand_in.run(tmp_path, "speculators", 41)


def test_two_processes_do_not_write_to_one_folder(tmp_path: Path) -> None:
    with locked(tmp_path, Names()), pytest.raises(DriftcheckError, match="another driftcheck extract is writing to"):
        locked(tmp_path, Names())


def test_a_disk_that_takes_no_more_ends_the_run(tmp_path: Path) -> None:
    """The kernel refuses what goes beyond a limit, as it refuses what goes beyond the end of a disk."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    command = [sys.executable, "-m", "tests.extract.stand_in", str(tmp_path), "speculators", "60"]
    finished = subprocess.run(command, cwd=ROOT, preexec_fn=limited, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    last = finished.stderr.strip().splitlines()[-1]
    assert f"{tmp_path} can't be written: OSError: [Errno 27] File too large" in last
    assert "the same command goes on with the others" in last
    assert stand_in.run(tmp_path, "speculators", 60).failed == {}
    assert not list(tmp_path.glob(".*partial"))


def test_batches_keep_to_the_order_and_to_the_limit() -> None:
    prompts = [Sample(number, [0] * tokens) for number, tokens in enumerate((60, 40, 1, 200, 50, 50, 1))]
    assert [[len(sample.tokens) for sample in batch] for batch in batches(prompts, 100)] == [
        [60, 40],
        [1],
        [200],
        [50, 50],
        [1],
    ]
