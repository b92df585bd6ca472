"""Distributions that an interpreter has installed, found by its own search path and without importing anything."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.origins.folders import FolderTree, packages_in
from driftcheck.origins.interpreter import Interpreter, ask_interpreter, find_interpreter, plain_environment
from driftcheck.origins.limits import EXTENSION_SUFFIXES, MEMBER_BYTES, SOURCE_SUFFIXES
from driftcheck.origins.metadata import Metadata, parse_core_metadata, parse_record
from driftcheck.origins.names import normalized

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date

    from driftcheck.origins.settings import Settings


EDITABLE = "installed in editable mode"


@dataclass(frozen=True, slots=True)
class Distribution:
    """One distribution as it lies on disk: the folder that stands on the search path, and its own metadata folder."""

    site: Path
    information: Path

    @property
    def record(self) -> bytes | None:
        """RECORD as it was installed, None where the installer wrote none."""
        return _read(self.information / "RECORD")

    def metadata(self) -> Metadata:
        """What the distribution says of itself."""
        for name in ("METADATA", "PKG-INFO"):
            data = _read(self.information / name)
            if data is not None:
                return parse_core_metadata(data)
        return parse_core_metadata(_read(self.information) or b"")

    def editable_folder(self) -> Path | None:
        """The project's folder where the distribution is installed in editable mode."""
        try:
            origin = json.loads(_read(self.information / "direct_url.json") or b"{}")
            if origin.get("dir_info", {}).get("editable") is True:
                import urllib.parse
                import urllib.request

                parts = urllib.parse.urlsplit(origin["url"])
                return Path(urllib.request.url2pathname(parts.path))
        except (ValueError, AttributeError, KeyError, TypeError):
            pass
        return None

    def top_level(self) -> tuple[str, ...]:
        """The import names as top_level.txt gives them, none where there is no such file."""
        return tuple((_read(self.information / "top_level.txt") or b"").decode("utf-8", "replace").split())

    def heads(self) -> tuple[str, ...]:
        """What in the site folder belongs to the distribution: packages, modules and extension modules.

        Of a namespace package, which several distributions may share, it is the packages below.
        """
        data = self.record
        if data is not None:
            try:
                paths = parse_record(data)
            except ValueError:
                return ()
            found: set[str] = set()
            for path in paths:
                if path.partition("/")[0] not in found and _is_module_file(path):
                    found.add(_owned(path, paths))
            return tuple(sorted(found))
        there = [name if (self.site / name).is_dir() else f"{name}.py" for name in self.top_level()]
        return tuple(sorted(name for name in there if (self.site / name).exists()))


class InstalledTree(FolderTree):
    """The files of an installed distribution; `executable` is the interpreter that has it.

    `record_digest` is a hash of RECORD, which tells one installation from the next; None where there is no RECORD.
    """

    def __init__(
        self,
        base: Path,
        heads: tuple[str, ...] | None,
        metadata: Metadata,
        executable: Path,
        *,
        origin: str,
        name: str,
        record: bytes | None = None,
    ):
        super().__init__(base, heads, name=name, metadata=metadata)
        self.origin = origin
        self.executable = executable
        self.record_digest = hashlib.sha256(record).hexdigest() if record is not None else None

    @cached_property
    def committed(self) -> date | None:
        """The day of the last commit of a project that is installed in editable mode, None for any other."""
        return super().committed if self.origin == EDITABLE else None


def installed_tree(name: str, settings: Settings) -> InstalledTree:
    """The distribution or importable module of that name, as the interpreter in force would find it.

    Raises DriftcheckError where there is no such interpreter or it has no such thing.
    """
    executable = find_interpreter(settings.python)
    plain = plain_environment(executable)
    found = _find(name, plain) if plain is not None else None
    if found is None:
        found = _find(name, ask_interpreter(executable, settings.timeout))
    if found is not None:
        return found
    raise DriftcheckError(
        f"{name} is not installed in the environment of {executable}; "
        f"name another interpreter with --python, or a release such as {name}==latest"
    )


def _find(name: str, interpreter: Interpreter) -> InstalledTree | None:
    distribution = _by_name(name, interpreter)
    if distribution is None or _is_shadowed(name, distribution, interpreter):
        return _by_import_name(name, interpreter)
    tree = tree_of(distribution, interpreter.executable)
    return tree if tree.paths else _by_import_name(name, interpreter)


