"""Holds what is found in a library's own tests against what its next release did to them.

    python -m benchmarks.next_release vllm==0.17.0 vllm==0.16.0 FOLDER/0.16.0 FOLDER/0.17.0

The folders are the unpacked source distributions of the two releases, whose `tests/` are what is audited: those of the
older one against the newer. A finding is confirmed where the newer release has changed or dropped the very statement
that it is about. What still stands there word for word is listed, and has to be read.
"""

from __future__ import annotations

import argparse
import ast
import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from driftcheck.audit import audit_trees
from driftcheck.model import Finding, Severity
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import Settings
from driftcheck.tree import MemoryTree

_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


def main() -> None:
    """Prints a row, and what has to be read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", help="the newer release, such as vllm==0.17.0")
    parser.add_argument("baseline", help="the older one")
    parser.add_argument("older", type=Path, help="the folder of the older release's source distribution")
    parser.add_argument("newer", type=Path, help="the folder of the newer release's")
    options = parser.parse_args()
    settings = Settings()
    client = client_tree(str(options.older), settings=settings)
    tests = {path: client.read(path) for path in client.paths if path.startswith("tests/") and path.endswith(".py")}
    report = audit_trees(
        MemoryTree(tests, "tests"),
        target_tree(options.target, settings=settings),
        target_tree(options.baseline, settings=settings),
    )
    serious = [found for found in report.findings if found.severity in (Severity.ERROR, Severity.SILENT)]
    answers = [(found, _answer(found, options.older, options.newer)) for found in serious]
    counts = Counter((_sort(found), answer) for found, answer in answers)
    print(f"{options.baseline} to {options.target}: {len(tests)} files, {len(serious)} findings at silent or above")
    for (sort, answer), number in sorted(counts.items()):
        print(f"  {sort:<16} {answer:<16} {number}")
    for found, answer in answers:
        if answer == "still there":
            place = f"{found.location.path}:{found.location.line}"
            print(f"    {_sort(found)}  {place}  {found.kind.value}  {found.message}")


def _sort(finding: Finding) -> str:
    return "drift" if finding.drift else "broken before"


def _answer(finding: Finding, older: Path, newer: Path) -> str:
    path = newer / finding.location.path
    if not path.is_file():
        return "file is gone"
    statement = _statement_at(older / finding.location.path, finding.location.line)
    return "still there" if statement in set(_statements(path)) else "changed"


def _statement_at(path: Path, line: int) -> str:
    """The innermost statement on a line, blocks inside it left out."""
    around = [node for node in _nodes(path) if _first_line(node) <= line <= (node.end_lineno or node.lineno)]
    inner = max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    return _head(inner)


def _statements(path: Path) -> Iterator[str]:
    return map(_head, _nodes(path))


def _nodes(path: Path) -> list[ast.stmt]:
    return [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.stmt)]


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min(node.lineno, *(decorator.lineno for decorator in decorators)) if decorators else node.lineno


def _head(node: ast.stmt) -> str:
    """A statement as text, without what stands in its blocks; of a function, all of it."""
    if not hasattr(node, "body") or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ast.unparse(node)
    head = copy.copy(node)
    for block in _BLOCKS:
        if hasattr(head, block):
            setattr(head, block, [ast.Pass()] if block == "body" else [])
    return f"{type(node).__name__} {ast.unparse(head)}" if not isinstance(node, ast.Try | ast.Match) else "try or match"


if __name__ == "__main__":
    main()
