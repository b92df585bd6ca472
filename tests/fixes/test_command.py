"""The command `fix`: what goes to stdout, what to stderr, and what programs get."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

OLD = {"vllm/__init__.py": "", "vllm/old.py": "def limit(): ...\n\n\ndef ask(): ...\n"}
NEW = {"vllm/__init__.py": "", "vllm/old.py": "", "vllm/new.py": "def limit(): ...\n"}
APP = """\
# coding: latin-1
from vllm.old import ask

from vllm.old import limit

print("\u00e9", ask, limit)
"""
# Two lines import from one module, so the name that moved keeps a line of its own.
FIXED = APP.replace("from vllm.old import limit", "from vllm.new import limit")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder, files in (("old", OLD), ("new", NEW)):
        for path, text in files.items():
            file = tmp_path / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "app.py").write_text(APP, encoding="latin-1")
    (tmp_path / "other" / "app.py").write_text(APP.replace("latin-1", "utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fix(
    *arguments: str, against: str = "./new", baseline: tuple[str, ...] = ("--baseline", "./old")
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "driftcheck", "fix", *arguments, "--against", against, *baseline, "--offline"]
    variables = {"PYTHONPATH": str(Path(__file__).parents[2]), "DRIFTCHECK_CACHE_DIR": str(Path("cache").absolute())}
    return subprocess.run(
        [*command, "--static", "--unsafe"], env={**os.environ, **variables}, capture_output=True, check=False
    )


def applied(patch: bytes, folder: str) -> bytes:
    subprocess.run(["git", "apply", "-"], input=patch, cwd=folder, check=True)
    return Path(folder, "app.py").read_bytes()


def test_a_patch_goes_to_stdout_in_the_encoding_of_each_file(here: Path) -> None:
    done = fix("./one")
    assert done.returncode == 1
    assert b"Fixed 1 of 2 findings in 1 file, 1 of them proved; 1 needs a person." in done.stderr
    assert b"  against  new: 1 left (1 unresolved-symbol)" in done.stderr
    assert applied(done.stdout, "one") == FIXED.encode("latin-1")


def test_json_goes_to_stdout_with_the_patch_in_it(here: Path) -> None:
    done = fix("./other", "--format", "json")
    assert (done.returncode, done.stderr) == (1, b"")
    repair = json.loads(done.stdout)
    assert [(each["line"], each["status"]) for each in repair["findings"]] == [(2, "person"), (4, "proved")]
    assert [(each["line"], each["line_after"], each["fingerprint"]) for each in repair["left"]] == [
        (2, 2, repair["findings"][0]["fingerprint"])
    ]
    assert repair["left"][0]["rule"] is None
    assert applied(repair["patch"].encode(), "other") == FIXED.replace("latin-1", "utf-8").encode()


def test_json_of_several_clients_is_one_object(here: Path) -> None:
    first, second = json.loads(fix("./one", "./other", "--format", "json").stdout)["repairs"]
    assert (first["patch"], second["client"]["name"]) == (None, "other")
    assert "another encoding" in first["notices"][-1]
    assert second["patch"].startswith("diff --git a/app.py b/app.py\n")


def test_what_is_left_has_its_line_before_and_after_the_edits(here: Path) -> None:
    Path("other/app.py").write_text("import vllm.old\n\nprint(vllm.old.limit)\nprint(vllm.old.ask)\n", encoding="utf-8")
    repair = json.loads(fix("./other", "--format", "json").stdout)
    assert [(each["line"], each["line_after"]) for each in repair["left"]] == [(4, 5)]


@pytest.mark.parametrize(
    ("baseline", "said"),
    [((), "without a baseline"), (("--baseline", "./new"), None), (("--baseline", "./same"), "written for vllm 1.0")],
)
def test_it_is_said_where_no_past_is_known(here: Path, baseline: tuple[str, ...], said: str | None) -> None:
    for folder in ("old", "same"):
        project = here / folder / "pyproject.toml"
        project.parent.mkdir(exist_ok=True)
        project.write_text('[project]\nname = "vllm"\nversion = "1.0"\n', encoding="utf-8")
    (here / "same" / "vllm").mkdir()
    (here / "same" / "vllm" / "__init__.py").touch()
    (here / "other" / "app.py").write_text("from vllm import gone\n", encoding="utf-8")
    repair = json.loads(fix("./other", "--format", "json", against="./old", baseline=baseline).stdout)
    assert [each["status"] for each in repair["findings"]] == ["person"]
    told = [notice for notice in repair["notices"] if "--baseline names" in notice]
    assert len(told) == (said is not None)
    assert said is None or said in told[0]


def test_written_files_need_no_patch(here: Path) -> None:
    done = fix("./one", "--write", "--format", "json")
    repair = json.loads(done.stdout)
    assert (repair["patch"], repair["written"]) == (None, "1 file written; driftcheck restore takes it back")
    assert Path("one/app.py").read_bytes() == FIXED.encode("latin-1")
