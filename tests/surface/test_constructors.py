"""Constructors that nobody wrote, held against the libraries that make them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftcheck.model import Signature
from driftcheck.surface.accepted import signature_of
from driftcheck.surface.program import Program
from driftcheck.surface.signatures import Callee, Signatures, shape
from driftcheck.surface.types import Class, Unknown
from driftcheck.tree import MemoryTree


def callees(source: str, **modules: str) -> dict[str, Callee | Unknown]:
    """What calls of the classes of a module meet, by name; `modules` are others of the same package."""
    files = {f"kit/{name}.py": textwrap.dedent(text) for name, text in modules.items()}
    program = Program(MemoryTree({"kit/__init__.py": "", "kit/core.py": textwrap.dedent(source), **files}, "kit"))
    module = program.module("kit.core")
    assert module is not None
    signatures = Signatures(program)
    types = {name: program.lookup(module, name) for name in module.names}
    return {name: signatures.callee(type_) for name, type_ in types.items() if isinstance(type_, Class)}


def seen(callee: Callee | Unknown) -> Signature:
    """What `inspect.signature` ought to say."""
    assert isinstance(callee, Callee), callee
    return callee.stated if callee.stated is not None else callee.signature


Make = Callable[[str], "Real"]


@dataclass(frozen=True)
class Real:
    """A module that was really made of a source."""

    module: ModuleType

    def signature(self, name: str) -> Signature | None:
        """What inspect says of one of its classes, None where it says nothing."""
        try:
            return signature_of(getattr(self.module, name))
        except (ValueError, TypeError):
            return None


@pytest.fixture
def make() -> Iterator[Make]:
    """Executes a source as a module, which is forgotten afterwards."""
    made: list[str] = []

    def _make(source: str) -> Real:
        module = ModuleType(f"made_of_{len(made)}_{id(made)}")
        made.append(module.__name__)
        sys.modules[module.__name__] = module
        exec(compile(textwrap.dedent(source), module.__name__, "exec", dont_inherit=True), module.__dict__)
        return Real(module)

    yield _make
    for name in made:
        del sys.modules[name]


# Each source is executed, and every class it leaves behind has to have the signature that inspect sees.
WRITTEN = {
    "plain": """
        class Plain: ...
        class Written:
            def __init__(self, a, /, b, *rest, c=1, **more): ...
        class Inherits(Written): ...
        class Mixin: ...
        class Both(Mixin, Written): ...
        class Made:
            def __new__(cls, a, b=2): ...
        class MadeAbove(Made):
            def __init__(self, a, b=2, c=3): ...
        class Open:
            def __new__(cls, *args, **kwargs): ...
            def __init__(self, size): ...
        class OpenAbove(Open):
            def __init__(self, size, log=False): ...
        class Private:
            def __init__(self, __secret, _known=1): ...
        class Alias:
            def _start(self, port): ...
            __init__ = _start
    """,
    "redefined": """
        import sys
        class Branch:
            if sys.version_info >= (3, 0):
                def __init__(self, a): ...
        class Name:
            def __init__(self, first): ...
        class Name(Name):
            pass
    """,
    "wrapped": """
        import functools
        def logged(method):
            @functools.wraps(method)
            def wrapper(*args, **kwargs):
                return method(*args, **kwargs)
            return wrapper
        class Wrapped:
            @logged
            def __init__(self, a, b=1): ...
        def twice(cls):
            cls.doubled = True
            return cls
        def register(name):
            def keep(cls):
                return cls
            return keep
        @register("decorated")
        @twice
        class Decorated:
            def __init__(self, a): ...
    """,
    "dataclasses": """
        import dataclasses
        import dataclasses as dc
        from dataclasses import KW_ONLY, InitVar, dataclass, field
        from typing import Annotated, ClassVar, Optional
        import typing as t
        @dataclass
        class Simple:
            a: int
            b: int = 2
            c: list[int] = field(default_factory=list)
            d: int = field(default=4)
            e: int = field(default=5, init=False)
            f: ClassVar[int] = 6
            g: InitVar[int] = 7
            h = 8
            i: "Optional[int]" = None
            def method(self): ...
            @property
            def shown(self): ...
        @dataclasses.dataclass(kw_only=True)
        class Keywords:
            a: int
            b: int = field(kw_only=False)
        @dc.dataclass(frozen=True, eq=False)
        class Marker:
            a: int
            _: KW_ONLY
            b: int
            c: int = field(default=1, kw_only=False)
        @dataclass
        class Child(Simple):
            z: int = 1
            b: int = 5
        @dataclass
        class Grandchild(Child):
            a: int = 0
        class Undecorated(Simple):
            extra: int = 1
        @dataclass
        class Above(Undecorated):
            more: int = 1
        @dataclass(init=False)
        class NoInit:
            a: int
        @dataclass(init=False)
        class NoInitChild(Simple):
            y: int = 1
        @dataclass
        class Own:
            a: int
            def __init__(self, other): ...
        @dataclass
        class OwnChild(Own):
            b: int = 1
        class Defaults:
            size = 3
            count: int = 4
            def name(self): ...
        @dataclass
        class TakesDefaults(Defaults):
            size: int
            count: int
            name: str
        @dataclass(kw_only=True)
        class Again(Simple):
            c: list[int]
            d: int
        @dataclass(slots=True)
        class Slots:
            a: int = 1
        @dataclass
        class Later:
            a: int
            a = 3
        @dataclass
        class Left:
            a: int = 1
            shared: int = 2
        @dataclass
        class Right:
            b: int = 1
            shared: int = 3
        @dataclass
        class Diamond(Left, Right):
            c: int = 1
        @dataclass
        class Nothing(object): ...
    """,
    "dataclasses, spelled otherwise": """
        import functools
        from dataclasses import dataclass, field
        frozen = dataclass(frozen=True, kw_only=True)
        options = {"kw_only": True}
        partial_frozen = functools.partial(dataclass, frozen=True)
        other = dataclass
        def ours(cls):
            return dataclass(cls)
        def ours_with(**kwargs):
            def wrap(cls):
                return dataclass(cls, **kwargs)
            return wrap
        def either(cls=None, *, kw_only=False, **kwargs):
            def wrap(cls):
                return dataclass(cls, kw_only=kw_only, **kwargs)
            if cls is None:
                return wrap
            return wrap(cls)
        def made_of_it(**kwargs):
            return dataclass(frozen=True, **kwargs)
        def maybe(default):
            return field(default=default)
        @frozen
        class A:
            a: int
        @dataclass(**options)
        class B:
            a: int
        @partial_frozen
        class C:
            a: int
        @partial_frozen(kw_only=True)
        class D:
            a: int
        @other
        class E:
            a: int
        @ours
        class F:
            a: int = maybe(1)
        @ours_with(kw_only=True)
        class G:
            a: int
        @either
        class H:
            a: int
        @either(kw_only=True)
        class I:
            a: int
        @made_of_it(kw_only=True)
        class J:
            a: int
    """,
    "dataclasses, made by a base": """
        from dataclasses import dataclass, field
        from typing_extensions import dataclass_transform
        class Base:
            def __init_subclass__(cls, **options):
                super().__init_subclass__()
                dataclass(cls, **options)
        class Made(Base):
            a: int
            b: int = 1
        class Keywords(Made, kw_only=True):
            c: int
        class Counted:
            def __init_subclass__(cls):
                super().__init_subclass__()
                cls.count = 1
        class Plain(Counted):
            a: int
            def __init__(self, b): ...
        def finish(cls, **options):
            return dataclass(kw_only=True, **options)(cls)
        @dataclass_transform(kw_only_default=True)
        class Promised:
            def __init_subclass__(cls, **options):
                globals()["finish"](cls, **options)
        class Model(Promised):
            a: int
            b: int = 1
        class Odd(Promised, frozen=True):
            a: int
        @dataclass_transform()
        class Meta(type):
            def __new__(mcs, name, bases, namespace):
                return globals()["dataclass"](super().__new__(mcs, name, bases, namespace))
        class ByMeta(metaclass=Meta):
            a: int
        class Below(ByMeta):
            b: int = 1
    """,
    "named tuples": """
        from collections import namedtuple
        from typing import Generic, NamedTuple, TypeVar
        import collections, typing
        T = TypeVar("T")
        class Pair(NamedTuple):
            a: int
            b: int = 2
            def total(self): ...
        class Child(Pair):
            extra: int = 1
        class Made(Pair):
            def __new__(cls, whole): ...
        Plain = namedtuple("Plain", "a b, c")
        Listed = collections.namedtuple("Listed", ["a", "b"], defaults=(1,))
        Keywords = namedtuple("Keywords", field_names="a b")
        Typed = NamedTuple("Typed", [("a", int), ("b", str)])
        class Based(namedtuple("Based", "x y")):
            def norm(self): ...
    """,
    "protocols": """
        from typing import Generic, Protocol, TypeVar, runtime_checkable
        T = TypeVar("T")
        @runtime_checkable
        class Runs(Protocol):
            size: int
            def run(self): ...
        class Parts(Runs, Protocol[T]):
            def part(self): ...
        class Fulfils(Runs):
            def run(self): ...
        class Real:
            def __init__(self, a): ...
        class Before(Runs, Real): ...
        class After(Real, Runs): ...
        class Initialised(Protocol):
            def __init__(self, a): ...
        class Deriving(Initialised, Protocol): ...
        class Box(Generic[T]):
            def __init__(self, item: T): ...
        class IntBox(Box[int]): ...
    """,
    "enumerations": """
        import enum
        from enum import Enum, IntEnum, Flag, auto, unique
        @unique
        class Mode(Enum):
            FAST = "fast"
        class Text(str, Enum):
            A = "a"
            def __new__(cls, value):
                made = str.__new__(cls, value)
                made._value_ = value
                return made
        class Level(IntEnum):
            LOW = auto()
        class Rights(enum.Flag):
            READ = 1
        class Base(Enum):
            def describe(self): ...
        class Derived(Base):
            X = 1
    """,
    "metaclasses": """
        from abc import ABC, ABCMeta, abstractmethod
        class Abstract(ABC):
            def __init__(self, a): ...
            @abstractmethod
            def run(self): ...
        class ByMeta(metaclass=ABCMeta):
            def __init__(self, a): ...
        class Cached(type):
            def __call__(cls, *args, **kwargs):
                return super().__call__(*args, **kwargs)
        class Pool(metaclass=Cached):
            def __init__(self, size): ...
        class Strict(type):
            def __call__(cls, only): ...
        class Taken(metaclass=Strict):
            def __init__(self, size): ...
        class Named(type):
            def __new__(mcs, name, bases, namespace, **options):
                return super().__new__(mcs, name, bases, namespace)
        class Fine(metaclass=Named, option=1):
            def __init__(self, size): ...
    """,
    "the standard library": """
        import argparse, collections, json, logging, multiprocessing, threading
        class Worker(threading.Thread): ...
        class Process(multiprocessing.Process): ...
        class Log(logging.Handler): ...
        class Encoder(json.JSONEncoder): ...
        class Options(argparse.ArgumentParser): ...
        class Data(collections.UserDict): ...
        class Count(collections.Counter): ...
        class Items(list): ...
        class Own(threading.Thread):
            def __init__(self, target): ...
        class Mixed(Own, dict): ...
    """,
    "__init__ put there by a decorator": """
        import functools
        def prefixed(cls):
            old_init = cls.__init__
            def __init__(self, *, prefix="", **kwargs):
                old_init(self, **kwargs)
            cls.__init__ = __init__
            return cls
        def counted(cls):
            old = cls.__init__
            @functools.wraps(old)
            def __init__(self, *args, **kwargs):
                old(self, *args, **kwargs)
            cls.__init__ = __init__
            return cls
        def helper(cls, option):
            old = cls.__init__
            def __init__(self, *args, extra=None, **kwargs):
                old(self, *args, **kwargs)
            setattr(cls, "__init__", __init__)
            return cls
        def by_helper(cls=None, *, option=1):
            def decorate(cls):
                return helper(cls, option)
            if cls is not None:
                return decorate(cls)
            return decorate
        @prefixed
        class A:
            def __init__(self, size, prefix, *, log=False): ...
        @counted
        class B:
            def __init__(self, size): ...
        @by_helper
        class C:
            def __init__(self, size): ...
        @by_helper(option=2)
        class D:
            def __init__(self, size): ...
    """,
}


def test_class_variables_in_quotes_are_no_fields(make: Make) -> None:
    source = """
        import typing as t
        from dataclasses import InitVar, dataclass
        from typing import ClassVar
        @dataclass
        class Quoted:
            a: "ClassVar[int]" = 1
            b: "t.ClassVar[int]" = 2
            c: "InitVar[int]" = 3
            d: "int" = 4
    """
    check(source, make)


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"], ids=["", "annotations as text"])
@pytest.mark.parametrize("name", WRITTEN)
def test_sources_say_what_inspect_says(name: str, future: str, make: Make) -> None:
    check(future + textwrap.dedent(WRITTEN[name]), make)


def check(source: str, make: Make) -> None:
    """Holds every class of a source against its real self."""
    real = make(source)
    wrong: dict[str, tuple[str, str]] = {}
    known = 0
    for name, callee in callees(source).items():
        stated = real.signature(name)
        if stated is None:
            continue
        known += 1
        if isinstance(callee, Unknown) or shape(seen(callee)) != shape(stated):
            wrong[name] = (str(callee.reason if isinstance(callee, Unknown) else seen(callee)), str(stated))
    assert wrong == {}
    assert known


PYDANTIC = {
    "dataclasses": """
        import dataclasses
        from typing import Annotated
        from pydantic import ConfigDict, Field
        from pydantic.dataclasses import dataclass
        @dataclass
        class Plain:
            a: int
            b: int = 3
            c: int = Field(default=4)
            d: int = Field(default_factory=int)
            e: dataclasses.InitVar[int] = 5
        @dataclass(config=ConfigDict(extra="forbid"), kw_only=True)
        class Strict:
            a: int = Field(...)
            b: int = Field(3, ge=0)
            c: int = Field(3, init=False)
            d: int = dataclasses.field(default=3)
        @dataclass
        class Named:
            a: int = Field(3, alias="other")
            b: int = Field(3, kw_only=True)
            c: int = Field(3, validation_alias="third")
        @dataclasses.dataclass
        class Base:
            x: int
            y: int = 2
        @dataclass
        class Child(Base):
            x: int = 5
            z: int = 1
        @dataclass
        class Own:
            x: int
            def __init__(self, text): ...
        def config(cls=None, *, config=None, **kwargs):
            merged = ConfigDict(extra="forbid")
            if config is not None:
                merged.update(config)
            def decorator(cls):
                return dataclass(cls, config=merged, **kwargs)
            if cls is None:
                return decorator
            return decorator(cls)
        @config
        class Bare:
            a: int
            b: int = 1
        @config(config=ConfigDict(arbitrary_types_allowed=True), kw_only=True)
        class Called(Bare):
            c: int = Field(default_factory=int)
    """,
    "models": """
        from typing import Annotated, ClassVar, Optional
        from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, field_validator
        class Model(BaseModel):
            a: int
            b: int = 3
            c: int = Field(alias="cee")
            d: Optional[int] = None
            _private: int = 3
            e: ClassVar[int] = 3
            f: int = Field(3, validation_alias="eff")
            g: Annotated[int, Field(default=3)]
            h: Annotated[int, Field(alias="aitch")] = 3
            i: int = Field(default_factory=int)
            j: int = Field(alias="not-an-identifier")
            k: int = Field(validation_alias=AliasChoices("kay", "kk"))
            m: int = Field(...)
            model_config = ConfigDict(frozen=True)
            @field_validator("a")
            @classmethod
            def check(cls, value): return value
            def method(self): ...
        class Open(Model):
            model_config = ConfigDict(extra="allow", populate_by_name=True)
            z: int
        class Strict(BaseModel, extra="forbid"):
            a: int
        class Mixin:
            mm: int
            mn: int = 3
        class Mixed(Mixin, BaseModel):
            q: int
        class Own(BaseModel):
            a: int
            def __init__(self, q, **data): super().__init__(**data)
        class OldStyle(BaseModel):
            a: int = 1
            class Config:
                extra = "allow"
        class Again(Strict):
            a: int = 5
            b: int
        class Whole(RootModel[list]): ...
    """,
}


@pytest.mark.parametrize("name", PYDANTIC)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sources_say_what_pydantic_makes(name: str, make: Make) -> None:
    pytest.importorskip("pydantic", "2.0")
    check(PYDANTIC[name], make)


ATTRS = """
    import attr, attrs
    from attrs import define, field, frozen
    @define
    class Modern:
        a: int
        b: int = 2
        c: list = field(factory=list)
        d: int = field(default=3, kw_only=True)
        _e: int = 4
        f: int = field(init=False, default=1)
        g: int = field(default=1, alias="gee")
        h = 3
    @attr.s
    class Classic:
        a = attr.ib()
        b = attr.ib(default=2)
        c: int = attr.ib(factory=int)
        d: int = 4
    @attr.s(auto_attribs=True, kw_only=True)
    class Auto:
        a: int
        b: int = 3
    @define
    class Child(Modern):
        z: int = 9
        b: int = 7
    @attrs.frozen(kw_only=True)
    class Keywords(Modern):
        y: int = 1
    @define
    class Own:
        a: int
        def __init__(self, other): ...
    @define
    class Mixed:
        a: int = 1
        b = field(default=2)
    @attr.dataclass
    class Like:
        a: int
        b: int = 1
    @define(init=False)
    class NoInit:
        a: int
