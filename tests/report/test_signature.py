"""Signatures are taken apart at their own commas, and every parameter is accounted for once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.report.signature import WrittenSignature, parse_signature, signature_changes


def parsed(text: str) -> WrittenSignature:
    signature = parse_signature(text)
    assert signature is not None
    return signature


@pytest.mark.parametrize(
    ("text", "parameters", "returns"),
    [
        ("()", [], ""),
        ("(a, b=1)", ["a", "b=1"], ""),
        ("(a: int, /, *, b: str = 'x') -> None", ["a: int", "/", "*", "b: str = 'x'"], "-> None"),
        ("def name(a) -> dict[str, int]:", ["a"], "-> dict[str, int]"),
        (
            "(a: dict[str, int] = {'x': (1, 2)}, *args, **kwargs)",
            ["a: dict[str, int] = {'x': (1, 2)}", "*args", "**kwargs"],
            "",
        ),
        ("(a=', )', b=\"it's\", c='\\'')", ["a=', )'", 'b="it\'s"', "c='\\''"], ""),
        ("(key=lambda a, b: (a, b), other=1)", ["key=lambda a, b: (a, b)", "other=1"], ""),
        ("(key=lambda: 0, lambdas: list = [])", ["key=lambda: 0", "lambdas: list = []"], ""),
        ("(a: Callable[[int, str], None], b)", ["a: Callable[[int, str], None]", "b"], ""),
    ],
)
def test_parsing(text: str, parameters: list[str], returns: str) -> None:
    signature = parsed(text)
    assert [parameter.text for parameter in signature.parameters] == parameters
    assert signature.returns == returns


@pytest.mark.parametrize("text", ["", "class Scheduler", "(a, b", "(a]", "(a='", "(a=lambda b)"])
def test_what_is_no_signature(text: str) -> None:
    assert parse_signature(text) is None


@pytest.mark.parametrize(
    ("text", "name", "outline"),
    [
        ("a", "a", "a"),
        ("a: int", "a", "a"),
        ("a=1", "a", "a=…"),
        ("a: int = 1", "a", "a=…"),
        ("a: Literal['x=1', f(y=2)]", "a", "a"),
        ("**kwargs: Any", "**kwargs", "**kwargs"),
        ("a=lambda x=1: x", "a", "a=…"),
    ],
)
def test_names_and_outlines(text: str, name: str, outline: str) -> None:
    [parameter] = parsed(f"({text})").parameters
    assert (parameter.name, parameter.outline) == (name, outline)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("(a, b)", "(a, b)", [" a", " b"]),
        ("(a, b, c)", "(a, c)", [" a", "-b", " c"]),
        ("(a, c)", "(a, b, c)", [" a", "+b", " c"]),
        ("(a, b: int)", "(a, b: int = 1)", [" a", "~b: int = 1"]),
        ("(a, b)", "(b, a)", ["+b", " a", "-b"]),
        ("(a, b=1, c=2)", "(a, c=3, b=2)", [" a", "-b=1", "~c=3", "+b=2"]),
        ("(a, b)", "(a, *, b)", [" a", "+*", " b"]),
        ("()", "(a)", ["+a"]),
    ],
)
def test_changes(old: str, new: str, expected: list[str]) -> None:
    assert [change.mark + change.parameter.text for change in signature_changes(parsed(old), parsed(new))] == expected


def test_without_a_baseline_nothing_is_marked() -> None:
    assert [change.mark for change in signature_changes(None, parsed("(a, b)"))] == [" ", " "]


names = st.sampled_from(["a", "b", "c", "timeout", "kwargs"])
texts = st.sampled_from(["int", "dict[str, int]", "Callable[[int], str]", "'x, y'", "Literal['(']"])
parameters = st.builds(
    Parameter, names, st.just(ParameterKind.POSITIONAL_OR_KEYWORD), st.none() | texts, st.none() | texts
)
signatures = st.builds(
    Signature, st.lists(parameters, unique_by=lambda parameter: parameter.name).map(tuple), st.none() | texts
)


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(signatures)
def test_what_the_model_writes_is_read_back(signature: Signature) -> None:
    read = parsed(str(signature))
    assert [parameter.text for parameter in read.parameters] == [str(parameter) for parameter in signature.parameters]
    assert [parameter.name for parameter in read.parameters] == [parameter.name for parameter in signature.parameters]


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(signatures, signatures)
def test_each_parameter_of_both_is_there_once_and_in_order(old: Signature, new: Signature) -> None:
    before, after = parsed(str(old)), parsed(str(new))
    changes = signature_changes(before, after)
    assert tuple(change.parameter for change in changes if change.mark != "-") == after.parameters
    assert tuple(change.before or change.parameter for change in changes if change.mark != "+") == before.parameters
