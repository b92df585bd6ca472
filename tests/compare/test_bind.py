"""What `bind` objects to, by example: each row is a definition, a call, and the problems in the order reported."""

from __future__ import annotations

import pytest

from driftcheck.compare.bind import assignment, bind
from driftcheck.model import Kind
from tests.compare.notation import call, defined, signature

BINDING = [
    # Every kind of parameter, filled as it can be.
    ("a, b=0", "f(1)", []),
    ("a, b=0", "f(b=1, a=2)", []),
    ("a, /, b, *, c", "f(1, b=2, c=3)", []),
    ("*rest", "f(1, 2, 3)", []),
    ("**more", "f(a=1)", []),
    # One problem each.
    ("a", "f(1, x=2)", ["unknown-argument x"]),
    ("a, b", "f(1)", ["missing-argument b"]),
    ("a, *, k", "f(1)", ["missing-argument k"]),
    ("a", "f(1, 2)", ["too-many-positional-arguments None"]),
    ("a, *, k=0", "f(1, 2)", ["too-many-positional-arguments None"]),
    ("", "f(1, 2, 3)", ["too-many-positional-arguments None"]),
    ("a, b=0", "f(1, a=2)", ["parameter-already-assigned a"]),
    ("a, /", "f(a=1)", ["positional-only-argument a"]),
    # Every problem is reported, where Python stops at the first.
    ("a, b, *, k", "f(x=1)", ["unknown-argument x", "missing-argument a", "missing-argument b", "missing-argument k"]),
    ("a, b", "f(1, 2, 3, x=4)", ["unknown-argument x", "too-many-positional-arguments None"]),
    ("a, b", "f(1, x=2, y=3)", ["unknown-argument x", "unknown-argument y", "missing-argument b"]),
    ("a, b, /", "f(a=1, b=2)", ["positional-only-argument a", "positional-only-argument b"]),
    # A positional-only name is free for **more, which inspect.Signature.bind denies before Python 3.13.
    ("a=0, /, **more", "f(a=1)", []),
    ("a, /, **more", "f(1, a=2)", []),
    ("a, /, **more", "f(a=2)", ["missing-argument a"]),
    # *rest takes what is left over, and names no parameter twice.
    ("a, *rest", "f(1, 2, a=3)", ["parameter-already-assigned a"]),
    ("*rest, a", "f(1, a=2)", []),
    # Literals are spread out, and may repeat a keyword where plain syntax can't.
    ("a, b", "f(*(1, 2))", []),
    ("a, b", "f(*(1, 2, 3))", ["too-many-positional-arguments None"]),
    ("a", "f(**{'a': 1, 'x': 2})", ["unknown-argument x"]),
    ("a", "f(a=1, **{'a': 2})", ["parameter-already-assigned a"]),
    ("a", "f(a=1, **dict(a=2))", ["parameter-already-assigned a"]),
    ("**more", "f(x=1, **{'x': 2})", ["parameter-already-assigned x"]),
]

OPEN = [
    # An unpacked value may hold what is missing, and no more than that is assumed.
    ("a, b", "f(*xs)", []),
    ("a, b", "f(**kw)", []),
    ("a, *, k", "f(1, **kw)", []),
    ("a, b, c", "f(1, *xs, c=3)", []),
    # But a named keyword stays unknown, and *xs fills no keyword-only parameter, **kw no positional-only one.
    ("a", "f(*xs, x=1)", ["unknown-argument x"]),
    ("a", "f(x=1, **kw)", ["unknown-argument x"]),
    ("a, *, k", "f(*xs)", ["missing-argument k"]),
    ("a, /", "f(**kw)", ["missing-argument a"]),
    ("a, /", "f(a=1, **kw)", ["positional-only-argument a"]),
    # What is there already is too much, however little is unpacked.
    ("a", "f(1, 2, *xs)", ["too-many-positional-arguments None"]),
    ("a", "f(*xs, 1, 2)", ["too-many-positional-arguments None"]),
    ("a, b", "f(1, *xs, a=2)", ["parameter-already-assigned a"]),
    ("a, b=0", "f(1, a=2, **kw)", ["parameter-already-assigned a"]),
    # One value in xs would take a, none would leave b without: no xs makes this bind. Either end tells the truth; the
    # one reported has fewer problems, or is that of an xs that holds something.
    ("a, b", "f(*xs, a=1)", ["parameter-already-assigned a"]),
    ("a, b, c", "f(*xs, a=1, b=2)", ["missing-argument c"]),
    ("a, b=0", "f(*xs, a=1)", []),
    ("a, b", "f(*xs, a=1, **kw)", []),
    # What a literal says is known even where the rest of it isn't.
    ("a", "f(**{'x': 1, **kw})", ["unknown-argument x"]),
    ("a, b", "f(**{'a': 1, name: 2})", []),
]


@pytest.mark.parametrize(("definition", "written", "expected"), [*BINDING, *OPEN])
def test_problems(definition: str, written: str, expected: list[str]) -> None:
    problems = bind(signature(definition), call(written))
    assert [f"{problem.kind.value} {problem.parameter}" for problem in problems] == expected


