"""What a long step calls to say how far it is; who watches, and how it is shown, is no concern of the step."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
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
