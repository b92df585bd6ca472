"""When an explicit None stopped meaning "not given", by example."""

from __future__ import annotations

import pytest

from driftcheck.compare.annotations import admits_none, types_differ
from driftcheck.compare.sentinel import is_sentinel, sentinel_none
from driftcheck.model import Kind, Parameter, Signature
from tests.compare.notation import call, signature


@pytest.mark.parametrize(
    ("before", "after", "written", "expected"),
    [
        ("a, names=None", "a, names=lib.no_default", "f(1, names=None)", ["names likely"]),
        ("a, names=None", "a, names=_UNSET", "f(1, None)", ["names likely"]),
        ("a, names=None", "a, names=...", "f(1, None)", ["names likely"]),
        ("a, x=None, y=None", "a, x=_UNSET, y=_UNSET", "f(1, None, y=None)", ["x likely", "y likely"]),
        # A parameter that was renamed in place is still the same.
        ("a, names=None", "a, columns=_UNSET", "f(1, None)", ["columns likely"]),
        # The call need not bind otherwise: its other problems are other findings.
        ("a, names=None", "a, b, names=_UNSET", "f(1, names=None)", ["names likely"]),
        # The new annotation says that None is welcome, or that it isn't.
        ("a, x: int | None = None", "a, x: int | None | Unset = UNSET", "f(1, None)", ["x possible"]),
        ("a, x: bool | None = None", "a, x: bool = True", "f(1, None)", ["x possible"]),
        ("a, x: bool | None = None", "a, x: bool | None = True", "f(1, None)", []),
        ("a, x: Mode | None = None", "a, x: Mode = Mode.FAST", "f(1, None)", []),
        # A plain value as default says nothing of None.
        ("a, x=None", "a, x=100", "f(1, None)", []),
        # Nothing changed, or None is not what is passed, or was not the default.
        ("a, x=None", "a, x=None, y=0", "f(1, None)", []),
        ("a, x=None", "a, x=_UNSET", "f(1, x=2)", []),
        ("a, x=None", "a, x=_UNSET", "f(1)", []),
        ("a, x=0", "a, x=_UNSET", "f(1, None)", []),
        ("a, x=_UNSET", "a, x=NOT_GIVEN", "f(1, None)", []),
        ("a, x", "a, x=_UNSET", "f(1, None)", []),
        # It lands on another parameter: that is a shift.
        ("a, x=None", "a, new=_UNSET, x=None", "f(1, None)", []),
        # What is unpacked is not known.
        ("a, x=None", "a, x=_UNSET", "f(1, *None)", []),
        ("a, x=None", "a, x=_UNSET", "f(1, **{'x': None})", ["x likely"]),
    ],
)
def test_sentinel_none(before: str, after: str, written: str, expected: list[str]) -> None:
    problems = sentinel_none(signature(before), signature(after), call(written))
    assert [f"{problem.parameter} {problem.certainty.value}" for problem in problems] == expected
    assert {(problem.kind, problem.raises) for problem in problems} <= {(Kind.SENTINEL_NONE, None)}


def test_the_message_names_the_new_default() -> None:
    (problem,) = sentinel_none(signature("names=None"), signature("names=lib.no_default"), call("f(None)"))
    assert problem.message == "None for 'names' was its default, which is now lib.no_default"


def test_a_default_of_any_length_is_read() -> None:
    after = Signature((Parameter("x", default="<" + "unset " * 100_000 + ">"),))
    assert sentinel_none(signature("x=None"), after, call("f(None)")) == ()


@pytest.mark.parametrize(
    "default",
    [
        "...",
        "object()",
        "<object object at 0x7f04d6d95860>",
        "<no_default>",
        "lib.no_default",
        "_UNSET",
        "NOT_GIVEN",
        "NotGiven()",
        "np._NoValue",
        "<no value>",
        "dataclasses.MISSING",
        "inspect.Parameter.empty",
        "Unset.TOKEN",
        "<Missing.VALUE: 1>",
        "<package._config.UnsetType object at 0x7f>",
        "<deprecated parameter>",
        "USE_CLIENT_DEFAULT",
        "PydanticUndefined",
    ],
)
def test_sentinels(default: str) -> None:
    assert is_sentinel(default)


@pytest.mark.parametrize(
    "default",
    [
        "0",
        "'missing'",
        "True",
        "()",
        "[]",
        "EMPTY_TUPLE",
        "Mode.FAST",
        "sunset.red",
        "Config(unset=1)",
        "default_factory()",
    ],
)
def test_plain_defaults(default: str) -> None:
    assert not is_sentinel(default)


@pytest.mark.parametrize(
    ("annotation", "answer"),
    [
        ("None", True),
        ("int | None", True),
        ("Optional[Mode]", True),
        ("typing.Union[int, None]", True),
        ("'int | None'", True),
        ("Annotated[int | None, Field()]", True),
        ("Literal['a', None]", True),
        ("Any", True),
        ("int", False),
        ("int | str", False),
        ("list[int | None]", False),
        ("Union[int, list[str]]", False),
        ("Literal['a']", False),
        ("Mode", None),
        ("int | Mode", None),
        ("not an annotation", None),
        ("|".join(["int"] * 490), None),
        (None, None),
    ],
)
def test_admits_none(annotation: str | None, answer: bool | None) -> None:
    assert admits_none(annotation) is answer


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        ("ModelRequest", "SchedulerOutput", True),
        ("torch.Tensor", "torch.dtype", True),
        ("str", "Path", True),
        ("torch.Tensor", "Tensor | None", False),
        ("'Request'", "list[Request]", False),
        ("int", "float", False),
        ("Literal['a', 'b']", "str", False),
        ("Literal['a', 'b']", "int", True),
        ("Any", "Request", False),
        ("T", "Request", False),
        (None, "Request", False),
        ("Request", "not an annotation", False),
    ],
)
def test_types_differ(one: str | None, other: str | None, answer: bool) -> None:
    assert types_differ(one, other) is answer
    assert types_differ(other, one) is answer
