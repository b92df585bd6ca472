"""Which parameter continues which from one release to another, and which name was probably meant."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

from driftcheck.model import ParameterKind, Signature

_NEAR = 0.6
_LONGEST_NAME_COMPARED = 100
_MOST_NAMES_COMPARED = 1000


def counterparts(baseline: Signature, target: Signature) -> dict[str, str]:
    """Which parameter of the target continues which of the baseline, by name; what has no entry is gone.

    A name that is in both is its own counterpart. Positional parameters whose name is gone are looked for among the new
    ones that stand between the same neighbours: as many new as gone are renames in place; otherwise names that are like
    each other are, and no others.
    """
    old, new = _positional_names(baseline), _positional_names(target)
    old_names, new_names = _names(baseline), _names(target)
    continued = {name: name for name in old_names if name in new_names}
    for old_gap, new_gap in _gaps(old, new):
        gone = [name for name in old_gap if name not in new_names]
        added = [name for name in new_gap if name not in old_names]
        if len(gone) == len(added):
            continued.update(zip(gone, added, strict=True))
            continue
        for name in gone:
            near = near_name(name, added)
            if near is not None:
                continued[name] = near
                added.remove(near)
    return continued


def near_name(name: str, candidates: Collection[str]) -> str | None:
    """The candidate most like a name, None where none is: a like spelling, or the same words and more.

    Thousands of candidates or names of a hundred characters are nobody's slip and are not compared.
    """
    if len(name) > _LONGEST_NAME_COMPARED or len(candidates) > _MOST_NAMES_COMPARED:
        return None
    best: tuple[float, str] | None = None
    for candidate in candidates:
        likeness = _likeness(name, candidate)
        if likeness >= _NEAR and (best is None or likeness > best[0]):
            best = (likeness, candidate)
    return best[1] if best is not None else None


def _likeness(one: str, other: str) -> float:
    if len(other) > _LONGEST_NAME_COMPARED:
        return 0.0
    ratio = difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
    words, other_words = set(one.strip("_").split("_")), set(other.strip("_").split("_"))
    shorter = min(words, other_words, key=len)
    if sum(map(len, shorter)) >= 3 and (words <= other_words or other_words <= words):
        return max(ratio, _NEAR)
    return ratio


def _names(signature: Signature) -> dict[str, None]:
    """The names of parameters that hold one value, in order; a dict, since a set would not keep the order."""
    return {parameter.name: None for parameter in signature.parameters if not parameter.is_variadic}


def _positional_names(signature: Signature) -> list[str]:
    kinds = (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in signature.parameters if parameter.kind in kinds]


def _gaps(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The stretches between the names that both have in the same order (as many of them as can be)."""
    place_in_new = {name: place for place, name in enumerate(new)}
    shared = [(place, place_in_new[name]) for place, name in enumerate(old) if name in place_in_new]
    old_start = new_start = 0
    for old_end, new_end in [*_longest_rising(shared), (len(old), len(new))]:
        yield old[old_start:old_end], new[new_start:new_end]
        old_start, new_start = old_end + 1, new_end + 1


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose second members rise, by patience sorting."""
    ends: list[int] = []
    end_pairs: list[int] = []
    previous: list[int | None] = []
    for place, (_, value) in enumerate(pairs):
        length = bisect_left(ends, value)
        previous.append(end_pairs[length - 1] if length else None)
        if length == len(ends):
            ends.append(value)
            end_pairs.append(place)
        else:
            ends[length], end_pairs[length] = value, place
    chain: list[tuple[int, int]] = []
    at = end_pairs[-1] if end_pairs else None
    while at is not None:
        chain.append(pairs[at])
        at = previous[at]
    return chain[::-1]
