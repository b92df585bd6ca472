"""Counts of bytes become tasks that end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from driftcheck.progress import Task, Unit, byte_progress


class Recorded:
    """Progress that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def task(self, description: str, total: int | None = None, *, unit: Unit = "items") -> Iterator[Task]:
        self.told.append(f"{description} of {total} {unit}")
        told = self.told

        class Amounts:
            def advance(self, amount: int = 1) -> None:
                told.append(f"{description} {amount:+}")

        yield Amounts()
        self.told.append(f"{description} over")


def test_a_task_for_each_thing_that_is_read() -> None:
    progress = Recorded()
    with byte_progress(progress) as tell:
        tell("a", 10, 30)
        tell("b", 5, None)
        tell("a", 30, 30)
        tell("b", 7, None)
        tell("b", 1, None)
        assert progress.told == ["a of 30 bytes", "a +10", "b of None bytes", "b +5", "a +20", "a over", "b +2", "b -6"]
    assert progress.told[-1] == "b over"
