"""Which sources hold a word: one index of them all, since some hundred words are looked for in each audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driftcheck.surface.modules import ModuleIndex

Source = tuple[str, bytes]
"""A path, and what the file of that path holds."""

# What is no letter, digit or underscore becomes a space; bytes of other alphabets are letters here.
_SPACED = bytes(byte if byte > 127 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))


def encoded(text: str) -> bytes:
    """A word or pattern as bytes; a string may hold what no file can, and then stands nowhere."""
    return text.encode("utf-8", "surrogatepass")


def sources_of(index: ModuleIndex) -> list[Source]:
    """Every source of a tree with its path, in order; raises as the tree's `read` does."""
    return [(path, index.tree.read(path)) for path in sorted(index.sources.values())]


class Words:
    """The words of some sources. They are read, and the index made, when first asked."""

    def __init__(self, sources: Callable[[], Sequence[Source]]) -> None:
        self._read = sources
        self._sources: Sequence[Source] = ()
        self._places: dict[bytes, list[int]] | None = None

    def holding(self, *words: str) -> list[Source]:
        """The sources that hold all of these words, each as a word of its own, in their order."""
        if self._places is None:
            self._sources, self._places = self._index()
        found: set[int] | None = None
        for word in words:
            places = self._places.get(encoded(word), ())
            found = set(places) if found is None else found.intersection(places)
        return [self._sources[number] for number in sorted(found or ())]

    def _index(self) -> tuple[Sequence[Source], dict[bytes, list[int]]]:
        sources = self._read()
        places: dict[bytes, list[int]] = {}
        for number, (_, data) in enumerate(sources):
            for word in set(data.translate(_SPACED).split()):
                places.setdefault(word, []).append(number)
        return sources, places
