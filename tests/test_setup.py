"""What sets driftcheck up in other tools: configuration with its schema, completion, pytest, pre-commit, an action."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from driftcheck.cli import main
from driftcheck.configuration import KEYS, _checked, schema
from driftcheck.errors import DriftcheckError
from driftcheck.model import Kind, Severity
from driftcheck.setup_cli import SHELLS

ROOT = Path(__file__).parents[1]
OLD = "def run(a, b): ...\n"
NEW = "def run(a): ...\n"
CLIENT = "import vllm\nvllm.run(1, b=2)\n"
CONFIGURATION = '[tool.driftcheck]\nagainst = "../releases/new"\nbaseline = "../releases/old"\n'


def project(folder: Path, client: str = CLIENT) -> Path:
    """A project whose own configuration says all, with the releases of its target beside it."""
    files = {
        "releases/old/vllm/__init__.py": OLD,
        "releases/new/vllm/__init__.py": NEW,
        "project/app/__init__.py": "",
        "project/app/core.py": client,
        "project/pyproject.toml": f'[project]\nname = "app"\n{CONFIGURATION}',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "project"


# Configuration


VALUES = st.one_of(
    st.sampled_from(["vllm", "error", "silent", "fatal", "../x", "known.json", ""]),
    st.booleans(),
    st.integers(),
    st.lists(st.sampled_from(["unknown-argument", "unknown-arg", "tests", "x" * 301]), max_size=3),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.booleans(), max_size=1),
)
NAMES = st.sampled_from([*(key.name for key in KEYS), "againts", "fail_on"])


@given(st.dictionaries(NAMES, VALUES, max_size=3))
def test_the_schema_and_the_reader_agree(table: dict[str, Any]) -> None:
    Draft7Validator.check_schema(schema())
    try:
        _checked(table, Path("pyproject.toml"), may_name_python=True)
    except DriftcheckError as error:
        # That a file lies in a folder is nothing that a schema can say.
        accepted = "leads out of its folder" in str(error)
    else:
        accepted = True
    assert Draft7Validator(schema()).is_valid(table) is accepted


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configuration", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    properties: Any = schema()["properties"]
    assert properties["ignore"]["items"]["enum"] == [kind.value for kind in Kind]
    assert properties["fail-on"]["enum"] == [severity.value for severity in Severity]


def test_what_is_set_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "select = ['unknown-argument', 'missing-argument']\nexclude = ['b', 'a']\nnew-only = true\nfail-on = 'note'\n"
    )
    (tmp_path / "pyproject.toml").write_text(f'[tool.driftcheck]\n{text}against = "v\\u001b"\n', encoding="utf-8")
    assert main(["configuration"]) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("=")]
    assert shown == [
        '= "v\\u001b"',
        '= ["missing-argument", "unknown-argument"]',
        '= "note"',
        '= ["b", "a"]',
        "= true",
    ]
    (tmp_path / "pyproject.toml").write_text("[tool.driftcheck]\nagainst = 1\n", encoding="utf-8")
    assert main(["configuration"]) == 2


# Completion


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script_that_it_can_read(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("gate", "environment", "explain-unresolved", "diff-base", "sarif"):
        assert word in script
    if shutil.which(shell) and shell != "tcsh":
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path: Path) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "driftcheck", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "script").write_text(script, encoding="utf-8")
    ask = (
        "source ./script; COMP_WORDS=(driftcheck {0}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
        " $(complete -p driftcheck | sed 's/.*-F \\([^ ]*\\) .*/\\1/'); printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    for words, wanted in {"au": "audit", "audit --diff": "--diff-base", "audit --format sa": "sarif"}.items():
        done = subprocess.run(
            ["bash", "-c", ask.format(words)], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        assert wanted in done.stdout.split(), (words, done.stdout, done.stderr)


# pytest


def pytest_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**kept, "DRIFTCHECK_CACHE_DIR": str(folder / ".cache")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_pytest_audits_the_project_as_one_more_test(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "test_app.py").write_text("def test_it(): pass\n", encoding="utf-8")
    done = pytest_run(folder, "--driftcheck")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "error[unknown-argument]: run(): unknown argument 'b'" in done.stdout
    assert "Traceback" not in done.stdout
    assert "pytest_plugin.py" not in done.stdout
    assert "1 passed" in pytest_run(folder).stdout
    assert "1 failed, 1 deselected" in pytest_run(folder, "--driftcheck", "-k", "nothing").stdout
    fitting = project(tmp_path, "import vllm\nvllm.run(1)\n")
    assert "2 passed" in pytest_run(fitting, "--driftcheck", "-v").stdout


def test_pytest_says_why_it_could_not_check(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "pyproject.toml").write_text("[tool.driftcheck]\nagainst = './gone'\n", encoding="utf-8")
    done = pytest_run(folder, "--driftcheck")
    assert (done.returncode, "could not check: " in done.stdout) == (1, True)
    (folder / "pyproject.toml").write_text("[tool.driftcheck]\nagainst = 1\n", encoding="utf-8")
    assert "could not check: " in pytest_run(folder, "--driftcheck").stdout


def test_pytest_pays_nothing_where_it_is_not_asked() -> None:
    code = "import sys, driftcheck.pytest_plugin; print(sorted(name for name in sys.modules if 'driftcheck' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "['driftcheck', 'driftcheck.pytest_plugin']\n"


# pre-commit


def test_the_hook_is_what_pre_commit_reads() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["language"] == "python"
    assert hook["pass_filenames"] is False
    assert hook["entry"] == "driftcheck audit"
    assert {"id", "name", "entry", "language"} <= hook.keys()


def committed(folder: Path) -> None:
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=folder, check=True)


@pytest.mark.index
@pytest.mark.wide
def test_pre_commit_runs_the_hook(tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(hooks)], check=True)
    folder = project(tmp_path)
    committed(folder)
    command = ["uv", "tool", "run", "pre-commit", "try-repo", str(hooks), "driftcheck", "--all-files"]
    home = {"PRE_COMMIT_HOME": str(tmp_path / "home"), "DRIFTCHECK_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=folder, env={**os.environ, **home}, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "driftcheck...............................................................Failed" in done.stdout
    assert "unknown argument 'b'" in done.stdout


# The action


def steps() -> list[dict[str, Any]]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    found: list[dict[str, Any]] = action["runs"]["steps"]
    return found


def inputs() -> dict[str, str]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return {name: about["default"] for name, about in action["inputs"].items()}


def test_no_input_becomes_part_of_a_script() -> None:
    for step in steps():
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)


def run_action(folder: Path, runner: Path, **given: str) -> tuple[int, str]:
    """Runs the steps as a runner does: inputs in the environment, files for summary and outputs, until one fails."""
    values = {f"inputs.{name}": value for name, value in {**inputs(), **given}.items()}
    values["github.action_path"] = str(ROOT)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB")}
    for name in ("summary", "output"):
        (runner / name).touch()
    shown = ""
    for step in steps():
        variables = {
            name: values[text.removeprefix("${{").removesuffix("}}").strip()] for name, text in step["env"].items()
        }
        files = {
            "RUNNER_TEMP": str(runner),
            "GITHUB_OUTPUT": str(runner / "output"),
            "GITHUB_STEP_SUMMARY": str(runner / "summary"),
            "DRIFTCHECK_CACHE_DIR": str(runner / "cache"),
        }
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=folder, env={**kept, **files, **variables}, capture_output=True, text=True, check=False
        )
        shown += done.stdout
        if done.returncode:
            return done.returncode, shown + done.stderr
    return 0, shown


@pytest.mark.index
@pytest.mark.wide
def test_the_action_annotates_sums_up_and_fails(tmp_path: Path) -> None:
    folder = project(tmp_path)
    committed(folder)
    runner = tmp_path / "runner"
    runner.mkdir()
    code, shown = run_action(folder, runner, python=sys.executable, arguments="--exclude nothing --new-only")
    assert code == 1, shown
    assert "::error file=app/core.py,line=2," in shown
    assert (runner / "output").read_text(encoding="utf-8") == "sarif=driftcheck.sarif\n"
    assert (runner / "summary").read_text(encoding="utf-8").startswith("## app does not fit new\n")
    results = json.loads((folder / "driftcheck.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["unknown-argument"]
    (folder / "app/core.py").write_text("import vllm\nvllm.run(1)\n", encoding="utf-8")
    code, shown = run_action(folder, runner, python=sys.executable, client="app", sarif="a b.sarif")
    assert code == 0, shown
    assert (folder / "a b.sarif").exists()
