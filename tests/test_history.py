"""What `driftcheck history` says: releases held in memory for every kind of change, and real ones."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.history import ReadableRelease, checked_symbol, history_over
from driftcheck.report.history_json import render_history_json
from driftcheck.report.history_markdown import render_history_markdown
from driftcheck.report.history_text import parameter_sentence, render_history, sentences, summary_sentences
from driftcheck.symbol_history import SymbolHistory
from driftcheck.tree import MemoryTree

Sources = Mapping[str, str]


def releases(target: str, *sources: Sources | str | None) -> list[ReadableRelease]:
    """Releases 1, 2, … of a target; one source stands for its only module, None for a release that can't be had."""

    def had(number: int, files: Sources | str | None) -> ReadableRelease:
        version = str(number)

        def tree() -> MemoryTree:
            if files is None:
                raise DriftcheckError(f"{target} {version} has no wheel")
            held = {f"{target}/__init__.py": files} if isinstance(files, str) else files
            dedented = {path: textwrap.dedent(text) for path, text in held.items()}
            return MemoryTree({f"{target}/__init__.py": "", **dedented}, target, version)

        return ReadableRelease(version, tree)

    return [had(number, files) for number, files in enumerate(sources, 1)]


def told(symbol: str, *sources: Sources | str | None, target: str = "kit") -> SymbolHistory:
    return history_over(symbol, target, releases(target, *sources))


def said(history: SymbolHistory) -> dict[str, list[str]]:
    """What is said of each release after the first one."""
    first = history.releases[0]
    return {each.release: list(sentences(each, history)) for each in history.changes if each.release != first}


MODELS = {
    "kit/__init__.py": "from kit.core.engine import Engine\nLIMIT = 1\n",
    "kit/core/__init__.py": "",
    "kit/core/engine.py": "class Engine:\n    def run(self): ...\n",
    "kit/core/first.py": "class Loop:\n    def turn(self): ...\n\ndef begin(): ...\n\nSIZE = 3\n",
    "kit/core/second.py": "from kit.core.first import begin\n"
    "class Loop:\n    def turn(self): ...\n    def halt(self): ...\n",
}


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("Engine", "kit.Engine"),
        ("Engine.run", "kit.Engine.run"),
        ("core.first.begin", "kit.core.first.begin"),
        ("begin", "kit.core.first.begin"),
        ("SIZE", "kit.core.first.SIZE"),
        ("halt", "kit.core.second.Loop.halt"),
        ("Loop.halt", "kit.core.second.Loop.halt"),
    ],
)
def test_a_name_alone_is_looked_up(name: str, symbol: str) -> None:
    assert told(name, MODELS, {**MODELS, "kit/core/first.py": ""} if "Loop" in name else MODELS).symbol == symbol


def test_a_name_alone_is_looked_up_in_the_last_release_that_has_it() -> None:
    found = told("Loop.turn", MODELS, {**MODELS, "kit/core/first.py": ""}, {"kit/__init__.py": ""})
    assert found.symbol == "kit.core.second.Loop.turn"
    assert said(found)["3"] == ["gone"]


def test_a_name_that_several_things_have_is_none() -> None:
    names = "kit.core.first.Loop, kit.core.second.Loop"
    with pytest.raises(DriftcheckError, match=f"Loop is 2 things in kit 2: {names}; name one"):
        told("Loop", MODELS, MODELS)


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("kit.old", "kit.old is not in any release from 3 to 4: kit 2 is the last that has it"),
        ("old", "kit.old is not in any release from 3 to 4: kit 2 is the last that has it"),
        ("kit.new", "kit.new is not in any release from 3 to 4: kit 5 is the first that has it"),
        ("kit.oldd", "kit.oldd is not in any release of kit from 3 to 4"),
    ],
)
def test_what_only_other_releases_have_is_told_so(symbol: str, message: str) -> None:
    every = releases("kit", "def old(): ...", "def old(): ...", "", "", "def new(): ...", "def new(): ...")
    with pytest.raises(DriftcheckError) as raised:
        history_over(symbol, "kit", every[2:4], others=lambda: [*every[:2], *every[4:]])
    assert str(raised.value) == message


STRUCT = "import {0}\n\nclass Params({0}.{1}):\n    size: int = 1\n"


