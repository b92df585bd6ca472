"""What a long step calls to say how far it is; who watches, and how it is shown, is no concern of the step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Literal, Protocol

Unit = Literal["items", "bytes"]


class Task(Protocol):
    """One step under way."""

    def advance(self, amount: int = 1) -> None:
        """Says that `amount` more units are done; may be called from any thread."""


class Progress(Protocol):
    """Hands out tasks: `with progress.task("Reading vllm 0.16.0", size, unit="bytes") as task: task.advance(n)`."""

    def task(self, description: str, total: int | None = None, *, unit: Unit = "items") -> AbstractContextManager[Task]:
        """Starts a step, which is over when the block is left; `total` is None where its length is not known."""


class _Unwatched:
    """Progress and task at once, for when nobody watches."""

    def task(self, description: str, total: int | None = None, *, unit: Unit = "items") -> AbstractContextManager[Task]:
        return nullcontext(self)

    def advance(self, amount: int = 1) -> None:
        pass


UNWATCHED: Progress = _Unwatched()


@contextmanager
def byte_progress(progress: Progress) -> Iterator[Callable[[str, int, int | None], None]]:
    """A function to call with what is read, the bytes so far and the bytes in all, each `what` being shown as a task.

    It may be called from any thread; a task ends with its last byte, and all of them where the block is left.
    """
    lock = threading.Lock()
    running: dict[str, tuple[ExitStack, Task, int]] = {}

    def tell(what: str, done: int, total: int | None) -> None:
        with lock:
            if what not in running:
                stack = ExitStack()
                running[what] = stack, stack.enter_context(progress.task(what, total, unit="bytes")), 0
            stack, task, before = running[what]
            task.advance(done - before)
            running[what] = stack, task, done
            if done == total:
                del running[what]
                stack.close()

    try:
        yield tell
    finally:
        with lock:
            for stack, _, _ in running.values():
                stack.close()
