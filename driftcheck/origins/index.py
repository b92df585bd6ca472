"""Releases on the index: fetched once into the cache, read from there."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, BinaryIO, cast

from driftcheck.errors import DriftcheckError
from driftcheck.origins.cache import Cache, Manifest
from driftcheck.origins.index_settings import IndexSettings, read_index_settings
from driftcheck.origins.names import normalized, parsed_version, sorted_versions
from driftcheck.origins.settings import Settings

if TYPE_CHECKING:
    from driftcheck.origins.releases import ReleaseFile
    from driftcheck.origins.transport import Transport


class ReleaseTree:
    """A release of the index, read from the cache; contents that are missing or damaged there are fetched again."""

    origin = "release on the index"

    def __init__(self, manifest: Manifest, settings: Settings):
        self.manifest = manifest
        self.name = manifest.name
        self.version: str | None = manifest.version
        self.roots = manifest.roots
        self.requirements = manifest.requirements
        self._settings = settings
        self._cache = Cache(settings.cache)

    @property
    def paths(self) -> Collection[str]:
        return self.manifest.digests.keys()

    @property
    def uploaded(self) -> date | None:
        return date.fromisoformat(self.manifest.uploaded) if self.manifest.uploaded else None

    def digest(self, path: str) -> str:
        digest = self.manifest.digests[path]
        if not digest:
            raise DriftcheckError(f"{path} of {self.name} {self.version} is an extension module, which is not read")
        return digest

    def read(self, path: str) -> bytes:
        digest = self.digest(path)
        data = self._cache.read(digest)
        if data is None:
            heal(self.manifest, self._settings)
            data = self._cache.read(digest)
            if data is None:
                raise DriftcheckError(
                    f"{path} of {self.name} {self.version} is missing from the cache and the index no longer has it; "
                    f"remove {self._cache.folder} and try again"
                )
        return data


def release_tree(name: str, version: str, settings: Settings) -> ReleaseTree:
    """The release of that name and version ("latest" for the newest); from the cache where it is there.

    Raises DriftcheckError where the index can't be reached or has no such release, or the archive is refused.
    """
    indexes = read_index_settings()
    cache = Cache(settings.cache)
    if version == "latest":
        version = latest_version(name, settings)
    found = _cached(cache, indexes, name, version, settings)
    if found is None:
        found = _fetch(cache, indexes, name, version, settings)
    return ReleaseTree(found, settings)


def available_versions(name: str, settings: Settings) -> list[str]:
    """The releases on the index that are not yanked, oldest first; offline, the ones in the cache."""
    from driftcheck.origins import releases

    indexes = read_index_settings()
    if settings.offline:
        cached = Cache(settings.cache).versions(indexes.key, normalized(name))
        return [str(version) for version in sorted_versions(cached)]
    return releases.offered_versions(project_files(name, settings))


def latest_version(name: str, settings: Settings) -> str:
    """The newest final release; raises DriftcheckError where there is none."""
    from driftcheck.origins import releases

    newest = releases.newest(available_versions(name, settings))
    if newest is None:
        where = "in the cache, and --offline allows nothing else" if settings.offline else "on the index"
        raise DriftcheckError(f"no release of {name} {where}")
    return newest


def project_files(name: str, settings: Settings) -> list[ReleaseFile]:
    """Every wheel and source distribution of a project on the user's indexes."""
    from driftcheck.origins import releases
    from driftcheck.origins.transport import Transport

    indexes = read_index_settings()
    with contextlib.closing(Transport(indexes, settings.progress)) as transport:
        return releases.all_files(transport, indexes, name)


def heal(manifest: Manifest, settings: Settings) -> None:
    """Fetch again what the cache has lost of a release; raises DriftcheckError where that is impossible."""
    label = f"{manifest.name} {manifest.version}"
    if settings.offline:
        raise DriftcheckError(
            f"the cache has lost files of {label}, and --offline allows no fetching: run once without it"
        )
    cache = Cache(settings.cache)
    for digest in set(manifest.digests.values()) - {""}:
        # Reading removes what is damaged, so that all of it is fetched in one go.
        cache.read(digest)
    _fetch(cache, read_index_settings(), manifest.name, manifest.version, settings, again=True)


def _cached(cache: Cache, indexes: IndexSettings, name: str, version: str, settings: Settings) -> Manifest | None:
    """The manifest of the release if it is cached, under this spelling of the version or another one."""
    key, project = indexes.key, normalized(name)
    found = cache.manifest(key, project, version)
    if found is not None:
        return found
    stored = cache.versions(key, project)
    wanted = parsed_version(version) if stored or settings.offline else None
    for text in stored:
        if wanted is not None and parsed_version(text) == wanted and (found := cache.manifest(key, project, text)):
            return found
    if settings.offline:
        near = ", ".join(sorted(stored)) or "no other one"
        raise DriftcheckError(f"{name} {version} is not in the cache ({near} is), and --offline allows nothing else")
    return None


def _fetch(
    cache: Cache, indexes: IndexSettings, name: str, version: str, settings: Settings, *, again: bool = False
) -> Manifest:
    """Read the release from the index into the cache, once among all processes."""
    from driftcheck.origins import releases
    from driftcheck.origins.transport import Transport

    project = normalized(name)
    with contextlib.closing(Transport(indexes, settings.progress)) as transport:
        with cache.locked(indexes.key, project, version):
            if not again and (found := cache.manifest(indexes.key, project, version)):
                return found
            file = releases.best_file(releases.files_of_release(transport, indexes, name, version))
            manifest = _read(cache, transport, file, name)
            cache.store_manifest(indexes.key, manifest)
        return manifest


def _read(cache: Cache, transport: Transport, file: ReleaseFile, name: str) -> Manifest:
    from driftcheck.origins.ranges import TAIL_BYTES, RemoteFile
    from driftcheck.origins.sdists import read_sdist
    from driftcheck.origins.transport import local_path
    from driftcheck.origins.wheels import read_wheel

    label = f"{name} {file.version}"
    contents = None
    if file.is_wheel and local_path(file.url) is None and (file.size is None or file.size > TAIL_BYTES):
        answer = transport.tail(file.url, TAIL_BYTES, file.size)
        if answer is not None:
            tail, size = answer
            remote = RemoteFile(transport, file.url, size, tail)
            contents = read_wheel(cast(BinaryIO, remote), file.name, cache, label)
    if contents is None:
        with tempfile.TemporaryFile() as stream:
            transport.download(file.url, cast(BinaryIO, stream), label)
            _check_file(cast(BinaryIO, stream), file)
            stream.seek(0)
            if file.is_wheel:
                contents = read_wheel(stream, file.name, cache, label)
            else:
                contents = read_sdist(cast(BinaryIO, stream), file.name, cache)
    # The cache files a release under what was asked for; what the archive says of itself may only spell it nicer.
    said = contents.metadata.name or ""
    return Manifest(
        name=said if normalized(said) == normalized(name) else name,
        version=str(parsed_version(file.version) or file.version),
        file=file.name,
        digests=contents.digests,
        roots=contents.roots,
        requirements=contents.metadata.requirements,
        uploaded=file.uploaded.isoformat() if file.uploaded else "",
    )


def _check_file(stream: BinaryIO, file: ReleaseFile) -> None:
    """Raise DriftcheckError where a whole file is not the one that the index names."""
    if file.sha256 is None:
        return
    stream.seek(0)
    found = hashlib.sha256()
    while piece := stream.read(1 << 20):
        found.update(piece)
    if found.hexdigest() != file.sha256:
        raise DriftcheckError(f"{file.name} does not match the hash that the index gives; it is refused")
