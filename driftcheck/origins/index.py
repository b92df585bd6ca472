"""Releases on the index: fetched once into the cache, read from there."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.origins.cache import Cache, Manifest
from driftcheck.origins.index_settings import IndexSettings, read_index_settings
from driftcheck.origins.names import normalized, parsed_version, sorted_versions

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from driftcheck.origins.settings import Settings

_NEIGHBOURS = 2


class ReleaseTree:
    """A release of the index, read from the cache; contents that are missing or damaged there are fetched again."""

    origin = "release on the index"

    def __init__(self, manifest: Manifest, settings: Settings):
        self.name = manifest.name
        self.version: str | None = manifest.version
        self.roots = manifest.roots
        self.requirements = manifest.requirements
        self._manifest = manifest
        self._settings = settings
        self._cache = Cache(settings.cache)

    def __reduce__(self) -> tuple[object, ...]:
        return ReleaseTree, (self._manifest, replace(self._settings, progress=None))

    @property
    def file(self) -> str:
        """The name of the archive on the index."""
        return self._manifest.file

    @property
    def cache_folder(self) -> Path:
        """The folder in which the release is kept, and what else is learned of it."""
        return self._cache.folder

    @property
    def paths(self) -> Collection[str]:
        return self._manifest.entries.keys()

    @property
    def uploaded(self) -> date | None:
        return date.fromisoformat(self._manifest.uploaded) if self._manifest.uploaded else None

    def digest(self, path: str) -> str:
        entry = self._manifest.entries[path]
        if not entry:
            raise DriftcheckError(f"{path} of {self.name} {self.version} is an extension module, which is not read")
        return entry[:64]

    def read(self, path: str) -> bytes:
        digest = self.digest(path)
        place = self._manifest.place(path)
        data = self._cache.read(place) if place else None
        if data is None:
            self._manifest = _healed(self._cache, self._manifest, self._settings)
            place = self._manifest.place(path) if path in self._manifest.entries else None
            data = self._cache.read(place) if place and place.digest == digest else None
        if data is None:
            raise DriftcheckError(
                f"{path} of {self.name} {self.version} is lost from the cache, and the index has other contents now; "
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
    if settings.offline:
        cached = Cache(settings.cache).versions(read_index_settings().key, normalized(name))
        return [str(version) for version in sorted_versions(cached)]
    from driftcheck.origins.offers import offers

    return [offer.version for offer in offers(name, settings) if not offer.yanked]


def latest_version(name: str, settings: Settings) -> str:
    """The newest final release; raises DriftcheckError where there is none."""
    from driftcheck.origins.names import newest

    found = newest(available_versions(name, settings))
    if found is None:
        where = "in the cache, and --offline allows nothing else" if settings.offline else "on the index"
        raise DriftcheckError(f"no release of {name} {where}")
    return found


def _cached(cache: Cache, indexes: IndexSettings, name: str, version: str, settings: Settings) -> Manifest | None:
    """The manifest of the release if it is cached, under this spelling of the version or another one."""
    key, project = indexes.key, normalized(name)
    found = cache.manifest(key, project, version)
    if found is not None:
        return found
    stored = cache.versions(key, project)
    wanted = parsed_version(version) if stored else None
    for text in stored:
        if wanted is not None and parsed_version(text) == wanted and (found := cache.manifest(key, project, text)):
            return found
    for text in stored:
        # `==1.0` was answered with 1.0+cpu, the index having no other.
        if (
            wanted is not None
            and text.partition("+")[0] == str(wanted)
            and (found := cache.manifest(key, project, text))
        ):
            return found
    if settings.offline:
        there = f"only {', '.join(stored)} of it" if stored else "no release of it"
        raise DriftcheckError(
            f"{name} {version} is not in the cache ({there} is), and --offline allows nothing else; run once without it"
        )
    return None


def _healed(cache: Cache, manifest: Manifest, settings: Settings) -> Manifest:
    """The manifest after what the cache has lost of the release was fetched again, in one go."""
    indexes = read_index_settings()
    if settings.offline:
        raise DriftcheckError(
            f"the cache has lost files of {manifest.name} {manifest.version}, and --offline allows no fetching; "
            "run once without it"
        )
    return _fetch(cache, indexes, manifest.name, manifest.version, settings, damaged=True)


def _fetch(
    cache: Cache, indexes: IndexSettings, name: str, version: str, settings: Settings, *, damaged: bool = False
) -> Manifest:
    """Read the release from the index into the cache, once among all processes."""
    from driftcheck.origins import releases
    from driftcheck.origins.cache import Contents
    from driftcheck.origins.fetch import read_release
    from driftcheck.origins.transport import Transport

    project = normalized(name)
    with (
        contextlib.closing(Transport(indexes, settings)) as transport,
        cache.locked(indexes.key, project, version),
    ):
        found = cache.manifest(indexes.key, project, version)
        lost = _lost(cache, found) if found and damaged else set()
        if found is not None and not lost:
            return found
        places = cache.places(indexes.key, project, _neighbours(cache.versions(indexes.key, project), version))
        contents = Contents({digest: place for digest, place in places.items() if digest not in lost})
        file = releases.best_file(releases.files_of_release(transport, indexes, name, version))
        listing = read_release(transport, file, contents, f"{name} {file.version}")
        packs, entries = contents.store(cache, listing.digests)
        said = listing.metadata.name or ""
        manifest = Manifest(
            # The cache files a release under what was asked for; the archive may only spell it nicer.
            name=said if normalized(said) == project else name,
            version=str(parsed_version(file.version) or version),
            file=file.name,
            packs=packs,
            entries=entries,
            roots=listing.roots,
            requirements=listing.metadata.requirements,
            uploaded=file.uploaded.isoformat() if file.uploaded else "",
        )
        cache.store_manifest(indexes.key, manifest)
        return manifest


def _neighbours(stored: Sequence[str], version: str) -> list[str]:
    """The cached releases that have most files in common with this one, and the release itself."""
    wanted = parsed_version(version)
    by_version = {parsed: text for text in stored if (parsed := parsed_version(text)) is not None}
    if wanted is None:
        return []
    near = [
        *sorted(parsed for parsed in by_version if parsed < wanted)[-_NEIGHBOURS:],
        *sorted(parsed for parsed in by_version if parsed > wanted)[:_NEIGHBOURS],
    ]
    return [by_version[parsed] for parsed in ([wanted] if wanted in by_version else []) + near]


def _lost(cache: Cache, manifest: Manifest) -> set[str]:
    """The hashes of the release's contents that the cache can no longer give."""
    places = {place for path in manifest.entries if (place := manifest.place(path)) is not None}
    return {place.digest for place in places if cache.read(place) is None}
