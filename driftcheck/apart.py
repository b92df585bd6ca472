"""Work in a process of its own, beside this one, for what would take long and ends in plain values."""

from __future__ import annotations

import functools
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from driftcheck.errors import DriftcheckError
from driftcheck.progress import Task

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")


def may_work_apart() -> bool:
    """True where a second process can be split off, and has a core to run on."""
    # macOS has libraries that do not survive being split off.
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return False
    return len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) > 1


def begun_apart(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begins the work in another process, and returns what waits for its result.

    The process starts as a copy of this one, so that nothing has to be handed over; only the result is, which has to be
    picklable. A DriftcheckError is raised again when the result is asked for; where the process ends without a result,
    for lack of memory say, the work is done here.
    """
    from multiprocessing import get_context

    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, sender), daemon=True)
    process.start()
    sender.close()

    def result() -> Result:
        try:
            answer = receiver.recv_bytes()
        except (EOFError, OSError):
            return work()
        finally:
            receiver.close()
            process.join()
        found: Result | DriftcheckError = pickle.loads(answer)  # noqa: S301 - written by a copy of this very process
        if isinstance(found, DriftcheckError):
            raise found
        return found

    return result


def shared_out(items: Sequence[Item], work: Callable[[Item], Result], task: Task | None = None) -> list[Result]:
    """What the work gives for each item, in their order; a second process does every other one where it may.

    Neighbours are often about as large, so that both have as much to do.
    """
    if len(items) < 2 or not may_work_apart():
        return _each(work, items, task)
    begun = begun_apart(functools.partial(_each, work, items[1::2]))
    own = _each(work, items[::2], task)
    others = begun()
    if task is not None:
        task.advance(len(others))
    return [(others if place % 2 else own)[place // 2] for place in range(len(items))]


def _each(work: Callable[[Item], Result], items: Sequence[Item], task: Task | None = None) -> list[Result]:
    results = []
    for item in items:
        results.append(work(item))
        if task is not None:
            task.advance()
    return results


def _work(work: Callable[[], object], sender: Connection) -> None:
    found: object
    try:
        found = work()
    except DriftcheckError as error:
        found = error
    except KeyboardInterrupt:
        return
    sender.send_bytes(pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL))
    sender.close()
