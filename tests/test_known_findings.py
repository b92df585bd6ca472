"""Known findings stay known while the code around them changes, new ones are new, and the file only shrinks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.known_findings import Entry, KnownFindings, matched, read_known, written

OLD = """\
class Engine:
    def __init__(self, model, *, block_size=16, cache=None): ...
    def step(self): ...

def cdiv(a, b): ...
"""
NEW = """\
class Engine:
    def __init__(self, model, *, cache=None): ...
"""
CLIENT = """\
from vllm.core import Engine, cdiv

class Runner:
    def make(self, model):
        return Engine(model, block_size=4, cache={'first': 'a rather long text', 'second': 'another rather long text'})

    def run(self, engine: Engine):
        engine.step()
        return engine.step()

def blocks(n): return cdiv(n, 16)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a client of four findings, all of them known."""
    for name, text in {"old/vllm/core.py": OLD, "new/vllm/core.py": NEW, "project/app/core.py": CLIENT}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for folder in ("old/vllm", "new/vllm", "project/app"):
        (tmp_path / folder / "__init__.py").touch()
    project = tmp_path / "project"
    (project / "pyproject.toml").write_text(
        '[project]\nname = "runner"\n[tool.driftcheck]\nagainst = "../new"\nbaseline = "../old"\n', encoding="utf-8"
    )
    monkeypatch.chdir(project)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    assert main(["audit", "--write-known", "known.json"]) == 0
    assert len(read_known(Path("known.json")).entries) == 4
    return project


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def audited(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[list[str], int]:
    """What counts, as kind and symbol, and how many findings are accepted."""
    capsys.readouterr()
    code = main(["audit", "--known", "known.json", "--format", "json", *options])
    report = json.loads(capsys.readouterr().out)
    found = [f"{finding['kind']} {finding['symbol']}" for finding in report["findings"]]
    assert code == bool(found)
    return found, len(report["accepted"])


def test_what_is_known_is_no_news(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("known.json").read_bytes()
    assert audited(capsys) == ([], 4)
    assert Path("known.json").read_bytes() == before
    assert b'"line"' not in before


def test_code_that_moves_by_a_hundred_lines_stays_known(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, rest = CLIENT.split("\n", 1)
    (project / "app/core.py").write_text(f"{head}\n" + "# more\n" * 100 + rest, encoding="utf-8")
    assert audited(capsys) == ([], 4)


def test_a_file_that_git_moves_stays_known(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "lib").mkdir()
    git("mv", "app", "lib/app")
    git("mv", "lib/app/core.py", "lib/app/runner.py")
    assert audited(capsys) == ([], 4)


def test_code_that_is_formatted_anew_stays_known(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for length in ("60", "200"):
        command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", length, "app"]
        subprocess.run(command, check=True, capture_output=True)
        assert (project / "app/core.py").read_text(encoding="utf-8") != CLIENT
        assert audited(capsys) == ([], 4)


def test_moved_and_formatted_at_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("mv", "app/core.py", "app/runner.py")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "60", "app"], check=True)
    text = (project / "app/runner.py").read_text(encoding="utf-8")
    (project / "app/runner.py").write_text("# more\n" * 100 + text, encoding="utf-8")
    assert audited(capsys) == ([], 4)


def test_one_more_of_the_same_is_new(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CLIENT.replace("        engine.step()\n", "        engine.step()\n        engine.step()\n")
    (project / "app/core.py").write_text(text, encoding="utf-8")
    assert audited(capsys) == (["unresolved-attribute vllm.core.Engine.step"], 4)


def test_the_same_in_another_function_or_file_is_new(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "app/core.py").write_text(f"{CLIENT}\ndef more(m): return Engine(m, block_size=1)\n", encoding="utf-8")
    (project / "app/other.py").write_text("from vllm.core import cdiv\n", encoding="utf-8")
    assert audited(capsys) == (["unknown-argument vllm.core.Engine.__init__", "unresolved-symbol vllm.core.cdiv"], 4)


def test_the_file_shrinks_by_itself_and_what_is_gone_does_not_come_back(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "app/core.py").write_text(CLIENT.replace("block_size=4, ", ""), encoding="utf-8")
    capsys.readouterr()
    assert main(["audit", "--known", "known.json"]) == 0
    assert "1 known finding is gone, and known.json is that much shorter: commit it" in capsys.readouterr().out
    assert len(read_known(Path("known.json")).entries) == 3
    (project / "app/core.py").write_text(CLIENT, encoding="utf-8")
    assert audited(capsys) == (["unknown-argument vllm.core.Engine.__init__"], 3)


def test_nothing_is_taken_out_for_another_release_or_a_file_that_cannot_be_read(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("known.json").read_bytes()
    (project.parent / "old/pyproject.toml").write_text('[project]\nname = "vllm"\nversion = "1"\n', encoding="utf-8")
    assert audited(capsys, "--against", "../old") == ([], 0)
    assert Path("known.json").read_bytes() == before
    (project / "app/core.py").write_text(f"{CLIENT}\n(", encoding="utf-8")
    (project / "app/other.py").write_text("import vllm\n", encoding="utf-8")
    assert audited(capsys) == ([], 0)
    assert Path("known.json").read_bytes() == before


def test_what_is_left_out_of_a_report_is_not_gone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("known.json").read_bytes()
    assert audited(capsys, "--exclude", "app/*") == ([], 0)
    assert audited(capsys, "--ignore", "unknown-argument") == ([], 3)
    assert audited(capsys, "--diff-base", "HEAD") == ([], 0)
    assert Path("known.json").read_bytes() == before


def test_nothing_is_taken_out_where_only_a_part_is_looked_at(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "use.py").write_text("from vllm.core import Engine\nEngine('model')\n", encoding="utf-8")
    assert main(["audit", "tests"]) == 0
    assert "gone" not in capsys.readouterr().out
    assert len(read_known(project / "known.json").entries) == 4


def test_only_a_file_of_known_findings_is_replaced_by_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = project / "notes.json"
    notes.write_text("{}", encoding="utf-8")
    source = (project / "app" / "core.py").read_text(encoding="utf-8")
    assert main(["audit", "--write-known", "notes.json"]) == 2
    assert main(["audit", "--write-known", "app/core.py"]) == 2
    assert main(["audit", "--output", "app/core.py"]) == 2
    assert main(["audit", "--write-known", "new.json", "--output", "new.json"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(";")[0] for line in said] == [
        "driftcheck: notes.json is no file of known findings of this version",
        "driftcheck: --write-known app/core.py is a source file, which would be lost: name another",
        "driftcheck: --output app/core.py is a source file, which would be lost: name another",
        "driftcheck: --output and --write-known both name new.json: name two files",
    ]
    assert notes.read_text(encoding="utf-8") == "{}"
    assert (project / "app" / "core.py").read_text(encoding="utf-8") == source


def test_a_file_that_cannot_be_written_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "app/core.py").write_text("import vllm\n", encoding="utf-8")
    (project / "locked").mkdir()
    os.replace("known.json", "locked/known.json")
    Path("known.json").symlink_to("locked/known.json")
    capsys.readouterr()
    assert main(["audit", "--known", "known.json"]) == 0
    assert Path("known.json").is_symlink()
    assert json.loads(Path("locked/known.json").read_text(encoding="utf-8"))["findings"] == []


def test_pyproject_may_name_the_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (project / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write('known = "known.json"\n')
    capsys.readouterr()
    assert main(["audit"]) == 0
    assert "accepted    4 known from before" in capsys.readouterr().out
    os.chdir(project.parent)
    assert main(["audit", "project", "--against", "./new", "--baseline", "./old"]) == 0


@pytest.mark.parametrize("name", ["../known.json", "/etc/passwd", "app/../../x"])
def test_pyproject_may_not_name_a_file_elsewhere(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (project / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(f'known = "{name}"\n')
    assert main(["audit"]) == 2
    assert "leads out of its folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "known.json: no such file; --write-known known.json makes one"),
        (b"{", "is no file of known findings: "),
        (b"[" * 100_000, "is no file of known findings: "),
        (b"\xff", "is no file of known findings: "),
        (b"[]", "is no file of known findings of this version"),
        (b'{"known-findings": 2, "target": "", "version": "", "findings": []}', "of this version"),
        (b'{"known-findings": 1, "target": "", "version": "", "findings": [{"path": 1}]}', "of this version"),
    ],
)
def test_what_is_no_such_file_is_one_line(content: bytes | None, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DriftcheckError) as caught:
        read_known(path)
    assert complaint.replace("--write-known known.json", f"--write-known {path}") in str(caught.value)


def entry(path: str = "a.py", scope: str = "f", text: str = "x") -> Entry:
    return Entry("client", path, scope, "unknown-argument", "vllm.f", "b", text)


def test_an_entry_stands_for_one_finding_and_the_likeliest_one() -> None:
    known, gone = matched([entry(text="y")], [entry(text="x"), entry(text="y")], lambda _: True)
    assert (known, gone) == ({1}, [])
    known, gone = matched([entry(), entry()], [entry()], lambda _: True)
    assert (known, gone) == ({0}, [entry()])


def test_only_where_the_file_is_gone_is_the_function_enough() -> None:
    found = [entry("b.py", text="other")]
    assert matched([entry()], found, lambda path: path == "b.py") == ({0}, [])
    assert matched([entry()], found, lambda _: True) == (set(), [entry()])
    assert matched([entry()], [entry("b.py")], lambda _: True) == ({0}, [])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    for entries in ((), (entry("\x1b'\u202e.py"), entry(), entry())):
        known = KnownFindings("vllm", "0.16.0", tuple(sorted(entries)))
        (tmp_path / "known.json").write_text(written(known), encoding="utf-8")
        assert written(known).isascii()
        assert read_known(tmp_path / "known.json") == known
