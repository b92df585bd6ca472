"""The command line: what it accepts, what it prints where, and how it exits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from driftcheck import __version__
from driftcheck.cli import command_parser, main
from driftcheck.errors import DriftcheckError
from driftcheck.model import Kind, Report
from driftcheck.selection import Selection, selected
from tests.report.samples import CLEAN, REPORT, UNRESOLVED_ATTRIBUTE

WARNING_ONLY = replace(REPORT, findings=(UNRESOLVED_ATTRIBUTE,))

Audit = Callable[..., Report]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "DRIFTCHECK_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


class Audits:
    """Stands where the audit is, so that a test decides what it reports; records what it was asked."""

    def __init__(self) -> None:
        self.reports: dict[str, Report | BaseException] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def audit(self, client: str, **settings: Any) -> Report:
        self.asked.append((client, settings))
        result = self.reports.get(client, REPORT)
        if isinstance(result, BaseException):
            raise result
        return result


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> Audits:
    audits = Audits()
    module = types.ModuleType("driftcheck.audit")
    module.audit = audits.audit  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "driftcheck.audit", module)
    return audits


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "driftcheck", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_version_imports_nothing_heavy() -> None:
    done = run("--version", PYTHONPROFILEIMPORTTIME="1")
    assert (done.stdout, done.returncode) == (f"driftcheck {__version__}\n", 0)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "driftcheck.cli" in imported
    heavy = {"rich", "requests", "packaging", "pypi_simple", "platformdirs", "filelock", "json", "ast", "asyncio"}
    assert not {name.partition(".")[0] for name in imported} & heavy


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], ["surface", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("usage: driftcheck")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: COMMAND (see driftcheck --help)"),
        (["audti"], "argument COMMAND: invalid choice: 'audti'"),
        (["audit", "--againts", "vllm"], "unrecognized arguments: --againts (see driftcheck --help)"),
        (["audit", "--format", "html"], "argument --format: invalid choice: 'html' (choose from"),
        (["audit", "--timeout", "0"], "argument --timeout: '0' is no positive number of seconds"),
        (["audit", "--timeout", "nan"], "argument --timeout: 'nan' is no positive number of seconds"),
        (["audit", "--timeout", "soon"], "argument --timeout: 'soon' is no positive number of seconds"),
        (["audit", "--select", "note,unknown-arg"], "--select: unknown kind of finding 'note'"),
        (["audit", "--select", "unknown-arg"], "--select: unknown kind of finding 'unknown-arg': did you mean"),
        (["audit", "--ignore", "x\x1b[2J\ny"], r"--ignore: unknown kind of finding 'x\x1b[2J\ny'"),
        (["audit", "--output", "missing/report.json"], "--output missing/report.json: its folder does not exist"),
        (["audit", "--output", "."], "--output . is a folder: name a file"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str], audits: Audits
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"driftcheck: {complaint}")
    assert captured.err.count("\n") == 1
    assert captured.err[:-1].isprintable()
    assert audits.asked == []


def test_every_option_reaches_the_audit(audits: Audits) -> None:
    options = ["--against", "vllm==0.16.0", "--baseline", "vllm==0.11.0", "--python", "p", "--static", "--offline"]
    main(["audit", "client", *options, "--timeout", "7.5", "--model", "LlamaForCausalLM", "--no-cache"])
    [(client, settings)] = audits.asked
    assert client == "client"
    assert settings.pop("progress") is not None
    assert settings == {
        "against": "vllm==0.16.0",
        "baseline": "vllm==0.11.0",
        "python": "p",
        "static": True,
        "offline": True,
        "timeout": 7.5,
        "model": "LlamaForCausalLM",
        "remember": False,
    }


def test_the_working_folder_is_the_client_where_none_is_named(audits: Audits) -> None:
    main(["audit"])
    assert audits.asked[0][0] == "."


def test_the_command_line_wins_over_pyproject(here: Path, audits: Audits, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "pyproject.toml").write_text(
        '[tool.driftcheck]\nagainst = "vllm==0.16.0"\nbaseline = "vllm==0.11.0"\nfail-on = "note"\n'
        'ignore = ["missing-argument", "unknown-argument"]\n',
        encoding="utf-8",
    )
    assert main(["audit", "--against", "vllm==0.17.0", "--format", "json"]) == 1
    assert audits.asked[0][1]["against"] == "vllm==0.17.0"
    assert audits.asked[0][1]["baseline"] == "vllm==0.11.0"
    report = json.loads(capsys.readouterr().out)
    assert [finding["kind"] for finding in report["findings"]] == ["unresolved-attribute"]
    assert main(["audit", "--fail-on", "silent"]) == 0
    assert main(["audit", "--select", "missing-argument", "--fail-on", "error"]) == 1
    assert main(["audit", "--ignore", "unresolved-attribute", "--fail-on", "error"]) == 1


@pytest.mark.parametrize(
    ("report", "options", "code"),
    [
        (REPORT, [], 1),
        (REPORT, ["--exit-zero"], 0),
        (CLEAN, ["--fail-on", "note"], 0),
        (WARNING_ONLY, [], 0),
        (WARNING_ONLY, ["--fail-on", "error"], 0),
        (WARNING_ONLY, ["--fail-on", "warning"], 1),
        (WARNING_ONLY, ["--fail-on", "note"], 1),
        (REPORT, ["--ignore", "unknown-argument", "--ignore", " missing-argument ,"], 0),
        (REPORT, ["--select", "unresolved-attribute"], 0),
        (REPORT, ["--select", "unresolved-attribute,missing-argument"], 1),
        (DriftcheckError("no such client"), ["--exit-zero"], 2),
    ],
)
def test_exit_codes(report: Report | DriftcheckError, options: list[str], code: int, audits: Audits) -> None:
    audits.reports["client"] = report
    assert main(["audit", "client", *options]) == code


def test_what_was_not_selected_is_counted() -> None:
    settings = Selection(ignore=frozenset({Kind.MISSING_ARGUMENT}), select=None, notices=("from the file",))
    report = selected(replace(REPORT, notices=("from the audit",)), settings)
    assert [finding.kind for finding in report.findings] == [Kind.UNKNOWN_ARGUMENT, Kind.UNRESOLVED_ATTRIBUTE]
    assert report.notices == (
        "from the audit",
        "from the file",
        "left out by --select or --ignore, or the same in pyproject.toml: 1 missing-argument",
    )
    assert selected(REPORT, Selection()) == REPORT


def test_the_text_is_plain_where_it_is_not_asked_to_be_coloured(
    audits: Audits, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["audit"])
    plain = capsys.readouterr()
    assert plain.out.startswith("speculators/data_generation/generator.py\n")
    assert "\x1b" not in plain.out + plain.err
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["audit"])
    assert "\x1b[1;31merror" in capsys.readouterr().out
    main(["audit", "--output", "report.txt"])
    assert Path("report.txt").read_text(encoding="utf-8") == plain.out


def test_json_goes_to_the_file_alone(audits: Audits, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--format", "json", "--output", "report.json"]) == 1
    assert capsys.readouterr() == ("", "")
    assert len(json.loads(Path("report.json").read_text(encoding="utf-8"))["findings"]) == 3


def test_several_clients_have_a_report_each(audits: Audits, capsys: pytest.CaptureFixture[str]) -> None:
    audits.reports["b"] = CLEAN
    assert main(["audit", "a", "b", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [len(report["findings"]) for report in document["reports"]] == [3, 0]
    assert main(["audit", "a", "b"]) == 1
    assert "\n\nNothing found.\n" in capsys.readouterr().out


def test_a_client_that_fails_does_not_take_the_others_along(audits: Audits, capsys: pytest.CaptureFixture[str]) -> None:
    audits.reports["b"] = DriftcheckError("b: there is no such folder")
    assert main(["audit", "a", "b", "--format", "json"]) == 2
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["reports"]) == 1
    assert captured.err == "driftcheck: b: there is no such folder\n"


def test_where_nothing_could_be_checked_nothing_is_printed_or_replaced(
    audits: Audits, capsys: pytest.CaptureFixture[str]
) -> None:
    audits.reports["a"] = DriftcheckError("a: two\nlines")
    Path("report.txt").write_text("before", encoding="utf-8")
    assert main(["audit", "a", "--output", "report.txt"]) == 2
    assert capsys.readouterr() == ("", "driftcheck: a: two lines\n")
    assert Path("report.txt").read_text(encoding="utf-8") == "before"


def test_a_fault_of_our_own_is_owned_in_one_line(audits: Audits, capsys: pytest.CaptureFixture[str]) -> None:
    audits.reports["a"] = KeyError("odd")
    assert main(["audit", "a"]) == 2
    assert capsys.readouterr().err == (
        "driftcheck: this is a fault of driftcheck's own, please report it: KeyError: 'odd' "
        "(DRIFTCHECK_TRACEBACK=1 in the environment shows the traceback)\n"
    )


def test_the_traceback_of_a_fault_is_there_for_the_asking(
    audits: Audits, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTCHECK_TRACEBACK", "1")
    audits.reports["a"] = RecursionError()
    assert main(["audit", "a"]) == 2
    assert capsys.readouterr().err.startswith("Traceback (most recent call last):\n")


def test_an_interruption_that_makes_something_else_fail_is_130_too(
    audits: Audits, capsys: pytest.CaptureFixture[str]
) -> None:
    error = KeyError("a key that nobody has put there")
    error.__context__ = KeyboardInterrupt()
    audits.reports["a"] = error
    assert main(["audit", "a"]) == 130
    assert capsys.readouterr() == ("", "driftcheck: interrupted\n")


def test_an_interruption_is_130(audits: Audits, capsys: pytest.CaptureFixture[str]) -> None:
    audits.reports["a"] = KeyboardInterrupt()
    assert main(["audit", "a", "b"]) == 130
    assert capsys.readouterr() == ("", "driftcheck: interrupted\n")


OLD = """\
class Engine:
    def __init__(self, model, *, block_size=16): ...

