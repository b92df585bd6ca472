"""Processes that descend from one, as Linux tells of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_PAGE = 4096


def below(process: int) -> list[int]:
    """The processes that descend from one, in the order of their numbers."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text(encoding="ascii").split()):
                found += [child, *below(child)]
    return sorted(found)


def title(process: int) -> str:
    """What a process calls itself; nothing where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def holds(process: int, path: Path) -> bool:
    """True where a process has that file open."""
    with suppress(OSError):
        return any(each.resolve() == path.resolve() for each in Path(f"/proc/{process}/fd").iterdir())
    return False


def resident(process: int) -> int:
    """The bytes of memory that a process and all below it have now; what they share counts for each."""
    pages = 0
    for each in (process, *below(process)):
        with suppress(OSError):
            pages += int(Path(f"/proc/{each}/statm").read_text(encoding="ascii").split()[1])
    return pages * _PAGE
