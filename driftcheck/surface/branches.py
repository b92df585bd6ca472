"""In which branches of a body a statement stands."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from driftcheck.surface.declarations import Attempt, Condition, Context, caught_names


def branches_around(body: Sequence[ast.stmt], node: ast.AST) -> tuple[Context, ...] | None:
    """The branches of a function's body in which a statement stands; None where a loop makes it run again."""
    for statement in body:
        if statement is node:
            return ()
        parts: list[tuple[Sequence[ast.stmt], tuple[Context, ...]]] = []
        if isinstance(statement, ast.If):
            parts = [(statement.body, (Condition(statement.test, value=True),))]
            parts.append((statement.orelse, (Condition(statement.test, value=False),)))
        elif isinstance(statement, ast.Try):
            parts = [(statement.body, (Attempt(statement, "body"),))]
            parts.append((statement.orelse, (Attempt(statement, "orelse"),)))
            parts += [(h.body, (Attempt(statement, "handler", caught_names(h.type)),)) for h in statement.handlers]
        elif isinstance(statement, ast.With):
            parts = [(statement.body, ())]
        for inner, contexts in parts:
            found = branches_around(inner, node)
            if found is not None:
                return (*contexts, *found)
    return None
