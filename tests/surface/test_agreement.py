"""Sources held against a real interpreter, over a package that has what makes them differ."""

from __future__ import annotations

import textwrap
from pathlib import Path

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.origins.folders import folder_tree
from driftcheck.surface.agreement import Agreement, differences_of, hold, is_public
from driftcheck.surface.program import Program
from driftcheck.surface.runtime import RuntimeModule, RuntimeSymbol

from .probing import Ask

KIT = {
    "kit/__init__.py": "",
    "kit/core.py": """
        import functools
        from collections import namedtuple
        from contextlib import contextmanager
        from dataclasses import dataclass, field
        from enum import Enum
        from functools import lru_cache
        from typing import NamedTuple, Protocol, overload

        def plain(a, /, b, *rest, c=1, **more): ...
        async def later(a): ...
        @lru_cache(maxsize=2)
        def cached(a, b=1): ...
        held = lru_cache(plain)
        @contextmanager
        def opened(path, mode="r"):
            yield path
        def logged(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper
        def timed(function=None, *, name=""):
            if function is None:
                return functools.partial(timed, name=name)
            return hook(function) if name else function
        @logged
        def decorated(a): ...
        @timed
        def measured(a): ...
        @timed(name="")
        def named(a): ...
        def careless(function):
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper
        @careless
        def passed(a): ...
        def fixed(function):
            def run(self):
                function(self)
            return run
        @overload
        def either(a: int) -> int: ...
        @overload
        def either(a: str) -> str: ...
        def either(a): return a

        class Base:
            def __init__(self, size, *, log=False): ...
            def method(self, a, b=1): ...
            @classmethod
            def make(cls, a): ...
            @staticmethod
            def help(a, b): ...
            @property
            def size(self): ...
            @logged
            def wrapped(self, a): ...
            async def wait(self, seconds): ...
            def __private(self, a): ...
            @careless
            def passing(self, a): ...
            @fixed
            def short(self, *parts): ...
            aside = staticmethod(cached)
            class Inner:
                def __init__(self, depth): ...
        class Child(Base):
            def method(self, a): ...
        @dataclass
        class Data:
            a: int
            b: list = field(default_factory=list)
        class Pair(NamedTuple):
            a: int
            b: int = 1
        Point = namedtuple("Point", "x y")
        class Mode(Enum):
            FAST = 1
            def describe(self, long=False): ...
        class Runs(Protocol):
            def run(self, a): ...
        def hook(function): return function
        def mark(cls):
            def describe(self, deep=False): ...
            cls.describe = describe
            return cls
        @mark
        class Marked: ...
    """,
    "kit/odd.py": """
        import sys

        def made(): ...
        made.__signature__ = None
        def seen(a): ...
        def replaced(a, b): ...
        sys.modules[__name__].replaced = lambda a: None
        def hidden(wrap):
            return {0: lambda *args: wrap(*args)}[0]
        @hidden
        def opaque(a): ...
    """,
    "kit/broken.py": "import nowhere_to_be_found\ndef lost(a): ...\n",
}


def held(ask: Ask, packages: Path, *modules: str) -> Agreement:
    surface = ask(KIT, modules=modules)
    return hold(Program(folder_tree(packages / "kit")), surface.modules.values())


def test_sources_and_interpreter_agree(ask: Ask, packages: Path) -> None:
    agreement = held(ask, packages, "kit", "kit.core")
    assert agreement.differences == ()
    assert agreement.modules == 2
    assert agreement.compared == agreement.equal >= 30
    assert agreement.share == 1.0


def test_each_difference_has_its_cause(ask: Ask, packages: Path) -> None:
    agreement = held(ask, packages, "kit.odd", "kit.broken")
    assert agreement.modules == 1
    found = {difference.symbol: difference for difference in agreement.differences}
    assert sorted(found) == ["kit.odd.opaque", "kit.odd.replaced"]
    assert found["kit.odd.opaque"].static is None
    assert found["kit.odd.opaque"].cause == "unknown: decorator hidden"
    replaced = found["kit.odd.replaced"]
    assert replaced.cause == "parameters that the interpreter does not see"
    assert (replaced.static, replaced.runtime) == ("(a, b)", "(a)")
    assert (replaced.path, replaced.line) == ("kit/odd.py", 7)
    assert agreement.causes() == [
        ("parameters that the interpreter does not see", 1),
        ("unknown: decorator hidden", 1),
    ]
    assert agreement.compared == agreement.equal + 2


def test_a_name_the_sources_lack_is_left_open() -> None:
    from driftcheck.tree import MemoryTree

    symbols = (
        RuntimeSymbol("Kit.run", "found", "method", signature=Signature()),
        RuntimeSymbol("made", "found", "function", signature=Signature()),
        RuntimeSymbol("_hidden", "found", "function", signature=Signature()),
        RuntimeSymbol("size", "found", "property"),
    )
    source = textwrap.dedent("class Kit:\n    def walk(self): ...\n")
    agreement = hold(Program(MemoryTree({"kit.py": source}, "kit")), [RuntimeModule("kit", symbols=symbols)])
    assert agreement.compared == 2
    assert [difference.cause for difference in agreement.differences] == [
        "unknown: run is not there",
        "unknown: made is not there",
    ]


def signature(*names: str, **defaults: str) -> Signature:
    return Signature(tuple(Parameter(name, default=defaults.get(name)) for name in (*names, *defaults)))


def test_differences_in_words() -> None:
    assert list(differences_of(signature("a", "b"), signature("b", "c"))) == [
        "parameters that the interpreter does not see",
        "parameters that the sources do not show",
    ]
    assert list(differences_of(signature("a", "b"), signature("b", "a"))) == ["another order"]
    assert list(differences_of(signature("a"), signature(a="1"))) == ["a default on one side"]
    keyword = Signature((Parameter("a", ParameterKind.KEYWORD_ONLY),))
    assert list(differences_of(signature("a"), keyword)) == ["another kind of parameter"]
    assert list(differences_of(signature("a"), signature("a"))) == []


def test_public_names() -> None:
    assert is_public("Kit.run")
    assert not is_public("Kit._run")
    assert not is_public("_Kit.run")
    assert not is_public("Kit.__init__")
