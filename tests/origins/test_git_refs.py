"""Refs of a local clone."""

from __future__ import annotations

import os
import pickle
import subprocess
from datetime import date
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins import git
from driftcheck.origins.folders import FolderTree
from driftcheck.origins.git import GitTree
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.tree import SourceTree

DAY = "2025-03-04T05:06:07+00:00"


def run(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    variables = os.environ | {"GIT_AUTHOR_DATE": DAY, "GIT_COMMITTER_DATE": DAY, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, env=variables
    )
    return done.stdout.decode().strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone@home"
    (folder / "engine" / "sub").mkdir(parents=True)
    run(folder, "init", "-q", "-b", "main")
    (folder / "pyproject.toml").write_text('[project]\nname = "engine"\ndynamic = ["version"]\n')
    (folder / "engine" / "__init__.py").write_text("A = 1\n")
    (folder / "engine" / "sub" / "__init__.py").write_text("B = 1\n")
    (folder / "engine" / "sub" / "link.py").symlink_to("/etc/passwd")
    (folder / "README.md").write_text("text\n")
    run(folder, "add", ".")
    run(folder, "commit", "-q", "-m", "first")
    run(folder, "tag", "v1.4.0")
    (folder / "engine" / "__init__.py").write_text("A = 2\n")
    (folder / "engine" / "new.py").write_text("C = 1\n")
    run(folder, "add", ".")
    run(folder, "commit", "-q", "-m", "second")
    (folder / "engine" / "__init__.py").write_text("A = 'not committed'\n")
    return folder


def contents(tree: SourceTree) -> dict[str, bytes]:
    return {path: tree.read(path) for path in tree.paths}


def test_refs(clone: Path) -> None:
    tree = target_tree(f"git+{clone}@v1.4.0")
    assert contents(tree) == {"engine/__init__.py": b"A = 1\n", "engine/sub/__init__.py": b"B = 1\n"}
    assert (tree.name, tree.version, tree.origin, tree.roots) == ("engine", "1.4.0", "git ref v1.4.0", ("",))
    for ref in (
        "main",
        "HEAD",
        "HEAD@{0}",
        run(clone, "rev-parse", "HEAD"),
        run(clone, "rev-parse", "--short", "HEAD"),
    ):
        assert contents(target_tree(f"git+{clone}@{ref}"))["engine/__init__.py"] == b"A = 2\n"
    assert contents(target_tree(f"git+{clone}"))["engine/new.py"] == b"C = 1\n"
    assert contents(client_tree(f"git+file://{clone}@main"))["engine/new.py"] == b"C = 1\n"


def test_a_clone_that_states_no_name_has_that_of_its_package(clone: Path) -> None:
    (clone / "pyproject.toml").unlink()
    (clone / "tests").mkdir()
    (clone / "tests" / "__init__.py").write_text("")
    run(clone, "add", ".")
    run(clone, "commit", "-q", "-m", "no project")
    assert target_tree(f"git+{clone}@main").name == "engine"
    (clone / "second").mkdir()
    (clone / "second" / "__init__.py").write_text("")
    run(clone, "add", ".")
    run(clone, "commit", "-q", "-m", "two packages")
    assert target_tree(f"git+{clone}@main").name == "clone@home"


def test_version_after_a_tag_is_the_next_ones(clone: Path) -> None:
    version = target_tree(f"git+{clone}@main").version
    assert version == f"1.4.1.dev1+g{run(clone, 'rev-parse', '--short=7', 'HEAD')}"
    run(clone, "tag", "v1.5.0rc1")
    assert target_tree(f"git+{clone}@main").version == "1.5.0rc1"
    assert target_tree(str(clone)).version == "1.5.0rc1"


def test_day_of_the_commit(clone: Path) -> None:
    tree = target_tree(f"git+{clone}@main")
    assert isinstance(tree, GitTree)
    assert tree.committed == date(2025, 3, 4)


@pytest.mark.parametrize("stamp", ["999999999999 +0000", "1 +9900", "x +0000", "1741064767 -0030"])
def test_odd_days(clone: Path, stamp: str) -> None:
    tree = run(clone, "rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nauthor A <a@example.org> {stamp}\ncommitter A <a@example.org> {stamp}\n\nodd\n"
    written = subprocess.run(
        ["git", "-C", str(clone), "hash-object", "-t", "commit", "-w", "--literally", "--stdin"],
        input=text.encode(),
        check=True,
        capture_output=True,
    )
    commit = written.stdout.decode().strip()
    assert git.commit_day(clone, commit) == (date(2025, 3, 4) if stamp.startswith("174") else None)


def test_missing_objects_are_not_fetched(clone: Path, tmp_path: Path) -> None:
    """A partial clone fetches what it lacks from wherever its settings say, by any command: not for us."""
    proof = tmp_path / "proof"
    partial = tmp_path / "partial"
    run(clone, "config", "uploadpack.allowFilter", "true")
    run(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", clone.as_uri(), str(partial))
    run(partial, "config", "remote.origin.url", f"ext::touch {proof}")
    run(partial, "config", "protocol.ext.allow", "always")
    tree = target_tree(f"git+{partial}@HEAD")
    with pytest.raises(DriftcheckError, match=r"engine/new\.py is missing"):
        tree.read("engine/new.py")
    assert not proof.exists()


def test_folder_of_a_clone(clone: Path) -> None:
    tree = target_tree(f"git+{clone / 'engine'}@v1.4.0")
    assert contents(tree) == {"__init__.py": b"A = 1\n", "sub/__init__.py": b"B = 1\n"}


def test_digest_tells_contents_apart(clone: Path) -> None:
    old, new = (target_tree(f"git+{clone}@{ref}") for ref in ("v1.4.0", "main"))
    assert old.digest("engine/__init__.py") != new.digest("engine/__init__.py")
    assert old.digest("engine/sub/__init__.py") == new.digest("engine/sub/__init__.py")
    with pytest.raises(KeyError):
        old.read("engine/new.py")


def test_pickled_tree_keeps_its_commit(clone: Path) -> None:
    tree = target_tree(f"git+{clone}@main")
    before = contents(tree)
    copy = pickle.loads(pickle.dumps(tree))
    run(clone, "commit", "-q", "-a", "-m", "third")
    assert contents(copy) == before


def test_large_object_is_not_read(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = target_tree(f"git+{clone}@main")
    monkeypatch.setattr(git, "MEMBER_BYTES", 5)
    with pytest.raises(DriftcheckError, match="has 6 bytes, more than the 5"):
        tree.read("engine/new.py")
    monkeypatch.setattr(git, "MEMBER_BYTES", 50)
    assert tree.read("engine/new.py") == b"C = 1\n"


def test_what_is_no_clone(clone: Path, tmp_path: Path) -> None:
    cases = {
        f"git+{tmp_path / 'nowhere'}@main": "is no folder",
        f"git+{tmp_path}@main": "is not a git repository",
        f"git+{clone}@nowhere": "no ref nowhere in the clone",
        f"git+{clone}@--help": "no ref --help in the clone",
        "git+https://example.org/engine.git@main": "remote repository",
        "git+git@example.org:engine.git@main": "remote repository",
        "git+ssh://git@example.org/engine.git@main": "remote repository",
    }
    for specification, complaint in cases.items():
        with pytest.raises(DriftcheckError, match=complaint) as caught:
            target_tree(specification)
        assert "\n" not in str(caught.value)


def test_no_git(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DriftcheckError, match="git is not installed"):
        target_tree(f"git+{clone}@main")


def test_settings_of_a_clone_run_nothing(clone: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {proof}\n")
    script.chmod(0o755)
    run(clone, "config", "log.showSignature", "true")
    for key in (
        "gpg.program",
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "core.editor",
        "core.askPass",
    ):
        run(clone, "config", key, str(script))
    tree = target_tree(f"git+{clone}@main")
    assert contents(tree)
    assert tree.version
    assert isinstance(tree, GitTree)
    assert tree.committed
    folder = client_tree(str(clone))
    assert isinstance(folder, FolderTree)
    assert folder.version
    assert folder.committed == date(2025, 3, 4)
    assert not proof.exists()
