"""Fixes reach the files all or none, the originals come back, and nothing of the user's is lost."""

from __future__ import annotations

import os
import py_compile
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change
from driftcheck.fixes.restoring import Restored, restore
from driftcheck.fixes.state import state_folder, user_state_folder
from driftcheck.fixes.writing import write

OLD = {"a.py": b"a = 1\n", "p/b.py": b"b = 1\r\n", "p/\xe9.py": "é = 1".encode("latin-1")}
NEW = {"a.py": b"a = 2\n", "p/b.py": b"b = 22\r\n", "p/\xe9.py": "é = 2".encode("latin-1")}
CHANGES = [Change(path, OLD[path], NEW[path]) for path in OLD]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A working copy with the files that are going to be fixed."""
    folder = tmp_path / "copy"
    for path, content in OLD.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@pytest.fixture
def state(root: Path) -> Path:
    return state_folder(root)


def files(root: Path) -> dict[str, bytes]:
    """Every file below a folder, whatever kind of name it has."""
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def sources(root: Path) -> dict[str, bytes]:
    return {path: content for path, content in files(root).items() if not path.startswith(".driftcheck/")}


def test_files_are_replaced_and_come_back(root: Path, state: Path) -> None:
    written = write(CHANGES, root, state)
    assert [change.path for change in written] == sorted(OLD)
    assert sources(root) == NEW
    assert restore(root, state) == Restored(tuple(sorted(OLD)), (), 0)
    assert files(root) == OLD


def test_what_is_kept_is_ignored_by_git(root: Path, state: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    write([Change("a.py", OLD["a.py"], NEW["a.py"])], root, state)
    output = subprocess.run(["git", "-C", str(root), "status", "--porcelain"], check=True, capture_output=True).stdout
    assert sorted(output.decode().split()) == ["??", "??", "a.py", "p/"]


def test_nothing_to_do_leaves_no_trace(root: Path, state: Path) -> None:
    assert write([], root, state) == ()
    assert write([Change("a.py", OLD["a.py"], OLD["a.py"])], root, state) == ()
    assert files(root) == OLD
    assert not state.exists()


@pytest.mark.parametrize("holds", [b"edited\n", b"", None])
def test_a_file_that_was_edited_since_is_not_overwritten(root: Path, state: Path, holds: bytes | None) -> None:
    if holds is None:
        (root / "p" / "b.py").unlink()
    else:
        (root / "p" / "b.py").write_bytes(holds)
    before = files(root)
    with pytest.raises(DriftcheckError, match=r"p/b\.py.*; nothing has been changed"):
        write(CHANGES, root, state)
    assert files(root) == before
    assert not state.exists()


def test_mode_and_owner_stay(root: Path, state: Path) -> None:
    file = root / "a.py"
    file.chmod(0o751)
    if os.getuid() == 0:
        os.chown(file, 1234, 4321)
    before = file.stat()
    for step in (lambda: write(CHANGES, root, state), lambda: restore(root, state)):
        step()
        about = file.stat()
        assert (stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid) == (0o751, before.st_uid, before.st_gid)


def test_another_name_of_the_file_keeps_the_original(root: Path, state: Path, tmp_path: Path) -> None:
    """Installers link files into `site-packages` from a cache that other environments share."""
    os.link(root / "a.py", tmp_path / "cached.py")
    write(CHANGES, root, state)
    assert (tmp_path / "cached.py").read_bytes() == OLD["a.py"]


def test_a_link_is_written_through(root: Path, state: Path) -> None:
    (root / "link.py").symlink_to("p/b.py")
    (root / "q").symlink_to("p")
    written = write([Change("link.py", OLD["p/b.py"], b"new"), Change("q/b.py", OLD["p/b.py"], b"new")], root, state)
    assert [change.path for change in written] == ["p/b.py"]
    assert (root / "link.py").is_symlink() and (root / "q").is_symlink()
    assert (root / "p" / "b.py").read_bytes() == b"new"
    restore(root, state)
    assert (root / "link.py").is_symlink()
    assert (root / "p" / "b.py").read_bytes() == OLD["p/b.py"]


def test_two_paths_of_one_file_can_not_differ(root: Path, state: Path) -> None:
    (root / "link.py").symlink_to("p/b.py")
    with pytest.raises(DriftcheckError, match=r"link\.py and p/b\.py are one file, and their fixes differ"):
        write([Change("link.py", OLD["p/b.py"], b"one"), Change("p/b.py", OLD["p/b.py"], b"two")], root, state)
    assert sources(root) == {**OLD, "link.py": OLD["p/b.py"]}


@pytest.mark.parametrize("target", ["../outside.py", "../copy-2/a.py", ".git/config", ".envrc"])
def test_a_link_that_leads_out_is_refused(root: Path, state: Path, target: str) -> None:
    place = root / target
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"outside")
    (root / "link.py").symlink_to(target)
    with pytest.raises(DriftcheckError, match=r"leads out of its folder|no path that may be changed"):
        write([*CHANGES, Change("link.py", b"outside", b"new")], root, state)
    assert place.read_bytes() == b"outside"
    assert {path: (root / path).read_bytes() for path in OLD} == OLD
    assert not state.exists()


def test_a_loop_of_links_is_refused(root: Path, state: Path) -> None:
    (root / "one.py").symlink_to("two.py")
    (root / "two.py").symlink_to("one.py")
    with pytest.raises(DriftcheckError, match=r"one\.py|two\.py"):
        write([*CHANGES, Change("one.py", b"x", b"y")], root, state)
    assert {path: (root / path).read_bytes() for path in OLD} == OLD


@pytest.mark.parametrize(("place", "mode"), [("a.py", 0o444), ("p", 0o555)])
def test_what_is_read_only_is_left_alone(root: Path, state: Path, place: str, mode: int) -> None:
    (root / place).chmod(mode)
    try:
        with pytest.raises(DriftcheckError, match="is read-only; nothing has been changed"):
            write(CHANGES, root, state)
        assert files(root) == OLD
        assert not state.exists()
    finally:
        (root / place).chmod(0o755)


def test_a_full_disk_leaves_everything_as_it_was(root: Path, state: Path) -> None:
    """The limit on a file's size stands in for the disk's end: the second file can't be written."""
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from driftcheck.fixes.changes import Change\n"
        "from driftcheck.fixes.writing import write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "root = Path(sys.argv[1])\n"
        "one, two = (root / 'a.py').read_bytes(), (root / 'p/b.py').read_bytes()\n"
        "write([Change('a.py', one, b'new'), Change('p/b.py', two, b'x' * 6000)], root, root / '.driftcheck')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=False)
    assert "DriftcheckError: cannot write p/b.py: File too large; all files are as they were" in done.stderr
    assert files(root) == OLD


