"""Lines made of styled pieces, and the measuring, cutting and wrapping that a terminal's cells ask for."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from driftcheck.model import TargetSummary

Piece = tuple[str, str]
"""Harmless text and the name of its style, "" for none."""

Line = tuple[Piece, ...]

# Text that is hung beside something long gets so many cells, whatever the terminal has.
_NARROWEST = 30


def cells(text: str) -> int:
    """How many columns a terminal uses for the text."""
    if text.isascii():
        return len(text)
    return sum(_character_cells(character) for character in text)


def cut(text: str, width: int) -> str:
    """The text's beginning, at most `width` cells, with an ellipsis where something is left out."""
    if cells(text) <= width:
        return text
    return _fitting(text, width - 1) + "…"


def cut_start(text: str, width: int) -> str:
    """The text's end, at most `width` cells, with an ellipsis where something is left out."""
    if cells(text) <= width:
        return text
    return "…" + _fitting(text[::-1], width - 1)[::-1]


def cut_apart(one: str, other: str, width: int) -> tuple[str, str]:
    """Two texts, each of at most `width` cells, of which what they have in common is left out and not what differs."""
    common = _common(one, other)
    if one == other or max(cells(one), cells(other)) <= width or cells(one[:common]) <= width * 3 // 4:
        return cut(one, width), cut(other, width)
    begun = cut(one[:common], width // 4) + cut_start(one[:common], width // 4)[1:]
    return cut(begun + one[common:], width), cut(begun + other[common:], width)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin alike with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def wrap(text: str, width: int, first: int = 0) -> list[str]:
    """The text's words on lines of at most `width` cells, the first one shorter by `first`; long words are not cut."""
    lines: list[str] = []
    line, room = "", width - first
    for word in text.split(" "):
        if line and cells(line) + 1 + cells(word) > room:
            lines.append(line)
            line, room = word, width
        else:
            line = f"{line} {word}" if line else word
    lines.append(line)
    return lines


def hanging(label: str, text: str, *, indent: int, width: int, first: int = 0) -> Iterator[str]:
    """The text after a label, and its further lines indented; see `wrap` for `first`."""
    head, *others = wrap(text, max(width - indent, _NARROWEST), first)
    yield f"{label}{head}"
    yield from (f"{'':{indent}}{line}" for line in others)


def pack(parts: Sequence[str], width: int) -> list[str]:
    """The parts, each followed by a comma, on as few lines as hold them in `width` cells."""
    lines: list[str] = []
    for part in parts:
        if lines and cells(lines[-1]) + cells(part) + 2 <= width:
            lines[-1] += f" {part},"
        else:
            lines.append(cut(f"{part},", width))
    return lines


def named(name: str, version: str | None) -> str:
    """A thing and its version, where it has one: `vllm 0.16.0`."""
    return f"{name} {version}" if version else name


def sourced(release: TargetSummary) -> str:
    """A release and where it came from: `vllm 0.16.0 (release on the index)`."""
    return f"{named(release.name, release.version)} ({release.origin})"


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number and its noun: `1 file`, `1,200 files`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listed(parts: Iterable[str]) -> str:
    """The parts as a sentence names them: `a`, `a and b`, `a, b and c`."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def _fitting(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _character_cells(character)
        if used > width:
            return text[:index]
    return text


def _character_cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
