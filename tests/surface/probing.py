"""What the tests of the runtime surface share: packages to probe, interpreters, and how to wait."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from driftcheck.surface.runtime import RuntimeSurface

Ask = Callable[..., RuntimeSurface]

GOOD = {"good.py": "def f(a): ...", "zebra.py": "def f(b): ..."}


# A program that holds a lock on the file named by its first argument for as long as it runs.
HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True)"


def write_program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python_of(minor: int) -> Path:
    """A Python 3.minor of this machine, by its name or from pyenv's folder; skips the test where there is none."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = shutil.which(f"python3.{minor}")
    for candidate in [*sorted(root.glob(f"versions/3.{minor}.*/bin/python")), *([Path(named)] if named else [])]:
        said = subprocess.run(
            [candidate, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True, check=False
        )
        if said.stdout.strip() == str(minor):
            return candidate
    pytest.skip(f"no Python 3.{minor} here")


def until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("waited in vain")


def is_free(lock: Path) -> bool:
    """Whether the process that held the lock has ended."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
