"""Input that is not what it seems: an audit of it ends with an answer, or with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftcheck.audit import audit, audit_trees
from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.model import EnvironmentEntry
from driftcheck.report.environment_text import render_environment, render_environment_json
from driftcheck.report.json_report import render_json
from driftcheck.tree import MemoryTree
from tests.report.samples import CLEAN, HOSTILE_TEXT


def test_strings_that_no_file_can_hold() -> None:
    source = "import os, vllm\nx = getattr(vllm, '\\ud800')\nos.environ['VLLM_\\ud800'] = '1'\nvllm.gone\n"
    target = {"vllm/__init__.py": "", "vllm/envs.py": "environment_variables = {'VLLM_A': lambda: 1}\n"}
    report = audit_trees(MemoryTree({"app.py": source}, "app"), MemoryTree(target, "vllm", "1.0"))
    assert "gone" in render_json(report)


def test_a_baseline_of_another_package_is_refused(tmp_path: Path) -> None:
    for folder, package in (("client", "app"), ("target", "vllm"), ("other", "torch")):
        (tmp_path / folder / package).mkdir(parents=True)
        (tmp_path / folder / package / "__init__.py").write_text("import vllm\n" if folder == "client" else "")
    with pytest.raises(DriftcheckError, match="holds nothing of the target"):
        audit(
            str(tmp_path / "client"), against=str(tmp_path / "target"), baseline=str(tmp_path / "other"), offline=True
        )


HOSTILE = "\\x1b[31mred\\x1b]0;title\\x07\\u202e\\x9b2J"
FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "markdown")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client and a target full of what a terminal would obey, wherever text from them comes into a report."""
    client, target = tmp_path / "client", tmp_path / "target"
    (target / "vllm").mkdir(parents=True)
    client.mkdir()
    (target / "vllm/__init__.py").write_text(f"def run(a='{HOSTILE}'): ...\n".replace("\\x", "\\x"), encoding="utf-8")
    raw = HOSTILE.encode().decode("unicode_escape")
    (target / "vllm/envs.py").write_text("environment_variables = {'VLLM_A': lambda: 1}\n", encoding="utf-8")
    lines = [
        "import os, vllm",
        f"os.environ['VLLM_{HOSTILE}'] = '1'",
        f"vllm.run(b='{raw.translate({10: None})}')",
        f"vllm.run(c=1)  # driftcheck: ignore[unknown-argument] {raw}",
        f"x = 1  # driftcheck: ignore[{raw}] {raw}",
        f"vllm.gone('{raw}')",
    ]
    (client / "app.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (client / "\x1b[2J.py").write_text("import vllm\nvllm.gone()\n", encoding="utf-8")
    (client / "broken.py").write_text(f"import vllm\n'{raw}\n", encoding="utf-8")
    (client / "pyproject.toml").write_text(f'[project]\nname = "a{HOSTILE[4:]}"\nversion = "1"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path / "cache"))
    return client


@pytest.mark.parametrize("form", FORMATS)
def test_no_report_has_anything_that_a_terminal_obeys(
    form: str, hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--against", "./target", "--baseline", "./target", "--format", form, "--explain-unresolved"]
    assert main(["audit", "client", *options]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert all(line.isprintable() for line in captured.out.split("\n")), form
    assert "gone" in captured.out


def test_neither_has_the_table_of_an_environment() -> None:
    entry = EnvironmentEntry(HOSTILE_TEXT, HOSTILE_TEXT, (HOSTILE_TEXT,), True, None, False, fault=HOSTILE_TEXT)
    fitting = EnvironmentEntry(HOSTILE_TEXT, None, (), None, CLEAN, False)
    text = render_environment(HOSTILE_TEXT, [entry, fitting])
    assert all(line.isprintable() for line in text.split("\n"))
    assert render_environment_json(HOSTILE_TEXT, HOSTILE_TEXT, [entry, fitting]).replace("\n", "").isprintable()


@pytest.mark.parametrize("opening", ["(", "[", "{", "f(", "not ", "-", "lambda: ", "a.b(c=", "x[", "*"])
def test_ten_thousand_nested_brackets_are_a_file_that_cannot_be_read(
    opening: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path / "cache"))
    for folder, name in (("client", "app.py"), ("target/vllm", "__init__.py")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_text("import vllm\nvllm.gone()\n", encoding="utf-8")
    closing = {"(": ")", "[": "]", "{": "}", "f(": ")", "a.b(c=": ")", "x[": "]"}.get(opening, "")
    deep = f"import vllm\nx = {opening * 10_000}vllm{closing * 10_000}\n"
    (tmp_path / "client/deep.py").write_text(deep, encoding="utf-8")
    (tmp_path / "target/vllm/deep.py").write_text(deep, encoding="utf-8")
    assert main(["audit", str(tmp_path / "client"), "--against", str(tmp_path / "target"), "--format", "json"]) in (
        0,
        1,
    )
    captured = capsys.readouterr()
    assert captured.err == ""
    assert [file["path"] for file in json.loads(captured.out)["skipped"]] == ["deep.py"]


def test_a_hostile_pyproject_is_read_in_no_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would keep a careless regular expression busy for years, as patterns and as what is read with our own."""
    monkeypatch.chdir(tmp_path)
    patterns = ["a" * 200 + "!", "(a+)+$", "*a" * 140 + "!", "[" * 300, "**/" * 90 + "x", "[!" * 100, "?*" * 140]
    requirements = ["vllm" + "=" * 20_000, "vllm" + " " * 50_000 + "!", "a-" * 50_000, "vllm" + ">=1," * 20_000]
    text = f"""
        [project]
        name = "{"x-_." * 5000}!"
        version = "{"1." * 20_000}!"
        dependencies = {json.dumps(requirements)}
        [project.optional-dependencies]
        "{"-_" * 10_000}" = {json.dumps(requirements)}
        [tool.driftcheck]
        exclude = {json.dumps(patterns)}
    """
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    (tmp_path / "app.py").write_text("import vllm\nvllm.gone\n", encoding="utf-8")
    target = tmp_path.parent / f"{tmp_path.name}-target" / "vllm"
    target.mkdir(parents=True)
    (target / "__init__.py").touch()
    inside = tmp_path / ("a" * 200)
    inside.mkdir()
    (inside / ("a" * 200 + ".py")).write_text("import vllm\nvllm.gone\n", encoding="utf-8")
    assert main(["audit", "--against", str(target.parent), "--offline"]) in (0, 1)
    assert capsys.readouterr().err == ""
