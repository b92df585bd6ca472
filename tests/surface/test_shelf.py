"""What is kept of a release: the second audit says what the first said, and damage costs time and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from driftcheck.audit import audit_trees
from driftcheck.model import Report
from driftcheck.surface.outline_store import OutlineStore, source_key
from driftcheck.surface.shelf import Learned, Shelf, shelf_of
from driftcheck.tree import MemoryTree

LIBRARY = """class Base:
    def run(self, size=1):
        self.size = size
        return self.finish(size)

    def finish(self, size):
        self.done = [
            size]
"""
MORE = "from vllm import Base\nBase().finish(1)\n"
TARGET = {"vllm/__init__.py": LIBRARY, "vllm/more.py": MORE}
BASELINE = {"vllm/__init__.py": LIBRARY.replace("size", "count"), "vllm/more.py": "x = 1\n"}
SOURCE = """import vllm

class Own(vllm.Base):
    def finish(self, count, more):
        return self.done

Own().run(count=2)
vllm.Base().missing
vllm.Base().size.bit_length()
"""
CLIENT = MemoryTree({"app.py": SOURCE}, "app")


class CachedTree(MemoryTree):
    """A release whose folder in the cache is known."""

    def __init__(self, files: dict[str, str], version: str, folder: Path) -> None:
        super().__init__(files, "vllm", version)
        self.cache_folder = folder


def audited(folder: Path, processes: int = 1) -> Report:
    """The report of an audit that keeps in a folder what it learns."""
    return audit_trees(CLIENT, CachedTree(TARGET, "2", folder), CachedTree(BASELINE, "1", folder), processes=processes)


def shelf(files: dict[str, str], folder: Path) -> Shelf:
    """What is kept of a release."""
    found = shelf_of(CachedTree(files, "1", folder))
    assert found is not None
    return found


@pytest.fixture
def plain() -> Report:
    report = audit_trees(CLIENT, MemoryTree(TARGET, "vllm", "2"), MemoryTree(BASELINE, "vllm", "1"))
    assert report.findings
    return report


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_kept_is_used_and_changes_nothing(tmp_path: Path, processes: int, plain: Report) -> None:
    assert audited(tmp_path, processes) == plain
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "shelves").iterdir()}
    assert len(files) == 2
    for release in (TARGET, BASELINE):
        kept = shelf(release, tmp_path)
        assert kept.words is not None
        outline = OutlineStore(tmp_path / "outlines" / "outlines.sqlite").find(source_key(release["vllm/__init__.py"]))
        assert outline is not None
        assert "def finish" in outline
        assert "self.done" not in outline
    assert audited(tmp_path, processes) == plain


def test_other_contents_are_another_release(tmp_path: Path, plain: Report) -> None:
    assert audited(tmp_path) == plain
    assert shelf({**TARGET, "vllm/more.py": MORE + "\n"}, tmp_path).words is None


def test_a_tree_that_may_change_has_no_shelf() -> None:
    assert shelf_of(CLIENT) is None


@pytest.mark.parametrize("damage", [b"", b"no pack", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_a_damaged_shelf_counts_as_empty(tmp_path: Path, damage: bytes, plain: Report) -> None:
    audited(tmp_path)
    for file in (tmp_path / "shelves").iterdir():
        file.write_bytes(damage)
    assert shelf(TARGET, tmp_path).words is None
    assert audited(tmp_path) == plain
    assert shelf(TARGET, tmp_path).words is not None


def test_an_outline_that_cannot_be_parsed_is_made_again(tmp_path: Path, plain: Report) -> None:
    damaged = shelf(TARGET, tmp_path)
    damaged.take(Learned(outlines=dict.fromkeys(map(source_key, TARGET.values()), "def")))
    damaged.store()
    assert audited(tmp_path) == plain
    assert "def finish" in ast.unparse(shelf(TARGET, tmp_path).parse(LIBRARY))


def test_releases_share_the_outline_of_a_module_that_stays_the_same(tmp_path: Path) -> None:
    shelf(TARGET, tmp_path).parse(LIBRARY)
    first = shelf(TARGET, tmp_path)
    first.parse(LIBRARY)
    first.store()
    other = shelf({**TARGET, "vllm/more.py": "another = 1\n"}, tmp_path)
    assert ast.unparse(other.parse(LIBRARY)) == ast.unparse(first.parse(LIBRARY))
    assert not other.new.outlines


def test_a_folder_that_cannot_be_written_costs_time_and_nothing_else(tmp_path: Path, plain: Report) -> None:
    for folder in ("shelves", "outlines"):
        (tmp_path / folder).write_text("in the way")
    assert audited(tmp_path) == plain


def test_a_question_is_asked_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer() -> list[str]:
        asked.append("once")
        return ["1", "2"]

    first = shelf(TARGET, tmp_path)
    assert first.answer("which", list[str], answer) == ["1", "2"] == first.answer("which", list[str], answer)
    first.store()
    assert shelf(TARGET, tmp_path).answer("which", list[str], answer) == ["1", "2"]
    assert asked == ["once"]
    # One of another shape is asked again, and so is one that another driftcheck gave.
    assert shelf(TARGET, tmp_path).answer("which", dict[str, int], lambda: {"1": 2}) == {"1": 2}


def test_an_answer_of_another_driftcheck_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shelf(TARGET, tmp_path)
    first.answer("which", str, lambda: "old")
    first.store()
    monkeypatch.setattr("driftcheck.surface.shelf.own_digest", lambda: "another")
    assert shelf(TARGET, tmp_path).answer("which", str, lambda: "new") == "new"
