"""The runtime surface, probed in a real interpreter over small packages that each test writes."""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import venv
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.model import ParameterKind
from driftcheck.progress import Task, Unit
from driftcheck.surface import interpreter as interpreter_module
from driftcheck.surface.runtime import RuntimeSurface, RuntimeSymbol, probe

Ask = Callable[..., RuntimeSurface]


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """The folder that stands on the probed interpreter's path."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    return folder


@pytest.fixture
def ask(packages: Path) -> Ask:
    """Writes files, then probes symbols and modules among them."""

    def _ask(
        files: Mapping[str, str],
        symbols: tuple[str, ...] = (),
        modules: tuple[str, ...] = (),
        timeout: float = 60.0,
        patience: float | None = None,
        cache_folder: Path | None = None,
        program: str | Path = sys.executable,
    ) -> RuntimeSurface:
        for name, text in files.items():
            path = packages / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), "utf-8")
        return probe(
            program,
            symbols,
            modules,
            timeout=timeout,
            patience=patience,
            cache_folder=cache_folder,
            cache_key="a hash" if cache_folder else None,
            environment={"PYTHONPATH": str(packages)},
        )

    return _ask


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


# --- what is there and what is not ----------------------------------------------------------------------------------


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
        ("object()", "<object object>"),
        ("print", "print"),
        ("lambda: 0", "<lambda>"),
        ("{3, 1, 2}", "{1, 2, 3}"),
        ("frozenset()", "frozenset()"),
        ("(1,)", "(1,)"),
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
        import os, pathlib, re
        itself = []
        itself.append(itself)
        class Text(str): ...
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


# --- imports that misbehave -----------------------------------------------------------------------------------------

GOOD = {"good.py": "def f(a): ...", "zebra.py": "def f(b): ..."}
AROUND = ("good.f", "bad.f", "zebra.f")


@pytest.mark.parametrize(
    ("source", "exception"),
    [
        ("raise ValueError('no GPU')", "ValueError"),
        ("import sys; sys.exit('bye')", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(:", "SyntaxError"),
        ("input()", "EOFError"),
        ("def r(n): return r(n + 1)\nr(0)", "RecursionError"),
        ("class E(Exception):\n    def __str__(self): raise E\nraise E", "E"),
        ("import argparse; argparse.ArgumentParser().parse_args(['--x'])", "SystemExit"),
        ("b'\\xff'; import no_such_thing.deep", "ModuleNotFoundError"),
    ],
)
def test_an_import_that_raises_is_an_answer(ask: Ask, source: str, exception: str) -> None:
    surface = ask({**GOOD, "bad.py": source}, AROUND)
    assert [surface.symbols[name].status for name in AROUND] == ["found", "failed", "found"]
    assert [failure.exception for failure in surface.failures] == [exception]
    assert surface.processes == 1


@pytest.mark.parametrize(
    ("source", "exception", "message"),
    [
        ("import os; os._exit(3)", "Exit", "the interpreter ended with status 3"),
        ("import os; os._exit(0)", "Exit", "the interpreter ended with status 0"),
        ("import ctypes; ctypes.string_at(0)", "Crash", "the interpreter was killed by SIGSEGV"),
        ("import os; os.abort()", "Crash", "the interpreter was killed by SIGABRT"),
        ("import time; time.sleep(600)", "Timeout", "did not finish within 2 s"),
        ("import os\nwhile True: os.write(2, b'x' * 4096)", "Timeout", "did not finish within 2 s"),
        (
            "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.pause()",
            "Timeout",
            "did not finish within 2 s",
        ),
    ],
)
def test_an_import_that_ends_the_process_loses_itself_only(ask: Ask, source: str, exception: str, message: str) -> None:
    surface = ask({**GOOD, "bad.py": source}, AROUND, ("bad", "good"), patience=2.0)
    assert [surface.symbols[name].status for name in AROUND] == ["found", "failed", "found"]
    (failure,) = surface.failures
    assert (failure.subject, failure.exception, failure.message) == ("bad", exception, message)
    assert surface.modules["bad"].failure == failure
    assert [symbol.name for symbol in surface.modules["good"].symbols] == ["f"]
    assert surface.processes == 2


@pytest.mark.parametrize(
    "source",
    [
        "print('garbage' * 100)",
        "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65536); sys.stderr.write('y' * 65536)",
        'import os; os.write(1, b\'\\xff{"record": "end"}\')',
        "import os; os.closerange(0, 100)",
        "import sys; sys.stdout = sys.stderr = None",
        "import os\nif os.fork() == 0: pass",
        "import os; os.chdir('/')",
        "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
        "import atexit, time; atexit.register(time.sleep, 600)",
        "import warnings; warnings.simplefilter('error')",
        "import sys; sys.path[:] = []",
        "import sys; sys.setrecursionlimit(120)",
        "import sys; sys.modules.pop('json'); sys.argv[:] = ['x', 'y']",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (600, 600))",
    ],
)
def test_an_import_that_misbehaves_spoils_nothing(ask: Ask, source: str) -> None:
    surface = ask({**GOOD, "bad.py": source + "\ndef f(c): ..."}, ("good.f", "bad.f"))
    assert [str(symbol.signature) for symbol in surface.symbols.values()] == ["(a)", "(c)"]
    assert (surface.failures, surface.notice, surface.processes) == ((), None, 1)


def test_a_symbol_that_kills_or_hangs(ask: Ask) -> None:
    source = """
        import os, time
        def __getattr__(name):
            if name == "kills": os._exit(9)
            if name == "hangs": time.sleep(600)
            raise AttributeError(name)
        def f(a): ...
    """
    surface = ask({"mine.py": source}, ("mine.kills", "mine.f", "mine.hangs", "mine.gone"), patience=2.0)
    assert [symbol.status for symbol in surface.symbols.values()] == ["failed", "found", "failed", "missing"]
    assert [failure.exception for failure in surface.failures] == ["Timeout", "Exit"]
    assert surface.processes == 3


def test_deaths_are_bounded(ask: Ask) -> None:
    files = {f"bad{number}.py": "import os; os._exit(1)" for number in range(20)}
    surface = ask({**files, **GOOD}, (*(f"bad{number}.f" for number in range(20)), "good.f"))
    statuses = [symbol.status for symbol in surface.symbols.values()]
    assert statuses == ["failed"] * surface.processes + ["unexamined"] * (21 - surface.processes)
    assert surface.processes < 10
    assert surface.notice is not None


def test_the_whole_is_bounded_in_time(ask: Ask) -> None:
    slow = {f"slow{number}.py": "import time; time.sleep(0.4)" for number in range(200)}
    surface = ask(slow, tuple(f"slow{number}.x" for number in range(200)), timeout=2.0)
    statuses = [symbol.status for symbol in surface.symbols.values()]
    assert statuses[0] == "missing"
    assert statuses[-1] == "unexamined"
    assert surface.notice is not None
    assert "limit of 2 s" in surface.notice


HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True)"


def test_what_an_import_started_ends_with_it(ask: Ask, packages: Path) -> None:
    lock = packages / "lock"
    source = f"""
        import subprocess, sys
        command = [sys.executable, "-c", {HOLD + "; time.sleep(600)"!r}, {str(lock)!r}]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"held\\n"
        def f(): ...
    """
    assert ask({"mine.py": source}, ("mine.f",)).symbols["mine.f"].status == "found"
    _until(lambda: _is_free(lock))


def test_an_answer_too_large_is_cut(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter_module, "ANSWER_LIMIT", 20_000)
    source = "".join(f"def f{number}(a, b, c): ...\n" for number in range(2000))
    surface = ask({**GOOD, "large.py": source}, ("good.f",), ("large", "good"))
    assert surface.symbols["good.f"].status == "found"
    assert surface.modules["large"].failure is not None
    assert surface.notice is not None
    assert "larger than" in surface.notice


# --- where it runs --------------------------------------------------------------------------------------------------


def test_the_working_folder_shadows_nothing(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name in ("good.py", "json.py", "inspect.py", "sitecustomize.py"):
        (here / name).write_text("raise RuntimeError('shadowed')")
    monkeypatch.chdir(here)
    assert ask(GOOD, ("good.f",)).symbols["good.f"].status == "found"


def test_the_probe_s_own_folder_shadows_nothing(ask: Ask) -> None:
    surface = ask({}, ("types.ModuleType", "runtime", "probe", "driftcheck"))
    assert surface.symbols["types.ModuleType"].status == "found"
    assert [surface.symbols[name].status for name in ("runtime", "probe")] == ["missing", "missing"]


def test_a_relative_path_of_the_user_keeps_its_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mine.py").write_text("def f(a): ...")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "lib")
    assert probe(sys.executable, ["mine.f"]).symbols["mine.f"].status == "found"


def test_imports_write_nothing_where_the_user_is(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert ask({"mine.py": "open('litter', 'w')\ndef f(): ..."}, ("mine.f",)).symbols["mine.f"].status == "found"
    assert list(here.iterdir()) == []


def test_an_environment_s_python_sees_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "environment", symlinks=True, with_pip=False)
    (site_packages,) = tmp_path.glob("environment/lib/python3.*/site-packages")
    (site_packages / "mine.py").write_text("def f(a): ...")
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "cache"
    first, second = (
        probe("environment/bin/python", ["mine.f"], cache_folder=cache, cache_key="a hash") for _ in range(2)
    )
    assert str(first.symbols["mine.f"].signature) == "(a)"
    assert first.symbols["mine.f"].path == "mine.py"
    assert second.processes == 0
    (site_packages / "torch").mkdir()
    assert probe("environment/bin/python", ["mine.f"], cache_folder=cache, cache_key="a hash").processes == 1


@pytest.mark.parametrize("minor", [9, 10, 11, 12, 13])
def test_the_user_s_settings_of_python_are_kept(ask: Ask, monkeypatch: pytest.MonkeyPatch, minor: int) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("PYTHONINSPECT", "1")
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    assert ask(GOOD, ("good.f",), program=_python(minor)).symbols["good.f"].status == "found"


def test_an_empty_entry_of_the_path_is_not_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shadow_of_something.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep)
    assert probe(sys.executable, ["shadow_of_something"]).symbols["shadow_of_something"].status == "missing"


def test_an_interrupted_audit_leaves_nothing_running(packages: Path) -> None:
    lock = packages / "lock"
    source = (
        f"import sys; sys.argv = ['', {str(lock)!r}]; {HOLD}; open({str(packages / 'held')!r}, 'w'); time.sleep(600)"
    )
    (packages / "mine.py").write_text(source)
    code = f"import sys; from driftcheck.surface.runtime import probe; probe({sys.executable!r}, ['mine.f'])"
    path = os.pathsep.join([str(packages), str(Path(interpreter_module.__file__).parents[2])])
    audit = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL
    )
    _until((packages / "held").exists)
    assert not _is_free(lock)
    audit.send_signal(signal.SIGINT)
    audit.wait(30)
    _until(lambda: _is_free(lock))


def test_progress_is_told(packages: Path) -> None:
    (packages / "mine.py").write_text("def f(): ...")
    watched = _Watched()
    names = ["mine.f", "mine.g"]
    probe(sys.executable, names, ["mine"], environment={"PYTHONPATH": str(packages)}, progress=watched)
    assert (watched.total, watched.done) == (3, 3)


class _Watched:
    """Progress that counts."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    def task(self, description: str, total: int | None = None, *, unit: Unit = "items") -> AbstractContextManager[Task]:
        self.total = total
        return nullcontext(self)

    def advance(self, amount: int = 1) -> None:
        self.done += amount


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("waited in vain")