@pytest.mark.parametrize(("library", "base"), [("msgspec", "Struct"), ("pydantic", "BaseModel")])
def test_a_field_that_is_no_longer_declared_is_gone(library: str, base: str) -> None:
    before = STRUCT.format(library, base)
    found = told("kit.Params.name", before, f"{before}    name: str = 'a'\n", before)
    assert said(found) == {"2": ["added: field name: str = 'a' (kit/__init__.py:5)"], "3": ["gone"]}


def test_what_a_base_of_another_library_may_have_is_left_open() -> None:
    for name, body in (("name", "    def __getattr__(self, name): ...\n"), ("_name", ""), ("model_dump", "")):
        before = STRUCT.format("pydantic", "BaseModel") + body
        assert told(f"kit.Params.{name}", before, f"{before}    {name}: int = 1\n", before).latest.status == "unknown"
    before = STRUCT.format("elsewhere", "Model")
    assert told("kit.Params.name", before, f"{before}    name: int = 1\n", before).latest.status == "unknown"


DEPRECATED = "from typing_extensions import deprecated\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # parameters
        ("def f(a): ...", "def f(a, b): ...", ["takes a new parameter b, which calls have to give"]),
        ("def f(a): ...", "def f(a, b=1): ...", ["takes a new parameter b=1"]),
        ("def f(a): ...", "def f(a, *, b: int = 1): ...", ["takes a new parameter b: int = 1"]),
        (
            "def f(a, c): ...",
            "def f(a, b, c): ...",
            ["takes a new parameter b, in front of c, which calls have to give"],
        ),
        (
            "def f(a): ...",
            "def f(a, *rest, **more): ...",
            ["takes a new parameter *rest", "takes a new parameter **more"],
        ),
        ("def f(a, **more): ...", "def f(a): ...", ["no longer takes **more"]),
        ("def f(a, b=1): ...", "def f(a): ...", ["no longer takes b=1"]),
        ("def f(input_ids): ...", "def f(inputs_ids): ...", ["input_ids is called inputs_ids"]),
        (
            "def f(model_config: A): ...",
            "def f(vllm_config: B): ...",
            [
                "no longer takes model_config: A",
                "takes a new parameter vllm_config: B, which calls have to give",
            ],
        ),
        ("def f(a=1): ...", "def f(a): ...", ["a has to be given now; its default was 1"]),
        ("def f(a): ...", "def f(a=1): ...", ["a may be left out now; its default is 1"]),
        ("def f(a=1): ...", "def f(a=2): ...", ["the default of a is 2 instead of 1"]),
        ("N = 1\ndef f(a=N): ...", "N = 2\ndef f(a=N): ...", ["the default of a is 2 instead of 1"]),
        ("def f(a=1): ...", "N = 1\ndef f(a=N): ...", []),
        ("def f(a=1): ...", "def f(*, a=1): ...", ["a is keyword-only instead of positional-or-keyword"]),
        ("def f(a): ...", "def f(a, /): ...", ["a is positional-only instead of positional-or-keyword"]),
        ("def f(a: int): ...", "def f(a: str): ...", ["a is declared as str instead of int"]),
        ("def f(a): ...", "def f(a: str): ...", ["a is declared as str"]),
        ("def f(a: int): ...", "def f(a): ...", ["a is no longer declared, was int"]),
        ("def f(*a: int): ...", "def f(*a: str): ...", ["*a is declared as str instead of int"]),
        ("def f(a: Optional[List[int]]): ...", "def f(a: 'None | list[int]'): ...", []),
        (
            "def f(a: Literal['x']): ...",
            "def f(a: Literal['y']): ...",
            ["a is declared as Literal['y'] instead of Literal['x']"],
        ),
        (
            "def f(a, b): ...",
            "def f(b, a): ...",
            ["b stands elsewhere among the positional parameters, which are now b, a"],
        ),
        # results
        ("def f() -> int: ...", "def f() -> str: ...", ["the result is declared as str instead of int"]),
        ("def f(): ...", "def f() -> str: ...", ["the result is declared as str"]),
        ("def f() -> 'Union[int, str]': ...", "def f() -> str | int: ...", []),
        # what it is
        ("def f(): ...", "async def f(): ...", ["is now an async function, was a function"]),
        ("def f(a): ...", "class f:\n    def __init__(self, a): ...", ["is now a class, was a function"]),
        ("f = 1", "f = 2", ["is = 2 instead of = 1"]),
        ("f: int = 1", "f: str = 'x'", ["is str = 'x' instead of int = 1"]),
        (
            "class A: ...\nclass f: ...",
            "class A: ...\nclass f(A): ...",
            ["derives from A instead of nothing"],
        ),
        ("class A: ...\nclass f(A): ...", "class f: ...", ["derives from nothing instead of A"]),
        (
            "def f(): ...",
            "from torch import f",
            [
                "defined in torch now, no longer in kit; this path still leads to it",
                "is now a name of another library, was a function",
            ],
        ),
        ("from torch import f", "from torch import f", []),
        # its end
        ("def f(): ...", f"{DEPRECATED}@deprecated('gone in 0.3')\ndef f(): ...", ["deprecated: gone in 0.3"]),
        ("class f: ...", f"{DEPRECATED}@deprecated('use g')\nclass f: ...", ["deprecated: use g"]),
        (f"{DEPRECATED}@deprecated('x')\ndef f(): ...", "def f(): ...", ["no longer deprecated"]),
        (
            f"{DEPRECATED}@deprecated('gone in v0.3')\ndef f(): ...",
            f"{DEPRECATED}@deprecated('gone in v0.4')\ndef f(): ...",
            ["its end is announced for 0.4 instead of 0.3"],
        ),
        (
            f"{DEPRECATED}@deprecated('gone in v0.3')\ndef f(): ...",
            f"{DEPRECATED}@deprecated('gone soon')\ndef f(): ...",
            ["its end is no longer announced for 0.3"],
        ),
        ("def f(): ...", "def g(): ...", ["gone"]),
        (
            "def f(): ...",
            "import sys\nsys.modules[__name__] = make()",
            ["can't be told: module that fills its own namespace, through globals() or the like"],
        ),
        ("def f(a: int = 1) -> str: ...", "# another line\ndef f(a: int = 1) -> str: ...", []),
    ],
)
def test_a_change(before: str, after: str, expected: list[str]) -> None:
    assert said(told("kit.f", before, after)) == ({"2": expected} if expected else {})


