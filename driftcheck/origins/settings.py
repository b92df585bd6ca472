"""What the caller decides about how origins reach beyond the files at hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Progress = Callable[[str, int, "int | None"], None]
"""Told what is being fetched, the bytes so far, and the bytes in all (None where unknown); called from any thread."""


class Traffic:
    """What went over the network: requests, and bytes received without their headers; counted from any thread."""

    def __init__(self) -> None:
        # Appending to a list is one step for Python, adding to a number is not.
        self._requests: list[int] = []
        self._received: list[int] = []

    @property
    def requests(self) -> int:
        """The requests sent."""
        return sum(self._requests)

    @property
    def received(self) -> int:
        """The bytes received."""
        return sum(self._received)

    def count(self, *, requests: int = 0, received: int = 0) -> None:
        """Add to what was counted."""
        self._requests.append(requests)
        self._received.append(received)


CACHE_FOLDER_VARIABLE = "DRIFTCHECK_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class Settings:
    """How code is looked for.

    `offline` allows the cache and nothing else; `cache_folder` replaces the user's cache folder; `python` is the
    interpreter whose installed distributions count (None: the active environment's, else driftcheck's own);
    `timeout` is the longest wait in seconds for an answer of the index or the interpreter; `traffic` is counted up.
    """

    offline: bool = False
    cache_folder: Path | None = None
    python: str | None = None
    progress: Progress | None = None
    timeout: float | None = None
    traffic: Traffic = field(default_factory=Traffic, compare=False)

    @property
    def cache(self) -> Path:
        """The cache folder in force: the one given, else `DRIFTCHECK_CACHE_DIR`, else the user's cache folder."""
        if self.cache_folder is not None:
            return self.cache_folder
        given = os.environ.get(CACHE_FOLDER_VARIABLE)
        if given:
            return Path(given).expanduser()
        from platformdirs import user_cache_path

        return user_cache_path("driftcheck", appauthor=False)