"""


def test_sources_say_what_attrs_makes(make: Make) -> None:
    pytest.importorskip("attrs", "23.1")
    check(ATTRS, make)


# What can't be executed here, or is not what inspect says: stated in words.


def written(source: str, name: str, **modules: str) -> str:
    """The signature that a call of a class meets, as text."""
    callee = callees(source, **modules)[name]
    return callee.reason if isinstance(callee, Unknown) else str(callee.signature)


STRUCTS = """
    from typing import ClassVar
    import msgspec
    from msgspec import Struct, field
    class Base(Struct):
        a: int
        b: int = 3
        c: list = []
        d: int = msgspec.field(default=3)
        e: int = field(default_factory=int)
        f: ClassVar[int] = 2
        g: int = field(name="gee")
    class Keywords(Base, kw_only=True, omit_defaults=True):
        h: int
        i: int = 2
    class Again(Keywords, tag="x"):
        j: int = 5
    class Moved(Base, kw_only=True):
        a: int = 3
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Base", "(a: int, b: int = 3, c: list = [], d: int = 3, e: int = int(), g: int)"),
        (
            "Keywords",
            "(a: int, b: int = 3, c: list = [], d: int = 3, e: int = int(), g: int, *, h: int, i: int = 2)",
        ),
        (
            "Again",
            "(a: int, b: int = 3, c: list = [], d: int = 3, e: int = int(), g: int, j: int = 5, *, h: int, i: int = 2)",
        ),
        ("Moved", "(b: int = 3, c: list = [], d: int = 3, e: int = int(), g: int, *, a: int = 3)"),
    ],
)
def test_structs(name: str, expected: str) -> None:
    assert written(STRUCTS, name).removesuffix(" -> None") == expected