def test_from_beginning_to_end() -> None:
    history = told("kit.f", "x = 1", "def f(a): ...", "def f(a): ...", "def f(): ...", "x = 1", "def f(b): ...")
    assert said(history) == {
        "2": ["added: function f(a) (kit/__init__.py:1)"],
        "4": ["no longer takes a"],
        "5": ["gone"],
        "6": ["there again: function f(b) (kit/__init__.py:1)"],
    }
    assert list(summary_sentences(history)) == ["There from 2 to 4 and since 6."]
    assert [(life.name, parameter_sentence(history, life.name)) for life in history.parameters] == [
        ("a", "from 2 to 3 only, required"),
        ("b", "since 6, required"),
    ]


def test_in_one_release_only() -> None:
    history = told("kit.f", "", "def f(): ...", "")
    assert list(summary_sentences(history)) == ["There in 2 only."]


def test_required_for_a_time() -> None:
    history = told("kit.f", "def f(a=1): ...", "def f(a): ...", "def f(a): ...", "def f(a=1): ...")
    assert parameter_sentence(history, "a") == "in all of them, 1 to 4; required from 2 to 3 only"


# Moves


def test_a_move_is_followed_ahead() -> None:
    history = told(
        "kit.old.f",
        {"kit/old.py": "def f(a): ..."},
        {"kit/new.py": "def f(a): ...", "kit/old.py": "from kit.new import f"},
        {"kit/new.py": "def f(a, b): ..."},
        {"kit/newest.py": "def f(a, b): ..."},
        {},
    )
    assert said(history) == {
        "2": ["defined in kit.new now, no longer in kit.old; this path still leads to it"],
        "3": [
            "moved to kit.new.f; this path no longer leads to it",
            "takes a new parameter b, which calls have to give",
        ],
        "4": ["moved from kit.new.f to kit.newest.f"],
        "5": ["gone from kit.newest.f, too"],
    }
    assert list(summary_sentences(history)) == ["There until 2."]


