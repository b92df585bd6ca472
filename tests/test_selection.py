"""The options that say which findings count, tried on a clone."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.selection import Selection, is_excluded, selected
from tests.report.samples import REPORT

FILES = {
    "old/vllm/__init__.py": "def run(a, b): ...\ndef stop(): ...\n",
    "new/vllm/__init__.py": "def run(a): ...\n",
    "client/app.py": "import vllm\nvllm.run(1, b=2)\nvllm.gone()\n",
    "client/more/other.py": "import vllm\nvllm.stop()\n",
}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        git(*command)
    return tmp_path / "client"


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def found(capsys: pytest.CaptureFixture[str], *options: str, client: str = "client") -> list[str]:
    """The places of what counts."""
    capsys.readouterr()
    main(["audit", client, "--against", "./new", "--baseline", "./old", "--format", "json", *options])
    return [f"{each['path']}:{each['line']}" for each in json.loads(capsys.readouterr().out)["findings"]]


def test_only_what_the_target_adds(client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys) == ["app.py:2", "app.py:3", "more/other.py:2"]
    assert found(capsys, "--new-only") == ["app.py:2", "more/other.py:2"]
    (client / "pyproject.toml").write_text("[tool.driftcheck]\nnew-only = true\n", encoding="utf-8")
    assert found(capsys) == ["app.py:2", "more/other.py:2"]


def test_what_is_new_is_told_by_a_baseline_only() -> None:
    with pytest.raises(DriftcheckError, match="name one with --baseline"):
        selected(replace(REPORT, baseline=None), Selection(new_only=True))
    report = selected(REPORT, Selection(new_only=True))
    assert len(report.findings) == 2
    assert report.notices == ("left out: 1 that were found with the baseline too (--new-only)",)


def test_only_files_that_have_changed(client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, "--diff-base", "HEAD") == []
    with (client / "more/other.py").open("a", encoding="utf-8") as file:
        file.write("x = 1\n")
    (client / "new.py").write_text("from vllm import stop\n", encoding="utf-8")
    assert found(capsys, "--diff-base", "HEAD") == ["more/other.py:2", "new.py:1"]
    git("add", "-A")
    git("commit", "-q", "-m", "second")
    assert found(capsys, "--diff-base", "HEAD") == []
    assert found(capsys, "--diff-base", "HEAD~1") == ["more/other.py:2", "new.py:1"]
    assert found(capsys, "--diff-base", "HEAD~1", client="client/more") == ["other.py:2"]


def test_what_another_branch_changed_meanwhile_is_not_ours(client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("branch", "ours")
    (client / "app.py").write_text(FILES["client/app.py"] + "# theirs\n", encoding="utf-8")
    git("commit", "-q", "-a", "-m", "theirs")
    git("branch", "theirs")
    git("checkout", "-q", "ours")
    (client / "more/other.py").write_text(FILES["client/more/other.py"] + "# ours\n", encoding="utf-8")
    git("commit", "-q", "-a", "-m", "ours")
    assert found(capsys, "--diff-base", "theirs") == ["more/other.py:2"]


def test_a_clone_s_settings_run_nothing(client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (client.parent / ".gitattributes").write_text("*.py diff=evil filter=evil\n", encoding="utf-8")
    for key in ("diff.evil.textconv", "diff.evil.command", "filter.evil.clean", "diff.external", "core.fsmonitor"):
        git("config", key, "touch ran; cat")
    with (client / "app.py").open("a", encoding="utf-8") as file:
        file.write("x = 1\n")
    assert found(capsys, "--diff-base", "HEAD") == ["app.py:2", "app.py:3"]
    assert not list(client.parent.rglob("ran"))


@pytest.mark.parametrize("ref", ["no-such-ref", "--output=x", "HEAD:client"])
def test_a_ref_that_is_none(ref: str, client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "client", "--against", "./new", "--baseline", "./old", f"--diff-base={ref}"]) == 2
    assert f"no ref {ref} in the clone" in capsys.readouterr().err
    assert not (client.parent / "x").exists()


def test_a_client_that_is_in_no_clone(client: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client.parent.joinpath(".git").rename(tmp_path / "git")
    assert main(["audit", "client", "--against", "./new", "--baseline", "./old", "--diff-base", "HEAD"]) == 2
    assert "is not a git repository" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "pattern", "is_out"),
    [
        ("tests/test_app.py", "tests", True),
        ("tests/test_app.py", "tests/", True),
        ("lib/tests/test_app.py", "tests", True),
        ("lib/tests/test_app.py", "tests/*", False),
        ("lib/tests/test_app.py", "lib/tests", True),
        ("lib/tests/test_app.py", "*/tests/*", True),
        ("lib/test_app.py", "test_*.py", True),
        ("lib/test_app.py", "lib/*.py", True),
        ("lib/app.py", "app", False),
        ("lib/app.py", "li", False),
        ("Lib/app.py", "lib", False),
        ("a" * 5000, "a*" * 140 + "b", False),
    ],
)
def test_patterns(path: str, pattern: str, *, is_out: bool) -> None:
    assert is_excluded(path, [pattern]) is is_out


def test_what_is_excluded_counts_nowhere(client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (client / "more/broken.py").write_text("import vllm (", encoding="utf-8")
    assert found(capsys, "--exclude", "app.py", "--exclude", "more") == []
    capsys.readouterr()
    assert main(["audit", "client", "--against", "./new", "--baseline", "./old", "--exclude", "more"]) == 1
    assert "skipped" not in capsys.readouterr().out


def test_far_too_many_patterns(client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "client", "--exclude", "x" * 301]) == 2
    assert "--exclude holds more than 100 patterns" in capsys.readouterr().err
