"""Archives from elsewhere: the checks that every member's name, size and kind has to pass, and bounded reading."""

from __future__ import annotations

import io
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, cast

from driftcheck.errors import DriftcheckError
from driftcheck.origins.limits import DIRECTORY_BYTES, MEMBER_BYTES, MEMBERS

_REFUSED = re.compile("[\x00-\x1f\x7f\\\\\ud800-\udfff]")


DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    RecursionError,
)
"""What the standard library raises for archives that are damaged or made to do damage."""


def damage(error: Exception) -> str:
    """What is wrong with an archive, in words on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


class BoundedReader:
    """A stream for zipfile and tarfile, which read as much at once as a hostile archive tells them to.

    `at_once` bounds one read, `in_all` how far into the stream they may get.
    """

    def __init__(self, stream: IO[bytes], name: str, *, at_once: int, in_all: int | None = None):
        self._stream = stream
        self._name = name
        self.at_once: int | None = at_once
        self._in_all = in_all

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_SET:
            self._check(offset)
        return self._stream.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        if self.at_once is None:
            data = self._stream.read(size)
        else:
            data = self._stream.read(size if 0 <= size <= self.at_once else self.at_once + 1)
            if len(data) > self.at_once:
                raise DriftcheckError(f"{self._name} has a header of more than {self.at_once:,} bytes; it is refused")
        self._check(self._stream.tell())
        return data

    def _check(self, position: int) -> None:
        if self._in_all is not None and position > self._in_all:
            raise DriftcheckError(f"{self._name} unpacks to more than {self._in_all:,} bytes; it is refused")


def open_zip(stream: IO[bytes], name: str) -> zipfile.ZipFile:
    """The zip, its directory within the bound; raises as zipfile does where it is damaged."""
    reader = BoundedReader(stream, name, at_once=DIRECTORY_BYTES)
    archive = zipfile.ZipFile(cast("IO[bytes]", reader))
    # From here on it is members that are read, and these are checked one by one.
    reader.at_once = None
    return archive


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