def test_a_move_is_followed_back() -> None:
    sources = [
        {"kit/a.py": "class A:\n    def run(self): ..."},
        {"kit/a.py": "class A:\n    def run(self, x): ..."},
        {"kit/b.py": "class A:\n    def run(self, x): ..."},
        {"kit/c.py": "class A:\n    def run(self, x): ..."},
    ]
    history = told("kit.c.A.run", {}, *sources)
    assert said(history) == {
        "2": ["added: method run(), as kit.a.A.run (kit/a.py:2)"],
        "3": ["takes a new parameter x, which calls have to give"],
        "4": ["moved from kit.a.A.run to kit.b.A.run"],
        "5": ["moved here from kit.b.A.run"],
    }
    assert list(summary_sentences(history)) == ["There since 5."]


def test_a_module_moves() -> None:
    text = "def one(): ...\ndef two(): ...\n"
    history = told("kit.old.tools", {"kit/old/tools.py": text}, {"kit/new/tools.py": text})
    assert said(history) == {"2": ["moved to kit.new.tools; this path no longer leads to it"]}
    assert history.place == "kit.new.tools"


def test_no_other_thing_of_the_same_name_is_taken_for_it() -> None:
    both = {"kit/old.py": "def f(a): ...", "kit/other.py": "def f(): ..."}
    assert said(told("kit.old.f", both, {"kit/other.py": "def f(): ..."})) == {"2": ["gone"]}
    two = {"kit/one.py": "def f(a): ...", "kit/two.py": "def f(a): ..."}
    assert said(told("kit.old.f", {"kit/old.py": "def f(a): ..."}, two)) == {"2": ["gone"]}


def test_a_deprecated_path_that_still_answers() -> None:
    shim = """
        import warnings
        def __getattr__(name):
            if name == "f":
                from kit.new import f
                warnings.warn("kit.old.f has moved; the old name will be removed in v0.9", DeprecationWarning)
                return f
            raise AttributeError(name)
    """
    computed = """
        import warnings
        MOVED = {"f": "new"}
        def __getattr__(name):
            if name in MOVED:
                warnings.warn("take kit.new.f", DeprecationWarning)
                return getattr(__import__("kit." + MOVED[name]), name)
            raise AttributeError(name)
    """
    first, new = {"kit/old.py": "def f(a): ..."}, "def f(a): ..."
    moved = "defined in kit.new now, no longer in kit.old; this path still leads to it"
    for text, message in (
        (shim, "kit.old.f has moved; the old name will be removed in v0.9"),
        (computed, "take kit.new.f"),
    ):
        history = told("kit.old.f", first, {"kit/new.py": new, "kit/old.py": text}, {"kit/new.py": new})
        assert said(history) == {
            "2": [moved, f"deprecated: {message}"],
            "3": ["moved to kit.new.f; this path no longer leads to it"],
        }
        assert list(summary_sentences(history)) == ["There until 2. 3 has it as kit.new.f."]


def test_deprecated_to_the_end() -> None:
    history = told("kit.f", f"{DEPRECATED}@deprecated('use g')\ndef f(): ...")
    assert [list(sentences(each, history)) for each in history.changes] == [
        ["there already: function f() (kit/__init__.py:3)", "deprecated: use g"]
    ]
    assert list(summary_sentences(history)) == ["There in 1.", "It is deprecated in 1."]


def test_what_moves_twice_is_followed_to_both_ends() -> None:
    text = "def f(a): ..."
    sources = [{f"kit/{name}.py": text} for name in ("one", "two", "three")]
    expected = {"one": ("until 1", 3), "two": ("in 2 only", 3), "three": ("since 3", 3)}
    for name, (span, count) in expected.items():
        history = told(f"kit.{name}.f", *sources)
        elsewhere = "" if name == "three" else " 3 has it as kit.three.f."
        assert list(summary_sentences(history)) == [f"There {span}.{elsewhere}"]
        assert len(history.changes) == count


def test_sources_that_are_nested_too_deeply_are_told() -> None:
    history = told("kit.f", "def f(): ...", f"def f(a=x{'.x' * 1000}): ...", "def f(): ...")
    assert (said(history), history.releases) == ({}, ("1", "3"))
    assert "2 can't be read: its sources are nested too deeply" in list(summary_sentences(history))
    unparsed = told("kit.f", "def f(): ...", f"def f(): ...\ny = {'-' * 50_000}1")
    assert said(unparsed) == {"2": ["can't be told: module that could not be read"]}


