"""An overlay is a whole copy of the client's packages that Python takes first, and takes nothing from anybody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change
from driftcheck.fixes.overlay import MARKER, overlay
from driftcheck.origins.folders import folder_tree
from driftcheck.origins.select import client_tree
from driftcheck.origins.settings import Settings
from driftcheck.tree import SourceTree
from tests.fixes.environments import environment, install, output, python
from tests.origins.archives import as_bytes, sdist, wheel
from tests.origins.server import Index, Server

pytestmark = pytest.mark.skipif(os.name != "posix", reason="environments lie elsewhere")

CLIENT: dict[str, str | bytes] = {
    "client/__init__.py": "from client.deep.module import value\n",
    "client/deep/__init__.py": "",
    "client/deep/module.py": "import pathlib\nvalue = (1, (pathlib.Path(__file__).parent / 'data.txt').read_text())\n",
    "client/deep/data.txt": "data",
    "client/native.cpython-311-x86_64-linux-gnu.so": b"\x7fELF not really",
    "client/.hidden/settings.json": "{}",
    "client.libs/libnative.so.1": b"\x7fELF either",
    "client_tool.py": "",
    "client-1.0.data/scripts/client": "#!python\n",
}
MODULE = "client/deep/module.py"
TEXT = as_bytes(CLIENT[MODULE])
CHANGE = Change(MODULE, TEXT, TEXT.replace(b"(1,", b"(2,"))


def files(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def packaged(folder: Path) -> dict[str, bytes]:
    """The files of an overlay without its marker."""
    return {path: content for path, content in files(folder).items() if path != MARKER}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A working copy with its package in `src` and much else beside it."""
    for path, text in {
        "src/client/__init__.py": "from client.module import value\n",
        "src/client/module.py": "value = 1\n",
        "src/client/data.txt": "data",
        "src/client/.cache/x.py": "",
        "src/client/__pycache__/module.cpython-311.pyc": "",
        "tests/test_client.py": "import client\n",
        "pyproject.toml": "[project]\nname = 'client'\n",
        ".venv/pyvenv.cfg": "",
    }.items():
        (tmp_path / "project" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / path).write_text(text)
    return tmp_path / "project"


FIXED = Change("src/client/module.py", b"value = 1\n", b"value = 2\n")
ASIDE = Change("tests/test_client.py", b"import client\n", b"import client as c\n")


def test_an_installed_client_runs_from_its_overlay(tmp_path: Path) -> None:
    site = environment(tmp_path / "environment")
    install(site, "client", CLIENT, "--compile-bytecode")
    before = files(site)
    tree = client_tree("client", settings=Settings(python=str(python(site))))
    made = overlay(tree, [CHANGE], tmp_path / "overlay")
    assert (made.paths, made.outside) == ((MODULE,), ())
    expected = {path: as_bytes(text) for path, text in CLIENT.items()}
    del expected["client-1.0.data/scripts/client"]
    assert packaged(tmp_path / "overlay") == {**expected, MODULE: CHANGE.after}
    assert files(site) == before
    show = "import client, client_tool; print(client.value, client_tool.__file__)"
    assert output(site, show).startswith("(1, 'data')")
    shown = output(site, show, PYTHONPATH=str(made.folder))
    assert shown == f"(2, 'data') {made.folder / 'client_tool.py'}"


def test_a_working_copy_gives_its_packages(project: Path, tmp_path: Path) -> None:
    before = files(project)
    made = overlay(folder_tree(project), [FIXED, ASIDE], tmp_path / "new" / "overlay")
    assert (made.paths, made.outside) == ((FIXED.path,), (ASIDE.path,))
    assert packaged(made.folder) == {
        "client/__init__.py": b"from client.module import value\n",
        "client/module.py": b"value = 2\n",
        "client/data.txt": b"data",
    }
    assert files(project) == before


def test_a_package_and_a_module_alone(project: Path, tmp_path: Path) -> None:
    change = Change("client/module.py", FIXED.before, FIXED.after)
    assert "client/module.py" in packaged(overlay(folder_tree(project / "src/client"), [change], tmp_path / "a").folder)
    (tmp_path / "script.py").write_text("x = 1\n")
    made = overlay(folder_tree(tmp_path / "script.py"), [Change("script.py", b"x = 1\n", b"x = 2\n")], tmp_path / "b")
    assert packaged(made.folder) == {"script.py": b"x = 2\n"}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    for name in list(os.environ):
        if name.upper().startswith(("PIP_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")):
            monkeypatch.delenv(name)
    index = Index()
    server = Server(index)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield index
    server.stop()


PURE = {
    "client/__init__.py": "value = 1\n",
    "client_tool.py": "",
    "client-1.0.data/purelib/more/__init__.py": "x = 1\n",
}


