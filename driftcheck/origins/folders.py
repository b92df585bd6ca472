"""A folder of sources, listed without reading it and without leaving it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.origins.layout import import_roots, installed_root, packages_of
from driftcheck.origins.limits import EXTENSION_SUFFIXES, MEMBER_BYTES, MEMBERS, SOURCE_SUFFIXES
from driftcheck.origins.metadata import Metadata

if TYPE_CHECKING:
    from datetime import date

_SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages", "__pypackages__"))
_BUILT = frozenset(("build", "dist"))
# What a folder has that holds a repaired copy of a client, which is no part of the client.
OVERLAY_MARKER = ".driftcheck-overlay.json"
# How many folders and entries are looked at to see whether a link leads to code.
_LOOKED_INTO = 200
_LISTED = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)


class FolderTree:
    """The Python files below a folder; links that leave it are not followed.

    Paths are relative to `base`. `heads` are the names in it that belong to the tree, all of them where None.
    `metadata` replaces what the project's files would say.
    """

    origin = "folder"
    uploaded: date | None = None

    def __init__(
        self,
        base: Path,
        heads: tuple[str, ...] | None = None,
        *,
        project: Path | None = None,
        name: str = "",
        metadata: Metadata | None = None,
    ):
        self.base = base
        self.heads = heads
        self._given = metadata
        self._unlisted: dict[str, str] = {}
        self._project = project or base
        self._default_name = name or base.name

    @property
    def name(self) -> str:
        """The project's name, or the folder's."""
        return self.metadata.name or self._default_name

    @property
    def version(self) -> str | None:
        """The version that the project's files state, or its git history."""
        return self.metadata.version or self._stated_version

    @cached_property
    def committed(self) -> date | None:
        """The day of the last commit, None where the folder is in no clone."""
        from driftcheck.origins.git import commit_day

        return commit_day(self._project)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The project's dependencies, those of its extras with the marker."""
        return self.metadata.requirements

    @cached_property
    def paths(self) -> Collection[str]:
        found: dict[str, None] = {}
        for path in self._walk():
            found[path] = None
            if len(found) > MEMBERS:
                raise DriftcheckError(f"more than {MEMBERS:,} Python files in {self.base}; name a smaller folder")
        return dict.fromkeys(sorted(found)).keys()

    @cached_property
    def roots(self) -> tuple[str, ...]:
        return ("",) if self.heads is not None else import_roots(self.paths)

    @cached_property
    def metadata(self) -> Metadata:
        """What the project's files say, in its folder or the nearest one above that has any."""
        if self._given is not None:
            return self._given
        from driftcheck.origins.project import read_project

        for folder in _project_folders(self._project):
            if any((folder / name).is_file() for name in ("pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO")):
                return read_project(lambda path, folder=folder: read_below(folder, path))  # type: ignore[misc]
        return Metadata()

    @property
    def unlisted(self) -> tuple[tuple[str, str], ...]:
        """What is not read, and why: folders without permission, odd file names, links to code elsewhere."""
        _ = self.paths
        return tuple(sorted(self._unlisted.items()))

    def read(self, path: str) -> bytes:
        if path not in self.paths:
            raise KeyError(path)
        try:
            with open(self.base / path, "rb") as stream:
                about = os.fstat(stream.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise DriftcheckError(f"{path} is no regular file")
                if about.st_size > MEMBER_BYTES:
                    raise DriftcheckError(
                        f"{path} has {about.st_size:,} bytes, more than the {MEMBER_BYTES:,} that are read"
                    )
                return stream.read(MEMBER_BYTES)
        except OSError as error:
            raise DriftcheckError(f"cannot read {path}: {error.strerror}") from error

    def digest(self, path: str) -> str:
        return hashlib.sha256(self.read(path)).hexdigest()

    @cached_property
    def _stated_version(self) -> str | None:
        from driftcheck.origins.git import described_version
        from driftcheck.origins.project import stated_version

        packages = packages_of(self.paths, self.roots)
        stated = stated_version(lambda path: read_below(self.base, path), packages)
        # An environment may lie in somebody's clone, which says nothing about what is installed in it.
        return stated or (None if "site-packages" in self._project.parts else described_version(self._project))

    def _walk(self) -> Iterator[str]:
        if self.heads is None:
            yield from _walk(str(self.base), str(self.base), "", self._unlisted)
            return
        for head in self.heads:
            place = self.base / head
            if place.is_dir():
                yield from _walk(str(place), str(self.base), f"{head}/", self._unlisted)
            elif head.endswith(_LISTED) and place.is_file():
                yield head


def folder_tree(path: Path) -> FolderTree:
    """The tree of a folder, of one package (its paths begin with the package's name) or of one Python file.

    Raises DriftcheckError where there is no such thing.
    """
    try:
        about = path.stat()
    except OSError as error:
        reason = "no such file or folder" if isinstance(error, FileNotFoundError) else error.strerror or "unreadable"
        raise DriftcheckError(f"{path}: {reason}; check the path") from error
    real = Path(os.path.realpath(path))
    if stat.S_ISREG(about.st_mode):
        if not real.name.endswith(SOURCE_SUFFIXES):
            raise DriftcheckError(f"{path} is neither a folder nor a Python file; name one of these")
    elif not stat.S_ISDIR(about.st_mode):
        raise DriftcheckError(f"{path} is neither a folder nor a file; check the path")
    elif not os.access(real, os.R_OK | os.X_OK):
        raise DriftcheckError(f"{path}: the folder may not be read; check its permissions")
    base = real if real.is_dir() else real.parent
    while (base / "__init__.py").is_file() and base.parent != base:
        base = base.parent
    heads = None if base == real else (real.relative_to(base).as_posix(),)
    return FolderTree(base, heads, project=real if real.is_dir() else real.parent, name=real.stem)


def packages_in(folder: Path, top_level: Collection[str]) -> tuple[Path, tuple[str, ...] | None]:
    """The import root of a project's folder and what it would install; None where that can't be told."""
    root, heads = installed_root(FolderTree(folder).paths, top_level)
    return folder / root, heads or None


def read_below(folder: Path, path: str) -> bytes | None:
    """A file below a folder, None where there is none, it leads elsewhere, or is too large."""
    file = folder / path
    try:
        real = os.path.realpath(file)
        if real.startswith(os.path.join(os.path.realpath(folder), "")):
            about = os.stat(real)
            if stat.S_ISREG(about.st_mode) and about.st_size <= MEMBER_BYTES:
                with open(real, "rb") as stream:
                    return stream.read()
    except (OSError, ValueError):
        pass
    return None


def _project_folders(folder: Path) -> Iterator[Path]:
    """The folder and those above it that may be its project's: up to the clone's, else two, as in `src/package`."""
    above = list(folder.parents)
    clone = next((index for index, parent in enumerate([folder, *above]) if (parent / ".git").exists()), 2)
    yield folder
    yield from above[:clone]


def _walk(folder: str, limit: str, prefix: str, unlisted: dict[str, str]) -> Iterator[str]:
    """The paths of the Python files below a folder. Links to folders are not followed, so there is no loop."""
    pending = [(folder, prefix)]
    while pending:
        here, prefix = pending.pop()
        try:
            with os.scandir(here) as entries:
                listed = list(entries)
        except OSError:
            unlisted[prefix] = "can't be listed"
            continue
        names = {entry.name for entry in listed}
        if here != folder and (
            "pyvenv.cfg" in names
            or "conda-meta" in names
            or OVERLAY_MARKER in names
            or (os.path.basename(here) in _BUILT and "__init__.py" not in names)
        ):
            continue
        for entry in listed:
            name = entry.name
            if not name.isprintable():
                unlisted[ascii(prefix + name)[1:-1]] = "has a name that can't be printed"
            elif name.endswith(_LISTED):
                if _is_own_file(entry, limit):
                    yield prefix + name
                elif name.endswith(SOURCE_SUFFIXES) and entry.is_symlink():
                    is_there = os.path.exists(entry.path)
                    unlisted[prefix + name] = f"is a link that leads {'out of the folder' if is_there else 'nowhere'}"
            elif name not in _SKIPPED and not name.startswith("."):
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, f"{prefix}{name}/"))
                elif entry.is_symlink() and _leads_to_code_elsewhere(entry, limit):
                    unlisted[f"{prefix}{name}/"] = "is a link to a folder elsewhere, which is not followed"


def _leads_to_code_elsewhere(entry: os.DirEntry[str], folder: str) -> bool:
    """True for a link to a folder that is not in this one and has Python files, in it or in its folders."""
    try:
        real = os.path.realpath(entry.path)
        if not os.path.isdir(real) or f"{real}{os.sep}".startswith(os.path.join(folder, "")):
            return False
        pending = [real]
        for depth in range(2):
            below: list[str] = []
            for here in pending[:_LOOKED_INTO]:
                with os.scandir(here) as entries:
                    for each in islice(entries, _LOOKED_INTO):
                        if each.name.endswith(SOURCE_SUFFIXES):
                            return True
                        if depth == 0 and each.is_dir(follow_symlinks=False):
                            below.append(each.path)
            pending = below
    except OSError:
        pass
    return False


def _is_own_file(entry: os.DirEntry[str], folder: str) -> bool:
    """True for a regular file of the folder, a link to one included."""
    try:
        if not entry.is_symlink():
            return entry.is_file(follow_symlinks=False)
        real = os.path.realpath(entry.path)
        return real.startswith(os.path.join(folder, "")) and entry.is_file()
    except OSError:
        return False