# Members, fields, constructors, environment variables


def test_methods_properties_and_constructors() -> None:
    one = "class A:\n    def __init__(self, a): ...\n    def run(self, x): ...\n    def size(self): ..."
    two = (
        "class B:\n    def run(self, x=1): ...\n"
        "class A(B):\n    def __init__(self, a, b): ...\n    @property\n    def size(self) -> int: ..."
    )
    assert said(told("kit.A.run", one, two)) == {
        "2": [
            "defined in kit.B now, no longer in kit.A; this path still leads to it",
            "x may be left out now; its default is 1",
        ]
    }
    assert said(told("kit.A.__init__", one, two)) == {"2": ["takes a new parameter b, which calls have to give"]}
    assert said(told("kit.A.size", one, two)) == {"2": ["is now a property, was a method"]}
    assert said(told("kit.A", one, two)) == {
        "2": ["derives from B instead of nothing", "takes a new parameter b, which calls have to give"]
    }


def test_a_module_is_reached_behind_a_name_that_hides_it() -> None:
    def sources(default: int) -> Sources:
        return {
            "kit/kernels/__init__.py": "from kit.kernels.Kernel import Kernel\n",
            "kit/kernels/Kernel.py": f"class Kernel:\n    def run(self, x={default}): ...\n",
            "kit/platforms/__init__.py": "def __getattr__(name):\n    return make(name)\n",
            "kit/platforms/interface.py": f"def name(x={default}): ...\n",
        }

    for symbol in ("kit.kernels.Kernel.Kernel.run", "kit.kernels.Kernel.run", "kit.platforms.interface.name"):
        assert said(told(symbol, sources(1), sources(2))) == {"2": ["the default of x is 2 instead of 1"]}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a: int = 1", "a: int = 2", ["the default is 2 instead of 1"]),
        ("a: int = 1", "a: int", ["has to be given now; the default was 1"]),
        ("a: int", "a: int = 1", ["may be left out now; the default is 1"]),
        ("a: int = 1", "a: str = 1", ["is declared as str instead of int"]),
        ("N: ClassVar = 1\n    a: int = N", "N: ClassVar = 3\n    a: int = N", ["the default is 3 instead of 1"]),
        ("a: int = 1", "b: int = 1", ["gone"]),
        ("b: int = 1", "a: int = 1", ["added: field a: int = 1 (kit/__init__.py:5)"]),
    ],
)
def test_a_field(before: str, after: str, expected: list[str]) -> None:
    head = "from dataclasses import dataclass\nfrom typing import ClassVar\n@dataclass\nclass Options:\n    "
    assert said(told("kit.Options.a", head + before, head + after)) == {"2": expected}
    constructor = said(told("kit.Options.__init__", head + before, head + after))
    assert len(constructor["2"]) == (2 if expected[0].startswith(("gone", "added")) else 1)


ENVIRONMENT = """
    import os
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        {declared}
    environment_variables = {{{table}}}
    def __getattr__(name):
        if name in environment_variables:
            return environment_variables[name]()
        raise AttributeError(name)
"""


def variables(declared: str, table: str) -> Sources:
    return {"vllm/envs.py": ENVIRONMENT.format(declared=declared, table=table)}


def test_environment_variables() -> None:
    none = variables("VLLM_OTHER: int = 1", '"VLLM_OTHER": lambda: int(os.environ["VLLM_OTHER"])')
    sources = [
        none,
        variables("VLLM_X: bool = False", """"VLLM_X": lambda: os.getenv("VLLM_X", "0") == "1" """),
        variables("VLLM_X: bool = True", """"VLLM_X": lambda: os.getenv("VLLM_X", "1") == "1" """),
        variables("VLLM_X: bool = True", """"VLLM_X": lambda: os.getenv("VLLM_X", "1") != "0" """),
        {**none, "vllm/other.py": "import os\nX = os.getenv('VLLM_X')\n"},
        none,
    ]
    for symbol in ("VLLM_X", "vllm.envs.VLLM_X"):
        history = told(symbol, *sources, target="vllm")
        assert said(history) == {
            "2": ["added: environment variable VLLM_X: bool = False (vllm/envs.py:6)"],
            "3": ["the default is True instead of False"],
            "4": ["is read as os.getenv('VLLM_X', '1') != '0' instead of os.getenv('VLLM_X', '1') == '1'"],
            "5": ["no longer listed in vllm.envs, only read (vllm/other.py:2)"],
            "6": ["gone"],
        }
        assert list(summary_sentences(history)) == ["There from 2 to 5 only."]


