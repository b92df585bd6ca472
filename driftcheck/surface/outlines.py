"""Outlines of modules: sources that parse to what is left of a module once the bodies of its functions are dropped.

They hold a fraction of the text, and everything in them stands where it stood.
"""

from __future__ import annotations

import ast
import pickle

from driftcheck.surface.declarations import FunctionNode, UnreadableSource, parse_source
from driftcheck.surface.syntax import drop_bodies, functions_outside


def outline_of(text: str, tree: ast.Module) -> str | None:
    """The outline of a module, given its source and its syntax tree, which loses the bodies of its functions.

    None where there is none that would give the very same tree.
    """
    functions = list(functions_outside(tree.body))
    lines = text.encode("utf-8", "surrogatepass").split(b"\n")
    for function in functions:
        _empty(function, lines)
        function.body = []
    try:
        outline = b"\n".join(lines).decode()
        again = parse_source(outline)
        drop_bodies(again)
        is_same = pickle.dumps(again) == pickle.dumps(tree)
    except (UnreadableSource, UnicodeDecodeError, RecursionError):
        return None
    return outline if is_same else None


def _empty(function: FunctionNode, lines: list[bytes]) -> None:
    """Puts one number in the place of a function's body, which ends where the body did."""
    first, column = _start(function.body[0])
    last, end = function.end_lineno, function.end_col_offset
    assert last is not None
    assert end is not None
    before = lines[first - 1][:column]
    if first == last:
        lines[last - 1] = before + b" " * (end - 1 - column) + b"0"
        return
    for number in range(first - 1, last):
        lines[number] = b""
    if end - 1 > function.col_offset and not before.strip():
        lines[last - 1] = b" " * (end - 1) + b"0"
    else:
        # The body begins on the line of its `def`, or ends further left than it may begin.
        lines[first - 1] = before + b"(0"
        lines[last - 1] = b" " * (end - 1) + b")"


def _start(statement: ast.stmt) -> tuple[int, int]:
    """The line on which a statement begins, and the column; a decorated one begins with an `@`."""
    decorators = getattr(statement, "decorator_list", None)
    if decorators:
        return decorators[0].lineno, decorators[0].col_offset - 1
    return statement.lineno, statement.col_offset
