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
