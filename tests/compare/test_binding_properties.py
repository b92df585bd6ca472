"""Binding against Python itself: functions made with `exec`, called with `eval`."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driftcheck.compare.bind import Landing, assignment, bind
from driftcheck.model import Kind, ParameterKind, Signature
from tests.compare.notation import call, defined, signature

NAMES = ("a", "b", "c", "d", "e")
KEYWORDS = (*NAMES, "x")
EXAMPLES = max(500, settings().max_examples)
KIND_BY_WORDS = {
    "unexpected keyword argument": Kind.UNKNOWN_ARGUMENT,
    "missing": Kind.MISSING_ARGUMENT,
    "takes": Kind.TOO_MANY_POSITIONAL_ARGUMENTS,
    "multiple values": Kind.PARAMETER_ALREADY_ASSIGNED,
    "positional-only": Kind.POSITIONAL_ONLY_ARGUMENT,
}


@st.composite
def definitions(draw: st.DrawFn) -> str:
    """The parameters of a function, in any legal order of kinds and defaults."""
    names = list(draw(st.permutations(NAMES)))[: draw(st.integers(0, 5))]
    first, second = sorted((draw(st.integers(0, len(names))), draw(st.integers(0, len(names)))))
    positional = names[:second]
    required = draw(st.integers(0, second))
    parts = [name if place < required else f"{name}={-place - 1}" for place, name in enumerate(positional)]
    if first:
        parts.insert(first, "/")
    keyword_only = [
        f"{name}={-10 - place}" if draw(st.booleans()) else name for place, name in enumerate(names[second:])
    ]
    if draw(st.booleans()):
        parts.append("*rest")
    elif keyword_only:
        parts.append("*")
    parts += keyword_only
    if draw(st.booleans()):
        parts.append("**more")
    return ", ".join(parts)


@st.composite
def calls(draw: st.DrawFn, *, is_open: bool = False) -> str:
    """A call with values that are all different; an open one also unpacks `xs`, or `kw`, or both."""
    values = (str(value) for value in itertools.count(1))

    def literal_mapping() -> str:
        return "**{" + ", ".join(f"'{name}': {next(values)}" for name in draw(some_keywords)) + "}"

    some_keywords = st.lists(st.sampled_from(KEYWORDS), max_size=2, unique=True)
    positional = [
        f"*({''.join(f'{next(values)}, ' for _ in range(draw(st.integers(0, 2))))})"
        if draw(st.integers(0, 5)) == 0
        else next(values)
        for _ in range(draw(st.integers(0, 4)))
    ]
    keywords = [f"{name}={next(values)}" for name in draw(st.lists(st.sampled_from(KEYWORDS), max_size=4, unique=True))]
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        keywords.insert(draw(st.integers(0, len(keywords))), literal_mapping())
    if is_open:
        unpacked = draw(st.sampled_from((("*xs",), ("**kw",), ("*xs", "**kw"))))
        if "*xs" in unpacked:
            positional.insert(draw(st.integers(0, len(positional))), "*xs")
        if "**kw" in unpacked:
            keywords.insert(draw(st.integers(0, len(keywords))), "**kw")
    return f"({', '.join([*positional, *keywords])})"


def received(landings: tuple[Landing, ...], target: Signature) -> dict[str, Any]:
    """What each parameter receives, by `assignment` and the defaults alone."""
    result: dict[str, Any] = {}
    for parameter in target.parameters:
        if parameter.kind is ParameterKind.VAR_POSITIONAL:
            gathered = [landing for landing in landings if landing.parameter == parameter]
            assert [landing.index for landing in gathered] == list(range(len(gathered)))
            result[parameter.name] = tuple(int(landing.argument.value) for landing in gathered)
        elif parameter.kind is ParameterKind.VAR_KEYWORD:
            gathered = [landing for landing in landings if landing.parameter == parameter]
            result[parameter.name] = {landing.argument.keyword: int(landing.argument.value) for landing in gathered}
        else:
            given_to_it = [landing for landing in landings if landing.parameter == parameter]
            text = given_to_it[0].argument.value if given_to_it else parameter.default
            assert text is not None
            result[parameter.name] = ast.literal_eval(text)
    return result


@given(definitions(), calls(), st.booleans())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_call_binds_where_python_lets_it(definition: str, written: str, is_method: bool) -> None:
    target, arguments = signature(definition), call(f"f{written}")
    problems = bind(target, arguments, callee="C.m" if is_method else "f", has_receiver=is_method)
    try:
        values = eval(f"f{written}", defined(definition, is_method=is_method))
    except TypeError as error:
        message = str(error)
    else:
        assert problems == ()
        assert received(assignment(target, arguments), target) == values
        return
    # Python's message is among ours, word for word (but for a module's name before the function's).
    told = [problem for problem in problems if message.endswith((problem.raises or "?").removeprefix("TypeError: "))]
    assert told
    assert {problem.kind for problem in told} == {kind for words, kind in KIND_BY_WORDS.items() if words in message}
    if len(problems) == 1:
        assert told == list(problems)


def expansions(target: Signature) -> Iterator[Mapping[str, Any]]:
    """Everything that xs and kw may hold and that could make a difference: few values, any of the names.

    More values than there are places, or other names, only make what is unwelcome worse.
    """
    places = len(target.parameters) + 1
    for length in range(places + 1):
        for size in range(len(KEYWORDS) + 1):
            for names in itertools.combinations(KEYWORDS, size):
                yield {"xs": tuple(range(100, 100 + length)), "kw": dict.fromkeys(names, 200)}


@given(definitions(), calls(is_open=True))
@settings(max_examples=EXAMPLES, deadline=None)
def test_an_open_call_is_refused_only_where_nothing_could_make_it_bind(definition: str, written: str) -> None:
    target, arguments = signature(definition), call(f"f{written}")
    namespace = defined(definition, is_method=False)
    code = compile(f"f{written}", "call", "eval")
    certain = [
        landing for landing in assignment(target, arguments) if landing.parameter and not landing.argument.unpacked
    ]
    binds = 0
    for expansion in expansions(target):
        try:
            values = eval(code, {**namespace, **expansion})
        except TypeError:
            continue
        for landing in certain:
            assert landing.parameter is not None
            where, value = values[landing.parameter.name], int(landing.argument.value)
            if landing.parameter.kind is ParameterKind.VAR_KEYWORD:
                assert where[landing.argument.keyword] == value
            elif landing.parameter.kind is ParameterKind.VAR_POSITIONAL:
                assert value in where if landing.index is None else where[landing.index] == value
            else:
                assert where == value
        binds += 1
        if binds == 20:
            break
    assert (bind(target, arguments) == ()) == (binds > 0)
