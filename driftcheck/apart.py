"""Work in a process of its own, beside this one, for what would take long and ends in plain values."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

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
