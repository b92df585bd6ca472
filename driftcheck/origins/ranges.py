"""A remote file read in pieces: what was fetched is kept, what is missing is fetched when it is read."""

from __future__ import annotations

import bisect
import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from driftcheck.errors import DriftcheckError
from driftcheck.origins.limits import KEPT_BYTES
from driftcheck.origins.transport import CONNECTIONS, Transport, shown

TAIL_BYTES = 1024 * 1024
"""How much of the end is read first: the directory of a large wheel and its metadata, which stands last."""

_GAP_BYTES = 192 * 1024
"""Gaps shorter than this are fetched along: a request costs more than they do."""

_PIECE_BYTES = 1024 * 1024


class RemoteFile(io.RawIOBase):
    """A seekable file on a server that answers ranges, as zipfile wants it."""

    def __init__(self, transport: Transport, url: str, size: int, tail: bytes):
        super().__init__()
        self._transport = transport
        self._url = url
        self._size = size
        self._position = 0
        self._starts = [size - len(tail)]
        self._pieces = [tail]
        self._kept = len(tail)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        start = self._position
        stop = self._size if size < 0 else min(self._size, start + size)
        if stop <= start:
            return b""
        data = self._held(start, stop)
        if data is None:
            self.fetch([(start, stop)], "")
            data = self._held(start, stop)
            if data is None:
                raise DriftcheckError(
                    f"{shown(self._url)} could not be read from byte {start:,} to {stop:,}; try again"
                )
        self._position = stop
        return data

    def fetch(self, spans: Iterable[tuple[int, int]], label: str) -> None:
        """Fetch what is missing of these stretches, several at a time, near ones together."""
        missing = [piece for span in spans for piece in self._missing(*span)]
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(missing):
            if merged and start - merged[-1][1] < _GAP_BYTES:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        pieces = [
            (start, min(start + _PIECE_BYTES, whole_stop))
            for whole_start, whole_stop in merged
            for start in range(whole_start, whole_stop, _PIECE_BYTES)
        ]
        total = sum(stop - start for start, stop in pieces)
        if self._kept + total > KEPT_BYTES:
            raise DriftcheckError(f"{shown(self._url)} would need more than {KEPT_BYTES:,} bytes; it is refused")
        self._kept += total
        done = 0

        def one(piece: tuple[int, int]) -> tuple[int, bytes]:
            return piece[0], self._transport.range(self._url, *piece)

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            try:
                for start, data in pool.map(one, pieces):
                    self._keep(start, data)
                    done += len(data)
                    if label:
                        self._transport.tell(label, done, total)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _keep(self, start: int, data: bytes) -> None:
        index = bisect.bisect(self._starts, start)
        self._starts.insert(index, start)
        self._pieces.insert(index, data)

    def _held(self, start: int, stop: int) -> bytes | None:
        """The bytes of a stretch that is held altogether, else None."""
        index = bisect.bisect(self._starts, start) - 1
        parts = []
        while start < stop:
            if index < 0 or index >= len(self._starts):
                return None
            offset = start - self._starts[index]
            piece = self._pieces[index]
            if offset < 0 or offset >= len(piece):
                return None
            part = piece[offset : offset + stop - start]
            parts.append(part)
            start += len(part)
            index += 1
        return b"".join(parts)

    def _missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The parts of a stretch that are not held."""
        missing = []
        index = max(0, bisect.bisect(self._starts, start) - 1)
        for begin, piece in zip(self._starts[index:], self._pieces[index:], strict=True):
            if begin >= stop:
                break
            if begin > start:
                missing.append((start, begin))
            start = max(start, begin + len(piece))
        if start < stop:
            missing.append((start, stop))
        return missing
