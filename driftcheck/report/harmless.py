"""Makes text from clients and targets safe to print: no terminal obeys it, no reader is misled by it."""

from __future__ import annotations

import unicodedata

# Controls and escape codes (Cc), bidirectional overrides and zero-width characters (Cf), lone surrogates (Cs), private
# and unassigned code points, whose look nobody knows (Co, Cn), and the separators that break a line (Zl, Zp).
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LONGEST = 2000


def harmless(text: str, longest: int = _LONGEST) -> str:
    """The text on one line, harmful characters written as Python escapes, cut at `longest` characters."""
    if len(text) > longest:
        text = text[:longest] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escape(character) if unicodedata.category(character) in _HARMFUL else character for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
