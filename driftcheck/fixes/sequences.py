"""Comma-separated things, arguments and names and parameters: one more, one less, and the layout stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import libcst

Space = libcst.BaseParenthesizableWhitespace
# LibCST's nodes that commas separate; their unions are no types that a variable of types could stand for.
Item = TypeVar("Item")

NOTHING = libcst.SimpleWhitespace("")
BLANK = libcst.SimpleWhitespace(" ")

_CLOSING: dict[type[libcst.CSTNode], str] = {
    libcst.Arg: "whitespace_after_arg",
    libcst.Param: "whitespace_after_param",
    libcst.ParamSlash: "whitespace_after",
}


@dataclass(frozen=True)
class Row(Generic[Item]):
    """Items between brackets and the gaps around them: one before each item, and one before the closing bracket."""

    items: tuple[Item, ...]
    gaps: tuple[Space, ...]
    has_last_comma: bool

    @staticmethod
    def of(items: Sequence[Item], opening: Space = NOTHING, closing: Space = NOTHING) -> Row[Item]:
        """The items of a node, with the space that it has before the first and after the last."""
        gaps = [opening, *(_after(item) for item in items[:-1])]
        if items:
            own, comma = _after_last(items[-1]), isinstance(_comma(items[-1]), libcst.Comma)
            spaces = [_after(items[-1]) if comma else own, closing]
            gaps.append(next((each for each in spaces if isinstance(each, libcst.ParenthesizedWhitespace)), spaces[0]))
            return Row(tuple(items), tuple(gaps), comma)
        return Row((), (opening,), has_last_comma=False)

    def separated(self) -> tuple[Space, list[Item], Space]:
        """The space before the first item, the items with their commas, and the space that is left for after them."""
        *listed, closing = [*self.gaps] if self.items else [*self.gaps, NOTHING]
        made: list[Item] = []
        for index, item in enumerate(self.items):
            is_last = index == len(self.items) - 1
            if not is_last or self.has_last_comma:
                comma = _comma(item) if isinstance(_comma(item), libcst.Comma) else libcst.Comma()
                has_own = is_last and type(item) not in _CLOSING
                space = NOTHING if has_own else self.gaps[index + 1]
                made.append(_changed(item, comma=comma.with_changes(whitespace_after=space), closing=NOTHING))
            else:
                made.append(_changed(item, comma=libcst.MaybeSentinel.DEFAULT, closing=closing))
        is_inside = bool(self.items) and type(self.items[-1]) in _CLOSING
        return listed[0], made, NOTHING if is_inside else closing

    def comment_of(self, index: int) -> libcst.Comment | None:
        """The comment at the end of an item's line."""
        for gap in self.gaps[index + 1 :]:
            if isinstance(gap, libcst.ParenthesizedWhitespace):
                return gap.first_line.comment
        return None

    def lines_above(self, index: int) -> list[libcst.EmptyLine]:
        """The comments on lines of their own above an item."""
        return own_lines(self.gaps[index])

    def is_alone(self, index: int) -> bool:
        """True where no other item comes before an item on its line or after it."""
        return (index == 0 or _is_spread(self.gaps[index])) and _is_spread(self.gaps[index + 1])

    def without(self, index: int) -> Row[Item]:
        """The row without one item: a comment behind it goes where it stood alone on its line, all others stay."""
        before, after = self.gaps[index], self.gaps[index + 1]
        is_first, is_last = index == 0, index == len(self.items) - 1
        items = (*self.items[:index], *self.items[index + 1 :])
        has_last_comma = self.has_last_comma and bool(items)
        if not items:
            gap = _only_comments(before, after)
        elif is_last:
            gap = _closing(before, after)
            # What a comment closes can't be taken back to the line before it.
            has_last_comma = has_last_comma or (_has_comment(before) and not _is_spread(after))
        elif _is_spread(before):
            gap = _with_lines(before, own_lines(after))
        elif is_first:
            gap = _after_first(before, after)
        else:
            gap = after if _is_spread(after) else before
        return Row(items, (*self.gaps[:index], gap, *self.gaps[index + 2 :]), has_last_comma)

    def is_said_of(self, index: int) -> bool:
        """True where the comment above an item is about that item alone: the next one has its own, or there is none."""
        return bool(self.lines_above(index)) and (index == len(self.items) - 1 or bool(self.lines_above(index + 1)))

    def without_lines_above(self, index: int) -> Row[Item]:
        """The row without the comments above an item."""
        return replace(
            self, gaps=tuple(_without_lines(gap) if each == index else gap for each, gap in enumerate(self.gaps))
        )

    def with_item(self, index: int, item: Item) -> Row[Item]:
        """The row with one more item, before the one of that index."""
        items = (*self.items[:index], item, *self.items[index:])
        gap = self.gaps[index]
        if not self.items:
            before, after = _around_only(gap)
        elif index == len(self.items):
            before, after = self._at_end(gap)
        elif index == 0:
            rest = _plain(self.gaps[1]) if len(self.items) > 1 else _between_first(gap)
            before, after = _without_lines(gap), _with_lines(rest, own_lines(gap))
        else:
            before, after = _without_lines(gap), _with_lines(_plain(gap), own_lines(gap))
        return Row(items, (*self.gaps[:index], before, after, *self.gaps[index + 1 :]), self.has_last_comma)

    def _at_end(self, closing: Space) -> tuple[Space, Space]:
        between = _plain(self.gaps[-2]) if len(self.items) > 1 else _between_first(self.gaps[0])
        if not isinstance(closing, libcst.ParenthesizedWhitespace) or closing.first_line.comment is None:
            return between, closing
        # The comment behind the last item stays behind it, so what is new begins a line.
        if not isinstance(between, libcst.ParenthesizedWhitespace):
            spread = next((gap for gap in self.gaps[:-1] if isinstance(gap, libcst.ParenthesizedWhitespace)), None)
            further = closing.with_changes(last_line=libcst.SimpleWhitespace(f"{closing.last_line.value}    "))
            between = (spread or further).with_changes(empty_lines=[])
        return between.with_changes(first_line=closing.first_line), closing.with_changes(first_line=_bare(closing))


