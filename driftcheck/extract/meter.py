"""Says how far an extraction is: a line that is drawn anew on a terminal, and a plain one now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from driftcheck.extract.plan import duration, size

_OFTEN, _SELDOM = 1.0, 60.0


class Meter:
    """Counts what is read and written, and prints how fast that is and how long the rest will take."""

    def __init__(self, tokens: int, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._total = tokens
        self._tokens = self._bytes = self._samples = 0
        self._began = self._last = time.monotonic()

    def advance(self, samples: int, tokens: int, bytes_written: int) -> None:
        """So much more is written."""
        self._samples += samples
        self._tokens += tokens
        self._bytes += bytes_written
        now = time.monotonic()
        if now - self._last >= (_OFTEN if self._is_terminal else _SELDOM):
            self._last = now
            self._print(self.line(now - self._began))

    def line(self, seconds: float) -> str:
        """What is printed."""
        seconds = max(seconds, 1e-9)
        rate = self._tokens / seconds
        rest = duration((self._total - self._tokens) / rate) if rate else "unknown"
        return (
            f"{self._samples:,} samples, {self._tokens:,} of {self._total:,} tokens, {rate:,.0f} tokens/s,"
            f" {size(self._bytes / seconds)}/s, {rest} left"
        )

    def close(self) -> None:
        """Leaves the terminal as it was."""
        if self._is_terminal and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _print(self, line: str) -> None:
        if self._stream is None:
            return
        self._stream.write(f"\r\x1b[K{line}" if self._is_terminal else f"{line}\n")
        self._stream.flush()
