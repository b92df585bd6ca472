"""The command `matrix` where the index or the cache does not give what is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.cli import main
from tests.origins.archives import wheel
from tests.origins.server import Index


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "app.py").write_text("import vllm\n\nvllm.start()\n", encoding="utf-8")
    return str(tmp_path / "app.py")


def test_a_release_that_cannot_be_read_is_told_on_stderr_too(
    index: Index, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    index.add("vllm", "vllm-1.0-py3-none-any.whl", b"no wheel")
    index.add("vllm", "vllm-2.0-py3-none-any.whl", wheel("vllm", "2.0", {"vllm/__init__.py": "def start(): ...\n"}))
    assert main(["matrix", client]) == 2
    said = capsys.readouterr()
    assert "fits      2.0" in said.out
    assert said.err.startswith("driftcheck: app: 1 release could not be read (1.0: ")
    assert said.err.count("\n") == 1


def test_an_empty_cache_has_no_release(index: Index, client: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", client, "--offline"]) == 2
    assert capsys.readouterr().err == "driftcheck: no release of vllm is in the cache, and --offline asks no index\n"


@pytest.mark.parametrize("command", ["matrix", "forecast"])
def test_each_client_that_cannot_be_read_has_one_harmless_line(
    index: Index, client: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    index.add("vllm", "vllm-2.0-py3-none-any.whl", wheel("vllm", "2.0", {"vllm/__init__.py": "def start(): ...\n"}))
    assert main([command, "./go\x1b[31mne.py", "./go\nne.py", client]) == 2
    said = capsys.readouterr()
    assert "app" in said.out
    assert said.err.splitlines() == [
        "driftcheck: go\\x1b[31mne.py: no such file or folder; check the path",
        "driftcheck: go ne.py: no such file or folder; check the path",
    ]


def project(folder: Path, requirement: str, code: str) -> str:
    """A client that requires releases of vllm."""
    metadata = f'[project]\nname = "app"\nversion = "1"\ndependencies = ["{requirement}"]\n'
    (folder / "project").mkdir()
    (folder / "project" / "pyproject.toml").write_text(metadata, encoding="utf-8")
    (folder / "project" / "app.py").write_text(code, encoding="utf-8")
    return str(folder / "project")


@pytest.mark.parametrize(
    ("requirement", "code", "expected"),
    [
        ("vllm>=1,<2", "import vllm\nvllm.start()\n", 0),
        ("vllm>=1", "import vllm\nvllm.start()\n", 1),
        ("vllm>=9", "import vllm\nvllm.start()\n", 1),
        ("vllm", "import vllm\nvllm.never()\n", 1),
    ],
)
def test_the_exit_code_says_whether_the_metadata_promise_what_is_so(
    index: Index,
    client: str,
    tmp_path: Path,
    requirement: str,
    code: str,
    expected: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for version, name in (("1.0", "start"), ("2.0", "begin")):
        wheel_ = wheel("vllm", version, {"vllm/__init__.py": f"def {name}(): ...\n"})
        index.add("vllm", f"vllm-{version}-py3-none-any.whl", wheel_)
    named = project(tmp_path, requirement, code)
    assert main(["matrix", named, "--releases", ">=1"]) == expected
    assert main(["matrix", named, "--releases", ">=1", "--exit-zero"]) == 0
    assert not capsys.readouterr().err


def test_the_page_explains_what_it_names(index: Index, client: str, capsys: pytest.CaptureFixture[str]) -> None:
    index.add("vllm", "vllm-2.0-py3-none-any.whl", wheel("vllm", "2.0", {"vllm/__init__.py": "def begin(): ...\n"}))
    assert main(["matrix", client, "--format", "html"]) == 1
    said = capsys.readouterr().out
    assert 'what <a href="#about-unresolved-attribute">unresolved-attribute</a> means' in said
    assert "<pre>unresolved-attribute (kind of finding: error" in said
    assert "\nWhat to do\n  " in said