def test_a_release_gives_what_the_index_has_of_it(index: Index, tmp_path: Path) -> None:
    index.add("client", "client-1.0-py3-none-any.whl", wheel("client", "1.0", PURE))
    tree = client_tree("client==1.0", settings=Settings(cache_folder=tmp_path / "cache"))
    changes = [
        Change("client/__init__.py", b"value = 1\n", b"value = 2\n"),
        Change("client-1.0.data/purelib/more/__init__.py", b"x = 1\n", b"x = 2\n"),
    ]
    made = overlay(tree, changes, tmp_path / "overlay")
    found = packaged(made.folder)
    assert b"Version: 1.0" in found.pop("client-1.0.dist-info/METADATA")
    assert found == {"client/__init__.py": b"value = 2\n", "client_tool.py": b"", "more/__init__.py": b"x = 2\n"}
    code = "import client; from importlib.metadata import version; print(client.value, version('client'))"
    assert output(environment(tmp_path / "environment"), code, PYTHONPATH=str(made.folder)) == "2 1.0"


def test_a_source_distribution_gives_its_packages(index: Index, tmp_path: Path) -> None:
    data = sdist("client", "1.0", {"src/client/__init__.py": "value = 1\n", "setup.py": "", "tests/test_x.py": ""})
    index.add("client", "client-1.0.tar.gz", data)
    tree = client_tree("client==1.0", settings=Settings(cache_folder=tmp_path / "cache"))
    made = overlay(tree, [Change("client/__init__.py", b"value = 1\n", b"value = 2\n")], tmp_path / "overlay")
    assert packaged(made.folder) == {"client/__init__.py": b"value = 2\n"}


def test_a_release_with_compiled_modules_is_refused(index: Index, tmp_path: Path) -> None:
    index.add("client", "client-1.0-py3-none-any.whl", wheel("client", "1.0", CLIENT))
    tree = client_tree("client==1.0", settings=Settings(cache_folder=tmp_path / "cache"))
    with pytest.raises(
        DriftcheckError, match=r"client/native.* is a compiled module, and only an installed client has"
    ):
        overlay(tree, [CHANGE], tmp_path / "overlay")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


