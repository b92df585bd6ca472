"""A source distribution read without building it: the packages that it would install, and its PKG-INFO."""

from __future__ import annotations

import bz2
import gzip
import posixpath
import tarfile
from collections.abc import Iterator
from typing import IO, BinaryIO, cast

from driftcheck.errors import DriftcheckError
from driftcheck.origins.archives import (
    DAMAGE,
    BoundedReader,
    check_members,
    check_name,
    check_size,
    damage,
    open_zip,
    read_member,
)
from driftcheck.origins.cache import Contents
from driftcheck.origins.layout import installed_root
from driftcheck.origins.limits import KEPT_BYTES, MEMBER_BYTES, MEMBERS, SOURCE_SUFFIXES, STREAM_BYTES
from driftcheck.origins.project import read_project
from driftcheck.origins.wheels import Listing

_METADATA = ("PKG-INFO", "pyproject.toml", "setup.cfg", "top_level.txt", "entry_points.txt")


def read_sdist(stream: BinaryIO, name: str, contents: Contents) -> Listing:
    """Add the sources that a source distribution would install; raises DriftcheckError for damage and refusals."""
    files: dict[str, bytes] = {}
    total = 0
    try:
        for path, data in _zipped(stream, name) if name.endswith(".zip") else _tarred(stream, name):
            if path in files:
                raise DriftcheckError(f"{name} holds {path} twice; it is refused")
            total += len(data)
            if total > KEPT_BYTES:
                raise DriftcheckError(f"{name} holds more than {KEPT_BYTES:,} bytes of sources; it is refused")
            files[path] = data
    except DAMAGE as error:
        raise DriftcheckError(f"{name} is damaged or no archive: {damage(error)}") from error
    top = _top_folder(files)
    files = {path[len(top) :]: data for path, data in files.items() if path.startswith(top)}
    names: list[str] = []
    for path in sorted(files):
        if path.endswith(".egg-info/top_level.txt"):
            names += files[path].decode("utf-8", "replace").split()
    root, heads = installed_root(files.keys(), names)
    digests = {}
    for path, data in files.items():
        inside = path[len(root) :] if path.startswith(root) else ""
        if path.endswith(SOURCE_SUFFIXES):
            if inside.partition("/")[0] in heads:
                digests[inside] = contents.add(data)
        elif path in ("PKG-INFO", "pyproject.toml") or path.endswith(".egg-info/entry_points.txt"):
            digests[posixpath.basename(path)] = contents.add(data)
    return Listing(digests, ("",), read_project(files.get))


def _top_folder(files: dict[str, bytes]) -> str:
    """The one folder that holds everything, "" where there is none."""
    tops = {path.partition("/")[0] for path in files}
    return f"{tops.pop()}/" if len(tops) == 1 and all("/" in path for path in files) else ""


def _wanted(path: str) -> bool:
    return path.endswith((*SOURCE_SUFFIXES, "requirements.txt")) or posixpath.basename(path) in _METADATA


def _tarred(stream: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    with bz2.BZ2File(stream) if name.endswith(".bz2") else gzip.GzipFile(fileobj=stream) as unpacked:
        reader = BoundedReader(cast("IO[bytes]", unpacked), name, at_once=MEMBER_BYTES + 512, in_all=STREAM_BYTES)
        yield from _members(cast("IO[bytes]", reader), name)


def _members(stream: IO[bytes], name: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for count, member in enumerate(archive, 1):
            if count > MEMBERS:
                raise DriftcheckError(f"{name} holds more than {MEMBERS:,} members; it is refused")
            path = member.name.removeprefix("./")
            if path in ("", "."):
                continue
            check_name(path, name)
            if member.issym() or member.islnk():
                _check_link(member, path, name)
            elif member.isreg():
                if _wanted(path):
                    check_size(path, member.size, name)
                    source = archive.extractfile(member)
                    if source is None:
                        raise DriftcheckError(f"{name} is damaged: {path} cannot be read")
                    yield path, source.read(member.size)
            elif not member.isdir():
                raise DriftcheckError(f"{name} holds {path}, which is neither a file nor a folder; it is refused")


def _check_link(member: tarfile.TarInfo, path: str, name: str) -> None:
    """Links are never followed; one that leads out of the archive says that the archive means harm."""
    base = posixpath.dirname(path) if member.issym() else ""
    target = posixpath.normpath(posixpath.join(base, member.linkname))
    if target.startswith(("/", "../")) or target == "..":
        raise DriftcheckError(f"{name} holds the link {path}, which leaves its folder; it is refused")


def _zipped(stream: BinaryIO, name: str) -> Iterator[tuple[str, bytes]]:
    with open_zip(stream, name) as archive:
        for path, info in check_members(archive.infolist(), name).items():
            if _wanted(path):
                yield path, read_member(archive, info, name)
