"""Can a place of a client's run against this release: what stands in branches that a fact decides otherwise can't."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from driftcheck.surface.declarations import ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.scopes import ModuleScope

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_BLOCKS = ("body", "orelse", "handlers", "finalbody")


def is_dead(program: Program, module: ModuleDeclaration, node: ast.AST, parents: Mapping[int, ast.AST]) -> bool:
    """True where a version guard, or another condition that follows from the target, keeps a place from running.

    `parents` holds what is right above each node, by its identity, up to the function or module that is asked about.
    """
    scope = ModuleScope(program, module)

    def truth(test: ast.expr) -> bool | None:
        return program.facts.truth(test, scope)

    child, parent = node, parents.get(id(node))
    while parent is not None:
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            decided = truth(parent.test)
            is_body = child is parent.body if isinstance(parent, ast.IfExp) else child in parent.body
            if decided is not None and decided is not is_body:
                return True
        for before in _statements_before(parent, child):
            if isinstance(before, ast.If):
                decided = truth(before.test)
                taken = before.body if decided else before.orelse
                if decided is not None and taken and isinstance(taken[-1], _LEAVING):
                    return True
        child, parent = parent, parents.get(id(parent))
    return False


def _statements_before(parent: ast.AST, child: ast.AST) -> Iterator[ast.stmt]:
    """The statements that stand before one in the same block."""
    for name in _BLOCKS:
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            yield from block[: block.index(child)]