def own_lines(space: Space) -> list[libcst.EmptyLine]:
    """The lines of a whitespace that hold a comment and nothing else."""
    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return []
    return [line for line in space.empty_lines if line.comment is not None]


def _comma(item: Any) -> Any:
    return item.comma


def _after(item: Any) -> Space:
    space: Space = item.comma.whitespace_after if isinstance(item.comma, libcst.Comma) else NOTHING
    return space


def _after_last(item: Any) -> Space:
    name = _CLOSING.get(type(item))
    space: Space = getattr(item, name) if name is not None else NOTHING
    return space


def _changed(item: Any, *, comma: object, closing: Space) -> Any:
    changed = item.with_changes(comma=comma)
    name = _CLOSING.get(type(item))
    if name is None:
        return changed
    # A blank between an item and its comma is the item's; a line break there was the end of the row.
    is_kept = isinstance(comma, libcst.Comma) and not _is_spread(getattr(item, name)) and _had_comma(item)
    return changed if is_kept else changed.with_changes(**{name: closing})


def _had_comma(item: Any) -> bool:
    return isinstance(item.comma, libcst.Comma)


def _is_spread(space: Space) -> bool:
    """True where a line ends."""
    return isinstance(space, libcst.ParenthesizedWhitespace)


def _has_comment(space: Space) -> bool:
    return isinstance(space, libcst.ParenthesizedWhitespace) and (
        space.first_line.comment is not None or bool(own_lines(space))
    )


def _bare(space: libcst.ParenthesizedWhitespace) -> libcst.TrailingWhitespace:
    return libcst.TrailingWhitespace(newline=space.first_line.newline)


def _plain(space: Space) -> Space:
    """The whitespace without its comments."""
    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return space
    return space.with_changes(first_line=_bare(space), empty_lines=[])


def _without_lines(space: Space) -> Space:
    return space.with_changes(empty_lines=[]) if isinstance(space, libcst.ParenthesizedWhitespace) else space


def _with_lines(space: Space, lines: Sequence[libcst.EmptyLine]) -> Space:
    if not isinstance(space, libcst.ParenthesizedWhitespace) or not lines:
        return space
    return space.with_changes(empty_lines=[*space.empty_lines, *lines])


def _between_first(opening: Space) -> Space:
    """What stands between the only item and another: what stands before the first, where that begins a line."""
    return _plain(opening) if _is_spread(opening) else BLANK


def _after_first(before: Space, after: Space) -> Space:
    """The gap before what is first once the first item, which stood beside the bracket, is gone."""
    if isinstance(after, libcst.ParenthesizedWhitespace) and own_lines(after):
        return after.with_changes(first_line=_bare(after))
    return before


def _closing(before: Space, after: Space) -> Space:
    """The gap before the closing bracket once the last item is gone."""
    if isinstance(before, libcst.ParenthesizedWhitespace) and (_has_comment(before) or _is_spread(after)):
        if not isinstance(after, libcst.ParenthesizedWhitespace):
            return before
        lines = [*(before.empty_lines if own_lines(before) else ()), *after.empty_lines]
        return after.with_changes(first_line=before.first_line, empty_lines=lines)
    return after


def _only_comments(opening: Space, closing: Space) -> Space:
    """What stands between the brackets once nothing but comments does."""
    lines = [*own_lines(opening), *own_lines(closing)]
    spread = next((each for each in (closing, opening) if isinstance(each, libcst.ParenthesizedWhitespace)), None)
    if spread is None or not (lines or _has_comment(opening)):
        return NOTHING
    first = opening.first_line if isinstance(opening, libcst.ParenthesizedWhitespace) else _bare(spread)
    return spread.with_changes(first_line=first, empty_lines=lines)


def _around_only(space: Space) -> tuple[Space, Space]:
    """The gaps around what is the only item, from what stood between the brackets."""
    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return NOTHING, NOTHING
    lines = own_lines(space)
    if not lines:
        return (space.with_changes(empty_lines=[]), _plain(space)) if space.first_line.comment else (NOTHING, NOTHING)
    # It stands below the comments, as far in as they do.
    return space.with_changes(indent=lines[-1].indent, last_line=lines[-1].whitespace), _plain(space)
