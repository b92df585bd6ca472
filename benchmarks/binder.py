"""How well binding alone foretells which calls a new release breaks: precision and recall on labelled calls.

Run it as `python -m benchmarks.binder DATA`, where DATA is a JSON file (gzipped or not) of the form

    {"signatures": [[{"name", "kind", "default"?}, ...], ...],
     "columns": ["library", "api", "case", "call", "old_signature", "new_signature", "compatible", "runs"],
     "cases": [[...], ...]}

with kinds named as in `inspect` and signatures given by their index. `compatible` says whether the call means the same
on the new release, `runs` whether it still runs there. Calls are put through the code that the audit uses.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftcheck.compare.bind import BindingProblem, bind
from driftcheck.compare.sentinel import sentinel_none
from driftcheck.compare.shift import positional_shift, swallowed_keyword
from driftcheck.model import Arguments, Certainty, Kind, Parameter, ParameterKind, Signature
from driftcheck.usage.arguments import arguments_of

QUESTIONS = (
    "bare binding",
    "+ likely shifts",
    "+ every positional-shift",
    "+ sentinel-none",
    "+ keywords into **kwargs",
)
"""Each adds to those before it. The audit calls a shift silent if it is certain or likely, else it warns of it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled call; `asked` says for each of QUESTIONS whether the call is foretold to break."""

    library: str
    function: str
    name: str
    call: str
    old: Signature
    new: Signature
    compatible: bool
    runs: bool
    asked: tuple[bool, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Breaks foretold, false alarms and breaks missed."""

    hits: int = 0
    alarms: int = 0
    misses: int = 0

    @classmethod
    def of(cls, cases: Iterable[Case], question: int) -> Score:
        """The score of the answers to one of QUESTIONS."""
        counts = Counter((case.asked[question], case.compatible) for case in cases)
        return cls(hits=counts[True, False], alarms=counts[True, True], misses=counts[False, False])

    @property
    def precision(self) -> float:
        """Of what was foretold, how much is true; 1 where nothing was foretold."""
        return self.hits / (self.hits + self.alarms) if self.hits + self.alarms else 1.0

    @property
    def recall(self) -> float:
        """Of what breaks, how much was foretold; 1 where nothing breaks."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        total = 2 * self.hits + self.alarms + self.misses
        return 2 * self.hits / total if total else 1.0


def judged(row: Mapping[str, Any], signatures: Sequence[Signature]) -> Case:
    """One case with its answers; raises TypeError for an expression that is no call."""
    expression = ast.parse(row["call"].strip(), mode="eval").body
    if not isinstance(expression, ast.Call):
        raise TypeError(f"{row['case']}: not a call: {row['call']}")
    arguments = arguments_of(expression)
    old, new = signatures[row["old_signature"]], signatures[row["new_signature"]]
    questions = (_binding, _likely_shift, positional_shift, sentinel_none, swallowed_keyword)
    problems = [question(old, new, arguments) for question in questions]
    return Case(
        library=row["library"],
        function=row["api"],
        name=row["case"],
        call=row["call"],
        old=old,
        new=new,
        compatible=row["compatible"],
        runs=row["runs"],
        asked=tuple(any(problems[: asked + 1]) for asked in range(len(problems))),
        kinds=tuple(problem.kind for answer in problems for problem in answer),
    )


def _binding(_old: Signature, new: Signature, arguments: Arguments) -> tuple[BindingProblem, ...]:
    return bind(new, arguments)


def _likely_shift(old: Signature, new: Signature, arguments: Arguments) -> tuple[BindingProblem, ...]:
    problems = positional_shift(old, new, arguments)
    return tuple(problem for problem in problems if problem.certainty is not Certainty.POSSIBLE)


def load(path: Path) -> list[Case]:
    """All cases of a file, judged; raises ValueError and OSError where it is no such file."""
    content = path.read_bytes()
    data = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    signatures = [
        Signature(
            tuple(Parameter(each["name"], ParameterKind(each["kind"]), each.get("default")) for each in parameters)
        )
        for parameters in data["signatures"]
    ]
    return [judged(dict(zip(data["columns"], row, strict=True)), signatures) for row in data["cases"]]


def summary(cases: Sequence[Case]) -> list[str]:
    """The figures over all cases, a line for each of QUESTIONS, and how many of the breaks still run."""
    breaks = [case for case in cases if not case.compatible]
    libraries = {case.library for case in cases}
    functions = {case.function for case in cases}
    lines = [
        f"{len(cases)} calls of {len(functions)} functions in {len(libraries)} libraries; {len(breaks)} break",
        f"{sum(case.runs for case in breaks)} of the breaks still run",
        "",
        f"{'':<26}{'hits':>7}{'alarms':>8}{'misses':>8}{'precision':>11}{'recall':>9}{'F1':>9}",
    ]
    for question, title in enumerate(QUESTIONS):
        score = Score.of(cases, question)
        lines.append(
            f"{title:<26}{score.hits:>7}{score.alarms:>8}{score.misses:>8}"
            f"{score.precision:>11.2%}{score.recall:>9.2%}{score.f1:>9.2%}"
        )
    return lines


def table(cases: Sequence[Case], key: Callable[[Case], str]) -> list[str]:
    """Breaks, and hits and alarms for each of QUESTIONS, a line for each group that has a break or an alarm."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[key(case)].append(case)
    width = max(map(len, groups), default=0)
    lines = [f"{'':<{width}}{'calls':>7}{'breaks':>8}" + "".join(f"{title:>27}" for title in QUESTIONS)]
    quiet: list[list[Case]] = []
    for name, group in sorted(groups.items()):
        scores = [Score.of(group, question) for question in range(len(QUESTIONS))]
        breaks = scores[0].hits + scores[0].misses
        if not breaks and not any(score.alarms for score in scores):
            quiet.append(group)
            continue
        cells = [f"{score.hits} hit" + (f", {score.alarms} false" if score.alarms else "") for score in scores]
        lines.append(f"{name:<{width}}{len(group):>7}{breaks:>8}" + "".join(f"{cell:>27}" for cell in cells))
    lines.append(f"and {len(quiet)} more with {sum(map(len, quiet))} calls: no break and no false alarm")
    return lines


