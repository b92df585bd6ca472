"""Writes or restores a copy of a folder again and again, each time killed before another system call.

    python -m tests.fixes.killed TASK FOLDER COPIES

TASK is `write` or `restore`. The copies are named 1, 2, … after the call before which the run was killed; the last
one, `done`, was not. A call that writes has written half when the kill comes after it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock  # noqa: F401 - imported once, and not in every run

from driftcheck.fixes.changes import Change
from driftcheck.fixes.restoring import restore
from driftcheck.fixes.state import state_folder
from driftcheck.fixes.writing import write

CALLS = ("open", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "chmod", "chown", "utime", "close")

OLD = {"a.py": b"a = 1\n", "p/b.py": b"b = 1\n", "p/c.py": b"c = 1\n"}
NEW = {"a.py": b"a = 2\n", "p/b.py": b"b = 22\n", "p/c.py": b""}


def task(name: str, root: Path) -> None:
    """What is killed."""
    if name == "write":
        write([Change(path, OLD[path], NEW[path]) for path in OLD], root, state_folder(root))
    else:
        restore(root, state_folder(root), force=True)


def kill_before(number: int) -> None:
    """Has the process killed before the system call of that number."""
    counter = itertools.count(1)

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(counter) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    def halved(descriptor: int, content: memoryview) -> int:
        return real_write(descriptor, content[: max(len(content) // 2, 1)])

    real_write = os.write
    os.fsync = lambda fd: None  # A kill loses nothing that the system was given, and waiting for the disk takes long.
    os.write = counted(halved)
    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def main(name: str, template: str, copies: str) -> None:
    """Kills one run before each of its calls, and lets the last one come to its end."""
    for number in itertools.count(1):
        root = Path(copies, str(number))
        shutil.copytree(template, root)
        child = os.fork()
        if child == 0:
            kill_before(number)
            try:
                task(name, root)
            finally:
                os._exit(0)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            root.rename(Path(copies, "done"))
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
