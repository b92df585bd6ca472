"""What a long step calls to say how far it is; who watches, and how it is shown, is no concern of the step."""

from __future__ import annotations

from types import TracebackType
from typing import Literal, Protocol

Unit = Literal["items", "bytes"]


class Task(Protocol):
    """One step under way, a context manager: the step is over when the block is left, whatever it reached."""

    def advance(self, amount: int = 1) -> None:
        """Says that `amount` more units are done; may be called from any thread."""

    def __enter__(self) -> Task: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


class Progress(Protocol):
    """Hands out tasks: `with progress.task("Reading vllm 0.16.0", total=size, unit="bytes") as task: task.advance(n)`."""

    def task(self, description: str, total: int | None = None, *, unit: Unit = "items") -> Task:
        """Starts a step; `total` is None where its length is not known."""


class _Unwatched:
    """Progress and task at once, for when nobody watches."""

    def task(self, description: str, total: int | None = None, *, unit: Unit = "items") -> Task:
        return self

    def advance(self, amount: int = 1) -> None:
        pass

    def __enter__(self) -> Task:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        pass


UNWATCHED: Progress = _Unwatched()
