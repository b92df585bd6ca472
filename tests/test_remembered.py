"""Reports that are kept: the same content gives the same report, and anything else is looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.audit import audit_trees
from driftcheck.model import Report
from driftcheck.remembered import Remembered
from driftcheck.tree import MemoryTree

TARGET = MemoryTree({"vllm/__init__.py": "def load(name): ...\n"}, "vllm", "2.0")
BASELINE = MemoryTree({"vllm/__init__.py": "def load(name, size=1): ...\n"}, "vllm", "1.0")
SOURCE = "import vllm\nvllm.load('a', size=2)\nvllm.load.missing\n"


def client(source: str = SOURCE) -> MemoryTree:
    return MemoryTree({"app.py": source}, "app")


@pytest.fixture
def report() -> Report:
    return audit_trees(client(), TARGET, BASELINE)


def test_a_kept_report_comes_back_as_it_was(tmp_path: Path, report: Report) -> None:
    assert report.findings
    trees = (client(), TARGET, BASELINE)
    assert Remembered(tmp_path, trees, ("chosen",)).report() is None
    Remembered(tmp_path, trees, ("chosen",)).keep(report)
    assert Remembered(tmp_path, (client(), TARGET, BASELINE), ("chosen",)).report() == report


@pytest.mark.parametrize(
    ("trees", "parts"),
    [
        ((client(SOURCE + "\n"), TARGET, BASELINE), ("chosen",)),
        ((client(), BASELINE, BASELINE), ("chosen",)),
        ((client(), TARGET, None), ("chosen",)),
        ((client(), TARGET, BASELINE), (None,)),
        ((client(), TARGET, BASELINE), ("chosen", "")),
    ],
)
def test_other_content_is_another_audit(
    tmp_path: Path, report: Report, trees: tuple[MemoryTree | None, ...], parts: tuple[str | None, ...]
) -> None:
    Remembered(tmp_path, (client(), TARGET, BASELINE), ("chosen",)).keep(report)
    assert Remembered(tmp_path, trees, parts).report() is None


@pytest.mark.parametrize("damage", [b"", b"{}", b"[" * 100_000, b'{"client": 1}', b"\xff\xfe"])
def test_a_damaged_report_is_made_again(tmp_path: Path, report: Report, damage: bytes) -> None:
    remembered = Remembered(tmp_path, (client(), TARGET, BASELINE), ())
    remembered.keep(report)
    (file,) = (tmp_path / "reports").iterdir()
    file.write_bytes(damage)
    assert remembered.report() is None
    remembered.keep(report)
    assert remembered.report() == report


def test_a_folder_that_cannot_be_written_costs_time_and_nothing_else(tmp_path: Path, report: Report) -> None:
    (tmp_path / "reports").write_text("in the way")
    remembered = Remembered(tmp_path, (client(), TARGET, BASELINE), ())
    remembered.keep(report)
    assert remembered.report() is None


def test_only_the_reports_asked_for_last_are_kept(
    tmp_path: Path, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driftcheck.remembered._KEPT_FILES", 3)
    for number in range(6):
        Remembered(tmp_path, (client(), TARGET, BASELINE), (str(number),)).keep(report)
    assert len(list((tmp_path / "reports").iterdir())) == 3