MEETS = [
    pytest.param(
        """
        import torch
        class X(torch.nn.Module): ...
        """,
        "()",
        id="a module of torch takes nothing, whatever its signature says",
    ),
    pytest.param(
        """
        from torch import nn
        from kit.other import wrap
        @wrap(option=1)
        class X(nn.Module):
            def __init__(self, *, config, prefix="", layer=None): ...
        """,
        "(*, config=None, prefix='', layer=None)",
        id="a decorator's __init__ hands on what it does not name",
    ),
    pytest.param(
        """
        class Base:
            def __new__(cls, *args, **kwargs): ...
        class X(Base):
            def __init__(self, size): ...
        """,
        "(size)",
        id="an open __new__ leaves it to __init__",
    ),
    pytest.param(
        """
        class Base:
            def __init__(self, *args, **kwargs): ...
        class X(Base):
            def __new__(cls, size): ...
        """,
        "(size)",
        id="an open __init__ leaves it to __new__",
    ),
    pytest.param(
        """
        from typing import Protocol
        class Runs(Protocol): ...
        class Real:
            def __init__(self, a): ...
        class X(Runs, Real): ...
        """,
        "(a)",
        id="a protocol steps aside",
    ),
    pytest.param(
        """
        from enum import Enum
        class X(Enum):
            A = 1
        """,
        "(value)",
        id="a member is looked up by its value",
    ),
    pytest.param(
        """
        from typing import TypedDict
        class X(TypedDict):
            a: int
        """,
        "(*args, **kwargs)",
        id="a typed dictionary is a dictionary",
    ),
    pytest.param("class X(ValueError): ...", "(*args)", id="an exception keeps its arguments"),
    pytest.param(
        """
        from typing_extensions import deprecated
        @deprecated("no")
        class X:
            def __init__(self, a): ...
        """,
        "(a)",
        id="a deprecated class",
    ),
    pytest.param(
        """
        from pydantic import BaseModel, Field
        class X(BaseModel):
            a: int
            b: int = Field(alias="c")
        """,
        "(*, a: int, c: int, **data) -> None",
        id="a model drops what it does not know",
    ),
    pytest.param(
        """
        from pydantic import BaseModel, ConfigDict, Field
        class X(BaseModel):
            model_config = ConfigDict(extra="forbid", populate_by_name=True)
            a: int
            b: int = Field(alias="c")
        """,
        "(*, a: int, c: int = ..., **data) -> None",
        id="a field that two names fill",
    ),
    pytest.param(
        """
        from kit.other import Base
        class X(Base):
            def __init__(self, a): ...
        """,
        "(a)",
        id="an __init__ before a base that can't be seen is certain",
    ),
    pytest.param(
        """
        import kit_outside
        class X(kit_outside.Base):
            def __init__(self, a): ...
        """,
        "(a)",
        id="an __init__ before an outside base is certain",
    ),
]
OTHER = """
    import hidden
    def wrap(cls=None, *, option=0):
        def decorate(cls):
            return _wrap(cls, option)
        return decorate if cls is None else decorate(cls)
    def _wrap(cls, option):
        before = cls.__init__
        def __init__(self, *, config=None, prefix="", **kwargs):
            before(self, **kwargs)
        cls.__init__ = __init__
        return cls
    Base = hidden.make()
"""


