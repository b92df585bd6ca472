"""The lines of a source, taken from its text when they are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import overload


class SourceLines(Sequence[str]):
    """The lines of a text, without their ends.

    Only where each begins is kept: lines by themselves take more memory than all of the text.
    """

    __slots__ = ("_starts", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        # Where each line begins, and the one after the last would.
        self._starts = array("I")

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        starts = self._starts or self._found()
        if isinstance(place, slice):
            first, end, step = place.indices(len(starts) - 1)
            if first >= end and step > 0:
                return []
            if step == 1:
                return self._text[starts[first] : starts[end] - 1].split("\n")
            return [self[each] for each in range(first, end, step)]
        if place < 0:
            place += len(starts) - 1
        if not 0 <= place < len(starts) - 1:
            raise IndexError(place)
        return self._text[starts[place] : starts[place + 1] - 1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._text.split("\n"))

    def __len__(self) -> int:
        return len(self._starts or self._found()) - 1

    def _found(self) -> array[int]:
        lines = self._text.split("\n")
        self._starts = array("I", accumulate((len(line) + 1 for line in lines), initial=0))
        return self._starts
