"""What the files of a project say of its name, version and requirements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from driftcheck.origins.metadata import Metadata
from driftcheck.origins.project import read_project, stated_version
from driftcheck.origins.select import client_tree


def said(files: Mapping[str, str | bytes]) -> Metadata:
    return read_project(lambda path: data.encode() if isinstance(data := files.get(path), str) else data)


def test_pyproject() -> None:
    text = """
    [project]
    name = "client"
    version = "1.2"
    dependencies = ["rich>=13", 5]
    [project.optional-dependencies]
    datagen = ["vllm==0.11.0", "torch; python_version < '3.13'"]
    [dependency-groups]
    dev = ["pytest", {include-group = "other"}]
    """
    assert said({"pyproject.toml": text}) == Metadata(
        "client",
        "1.2",
        (
            "rich>=13",
            'vllm==0.11.0 ; extra == "datagen"',
            "torch ; (python_version < '3.13') and extra == \"datagen\"",
            'pytest ; extra == "dev"',
        ),
    )


def test_requirements_in_files_that_setuptools_reads() -> None:
    text = """
    [project]
    name = "client"
    dynamic = ["dependencies", "version"]
    [tool.setuptools.dynamic]
    dependencies = {file = ["requirements/common.txt"]}
    optional-dependencies.gpu = {file = "gpu.txt"}
    """
    files = {
        "pyproject.toml": text,
        "requirements/common.txt": "# all\nvllm>=0.9 # pinned\n-r x\n\n",
        "gpu.txt": "torch\n",
    }
    assert said(files).requirements == ("vllm>=0.9", 'torch ; extra == "gpu"')


def test_setup_py_is_read_and_never_run() -> None:
    text = """
import sys
from setuptools import setup
raise SystemExit("run")
VLLM = ["vllm==0.8.5"]
setup(name="client", version="0.3", install_requires=["rich", *VLLM], extras_require={"vllm": VLLM, "x": compute()})
"""
    about = said({"setup.py": text})
    assert (about.name, about.version) == ("client", "0.3")
    assert about.requirements == ("rich", 'vllm==0.8.5 ; extra == "vllm"')


def test_setup_py_whose_names_stand_for_each_other() -> None:
    doubling = "".join(f"N{i} = {{'a': N{i + 1}, 'b': N{i + 1}}}\n" for i in range(64))
    extras = "EXTRAS = {'x': ['vllm==0.8.5'], 'self': EXTRAS, 'n': N0}\n"
    text = f"{extras}{doubling}setup(name=N0, extras_require=EXTRAS)\n"
    assert said({"setup.py": text}) == Metadata(None, None, ('vllm==0.8.5 ; extra == "x"',))


def test_setup_cfg() -> None:
    text = "[metadata]\nname = client\nversion = attr: client.v\n[options]\ninstall_requires =\n  vllm~=0.9.0\n  rich\n"
    assert said({"setup.cfg": text}) == Metadata("client", None, ("vllm~=0.9.0", "rich"))


def test_requirements_file_where_nothing_else_says() -> None:
    assert said({"setup.py": "setup(name='client')", "requirements.txt": "vllm==0.9.1\n"}).requirements == (
        "vllm==0.9.1",
    )


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[project", b"project = 1", b"[project]\nname = 3", b"[" * 20000])
@pytest.mark.parametrize("name", ["pyproject.toml", "setup.cfg", "PKG-INFO", "requirements.txt"])
def test_damaged_files_say_nothing_of_a_name(name: str, data: bytes) -> None:
    assert said({name: data}).name is None


@pytest.mark.parametrize("data", [b"\0", b"(" * 5000, b"def", b"\xff", b"setup(**everything)"])
def test_damaged_setup_py(data: bytes) -> None:
    assert said({"setup.py": data}) == Metadata()


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"pkg/__init__.py": b'__version__ = "1.2.3"\n'}, "1.2.3"),
        ({"pkg/_version.py": b"__version__ = version = '4.5'\n", "pkg/__init__.py": b'__version__ = "0"\n'}, "4.5"),
        ({"pkg/version.py": b'__version__: str = "1"\n'}, "1"),
        ({"pkg/__init__.py": b"from pkg._version import __version__\n"}, None),
    ],
)
def test_version_in_sources(files: dict[str, bytes], version: str | None) -> None:
    assert stated_version(files.get, ["pkg/"]) == version


def test_project_above_a_package(tmp_path: Path) -> None:
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "__init__.py").write_text('__version__ = "7"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "client"\ndependencies = ["vllm==0.9.2"]\n')
    for place in (tmp_path, tmp_path / "src" / "pkg"):
        tree = client_tree(str(place))
        assert (tree.name, tree.version, tree.requirements) == ("client", "7", ("vllm==0.9.2",))
