"""The processes that an engine has started: which of them ended first, and an end for a run that waits for one."""

from __future__ import annotations

import _thread
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection
from multiprocessing.process import BaseProcess

from driftcheck.extract.extraction import LostWorkerError

# What another process says of a death can come before the death itself is to be seen, in seconds.
_SETTLING = 1.0
_MOMENT = 0.01
# How many seconds vLLM has to notice by itself that a process is gone.
_PATIENCE = 60.0


class Workers:
    """Watches processes from a thread, since later on those that vLLM has ended look like the one that it ended for."""

    def __init__(self, processes: Sequence[BaseProcess], *, patience: float = _PATIENCE) -> None:
        self._processes = tuple(processes)
        self._patience = patience
        self._lost = ""
        self._is_lost = threading.Event()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._is_interrupted = False
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._processes:
            threading.Thread(target=self._watch, name="driftcheck-workers", daemon=True).start()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Makes a LostWorkerError of whatever goes wrong since a process is gone, and ends the others.

        They would wait for it for ever. Where vLLM itself does not notice, the main thread is interrupted.
        """
        self._is_idle.clear()
        try:
            if self._is_lost.is_set():
                raise RuntimeError("a process was gone before it was asked for anything")
            yield
        except Exception as error:
            self._raise_lost(error)
            raise
        except KeyboardInterrupt as error:
            if self._is_interrupted:
                self._raise_lost(error)
            raise
        finally:
            self._is_idle.set()

    def _raise_lost(self, error: BaseException) -> None:
        if self._processes and self._is_lost.wait(_SETTLING):
            for each in self._processes:
                with suppress(ValueError):  # vLLM has closed it already
                    each.kill()
            raise LostWorkerError("".join(traceback.format_exception(error)) + self._lost) from error

    def _watch(self) -> None:
        sentinels = {each.sentinel: each for each in self._processes}
        ended = connection.wait(list(sentinels))
        self._lost = ", ".join(_told(each) for sentinel, each in sentinels.items() if sentinel in ended)
        self._is_lost.set()
        if not self._is_idle.wait(self._patience) and self._is_main:
            self._is_interrupted = True
            _thread.interrupt_main()


def _exit_code(process: BaseProcess) -> int | None:
    """How a process that is gone has ended, None where that does not come to be known.

    vLLM waits for it as well. Only one of two that wait is told by the system, and the other learns it a moment later.
    """
    end = time.monotonic() + _SETTLING / 2
    code = process.exitcode
    while code is None and time.monotonic() < end:
        time.sleep(_MOMENT)
        code = process.exitcode
    return code


def _told(process: BaseProcess) -> str:
    """Which process has ended, and how; the names that vLLM gives end with the rank."""
    code = _exit_code(process)
    if code is None:
        return f"{process.name} has ended"
    if code >= 0:
        return f"{process.name} has ended with exit code {code}"
    reason = ", as the kernel does where memory runs out" if -code == signal.SIGKILL else ""
    return f"{process.name} was ended by {signal.Signals(-code).name}{reason}"
