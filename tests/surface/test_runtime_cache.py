"""What the runtime surface remembers."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from driftcheck.surface.runtime import RuntimeSurface

from .probing import GOOD, Ask, write_program


@pytest.fixture
def counted(tmp_path: Path) -> tuple[Path, Callable[[], int]]:
    """An interpreter that counts how often it is started."""
    log = tmp_path / "started"
    log.touch()
    program = write_program(tmp_path / "python", f'echo >> "{log}"\nexec "{sys.executable}" "$@"')
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