# What can't be read, and what is nowhere


def test_releases_that_cannot_be_read() -> None:
    history = told("kit.f", "def f(a): ...", None, "def f(a): ...", None, None, "def f(): ...", "def f(:")
    assert history.releases == ("1", "3", "6", "7")
    assert said(history) == {
        "6": ["no longer takes a", "(or before that: of 4 and 5 nothing is known)"],
        "7": ["can't be told: module that could not be read"],
    }
    assert list(summary_sentences(history)) == [
        "Whether 7 has it can't be told: module that could not be read.",
        "2 can't be read: kit 2 has no wheel",
        "4 can't be read: kit 4 has no wheel",
        "5 can't be read: kit 5 has no wheel",
    ]


def test_a_release_of_which_nothing_can_be_told_is_skipped() -> None:
    history = told("kit.f", "def f(a): ...", "def f(:", "def f(a, b): ...")
    assert said(history) == {
        "2": ["can't be told: module that could not be read"],
        "3": ["takes a new parameter b, which calls have to give", "(or before that: of 2 nothing is known)"],
    }


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("kit.Enginee", "kit.Enginee is not in any release of kit from 1 to 2: did you mean kit.Engine (in 2)?"),
        ("kit.cor.x", "kit.cor.x is not in any release of kit from 1 to 2: did you mean kit.core (in 2)?"),
        (
            "kit.Engine.runn",
            "kit.Engine.runn is not in any release of kit from 1 to 2: did you mean kit.Engine.run (in 2)?",
        ),
        ("kit.zzz", "kit.zzz is not in any release of kit from 1 to 2"),
        ("other.x", "other.x is not part of kit: a symbol begins with kit."),
    ],
)
def test_a_wrong_symbol(symbol: str, message: str) -> None:
    sources = {"kit/__init__.py": "class Engine:\n    def run(self): ...", "kit/core.py": "x = 1"}
    with pytest.raises(DriftcheckError) as raised:
        told(symbol, sources, {**sources, "kit/core.py": "y = 1"})
    assert str(raised.value) == message


def test_nothing_can_be_read() -> None:
    with pytest.raises(DriftcheckError, match=r"^no release of kit can be read: kit 1 has no wheel$"):
        told("kit.f", None, None)


@pytest.mark.parametrize("symbol", ["", ".", "kit..f", "kit.f()", "kit-f", "a" * 1000, "kit.\x1b[31m"])
def test_no_symbol_at_all(symbol: str) -> None:
    with pytest.raises(DriftcheckError, match=r"is no dotted path; write vllm\.LLM\.generate or VLLM_PLUGINS"):
        checked_symbol(symbol)


def test_a_colon_is_a_dot() -> None:
    assert checked_symbol(" kit.core:Engine ") == "kit.core.Engine"


# Forms


def example() -> SymbolHistory:
    return told("kit.f", "def f(a, b=1): ...", "def f(a: str | None, c): ...", None, "x = 1")


def test_text() -> None:
    assert render_history(example()) == textwrap.dedent(
        """\
        kit.f
        in 3 releases of kit, 1 to 4

        1  there already: function f(a, b=1) (kit/__init__.py:1)
        2  a is declared as str | None
           no longer takes b=1
           takes a new parameter c, which calls have to give
        4  gone
           (or before that: of 3 nothing is known)

        parameters that came, went, or were required for a time:
          b  until 1
          c  in 2 only, required

        There until 2.
        3 can't be read: kit 3 has no wheel
        """
    )
    assert max(map(len, render_history(example(), width=40).splitlines())) <= 56


