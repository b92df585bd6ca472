"""The arguments of a call, read from its syntax."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from driftcheck.model import Argument, Arguments, Location

Text = Callable[[ast.expr], str]
Locate = Callable[[ast.expr | ast.keyword], Location | None]
Follow = Callable[[ast.expr], ast.expr | None]

_FOLLOWED_AT_MOST = 64
"""How often a call's `follow` is asked: a literal may unpack names that unpack names, without end or twice over."""


def unparsed(node: ast.expr) -> str:
    """The source text of an expression in Python's own layout, `...` where it is nested too deeply to write."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return "..."


def arguments_of(
    call: ast.Call, *, text: Text = unparsed, locate: Locate | None = None, follow: Follow | None = None
) -> Arguments:
    """The arguments of a call as Python passes them, with literal `*(1, 2)` and `**{"a": 1}` already spread out.

    `text` gives an expression's source, `locate` the place of an argument (a keyword's begins with its name).
    `follow` gives the literal that an unpacked expression stands for (a `dict(...)` bound to a name), None where
    nobody knows; what comes from there is located where the call unpacks it. `dict` is taken for the builtin.
    """
    reader = _Reader(text=text, locate=locate, follow=_bounded(follow) if follow is not None else None)
    positional = [argument for node in call.args for argument in reader.positional(node)]
    keywords = [argument for keyword in call.keywords for argument in reader.keyword(keyword)]
    return Arguments(tuple(positional), tuple(keywords))


def _bounded(follow: Follow) -> Follow:
    left = _FOLLOWED_AT_MOST

    def bounded(node: ast.expr) -> ast.expr | None:
        nonlocal left
        left -= 1
        return follow(node) if left >= 0 else None

    return bounded


@dataclass(frozen=True, slots=True)
class _Reader:
    text: Text
    locate: Locate | None
    follow: Follow | None

    def positional(self, node: ast.expr) -> Iterator[Argument]:
        if not isinstance(node, ast.Starred):
            yield self._argument(node, node)
        elif isinstance(node.value, (ast.Tuple, ast.List)):
            for element in node.value.elts:
                yield from self.positional(element)
        elif (literal := self._literal(node.value)) is not None:
            yield from self._elsewhere(node).positional(ast.Starred(literal, ast.Load()))
        else:
            yield self._argument(node.value, node, unpacked=True)

    def keyword(self, keyword: ast.keyword) -> Iterator[Argument]:
        if keyword.arg is not None:
            yield self._argument(keyword.value, keyword, keyword=keyword.arg)
        else:
            yield from self._spread(keyword.value, keyword)

    def _spread(self, mapping: ast.expr, place: ast.expr | ast.keyword) -> Iterator[Argument]:
        """The arguments that `**mapping` stands for."""
        if isinstance(mapping, ast.Dict):
            yield from self._dict_display(mapping, place)
        elif isinstance(mapping, ast.Call) and isinstance(mapping.func, ast.Name) and mapping.func.id == "dict":
            if mapping.args:
                # dict(pairs, a=1): a is given, what else there is stays open.
                yield self._argument(mapping, place, unpacked=True)
            for keyword in mapping.keywords:
                yield from self.keyword(keyword)
        elif (literal := self._literal(mapping)) is not None:
            yield from self._elsewhere(place)._spread(literal, place)
        else:
            yield self._argument(mapping, place, unpacked=True)

    def _dict_display(self, display: ast.Dict, place: ast.expr | ast.keyword) -> Iterator[Argument]:
        # Within one display a later value replaces an earlier one, where two keywords of a call would be an error.
        named: dict[str | None, Argument] = {}
        rest: list[Argument] = []
        has_computed_key = False
        for key, value in zip(display.keys, display.values, strict=True):
            if key is None:
                for argument in self._spread(value, value):
                    if argument.unpacked:
                        rest.append(argument)
                    else:
                        named[argument.keyword] = argument
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                named[key.value] = self._argument(value, key, keyword=key.value)
            else:
                has_computed_key = True
        yield from named.values()
        yield from rest
        if has_computed_key:
            yield self._argument(display, place, unpacked=True)

    def _literal(self, node: ast.expr) -> ast.expr | None:
        return self.follow(node) if self.follow is not None else None

    def _elsewhere(self, place: ast.expr | ast.keyword) -> _Reader:
        """A reader for a literal that may stand in another file, where `text` and `locate` would go wrong."""
        location = self.locate(place) if self.locate is not None else None
        return replace(self, text=unparsed, locate=lambda _: location)

    def _argument(
        self, value: ast.expr, place: ast.expr | ast.keyword, *, keyword: str | None = None, unpacked: bool = False
    ) -> Argument:
        return Argument(
            value=self.text(value),
            keyword=keyword,
            unpacked=unpacked,
            is_none=not unpacked and isinstance(value, ast.Constant) and value.value is None,
            location=self.locate(place) if self.locate is not None else None,
        )