def cdiv(a, b): ...
"""
NEW = """\
class Engine:
    def __init__(self, model, block_count): ...
"""
CLIENT = """\
from vllm.core import Engine, cdiv

engine = Engine("m", block_size=4)
"""


@pytest.fixture
def folders(here: Path) -> Path:
    """A client that fits ./old and not ./new."""
    for name, text in {"old/vllm/core.py": OLD, "new/vllm/core.py": NEW, "client/app.py": CLIENT}.items():
        (here / name).parent.mkdir(parents=True)
        (here / name).write_text(text, encoding="utf-8")
    for release in ("old", "new"):
        (here / release / "vllm" / "__init__.py").touch()
    return here


def test_an_audit_from_end_to_end(folders: Path) -> None:
    drifted = run("audit", "client", "--against", "./new", "--baseline", "./old", "--format", "json")
    assert (drifted.returncode, drifted.stderr) == (1, "")
    found = [(f["line"], f["kind"], f["parameter"], f["drift"]) for f in json.loads(drifted.stdout)["findings"]]
    assert found == [
        (1, "unresolved-symbol", None, True),
        (3, "missing-argument", "block_count", True),
        (3, "unknown-argument", "block_size", True),
    ]
    again = run("audit", "client", "--against", "./new", "--baseline", "./old", "--format", "json", PYTHONHASHSEED="7")
    assert again.stdout == drifted.stdout
    fitting = run("audit", "client", "--against", "./old", "--baseline", "./old")
    assert (fitting.returncode, fitting.stderr) == (0, "")
    assert fitting.stdout.startswith("Nothing found.\n")


def test_an_audit_of_the_working_folder_by_its_own_settings(folders: Path) -> None:
    (folders / "client" / "pyproject.toml").write_text(
        '[tool.driftcheck]\nagainst = "../new"\nbaseline = "../old"\nselect = ["unknown-argument"]\n', encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "driftcheck", "audit"],
        cwd=folders / "client",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("app.py\n\nerror[unknown-argument]: ")
    assert "left out by --select or --ignore" in done.stdout


def test_files_that_cannot_be_read_are_skipped_by_name(folders: Path) -> None:
    bad = {
        "syntax.py": b"import vllm\ndef broken(:\n",
        "encoding.py": b"import vllm\nx = '\xff'\n",
        "null.py": b"import vllm\nx = 1\0\n",
        "unknown.py": b"# coding: no-such\nimport vllm\n",
        "undefined.py": b"# coding: undefined\nimport vllm\n",
        "deep.py": b"import vllm\nx = " + b"-" * 100_000 + b"1\n",
        "chain.py": b"import vllm\nx = vllm" + b".y" * 1_500 + b"\n",
        "sum.py": b"import vllm\nx = vllm" + b" + vllm" * 2_000 + b"\n",
        "wide.py": b"import vllm\nx = " + b"(" * 5_000 + b")" * 5_000 + b"\n",
    }
    for name, content in bad.items():
        (folders / "client" / name).write_bytes(content)
    (folders / "client" / "loop").symlink_to(folders / "client", target_is_directory=True)
    (folders / "client" / "self.py").symlink_to("self.py")
    done = run("audit", "client", "--against", "./new", "--baseline", "./old", "--format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    assert {file["path"] for file in report["skipped"]} >= bad.keys()
    assert all(file["reason"].isprintable() for file in report["skipped"])
    assert len(report["findings"]) == 3


def _arguments() -> list[tuple[str, str]]:
    """Every command with each of its options and arguments that take a value."""
    (commands,) = (each for each in command_parser()._actions if isinstance(each.choices, dict))
    assert isinstance(commands.choices, dict)
    return [
        (name, action.option_strings[0] if action.option_strings else "")
        for name, parser in commands.choices.items()
        for action in parser._actions
        if action.nargs != 0
    ]


@pytest.mark.parametrize(("command", "option"), _arguments())
def test_no_argument_may_be_empty(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for empty in ("", " "):
        assert main([command, *([option] if option else []), empty]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)
        assert captured.err.startswith("driftcheck: argument ") and repr(empty) in captured.err


def test_a_list_of_no_kinds_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--select", "--ignore"):
        assert main(["audit", option, ","]) == 2
        assert capsys.readouterr().err.startswith(f"driftcheck: {option} names nothing; name kinds of finding")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["missing/folder", "--against", "./new"], "missing/folder"),
        (["no-such-client", "--against", "./new"], "no-such-client is not installed"),
        (["no-such-client==1.0", "--against", "./new"], "no-such-client"),
        (["client", "--against", "./missing"], "missing: no such file or folder"),
        (["client", "--against", "no-such-target"], "no-such-target is not installed"),
        (["client", "--against", "vllm=0.16.0"], "vllm=0.16.0"),
        (["client", "--against", "git+./new@main"], "new"),
        (["client", "--against", "./new", "--baseline", "./missing"], "missing: no such file or folder"),
        (["client", "--against", "no-such-target", "--python", "./no-such-python"], "no-such-python"),
        (["", "--against", "./new"], "'' names nothing"),
        (["client", "--against", f"vllm=={'1' * 5000}"], "vllm"),
    ],
)
def test_what_cannot_be_had_is_one_line_and_2(
    arguments: list[str],
    complaint: str,
    folders: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(folders / "cache"))
    assert main(["audit", *arguments, "--offline"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("driftcheck: ")
    assert captured.err.count("\n") == 1
    assert complaint in captured.err
    assert "fault" not in captured.err


def test_only_what_is_needed_is_imported(folders: Path) -> None:
    options = ("client", "--against", "./new", "--baseline", "./old", "--offline")
    for form in ("text", "json"):
        done = run("audit", *options, "--format", form, PYTHONPROFILEIMPORTTIME="1")
        imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
        assert "driftcheck" in imported
        assert not imported & {"rich", "requests", "pypi_simple", "libcst"}


def test_an_interrupted_process_says_so(folders: Path) -> None:
    code = (
        "import signal, sys, driftcheck.audit\n"
        "driftcheck.audit.audit = lambda client, **settings: signal.raise_signal(signal.SIGINT)\n"
        "from driftcheck.cli import main\n"
        "sys.exit(main(['audit', 'client']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "driftcheck: interrupted\n")


def test_a_target_without_python_is_no_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text("import vllm\n")
    (tmp_path / "empty").mkdir()
    assert main(["audit", str(tmp_path / "app.py"), "--against", str(tmp_path / "empty"), "--offline"]) == 2
    assert "holds no Python package" in capsys.readouterr().err


def test_a_client_of_which_nothing_can_be_read_is_not_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client, target = tmp_path / "client", tmp_path / "target"
    client.mkdir()
    (client / "app.py").write_text("import vllm\ndef (:\n")
    (target / "vllm").mkdir(parents=True)
    (target / "vllm" / "__init__.py").write_text("")
    assert main(["audit", str(client), "--against", str(target), "--offline"]) == 2
    assert "no file of the client can be read: app.py syntax error on line 2" in capsys.readouterr().err


def test_types_that_double_at_every_step_end(tmp_path: Path) -> None:
    client, target = tmp_path / "client", tmp_path / "target"
    client.mkdir()
    lines = ["import vllm", "def run(c, x0=vllm.x):"]
    for step in range(1, 200):
        lines += [f"    if c: x{step} = [x{step - 1}, x{step - 1}]", f"    else: x{step} = (x{step - 1}, x{step - 1})"]
    (client / "app.py").write_text("\n".join([*lines, "    return x199.gone", ""]))
    (target / "vllm").mkdir(parents=True)
    (target / "vllm" / "__init__.py").write_text("x = 1\n")
    assert main(["audit", str(client), "--against", str(target), "--offline"]) == 0
