"""The runtime surface and the interpreter: where it runs, what is no interpreter, other Pythons."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.progress import Task, Unit
from driftcheck.surface import interpreter as interpreter_module
from driftcheck.surface.runtime import probe

from .probing import GOOD, HOLD, Ask, is_free, python_of, until, write_program


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
    assert ask(GOOD, ("good.f",), program=python_of(minor)).symbols["good.f"].status == "found"


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
    until((packages / "held").exists)
    assert not is_free(lock)
    audit.send_signal(signal.SIGINT)
    audit.wait(30)
    until(lambda: is_free(lock))


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
def test_a_program_that_is_notpython(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    monkeypatch.setattr(interpreter_module, "START_PATIENCE", 1.0)
    with pytest.raises(DriftcheckError, match=said) as raised:
        ask(GOOD, ("good.f",), program=write_program(tmp_path / "python", script))
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
        import os
        with open(os.path.join(os.path.dirname(os.getcwd()), "answer"), "ab") as answer:
            answer.write(b'garbage\\n[1]\\n\\xff\\n{"record": 5}\\n{"record": "symbol", "answer": {"name": "x"}}\\n')
        def f(a): ...
    """
    surface = ask({**GOOD, "mine.py": source}, ("mine.f", "good.f"))
    assert [symbol.status for symbol in surface.symbols.values()] == ["found", "found"]


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
    surface = ask({"mine.py": source}, names, ("mine",), program=python_of(minor))
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
    with pytest.raises(DriftcheckError, match=r"3\.9 or later"):
        ask(GOOD, ("good.f",), program=python_of(minor))
