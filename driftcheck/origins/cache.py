"""The cache: contents once by their hash, and for every release a manifest that names them.

    blobs/ab/cdef…                                the zlib-compressed contents whose SHA-256 is abcdef…
    releases/<indexes>/<name>/<version>.manifest  one JSON line about the release, then a line for each path
    locks/                                        one lock a release, held while it is fetched

Everything is written under a temporary name and then renamed, so a reader sees a whole file or none, and an
interrupted run leaves only a temporary file behind. Contents are checked against their name when they are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.origins.limits import MEMBER_BYTES

_FORMAT = 1
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by driftcheck; it may be deleted at any time.\n"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One release: what the index and its metadata say of it, and the hash of every path.

    `digests` gives SHA-256 in hexadecimal, "" for extension modules, whose contents are not kept. `uploaded` is an
    ISO date or "".
    """

    name: str
    version: str
    file: str
    digests: Mapping[str, str]
    roots: tuple[str, ...] = ("",)
    requirements: tuple[str, ...] = ()
    uploaded: str = ""
    modules: tuple[str, ...] = field(default=())


class Cache:
    """The cache folder; it is made when something is first stored."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._blobs = os.path.join(folder, "blobs")

    def manifest(self, indexes: str, name: str, version: str) -> Manifest | None:
        """The manifest stored for a release, None where there is none or it is damaged."""
        try:
            with open(self._manifest_path(indexes, name, version), "rb") as stream:
                head, _, body = stream.read().partition(b"\n")
        except OSError:
            return None
        return _parse(head, body)

    def versions(self, indexes: str, name: str) -> list[str]:
        """The versions of which a manifest is stored, in no particular order."""
        try:
            entries = os.listdir(self.folder / "releases" / indexes / name)
        except OSError:
            return []
        return [entry.removesuffix(".manifest") for entry in entries if entry.endswith(".manifest")]

    def store_manifest(self, indexes: str, manifest: Manifest) -> None:
        """Write the manifest of a release whose contents are stored."""
        body = "".join(f"{digest} {path}\n" for path, digest in sorted(manifest.digests.items())).encode()
        head = {
            "format": _FORMAT,
            "name": manifest.name,
            "version": manifest.version,
            "file": manifest.file,
            "roots": manifest.roots,
            "requirements": manifest.requirements,
            "uploaded": manifest.uploaded,
            "modules": manifest.modules,
            "body": hashlib.sha256(body).hexdigest(),
        }
        from driftcheck.origins.names import normalized

        path = self._manifest_path(indexes, normalized(manifest.name), manifest.version)
        self._write(path, json.dumps(head).encode() + b"\n" + body)

    def has(self, digest: str) -> bool:
        """True where contents of that hash are stored; whether they are sound shows when they are read."""
        return os.path.exists(self._blob_path(digest))

    def read(self, digest: str) -> bytes | None:
        """The contents of that hash; None where they are missing or damaged, and damaged ones are removed."""
        path = self._blob_path(digest)
        try:
            with open(path, "rb") as stream:
                packed = stream.read()
        except OSError:
            return None
        unpacker = zlib.decompressobj()
        with contextlib.suppress(zlib.error):
            data = unpacker.decompress(packed, MEMBER_BYTES + 1)
            if hashlib.sha256(data).hexdigest() == digest:
                return data
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None

    def store(self, data: bytes) -> str:
        """Keep the contents, if they are not kept already; their SHA-256 in hexadecimal."""
        digest = hashlib.sha256(data).hexdigest()
        if not self.has(digest):
            self._write(self._blob_path(digest), zlib.compress(data, 6))
        return digest

    @contextlib.contextmanager
    def locked(self, indexes: str, name: str, version: str) -> Iterator[None]:
        """Keep other processes from fetching the same release meanwhile."""
        import filelock

        lock = self.folder / "locks" / f"{indexes}-{name}-{version}.lock"
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(lock):
                yield
        except PermissionError as error:
            raise self._unwritable(error) from error

    def _blob_path(self, digest: str) -> str:
        return f"{self._blobs}{os.sep}{digest[:2]}{os.sep}{digest[2:]}"

    def _manifest_path(self, indexes: str, name: str, version: str) -> str:
        return os.path.join(self.folder, "releases", indexes, name, f"{version}.manifest")

    def _write(self, path: str, data: bytes) -> None:
        try:
            parent = os.path.dirname(path)
            if not os.path.isdir(parent):
                os.makedirs(parent, exist_ok=True)
                tag = self.folder / "CACHEDIR.TAG"
                if not tag.exists():
                    tag.write_text(_TAG)
            descriptor, temporary = tempfile.mkstemp(dir=parent, prefix=".writing-")
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

    def _unwritable(self, error: OSError) -> DriftcheckError:
        reason = error.strerror or str(error)
        return DriftcheckError(
            f"cannot write to the cache folder {self.folder}: {reason}; name another one with DRIFTCHECK_CACHE_DIR"
        )


def _parse(head: bytes, body: bytes) -> Manifest | None:
    """The manifest from its two parts, None where they are damaged or of another format."""
    try:
        about = json.loads(head)
        if about["format"] != _FORMAT or about["body"] != hashlib.sha256(body).hexdigest():
            return None
        digests: dict[str, str] = {}
        for line in body.decode().split("\n"):
            digest, _, path = line.partition(" ")
            if path:
                digests[path] = digest
        return Manifest(
            name=about["name"],
            version=about["version"],
            file=about["file"],
            digests=digests,
            roots=tuple(about["roots"]),
            requirements=tuple(about["requirements"]),
            uploaded=about["uploaded"],
            modules=tuple(about["modules"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
