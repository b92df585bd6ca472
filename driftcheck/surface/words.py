"""Which sources hold a word: the first words are looked for one by one, for more an index of all is worth making."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from driftcheck.surface.modules import ModuleIndex

if TYPE_CHECKING:
    from driftcheck.surface.shelf import Shelf

Source = tuple[str, bytes]
"""A path, and what the file of that path holds."""

# What is no letter, digit or underscore becomes a space; bytes of other alphabets are letters here.
_SPACE = ord(" ")
_SPACED = bytes(byte if byte > 127 or chr(byte).isalnum() or byte == ord("_") else _SPACE for byte in range(256))
_NO_LETTER = rb"(?![0-9A-Za-z_\x80-\xff])"
# An index takes as long as some three times so many searches, of which mostly more follow.
_MOST_SEARCHES = 8


def encoded(text: str) -> bytes:
    """A word or pattern as bytes; a string may hold what no file can, and then stands nowhere."""
    return text.encode("utf-8", "surrogatepass")


def words_of(index: ModuleIndex | None) -> Words:
    """The words of every source of a tree."""
    sources = index.sources.values() if index is not None else ()
    return Words(lambda: sorted(sources), index.tree.read if index is not None else _nothing)


def _nothing(path: str) -> bytes:
    raise KeyError(path)


class Words:
    """The words of some sources, which are read when first asked; `shelf` keeps the words of a release.

    Reading raises as the tree's `read` does.
    """

    def __init__(
        self, paths: Callable[[], Sequence[str]], read: Callable[[str], bytes], shelf: Shelf | None = None
    ) -> None:
        self._list = paths
        self._read = read
        self._shelf = shelf
        self._paths: Sequence[str] | None = None
        self._asked: dict[bytes, Sequence[int]] = {}
        self._places: dict[bytes, list[int]] | None = None
        self._text = b""
        self._starts: list[int] = []

    def holding(self, *words: str) -> list[Source]:
        """The sources that hold all of these words, each as a word of its own, in their order."""
        if self._paths is None:
            self._paths = self._list()
        found: set[int] | None = None
        for word in words:
            places = self._places_of(encoded(word))
            found = set(places) if found is None else found.intersection(places)
        return [(path, self._read(path)) for path in (self._paths[number] for number in sorted(found or ()))]

    def _places_of(self, word: bytes) -> Sequence[int]:
        """The numbers of the sources that hold a word."""
        if self._places is not None:
            return self._places.get(word, ())
        if self._shelf is not None:
            kept = self._shelf.words
            if kept is None:
                self._shelf.note_words({held: array("I", places).tobytes() for held, places in self._index().items()})
                kept = self._shelf.words
            return array("I", kept.get(word, b"") if kept is not None else b"")
        found = self._asked.get(word)
        if found is None:
            if len(self._asked) >= _MOST_SEARCHES:
                self._places, self._text = self._index(), b""
                return self._places.get(word, ())
            found = self._asked[word] = self._search(word)
        return found

    def _search(self, word: bytes) -> Sequence[int]:
        if not word or word.translate(_SPACED) != word or b" " in word:
            return ()
        if not self._starts:
            # A byte that is part of no word keeps them apart.
            sources = [self._read(path) for path in self._paths or ()]
            self._text = b"\0".join(sources)
            position = 0
            for data in sources:
                self._starts.append(position)
                position += len(data) + 1
        text, starts = self._text, self._starts
        search = re.compile(re.escape(word) + _NO_LETTER).search
        places: list[int] = []
        match = search(text)
        while match is not None:
            first = match.start()
            if first and _SPACED[text[first - 1]] != _SPACE:
                match = search(text, first + 1)
                continue
            number = bisect_right(starts, first) - 1
            places.append(number)
            match = search(text, starts[number + 1]) if number + 1 < len(starts) else None
        return places

    def _index(self) -> dict[bytes, list[int]]:
        places: dict[bytes, list[int]] = {}
        for number, path in enumerate(self._paths or ()):
            for word in set(self._read(path).translate(_SPACED).split()):
                places.setdefault(word, []).append(number)
        return places
