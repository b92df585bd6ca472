"""Outlines in one file for all releases: damage, a second process, and a full store cost time and nothing else."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from driftcheck.surface import outline_store
from driftcheck.surface.outline_store import OutlineStore, source_key

KEY, OTHER = source_key("x = 1\n"), source_key("y = 1\n")


def store(folder: Path) -> OutlineStore:
    return OutlineStore(folder / "outlines.sqlite")


def add_some(folder: Path, number: int) -> None:
    """Adds outlines one by one, as another process does."""
    for place in range(20):
        store(folder).add({source_key(f"{number} {place}"): f"outline {number} {place}"})


def test_what_is_added_is_found(tmp_path: Path) -> None:
    assert store(tmp_path).find(KEY) is None
    store(tmp_path).add({KEY: "x = 1  # \udcff é\n"})
    assert store(tmp_path).find(KEY) == "x = 1  # \udcff é\n"
    assert store(tmp_path).find(OTHER) is None


def test_a_reader_sees_what_is_added_later(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.add({KEY: "first"})
    assert kept.find(KEY) == "first"
    store(tmp_path).add({OTHER: "second"})
    assert kept.find(OTHER) == "second"


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(4000)])
def test_a_damaged_file_counts_as_empty_and_heals(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "outlines.sqlite").write_bytes(content)
    assert store(tmp_path).find(KEY) is None
    store(tmp_path).add({KEY: "x"})
    assert store(tmp_path).find(KEY) == "x"


def test_a_pipe_or_a_folder_in_its_place_counts_as_empty_and_stays(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (pipe, folder):
        kept = OutlineStore(path)
        kept.add({KEY: "x"})
        assert kept.find(KEY) is None
        assert path.exists() and not path.is_file()


def test_a_damaged_file_that_cannot_be_removed_counts_as_empty() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "outlines.sqlite").write_bytes(b"no database" * 100)
        os.chmod(folder, 0o555)
        user = os.geteuid()
        try:
            if user == 0:
                # The superuser may remove whatever there is: another one does not.
                os.seteuid(65534)
            store(Path(folder)).add({KEY: "x"})
            assert store(Path(folder)).find(KEY) is None
        finally:
            os.seteuid(user)
            os.chmod(folder, 0o755)
        assert (Path(folder) / "outlines.sqlite").read_bytes() == b"no database" * 100


def test_a_damaged_outline_is_none_and_is_replaced(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.add({KEY: "x" * 1000, OTHER: "y" * 1000})
    connection = sqlite3.connect(tmp_path / "outlines.sqlite")
    with connection:
        connection.execute("UPDATE outline SET packed = substr(packed, 1, 9) WHERE source = ?", (KEY,))
        connection.execute("UPDATE outline SET packed = 'text' WHERE source = ?", (OTHER,))
    connection.close()
    assert kept.find(KEY) is None
    assert kept.find(OTHER) is None
    kept.add({KEY: "again"})
    assert kept.find(KEY) == "again"


def test_processes_share_it(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as processes:
        list(processes.map(add_some, [tmp_path] * 3, range(3)))
    kept = store(tmp_path)
    assert [kept.find(source_key(f"{number} {place}")) for number in range(3) for place in range(20)] == [
        f"outline {number} {place}" for number in range(3) for place in range(20)
    ]


def test_the_oldest_half_goes_when_there_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline_store, "_LARGEST", 200)
    kept = store(tmp_path)
    for number in range(8):
        kept.add({source_key(str(number)): f"outline {number} " + "".join(map(str, range(number, number + 20)))})
    found = [number for number in range(8) if kept.find(source_key(str(number))) is not None]
    assert found
    assert found[-1] == 7
    assert 0 not in found