@pytest.mark.parametrize(("source", "expected"), MEETS)
def test_what_a_call_meets(source: str, expected: str) -> None:
    assert written(source, "X", other=OTHER) == expected


UNTOLD = [
    pytest.param("import kit_outside\nclass X(kit_outside.Base): ...", "outside the target: base kit_outside.Base"),
    pytest.param("from kit.other import Base\nclass X(Base): ...", "base: result of hidden"),
    pytest.param("class X(dict): ...", "constructor of builtins.dict"),
    pytest.param("class X(OSError): ...", "constructor of builtins.OSError"),
    pytest.param("import ray\n@ray.remote\nclass X:\n    def __init__(self, a): ...", "class decorator ray.remote"),
    pytest.param(
        "from kit.other import Base\n@Base.register\nclass X:\n    def __init__(self, a): ...",
        "class decorator Base.register",
    ),
    pytest.param(
        "def swap(cls):\n    return make(cls)[0]\n@swap\nclass X:\n    def __init__(self, a): ...",
        "class decorator swap",
    ),
    pytest.param(
        "class Meta(type):\n    def __call__(cls, *args, **kwargs): ...\nclass X(metaclass=Meta):\n    a = 1",
        "metaclass with Meta.__call__",
    ),
    pytest.param("import meta\nclass X(metaclass=meta.Meta):\n    a = 1", "outside the target: metaclass meta.Meta"),
    pytest.param("class X:\n    __init__ = make()", "X.__init__ made by a call"),
    pytest.param(
        "from dataclasses import dataclass\nfrom kit.other import Base\n@dataclass\nclass X(Base):\n    a: int",
        "base: result of hidden",
    ),
    pytest.param("class X(X): ...", "base: class that derives from itself"),
    pytest.param(
        "from typing import TypeVar\nT = TypeVar('T')\ndef wrap(cls: T) -> T: ...\n"
        "class Y:\n    def __init__(self, a): ...\nclass X(wrap(Y)): ...",
        "base that a function makes",
    ),
]


