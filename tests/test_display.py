"""Progress is drawn on a terminal's stderr, late, and nowhere else."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from driftcheck.display import progress_display
from driftcheck.progress import UNWATCHED

# Stays in its steps until it is told on stdin that they have been seen.
DRAWN = """
import sys
from driftcheck.display import progress_display
with progress_display(patience=0) as progress:
    with progress.task("Reading \\x1b[2Jvllm [bold]", 240_000_000, unit="bytes") as task:
        with progress.task("Counting", 45) as other, progress.task("Waiting") as third:
            task.advance(12_500_000); other.advance(3)
            sys.stdin.readline()
print("done")
"""
QUICK = """
import sys
from driftcheck.display import progress_display
with progress_display() as progress, progress.task("Reading", 3) as task:
    task.advance()
print("rich" in sys.modules)
"""


def on_terminal(code: str, awaited: str = "", **variables: str) -> tuple[str, str]:
    """What the code prints to stdout, a pipe, and to stderr, a terminal; a line follows once `awaited` is seen."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", **variables},
        )
        os.close(theirs)
        shown = b""
        told = False
        while piece := _read(terminal):
            shown += piece
            if awaited and not told and awaited.encode() in shown:
                told = True
                assert process.stdin is not None
                process.stdin.write(b"seen\n")
                process.stdin.flush()
        output, _ = process.communicate()
    assert process.returncode == 0
    return output.decode(), shown.decode()


def _read(terminal: io.FileIO) -> bytes:
    try:
        return terminal.read(4096) or b""
    except OSError:  # how Linux says that the other side has closed
        return b""


def test_long_steps_are_drawn_with_their_amounts() -> None:
    output, shown = on_terminal(DRAWN, awaited="Waiting")
    assert output == "done\n"
    assert "12.5/240.0 MB" in shown
    assert "3/45" in shown
    assert "Waiting" in shown
    assert r"Reading \x1b[2Jvllm [bold]" in shown
    assert "\x1b[2Jvllm" not in shown


@pytest.mark.parametrize("variables", [{}, {"TERM": "dumb"}])
def test_short_steps_are_never_seen_and_cost_no_import(variables: dict[str, str]) -> None:
    assert on_terminal(QUICK, **variables) == ("False\n", "")


def test_without_a_terminal_nobody_watches() -> None:
    with progress_display() as progress:
        assert progress is UNWATCHED
        with progress.task("Reading", 3) as task:
            task.advance(2)
