"""A copy of a client's packages with the changes in it, to be put first on PYTHONPATH."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change, Changes, ordered
from driftcheck.fixes.files import real_path
from driftcheck.fixes.records import library_folders
from driftcheck.origins.folders import OVERLAY_MARKER, FolderTree
from driftcheck.origins.git import GitTree
from driftcheck.origins.installed import EDITABLE, InstalledTree
from driftcheck.origins.layout import installed_root
from driftcheck.origins.limits import EXTENSION_SUFFIXES, MEMBERS, SOURCE_SUFFIXES, STREAM_BYTES
from driftcheck.tree import SourceTree, import_path

MARKER = OVERLAY_MARKER
"""The file by which an overlay is known, with the hashes of all others."""

_FORMAT = 1
_MARKER_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Overlay:
    """Where the copy is, which changes are in it, and which are of files that are in none of the packages."""

    folder: Path
    paths: tuple[str, ...]
    outside: tuple[str, ...]


class _Marker(msgspec.Struct, frozen=True):
    format: int
    client: str
    version: str | None
    files: dict[str, str]
    links: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an overlay consists of: files on disk, files of a tree that lies elsewhere, links between folders."""

    files: dict[str, Path] = field(default_factory=dict)
    tree_paths: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    changes: dict[str, Change] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)


def overlay(tree: SourceTree, changes: Iterable[Change], destination: Path) -> Overlay:
    """Makes `destination` a copy of the client's packages with the changes in it, in the place of an older overlay.

    From disk all files come along, data and compiled modules too; of a release or a commit only what the tree has.
    Raises DriftcheckError where the copy would not be whole, where a file isn't what its change says, and where the
    destination holds anything but an overlay that nobody has edited.
    """
    meant = ordered(changes)
    place = Path(os.path.realpath(destination))
    try:
        plan = _from_disk(tree, meant, place) if isinstance(tree, FolderTree) else _from_tree(tree, meant)
        if not plan.files and not plan.tree_paths:
            raise DriftcheckError(f"{tree.name} has no package that could be copied into an overlay")
        _check_destination(place)
        _remove_unfinished(place)
        made = place.with_name(f"{_unfinished(place)}{secrets.token_hex(8)}")
        place.parent.mkdir(parents=True, exist_ok=True)
        made.mkdir()
        try:
            _fill(made, plan, tree)
            _put(made, place)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise DriftcheckError(f"cannot make the overlay {destination}: {error.strerror or error}") from error
    used = frozenset(plan.used)
    return Overlay(
        place,
        tuple(change.path for change in meant if change.path in used),
        tuple(change.path for change in meant if change.path not in used),
    )


def _from_disk(tree: FolderTree, changes: Changes, place: Path) -> _Plan:
    base = Path(os.path.realpath(tree.base))
    root, heads = ("", tree.heads) if tree.heads is not None else installed_root(tree.paths)
    is_whole = isinstance(tree, InstalledTree) and tree.origin != EDITABLE
    if is_whole:
        heads = (*heads, *library_folders(base, heads))
    start = base / root
    tops = [start / head for head in heads]
    if any(_is_in(place, top) for top in tops) or _is_in(base, place):
        raise DriftcheckError(f"the overlay {place} would be a part of what it copies; name another folder")
    plan = _Plan()
    for top in tops:
        for file in _walk(top, is_whole=is_whole):
            inside = file.relative_to(start).as_posix()
            real = Path(os.path.realpath(file))
            if file.is_symlink() and not any(_is_in(real, other) for other in tops):
                raise DriftcheckError(
                    f"{inside} is a link that leads out of {tree.name}; the overlay would not be whole"
                )
            if file.is_symlink() and real.is_dir():
                plan.links[inside] = os.path.relpath(real, file.parent)
            elif real.is_file():
                plan.files[inside] = real
            else:
                raise DriftcheckError(f"{inside} is neither a file nor a folder; the overlay would not be whole")
            if len(plan.files) + len(plan.links) > MEMBERS:
                raise DriftcheckError(f"{tree.name} has more than {MEMBERS:,} files, too many for an overlay")
    by_place: dict[Path, Change] = {}
    copied = frozenset(plan.files.values())
    for change in changes:
        real = base / real_path(base, change.path)
        first = by_place.setdefault(real, change)
        if first.after != change.after:
            raise DriftcheckError(f"{first.path} and {change.path} are one file, and their fixes differ")
        if real in copied:
            plan.used.append(change.path)
    for inside, real in plan.files.items():
        if real in by_place:
            plan.changes[inside] = by_place[real]
    return plan


def _walk(top: Path, *, is_whole: bool) -> Iterator[Path]:
    """The files and links below a folder, or the file; links are not followed.

    A working copy has more in it than its package, where the two are one: repositories, environments, caches.
    """
    if top.is_symlink() or not top.is_dir():
        yield top
        return
    pending = [top]
    while pending:
        folder = pending.pop()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        if not is_whole and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)
            elif entry.name != "__pycache__" and (is_whole or not entry.name.startswith(".")):
                pending.append(Path(entry.path))


