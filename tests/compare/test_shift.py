"""Which calls are shifted, by example: the parameters before and after, a call, and what becomes of it."""

from __future__ import annotations

import pytest

from driftcheck.compare.counterparts import counterparts
from driftcheck.compare.shift import positional_shift, swallowed_keyword
from driftcheck.model import Certainty, Kind
from tests.compare.notation import call, defined, signature

SHIFTED = [
    # A parameter was put before others.
    ("a, b=0", "a, new=None, b=0", "f(1, 2)", "certain", "argument 2 was for 'b' and now lands on 'new'", "b"),
    # Two changed places.
    ("name, value", "value, name", "f(1, 2)", "certain",
     "argument 1 was for 'name' and now lands on 'value', and 1 more of the call", "name"),
    # One is now taken by keyword only, and another has its place.
    ("a, b=0, c=0", "a, c=0, *, b=0", "f(1, 2)", "certain", "argument 2 was for 'b' and now lands on 'c'", "b"),
    # One was removed, and the others moved up.
    ("a, old=None, b=0", "a, b=0", "f(1, 2)", "likely", "argument 2 was for 'old' and now lands on 'b'", None),
    # A renamed parameter stands elsewhere.
    ("graph, weighted=False", "graph, nodes=None, weight=None, count=True", "f(1, True)", "likely",
     "argument 2 was for 'weighted' and now lands on 'nodes'", "weight"),
    # *args lost its first value to a parameter put before it.
    ("a, *args", "a, new=None, *args", "f(1, 2)", "likely", "argument 2 was for '*args' and now lands on 'new'", None),
    ("a, *args", "a, new, *args", "f(1, 2)", "possible", "argument 2 was for '*args' and now lands on 'new'", None),
    ("*args, k=0", "k=0, *args", "f(1)", "certain", "argument 1 was for '*args' and now lands on 'k'", None),
    # A parameter went behind *args, which now has its value.
    ("a, b=0, *args", "a, *args, b=0", "f(1, 2)", "certain", "argument 2 was for 'b' and now lands on '*args'", "b"),
    ("a, b=0, *args", "a, *args", "f(1, 2)", "possible", "argument 2 was for 'b' and now lands on '*args'", None),
    # Names, defaults and number all changed: another signature.
    ("port, protocol=None, start=True", "config=None, start=True", "f(0)", "possible",
     "argument 1 was for 'port' and now lands on 'config'", None),
    # The place was given to something of another type.
    ("request: ModelRequest", "output: SchedulerOutput", "f(1)", "possible",
     "argument 1 was for 'request' and now lands on 'output'", "output"),
    # The value is the default of where it lands, and nothing is lost.
    ("a, old=None, b=None", "a, b=None", "f(1, None)", "possible",
     "argument 2 was for 'old' and now lands on 'b'", None),
    ("a, b='x'", 'a, new="x", b="x"', "f(1, 'x')", "possible", "argument 2 was for 'b' and now lands on 'new'", "b"),
    # It is the default of where it lands, but not of where it is missed.
    ("a, b=0", "a, new=None, b=0", "f(1, None)", "certain", "argument 2 was for 'b' and now lands on 'new'", "b"),
    # Or what is missed where it belongs is given something else.
    ("a=None, b=None", "b=None, a=None", "f(None, 2)", "certain",
     "argument 1 was for 'a' and now lands on 'b', and 1 more of the call", "a"),
    # An unpacked value after the shifted one changes nothing about it.
    ("a, b=0, c=0", "a, new=None, b=0, c=0", "f(1, 2, *xs)", "certain",
     "argument 2 was for 'b' and now lands on 'new'", "b"),
    # A parameter that is taken by position only can't be asked for by keyword.
    ("a, b=0, /", "b=0, a=0, /", "f(1)", "certain", "argument 1 was for 'a' and now lands on 'b'", None),
]  # fmt: skip

UNSHIFTED = [
    # Nothing changed, or nothing that this call sees.
    ("a, b=0", "a, b=0", "f(1, 2)"),
    ("a, b=0", "a, b=0, new=None", "f(1, 2)"),
    ("a, b=0, c=0", "a, b=0, new=None, c=0", "f(1, 2)"),
    ("a, b=0", "a, new=None, b=0", "f(1, b=2)"),
    ("name, value", "value, name", "f(name=1, value=2)"),
    # A rename in place, alone, or beside options that are new at the end.
    ("low, high", "start, end", "f(1, 2)"),
    ("data, margin=False", "X, margin=False, rounds=None", "f(1, True)"),
    ("degree", "max_degree, min_degree=0", "f(1)"),
    ("value", "fill, strict=False", "f(1)"),
    ("scores: Tensor", "logits: 'Tensor | None'", "f(1)"),
    ("count: int", "size: float", "f(1)"),
    ("what", "item: Item", "f(1)"),
    ("what: Any", "item: Item", "f(1)"),
    ("lexer_name: str", "lexer: Lexer", "f(1)"),
    # What was named is gathered and handed on in its order, or the reverse.
    ("a, p=None, v=None", "a, *args, **kwargs", "f(1, 2, 3)"),
    ("*args", "first, second=None", "f(1, 2)"),
    ("*args", "first, *rest", "f(1, 2)"),
    # Past an unpacked value nobody knows where arguments land.
    ("a, b=0, c=0", "a, new=None, b=0, c=0", "f(1, *xs, 3)"),
    # It doesn't bind at all: that is an error, not a shift.
    ("a, b=0", "a, new, b, c", "f(1, 2)"),
    ("a", "new, a, b=0", "f(1, 2)"),
]


