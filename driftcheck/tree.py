"""What every part that reads sources asks of the place they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Protocol


class SourceTree(Protocol):
    """Python files under their import paths, wherever they are kept.

    Paths are POSIX, relative to the folder that would stand on `sys.path`: `vllm/config/__init__.py`. Metadata such as
    `vllm-0.16.0.dist-info/METADATA` stands beside them where there is any.
    """

    @property
    def name(self) -> str:
        """The distribution's name (`vllm`), or the folder's where there is no distribution."""

    @property
    def version(self) -> str | None:
        """The release, None where nothing says it."""

    @property
    def origin(self) -> str:
        """Where the files come from, in words and without an absolute path: "release on the index"."""

    @property
    def paths(self) -> Collection[str]:
        """Every path in the tree, extension modules included (they can be imported, though not read)."""

    def read(self, path: str) -> bytes:
        """The bytes of one file; raises KeyError where there is none, DriftcheckError where it can't be read."""

    def digest(self, path: str) -> str:
        """A hash of the file's bytes in hexadecimal; raises as `read` does."""


class MemoryTree:
    """A tree held in memory, for tests and for edited sources."""

    def __init__(self, files: Mapping[str, str | bytes], name: str, version: str | None = None, origin: str = "memory"):
        self.name = name
        self.version = version
        self.origin = origin
        self._files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}

    @property
    def paths(self) -> Collection[str]:
        return self._files.keys()

    def read(self, path: str) -> bytes:
        return self._files[path]

    def digest(self, path: str) -> str:
        return hashlib.sha256(self._files[path]).hexdigest()