def _from_tree(tree: SourceTree, changes: Changes) -> _Plan:
    plan = _Plan()
    by_path = {change.path: change for change in changes}
    start, heads = installed_root(tree.paths) if isinstance(tree, GitTree) else ("", None)
    for path in sorted(tree.paths):
        inside = path.removeprefix(start) if heads is not None else import_path(path, tree.roots)
        head, _, rest = inside.partition("/")
        if heads is not None:
            is_part = path.startswith(start) and head in heads
        elif head.endswith(".dist-info"):
            # By it the client finds its version and others its plugins; RECORD would not be true of what changes.
            is_part = rest != "RECORD"
        else:
            is_part = path.endswith((*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES))
        if is_part and inside not in plan.tree_paths:
            plan.tree_paths[inside] = path
            if path in by_path:
                plan.changes[inside] = by_path[path]
                plan.used.append(path)
    return plan


def _fill(folder: Path, plan: _Plan, tree: SourceTree) -> None:
    """Writes the overlay; the marker comes first, so that what a killed run leaves is known as ours."""
    digests: dict[str, str] = {}
    links = dict(sorted(plan.links.items()))
    _mark(folder, tree, {}, {})
    total = 0
    for inside in sorted(plan.files.keys() | plan.tree_paths.keys()):
        target = folder / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        change = plan.changes.get(inside)
        source = plan.files.get(inside)
        content = _content(plan.tree_paths[inside], tree) if source is None else None
        size = source.stat().st_size if source is not None else len(content or b"")
        total += size
        if total > STREAM_BYTES:
            raise DriftcheckError(f"{tree.name} has more than {STREAM_BYTES:,} bytes, too many for an overlay")
        if change is not None:
            if (source.read_bytes() if source is not None else content) != change.before:
                raise DriftcheckError(f"{change.path} has been edited since it was read; try again")
            content = change.after
        if content is not None:
            target.write_bytes(content)
        elif source is not None:
            shutil.copyfile(source, target)
        if source is not None:
            target.chmod(stat.S_IMODE(source.stat().st_mode) & 0o777 | stat.S_IWUSR)
        digests[inside] = _digest(target)
    for inside, link in links.items():
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        (folder / inside).symlink_to(link, target_is_directory=True)
    _mark(folder, tree, digests, links)


def _mark(folder: Path, tree: SourceTree, files: Mapping[str, str], links: Mapping[str, str]) -> None:
    marker = _Marker(_FORMAT, tree.name, tree.version, dict(files), dict(links))
    (folder / MARKER).write_bytes(msgspec.json.format(msgspec.json.encode(marker), indent=1) + b"\n")


def _content(path: str, tree: SourceTree) -> bytes:
    try:
        return tree.read(path)
    except DriftcheckError as error:
        if path.endswith(EXTENSION_SUFFIXES):
            raise DriftcheckError(
                f"{path} is a compiled module, and only an installed {tree.name} has it at hand; "
                "install it and name it without a version"
            ) from error
        raise


def _check_destination(place: Path) -> None:
    """Raises DriftcheckError unless nothing of anybody's would be lost there."""
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise DriftcheckError(f"{place} is no folder; name another one for the overlay")
    if not any(place.iterdir()):
        return
    marker = _marker(place)
    if marker is None:
        raise DriftcheckError(f"{place} is not empty, and no overlay of driftcheck's; name another folder")
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    for file in _walk(place, is_whole=True):
        inside = file.relative_to(place).as_posix()
        if file.is_symlink():
            links[inside] = os.readlink(file)
        elif inside != MARKER:
            files[inside] = _digest(file) if file.is_file() else ""
    edited = sorted(files.items() ^ marker.files.items()) or sorted(links.items() ^ marker.links.items())
    if edited:
        raise DriftcheckError(f"{edited[0][0]} in the overlay {place} has been edited; move what you need of it away")


def _marker(place: Path) -> _Marker | None:
    file = place / MARKER
    try:
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MARKER_BYTES:
            return None
        marker = msgspec.json.decode(file.read_bytes(), type=_Marker)
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return marker if marker.format == _FORMAT else None


def _put(made: Path, place: Path) -> None:
    """Gives the new overlay its name; a folder that is not empty has to go aside for that."""
    aside = made.with_name(f"{made.name}-old")
    if place.exists():
        os.rename(place, aside)
    try:
        os.rename(made, place)
    except OSError:
        with suppress(OSError):
            os.rename(aside, place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _remove_unfinished(place: Path) -> None:
    """Removes what runs have left that were killed."""
    with suppress(OSError):
        for name in sorted(os.listdir(place.parent)):
            if name.startswith(_unfinished(place)) and _marker(place.parent / name) is not None:
                shutil.rmtree(place.parent / name, ignore_errors=True)


def _unfinished(place: Path) -> str:
    return f".{place.name}.driftcheck-"


def _is_in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _digest(file: Path) -> str:
    found = hashlib.sha256()
    with open(file, "rb") as stream:
        while piece := stream.read(1 << 20):
            found.update(piece)
    return found.hexdigest()