@pytest.mark.parametrize(("source", "reason"), UNTOLD)
def test_what_can_not_be_told_says_why(source: str, reason: str) -> None:
    assert written(source, "X", other=OTHER) == reason


def test_who_raises_and_who_keeps_silent() -> None:
    source = """
        from typing import TypedDict
        from pydantic import BaseModel, ConfigDict
        from pydantic.dataclasses import dataclass
        class Plain: ...
        class Keys(TypedDict): ...
        class Drops(BaseModel): ...
        class Refuses(BaseModel, extra="forbid"): ...
        class Keeps(BaseModel):
            model_config = ConfigDict(extra="allow")
        @dataclass
        class Data: ...
        @dataclass(config=ConfigDict(extra="forbid"))
        class Strict: ...
    """
    found = {
        name: (callee.raises, callee.drops_keywords)
        for name, callee in callees(source).items()
        if isinstance(callee, Callee)
    }
    assert found == {
        "Plain": ("TypeError", False),
        "Keys": ("", False),
        "Drops": ("ValidationError", True),
        "Refuses": ("ValidationError", False),
        "Keeps": ("ValidationError", False),
        "Data": ("ValidationError", True),
        "Strict": ("ValidationError", False),
    }


def test_symbol_and_place() -> None:
    source = "from kit.other import Base\nclass Child(Base):\n    pass\n"
    other = "\n\nclass Base:\n    def __init__(self, a): ...\n"
    callee = callees(source, other=other)["Child"]
    assert isinstance(callee, Callee)
    assert callee.symbol == "kit.core.Child.__init__"
    assert (callee.path, callee.line, callee.name) == ("kit/other.py", 4, "Base.__init__")


