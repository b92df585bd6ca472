"""Files in the cache folder that save time and nothing else: written whole, and only the newest of a folder stay."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def keep(path: Path, content: bytes, *, most: int) -> None:
    """Writes a file under its name once it is complete, and leaves the newest `most` files of its folder.

    Where it can't be written, the next time takes as long again.
    """
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        files = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in files[most:]:
            old.unlink(missing_ok=True)