def wrong(cases: Sequence[Case], question: int) -> list[str]:
    """Each false alarm and each miss with its signatures, by function."""
    lines: list[str] = []
    for case in sorted(cases, key=lambda case: (case.compatible, case.function, case.name)):
        if case.asked[question] is not case.compatible:
            continue
        what = "false alarm" if case.compatible else "missed, runs" if case.runs else "missed, raises"
        kinds = ", ".join(sorted({kind.value for kind in case.kinds}))
        lines += [f"{what}: {case.function}: {case.call}{f' [{kinds}]' if kinds else ''}"]
        lines += [f"    old {case.old}", f"    new {case.new}"]
    return lines


def main() -> int:
    """Prints the figures; 2 where the data can't be read."""
    parser = argparse.ArgumentParser(description="Precision and recall of binding on labelled calls.")
    parser.add_argument("data", type=Path, help="the labelled calls, JSON or gzipped JSON")
    parser.add_argument("--wrong", type=int, choices=range(len(QUESTIONS)), help="list what that line got wrong")
    options = parser.parse_args()
    try:
        cases = load(options.data)
    except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError) as error:
        print(f"{options.data}: no labelled calls: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if options.wrong is not None:
        print("\n".join(wrong(cases, options.wrong)))
        return 0
    sections = [summary(cases), table(cases, lambda case: case.library), table(cases, lambda case: case.function)]
    print("\n\n".join("\n".join(section) for section in sections))
    return 0


if __name__ == "__main__":
    sys.exit(main())
