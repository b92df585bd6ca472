"""What `driftcheck surface` prints."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.inspection import describe

KIT = {
    "kit/__init__.py": "from kit.core import LIMIT, Engine, helper\n__all__ = ['Engine', 'helper', 'LIMIT']\n",
    "kit/core.py": """
        from dataclasses import dataclass

        LIMIT: int = 16
        TABLE = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9}

        def helper(a, b=1) -> int: ...

        class Base:
            kind: str = "base"
            def stop(self, now=False) -> None: ...

        class Engine(Base):
            def __init__(
                self, model: str, *, seed: int = 0, tensor_parallel_size: int = 1, dtype: str = "auto",
                quantization: str | None = None,
            ) -> None:
                self.model = model
            def run(self, prompt: str) -> str: ...
            @property
            def size(self) -> int: ...
            @classmethod
            def load(cls, path): ...
            @staticmethod
            def check(path): ...
            def _hidden(self): ...

        @dataclass
        class Options:
            a: int
            b: int = 2
    """,
}


@pytest.fixture
def kit(tmp_path: Path) -> str:
    """The folder of a small package."""
    for name, text in KIT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
    return str(tmp_path / "kit")


def shown(kit: str, symbol: str | None = None) -> str:
    return "\n".join(describe(kit, symbol))


def test_a_class(kit: str) -> None:
    assert shown(kit, "kit.Engine") == textwrap.dedent(
        """\
        class kit.core.Engine
          asked for as kit.Engine
          kit/core.py:13 in kit
          derives from kit.core.Base

          Engine(
              model: str,
              *,
              seed: int = 0,
              tensor_parallel_size: int = 1,
              dtype: str = 'auto',
              quantization: str | None = None,
          ) -> None

          static method check(path)
          attribute     kind  str = 'base'  (of kit.core.Base)
          class method  load(path)
          attribute     model  = model
          method        run(prompt: str) -> str
          property      size  -> int
          method        stop(now=False) -> None  (of kit.core.Base)"""
    )


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        (
            "kit.helper",
            "function kit.core.helper\n  asked for as kit.helper\n  kit/core.py:7 in kit\n\n  helper(a, b=1) -> int",
        ),
        ("kit.core.Engine.run", "method kit.core.Engine.run\n  kit/core.py:19 in kit\n\n  run(prompt: str) -> str"),
        (
            "kit.Engine.stop",
            (
                "method kit.core.Base.stop\n  asked for as kit.Engine.stop\n  kit/core.py:11 in kit\n\n"
                "  stop(now=False) -> None"
            ),
        ),
        ("kit.core.Engine.size", "property kit.core.Engine.size\n  kit/core.py:21 in kit\n  -> int"),
        ("kit.LIMIT", "attribute kit.core.LIMIT\n  asked for as kit.LIMIT\n  kit/core.py:4 in kit\n  int = 16"),
        ("kit.core.TABLE", "attribute kit.core.TABLE\n  kit/core.py:5 in kit\n  = …"),
        ("kit.core:Engine.model", "attribute kit.core.Engine.model\n  kit/core.py:18 in kit\n  = model"),
    ],
)
def test_other_symbols(kit: str, symbol: str, expected: str) -> None:
    assert shown(kit, symbol) == expected


def test_a_module_and_the_whole(kit: str) -> None:
    module = shown(kit, "kit.core")
    assert module.startswith("module kit.core\n  kit/core.py:1 in kit\n\n  attribute     LIMIT  int = 16\n")
    assert "  class         Options(a: int, b: int = 2) -> None" in module
    whole = shown(kit)
    assert whole.startswith("kit, folder: 2 modules, 0 compiled\n\nmodule kit\n")
    assert "  function      helper(a, b=1) -> int" in whole


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("kit.Engin", "kit has no kit.Engin: kit has no Engin; there is Engine"),
        ("kit.Engine.runn", "kit has no kit.Engine.runn: kit.core.Engine has no runn; there is run"),
        ("kit.nowhere.x", "kit has no kit.nowhere.x: kit has no nowhere"),
        ("other.thing", "other.thing is not part of kit, which has kit"),
    ],
)
def test_what_is_not_there(kit: str, symbol: str, message: str) -> None:
    with pytest.raises(DriftcheckError) as raised:
        shown(kit, symbol)
    assert str(raised.value) == message


def test_a_folder_has_no_interpreter_to_compare_with(kit: str) -> None:
    with pytest.raises(DriftcheckError, match="is no installed target, which --compare needs"):
        list(describe(kit, compare=True))


def test_comparison_by_the_command(
    kit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (site,) = environment.glob("lib/python3*/site-packages")
    Path(kit).rename(site / "kit")
    (site / "kit" / "odd.py").write_text("def f(a): ...\ng = f\ndef h(a): ...\nh.__wrapped__ = lambda: None\n", "utf-8")
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path / "cache"))
    arguments = ["surface", "kit", "--compare", "--python", str(environment / "bin" / "python")]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kit: 11 public callables in 3 modules"
    assert lines[1] == "10 agree (90.91%), 1 differ, 0 are left open"
    assert lines[2:] == [
        "     1  parameters that the interpreter does not see",
        "",
        "function kit.odd.h  kit/odd.py:3",
        "    parameters that the interpreter does not see",
        "    sources      (a)",
        "    interpreter  ()",
    ]
    for symbol, expected in [
        ("kit.core", "kit: 8 public callables in 1 module\n8 agree (100.00%), 0 differ, 0 are left open\n"),
        ("kit.core.Engine", "kit: 4 public callables in 1 module\n4 agree (100.00%), 0 differ, 0 are left open\n"),
    ]:
        assert main([*arguments[:2], symbol, *arguments[2:]]) == 0
        assert capsys.readouterr().out == expected
    assert main([*arguments[:2], "kit.core.Nothing", *arguments[2:]]) == 2
    assert capsys.readouterr().err == "driftcheck: kit defines no Nothing in kit.core\n"
