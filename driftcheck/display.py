"""Shows on the terminal how far long steps are; one that is over in a second is never seen."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftcheck.progress import UNWATCHED, Progress, Task, Unit
from driftcheck.report.harmless import harmless

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_TICK = 0.1


@contextmanager
def progress_display(patience: float = 1.0) -> Iterator[Progress]:
    """Progress on stderr where that is a terminal, gone when the block is left; elsewhere progress nobody watches.

    A step shows once it has taken `patience` seconds.
    """
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield UNWATCHED
        return
    display = _Display(patience)
    try:
        yield display
    finally:
        display.close()


@dataclass(slots=True, eq=False)
class _Step:
    description: str
    total: int | None
    unit: Unit
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def advance(self, amount: int = 1) -> None:
        with self._lock:
            self.done += amount

    @property
    def amount(self) -> str:
        """What is done, and of how much: `12/45`, `1.5/240.0 MB`."""
        scale, form, unit = (1e6, ".1f", " MB") if self.unit == "bytes" else (1, ".0f", "")
        whole = "" if self.total is None else f"/{self.total / scale:{form}}"
        return f"{self.done / scale:{form}}{whole}{unit}" if self.done or self.total else ""


class _Display:
    """Holds the steps under way; a thread of its own draws them with rich, which nobody else imports."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._steps: list[_Step] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def task(self, description: str, total: int | None = None, *, unit: Unit = "items") -> AbstractContextManager[Task]:
        return self._under_way(_Step(harmless(description), total, unit))

    @contextmanager
    def _under_way(self, step: _Step) -> Iterator[Task]:
        with self._lock:
            self._steps.append(step)
            if self._thread is None:
                self._thread = threading.Thread(target=self._draw, daemon=True)
                self._thread.start()
        try:
            yield step
        finally:
            with self._lock:
                self._steps.remove(step)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _draw(self) -> None:
        bars: Bars | None = None
        drawn: dict[_Step, TaskID] = {}
        with suppress(OSError, ValueError):  # the terminal went away: nobody watches any more
            while not self._closed.wait(_TICK):
                now = time.monotonic()
                with self._lock:
                    steps = [step for step in self._steps if now - step.started >= self._patience]
                if not steps and bars is not None:
                    bars.stop()
                    bars, drawn = None, {}
                elif steps:
                    bars = bars or _bars()
                    _refresh(bars, drawn, steps)
            if bars is not None:
                bars.stop()


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeElapsedColumn(),
    )
    bars = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False, redirect_stdout=False)
    bars.start()
    return bars


def _refresh(bars: Bars, drawn: dict[_Step, TaskID], steps: list[_Step]) -> None:
    for step in [step for step in drawn if step not in steps]:
        bars.remove_task(drawn.pop(step))
    for step in steps:
        if step not in drawn:
            drawn[step] = bars.add_task(step.description, total=step.total, amount=step.amount)
        bars.update(drawn[step], completed=step.done, amount=step.amount)
    bars.refresh()
