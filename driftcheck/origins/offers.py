"""Which versions an index offers of a project and when they came out; the answer is kept for the next time."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.origins.cache import Cache
from driftcheck.origins.index_settings import read_index_settings
from driftcheck.origins.names import normalized, parsed_version, sorted_versions

if TYPE_CHECKING:
    from driftcheck.origins.releases import ReleaseFile
    from driftcheck.origins.settings import Settings

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Offer:
    """One version that an index offers; `uploaded` is the day its first file came, None where the index is silent."""

    version: str
    uploaded: date | None = None
    yanked: bool = False


def offers(name: str, settings: Settings, *, known_on: date | None = None) -> tuple[Offer, ...]:
    """What the index offers of a project, oldest version first.

    An earlier answer is used where it was given after the day `known_on`, and always when offline; offline without
    one, the releases in the cache are what is offered. Raises DriftcheckError where the index can't be reached or
    doesn't know the project.
    """
    indexes = read_index_settings()
    cache = Cache(settings.cache)
    place = cache.project_file(indexes.key, normalized(name))
    earlier = _read(place)
    if earlier is not None and (settings.offline or (known_on is not None and earlier[0] > known_on)):
        return earlier[1]
    if settings.offline:
        return _cached(cache, indexes.key, normalized(name))

    from driftcheck.origins import releases
    from driftcheck.origins.transport import Transport

    with contextlib.closing(Transport(indexes, settings)) as transport:
        found = _gathered(releases.all_files(transport, indexes, name))
    rows = [[offer.version, offer.uploaded.isoformat() if offer.uploaded else "", offer.yanked] for offer in found]
    # Where it can't be kept, the index is asked again the next time.
    with contextlib.suppress(DriftcheckError):
        cache.write(place, json.dumps({"format": _FORMAT, "asked": time.time(), "offers": rows}).encode())
    return found


def _gathered(files: Iterable[ReleaseFile]) -> tuple[Offer, ...]:
    """One offer a version: uploaded with its first file, yanked when all its files are."""
    by_version: dict[str, list[ReleaseFile]] = {}
    for file in files:
        version = parsed_version(file.version)
        if version is not None:
            by_version.setdefault(str(version), []).append(file)
    return tuple(
        Offer(
            version=str(version),
            uploaded=min((file.uploaded for file in by_version[str(version)] if file.uploaded), default=None),
            yanked=all(file.yanked for file in by_version[str(version)]),
        )
        for version in sorted_versions(by_version)
    )


def _cached(cache: Cache, key: str, project: str) -> tuple[Offer, ...]:
    found = []
    for version in sorted_versions(cache.versions(key, project)):
        manifest = cache.manifest(key, project, str(version))
        if manifest is not None:
            uploaded = date.fromisoformat(manifest.uploaded) if manifest.uploaded else None
            found.append(Offer(str(version), uploaded))
    return tuple(found)


def _read(place: str) -> tuple[date, tuple[Offer, ...]] | None:
    """The day of the earlier answer and what it said, None where there is none or it is damaged."""
    try:
        with open(place, "rb") as stream:
            kept = json.load(stream)
        if kept["format"] != _FORMAT:
            return None
        asked = datetime.fromtimestamp(kept["asked"], timezone.utc).date()
        return asked, tuple(
            Offer(version, date.fromisoformat(uploaded) if uploaded else None, bool(yanked))
            for version, uploaded, yanked in kept["offers"]
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
