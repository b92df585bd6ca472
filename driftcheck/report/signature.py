"""Takes signatures apart, as text, and says in which parameters two of them differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
# A constructor with hundreds of fields has a signature of thousands of characters; cut, it can't be taken apart.
LONGEST_SIGNATURE = 100_000

Mark = Literal[" ", "-", "+", "~"]


@dataclass(frozen=True, slots=True)
class WrittenParameter:
    """One parameter as the target's source writes it, the bare `*` and `/` included."""

    text: str

    @property
    def name(self) -> str:
        """The name with its stars: `*args`, `timeout`."""
        return self.text.partition(":")[0].partition("=")[0].strip()

    @property
    def bare_name(self) -> str:
        """The name alone: `args`, `timeout`."""
        return self.name.lstrip("*")

    @property
    def outline(self) -> str:
        """The name, and whether there is a default: `timeout=…`."""
        return f"{self.name}=…" if _has_default(self.text) else self.name


@dataclass(frozen=True, slots=True)
class WrittenSignature:
    """A signature as text, taken apart: the parameters in order, and what follows the closing parenthesis."""

    parameters: tuple[WrittenParameter, ...]
    returns: str


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a parameter: kept (" "), gone ("-"), added ("+") or changed ("~", `before` being its old form)."""

    mark: Mark
    parameter: WrittenParameter
    before: WrittenParameter | None = None


def parse_signature(text: str) -> WrittenSignature | None:
    """Takes `(a: int, *, b=1) -> str` apart, whatever name stands before it; None where it isn't of that form."""
    start = text.find("(")
    if start < 0:
        return None
    parts, end = _arguments(text, start)
    if end is None:
        return None
    return WrittenSignature(tuple(WrittenParameter(part) for part in parts), text[end + 1 :].strip().rstrip(":"))


def signature_changes(baseline: WrittenSignature | None, target: WrittenSignature) -> tuple[Change, ...]:
    """The parameters of both signatures in one sequence; without a baseline all are kept."""
    new = target.parameters
    old = new if baseline is None else baseline.parameters
    if old == new:
        return tuple(Change(" ", parameter) for parameter in new)
    from difflib import SequenceMatcher

    changes: list[Change] = []
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            changes += (Change(" ", parameter) for parameter in new[new_start:new_end])
        else:
            changes += _replaced(old[old_start:old_end], new[new_start:new_end])
    return tuple(changes)


def _replaced(old: tuple[WrittenParameter, ...], new: tuple[WrittenParameter, ...]) -> Iterator[Change]:
    """A parameter that kept its name, and its order among those that did, has changed; the others went or came."""
    waiting = list(old)
    for parameter in new:
        same = next((index for index, other in enumerate(waiting) if other.name == parameter.name), None)
        if same is None:
            yield Change("+", parameter)
            continue
        yield from (Change("-", other) for other in waiting[:same])
        yield Change("~", parameter, before=waiting[same])
        del waiting[: same + 1]
    yield from (Change("-", other) for other in waiting)


def _arguments(text: str, start: int) -> tuple[list[str], int | None]:
    """The parts between the parentheses that open at `start`, split at their commas, and where they close."""
    parts: list[str] = []
    expected = [")"]
    part_start = index = start + 1
    while index < len(text):
        character = text[index]
        if character in "'\"":
            index = _end_of_string(text, index)
        elif character in _OPENING:
            expected.append(_OPENING[character])
        elif _is_lambda(text, index):
            expected.append(":")
        elif character == ":" == expected[-1]:
            expected.pop()
        elif character in _CLOSING:
            if character != expected.pop():
                return parts, None
            if not expected:
                parts.append(text[part_start:index].strip())
                return [part for part in parts if part], index
        elif character == "," and len(expected) == 1:
            parts.append(text[part_start:index].strip())
            part_start = index + 1
        index += 1
    return parts, None


def _is_lambda(text: str, index: int) -> bool:
    """True where a `lambda` starts, the commas of whose parameters divide nothing."""
    if not text.startswith("lambda", index):
        return False
    around = text[max(index - 1, 0)] + text[index + 6 : index + 7]
    return not any(character.isidentifier() or character.isdigit() for character in around)


def _end_of_string(text: str, start: int) -> int:
    """Where the string literal that opens at `start` closes, or the end of the text."""
    index = start + 1
    while index < len(text) and text[index] != text[start]:
        index += 2 if text[index] == "\\" else 1
    return index


def _has_default(text: str) -> bool:
    """True where a parameter has a default; an `=` within the annotation's brackets or strings is none."""
    depth = 0
    index = 0
    while index < len(text):
        character = text[index]
        if character in "'\"":
            index = _end_of_string(text, index)
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "=" and depth == 0:
            return True
        index += 1
    return False
