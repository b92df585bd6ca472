# mypy: disable-error-code="import-not-found"
"""How one sample becomes a file: the layouts that speculators trains from, written without torch."""

from __future__ import annotations

import functools
import json
import struct
import zipfile
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_STORAGES = {"bfloat16": "BFloat16Storage", "float16": "HalfStorage", "float32": "FloatStorage"}
_SAFE_NAMES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
_ALIGNMENT = 64
_LARGE = 1 << 31
_SMALL = 1 << 12
DATA_TYPES = tuple(_BYTES)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is captured of every token: how many layers, of how many numbers, of which type."""

    layers: int
    hidden_size: int
    dtype: str

    @property
    def row(self) -> int:
        """The bytes of one token in one layer."""
        return self.hidden_size * _BYTES[self.dtype]

    @property
    def token(self) -> int:
        """The bytes of one token in all layers."""
        return self.row * self.layers


@dataclass(frozen=True, slots=True)
class Sample:
    """A prompt: its number in the data, its tokens, and for each of them whether training looks at it."""

    number: int
    tokens: Sequence[int]
    loss_mask: bytes | None = None

    @property
    def mask(self) -> bytes:
        """A byte a token; where the data have no mask, training looks at all of them."""
        return b"\1" * len(self.tokens) if self.loss_mask is None else self.loss_mask


class Layout(Protocol):
    """One way to write samples."""

    name: str
    by_token: bool
    """True where a token's layers stand together, False where a layer's tokens do."""

    def path(self, number: int) -> str:
        """Where a sample's file stands below the output folder."""

    def write(self, file: BinaryIO, sample: Sample, shape: Shape, states: memoryview) -> dict[str, str]:
        """Writes a sample whole and gives the CRC-32 of each of its tensors, in hexadecimal."""

    def read_checksums(self, file: BinaryIO) -> dict[str, str]:
        """The same of a file that is there; raises ValueError where it is no whole file of this layout."""


