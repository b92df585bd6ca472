"""The benchmark of labelled calls, on a handful of them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.binder import QUESTIONS, Score, load, summary, table, wrong

KIND = "positional-or-keyword"
SIGNATURES = [
    [{"name": "a", "kind": KIND}, {"name": "b", "kind": KIND, "default": "None"}],
    [{"name": "a", "kind": KIND}],
    [{"name": "b", "kind": KIND, "default": "None"}, {"name": "a", "kind": KIND, "default": "None"}],
    [{"name": "a", "kind": KIND}, {"name": "b", "kind": KIND, "default": "<no_default>"}],
    [{"name": "a", "kind": KIND}, {"name": "more", "kind": "var-keyword"}],
]
COLUMNS = ["library", "api", "case", "call", "old_signature", "new_signature", "compatible", "runs"]
CASES = [
    ["first", "first.f", "f#1", "f(1)", 0, 1, True, True],
    ["first", "first.f", "f#2", "f(1, 2)", 0, 1, False, False],
    ["first", "first.g", "g#1", "g(1)", 0, 2, False, True],
    ["first", "first.g", "g#2", "g(None)", 0, 2, False, True],
    ["second", "second.h", "h#1", "h(1, None)", 0, 3, False, False],
    ["second", "second.h", "h#2", "h(1, b=None)", 0, 3, True, True],
    ["second", "second.k", "k#1", "k(1, b=2)", 0, 4, False, False],
    ["third", "third.l", "l#1", "l(1)", 0, 0, True, True],
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "calls.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"signatures": SIGNATURES, "columns": COLUMNS, "cases": CASES}).encode()))
    return path


def test_scores(data: Path) -> None:
    cases = load(data)
    assert [Score.of(cases, question) for question in range(len(QUESTIONS))] == [
        Score(hits=1, alarms=0, misses=4),
        Score(hits=2, alarms=0, misses=3),
        Score(hits=3, alarms=0, misses=2),
        Score(hits=4, alarms=1, misses=1),
        Score(hits=5, alarms=1, misses=0),
    ]
    with_warnings = Score.of(cases, 3)
    assert (with_warnings.precision, with_warnings.recall, with_warnings.f1) == (0.8, 0.8, 0.8)
    assert Score().f1 == Score().precision == Score().recall == 1


def test_tables(data: Path) -> None:
    cases = load(data)
    assert "8 calls of 5 functions in 3 libraries; 5 break" in summary(cases)
    lines = table(cases, lambda case: case.library)
    assert [line.split()[:3] for line in lines[1:3]] == [["first", "4", "3"], ["second", "3", "2"]]
    assert lines[-1].startswith("and 1 more with 1 calls")
    assert [line for line in wrong(cases, 3) if not line.startswith(" ")] == [
        "missed, raises: second.k: k(1, b=2) [unknown-argument]",
        "false alarm: second.h: h(1, b=None) [sentinel-none]",
    ]


def test_bad_data_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    path.write_text('{"signatures": []}')
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "benchmarks.binder", str(path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"{path}: no labelled calls: KeyError: 'cases'"]
