"""The cache: contents once by their hash, and for every release a manifest that says where they are.

    releases/<indexes>/<name>/<version>.manifest  one JSON line about the release, then a line for each path
    releases/<indexes>/<name>/releases.json       the versions that the index offered when it was last asked
    packs/<hash>.pack                             zlib-compressed contents, one after the other
    locks/                                        one lock a release, held while it is fetched

A fetch writes one pack, with the contents that no other release of the project has. Everything is written under a
temporary name and then renamed, so that a reader sees a whole file or none, and an interrupted run leaves only a
temporary file behind. Contents are checked against their SHA-256 when they are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.origins.limits import MEMBER_BYTES
from driftcheck.origins.names import normalized

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = 1
_STALE_SECONDS = 86_400
_LOCK_SECONDS = 600
_TEMPORARY = ".writing-"
_TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# Made by driftcheck; it may be deleted at any time.\n"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One release: what the index and its metadata say of it, and where each path's contents are.

    `entries` gives for each path "digest pack offset length", or "" for an extension module, whose contents are not
    kept; `pack` counts in `packs`. `uploaded` is an ISO date or "".
    """

    name: str
    version: str
    file: str
    packs: tuple[str, ...]
    entries: Mapping[str, str]
    roots: tuple[str, ...] = ("",)
    requirements: tuple[str, ...] = ()
    uploaded: str = ""

    def place(self, path: str) -> Place | None:
        """Where a path's contents are, None for an extension module; raises KeyError where there is no such path."""
        entry = self.entries[path]
        if not entry:
            return None
        digest, pack, offset, length = entry.split(" ")
        return Place(digest, self.packs[int(pack)], int(offset), int(length))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the contents of that hash are: a stretch of a pack."""

    digest: str
    pack: str
    offset: int
    length: int


class Cache:
    """The cache folder; it is made when something is first stored."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._packs: dict[str, int] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._packs)

    def manifest(self, indexes: str, name: str, version: str) -> Manifest | None:
        """The manifest stored for a release, None where there is none or it is damaged."""
        try:
            with open(self._manifest_path(indexes, name, version), "rb") as stream:
                head, _, body = stream.read().partition(b"\n")
        except OSError:
            return None
        return _parse(head, body)

    def versions(self, indexes: str, name: str) -> list[str]:
        """The versions of which a manifest is stored, sorted as text."""
        try:
            entries = os.listdir(self._project_path(indexes, name))
        except OSError:
            return []
        return sorted(entry.removesuffix(".manifest") for entry in entries if entry.endswith(".manifest"))

    def places(self, indexes: str, name: str, versions: Iterable[str]) -> dict[str, Place]:
        """Where the contents of cached releases of a project are, by hash; packs that are gone are left out."""
        found: dict[str, Place] = {}
        for version in versions:
            manifest = self.manifest(indexes, name, version)
            if manifest is None:
                continue
            there = {pack for pack in manifest.packs if os.path.exists(self._pack_path(pack))}
            for path in manifest.entries:
                place = manifest.place(path)
                if place is not None and place.pack in there:
                    found.setdefault(place.digest, place)
        return found

    def read(self, place: Place) -> bytes | None:
        """The contents at a place; None where they are missing or damaged."""
        try:
            packed = self._stretch(place)
        except OSError:
            return None
        unpacker = zlib.decompressobj()
        with contextlib.suppress(zlib.error):
            data = unpacker.decompress(packed, MEMBER_BYTES + 1)
            if hashlib.sha256(data).hexdigest() == place.digest:
                return data
        return None

    def store_manifest(self, indexes: str, manifest: Manifest) -> None:
        """Write the manifest of a release whose contents are stored."""
        body = "".join(f"{entry}\t{path}\n" for path, entry in manifest.entries.items()).encode()
        head = {
            "format": _FORMAT,
            "name": manifest.name,
            "version": manifest.version,
            "file": manifest.file,
            "packs": manifest.packs,
            "roots": manifest.roots,
            "requirements": manifest.requirements,
            "uploaded": manifest.uploaded,
            "body": hashlib.sha256(body).hexdigest(),
        }
        path = self._manifest_path(indexes, normalized(manifest.name), manifest.version)
        self.write(path, json.dumps(head).encode() + b"\n" + body)

    def store_pack(self, pieces: list[bytes]) -> str:
        """Write a pack of compressed contents; its name."""
        data = b"".join(pieces)
        pack = hashlib.sha256(data).hexdigest()[:32]
        self.write(self._pack_path(pack), data)
        with self._lock:
            # A damaged pack of that name may be open: the next read has to see the new one.
            descriptor = self._packs.pop(pack, None)
            if descriptor is not None:
                os.close(descriptor)
        return pack

    def project_file(self, indexes: str, name: str) -> str:
        """Where the versions that the index offers of a project are kept."""
        return os.path.join(self._project_path(indexes, name), "releases.json")

    @contextlib.contextmanager
    def locked(self, indexes: str, name: str, version: str) -> Iterator[None]:
        """Keep other processes from fetching the same release meanwhile."""
        import filelock

        lock = os.path.join(self.folder, "locks", f"{indexes}-{name}-{version}.lock")
        try:
            os.makedirs(os.path.dirname(lock), exist_ok=True)
            holder = filelock.FileLock(lock, timeout=_LOCK_SECONDS)
            holder.acquire()
        except filelock.Timeout as error:
            raise DriftcheckError(
                f"another process has been fetching {name} {version} for {_LOCK_SECONDS} s; end it and try again"
            ) from error
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield
        finally:
            holder.release()

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the cache so that a reader sees all of it or none."""
        import tempfile

        parent = os.path.dirname(path)
        try:
            if not os.path.isdir(parent):
                os.makedirs(parent, exist_ok=True)
                tag = self.folder / "CACHEDIR.TAG"
                if not tag.exists():
                    tag.write_bytes(_TAG)
            _remove_stale(parent)
            descriptor, temporary = tempfile.mkstemp(dir=parent, prefix=_TEMPORARY)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise self._unwritable(error) from error

    def _stretch(self, place: Place) -> bytes:
        """The compressed bytes at a place; the packs stay open, since opening a file is what costs time."""
        if not hasattr(os, "pread"):
            with open(self._pack_path(place.pack), "rb") as stream:
                stream.seek(place.offset)
                return stream.read(place.length)
        with self._lock:
            descriptor = self._packs.get(place.pack)
            if descriptor is None:
                descriptor = self._packs[place.pack] = os.open(self._pack_path(place.pack), os.O_RDONLY)
            return os.pread(descriptor, place.length, place.offset)

    def _pack_path(self, pack: str) -> str:
        return os.path.join(self.folder, "packs", f"{pack}.pack")

    def _project_path(self, indexes: str, name: str) -> str:
        return os.path.join(self.folder, "releases", indexes, name)

    def _manifest_path(self, indexes: str, name: str, version: str) -> str:
        return os.path.join(self._project_path(indexes, name), f"{version}.manifest")

    def _unwritable(self, error: OSError) -> DriftcheckError:
        reason = error.strerror or str(error)
        return DriftcheckError(
            f"cannot write to the cache folder {self.folder}: {reason}; name another one with DRIFTCHECK_CACHE_DIR"
        )


class Contents:
    """The contents of one release while it is being fetched: those that other releases have, and the new ones."""

    def __init__(self, known: Mapping[str, Place]):
        self._known = known
        self._pieces: list[bytes] = []
        self._offset = 0
        self._new: dict[str, tuple[int, int]] = {}

    def has(self, digest: str) -> bool:
        """True where contents of that hash need not be fetched."""
        return digest in self._known or digest in self._new

    def add(self, data: bytes) -> str:
        """Keep contents; their SHA-256 in hexadecimal."""
        digest = hashlib.sha256(data).hexdigest()
        if not self.has(digest):
            piece = zlib.compress(data, 3)
            self._new[digest] = (self._offset, len(piece))
            self._pieces.append(piece)
            self._offset += len(piece)
        return digest

    def store(self, cache: Cache, digests: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Write what is new; the packs and entries of the manifest for these paths and hashes."""
        packs: dict[str, int] = {}
        if self._pieces:
            packs[cache.store_pack(self._pieces)] = 0
        own = next(iter(packs), "")
        entries: dict[str, str] = {}
        for path, digest in sorted(digests.items()):
            if not digest:
                entries[path] = ""
                continue
            if digest in self._new:
                place = Place(digest, own, *self._new[digest])
            else:
                place = self._known[digest]
            number = packs.setdefault(place.pack, len(packs))
            entries[path] = f"{digest} {number} {place.offset} {place.length}"
        return tuple(packs), entries


def _parse(head: bytes, body: bytes) -> Manifest | None:
    """The manifest from its two parts, None where they are damaged or of another format."""
    try:
        about = json.loads(head)
        if about["format"] != _FORMAT or about["body"] != hashlib.sha256(body).hexdigest():
            return None
        entries: dict[str, str] = {}
        for line in body.decode().split("\n"):
            entry, tab, path = line.partition("\t")
            if tab:
                entries[path] = entry
        return Manifest(
            name=about["name"],
            version=about["version"],
            file=about["file"],
            packs=tuple(about["packs"]),
            entries=entries,
            roots=tuple(about["roots"]),
            requirements=tuple(about["requirements"]),
            uploaded=about["uploaded"],
        )
    except (ValueError, KeyError, TypeError):
        return None


def _remove_stale(folder: str) -> None:
    """Remove what interrupted runs have left; what is younger may be another process at work."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_TEMPORARY) and entry.stat().st_mtime < time.time() - _STALE_SECONDS:
                os.unlink(entry.path)


def _close(packs: dict[str, int]) -> None:
    for descriptor in packs.values():
        with contextlib.suppress(OSError):
            os.close(descriptor)
