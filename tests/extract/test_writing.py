"""The memory that samples wait in, and the threads that write them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftcheck.extract.layouts import LAYOUTS, Sample
from driftcheck.extract.writing import Extent, Memory, Writer

from . import stand_in

PAGE = 4096


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=60), st.randoms(use_true_random=False))
def test_pieces_never_overlap_and_all_come_back(steps: list[tuple[int, bool]], chance: object) -> None:
    memory = Memory(memoryview(bytearray(20 * PAGE)))
    taken: list[Extent] = []
    for pages, gives in steps:
        if gives and taken:
            memory.give(taken.pop(chance.randrange(len(taken))))  # type: ignore[attr-defined]
        elif (extent := memory.take(pages * PAGE - 5)) is not None:
            assert extent.size == pages * PAGE
            assert 0 <= extent.begin <= extent.begin + extent.size <= 20 * PAGE
            for other in taken:
                assert extent.begin + extent.size <= other.begin or other.begin + other.size <= extent.begin
            taken.append(extent)
    for extent in taken:
        memory.give(extent)
    assert memory.take(20 * PAGE) == Extent(0, 20 * PAGE)


def test_a_writer_waits_for_memory_and_never_takes_more(tmp_path: Path) -> None:
    engine = stand_in.StandIn(tmp_path, "safetensors", pause=0.001, room=3 * PAGE)
    (tmp_path / "hidden_states").mkdir()
    prompts = stand_in.samples(80)
    engine.capture(prompts, ())
    outcome = engine.collect(flush=True)
    engine.writer.close()
    assert sorted(record.sample for record in outcome.written) == list(range(80))
    assert outcome.failed == ()
    assert outcome.most_memory <= 3 * PAGE
    for sample in prompts:
        content = (tmp_path / f"hidden_states/hs_{sample.number}.safetensors").read_bytes()
        assert content.endswith(stand_in.states_of(sample))


def test_memory_that_never_suffices_is_told(tmp_path: Path) -> None:
    writer = Writer(
        tmp_path,
        LAYOUTS["speculators"],
        stand_in.SHAPE,
        memoryview(bytearray(PAGE)),
        journal="samples.jsonl",
        threads=1,
    )
    with pytest.raises(MemoryError, match="sample 3 needs 9600 bytes of the 4096"):
        writer.room(Sample(3, [0] * 100))
    writer.close()


def test_room_that_is_not_there_now_is_not_waited_for(tmp_path: Path) -> None:
    layout = LAYOUTS["speculators"]
    memory = memoryview(bytearray(PAGE))
    writer = Writer(tmp_path, layout, stand_in.SHAPE, memory, journal="samples.jsonl", threads=1)
    extent = writer.room_now(Sample(0, [1]))
    assert extent == Extent(0, PAGE)
    assert writer.room_now(Sample(1, [1])) is None
    writer.release(extent)
    assert writer.room_now(Sample(1, [1])) == Extent(0, PAGE)
    writer.close()


def test_a_sample_is_written_when_its_states_are_there(tmp_path: Path) -> None:
    writer = Writer(
        tmp_path,
        LAYOUTS["speculators"],
        stand_in.SHAPE,
        memoryview(bytearray(PAGE)),
        journal="samples.jsonl",
        threads=1,
    )
    there = threading.Event()

    def ready() -> None:
        there.wait()

    sample = Sample(0, [1, 2, 3])
    writer.write(sample, writer.room(sample), ready)
    assert writer.collect() == ([], [])
    assert not (tmp_path / "data_0.pt").exists()
    there.set()
    writer.flush()
    ((record,), failures) = writer.collect()
    assert (record.sample, record.path, record.tokens, failures) == (0, "data_0.pt", 3, [])
    assert record.bytes == (tmp_path / "data_0.pt").stat().st_size
    assert (tmp_path / "samples.jsonl").read_text(encoding="utf-8") == record.line()
    writer.close()