@pytest.mark.parametrize(("definition", "written", "expected"), BINDING)
def test_python_agrees(definition: str, written: str, expected: list[str]) -> None:
    namespace = defined(definition)
    if expected:
        with pytest.raises(TypeError):
            eval(written, namespace)
    else:
        assert set(eval(written, namespace)) == {parameter.name for parameter in signature(definition).parameters}


@pytest.mark.parametrize(
    ("definition", "written", "raises"),
    [
        ("a", "f(1, x=2)", "f() got an unexpected keyword argument 'x'"),
        ("a", "f()", "f() missing 1 required positional argument: 'a'"),
        ("a, b", "f()", "f() missing 2 required positional arguments: 'a' and 'b'"),
        ("*, a, b, c", "f()", "f() missing 3 required keyword-only arguments: 'a', 'b', and 'c'"),
        ("a", "f(1, 2)", "f() takes 1 positional argument but 2 were given"),
        ("", "f(1)", "f() takes 0 positional arguments but 1 was given"),
        ("a, b=0", "f(1, 2, 3)", "f() takes from 1 to 2 positional arguments but 3 were given"),
        (
            "a, *, k",
            "f(1, 2, k=3)",
            "f() takes 1 positional argument but 2 positional arguments (and 1 keyword-only argument) were given",
        ),
        ("a", "f(1, a=2)", "f() got multiple values for argument 'a'"),
        ("a, b, /", "f(b=1, a=2)", "f() got some positional-only arguments passed as keyword arguments: 'a, b'"),
    ],
)
def test_the_exception_is_told_as_python_tells_it(definition: str, written: str, raises: str) -> None:
    namespace = defined(definition)
    with pytest.raises(TypeError) as raised:
        eval(written, namespace)
    assert str(raised.value).startswith(raises)
    assert {problem.raises for problem in bind(signature(definition), call(written))} == {f"TypeError: {raises}"}


def test_a_receiver_is_counted_as_python_counts_it() -> None:
    class Scheduler:
        def add(self, request: object) -> None: ...

    with pytest.raises(TypeError) as raised:
        eval("scheduler.add(1, 2)", {"scheduler": Scheduler()})
    (problem,) = bind(signature("request"), call("f(1, 2)"), callee="Scheduler.add", has_receiver=True)
    assert problem.raises == "TypeError: Scheduler.add() takes 2 positional arguments but 3 were given"
    assert str(raised.value).endswith(problem.raises.removeprefix("TypeError: "))


def test_a_count_that_is_not_known_is_not_told() -> None:
    (problem,) = bind(signature("a"), call("f(1, 2, *xs)"))
    assert problem.raises == "TypeError"
    assert problem.message == "at least 2 positional arguments given where 1 can be"


def test_the_argument_at_fault_is_named() -> None:
    problems = bind(signature("a, b=0"), call("f(1, 2, 33, x=4)"))
    assert [(problem.kind, problem.argument and problem.argument.value) for problem in problems] == [
        (Kind.UNKNOWN_ARGUMENT, "4"),
        (Kind.TOO_MANY_POSITIONAL_ARGUMENTS, "33"),
    ]


@pytest.mark.parametrize(
    ("definition", "written", "suggestions"),
    [
        ("color=None", "f(colour=1)", ["color"]),
        ("max_degree=None", "f(degree=1)", ["max_degree"]),
        # The same words and more of them, though the spelling is far off.
        ("labels=None", "f(masked_lm_labels=1)", ["labels"]),
        # What the call fills already was not meant.
        ("color=None", "f(1, colour=1)", [None]),
        ("color=None", "f(color=1, colour=1)", [None]),
        # No two arguments were meant for one parameter.
        ("color=None", "f(colour=1, colours=2)", ["color", None]),
        ("structured_outputs=None", "f(guided_decoding=1)", [None]),
    ],
)
def test_a_near_name_is_suggested(definition: str, written: str, suggestions: list[str | None]) -> None:
    assert [problem.suggestion for problem in bind(signature(definition), call(written))] == suggestions


def test_a_very_long_name_is_not_compared() -> None:
    (problem,) = bind(signature("color=None"), call(f"f({'c' * 100_000}=1)"))
    assert problem.suggestion is None


@pytest.mark.parametrize(
    ("definition", "written", "landings"),
    [
        ("a, b, *rest, k, **more", "f(1, 2, 3, 4, k=5, x=6)", ["a", "b", "rest 0", "rest 1", "k", "more"]),
        ("a, b", "f(b=1, a=2)", ["b", "a"]),
        ("a, /, **more", "f(1, a=2)", ["a", "more"]),
        # Past an unpacked value nobody knows the place, unless only *rest is left.
        ("a, b, c", "f(1, *xs, 2, c=3)", ["a", None, None, "c"]),
        ("a, *rest", "f(1, *xs, 2)", ["a", None, "rest None"]),
        ("a", "f(1, **kw)", ["a", None]),
        # What does not bind has no place.
        ("a", "f(1, 2, x=3, a=4)", ["a", None, None, None]),
    ],
)
def test_assignment(definition: str, written: str, landings: list[str | None]) -> None:
    found = [
        landing.parameter
        and (
            f"{landing.parameter.name} {landing.index}" if landing.parameter.name == "rest" else landing.parameter.name
        )
        for landing in assignment(signature(definition), call(written))
    ]
    assert found == landings
