"""Joins what origins tell of bytes fetched to the display's tasks."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from driftcheck.progress import Progress, Task


class Fetching:
    """A callback for origins: one task for each thing fetched, started when the first bytes arrive."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._lock = threading.Lock()
        self._tasks: dict[str, tuple[Task, int, ExitStack]] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        with self._lock:
            known = self._tasks.get(what)
            if known is None:
                stack = ExitStack()
                task = stack.enter_context(self.progress.task(f"Fetching {what}", total, unit="bytes"))
                known = (task, 0, stack)
            task, before, stack = known
            if done > before:
                task.advance(done - before)
            self._tasks[what] = (task, max(done, before), stack)
            if total is not None and done >= total:
                stack.close()
                del self._tasks[what]
