"""The runtime surface, probed in a real interpreter over small packages that each test writes."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from driftcheck.model import ParameterKind
from driftcheck.surface.runtime import RuntimeSymbol, probe

from .probing import Ask

CALLABLES = """
    import abc, asyncio, collections, contextlib, dataclasses, enum, functools, typing

    def plain(a, /, b: int, *rest, c="x", **more) -> "list[int]": ...
    async def later(a=None): ...
    partial = functools.partial(plain, 1, c=2)
    shortest = min
    alias = plain
    constant = 3

    @functools.lru_cache(maxsize=None)
    def cached(a, b=2): ...

    @contextlib.contextmanager
    def manager(a): yield

    def deprecated(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs): ...
        return wrapper

    @deprecated
    def wrapped(a, b): ...

    @functools.singledispatch
    def dispatched(value, b=1): ...

    @dataclasses.dataclass
    class Data:
        required: int
        optional: list = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(init=False)
        extra: int = dataclasses.field(default=7, kw_only=True)

    class Tuple(typing.NamedTuple):
        x: int
        y: int = 0

    class Color(enum.Enum):
        RED = 1

    class Meta(type):
        def __call__(cls, a, b=1): ...

    class Made(metaclass=Meta):
        def __init__(self, other): ...

    class New:
        def __new__(cls, a): ...

    class Nothing: ...

    class Base(abc.ABC):
        declared: int
        value = 3
        def __init__(self, a, *, b=None): self.instance = a
        def method(self, a: "Color" = Color.RED) -> int: ...
        async def coroutine(self, a): ...
        @staticmethod
        def static(a): ...
        @classmethod
        def klass(cls, a): ...
        @property
        def prop(self) -> int: ...
        @functools.cached_property
        def kept(self) -> "str": ...
        @deprecated
        def wrapped(self, a): ...
        @functools.lru_cache
        def cached(self, a): ...
        @functools.singledispatchmethod
        def dispatched(self, a): ...
        partial = functools.partialmethod(method, 1)
        star = lambda *args: None
        nobody = lambda: None
        @abc.abstractmethod
        def must(self): ...
        class Inner:
            def __init__(self, z): ...

    class Derived(Base):
        __slots__ = ("slot",)
        def must(self, new): ...

    instance = Nothing()
    bound = Data(1).__eq__