def _is_shadowed(name: str, distribution: Distribution, interpreter: Interpreter) -> bool:
    """True where an import of that name finds another package earlier on the search path, as PYTHONPATH can do it."""
    for folder in interpreter.search_path:
        if Path(folder) == distribution.site:
            return False
        if any(_is_importable(Path(folder, place)) for place in (name, f"{name}.py")):
            return True
    return False


def tree_of(distribution: Distribution, executable: Path) -> InstalledTree:
    """The files of a distribution, those of its project where it is installed in editable mode."""
    about = distribution.metadata()
    fallback = distribution.information.name.partition("-")[0]
    editable = distribution.editable_folder()
    if editable is None and distribution.information.suffix == ".egg-info" and not distribution.record:
        # `setup.py develop` leaves the metadata in the project's folder, which a .pth file puts on the search path.
        editable = distribution.site if (distribution.site / "setup.py").exists() else None
    if editable is not None and editable.is_dir():
        base, heads = packages_in(editable, distribution.top_level())
        return InstalledTree(
            base,
            heads,
            about,
            executable,
            origin=EDITABLE,
            name=fallback,
            record=distribution.record,
        )
    return InstalledTree(
        distribution.site,
        distribution.heads(),
        about,
        executable,
        origin="installed distribution",
        name=fallback,
        record=distribution.record,
    )


def _by_name(name: str, interpreter: Interpreter) -> Distribution | None:
    wanted = normalized(name)
    for site, entries in sites_of(interpreter.search_path):
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info")):
                head = entry.rpartition(".")[0].partition("-")[0]
                if normalized(head) == wanted:
                    return Distribution(site, site / entry)
    return None


def _by_import_name(name: str, interpreter: Interpreter) -> InstalledTree | None:
    """The first importable package or module of that name, with the distribution that brought it if one did."""
    if not name.isidentifier():
        return None
    for site, entries in sites_of(interpreter.search_path):
        there = [entry for entry in (name, f"{name}.py") if entry in entries]
        if not there or not _is_importable(site / there[0]):
            continue
        owner = _owner(name, site, entries)
        if owner is not None:
            return tree_of(owner, interpreter.executable)
        return InstalledTree(
            site,
            (there[0],),
            Metadata(),
            interpreter.executable,
            origin="importable without a distribution",
            name=name,
        )
    return None


def _owner(name: str, site: Path, entries: list[str]) -> Distribution | None:
    """The distribution whose files include the package; likely names are looked at first."""
    candidates = [entry for entry in entries if entry.endswith((".dist-info", ".egg-info"))]
    for entry in sorted(candidates, key=lambda entry: (not normalized(entry).startswith(normalized(name)), entry)):
        distribution = Distribution(site, site / entry)
        record = distribution.record or b""
        if name in distribution.top_level() or f"\n{name}/__init__.py,".encode() in b"\n" + record:
            return distribution
    return None


def sites_of(search_path: Sequence[str]) -> Iterator[tuple[Path, list[str]]]:
    """The folders of a search path that can be listed, with the sorted names in them."""
    for folder in search_path:
        try:
            yield Path(folder), sorted(os.listdir(folder))
        except OSError:
            continue


def _is_importable(place: Path) -> bool:
    return place.is_file() or (place / "__init__.py").is_file() or any(place.glob("*.py"))


def _is_module_file(path: str) -> bool:
    """True for what can be imported from the site folder, not for scripts and metadata."""
    parts = path.split("/")
    is_inside = "" not in parts and not parts[0].startswith((".", "__editable__")) and ".." not in parts
    return is_inside and path.endswith((*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES))


def _owned(path: str, paths: Collection[str]) -> str:
    """The topmost package that holds the file, or the file itself."""
    for match in re.finditer("/", path):
        package = path[: match.start()]
        if f"{package}/__init__.py" in paths or f"{package}/__init__.pyi" in paths:
            return package
    return path


def _read(file: Path) -> bytes | None:
    try:
        if file.is_file() and file.stat().st_size <= MEMBER_BYTES:
            return file.read_bytes()
    except OSError:
        pass
    return None
