"""Lines are those that splitting the text gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftcheck.surface.source_lines import SourceLines

TEXTS = st.text(alphabet="aå\n\t ", max_size=40)
PLACES = st.none() | st.integers(-50, 50)


@given(TEXTS, PLACES, PLACES, st.none() | st.sampled_from((1, 2, -1)))
def test_lines_are_as_a_list_of_them(text: str, first: int | None, end: int | None, step: int | None) -> None:
    lines, listed = SourceLines(text), text.split("\n")
    assert lines[first:end:step] == listed[first:end:step]
    assert len(lines) == len(listed)
    assert list(lines) == listed
    assert [lines[place] for place in range(-len(listed), len(listed))] == listed + listed


@pytest.mark.parametrize("place", [-3, 2])
def test_there_is_no_line_outside(place: int) -> None:
    with pytest.raises(IndexError):
        SourceLines("a\nb")[place]
