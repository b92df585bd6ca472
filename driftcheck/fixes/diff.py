"""Changes as a patch that `git apply` and `patch -p1` take."""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from driftcheck.fixes.changes import Change, ordered

_CONTEXT = 3
# Comparing without a shortcut for frequent lines takes quadratic time where all lines are alike.
_COMPARED_LINES = 1000
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def unified(changes: Iterable[Change]) -> bytes:
    """The changes as one patch, with git's headers and without dates.

    It is bytes because each file's lines stand in it in the file's own encoding.
    """
    return b"".join(piece for change in ordered(changes) for piece in _patch(change))


def _patch(change: Change) -> Iterator[bytes]:
    old, new = _name(f"a/{change.path}"), _name(f"b/{change.path}")
    yield b"diff --git %b %b\n--- %b\n+++ %b\n" % (old, new, old, new)
    yield from _hunks(_lines(change.before), _lines(change.after))


def _name(path: str) -> bytes:
    """The path as git writes it: in quotes and with octal escapes unless it is plain.

    Git itself doesn't quote for a space, but `patch` reads git's own header only where it is told the name's end so.
    """
    raw = path.encode("utf-8", "surrogateescape")
    if all(33 <= byte <= 126 and byte not in _ESCAPES for byte in raw):
        return raw
    escaped = "".join(
        f"\\{_ESCAPES[byte]}" if byte in _ESCAPES else chr(byte) if 32 <= byte <= 126 else f"\\{byte:03o}"
        for byte in raw
    )
    return f'"{escaped}"'.encode("ascii")


def _lines(data: bytes) -> list[bytes]:
    """The lines with their ends. Only a line feed ends one: what else Python takes for an end does not for git."""
    *complete, rest = data.split(b"\n")
    lines = [line + b"\n" for line in complete]
    return [*lines, rest] if rest else lines


class _Matcher(difflib.SequenceMatcher[bytes]):
    """Compares the stretches between lines that both texts have once: whole files take too long."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]):
        super().__init__(None, (), ())
        self._texts = old, new

    def get_matching_blocks(self) -> list[difflib.Match]:
        """The stretches of lines that stay, neighbours joined, with an empty one at the end."""
        blocks: list[difflib.Match] = []
        for old_start, new_start, length in _kept(*self._texts):
            if blocks:
                last = blocks[-1]
                if (last.a + last.size, last.b + last.size) == (old_start, new_start):
                    blocks[-1] = difflib.Match(last.a, last.b, last.size + length)
                    continue
            if length:
                blocks.append(difflib.Match(old_start, new_start, length))
        old, new = self._texts
        return [*blocks, difflib.Match(len(old), len(new), 0)]


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    for group in _Matcher(old, new).get_grouped_opcodes(_CONTEXT):
        (_, old_start, _, new_start, _), (_, _, old_stop, _, new_stop) = group[0], group[-1]
        yield b"@@ -%b +%b @@\n" % (_range(old_start, old_stop), _range(new_start, new_stop))
        for operation, old_from, old_to, new_from, new_to in group:
            if operation == "equal":
                yield from _marked(b" ", old[old_from:old_to])
            else:
                yield from _marked(b"-", old[old_from:old_to])
                yield from _marked(b"+", new[new_from:new_to])


def _kept(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, int]]:
    """The stretches of lines that stay: where they begin in either text, and how long they are."""
    old_from = new_from = 0
    for old_to, new_to in [*_landmarks(old, new), (len(old), len(new))]:
        head, tail = _in_common(old[old_from:old_to], new[new_from:new_to])
        yield old_from, new_from, head
        old_from, new_from = old_from + head, new_from + head
        old_between, new_between = old[old_from : old_to - tail], new[new_from : new_to - tail]
        if old_between and new_between:
            is_long = max(len(old_between), len(new_between)) > _COMPARED_LINES
            matcher = difflib.SequenceMatcher(None, old_between, new_between, autojunk=is_long)
            for block in matcher.get_matching_blocks():
                yield old_from + block.a, new_from + block.b, block.size
        yield old_to - tail, new_to - tail, tail + (old_to < len(old))
        old_from, new_from = old_to + 1, new_to + 1


def _landmarks(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Where the lines stand that both texts have once; of those that changed their order, as many as keep it."""
    places = _only_places(new)
    pairs = [(place, places[line]) for line, place in _only_places(old).items() if line in places]
    ends: list[int] = []
    chains: list[tuple[int, int]] = []
    before: dict[tuple[int, int], tuple[int, int]] = {}
    for pair in sorted(pairs):
        index = bisect.bisect(ends, pair[1])
        ends[index : index + 1] = [pair[1]]
        chains[index : index + 1] = [pair]
        if index:
            before[pair] = chains[index - 1]
    found = chains[-1:]
    while found and found[-1] in before:
        found.append(before[found[-1]])
    return found[::-1]


def _only_places(lines: Sequence[bytes]) -> dict[bytes, int]:
    """Where each line stands that is there once."""
    counts = Counter(lines)
    return {line: place for place, line in enumerate(lines) if counts[line] == 1}


def _in_common(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines both begin with, and how many of the others both end with."""
    shortest = min(len(old), len(new))
    head = 0
    while head < shortest and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shortest - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _range(start: int, stop: int) -> bytes:
    """A hunk's lines: of none, the line after which they would stand."""
    length = stop - start
    first = start + 1 if length else start
    return b"%d" % first if length == 1 else b"%d,%d" % (first, length)


def _marked(mark: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + line
        if not line.endswith(b"\n"):
            yield b"\n\\ No newline at end of file\n"