# Any hierarchy of dataclasses.

NAMES = ("a", "b", "c", "d", "e")
VALUES = ("", " = 1", " = field(default=2)", " = field(default_factory=int)", " = field(kw_only=True)",
          " = field(default=3, kw_only=False)", " = field(init=False, default=4)")  # fmt: skip
ANNOTATIONS = ("int", "InitVar[int]", "ClassVar[int]", "'int'", "list[int]")
fields = st.tuples(st.sampled_from(NAMES), st.sampled_from(ANNOTATIONS), st.sampled_from(VALUES)).map(
    lambda parts: f"{parts[0]}: {parts[1]}{parts[2]}"
)
lines = st.lists(st.one_of(fields, fields, fields, st.sampled_from(("_: KW_ONLY", "a = 5", "b = 6"))), max_size=5)
decorators = st.sampled_from(
    ("", "@dataclass", "@dataclass", "@dataclass(kw_only=True)", "@dataclass(init=False)", "@dataclass(slots=True)")
)
bases = st.lists(st.sampled_from(("A", "B", "C")), max_size=2, unique=True)


@st.composite
def hierarchies(draw: st.DrawFn) -> str:
    """The source of four classes, each of which may derive from those before it."""
    parts = ["from dataclasses import KW_ONLY, InitVar, dataclass, field", "from typing import ClassVar"]
    for index, name in enumerate("ABCD"):
        parents = [base for base in draw(bases) if base in "ABCD"[:index]]
        body = draw(lines) or ["pass"]
        parts += [draw(decorators), f"class {name}({', '.join(parents)}):", *(f"    {line}" for line in body)]
    return "\n".join(parts)


@given(hierarchies())
@settings(max_examples=150, deadline=None)
def test_any_hierarchy_of_dataclasses(source: str) -> None:
    module = ModuleType("any_hierarchy")
    sys.modules["any_hierarchy"] = module
    try:
        exec(compile(source, "any_hierarchy", "exec", dont_inherit=True), module.__dict__)
    except (TypeError, ValueError, AttributeError):
        # Python refuses it: a field without a default after one that has one, bases in no order.
        return
    finally:
        del sys.modules["any_hierarchy"]
    for name, callee in callees(source).items():
        assert shape(seen(callee)) == shape(signature_of(getattr(module, name))), name
