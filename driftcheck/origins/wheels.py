"""A wheel read member by member: its Python files and metadata, each checked against RECORD."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from driftcheck.errors import DriftcheckError
from driftcheck.origins.archives import DAMAGE, check_members, check_size, damage, open_zip, read_member
from driftcheck.origins.cache import Contents
from driftcheck.origins.limits import EXTENSION_SUFFIXES, KEPT_BYTES, SOURCE_SUFFIXES
from driftcheck.origins.metadata import Metadata, parse_core_metadata, parse_record
from driftcheck.origins.ranges import RemoteFile

_METADATA = ("METADATA", "RECORD", "entry_points.txt", "top_level.txt")
_HASHES = ("sha256", "sha384", "sha512")


@dataclass(frozen=True, slots=True)
class Listing:
    """What was read of an archive: path to SHA-256 ("" for extension modules), import roots and metadata."""

    digests: Mapping[str, str]
    roots: tuple[str, ...]
    metadata: Metadata


def read_wheel(stream: IO[bytes], name: str, contents: Contents, label: str) -> Listing:
    """Add a wheel's sources and metadata to the contents; raises DriftcheckError for what is damaged or refused.

    Sources whose hash RECORD gives and the contents already have are not read.
    """
    try:
        with open_zip(stream, name) as archive:
            return _read(archive, stream, name, contents, label)
    except DAMAGE as error:
        raise DriftcheckError(f"{name} is damaged or no wheel: {damage(error)}") from error


def _read(archive: zipfile.ZipFile, stream: IO[bytes], name: str, contents: Contents, label: str) -> Listing:
    members = check_members(archive.infolist(), name)
    information = _information_folder(members, name)
    record_info = members.get(f"{information}RECORD")
    if record_info is None:
        raise DriftcheckError(f"{name} has no RECORD, so that its files cannot be checked; it is refused")
    record_data = read_member(archive, record_info, name)
    record = parse_record(record_data)

    data_folder = information.removesuffix(".dist-info/") + ".data/"
    libraries = tuple(f"{data_folder}{part}/" for part in ("purelib", "platlib"))
    wanted = {f"{information}{part}" for part in _METADATA} & members.keys() - {record_info.filename}
    for path in members:
        if path.endswith(SOURCE_SUFFIXES) and (not path.startswith(data_folder) or path.startswith(libraries)):
            wanted.add(path)
    digests = dict.fromkeys((path for path in members if path.endswith(EXTENSION_SUFFIXES)), "")
    digests[record_info.filename] = contents.add(record_data)

    about = f"{information}METADATA"
    missing = []
    total = 0
    for path in sorted(wanted):
        check_size(path, members[path].file_size, name)
        total += members[path].file_size
        known = _sha256(record.get(path, ""))
        if known is not None and path != about and contents.has(known):
            digests[path] = known
        else:
            missing.append(members[path])
    if total > KEPT_BYTES:
        raise DriftcheckError(f"{name} holds {total:,} bytes of sources, more than the {KEPT_BYTES:,} that are read")
    if isinstance(stream, RemoteFile):
        stream.fetch(_spans(missing, list(members.values()), archive.start_dir), label)
    metadata = Metadata()
    for info in missing:
        data = read_member(archive, info, name)
        _check_hash(info.filename, data, record, name)
        digests[info.filename] = contents.add(data)
        if info.filename == about:
            metadata = parse_core_metadata(data)

    roots = [root for root in libraries if any(path.startswith(root) for path in digests)]
    return Listing(digests, ("", *roots), metadata)


def _information_folder(members: Mapping[str, object], name: str) -> str:
    folders = {path.partition("/")[0] + "/" for path in members if path.partition("/")[0].endswith(".dist-info")}
    if len(folders) != 1:
        raise DriftcheckError(f"{name} has {len(folders)} .dist-info folders instead of one; it is no wheel")
    return folders.pop()


def _spans(wanted: list[zipfile.ZipInfo], members: list[zipfile.ZipInfo], end: int) -> list[tuple[int, int]]:
    """Where the wanted members lie: each reaches to the next member's header, since headers vary in length."""
    starts = sorted(info.header_offset for info in members)
    following = dict(zip(starts, [*starts[1:], end], strict=True))
    return [(info.header_offset, following[info.header_offset]) for info in wanted]


def _sha256(entry: str) -> str | None:
    """The SHA-256 in hexadecimal that a RECORD entry gives, None where it gives none."""
    algorithm, _, text = entry.partition("=")
    if algorithm != "sha256":
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    except ValueError:
        return None


def _check_hash(path: str, data: bytes, record: Mapping[str, str], name: str) -> None:
    algorithm, _, expected = record.get(path, "").partition("=")
    if algorithm not in _HASHES:
        raise DriftcheckError(f"{name} holds {path}, for which its RECORD has no hash; it is refused")
    found = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).decode().rstrip("=")
    if found != expected.rstrip("="):
        raise DriftcheckError(f"{name} is damaged: {path} does not match the hash in its RECORD")
