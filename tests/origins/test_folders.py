"""Folders as clients and checkouts: what belongs, where the import roots lie, and what must not be followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins import folders, limits
from driftcheck.origins.folders import FolderTree
from driftcheck.origins.layout import import_names
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.tree import SourceTree, import_path


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def modules(tree: SourceTree) -> dict[str, str]:
    """Path to the path under which it is imported."""
    return {path: import_path(path, tree.roots) for path in tree.paths}


def test_flat_layout(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/sub/a.py": "", "tests/test_a.py": "", "setup.py": ""},
    )
    tree = client_tree(str(tmp_path))
    assert list(tree.paths) == ["pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/a.py", "setup.py", "tests/test_a.py"]
    assert tree.roots == ("",)
    assert import_names(tree.paths, tree.roots) == ("pkg",)


def test_source_layout(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"src/pkg/__init__.py": "", "src/pkg/a.py": "", "src/space/inner/__init__.py": "", "tests/conftest.py": ""},
    )
    tree = client_tree(str(tmp_path))
    assert tree.roots == ("src/", "")
    assert modules(tree) == {
        "src/pkg/__init__.py": "pkg/__init__.py",
        "src/pkg/a.py": "pkg/a.py",
        "src/space/inner/__init__.py": "space/inner/__init__.py",
        "tests/conftest.py": "tests/conftest.py",
    }
    assert import_names(tree.paths, tree.roots) == ("pkg",)


def test_nested_projects(tmp_path: Path) -> None:
    write(tmp_path, {"components/src/one/__init__.py": "", "python/two/__init__.py": "", "three/__init__.py": ""})
    tree = client_tree(str(tmp_path))
    assert set(tree.roots) == {"", "components/src/", "python/"}
    assert set(modules(tree).values()) == {"one/__init__.py", "two/__init__.py", "three/__init__.py"}


def test_source_folder_that_is_a_package(tmp_path: Path) -> None:
    write(tmp_path, {"src/__init__.py": "", "src/a.py": ""})
    assert client_tree(str(tmp_path)).roots == ("",)


def test_package_given_directly(tmp_path: Path) -> None:
    write(tmp_path, {"src/pkg/__init__.py": "", "src/pkg/a.py": "", "src/other/__init__.py": "", "pyproject.toml": ""})
    tree = client_tree(str(tmp_path / "src" / "pkg"))
    assert list(tree.paths) == ["pkg/__init__.py", "pkg/a.py"]
    assert tree.roots == ("",)
    assert tree.name == "pkg"


def test_subpackage_given_directly(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/a.py": "", "pkg/sub/__init__.py": "", "pkg/sub/b.py": ""})
    assert list(client_tree(str(tmp_path / "pkg" / "sub")).paths) == ["pkg/sub/__init__.py", "pkg/sub/b.py"]


def test_one_file(tmp_path: Path) -> None:
    write(tmp_path, {"script.py": "A = 1\n", "other.py": "", "pkg/__init__.py": "", "pkg/a.py": "B = 2\n"})
    assert list(client_tree(str(tmp_path / "script.py")).paths) == ["script.py"]
    tree = client_tree(str(tmp_path / "pkg" / "a.py"))
    assert list(tree.paths) == ["pkg/a.py"]
    assert tree.read("pkg/a.py") == b"B = 2\n"


def test_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "work", {"a.py": ""})
    monkeypatch.chdir(tmp_path / "work")
    tree = client_tree(".")
    assert (tree.name, list(tree.paths)) == ("work", ["a.py"])


def test_a_word_is_a_path_for_clients_and_a_name_for_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"surely_not_installed/__init__.py": ""})
    monkeypatch.chdir(tmp_path)
    assert list(client_tree("surely_not_installed").paths) == ["surely_not_installed/__init__.py"]
    assert list(target_tree("./surely_not_installed").paths) == ["surely_not_installed/__init__.py"]
    with pytest.raises(DriftcheckError, match="surely_not_installed is not installed"):
        target_tree("surely_not_installed")


def test_what_is_skipped(tmp_path: Path) -> None:
    skipped = {
        ".git/hooks/a.py": "",
        ".venv/lib/a.py": "",
        "env/pyvenv.cfg": "",
        "env/lib/a.py": "",
        "conda/conda-meta/x": "",
        "conda/a.py": "",
        "fixed/.driftcheck-overlay.json": "",
        "fixed/pkg/a.py": "",
        "node_modules/a.py": "",
        "pkg/__pycache__/a.py": "",
        "lib/site-packages/a.py": "",
        "build/lib/pkg/a.py": "",
        "dist/a.py": "",
        "pkg/notes.txt": "",
    }
    kept = {"pkg/__init__.py": "", "pkg/build/__init__.py": "", "pkg/native.so": "", "pkg/a.pyi": "", "env2/a.py": ""}
    assert set(client_tree(str(write(tmp_path, skipped | kept))).paths) == set(kept)


def test_a_folder_that_is_itself_in_a_skipped_place(tmp_path: Path) -> None:
    write(tmp_path, {".cache/build/a.py": ""})
    assert list(client_tree(str(tmp_path / ".cache" / "build")).paths) == ["a.py"]


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_links(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.py": "S = 1\n", "deep/more.py": ""})
    folder = write(tmp_path / "client", {"a.py": "A = 1\n", "pkg/__init__.py": ""})
    (folder / "loop").symlink_to(folder)
    (folder / "pkg" / "up").symlink_to("..")
    (folder / "self.py").symlink_to("self.py")
    (folder / "elsewhere").symlink_to(outside)
    (folder / "secret.py").symlink_to(outside / "secret.py")
    (folder / "gone.py").symlink_to("nowhere.py")
    (folder / "alias.py").symlink_to("a.py")
    tree = client_tree(str(folder))
    assert list(tree.paths) == ["a.py", "alias.py", "pkg/__init__.py"]
    assert tree.read("alias.py") == b"A = 1\n"
    (tmp_path / "link").symlink_to(folder)
    assert list(client_tree(str(tmp_path / "link")).paths) == ["a.py", "alias.py", "pkg/__init__.py"]


@pytest.mark.skipif(os.name != "posix", reason="needs pipes")
def test_pipes_are_not_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    write(tmp_path, {"a.py": ""})
    assert list(client_tree(str(tmp_path)).paths) == ["a.py"]
    with pytest.raises(DriftcheckError, match="neither a folder nor a file"):
        client_tree(str(tmp_path / "pipe.py"))


def test_large_file_is_listed_and_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "large.py", "wb") as stream:
        stream.truncate(limits.MEMBER_BYTES + 1)
    tree = client_tree(str(tmp_path))
    assert list(tree.paths) == ["large.py"]
    with pytest.raises(DriftcheckError, match=r"large\.py has 20,000,001 bytes"):
        tree.read("large.py")


def test_file_that_goes_away(tmp_path: Path) -> None:
    tree = client_tree(str(write(tmp_path, {"a.py": "", "b.py": "B = 1\n"})))
    assert len(tree.paths) == 2
    (tmp_path / "a.py").unlink()
    with pytest.raises(DriftcheckError, match=r"cannot read a\.py: No such file"):
        tree.read("a.py")
    with pytest.raises(KeyError):
        tree.read("../outside.py")


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MEMBERS", 5)
    with pytest.raises(DriftcheckError, match="more than 5 Python files"):
        len(client_tree(str(write(tmp_path, {f"m{number}.py": "" for number in range(6)}))).paths)


def test_digest_follows_the_contents(tmp_path: Path) -> None:
    tree = client_tree(str(write(tmp_path, {"a.py": "A = 1\n", "b.py": "A = 1\n"})))
    before = tree.digest("a.py")
    assert before == tree.digest("b.py")
    (tmp_path / "a.py").write_text("A = 2\n")
    assert tree.digest("a.py") != before


@pytest.mark.parametrize(
    ("specification", "complaint"),
    [
        ("./nowhere", "nowhere: no such file or folder"),
        ("nowhere/at/all.py", r"all\.py: no such file or folder"),
        ("script.py", r"script\.py: no such file or folder"),
        ("vllm>=0.16", "vllm>=0.16 is no single release; write name==version"),
        ("", "'' names nothing"),
        ("a\0b", "names nothing"),
    ],
)
def test_specifications_that_name_nothing(specification: str, complaint: str) -> None:
    with pytest.raises(DriftcheckError, match=complaint):
        client_tree(specification)


def test_neither_folder_nor_source(tmp_path: Path) -> None:
    write(tmp_path, {"notes.txt": ""})
    with pytest.raises(DriftcheckError, match="neither a folder nor a Python file"):
        client_tree(str(tmp_path / "notes.txt"))


@pytest.mark.skipif(os.name != "posix", reason="other systems refuse such names")
def test_names_that_no_report_can_print(tmp_path: Path) -> None:
    for name in (b"line\nbreak.py", b"\x1b[31mred.py", b"\xff.py", b"fine.py"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass
    tree = client_tree(str(tmp_path))
    assert isinstance(tree, FolderTree)
    assert list(tree.paths) == ["fine.py"]
    assert [path for path, _ in tree.unlisted] == ["\\udcff.py", "\\x1b[31mred.py", "line\\nbreak.py"]
    assert {reason for _, reason in tree.unlisted} == {"has a name that can't be printed"}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_folder_without_permission(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(DriftcheckError, match="may not be read"):
        client_tree(str(tmp_path / "closed"))
    tree = client_tree(str(tmp_path))
    assert isinstance(tree, FolderTree)
    assert tree.unlisted == (("closed/", "can't be listed"),)


def test_links_to_code_elsewhere_are_told(tmp_path: Path) -> None:
    write(tmp_path, {"here/app.py": "", "here/real/part.py": "", "there/deep/code.py": "", "data/notes.txt": ""})
    here = tmp_path / "here"
    links = {"out.py": "../there/deep/code.py", "lost.py": "nothing.py", "own.py": "app.py"}
    folders = {"linked": "../there", "data": "../data", "same": "real", "round": "."}
    for name, place in (links | folders).items():
        (here / name).symlink_to(place, target_is_directory=name in folders)
    tree = client_tree(str(here))
    assert isinstance(tree, FolderTree)
    assert list(tree.paths) == ["app.py", "own.py", "real/part.py"]
    assert tree.unlisted == (
        ("linked/", "is a link to a folder elsewhere, which is not followed"),
        ("lost.py", "is a link that leads nowhere"),
        ("out.py", "is a link that leads out of the folder"),
    )
