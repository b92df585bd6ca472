"""What holds for the project as a whole: its dependencies, what it ships, and what no file of it may name."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from driftcheck.origins.metadata import parse_toml

ROOT = Path(__file__).parents[1]
PROJECT = parse_toml((ROOT / "pyproject.toml").read_bytes())["project"]
TEXT = {"", ".cfg", ".json", ".md", ".py", ".toml", ".txt", ".typed", ".yaml", ".yml"}
NOT_OURS = {"build", "dist", "node_modules"}


def files() -> Iterator[Path]:
    """The project's own text files."""
    pending = [ROOT]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            name = path.name
            if path.is_symlink() or name in NOT_OURS or (name.startswith((".", "__py")) and name != ".ci"):
                continue
            if path.is_dir():
                if not (path / "pyvenv.cfg").exists():
                    pending.append(path)
            elif path.suffix in TEXT:
                yield path


def imported(path: Path) -> Iterator[str]:
    """The top-level names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def names(requirements: list[str]) -> set[str]:
    return {Requirement(requirement).name for requirement in requirements}


def test_every_dependency_is_imported_and_every_import_is_a_dependency() -> None:
    known = sys.stdlib_module_names | {"driftcheck"}
    used = {name for path in (ROOT / "driftcheck").rglob("*.py") for name in imported(path)} - known
    extraction = ROOT / "driftcheck" / "extract"
    elsewhere = {
        name
        for path in (ROOT / "driftcheck").rglob("*.py")
        if not path.is_relative_to(extraction)
        for name in imported(path)
    } - known
    # The plugin is loaded by pytest alone.
    given = {"pytest", "tomllib"}
    assert {name.replace("_", "-") for name in elsewhere} - given == names(PROJECT["dependencies"])
    # Only extraction needs vLLM, and what vLLM itself brings.
    brought = {"huggingface_hub", "pynvml", "torch", "transformers"}
    extras = PROJECT["optional-dependencies"]
    assert used - elsewhere == {"pyarrow", "ray", "vllm", "zlib_ng", *brought}
    assert {"pyarrow", "vllm", "zlib-ng"} <= names(extras["extract"])
    assert names(extras["ray"]) == {"ray"}


def test_nothing_is_required_twice() -> None:
    assert not names(PROJECT["dependencies"]) & names(PROJECT["optional-dependencies"]["dev"])


def test_only_the_public_index_s_own_library_names_it() -> None:
    host = urlsplit(PYPI_SIMPLE_ENDPOINT).hostname
    assert host
    read = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files()}
    assert {"README.md", ".ci/run", "driftcheck/cli.py", "tests/test_project.py", "docs/decisions.md"} <= read.keys()
    assert [name for name, text in read.items() if host in text] == []


def test_no_file_names_a_place_on_this_machine() -> None:
    places = re.compile(rf"(?<![\w./-])({re.escape(str(ROOT))}|{re.escape(str(Path.home()))})(?![\w-])")
    assert [path.name for path in files() if places.search(path.read_text(encoding="utf-8"))] == []


def test_types_and_licence_are_shipped() -> None:
    assert (ROOT / "driftcheck" / "py.typed").is_file()
    assert [name for name in PROJECT["license-files"] if not (ROOT / name).is_file()] == []
