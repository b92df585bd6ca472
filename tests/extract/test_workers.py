"""Processes that end: which one is named, and what becomes of those that wait for it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess

import pytest

from driftcheck.extract.extraction import LostWorkerError
from driftcheck.extract.workers import Workers

_CONTEXT = multiprocessing.get_context("spawn")
_LONG = 60.0


@contextmanager
def started(*processes: SpawnProcess) -> Iterator[None]:
    for each in processes:
        each.start()
    try:
        yield
    finally:
        for each in processes:
            each.kill()
            each.join()


def waiting(rank: int) -> SpawnProcess:
    return _CONTEXT.Process(target=time.sleep, args=(_LONG,), name=f"VllmWorker-{rank}")


def kill(process: SpawnProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)


def test_the_first_that_ends_is_named_and_the_others_are_ended() -> None:
    first, second = waiting(0), waiting(1)
    with started(first, second):
        workers = Workers([first, second])
        kill(second)
        second.join()
        with pytest.raises(LostWorkerError) as raised, workers.guarded():
            raise RuntimeError("Connection reset by peer")
        first.join()
        assert first.exitcode == -signal.SIGKILL
    assert str(raised.value) == (
        "the engine is gone: VllmWorker-1 was ended by SIGKILL, as the kernel does where memory runs out;"
        " errors.jsonl has the traceback, and the same command goes on where this one was"
    )


def test_an_exit_code_is_told() -> None:
    ending = _CONTEXT.Process(target=sys.exit, args=(3,), name="VllmWorker-0")
    with started(ending):
        workers = Workers([ending])
        ending.join()
        with pytest.raises(LostWorkerError, match="VllmWorker-0 has ended with exit code 3"), workers.guarded():
            raise RuntimeError("no one answers")


def test_what_waits_for_a_process_that_is_gone_is_interrupted() -> None:
    process = waiting(0)
    with started(process):
        workers = Workers([process], patience=0.1)
        threading.Timer(0.2, kill, [process]).start()
        with pytest.raises(LostWorkerError, match="VllmWorker-0 was ended by SIGKILL"), workers.guarded():
            threading.Event().wait(_LONG)


def test_other_failures_stay_what_they_are() -> None:
    process = waiting(0)
    with started(process):
        for workers in (Workers([process]), Workers([])):
            with pytest.raises(ValueError, match="a prompt is at fault"), workers.guarded():
                raise ValueError("a prompt is at fault")
            with pytest.raises(KeyboardInterrupt), workers.guarded():
                raise KeyboardInterrupt
        assert process.is_alive()
