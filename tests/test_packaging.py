"""What is built installs and runs on every Python that the machine has, with the rules and the types in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from driftcheck import __version__
from tests.test_setup import project

ROOT = Path(__file__).parents[1]
# The oldest and the newest that most machines have; the others are tried where there is time.
RELEASES = ["3.10", "3.13", *(pytest.param(release, marks=pytest.mark.wide) for release in ("3.11", "3.12", "3.14"))]

pytestmark = pytest.mark.index


def interpreter(release: str) -> Path | None:
    """A Python of that release: on the path, or one of pyenv's, whose commands on the path only run the active one."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{release}"), *sorted(versions.glob(f"{release}*/bin/python{release}"))]
    for candidate in found:
        if candidate is not None:
            done = subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False)
            if done.returncode == 0:
                return Path(candidate)
    return None


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env={**kept, **variables}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("built")
    done = run("uv", "build", "--quiet", "--out-dir", folder, ROOT)
    assert done.returncode == 0, done.stderr
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def test_the_wheel_has_all_rules_and_the_mark_of_types(built: tuple[Path, Path]) -> None:
    sdist, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    rules = {path.relative_to(ROOT / "rules").as_posix() for path in (ROOT / "rules").rglob("*") if path.is_file()}
    rules = {name for name in rules if "__pycache__" not in name}
    assert rules
    assert {name.removeprefix("driftcheck/_rules/") for name in names if "/_rules/" in name} == rules
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "driftcheck").rglob("*.py")}
    assert {"driftcheck/py.typed", *modules} <= names
    assert not {name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))}
    with tarfile.open(sdist) as archive:
        sources = {member.name.partition("/")[2] for member in archive.getmembers()}
    assert {"pyproject.toml", "LICENSE", "README.md", "docs/gate.md", "tests/test_packaging.py", *modules} <= sources


@pytest.mark.parametrize("release", RELEASES)
def test_it_installs_and_runs_on(release: str, built: tuple[Path, Path], tmp_path: Path) -> None:
    python = interpreter(release)
    if python is None:
        pytest.skip(f"this machine has no Python {release}")
    made = run("uv", "venv", "--quiet", "--no-project", "--python", python, tmp_path / "environment")
    assert made.returncode == 0, made.stderr
    programs = tmp_path / "environment" / "bin"
    done = run("uv", "pip", "install", "--quiet", "--python", programs / "python", built[1])
    assert done.returncode == 0, done.stderr
    assert run(programs / "driftcheck", "--version").stdout == f"driftcheck {__version__}\n"
    assert run(programs / "python", "-m", "driftcheck", "--version").stdout == f"driftcheck {__version__}\n"
    assert "decoder-layer-call" in run(programs / "driftcheck", "explain").stdout
    folder = project(tmp_path)
    kept = {"DRIFTCHECK_CACHE_DIR": str(tmp_path / "cache")}
    for form in ("json", "text", "sarif", "github", "gitlab", "junit", "markdown"):
        audit = run(
            programs / "python", "-W", "error", "-m", "driftcheck", "audit", "--format", form, cwd=folder, **kept
        )
        assert (audit.returncode, audit.stderr) == (1, ""), form
        assert "unknown-argument" in audit.stdout
    for name in ("old/vllm/before.py", "new/vllm/after.py"):
        (tmp_path / "releases" / name).write_text("def helper(first, second): ...\n", encoding="utf-8")
    (folder / "app/moved.py").write_text("from vllm.before import helper\n", encoding="utf-8")
    fixed = run(programs / "driftcheck", "fix", "--unsafe", cwd=folder, **kept)
    assert "+from vllm.after import helper\n" in fixed.stdout, fixed.stderr
    gate = run(programs / "driftcheck", "gate", "--python", programs / "python", "--", "true", cwd=folder, **kept)
    assert (gate.returncode, "vllm is not installed" in gate.stderr) == (2, True)


def test_it_runs_without_being_installed(built: tuple[Path, Path], tmp_path: Path) -> None:
    folder = project(tmp_path)
    for runner in (("uvx", "--from", built[1]), ("uvx", "pipx", "run", "--spec", built[1])):
        homes = {"PIPX_HOME": str(tmp_path / "pipx"), "DRIFTCHECK_CACHE_DIR": str(tmp_path / "cache")}
        done = run(*runner, "driftcheck", "audit", "--format", "json", cwd=folder, **homes)
        assert done.returncode == 1, done.stderr
        assert [finding["kind"] for finding in json.loads(done.stdout)["findings"]] == ["unknown-argument"]


@pytest.mark.wide
def test_its_types_are_seen_by_others(built: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "use.py").write_text(
        "from driftcheck.audit import audit\nreveal_type(audit('.'))\naudit(1)\n", encoding="utf-8"
    )
    command = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "mypy", "use.py")
    done = run(*command, cwd=tmp_path, MYPYPATH=str(tmp_path / "site"))
    assert 'Revealed type is "driftcheck.model.Report"' in done.stdout
    assert 'Argument 1 to "audit" has incompatible type "int"' in done.stdout
