"""What every part that reads sources asks of the place they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from datetime import date
from typing import Protocol


class SourceTree(Protocol):
    """Python files and the metadata beside them, wherever they are kept.

    Paths are POSIX and relative to the tree's own root: `vllm/config/__init__.py`. Where that root would not itself
    stand on `sys.path` (a `src/` layout, a wheel's `.data/purelib/`), `roots` names the folders that would.
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

    @property
    def roots(self) -> tuple[str, ...]:
        """The prefixes of paths that would stand on `sys.path`, in its order: "" or ending with a slash ("src/")."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """What the distribution requires, as `Requires-Dist` writes it, extras as markers; empty where unknown."""

    @property
    def uploaded(self) -> date | None:
        """The day the release was uploaded to the index, None where unknown."""

    def read(self, path: str) -> bytes:
        """The bytes of one file; raises KeyError where there is none, DriftcheckError where it can't be read."""

    def digest(self, path: str) -> str:
        """A hash of the file's bytes in hexadecimal; raises as `read` does."""


class MemoryTree:
    """A tree held in memory, for tests and for edited sources."""

    def __init__(
        self,
        files: Mapping[str, str | bytes],
        name: str,
        version: str | None = None,
        origin: str = "memory",
        *,
        roots: tuple[str, ...] = ("",),
        requirements: tuple[str, ...] = (),
        uploaded: date | None = None,
    ):
        self.name = name
        self.version = version
        self.origin = origin
        self.roots = roots
        self.requirements = requirements
        self.uploaded = uploaded
        self._files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}

    @property
    def paths(self) -> Collection[str]:
        return self._files.keys()

    def read(self, path: str) -> bytes:
        return self._files[path]

    def digest(self, path: str) -> str:
        return hashlib.sha256(self._files[path]).hexdigest()


def import_path(path: str, roots: tuple[str, ...]) -> str:
    """The path relative to the longest root that holds it: `pkg/x.py` for `src/pkg/x.py` with the root `src/`."""
    root = max((root for root in roots if path.startswith(root)), key=len, default="")
    return path[len(root) :]
