"""Small wheels and source distributions, sound ones and hostile ones."""

from __future__ import annotations

import base64
import hashlib
import io
import random
import tarfile
import zipfile
from collections.abc import Callable, Mapping

Files = Mapping[str, str | bytes]


def as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def record_line(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(data)}"


def metadata(name: str, version: str, requirements: tuple[str, ...] = ()) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {requirement}" for requirement in requirements), "", ""])


def wheel(
    name: str,
    version: str,
    files: Files,
    *,
    requirements: tuple[str, ...] = (),
    record: Callable[[str], str] | None = None,
    tamper: Callable[[zipfile.ZipFile], None] | None = None,
) -> bytes:
    """The bytes of a wheel; `record` may falsify RECORD, `tamper` may add members after everything else."""
    information = f"{name}-{version}.dist-info"
    everything: dict[str, bytes] = {path: as_bytes(data) for path, data in files.items()}
    everything[f"{information}/METADATA"] = metadata(name, version, requirements).encode()
    everything[f"{information}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    lines = [record_line(path, data) for path, data in everything.items()]
    text = "\n".join([*lines, f"{information}/RECORD,,", ""])
    everything[f"{information}/RECORD"] = (record(text) if record else text).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in everything.items():
            archive.writestr(zipfile.ZipInfo(path), data, compress_type=zipfile.ZIP_DEFLATED)
        if tamper:
            tamper(archive)
    return stream.getvalue()


def sdist(
    name: str,
    version: str,
    files: Files,
    *,
    requirements: tuple[str, ...] = (),
    members: tuple[tarfile.TarInfo, ...] = (),
) -> bytes:
    """The bytes of a .tar.gz; `members` are added without contents after the files."""
    top = f"{name}-{version}"
    everything = {"PKG-INFO": metadata(name, version, requirements)} | dict(files)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, text in everything.items():
            data = as_bytes(text)
            info = tarfile.TarInfo(f"{top}/{path}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in members:
            archive.addfile(info, io.BytesIO(b"x" * info.size))
    return stream.getvalue()


def noise(length: int, seed: int = 0) -> bytes:
    """Bytes that don't compress, always the same ones."""
    return random.Random(seed).randbytes(length)
