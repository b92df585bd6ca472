"""A run that is killed between any two system calls leaves every file old or new, and can be taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import filelock
import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change
from driftcheck.fixes.restoring import restore
from driftcheck.fixes.state import locked, state_folder
from driftcheck.fixes.writing import write
from tests.fixes.killed import NEW, OLD

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs to be killed are forked")

CHANGES = [Change(path, OLD[path], NEW[path]) for path in OLD]


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill loses nothing that the system was given."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def make(root: Path) -> Path:
    for path, content in OLD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


def files(root: Path) -> dict[str, bytes]:
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def killed(task: str, template: Path, copies: Path) -> list[Path]:
    """The folders in which a run was killed, one for each of its calls."""
    copies.mkdir()
    command = [sys.executable, "-m", "tests.fixes.killed", task, str(template), str(copies)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    found = sorted((copy for copy in copies.iterdir() if copy.name != "done"), key=lambda copy: int(copy.name))
    assert len(found) > 40
    assert [copy.name for copy in found] == [str(number) for number in range(1, len(found) + 1)]
    return found


def check_old_or_new(root: Path) -> dict[str, bytes]:
    found = {path: (root / path).read_bytes() for path in OLD}
    assert all(content in (OLD[path], NEW[path]) for path, content in found.items()), root.name
    return found


def take_back(root: Path, *, force: bool = False) -> bool:
    """False where there is nothing to take back, as the killed run had not come that far or was done with it."""
    try:
        restore(root, state_folder(root), force=force)
    except DriftcheckError as error:
        if "nothing has been fixed" in str(error):
            return False
        raise
    return True


def test_a_killed_write_can_be_taken_back(tmp_path: Path) -> None:
    seen = set()
    for copy in killed("write", make(tmp_path / "template"), tmp_path / "copies"):
        found = check_old_or_new(copy)
        seen.add(tuple(found.items()))
        if not take_back(copy):
            assert found == OLD, copy.name
            # What a run leaves that was killed before it had anything to take back goes with the next one.
            write([Change("a.py", OLD["a.py"], b"next")], copy, state_folder(copy))
            restore(copy, state_folder(copy))
        assert files(copy) == OLD, copy.name
    done = tmp_path / "copies" / "done"
    assert check_old_or_new(done) == NEW
    assert len(seen) == len(OLD) + 1


def test_a_killed_write_can_be_repeated(tmp_path: Path) -> None:
    for copy in killed("write", make(tmp_path / "template"), tmp_path / "copies"):
        found = check_old_or_new(copy)
        write([Change(path, found[path], NEW[path]) for path in OLD], copy, state_folder(copy))
        assert {path: text for path, text in files(copy).items() if not path.startswith(".driftcheck/")} == NEW
        restore(copy, state_folder(copy), everything=True)
        assert files(copy) == OLD, copy.name


def test_a_killed_restore_can_be_repeated(tmp_path: Path) -> None:
    template = make(tmp_path / "template")
    write(CHANGES, template, state_folder(template))
    for copy in killed("restore", template, tmp_path / "copies"):
        check_old_or_new(copy)
        take_back(copy)
        assert files(copy) == OLD, copy.name
    assert files(tmp_path / "copies" / "done") == OLD


def test_a_killed_restore_loses_no_edit(tmp_path: Path) -> None:
    template = make(tmp_path / "template")
    write(CHANGES, template, state_folder(template))
    (template / "a.py").write_bytes(b"edited")
    for copy in killed("restore", template, tmp_path / "copies"):
        assert b"edited" in files(copy).values(), copy.name
        assert (copy / "a.py").read_bytes() in (b"edited", OLD["a.py"])
        take_back(copy, force=True)
        found = files(copy)
        asides = {path: found.pop(path) for path in list(found) if ".edited" in path}
        assert found == OLD, copy.name
        assert b"edited" in asides.values()


def test_a_lock_in_a_folder_that_was_removed_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever had the lock before may remove the folder just when it is locked again, and a third one make it anew."""
    removed: list[Path] = []

    class Late(filelock.FileLock):
        def acquire(self, timeout: float | None = None) -> Any:  # type: ignore[override]
            held = super().acquire(timeout)
            if not removed:
                removed.append(tmp_path / "state")
                shutil.rmtree(tmp_path / "state")
                (tmp_path / "state").mkdir()
                (tmp_path / "state" / "lock").touch()
            return held

    monkeypatch.setattr(filelock, "FileLock", Late)
    with locked(tmp_path / "state"):
        assert removed
        with pytest.raises(filelock.Timeout), filelock.FileLock(tmp_path / "state" / "lock").acquire(timeout=0):
            pass
    assert not (tmp_path / "state").exists()


WRITER = """
import sys
from pathlib import Path
from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change
from driftcheck.fixes.restoring import restore
from driftcheck.fixes.state import state_folder
from driftcheck.fixes.writing import write

root, mark = Path(sys.argv[1]), sys.argv[2].encode()
won = 0
for _ in range(30):
    before = {path: (root / path).read_bytes() for path in ("a.py", "p/b.py", "p/c.py")}
    try:
        write([Change(path, text, mark + text[:20]) for path, text in before.items()], root, state_folder(root))
        won += 1
        if won % 3 == 0:
            restore(root, state_folder(root))
    except DriftcheckError as error:
        assert "edited" in str(error) or "nothing has been fixed" in str(error), error
"""


def test_two_writers_at_once_do_one_after_the_other(tmp_path: Path) -> None:
    root = make(tmp_path / "root")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(root), mark], stderr=subprocess.PIPE) for mark in "xyz"
    ]
    for writer in writers:
        assert (writer.communicate()[1], writer.returncode) == (b"", 0)
    if state_folder(root).exists():
        restore(root, state_folder(root), everything=True)
    assert files(root) == OLD
