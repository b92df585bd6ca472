"""The arguments of a call, as they are read from its syntax."""

from __future__ import annotations

import ast

import pytest

from driftcheck.model import Argument, Location
from driftcheck.usage.arguments import arguments_of
from tests.compare.notation import call


def shown(argument: Argument) -> str:
    star = "*" if argument.unpacked else ""
    return f"{argument.keyword}={argument.value}" if argument.keyword is not None else f"{star}{argument.value}"


@pytest.mark.parametrize(
    ("written", "positional", "keywords"),
    [
        ("f()", [], []),
        ("f(1, x, a=2)", ["1", "x"], ["a=2"]),
        ("f(1, *xs, 2, **kw)", ["1", "*xs", "2"], ["*kw"]),
        ("f(a=1, *xs)", ["*xs"], ["a=1"]),
        # Literals are spread out, those within them too.
        ("f(*(1, 2), *[3])", ["1", "2", "3"], []),
        ("f(*(), **{})", [], []),
        ("f(*(1, *xs, *(2, 3)))", ["1", "*xs", "2", "3"], []),
        ("f(**{'a': 1, 'b c': 2})", [], ["a=1", "b c=2"]),
        ("f(**dict(a=1, **{'b': 2}))", [], ["a=1", "b=2"]),
        # The order of a set or of a string's letters is another matter.
        ("f(*{1, 2})", ["*{1, 2}"], []),
        # In one display the last value holds; between two it is an error, and both are kept.
        ("f(**{'a': 1, 'a': 2})", [], ["a=2"]),
        ("f(**{'a': 1, **{'a': 2}})", [], ["a=2"]),
        ("f(a=1, **{'a': 2})", [], ["a=1", "a=2"]),
        # What is known of a half-known mapping stays known.
        ("f(**{'a': 1, **kw})", [], ["a=1", "*kw"]),
        ("f(**{'a': 1, name: 2, other: 3})", [], ["a=1", "*{'a': 1, name: 2, other: 3}"]),
        ("f(**{1: 2})", [], ["*{1: 2}"]),
        ("f(**dict(pairs, a=1))", [], ["*dict(pairs, a=1)", "a=1"]),
        ("f(**other(a=1))", [], ["*other(a=1)"]),
    ],
)
def test_arguments(written: str, positional: list[str], keywords: list[str]) -> None:
    arguments = call(written)
    assert [shown(argument) for argument in arguments.positional] == positional
    assert [shown(argument) for argument in arguments.keywords] == keywords


def test_none_is_told_from_what_is_unpacked() -> None:
    arguments = call("f(None, 'None', *None, a=None, **{'b': None})")
    assert [argument.is_none for argument in arguments.positional + arguments.keywords] == [
        True, False, False, True, True,
    ]  # fmt: skip


def locate(node: ast.expr | ast.keyword) -> Location:
    return Location("app.py", node.lineno, node.col_offset + 1, node.end_lineno or 0, (node.end_col_offset or 0) + 1)


def test_places() -> None:
    written = "f(1, *xs, a=2, **{'b': 3}, **kw)"
    expression = ast.parse(written, mode="eval").body
    assert isinstance(expression, ast.Call)
    arguments = arguments_of(expression, text=lambda node: "?", locate=locate)
    places = [
        written[argument.location.column - 1 : argument.location.end_column - 1]
        for argument in arguments.positional + arguments.keywords
        if argument.location is not None
    ]
    assert places == ["1", "*xs", "a=2", "'b'", "**kw"]
    assert {argument.value for argument in arguments.positional} == {"?"}


def followed(written: str, names: dict[str, str]) -> list[str]:
    def follow(node: ast.expr) -> ast.expr | None:
        literal = names.get(node.id) if isinstance(node, ast.Name) else None
        return ast.parse(literal, mode="eval").body if literal is not None else None

    expression = ast.parse(written, mode="eval").body
    assert isinstance(expression, ast.Call)
    arguments = arguments_of(expression, follow=follow)
    return [shown(argument) for argument in arguments.positional + arguments.keywords]


def test_a_name_that_stands_for_a_literal_is_followed() -> None:
    names = {"kw": "dict(a=1, **more)", "more": "{'b': None}", "xs": "(1, *ys)"}
    assert followed("f(*xs, **kw)", names) == ["1", "*ys", "a=1", "b=None"]


def test_what_is_followed_is_located_at_the_call() -> None:
    expression = ast.parse("f(**kw)", mode="eval").body
    assert isinstance(expression, ast.Call)
    elsewhere = ast.parse("\n\n{'a': 1}", mode="eval").body
    arguments = arguments_of(expression, locate=locate, follow=lambda _: elsewhere)
    assert [argument.location for argument in arguments.keywords] == [Location("app.py", 1, 3, 1, 7)]


def test_following_ends() -> None:
    assert followed("f(**kw)", {"kw": "{'a': 1, **kw}"}) == ["a=1", "*kw"]
    wide = followed("f(*xs)", {"xs": "(1, *xs, *xs, *xs)"})
    assert "*xs" in wide
    assert len(wide) < 1000


def test_an_argument_that_is_nested_too_deeply_to_write_is_still_one() -> None:
    arguments = call(f"f({'x' + '+x' * 600}, a=None)")
    assert [argument.value for argument in arguments.positional] == ["..."]
    assert arguments.keywords[0].is_none