def test_a_failure_half_way_is_undone(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second file is edited in the moment before it is replaced."""
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        real(source, target)
        if target.name == "a.py":
            (root / "p" / "b.py").write_bytes(b"edited in between")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(DriftcheckError, match=r"p/b\.py is being edited .* all files are as they were"):
        write(CHANGES, root, state)
    assert files(root) == {**OLD, "p/b.py": b"edited in between"}


def test_an_interruption_half_way_is_undone(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace
    calls = []

    def replace(source: Path, target: Path) -> None:
        real(source, target)
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write(CHANGES, root, state)
    assert files(root) == OLD


def test_fixes_are_taken_back_newest_first(root: Path, state: Path) -> None:
    write([Change("a.py", OLD["a.py"], b"second")], root, state)
    write([Change("a.py", b"second", b"third"), Change("p/b.py", OLD["p/b.py"], b"third")], root, state)
    assert restore(root, state) == Restored(("a.py", "p/b.py"), (), 1)
    assert sources(root) == {**OLD, "a.py": b"second"}
    assert restore(root, state).left == 0
    assert files(root) == OLD


def test_all_fixes_are_taken_back_at_once(root: Path, state: Path) -> None:
    write([Change("a.py", OLD["a.py"], b"second")], root, state)
    write([Change("a.py", b"second", b"third"), Change("p/b.py", OLD["p/b.py"], b"third")], root, state)
    assert restore(root, state, everything=True) == Restored(("a.py", "p/b.py"), (), 0)
    assert files(root) == OLD


def test_edits_between_two_fixes_are_seen_before_anything_is_restored(root: Path, state: Path) -> None:
    write([Change("a.py", OLD["a.py"], b"second")], root, state)
    (root / "a.py").write_bytes(b"edited")
    write([Change("a.py", b"edited", b"fixed")], root, state)
    with pytest.raises(DriftcheckError, match=r"a\.py has been edited or removed since"):
        restore(root, state, everything=True)
    assert (root / "a.py").read_bytes() == b"fixed"
    assert restore(root, state, everything=True, force=True) == Restored(("a.py",), ("a.py.edited",), 0)
    assert files(root) == {**OLD, "a.py.edited": b"edited"}


def test_edits_since_the_fix_are_never_lost(root: Path, state: Path) -> None:
    write(CHANGES, root, state)
    (root / "a.py").write_bytes(b"edited")
    (root / "a.py.edited").write_bytes(b"the user's own")
    (root / "p" / "b.py").write_bytes(b"edited too")
    before = files(root)
    with pytest.raises(DriftcheckError, match=r"a\.py and 1 more have been edited or removed since the fix"):
        restore(root, state)
    assert files(root) == before
    assert restore(root, state, force=True).edits == ("a.py.edited-2", "p/b.py.edited")
    assert files(root) == {
        **OLD,
        "a.py.edited": b"the user's own",
        "a.py.edited-2": b"edited",
        "p/b.py.edited": b"edited too",
    }


def test_a_folder_that_was_removed_comes_back_by_force_only(root: Path, state: Path) -> None:
    write([Change("p/b.py", OLD["p/b.py"], b"new")], root, state)
    for file in (root / "p").iterdir():
        file.unlink()
    (root / "p").rmdir()
    with pytest.raises(DriftcheckError, match=r"p/b\.py has been edited or removed"):
        restore(root, state)
    assert not (root / "p").exists()
    assert restore(root, state, force=True) == Restored(("p/b.py",), (), 0)
    assert files(root) == {"a.py": OLD["a.py"], "p/b.py": OLD["p/b.py"]}


def test_a_file_that_was_put_back_by_hand_is_no_obstacle(root: Path, state: Path) -> None:
    write(CHANGES, root, state)
    (root / "a.py").write_bytes(OLD["a.py"])
    assert restore(root, state).paths == tuple(sorted(OLD.keys() - {"a.py"}))
    assert files(root) == OLD


def test_nothing_to_restore_is_said(root: Path, state: Path) -> None:
    with pytest.raises(DriftcheckError, match="nothing has been fixed in"):
        restore(root, state)
    write(CHANGES, root, state)
    restore(root, state)
    with pytest.raises(DriftcheckError, match="nothing has been fixed in"):
        restore(root, state)
    assert files(root) == OLD


def test_a_working_copy_may_move(root: Path, tmp_path: Path) -> None:
    write(CHANGES, root, state_folder(root))
    moved = root.rename(tmp_path / "moved")
    restore(moved, state_folder(moved))
    assert files(moved) == OLD


def test_installed_files_are_kept_in_the_user_s_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "link").symlink_to(root)
    state = user_state_folder(tmp_path / "link")
    assert state == user_state_folder(root) != user_state_folder(tmp_path)
    write(CHANGES, root, state)
    assert files(root) == NEW
    assert state.is_dir() and (tmp_path in state.parents or sys.platform != "linux")
    restore(root, state)
    assert files(root) == OLD
    assert not state.exists()


FOREIGN = {
    "out of the folder": "../outside.py",
    "an absolute path": "/outside.py",
    "a folder of git's": ".git/hooks/pre-commit",
    "a link out": "link.py",
    "a link in": "inner.py",
}


@pytest.mark.parametrize("path", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("force", [False, True])
def test_a_manifest_from_elsewhere_reaches_nothing(root: Path, state: Path, path: str, force: bool) -> None:
    (root.parent / "outside.py").write_bytes(NEW["a.py"])
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "hooks" / "pre-commit").write_bytes(NEW["a.py"])
    (root / "link.py").symlink_to("../outside.py")
    (root / "inner.py").symlink_to(".git/hooks/pre-commit")
    write([Change("a.py", OLD["a.py"], NEW["a.py"])], root, state)
    before = sources(root)
    manifest = state / "000001" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"a.py"', msgspec.json.encode(path)))
    with pytest.raises(DriftcheckError):
        restore(root, state, force=force)
    assert sources(root) == before
    assert (root.parent / "outside.py").read_bytes() == NEW["a.py"]


def damage_link(state: Path) -> None:
    (state / "000001" / "0").unlink()
    (state / "000001" / "0").symlink_to("../../p/b.py")


def damage_folder(state: Path) -> None:
    (state / "000001").rename(state.parent / "elsewhere")
    (state / "000001").symlink_to("../elsewhere")


def damage_state(state: Path) -> None:
    state.rename(state.parent / "elsewhere")
    state.symlink_to("elsewhere")


DAMAGES = {
    "no JSON": lambda state: (state / "000001" / "manifest.json").write_bytes(b"{"),
    "nested": lambda state: (state / "000001" / "manifest.json").write_bytes(b"[" * 100_000),
    "another format": lambda state: (state / "000001" / "manifest.json").write_bytes(
        b'{"format":2,"token":"","files":[]}'
    ),
    "a token that is a path": lambda state: (state / "000001" / "manifest.json").write_bytes(
        b'{"format":1,"token":"/../../p/b.py","files":[]}'
    ),
    "no manifest": lambda state: (state / "000001" / "manifest.json").unlink(),
    "another original": lambda state: (state / "000001" / "0").write_bytes(b"harm"),
    "no original": lambda state: (state / "000001" / "0").unlink(),
    "a link for an original": damage_link,
    "a link for a transaction": damage_folder,
    "a link for the state": damage_state,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_told_in_one_line(root: Path, state: Path, damage: object) -> None:
    write([Change("a.py", OLD["a.py"], NEW["a.py"])], root, state)
    assert callable(damage)
    damage(state)
    with pytest.raises(DriftcheckError, match=r"is damaged|is a link") as caught:
        restore(root, state)
    assert "\n" not in str(caught.value)
    assert {path: (root / path).read_bytes() for path in OLD} == {**OLD, "a.py": NEW["a.py"]}


def test_a_lock_that_is_a_link_harms_nothing(root: Path, state: Path) -> None:
    (root.parent / "outside").write_bytes(b"precious")
    state.mkdir()
    (state / "lock").symlink_to("../../outside")
    with pytest.raises(DriftcheckError, match="cannot keep originals"):
        write(CHANGES, root, state)
    assert (root.parent / "outside").read_bytes() == b"precious"
    assert {path: (root / path).read_bytes() for path in OLD} == OLD


def test_a_state_that_can_not_be_kept_changes_nothing(root: Path) -> None:
    (root / "file").write_bytes(b"")
    with pytest.raises(DriftcheckError, match=r"cannot keep originals in .*; nothing has been changed"):
        write(CHANGES, root, root / "file" / "state")
    assert files(root) == {**OLD, "file": b""}


VALUE = "import importlib.util, sys; sys.path.insert(0, sys.argv[1]); import module; print(module.value)"


def value(root: Path) -> str:
    """What Python finds when it imports the module, by whatever bytecode it takes."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", VALUE, str(root)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("mode", list(py_compile.PycInvalidationMode), ids=lambda mode: mode.name)
def test_python_never_runs_bytecode_of_the_text_before(
    root: Path, state: Path, mode: py_compile.PycInvalidationMode
) -> None:
    """All texts have one size, and all is done within the same second or two."""
    file = root / "module.py"
    texts = [f"value = {number}\n".encode() for number in (1, 2, 3)]
    file.write_bytes(texts[0])
    seen = []
    for step in (
        lambda: write([Change("module.py", texts[0], texts[1])], root, state),
        lambda: restore(root, state),
        lambda: write([Change("module.py", texts[0], texts[2])], root, state),
        lambda: restore(root, state),
    ):
        py_compile.compile(str(file), doraise=True, invalidation_mode=mode)
        seen.append(value(root))
        step()
        seen.append(value(root))
    assert seen == ["1", "2", "2", "1", "1", "3", "3", "1"]