@pytest.mark.parametrize(("before", "after", "written", "certainty", "message", "suggestion"), SHIFTED)
def test_shifted(before: str, after: str, written: str, certainty: str, message: str, suggestion: str | None) -> None:
    (problem,) = positional_shift(signature(before), signature(after), call(written))
    assert problem.kind is Kind.POSITIONAL_SHIFT
    assert (problem.certainty.value, problem.message, problem.suggestion) == (certainty, message, suggestion)
    assert problem.raises is None


@pytest.mark.parametrize(("before", "after", "written"), UNSHIFTED)
def test_not_shifted(before: str, after: str, written: str) -> None:
    assert positional_shift(signature(before), signature(after), call(written)) == ()


@pytest.mark.parametrize(
    ("before", "after", "written", "message"),
    # Python can't be asked about xs, nor about annotations whose classes don't exist.
    [(row[0], row[1], row[2], row[4]) for row in SHIFTED if "*xs" not in row[2] and ":" not in row[0]],
)
def test_python_hands_the_value_to_what_the_message_says(before: str, after: str, written: str, message: str) -> None:
    place = int(message.split()[1])
    value = eval(call(written).positional[place - 1].value)
    names = [part.split("'")[1] for part in message.split(" and now lands on ")]
    for name, definition in zip(names, (before, after), strict=True):
        received = eval(written, defined(definition))[name.lstrip("*")]
        assert value in received if name.startswith("*") else received == value


def test_one_cause_is_one_problem_however_many_arguments_it_moves() -> None:
    before, after = signature("a=0, b=0, c=0, d=0"), signature("new=0, a=0, b=0, c=0, d=0")
    (problem,) = positional_shift(before, after, call("f(1, 2, 3, 4)"))
    assert problem.message == "argument 1 was for 'a' and now lands on 'new', and 3 more of the call"
    assert problem.argument is not None
    assert problem.argument.value == "1"


def test_the_surest_shift_is_the_one_told() -> None:
    before, after = signature("a, old=None, b=0"), signature("a, b=0, c=0")
    (problem,) = positional_shift(before, after, call("f(1, 2, 3)"))
    assert problem.certainty is Certainty.CERTAIN
    assert problem.message.startswith("argument 3 was for 'b' and now lands on 'c'")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a, b", "b, a", {"a": "a", "b": "b"}),
        ("a, low, high, z", "a, start, end, z", {"a": "a", "low": "start", "high": "end", "z": "z"}),
        ("a, weighted", "a, nodes, weight, count", {"a": "a", "weighted": "weight"}),
        ("a, old, b", "a, b", {"a": "a", "b": "b"}),
        ("a, *, k", "k, a", {"a": "a", "k": "k"}),
        # Neighbours that changed places are no neighbours.
        ("low, a, mid, b", "b, start, a", {"a": "a", "b": "b"}),
        # Two names of which only one can be continued.
        ("colour, colours", "color", {"colour": "color"}),
    ],
)
def test_counterparts(before: str, after: str, expected: dict[str, str]) -> None:
    assert counterparts(signature(before), signature(after)) == expected


def test_thousands_of_parameters_are_no_trouble() -> None:
    before = signature(", ".join(f"a{number}=0" for number in range(3000)))
    after = signature(", ".join(f"b{number}=0" for number in range(2999)))
    assert counterparts(before, after) == {}
    (problem,) = positional_shift(before, signature("new=1, " + str(before)[1:-1]), call("f(2, *xs)"))
    assert problem.parameter == "new"


@pytest.mark.parametrize(
    ("before", "after", "written", "found"),
    [
        ("a, closed=None", "a, **kwargs", "f(1, closed=2)", [("closed", None)]),
        ("a, lexer_name=None", "a, lexer=None, **kwargs", "f(1, lexer_name=2)", [("lexer_name", "lexer")]),
        ("a, low=0", "a, start=0, **kwargs", "f(1, low=2)", [("low", "start")]),
        # What was in **kwargs before, or got a parameter of its own, was never lost.
        ("a, **kwargs", "a, **kwargs", "f(1, x=2)", []),
        ("a, **kwargs", "a, x=0, **kwargs", "f(1, x=2)", []),
        ("a, closed=None, **kwargs", "a, **kwargs", "f(1, x=2)", []),
        # Without **kwargs it is an error and `bind` tells it.
        ("a, closed=None", "a", "f(1, closed=2)", []),
    ],
)
def test_keywords_that_kwargs_swallows(
    before: str, after: str, written: str, found: list[tuple[str, str | None]]
) -> None:
    problems = swallowed_keyword(signature(before), signature(after), call(written))
    assert [(problem.parameter, problem.suggestion) for problem in problems] == found
    assert {(problem.kind, problem.certainty, problem.raises) for problem in problems} <= {
        (Kind.UNKNOWN_ARGUMENT, Certainty.POSSIBLE, None)
    }
