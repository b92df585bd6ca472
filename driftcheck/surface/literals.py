"""Literal options: the true-or-false keywords and the configurations that decorators and class statements carry."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from driftcheck.surface.types import Literal

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

_DEPTH = 8
Written = tuple[ast.expr, "Scope"]


class Literals:
    """Reads values that are written out, directly or behind a name."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def flag(self, node: ast.expr | None, scope: Scope) -> bool | None:
        """A boolean; None where there is none or it is no literal."""
        if node is None:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, bool) else None
        found = self.program.inference.infer(node, scope)
        return found.value if isinstance(found, Literal) and isinstance(found.value, bool) else None

    def entries(self, node: ast.expr, scope: Scope, depth: int = 0) -> dict[str, Written]:
        """The keys and values of a dict display, of `dict(...)`, `ConfigDict(...)`, or of what a name stands for."""
        if depth > _DEPTH:
            return {}
        if isinstance(node, ast.Call):
            found: dict[str, Written] = {}
            for argument in node.args:
                found.update(self.entries(argument, scope, depth + 1))
            for keyword in node.keywords:
                if keyword.arg is None:
                    found.update(self.entries(keyword.value, scope, depth + 1))
                else:
                    found[keyword.arg] = (keyword.value, scope)
            return found
        if isinstance(node, ast.Dict):
            found = {}
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    found.update(self.entries(value, scope, depth + 1))
                elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found[key.value] = (value, scope)
            return found
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return {**self.entries(node.left, scope, depth + 1), **self.entries(node.right, scope, depth + 1)}
        if isinstance(node, ast.Name | ast.Attribute):
            definition = self.program.annotations.definition(node, scope)
            if definition is not None and definition[0].value is not None and not definition[0].path:
                return self.entries(definition[0].value, definition[1], depth + 1)
        return {}

    def text(self, written: Written | None) -> str | None:
        """A string; None where there is none or it is no literal."""
        if written is None:
            return None
        found = self.program.inference.infer(*written)
        return found.value if isinstance(found, Literal) and isinstance(found.value, str) else None
