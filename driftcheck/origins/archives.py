"""What an archive may hold: the checks that every member's name, size and kind has to pass."""

from __future__ import annotations

import re
import stat
import zipfile
from collections.abc import Iterable

from driftcheck.errors import DriftcheckError
from driftcheck.origins.limits import MEMBER_BYTES, MEMBERS

_REFUSED = re.compile("[\x00-\x1f\x7f\\\\\ud800-\udfff]")


def check_name(name: str, archive: str) -> None:
    """Raise DriftcheckError where a member's name would lead out of the archive's folder or forge a line."""
    if (
        not name
        or name.startswith("/")
        or ".." in name.split("/")
        or name[1:2] == ":"
        or _REFUSED.search(name)
        or len(name) > 1000
    ):
        raise DriftcheckError(f"{archive} holds a member named {name[:80]!r}, which leaves its folder; it is refused")


def check_size(name: str, size: int, archive: str) -> None:
    """Raise DriftcheckError where a member that is to be read is larger than the bound."""
    if size > MEMBER_BYTES:
        raise DriftcheckError(f"{archive} holds {name} of {size:,} bytes, more than the {MEMBER_BYTES:,} that are read")


def check_members(infos: Iterable[zipfile.ZipInfo], archive: str) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by name; raises DriftcheckError for names, links, repetitions and numbers that are refused."""
    members: dict[str, zipfile.ZipInfo] = {}
    for count, info in enumerate(infos, 1):
        if count > MEMBERS:
            raise DriftcheckError(f"{archive} holds more than {MEMBERS:,} members; it is refused")
        # zipfile cuts a name at a null byte: the name as it stands in the archive is what counts.
        check_name(info.orig_filename, archive)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise DriftcheckError(f"{archive} holds the link {info.filename}; links are refused")
        if info.is_dir():
            continue
        if info.filename in members:
            raise DriftcheckError(f"{archive} holds {info.filename} twice; it is refused")
        members[info.filename] = info
    return members


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> bytes:
    """One member's bytes, no more than it declares and the bound allows; raises DriftcheckError for damage."""
    check_size(info.filename, info.file_size, name)
    if info.flag_bits & 0x1:
        raise DriftcheckError(f"{name} holds {info.filename} encrypted; it is refused")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DriftcheckError(f"{name} holds {info.filename} in a compression that wheels don't use; it is refused")
    with archive.open(info) as stream:
        data = stream.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise DriftcheckError(f"{name} is damaged: {info.filename} has not the size that the archive says")
    return data
