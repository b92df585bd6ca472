"""Reports reach their file whole or not at all, and stdout whoever reads it."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.output import check_output, columns, is_coloured, write_file, write_stdout


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("variables", "on_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_when_there_are_colours(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, on_terminal: bool, elsewhere: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_coloured(Terminal()) is on_terminal
    assert is_coloured(io.StringIO()) is is_coloured(None) is elsewhere


@pytest.mark.parametrize(("terminal", "width"), [("80", 80), ("300", 120)])
def test_width(terminal: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", terminal)
    assert columns(Terminal()) == width
    assert columns(io.StringIO()) == columns(None) == 100


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_file(str(path), "één\n")
    assert path.read_text(encoding="utf-8") == "één\n"
    path.chmod(0o640)
    write_file(str(path), "two\n")
    assert path.read_text(encoding="utf-8") == "two\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_file(str(tmp_path / "link"), "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "text"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_output(str(pipe))
    writer = threading.Thread(target=write_file, args=(str(pipe), "text"))
    writer.start()
    assert pipe.read_text(encoding="utf-8") == "text"
    writer.join()
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(DriftcheckError, match="is a folder: name a file"):
        check_output(str(tmp_path))
    with pytest.raises(DriftcheckError, match="its folder does not exist"):
        check_output(str(tmp_path / "missing" / "file"))
    with pytest.raises(DriftcheckError, match="can't be written: No such file or directory"):
        write_file(str(tmp_path / "missing" / "file"), "text")
    with pytest.raises(DriftcheckError, match="can't be written: File name too long"):
        write_file(str(tmp_path / ("x" * 300)), "text")


def python(code: str, shell_redirection: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs code that has imported what this module tests, its stdout redirected by a shell."""
    setup = "import sys; from driftcheck.output import write_stdout; "
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"{sys.executable}" -c "$CODE" {shell_redirection}'],
        env={**os.environ, **variables, "CODE": setup + code},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_reader_that_has_gone_is_no_error() -> None:
    done = python("write_stdout('line\\n' * 1_000_000); sys.exit(3)", "| head -n 1")
    assert (done.stdout, done.stderr, done.returncode) == ("line\n", "", 3)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_an_error() -> None:
    done = python("write_stdout('line\\n')", "> /dev/full")
    assert "DriftcheckError: stdout can't be written: No space left on device" in done.stderr


def test_a_closed_stdout_is_an_error() -> None:
    assert "DriftcheckError: stdout is closed" in python("write_stdout('line\\n')", ">&-").stderr


def test_what_the_encoding_lacks_is_escaped() -> None:
    assert python("write_stdout('one…\\n')", PYTHONIOENCODING="ascii").stdout == "one\\u2026\n"


def test_stdout_gets_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    write_stdout("één\n")
    assert capsys.readouterr().out == "één\n"


def test_a_link_that_leads_nowhere_makes_the_file_it_names_or_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    check_output(str(tmp_path / "link"))
    write_file(str(tmp_path / "link"), "text")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "text"
    (tmp_path / "lost").symlink_to(tmp_path / "missing" / "file")
    with pytest.raises(DriftcheckError, match="its folder does not exist"):
        check_output(str(tmp_path / "lost"))


def test_links_that_lead_in_a_circle_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DriftcheckError, match="is a link that leads nowhere"):
        check_output(str(tmp_path / "loop"))
    (tmp_path / "folder").symlink_to(tmp_path)
    with pytest.raises(DriftcheckError, match="is a folder"):
        check_output(str(tmp_path / "folder"))


def test_nothing_is_written_through_a_link_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    (tmp_path / f".report.{os.getpid()}.00000000").symlink_to(tmp_path / "other")
    with pytest.raises(DriftcheckError, match="can't be written"):
        write_file(str(tmp_path / "report"), "text")
    assert not (tmp_path / "other").exists()
