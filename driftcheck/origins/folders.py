"""A folder of sources, listed without reading it and without leaving it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from datetime import date
from functools import cached_property
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.origins.layout import import_roots
from driftcheck.origins.limits import EXTENSION_SUFFIXES, MEMBER_BYTES, MEMBERS, SOURCE_SUFFIXES
from driftcheck.origins.metadata import Metadata, parse_pyproject

_SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages", "__pypackages__"))
_BUILT = frozenset(("build", "dist"))


class FolderTree:
    """The Python files below a folder, or one file; links that leave the folder are not followed.

    A package folder stands for that package alone: its paths begin with the package's own name.
    """

    origin = "folder"

    def __init__(self, path: Path):
        if not path.exists():
            raise DriftcheckError(f"no such file or folder: {path}; check the path")
        real = Path(os.path.realpath(path))
        self.base, self._below = _base(real)
        self._project = real if real.is_dir() else real.parent
        self._default_name = real.stem if real.is_file() else real.name
        self.uploaded: date | None = None

    @property
    def name(self) -> str:
        """The project's name, or the folder's."""
        return self.metadata.name or self._default_name

    @property
    def version(self) -> str | None:
        """The version that the project's files state."""
        return self.metadata.version

    @property
    def requirements(self) -> tuple[str, ...]:
        """The project's dependencies, those of its extras with the marker."""
        return self.metadata.requirements

    @cached_property
    def paths(self) -> Collection[str]:
        real = self.base / self._below if self._below else self.base
        if not real.is_dir():
            return {self._below: None}.keys()
        found: dict[str, None] = {}
        for path in _walk(str(real), f"{self._below}/" if self._below else ""):
            found[path] = None
            if len(found) > MEMBERS:
                raise DriftcheckError(f"more than {MEMBERS:,} Python files in {real}; name a smaller folder")
        return dict.fromkeys(sorted(found)).keys()

    @cached_property
    def roots(self) -> tuple[str, ...]:
        return ("",) if self._below else import_roots(self.paths)

    @cached_property
    def metadata(self) -> Metadata:
        """What pyproject.toml says, in the folder or the nearest one above that has it."""
        for folder in (self._project, *self._project.parents):
            file = folder / "pyproject.toml"
            with contextlib.suppress(OSError, ValueError):
                if file.is_file() and file.stat().st_size <= MEMBER_BYTES:
                    return parse_pyproject(file.read_bytes())
            if (folder / ".git").exists():
                break
        return Metadata()

    def read(self, path: str) -> bytes:
        if path not in self.paths:
            raise KeyError(path)
        file = self.base / path
        try:
            with open(file, "rb") as stream:
                about = os.fstat(stream.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise DriftcheckError(f"{path} is no regular file")
                if about.st_size > MEMBER_BYTES:
                    raise DriftcheckError(
                        f"{path} has {about.st_size:,} bytes, more than the {MEMBER_BYTES:,} that are read"
                    )
                return stream.read()
        except OSError as error:
            raise DriftcheckError(f"cannot read {path}: {error.strerror}") from error

    def digest(self, path: str) -> str:
        return hashlib.sha256(self.read(path)).hexdigest()


def _base(real: Path) -> tuple[Path, str]:
    """The folder that paths are relative to, and the path below it that belongs ("" for all of it)."""
    below = real
    base = real if real.is_dir() else real.parent
    while (base / "__init__.py").is_file() and base.parent != base:
        base = base.parent
    return base, "" if base == below else below.relative_to(base).as_posix()


def _walk(folder: str, prefix: str) -> Iterator[str]:
    """The paths of the Python files below a folder. Links to folders are not followed, so there is no loop."""
    pending = [(folder, prefix)]
    while pending:
        here, prefix = pending.pop()
        try:
            with os.scandir(here) as entries:
                listed = list(entries)
        except OSError:
            continue
        names = {entry.name for entry in listed}
        if prefix and ("pyvenv.cfg" in names or "conda-meta" in names):
            continue
        if os.path.basename(here) in _BUILT and prefix and "__init__.py" not in names:
            continue
        for entry in listed:
            name = entry.name
            if name.endswith((*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)):
                if _is_own_file(entry, folder):
                    yield prefix + name
            elif name not in _SKIPPED and not name.startswith(".") and entry.is_dir(follow_symlinks=False):
                pending.append((entry.path, f"{prefix}{name}/"))


def _is_own_file(entry: os.DirEntry[str], folder: str) -> bool:
    """True for a regular file of the folder, a link to one included."""
    try:
        if not entry.is_symlink():
            return entry.is_file(follow_symlinks=False)
        real = os.path.realpath(entry.path)
        return real.startswith(os.path.join(folder, "")) and entry.is_file()
    except OSError:
        return False
