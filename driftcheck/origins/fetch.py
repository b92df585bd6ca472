"""One archive of the index read into contents: by ranges where that works, whole where it doesn't."""

from __future__ import annotations

import hashlib
import tempfile
from typing import TYPE_CHECKING, BinaryIO, cast

from driftcheck.errors import DriftcheckError
from driftcheck.origins.ranges import TAIL_BYTES, RemoteFile
from driftcheck.origins.sdists import read_sdist
from driftcheck.origins.transport import Transport, local_path
from driftcheck.origins.wheels import Listing, read_wheel

if TYPE_CHECKING:
    from driftcheck.origins.cache import Contents
    from driftcheck.origins.releases import ReleaseFile


def read_release(transport: Transport, file: ReleaseFile, contents: Contents, label: str) -> Listing:
    """Add what is wanted of a wheel or a source distribution to the contents.

    Raises DriftcheckError where the file can't be reached, is damaged or refused.
    """
    if file.is_wheel and local_path(file.url) is None and (file.size is None or file.size > TAIL_BYTES):
        answer = transport.tail(file.url, TAIL_BYTES, file.size)
        if answer is not None:
            tail, size = answer
            remote = RemoteFile(transport, file.url, size, tail)
            return read_wheel(cast("BinaryIO", remote), file.name, contents, label)
    with tempfile.TemporaryFile() as temporary:
        stream = cast("BinaryIO", temporary)
        transport.download(file.url, stream, label)
        _check_file(stream, file)
        stream.seek(0)
        if file.is_wheel:
            return read_wheel(stream, file.name, contents, label)
        return read_sdist(stream, file.name, contents)


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