def _is_free(lock: Path) -> bool:
    """Whether the process that held the lock has ended."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo garbage; echo more garbage >&2; exit 4", "more garbage"),
        ("exit 0", "does not answer as Python does"),
        ("kill -9 $$", "SIGKILL"),
        ('echo garbage > "$3"', "does not answer as Python does"),
        ("""echo '{"record": "start", "python": [3, 8, 1]}' > "$3" """, "Python 3.8.1"),
        ("""echo '{"record": "start", "python": "new"}' > "$3" """, "does not answer as Python does"),
        ("exec sleep 60", "did not start"),
    ],
)
def test_a_program_that_is_not_python(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    monkeypatch.setattr(interpreter_module, "START_PATIENCE", 1.0)
    with pytest.raises(DriftcheckError, match=said) as raised:
        ask(GOOD, ("good.f",), program=_program(tmp_path / "python", script))
    assert "\n" not in str(raised.value)
    assert "--python" in str(raised.value)


@pytest.mark.parametrize("name", ["absent/python", "no-such-program-on-the-path", ".", "plain-file", "not-a-program"])
def test_an_interpreter_that_can_t_be_run(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "plain-file").write_text("")
    (tmp_path / "not-a-program").write_bytes(b"\x00\x01")
    (tmp_path / "not-a-program").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DriftcheckError, match="--python"):
        ask(GOOD, ("good.f",), program=name if "-on-" in name or "/" in name else f"./{name}")


def test_garbage_in_the_answer_costs_only_itself(ask: Ask) -> None:
    source = """
        import glob, os, sys, tempfile
        for path in glob.glob(os.path.join(tempfile.gettempdir(), "driftcheck-*", "answer")):
            if os.path.dirname(path) == os.path.dirname(os.getcwd()):
                open(path, "a").write('garbage\\n[1]\\n{"record": "symbol", "answer": {"name": "mine.g"}}\\n' "\\0" '{"record": 5}\\n')
        def f(a): ...
    """
    surface = ask({**GOOD, "mine.py": source}, ("mine.f", "good.f"))
    assert [symbol.status for symbol in surface.symbols.values()] == ["found", "found"]


# --- what is remembered ---------------------------------------------------------------------------------------------


@pytest.fixture
def counted(tmp_path: Path) -> tuple[Path, Callable[[], int]]:
    """An interpreter that counts how often it is started."""
    log = tmp_path / "started"
    log.touch()
    program = _program(tmp_path / "python", f'echo >> "{log}"\nexec "{sys.executable}" "$@"')
    return program, lambda: log.read_text().count("\n")


Counted = tuple[Path, Callable[[], int]]


def test_known_answers_start_no_process(ask: Ask, tmp_path: Path, counted: Counted) -> None:
    program, starts = counted
    cache = tmp_path / "cache"
    first = ask(GOOD, ("good.f", "good.gone"), ("zebra",), cache_folder=cache, program=program)
    assert (first.processes, starts()) == (1, 1)
    second = ask(GOOD, ("good.f", "good.gone"), ("zebra",), cache_folder=cache, program=program)
    assert (second.processes, starts()) == (0, 1)
    assert (second.symbols, second.modules, second.python) == (first.symbols, first.modules, first.python)
    third = ask(GOOD, ("zebra.f", "good.f"), cache_folder=cache, program=program)
    assert [symbol.status for symbol in third.symbols.values()] == ["found", "found"]
    assert starts() == 2
    ask(GOOD, ("zebra.f", "good.gone", "good.f"), cache_folder=cache, program=program)
    assert starts() == 2


def test_failures_are_asked_for_again(ask: Ask, tmp_path: Path, counted: Counted) -> None:
    program, starts = counted
    cache = tmp_path / "cache"
    for expected in (1, 2):
        surface = ask(
            {**GOOD, "bad.py": "raise OSError"}, ("good.f", "bad.f"), ("bad",), cache_folder=cache, program=program
        )
        assert surface.symbols["bad.f"].status == "failed"
        assert surface.modules["bad"].failure is not None
        assert starts() == expected


def test_an_installation_makes_it_ask_again(ask: Ask, packages: Path, tmp_path: Path, counted: Counted) -> None:
    program, starts = counted
    cache = tmp_path / "cache"
    ask(GOOD, ("good.f",), cache_folder=cache, program=program)
    (packages / "another.dist-info").mkdir()
    os.utime(packages, ns=(1, 1))
    assert ask(GOOD, ("good.f",), cache_folder=cache, program=program).processes == 1
    assert starts() == 2


@pytest.mark.parametrize(
    "damage", ["", "null", "[]", '{"answers"', '{"answers": {"good.f": 3}}', "\x00\xff", "[" * 100_000]
)
def test_a_damaged_cache_heals(ask: Ask, tmp_path: Path, counted: Counted, damage: str) -> None:
    program, starts = counted
    cache = tmp_path / "cache"
    ask(GOOD, ("good.f",), cache_folder=cache, program=program)
    (file,) = (cache / "runtime").iterdir()
    file.write_text(damage)
    assert ask(GOOD, ("good.f",), cache_folder=cache, program=program).symbols["good.f"].status == "found"
    assert starts() == 2
    ask(GOOD, ("good.f",), cache_folder=cache, program=program)
    assert starts() == 2


def test_a_damaged_record_in_the_cache_is_a_failure(ask: Ask, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    ask(GOOD, ("good.f",), cache_folder=cache)
    (file,) = (cache / "runtime").iterdir()
    content = json.loads(file.read_text())
    content["answers"]["good.f"]["signature"] = {"parameters": [["a", 99, None]]}
    file.write_text(json.dumps(content))
    assert ask(GOOD, ("good.f",), cache_folder=cache).symbols["good.f"].status == "failed"


def test_a_cache_that_can_t_be_written_is_done_without(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    assert ask(GOOD, ("good.f",), cache_folder=tmp_path / "cache").symbols["good.f"].status == "found"


def test_parallel_audits_share_a_cache(ask: Ask, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    files = {f"m{number}.py": "def f(a): ..." for number in range(6)}
    ask(files, (), cache_folder=cache)
    surfaces: list[RuntimeSurface] = []
    threads = [
        threading.Thread(target=lambda name=f"m{number}.f": surfaces.append(ask({}, (name,), cache_folder=cache)))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [symbol.status for surface in surfaces for symbol in surface.symbols.values()] == ["found"] * 6
    assert [path.suffix for path in (cache / "runtime").iterdir()] == [".json"]


def test_the_cache_stays_small(ask: Ask, tmp_path: Path, packages: Path) -> None:
    cache = tmp_path / "cache" / "runtime"
    cache.mkdir(parents=True)
    for number in range(100):
        (cache / f"{number}.json").write_text("{}")
        os.utime(cache / f"{number}.json", (number, number))
    ask(GOOD, ("good.f",), cache_folder=cache.parent)
    assert len(list(cache.iterdir())) == 64


def test_the_same_question_gets_the_same_answer(ask: Ask) -> None:
    files = {"kinds.py": CALLABLES}
    assert ask(files, modules=("kinds",)) == ask(files, modules=("kinds",))


# --- other Pythons --------------------------------------------------------------------------------------------------


def _python(minor: int) -> Path:
    """A Python 3.minor of this machine, by its name or from pyenv's folder; skips the test where there is none."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = shutil.which(f"python3.{minor}")
    for candidate in [*sorted(root.glob(f"versions/3.{minor}.*/bin/python")), *([Path(named)] if named else [])]:
        said = subprocess.run(
            [candidate, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True, check=False
        )
        if said.stdout.strip() == str(minor):
            return candidate
    pytest.skip(f"no Python 3.{minor} here")


@pytest.mark.parametrize("minor", [9, 10, 11, 12, 13, 14])
def test_every_python_that_a_target_may_run_on(ask: Ask, minor: int) -> None:
    source = """
        import dataclasses, functools
        @dataclasses.dataclass
        class Data:
            a: int
            b: "Nowhere" = 1
            c: int = dataclasses.field(init=False)
            def method(self, x, *, y=None) -> "Data": ...
            @classmethod
            def klass(cls, z): ...
            @functools.cached_property
            def kept(self) -> int: ...
        def f(a, /, *, b: int = 1): ...
    """
    names = ("mine.Data", "mine.Data.method", "mine.Data.klass", "mine.Data.c", "mine.Data.kept", "mine.f")
    surface = ask({"mine.py": source}, names, ("mine",), program=_python(minor))
    assert [str(symbol.signature) if symbol.signature else symbol.kind for symbol in surface.symbols.values()] == [
        "(a: int, b: Nowhere = 1) -> None",
        "(x, *, y=None) -> Data",
        "(z)",
        "declared",
        "property",
        "(a, /, *, b: int = 1)",
    ]
    assert surface.python is not None
    assert surface.python.startswith(f"3.{minor}.")
    assert surface.notice is None


@pytest.mark.parametrize("minor", [6, 7, 8])
def test_a_python_that_is_too_old(ask: Ask, minor: int) -> None:
    with pytest.raises(DriftcheckError, match="3.9 or later"):
        ask(GOOD, ("good.f",), program=_python(minor))
