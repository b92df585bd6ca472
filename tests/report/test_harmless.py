"""Nothing that a terminal obeys, or that misleads a reader, survives."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftcheck.report.harmless import harmless


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, 'quoted'", "plain text, 'quoted'"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("two\nlines\r\tand a tab", r"two\nlines\r\tand a tab"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("line\u2028separator", r"line\u2028separator"),
        ("no-break\xa0space", r"no-break\xa0space"),
        ("surrogate \udcff", r"surrogate \udcff"),
        ("naïve 変数 é", "naïve 変数 é"),
        ("[bold]markup[/bold] :smile:", "[bold]markup[/bold] :smile:"),
    ],
)
def test_harmful_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_endless_text_is_cut() -> None:
    assert harmless("x" * 5000, longest=10) == "xxxxxxxxxx…"


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(st.text())
def test_nothing_harmful_is_left(text: str) -> None:
    shown = harmless(text)
    categories = {unicodedata.category(character) for character in shown if character != " "}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    assert harmless(shown) == shown
