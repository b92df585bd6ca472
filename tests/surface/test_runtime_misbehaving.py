"""The runtime surface of targets whose import raises, crashes, hangs or makes a mess."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.surface import interpreter as interpreter_module

from .probing import GOOD, HOLD, Ask, is_free, until

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
    until(lambda: is_free(lock))


def test_an_answer_too_large_is_cut(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter_module, "ANSWER_LIMIT", 20_000)
    source = "".join(f"def f{number}(a, b, c): ...\n" for number in range(2000))
    surface = ask({**GOOD, "large.py": source}, ("good.f",), ("large", "good"))
    assert surface.symbols["good.f"].status == "found"
    assert surface.modules["large"].failure is not None
    assert surface.notice is not None
    assert "larger than" in surface.notice
