"""Makes text from clients and targets safe to print: no terminal obeys it, no reader is misled by it."""

from __future__ import annotations

_LONGEST = 2000


def harmless(text: str, longest: int = _LONGEST) -> str:
    """The text on one line, harmful characters written as Python escapes, cut at `longest` characters."""
    if len(text) > longest:
        text = text[:longest] + "…"
    if text.isprintable():
        return text
    # Not printable are controls and escape codes, bidirectional overrides, zero-width characters, lone surrogates,
    # unassigned code points, and every space and separator that only looks like one.
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
