"""Outlines kept in the user's cache folder by what their sources hold, once for all releases and commits.

A module that stays the same from one release to the next is read in full once.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

# Another number for another way to make or to keep outlines.
_FORMAT = 1
_LARGEST = 64_000_000
_LARGEST_OUTLINE = 16_000_000
# So long, in seconds, another process is waited for that is writing.
_PATIENCE = 5.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS outline (source BLOB UNIQUE NOT NULL, packed BLOB NOT NULL)"


class OutlineStore:
    """The outlines of one cache folder; a file that is damaged, or can't be used, counts as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: tuple[int, sqlite3.Connection] | None = None

    def find(self, source: bytes) -> str | None:
        """The outline of a source, named by its `source_key`."""
        import sqlite3

        try:
            row = self._reader().execute("SELECT packed FROM outline WHERE source = ?", (source,)).fetchone()
            if row is None:
                return None
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(row[0], _LARGEST_OUTLINE)
            # Without its end an outline has not been checked.
            return text.decode("utf-8", "surrogatepass") if unpacker.eof else None
        except (sqlite3.Error, zlib.error, TypeError, ValueError):
            return None

    def add(self, outlines: Mapping[bytes, str]) -> None:
        """Keeps outlines, each by its source's key; where that can't be done, the next time takes as long again."""
        import sqlite3

        rows = [(key, zlib.compress(text.encode("utf-8", "surrogatepass"), 6)) for key, text in outlines.items()]
        try:
            self._write(rows)
        except sqlite3.OperationalError:
            # Somebody else is writing, or nobody can.
            return
        except sqlite3.DatabaseError:
            # In a folder that can't be written it stays.
            with suppress(OSError, sqlite3.Error):
                self._path.unlink(missing_ok=True)
                self._write(rows)

    def _write(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._connected() as connection, connection:
            connection.execute(_SCHEMA)
            connection.executemany("INSERT OR REPLACE INTO outline VALUES (?, ?)", rows)
            (size,) = connection.execute("SELECT total(length(packed)) FROM outline").fetchone()
            if size > _LARGEST:
                half = "SELECT rowid FROM outline ORDER BY rowid LIMIT (SELECT count(*) / 2 FROM outline)"
                connection.execute(f"DELETE FROM outline WHERE rowid IN ({half})")  # noqa: S608 - a constant

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        import sqlite3

        self._check_file()
        with closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as connection:
            # What a power cut may damage is only made again.
            connection.execute("PRAGMA synchronous = OFF")
            yield connection

    def _check_file(self) -> None:
        """Raises what SQLite does for a file that can't be opened, where it would wait forever: a pipe has no end."""
        import sqlite3

        if self._path.exists() and not self._path.is_file():
            raise sqlite3.OperationalError(f"{self._path} is no file")

    def _reader(self) -> sqlite3.Connection:
        """A connection of this very process: one that was split off may not use its parent's."""
        import sqlite3

        if self._open is None or self._open[0] != os.getpid():
            self._check_file()
            found = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", timeout=_PATIENCE, uri=True)
            self._open = os.getpid(), found
        return self._open[1]


def source_key(text: str) -> bytes:
    """What a source is known by; other Pythons parse it to other trees."""
    digest = hashlib.sha256(f"{_FORMAT} {sys.version_info[:2]}\0".encode())
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.digest()
