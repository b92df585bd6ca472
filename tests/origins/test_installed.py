"""Installed distributions, found in environments that the tests make."""

from __future__ import annotations

import hashlib
import os
import sys
import time
import venv
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins import interpreter
from driftcheck.origins.installed import InstalledTree
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import Settings
from tests.origins.archives import metadata, record_line

pytestmark = pytest.mark.skipif(os.name != "posix", reason="environments lie elsewhere")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    venv.create(folder, symlinks=True, with_pip=False)
    return folder


def site(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3.*/site-packages")
    return folder


def install(
    folder: Path,
    name: str,
    version: str,
    files: dict[str, str],
    *,
    record: bool = True,
    requirements: tuple[str, ...] = (),
) -> Path:
    information = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(metadata(name, version, requirements))
    lines = []
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        lines.append(record_line(path, text.encode()))
    if record:
        (information / "RECORD").write_text("\n".join([*lines, f"{information.name}/RECORD,,", ""]))
    return information


def installed(name: str, python: Path | str) -> InstalledTree:
    tree = target_tree(name, settings=Settings(python=str(python)))
    assert isinstance(tree, InstalledTree)
    return tree


ENGINE = {
    "engine/__init__.py": "A = 1\n",
    "engine/core.py": "B = 1\n",
    "engine/native.abi3.so": "",
    "../../../bin/engine": "",
}


def test_plain_environment(environment: Path) -> None:
    install(site(environment), "other", "3.0", {"other/__init__.py": ""})
    information = install(site(environment), "engine", "1.0", ENGINE, requirements=("rich>=1",))
    for python in (environment, environment / "bin" / "python"):
        tree = installed("engine", python)
        assert list(tree.paths) == ["engine/__init__.py", "engine/core.py", "engine/native.abi3.so"]
        assert (tree.name, tree.version, tree.origin) == ("engine", "1.0", "installed distribution")
        assert (tree.requirements, tree.roots, tree.uploaded) == (("rich>=1",), ("",), None)
        assert tree.read("engine/core.py") == b"B = 1\n"
        assert tree.executable == environment / "bin" / "python"
        assert tree.record_digest == hashlib.sha256((information / "RECORD").read_bytes()).hexdigest()


def test_a_plain_environment_is_not_started(environment: Path) -> None:
    install(site(environment), "engine", "1.0", ENGINE)
    python = environment / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    assert installed("engine", environment).version == "1.0"
    with pytest.raises(DriftcheckError, match="failed: exit code 3"):
        installed("absent", environment)


def test_active_environment(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site(environment), "engine", "1.0", ENGINE)
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    assert client_tree("engine").version == "1.0"
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setenv("CONDA_PREFIX", str(environment))
    assert client_tree("engine").version == "1.0"
    monkeypatch.delenv("CONDA_PREFIX")
    assert target_tree("pytest").version == pytest.__version__


def test_files_beside_the_record_count(environment: Path) -> None:
    """What the interpreter would import counts, though the installer did not write it."""
    install(site(environment), "engine", "1.0", ENGINE)
    (site(environment) / "engine" / "patched.py").write_text("C = 1\n")
    (site(environment) / "engine" / "core.py").write_text("B = 2\n")
    tree = installed("engine", environment)
    assert tree.read("engine/patched.py") == b"C = 1\n"
    assert tree.digest("engine/core.py") == hashlib.sha256(b"B = 2\n").hexdigest()


def test_name_is_spelled_in_many_ways(environment: Path) -> None:
    install(site(environment), "My.Engine", "1.0", {"my_engine.py": ""})
    for name in ("my-engine", "my_engine", "MY.ENGINE"):
        assert list(installed(name, environment).paths) == ["my_engine.py"]


def test_import_name_of_another_distribution(environment: Path) -> None:
    install(site(environment), "aaa", "9", {"aaa/__init__.py": ""})
    install(site(environment), "engine-cpu", "1.0", ENGINE)
    tree = installed("engine", environment)
    assert (tree.name, tree.version) == ("engine-cpu", "1.0")
    assert "engine/core.py" in tree.paths


def test_empty_distribution_of_that_name(environment: Path) -> None:
    """Some wheels leave an empty distribution behind, so that others find the name they require."""
    install(site(environment), "engine", "0.0.0", {})
    install(site(environment), "engine-cpu", "1.0", ENGINE)
    tree = installed("engine", environment)
    assert (tree.name, tree.version) == ("engine-cpu", "1.0")


def test_namespace_shared_by_distributions(environment: Path) -> None:
    files = {
        "space/engine/__init__.py": "",
        "space/engine/core.py": "",
        "space/engine/deep/x.py": "",
        "space/loose.py": "",
    }
    install(site(environment), "engine", "1.0", files)
    install(site(environment), "other", "1.0", {"space/other/__init__.py": "", "space/more.py": ""})
    assert set(installed("engine", environment).paths) == set(files)


def test_no_record(environment: Path) -> None:
    information = install(site(environment), "engine", "1.0", ENGINE | {"single.py": ""}, record=False)
    (information / "top_level.txt").write_text("engine\nsingle\ngone\n")
    tree = installed("engine", environment)
    assert {"engine/core.py", "single.py"} <= set(tree.paths)
    assert tree.record_digest is None


@pytest.mark.parametrize("record", ["\0", '"', "\udcff", "../../../../etc/passwd.py,,\n", "/etc/passwd.py,,\n"])
def test_damaged_record(environment: Path, record: str) -> None:
    information = install(site(environment), "engine", "1.0", ENGINE)
    (information / "RECORD").write_bytes(record.encode("utf-8", "surrogateescape"))
    tree = installed("engine", environment)
    assert all(path.startswith("engine/") for path in tree.paths)
    assert tree.read("engine/core.py")


def test_editable_installation(environment: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for path in ("src/engine/__init__.py", "src/engine/core.py", "tests/test_core.py", "setup.py"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("")
    information = install(site(environment), "engine", "1.1.dev0", {"__editable___engine_finder.py": ""})
    (information / "direct_url.json").write_text(f'{{"url": "{project.as_uri()}", "dir_info": {{"editable": true}}}}')
    tree = installed("engine", environment)
    assert list(tree.paths) == ["engine/__init__.py", "engine/core.py"]
    assert (tree.version, tree.origin) == ("1.1.dev0", "installed in editable mode")
    (information / "direct_url.json").write_text('{"url": 5, "dir_info": []}')
    with pytest.raises(DriftcheckError, match="engine is not installed"):
        installed("engine", environment)


def test_development_installation_of_old(environment: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "engine").mkdir(parents=True)
    (project / "engine" / "__init__.py").write_text("")
    (project / "setup.py").write_text("")
    (project / "engine.egg-info").mkdir()
    (project / "engine.egg-info" / "PKG-INFO").write_text(metadata("engine", "0.5"))
    (project / "engine.egg-info" / "top_level.txt").write_text("engine\n")
    (site(environment) / "easy-install.pth").write_text(f"{project}\n")
    tree = installed("engine", environment)
    assert (list(tree.paths), tree.version) == (["engine/__init__.py"], "0.5")


def test_package_on_pythonpath(environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkout" / "engine").mkdir(parents=True)
    (tmp_path / "checkout" / "engine" / "__init__.py").write_text('__version__ = "2.0"\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "checkout"))
    tree = installed("engine", environment)
    assert (list(tree.paths), tree.version) == (["engine/__init__.py"], "2.0")
    assert tree.origin == "importable without a distribution"
    # It also hides an installed one, as it would when imported.
    install(site(environment), "engine", "1.0", ENGINE)
    assert installed("engine", environment).version == "2.0"
    monkeypatch.delenv("PYTHONPATH")
    assert installed("engine", environment).version == "1.0"


def test_working_folder_shadows_nothing(environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "engine.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DriftcheckError, match="engine is not installed"):
        installed("engine", environment)


def test_not_installed(environment: Path) -> None:
    with pytest.raises(DriftcheckError, match="or a release such as engine==latest"):
        installed("engine", environment)


def fake(folder: Path, script: str) -> Path:
    python = folder / "python"
    python.write_text(f"#!{sys.executable}\nimport os, sys, time\n{script}\n")
    python.chmod(0o755)
    return python


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("print('garbage')", "does not answer as a Python 3 interpreter"),
        ("print('driftcheck-interpreter:{')", "does not answer as a Python 3 interpreter"),
        ("print('driftcheck-interpreter:[[], [2, 7, 18]]')", "does not answer as a Python 3 interpreter"),
        ("print('driftcheck-interpreter:5')", "does not answer as a Python 3 interpreter"),
        ("sys.exit('no encodings')", "failed: no encodings"),
        ("os.kill(os.getpid(), 11)", "failed: exit code -11"),
        ("while True: print('x' * 100000)", "printed more than 4,000,000 bytes"),
        ("while True: print('x' * 100000, file=sys.stderr)", "printed more than 4,000,000 bytes"),
    ],
)
def test_interpreters_that_are_none(tmp_path: Path, script: str, complaint: str) -> None:
    with pytest.raises(DriftcheckError, match=complaint) as caught:
        installed("engine", fake(tmp_path, script))
    assert "\n" not in str(caught.value)
    assert "--python" in str(caught.value)


def test_interpreter_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_SECONDS", 0.5)
    with pytest.raises(DriftcheckError, match="gave no answer in"):
        installed("engine", fake(tmp_path, "time.sleep(600)"))


def test_child_that_outlives_its_interpreter(tmp_path: Path) -> None:
    """A grandchild that holds the pipe open neither delays the answer for long nor survives."""
    pid_file = tmp_path / "pid"
    child = f"    open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n    time.sleep(600)"
    script = f"if os.fork() == 0:\n{child}\nelse:\n    time.sleep(0.3)"
    with pytest.raises(DriftcheckError, match="does not answer"):
        installed("engine", fake(tmp_path, script))
    pid = int(pid_file.read_text())
    for _ in range(100):
        if not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child is still there")


def test_noise_around_the_answer(environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment may run code of its own at every start, and print."""
    (site(environment) / "noise.pth").write_text(
        "import sys; sys.stdout.write('hello\\n'); sys.stderr.write('x' * 5000)\n"
    )
    (tmp_path / "more").mkdir()
    install(tmp_path / "more", "engine", "1.0", ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "more"))
    assert installed("engine", environment).version == "1.0"


@pytest.mark.parametrize(
    ("python", "complaint"),
    [
        ("/nowhere/bin/python", "no such interpreter"),
        ("surely-no-such-command", "no such interpreter"),
        (".", "holds no Python interpreter"),
        (__file__, "is not executable"),
    ],
)
def test_interpreters_that_do_not_exist(
    python: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DriftcheckError, match=complaint):
        installed("engine", python)


def test_stale_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/nowhere/venv")
    with pytest.raises(DriftcheckError, match="VIRTUAL_ENV=/nowhere/venv holds no Python interpreter"):
        target_tree("engine")