def test_markdown() -> None:
    text = render_history_markdown(example())
    assert text.startswith("## `kit.f`\n\nIn 3 releases of kit, 1 to 4.\n\n| release | what changed |\n| --- | --- |\n")
    assert "| 2 | a is declared as str \\| None<br>no longer takes b=1<br>" in text
    assert "| c | in 2 only, required |\n" in text


def test_json() -> None:
    text = render_history_json(example())
    document = json.loads(text)
    assert text.isascii()
    assert document["releases"] == ["1", "2", "4"]
    assert [change["kind"] for change in document["changes"][1]["changes"]] == [
        "annotation-changed",
        "parameter-removed",
        "parameter-added",
    ]
    assert document["changes"][2] == {
        "release": "4",
        "unread_before": ["3"],
        "standing": dict.fromkeys(("sort", "symbol", "path", "line", "signature", "field", "deprecation"), None)
        | {"status": "absent", "reason": "kit has no f"},
        "changes": [
            {
                "kind": "removed",
                "parameter": None,
                "before": "kit.f",
                "after": None,
                "in_front_of": None,
                "text": "gone",
            }
        ],
    }
    assert document["parameters"][1] == {
        "name": "c",
        "there": [{"first": "2", "last": "2"}],
        "required": [{"first": "2", "last": "2"}],
    }
    assert document["unread"] == [{"release": "3", "reason": "kit 3 has no wheel"}]


def test_hostile_sources_are_harmless() -> None:
    history = told("kit.f", "def f(): ...", "def f(a='\\x1b[31m\u202e|`'): ...")
    assert "\x1b" not in render_history(history)
    assert "\u202e" not in render_history(history) + render_history_markdown(history) + render_history_json(history)


def test_the_command_refuses_what_is_no_range(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "vllm.LLM", "--releases", "newest"]) == 2
    assert capsys.readouterr().err == "driftcheck: 'newest' is no range of releases; write '>=0.11,<0.18' for example\n"
    assert main(["history", "vllm..LLM"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_offline_with_nothing_cached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path))
    assert main(["history", "vllm.LLM", "--offline"]) == 2
    said = "driftcheck: no release of vllm is cached; without --offline the index is asked\n"
    assert capsys.readouterr() == ("", said)


# Real releases


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.index
@pytest.mark.parametrize(
    ("symbol", "between", "lines"),
    [
        (
            "vllm.model_executor.layers.fused_moe.routed_experts_capturer.split_routed_experts",
            ">=0.20,<0.23",
            ["There in 0.21.0 only."],
        ),
        (
            "vllm.model_executor.layers.batch_invariant.init_batch_invariance",
            ">=0.12,<0.21",
            ["  attention_backend  from 0.13.0 to 0.19.1 only, required"],
        ),
        (
            "vllm.transformers_utils.tokenizer.get_tokenizer",
            ">=0.11.2,<0.23",
            [
                "0.12.0  defined in vllm.tokenizers.registry now, no longer in vllm.transformers_utils.tokenizer;",
                "        deprecated: `vllm.transformers_utils.tokenizer.get_tokenizer` has been moved to",
                "0.22.0  moved to vllm.tokenizers.get_tokenizer; this path no longer leads to it",
                "There until 0.21.0. 0.22.1 has it as vllm.tokenizers.get_tokenizer.",
            ],
        ),
        ("VLLM_USE_V1", ">=0.10,<0.12", ["0.11.1  gone", "There until 0.11.0."]),
        (
            "vllm.config.SchedulerConfig.max_num_seqs",
            ">=0.11,<0.13",
            ["0.11.1  the default is 128 instead of None", "There in all of them, 0.11.0 to 0.12.0."],
        ),
        (
            "vllm.v1.core.sched.scheduler.Scheduler.__init__",
            ">=0.8,<0.8.4",
            ["0.8.2  moved here from vllm.v1.core.scheduler.Scheduler.__init__", "There since 0.8.2."],
        ),
    ],
)
def test_real_releases(
    symbol: str,
    between: str,
    lines: list[str],
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(cache))
    assert main(["history", symbol, "--releases", between]) == 0
    printed = capsys.readouterr().out
    for line in lines:
        assert f"{line}\n" in printed
    assert main(["history", symbol, "--releases", between, "--offline"]) == 0
    assert capsys.readouterr().out == printed
