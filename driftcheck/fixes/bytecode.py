"""Compiled bytecode that would go on being run after its source has changed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_UNCHECKED = 0b01
"""Bytecode that is known by a hash and of which Python is told not to compare it, as PEP 552 numbers it."""


def forget(source: Path) -> None:
    """Removes the bytecode of a source that Python would take without a look at the source.

    All other bytecode is compared by time and size or by hash. Raises OSError where it can't be removed.
    """
    folder = source.parent / "__pycache__"
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if name.startswith(f"{source.stem}.") and name.endswith(".pyc"):
            with suppress(FileNotFoundError):
                with open(folder / name, "rb") as stream:
                    flags = int.from_bytes(stream.read(8)[4:], "little")
                if flags == _UNCHECKED:
                    os.unlink(folder / name)