def test_a_commit_gives_its_packages(project: Path, tmp_path: Path) -> None:
    git = ["git", "-C", str(project), "-c", "user.name=x", "-c", "user.email=x"]
    for command in (["init", "-q"], ["add", "src", "tests", "pyproject.toml"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    (project / "src/client/module.py").write_text("edited\n")
    made = overlay(client_tree(f"git+{project}"), [FIXED, ASIDE], tmp_path / "overlay")
    assert (made.paths, made.outside) == ((FIXED.path,), (ASIDE.path,))
    assert packaged(made.folder)["client/module.py"] == b"value = 2\n"
    assert not any(path.startswith(("src", "tests")) for path in packaged(made.folder))


def test_the_same_input_gives_the_same_bytes(project: Path, tmp_path: Path) -> None:
    one = overlay(folder_tree(project), [FIXED], tmp_path / "one").folder
    two = overlay(folder_tree(project), [FIXED], tmp_path / "two").folder
    assert files(one) == files(two)
    assert str(tmp_path).encode() not in files(one)[MARKER]


def test_an_overlay_is_replaced_by_the_next(project: Path, tmp_path: Path) -> None:
    place = tmp_path / "overlay"
    place.mkdir()
    overlay(folder_tree(project), [FIXED], place)
    code = f"import sys; sys.path.insert(0, {str(place)!r}); import client; print(client.value)"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=True, capture_output=True, env=environment).stdout == b"2\n"
    assert (place / "client" / "__pycache__").is_dir()
    (project / "src/client/data.txt").unlink()
    overlay(folder_tree(project), [Change(FIXED.path, FIXED.before, b"value = 3\n")], place)
    assert subprocess.run(command, check=True, capture_output=True, env=environment).stdout == b"3\n"
    assert sorted(packaged(place)) == ["client/__init__.py", "client/module.py"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["overlay", "project"]


def test_what_is_no_overlay_is_not_replaced(project: Path, tmp_path: Path) -> None:
    place = tmp_path / "overlay"
    place.mkdir()
    (place / "precious").write_text("")
    (tmp_path / "file").write_text("")
    (place / "link").symlink_to(tmp_path / "nothing")
    for destination, complaint in ((place, "is not empty"), (tmp_path / "file", "is no folder")):
        with pytest.raises(DriftcheckError, match=complaint):
            overlay(folder_tree(project), [FIXED], destination)
    for marker in (b"", b"{", b"[" * 100_000, b'{"format":2,"client":"","version":null,"files":{},"links":{}}'):
        (place / MARKER).write_bytes(marker)
        with pytest.raises(DriftcheckError, match="is not empty"):
            overlay(folder_tree(project), [FIXED], place)
    assert sorted(path.name for path in place.iterdir()) == [MARKER, "link", "precious"]


@pytest.mark.parametrize("edit", ["changed", "added", "removed", "a link", "a link to a folder"])
def test_an_overlay_that_was_edited_is_not_replaced(project: Path, tmp_path: Path, edit: str) -> None:
    place = overlay(folder_tree(project), [FIXED], tmp_path / "overlay").folder
    file = place / "client" / "module.py"
    if edit == "changed":
        file.write_text("mine\n")
    elif edit == "added":
        (place / "client" / "new.py").write_text("mine\n")
    elif edit == "removed":
        file.unlink()
    elif edit == "a link":
        (place / "client" / "new.py").symlink_to("module.py")
    else:
        (place / "client" / "new").symlink_to(project)
    before = files(place)
    with pytest.raises(DriftcheckError, match=r"client/(module|new)(\.py)? in the overlay .* has been edited"):
        overlay(folder_tree(project), [FIXED], place)
    assert files(place) == before


def test_links_inside_stay_and_links_out_are_refused(project: Path, tmp_path: Path) -> None:
    package = project / "src/client"
    (package / "inner").mkdir()
    (package / "inner" / "x.py").write_text("x = 1\n")
    (package / "alias").symlink_to("inner")
    (package / "loop").symlink_to(".")
    (package / "also.py").symlink_to(package / "module.py")
    made = overlay(
        folder_tree(project), [FIXED, Change("src/client/also.py", FIXED.before, FIXED.after)], tmp_path / "a"
    )
    assert os.readlink(made.folder / "client" / "alias") == "inner"
    assert os.readlink(made.folder / "client" / "loop") == "."
    assert (
        (made.folder / "client" / "also.py").read_bytes()
        == (made.folder / "client/module.py").read_bytes()
        == FIXED.after
    )
    assert made.paths == ("src/client/also.py", FIXED.path)
    overlay(folder_tree(project), [FIXED], made.folder)
    assert (made.folder / "client" / "also.py").read_bytes() == FIXED.after

    for target in (tmp_path, project / "tests", tmp_path / "missing", project / "pyproject.toml"):
        (package / "out").symlink_to(target)
        with pytest.raises(DriftcheckError, match="client/out is a link that leads out of client"):
            overlay(folder_tree(project), [FIXED], tmp_path / "b")
        (package / "out").unlink()
    os.mkfifo(package / "pipe")
    with pytest.raises(DriftcheckError, match="client/pipe is neither a file nor a folder"):
        overlay(folder_tree(project), [FIXED], tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_an_overlay_is_no_part_of_what_it_copies(project: Path, tmp_path: Path) -> None:
    for place in (project / "src/client/overlay", project / "src/client", project, tmp_path):
        with pytest.raises(DriftcheckError, match="name another folder"):
            overlay(folder_tree(project), [FIXED], place)


def test_what_is_not_as_its_change_says_is_not_copied(project: Path, tmp_path: Path) -> None:
    place = overlay(folder_tree(project), [FIXED], tmp_path / "overlay").folder
    before = files(place)
    (project / "src/client/module.py").write_text("edited\n")
    with pytest.raises(DriftcheckError, match=r"src/client/module\.py has been edited since"):
        overlay(folder_tree(project), [FIXED], place)
    assert files(place) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["overlay", "project"]


def test_a_folder_without_packages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with pytest.raises(DriftcheckError, match="has no package"):
        overlay(folder_tree(tmp_path / "project"), [], tmp_path / "overlay")


def test_a_place_that_can_not_be_written_is_told(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DriftcheckError, match=r"cannot make the overlay .*file/overlay: "):
        overlay(folder_tree(project), [FIXED], tmp_path / "file" / "overlay")


KILLED = """
import os, signal, sys, shutil
from pathlib import Path
from driftcheck.fixes.changes import Change
from driftcheck.fixes.overlay import overlay
from driftcheck.origins.folders import folder_tree

point, project, place = sys.argv[1:]
module, name = {"copy": (shutil, "copyfile"), "mark": (Path, "write_bytes"), "put": (os, "rename")}[point.split()[0]]
real, left = getattr(module, name), [int(point.split()[1])]

def call(*arguments, **options):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return real(*arguments, **options)

setattr(module, name, call)
overlay(folder_tree(Path(project)), [Change("src/client/module.py", b"value = 1\\n", b"value = 3\\n")], Path(place))
"""


@pytest.mark.parametrize("point", ["mark 0", "mark 1", "mark 2", "copy 0", "copy 1", "put 0", "put 1"])
def test_a_killed_run_leaves_an_overlay_that_is_whole(project: Path, tmp_path: Path, point: str) -> None:
    place = overlay(folder_tree(project), [FIXED], tmp_path / "overlay").folder
    before = files(place)
    done = subprocess.run([sys.executable, "-c", KILLED, point, str(project), str(place)], check=False)
    assert done.returncode == -signal.SIGKILL
    if point == "put 1":
        # The one moment in which the folder has no name: two folders can't be exchanged in one step everywhere.
        assert not place.exists()
    else:
        assert files(place) == before
    overlay(folder_tree(project), [FIXED], place)
    assert files(place) == before
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name for name in names if not name.startswith(".")] == ["overlay", "project"]


def test_bounds_hold_before_anything_is_written(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree: SourceTree = folder_tree(project)
    for bound in ("MEMBERS", "STREAM_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(f"driftcheck.fixes.overlay.{bound}", 2)
            with pytest.raises(DriftcheckError, match="too many for an overlay"):
                overlay(tree, [FIXED], tmp_path / "overlay")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]
