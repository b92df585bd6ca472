"""Files as other readers see them. That torch and safetensors read them is asked in `tests/real/test_extract.py`."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
import zlib
from array import array
from collections import OrderedDict
from typing import Any

import pytest

from driftcheck.extract.layouts import LAYOUTS, SafetensorsLayout, Sample, Shape, TorchLayout

SHAPE = Shape(layers=3, hidden_size=4, dtype="bfloat16")
SAMPLE = Sample(5, [7, 8, 9, 300], b"\0\1\1\0")
STATES = bytes(range(96))


def written(layout: Any, sample: Sample = SAMPLE) -> tuple[bytes, dict[str, str]]:
    file = io.BytesIO()
    checksums = layout.write(file, sample, SHAPE, memoryview(STATES))
    return file.getvalue(), checksums


class Reader(pickle.Unpickler):
    """Reads the pickle of a file of torch's without torch: tensors become what they are made of."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda *parts: parts
        assert module == "torch"
        return name

    def persistent_load(self, identity: Any) -> Any:
        return identity


def test_torch_s_file_holds_tokens_layers_and_mask() -> None:
    content, checksums = written(TorchLayout())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        read = {name.removeprefix("archive/"): archive.read(name) for name in archive.namelist()}
        for entry in archive.infolist():
            # Readers that map the file into memory want numbers at multiples of 64 bytes.
            name_length, extra_length = struct.unpack_from("<HH", content, entry.header_offset + 26)
            assert (entry.header_offset + 30 + name_length + extra_length) % 64 == 0
            assert entry.compress_type == zipfile.ZIP_STORED
    tensors = Reader(io.BytesIO(read["data.pkl"])).load()
    assert list(tensors) == ["input_ids", "hidden_states", "loss_mask"]
    assert tensors["input_ids"] == (("storage", "LongStorage", "0", "cpu", 4), 0, (4,), (1,), False, OrderedDict())
    assert [tensor[0] for tensor in tensors["hidden_states"]] == [
        ("storage", "BFloat16Storage", str(place), "cpu", 16) for place in (1, 2, 3)
    ]
    assert {tensor[2:4] for tensor in tensors["hidden_states"]} == {((4, 4), (4, 1))}
    assert tensors["loss_mask"][0] == ("storage", "LongStorage", "4", "cpu", 4)
    assert read["data/0"] == array("q", [7, 8, 9, 300]).tobytes()
    assert [read[f"data/{place}"] for place in (1, 2, 3)] == [STATES[:32], STATES[32:64], STATES[64:]]
    assert read["data/4"] == array("q", [0, 1, 1, 0]).tobytes()
    assert (read["version"], read["byteorder"]) == (b"3\n", b"little")
    assert checksums == {str(place): f"{zlib.crc32(read[f'data/{place}']):08x}" for place in range(5)}


def test_safetensors_file_holds_tokens_mask_and_states() -> None:
    content, checksums = written(SafetensorsLayout())
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    tensors = {name: content[8 + length :][slice(*entry.pop("data_offsets"))] for name, entry in header.items()}
    assert length % 8 == 0
    assert header == {
        "token_ids": {"dtype": "I64", "shape": [4]},
        "loss_mask": {"dtype": "I64", "shape": [4]},
        "hidden_states": {"dtype": "BF16", "shape": [4, 3, 4]},
    }
    assert tensors == {
        "token_ids": array("q", [7, 8, 9, 300]).tobytes(),
        "loss_mask": array("q", [0, 1, 1, 0]).tobytes(),
        "hidden_states": STATES,
    }
    assert checksums == {name: f"{zlib.crc32(tensor):08x}" for name, tensor in tensors.items()}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: layout.name)
def test_checksums_are_read_from_the_file(layout: Any) -> None:
    content, checksums = written(layout)
    assert layout.read_checksums(io.BytesIO(content)) == checksums


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: layout.name)
def test_no_damage_goes_unseen(layout: Any) -> None:
    content, checksums = written(layout)
    for place in range(len(content) - 8):
        damaged = bytearray(content)
        damaged[place] ^= 1
        try:
            found = layout.read_checksums(io.BytesIO(bytes(damaged)))
        except (ValueError, NotImplementedError, RuntimeError):
            continue
        # What is left is names, dates, padding and what the header says of types: no number is another.
        if found == checksums:
            assert STATES in bytes(damaged) or layout.name == "speculators"
    for length in (0, 7, 100, len(content) - 1):
        with pytest.raises(ValueError):  # noqa: PT011 (what zipfile says of it is its own)
            layout.read_checksums(io.BytesIO(content[:length]))


def test_without_a_mask_training_looks_at_all_tokens() -> None:
    with_mask, _ = written(TorchLayout(), Sample(5, [7, 8, 9, 300], b"\1\1\1\1"))
    without, _ = written(TorchLayout(), Sample(5, [7, 8, 9, 300]))
    assert without == with_mask