"""


KINDS: tuple[tuple[str, str, str | None], ...] = (
    ("plain", "function", "(a, /, b: int, *rest, c='x', **more) -> list[int]"),
    ("alias", "function", "(a, /, b: int, *rest, c='x', **more) -> list[int]"),
    ("later", "async-function", "(a=None)"),
    ("partial", "callable", "(b: int, *rest, c=2, **more) -> list[int]"),
    ("shortest", "builtin", None),
    ("constant", "value", None),
    ("instance", "value", None),
    ("cached", "callable", "(a, b=2)"),
    ("manager", "function", "(a)"),
    ("wrapped", "function", "(a, b)"),
    ("dispatched", "function", "(value, b=1)"),
    ("bound", "bound-method", "(other)"),
    ("Data", "class", "(required: int, optional: list = <factory>, *, extra: int = 7) -> None"),
    ("Tuple", "class", "(x: int, y: int = 0)"),
    ("Color.RED", "value", None),
    ("Made", "class", "(a, b=1)"),
    ("New", "class", "(a)"),
    ("Nothing", "class", "()"),
    ("Base", "class", "(a, *, b=None)"),
    ("Base.__init__", "method", "(a, *, b=None)"),
    ("Base.method", "method", "(a: Color = Color.RED) -> int"),
    ("Base.coroutine", "method", "(a)"),
    ("Base.static", "static-method", "(a)"),
    ("Base.klass", "class-method", "(a)"),
    ("Base.prop", "property", None),
    ("Base.kept", "property", None),
    ("Base.wrapped", "method", "(a)"),
    ("Base.cached", "method", "(a)"),
    ("Base.dispatched", "method", "(a)"),
    ("Base.partial", "method", "() -> int"),
    ("Base.star", "method", "(*args)"),
    ("Base.nobody", "method", None),
    ("Base.declared", "declared", None),
    ("Base.value", "value", None),
    ("Base.Inner", "class", "(z)"),
    ("Derived", "class", "(a, *, b=None)"),
    ("Derived.must", "method", "(new)"),
    ("Derived.slot", "declared", None),
    ("Derived.method", "method", "(a: Color = Color.RED) -> int"),
)


@pytest.mark.parametrize(("name", "kind", "signature"), KINDS)
def test_every_kind_of_callable(
    kinds: Mapping[str, RuntimeSymbol], name: str, kind: str, signature: str | None
) -> None:
    symbol = kinds[name]
    assert (symbol.status, symbol.kind) == ("found", kind)
    assert (str(symbol.signature) if symbol.signature else None) == signature


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, RuntimeSymbol]:
    folder = tmp_path_factory.mktemp("packages")
    (folder / "kinds.py").write_text(textwrap.dedent(CALLABLES))
    surface = probe(sys.executable, [f"kinds.{name}" for name, _, _ in KINDS], environment={"PYTHONPATH": str(folder)})
    assert surface.processes == 1
    return {name.removeprefix("kinds."): symbol for name, symbol in surface.symbols.items()}


def test_details_of_symbols(kinds: Mapping[str, RuntimeSymbol]) -> None:
    wrapped = kinds["wrapped"]
    assert str(wrapped.outer_signature) == "(*args, **kwargs)"
    assert kinds["plain"].outer_signature is None
    assert str(kinds["Base.wrapped"].outer_signature) == "(*args, **kwargs)"
    assert kinds["Base.coroutine"].is_async
    assert (kinds["Base.prop"].returns, kinds["Base.kept"].returns) == ("int", "str")
    assert kinds["Derived"].bases == ("kinds.Base", "abc.ABC")
    assert (kinds["Base"].abstract, kinds["Derived"].abstract) == (("must",), ())
    assert (kinds["plain"].path, kinds["plain"].line) == ("kinds.py", 4)
    assert (kinds["alias"].module, kinds["alias"].qualified_name) == ("kinds", "plain")
    assert kinds["Color.RED"].value_type == "kinds.Color"
    assert kinds["shortest"].failure is not None
    assert str(kinds["Base.nobody"].failure) == "ValueError: takes no receiver"


def test_missing_failed_and_lazy_symbols(ask: Ask) -> None:
    files = {
        "pkg/__init__.py": """
            from pkg.both import both
            def __getattr__(name):
                if name == "lazy":
                    from pkg.inner import value
                    return value
                if name == "poison":
                    raise RuntimeError("not on this machine")
                raise AttributeError(f"nothing called {name}")
            class Holder:
                @property
                def fine(self): raise RuntimeError
                class _Raises:
                    def __get__(self, instance, owner): raise OSError("no device")
                raises = _Raises()
        """,
        "pkg/both.py": "def both(a): ...\nother = 1",
        "pkg/inner.py": "def value(b): ...",
        "pkg/broken.py": "import nowhere_to_be_found",
        "pkg/sub/__init__.py": "",
    }
    names = {
        "pkg": ("found", "module", None),
        "pkg.lazy": ("found", "function", None),
        "pkg.inner.value": ("found", "function", None),
        "pkg.both": ("found", "function", None),
        "pkg.both.other": ("found", "value", None),
        "pkg.sub": ("found", "module", None),
        "pkg:Holder.fine": ("found", "property", None),
        "pkg.gone": ("missing", None, "AttributeError"),
        "pkg.gone.deeper": ("missing", None, "AttributeError"),
        "pkg.inner.value.x": ("missing", None, "AttributeError"),
        "pkg.absent:name": ("missing", None, "ModuleNotFoundError"),
        "no_such_package.x": ("missing", None, "ModuleNotFoundError"),
        "pkg.poison": ("failed", None, "RuntimeError"),
        "pkg.Holder.raises": ("failed", None, "OSError"),
        "pkg.broken.x": ("failed", None, "ModuleNotFoundError"),
        "": ("failed", None, "ValueError"),
        "pkg..x": ("missing", None, "AttributeError"),
    }
    surface = ask(files, tuple(names))
    for name, (status, kind, exception) in names.items():
        symbol = surface.symbols[name]
        assert (symbol.status, symbol.kind) == (status, kind), symbol
        if exception:
            assert symbol.failure is not None
            assert symbol.failure.exception == exception
    assert surface.processes == 1
    assert surface.notice is not None
    assert "\n" not in surface.notice


def test_only_what_is_asked_for_is_imported(ask: Ask, packages: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/wanted.py": "def f(): ...",
        "pkg/other.py": f"open({str(packages / 'imported')!r}, 'w')",
    }
    assert ask(files, ("pkg.wanted.f",)).symbols["pkg.wanted.f"].status == "found"
    assert not (packages / "imported").exists()


def test_nothing_of_the_target_is_called(ask: Ask, packages: Path) -> None:
    files = {
        "mine.py": f"""
            def note(*args): open({str(packages / "called")!r}, "w")
            class Loud:
                __init__ = __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = lambda *a: note() or 1
            def make():
                return Loud.__new__(Loud)
            def f(a=make(), b=[make()], c={{1: make()}}): ...
            class C:
                attribute = make()
                @property
                def prop(self): note()
            loud = make()
        """
    }
    surface = ask(files, ("mine.f", "mine.C", "mine.C.attribute", "mine.C.prop", "mine.loud", "mine.Loud"), ("mine",))
    assert str(surface.symbols["mine.f"].signature) == "(a=<mine.Loud>, b=[<mine.Loud>], c={1: <mine.Loud>})"
    assert surface.modules["mine"].names["loud"] == "=mine.Loud"
    assert not (packages / "called").exists()


@pytest.mark.parametrize(
    ("default", "text"),
    [
        ("object()", "<object>"),
        ("print", "print"),
        ("lambda: 0", "<lambda>"),
        ("{3, 1, 2}", "{1, 2, 3}"),
        ("frozenset()", "frozenset()"),
        ("(1,)", "(1,)"),
        ("Loud().method", "Loud.method"),
        ("collections.deque([Loud()])", "<collections.deque>"),
        ("range(3)", "range(0, 3)"),
        ("list[int]", "list[int]"),
        ("{'a': [None, ...]}", "{'a': [None, Ellipsis]}"),
        ("-1.5e300", "-1.5e+300"),
        ("int", "int"),
        ("os", "<module os>"),
        ("pathlib.PurePosixPath('x')", "PurePosixPath('x')"),
        ("re.compile('a+')", "re.compile('a+')"),
        ("re.I", "RegexFlag.IGNORECASE"),
        ("10 ** 5000", "<int>"),
        ("itself", "[[[[<list>]]]]"),
        ("list(range(10 ** 6))", "<list>"),
        ("'\\ud800'", "'\\ud800'"),
        ("Text('x')", "<mine.Text>"),
    ],
)
def test_defaults_are_told_without_addresses(ask: Ask, default: str, text: str) -> None:
    source = f"""
        import collections, os, pathlib, re
        itself = []
        itself.append(itself)
        class Text(str): ...
        class Loud:
            def method(self): ...
            def __repr__(self): raise RuntimeError
        def f(a={default}): ...
    """
    signature = ask({"mine.py": source}, ("mine.f",)).symbols["mine.f"].signature
    assert signature is not None
    assert signature.parameters[0].default == text


def test_texts_are_bounded(ask: Ask) -> None:
    source = """
        def f(a="x" * 10 ** 7, b: "y" * 10 ** 7 = 1): ...
        raise_ = RuntimeError
        def __getattr__(name): raise RuntimeError("z" * 10 ** 7 + chr(0xd800))
    """
    surface = ask({"mine.py": source}, ("mine.f", "mine.gone"))
    signature = surface.symbols["mine.f"].signature
    assert signature is not None
    assert len(str(signature)) < 1000
    failure = surface.symbols["mine.gone"].failure
    assert failure is not None
    assert len(failure.message) <= 500


def test_paths_of_the_machine_are_kept_out_of_messages(ask: Ask, packages: Path) -> None:
    surface = ask({"pkg/__init__.py": "", "other.py": "from pkg import gone"}, ("other.x",))
    failure = surface.symbols["other.x"].failure
    assert failure is not None
    assert failure.message == "cannot import name 'gone' from 'pkg' (pkg/__init__.py)"
    assert str(packages) not in repr(surface)


def test_strange_callables(ask: Ask) -> None:
    source = """
        def loop(a): ...
        loop.__wrapped__ = loop
        def odd(a): ...
        odd.__signature__ = 3
        class Lies:
            __module__ = 5
            __qualname__ = "Lies"
            def __call__(self, a): ...
        class Raises:
            def __getattribute__(self, name): raise SystemExit(name)
            def __call__(self): ...
        raises = Raises()
        lies = Lies()
        class Meta(type):
            def __getattribute__(cls, name): raise KeyError(name)
        class Hostile(metaclass=Meta): ...
    """
    surface = ask({"mine.py": source}, tuple(f"mine.{name}" for name in ("loop", "odd", "lies", "raises", "Hostile")))
    assert {symbol.status for symbol in surface.symbols.values()} == {"found"}
    assert [str(symbol.signature) if symbol.signature else None for symbol in surface.symbols.values()][:3] == [
        None,
        None,
        "(a)",
    ]
    assert surface.processes == 1


def test_a_whole_module(ask: Ask) -> None:
    files = {
        "pkg/__init__.py": "from pkg.other import thing",
        "pkg/other.py": "class thing: ...",
        "pkg/whole.py": """
            import os
            from pkg.other import thing
            from pkg.other import thing as alias
            LIMIT = 3
            def f(a): ...
            renamed = f
            class C(thing):
                field = 1
                def __init__(self, a): ...
                def m(self, b): ...
                @property
                def p(self): ...
                class Inner:
                    def n(self): ...
                borrowed = thing
            class _Private:
                def x(self): ...
        """,
    }
    surface = ask(files, modules=("pkg.whole", "pkg.gone"))
    whole = surface.modules["pkg.whole"]
    assert [symbol.name for symbol in whole.symbols] == [
        "C", "C.Inner", "C.Inner.n", "C.__init__", "C.m", "C.p", "_Private", "_Private.x", "f", "renamed",
    ]  # fmt: skip
    names = {key: value for key, value in whole.names.items() if not key.startswith("__")}
    assert names == {"LIMIT": "=int", "alias": "pkg.other:thing", "os": "os", "thing": "pkg.other:thing"}
    assert whole.path == "pkg/whole.py"
    assert surface.modules["pkg.gone"].failure is not None


@pytest.mark.parametrize("module", ["argparse", "asyncio.tasks", "collections", "enum", "logging", "typing"])
def test_agrees_with_inspect(module: str) -> None:
    """What the probe says of the standard library is what inspect says of it here, in the same Python."""
    __import__(module)
    whole = probe(sys.executable, modules=(module,)).modules[module]
    compared = 0
    for symbol in whole.symbols:
        if symbol.kind not in ("class", "function", "async-function", "static-method", "class-method"):
            continue
        value: object = sys.modules[module]
        for part in symbol.name.split("."):
            value = getattr(value, part)
        assert callable(value)
        try:
            expected = inspect.signature(value)
        except ValueError:
            assert symbol.signature is None
            continue
        assert symbol.signature is not None
        assert [(p.name, list(ParameterKind).index(p.kind), p.is_required) for p in symbol.signature.parameters] == [
            (p.name, int(p.kind), p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
            for p in expected.parameters.values()
        ]
        compared += 1
    assert compared > 5


def test_the_same_question_gets_the_same_answer(ask: Ask) -> None:
    files = {"kinds.py": CALLABLES}
    assert ask(files, modules=("kinds",)) == ask(files, modules=("kinds",))