class SafetensorsLayout:
    """What speculators 0.5 and later read: `[tokens, layers, hidden]` and `token_ids`, in one safetensors file."""

    name = "safetensors"
    by_token = True

    def path(self, number: int) -> str:
        return f"hidden_states/hs_{number}.safetensors"

    def write(self, file: BinaryIO, sample: Sample, shape: Shape, states: memoryview) -> dict[str, str]:
        count = len(sample.tokens)
        tensors: list[tuple[str, str, list[int], memoryview]] = [
            ("token_ids", "I64", [count], _integers(sample.tokens)),
            ("loss_mask", "I64", [count], _integers(sample.mask)),
            ("hidden_states", _SAFE_NAMES[shape.dtype], [count, shape.layers, shape.hidden_size], states),
        ]
        header: dict[str, object] = {}
        end = 0
        for name, dtype, size, content in tensors:
            header[name] = {"dtype": dtype, "shape": size, "data_offsets": [end, end + content.nbytes]}
            end += content.nbytes
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, _, content in tensors:
            file.writelines(_parts(content))
        return {name: _hexadecimal(crc32()(content)) for name, _, _, content in tensors}

    def read_checksums(self, file: BinaryIO) -> dict[str, str]:
        length = int.from_bytes(file.read(8), "little")
        try:
            header = json.loads(file.read(length)) if 0 < length < 1 << 20 else None
            entries = {name: entry["data_offsets"] for name, entry in header.items()} if header else {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError("its header can't be read") from error
        if not entries:
            raise ValueError("its header can't be read")
        checksums = {}
        for name, (begin, end) in entries.items():
            file.seek(8 + length + begin)
            checksums[name] = _checksum(file, end - begin)
        if file.read(1):
            raise ValueError("there is more in it than its header says")
        return checksums


class TorchLayout:
    """What speculators 0.3 and 0.4 read: a file of `torch.save` with a list of layers, tokens and loss mask."""

    name = "speculators"
    by_token = False

    def path(self, number: int) -> str:
        return f"data_{number}.pt"

    def write(self, file: BinaryIO, sample: Sample, shape: Shape, states: memoryview) -> dict[str, str]:
        count = len(sample.tokens)
        layer = count * shape.row
        storages = [
            _integers(sample.tokens),
            *(states[place * layer : (place + 1) * layer] for place in range(shape.layers)),
            _integers(sample.mask),
        ]
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            _add(archive, file, "data.pkl", memoryview(_pickled(count, shape)))
            _add(archive, file, "byteorder", memoryview(b"little"))
            for key, storage in enumerate(storages):
                _add(archive, file, f"data/{key}", storage)
            _add(archive, file, "version", memoryview(b"3\n"))
            return _checksums_of(archive)

    def read_checksums(self, file: BinaryIO) -> dict[str, str]:
        try:
            with zipfile.ZipFile(file) as archive:
                damaged = archive.testzip()
                if damaged is not None:
                    raise ValueError(f"{damaged} in it is damaged")
                return _checksums_of(archive)
        except zipfile.BadZipFile as error:
            raise ValueError(str(error)) from error


LAYOUTS: Mapping[str, Layout] = {layout.name: layout for layout in (TorchLayout(), SafetensorsLayout())}


def _checksums_of(archive: zipfile.ZipFile) -> dict[str, str]:
    prefix = "archive/data/"
    return {
        entry.filename.removeprefix(prefix): _hexadecimal(entry.CRC)
        for entry in archive.infolist()
        if entry.filename.startswith(prefix)
    }


def _add(archive: zipfile.ZipFile, file: BinaryIO, name: str, content: memoryview) -> None:
    """Adds a file whose content begins at a multiple of 64 bytes, as readers that map it into memory want."""
    entry = zipfile.ZipInfo(f"archive/{name}")
    is_large = content.nbytes >= _LARGE
    begin = file.tell() + 30 + len(entry.filename) + (20 if is_large else 0)
    padding = -(begin + 4) % _ALIGNMENT
    entry.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    entry.file_size, entry.external_attr = content.nbytes, 0o600 << 16
    if content.nbytes < _SMALL:
        archive.writestr(entry, bytes(content))
        return
    # `archive.open` would take its own checksum, which is slower than writing the content is.
    entry.compress_size, entry.CRC, entry.header_offset = content.nbytes, crc32()(content), file.tell()
    file.write(entry.FileHeader(is_large))
    file.writelines(_parts(content))
    archive.filelist.append(entry)
    archive.NameToInfo[entry.filename] = entry
    archive.start_dir = file.tell()


@functools.cache
def crc32() -> Callable[..., int]:
    """The function that takes checksums: six times as fast where zlib-ng is installed, and equal everywhere."""
    try:
        from zlib_ng import zlib_ng
    except ImportError:
        from zlib import crc32
    else:
        crc32 = zlib_ng.crc32
    return crc32


def _integers(values: Sequence[int]) -> memoryview:
    return memoryview(array("q", list(values))).cast("B")  # of bytes, an array would take the raw content


def _hexadecimal(checksum: int) -> str:
    return f"{checksum:08x}"


def _parts(content: memoryview) -> Iterator[memoryview]:
    """A buffer in parts that one system call takes."""
    size = 1 << 30
    for begin in range(0, content.nbytes, size):
        yield content[begin : begin + size]


def _checksum(file: BinaryIO, length: int) -> str:
    checksum = 0
    while length:
        part = file.read(min(length, 1 << 22))
        if not part:
            raise ValueError("it ends early")
        checksum = crc32()(part, checksum)
        length -= len(part)
    return _hexadecimal(checksum)


def _pickled(tokens: int, shape: Shape) -> bytes:
    """The pickle that `torch.load` reads: a dictionary of tensors, each a view of a storage that stands beside it."""
    keys = iter(range(shape.layers + 2))
    integers = _tensor(next(keys), "LongStorage", (tokens,))
    states = b"".join(
        _tensor(next(keys), _STORAGES[shape.dtype], (tokens, shape.hidden_size)) for _ in range(shape.layers)
    )
    mask = _tensor(next(keys), "LongStorage", (tokens,))
    listed = b"](" + states + b"e"
    content = _text("input_ids") + integers + _text("hidden_states") + listed + _text("loss_mask") + mask
    return b"\x80\x02}(" + content + b"u."


def _tensor(key: int, storage: str, size: tuple[int, ...]) -> bytes:
    strides = (size[1], 1) if len(size) == 2 else (1,)
    numbers = size[0] * strides[0]
    place = b"(" + _text("storage") + _global("torch", storage) + _text(str(key)) + _text("cpu") + _int(numbers) + b"tQ"
    view = _int(0) + b"(" + b"".join(map(_int, size)) + b"t(" + b"".join(map(_int, strides)) + b"t"
    hooks = _global("collections", "OrderedDict") + b")R"
    return _global("torch._utils", "_rebuild_tensor_v2") + b"(" + place + view + b"\x89" + hooks + b"tR"


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    encoded = text.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def _int(number: int) -> bytes:
    if number < 1 << 31:
        return b"J" + struct.pack("<i", number)
    return b"\x8a\x08" + struct.pack("<q", number)
