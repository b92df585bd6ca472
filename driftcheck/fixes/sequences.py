"""Comma-separated things, arguments and imported names: one more, one less, and the layout stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import libcst

Item = TypeVar("Item", libcst.Arg, libcst.ImportAlias, libcst.Param, libcst.DictElement)


def comments_of(items: Sequence[Item], index: int) -> tuple[list[libcst.EmptyLine], libcst.Comment | None]:
    """The comments about one item: those on lines of their own before it, and the one on its line."""
    before = _own_lines(_after(items[index - 1])) if index else []
    after = _after(items[index])
    return before, after.first_line.comment if isinstance(after, libcst.ParenthesizedWhitespace) else None


def without(items: Sequence[Item], index: int) -> list[Item]:
    """The items without one; the comments on lines of their own after it stay, a comment on its own line goes."""
    kept = list(items)
    removed = kept.pop(index)
    if index == 0:
        return kept
    before = kept[index - 1]
    kept[index - 1] = _joined(before, removed) if index < len(kept) else _last(before, removed)
    return kept


def _joined(before: Item, removed: Item) -> Item:
    """What stood before a removed item, followed by the comments that stood after that."""
    return _with_space(before, _with_lines(_after(before), _own_lines(_after(removed))))


def _with_lines(
    space: libcst.BaseParenthesizableWhitespace, comments: list[libcst.EmptyLine]
) -> libcst.BaseParenthesizableWhitespace:
    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return space
    return space.with_changes(empty_lines=[*space.empty_lines, *comments])


def _last(before: Item, removed: Item) -> Item:
    """What stood before the removed last item, and is the last now."""
    space = _after(before)
    if isinstance(space, libcst.ParenthesizedWhitespace) and space.first_line.comment is not None:
        # The comment belongs to what stays, and a comma before it does no harm.
        closing = _after(removed)
        if isinstance(closing, libcst.ParenthesizedWhitespace):
            space = space.with_changes(indent=closing.indent, last_line=closing.last_line)
        return _with_space(before, space)
    changed: Item = before.with_changes(comma=removed.comma)
    if isinstance(removed, libcst.Arg):
        changed = changed.with_changes(whitespace_after_arg=removed.whitespace_after_arg)
    return changed


def with_arguments(call: libcst.Call, added: Sequence[libcst.Arg]) -> libcst.Call:
    """The call with more arguments at its end, each on a line of its own where the others have theirs."""
    for argument in added:
        call = _with_argument(call, argument)
    return call


def _with_argument(call: libcst.Call, added: libcst.Arg) -> libcst.Call:
    if not call.args:
        return call.with_changes(args=[added], whitespace_before_args=_single(call.whitespace_before_args))
    *rest, last = call.args
    between = _between(call)
    if isinstance(last.comma, libcst.Comma):
        closing = last.comma.whitespace_after
        comma: libcst.Comma | libcst.MaybeSentinel = libcst.Comma(whitespace_after=_plain(closing))
        last = last.with_changes(comma=libcst.Comma(whitespace_after=_commented(between, closing)))
        added = added.with_changes(comma=comma)
    else:
        closing = last.whitespace_after_arg
        last = last.with_changes(
            comma=libcst.Comma(whitespace_after=_commented(between, closing)),
            whitespace_after_arg=libcst.SimpleWhitespace(""),
        )
        added = added.with_changes(whitespace_after_arg=_plain(closing))
    return call.with_changes(args=[*rest, last, added])


def _between(call: libcst.Call) -> libcst.BaseParenthesizableWhitespace:
    """What stands between two arguments of the call: what did so far, else what stands before the first."""
    if len(call.args) > 1:
        return _plain(_after(call.args[-2]))
    before = call.whitespace_before_args
    return _plain(before) if isinstance(before, libcst.ParenthesizedWhitespace) else libcst.SimpleWhitespace(" ")


def _single(space: libcst.BaseParenthesizableWhitespace) -> libcst.BaseParenthesizableWhitespace:
    return space if isinstance(space, libcst.ParenthesizedWhitespace) else libcst.SimpleWhitespace("")


def _after(item: Item) -> libcst.BaseParenthesizableWhitespace:
    return item.comma.whitespace_after if isinstance(item.comma, libcst.Comma) else libcst.SimpleWhitespace("")


def _with_space(item: Item, space: libcst.BaseParenthesizableWhitespace) -> Item:
    comma = item.comma if isinstance(item.comma, libcst.Comma) else libcst.Comma()
    changed: Item = item.with_changes(comma=comma.with_changes(whitespace_after=space))
    return changed


def _own_lines(space: libcst.BaseParenthesizableWhitespace) -> list[libcst.EmptyLine]:
    """The lines of a whitespace that hold a comment and nothing else."""
    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return []
    return [line for line in space.empty_lines if line.comment is not None]


def _plain(space: libcst.BaseParenthesizableWhitespace) -> libcst.BaseParenthesizableWhitespace:
    """The whitespace without its comments."""
    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return space
    return space.with_changes(first_line=libcst.TrailingWhitespace(newline=space.first_line.newline), empty_lines=[])


def _commented(
    space: libcst.BaseParenthesizableWhitespace, other: libcst.BaseParenthesizableWhitespace
) -> libcst.BaseParenthesizableWhitespace:
    """The whitespace, with the comments of another."""
    if not isinstance(other, libcst.ParenthesizedWhitespace):
        return space
    if other.first_line.comment is None and not _own_lines(other):
        return space
    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return other
    return space.with_changes(first_line=other.first_line, empty_lines=other.empty_lines)
