"""Functions and classes that a decorator leaves out: skipped tests, implementations for other releases."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.types import Class, External, Function
from driftcheck.surface.value_scope import Closure
from driftcheck.surface.values import Value

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

_DEPTH = 4
# What a test is skipped by, and the outcome of the condition that skips it.
_SKIPS = {"pytest.mark.skipif": True, "unittest.skipIf": True, "unittest.skipUnless": False}


class ConditionalDefinitions:
    """Says which definitions never run under the target at hand, because of what decorates them."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def is_left_out(self, declaration: FunctionDeclaration | ClassDeclaration) -> bool:
        """True where a decorator surely skips, drops or refuses what is defined, by what the target is."""
        decorators = declaration.node.decorator_list
        if not decorators:
            return False
        if isinstance(declaration, FunctionDeclaration):
            scope = self.program.scope_of_function(declaration)
        else:
            scope = self.program.scope_of_class(declaration)
        return any(self._leaves_out(decorator, scope, declaration, 0) for decorator in decorators)

    def _leaves_out(
        self, decorator: ast.expr, scope: Scope, declaration: FunctionDeclaration | ClassDeclaration, depth: int
    ) -> bool:
        if isinstance(decorator, ast.Call):
            callee = self.program.inference.infer(decorator.func, scope)
            if isinstance(callee, External):
                return self._skips(callee.path, decorator, scope)
            made = self.program.facts.evaluate(decorator, scope)
            return made is not None and isinstance(made.value, Closure) and self._drops(made.value, declaration)
        if isinstance(decorator, ast.Name):
            bindings, home = scope.bindings(decorator.id)
            if len(bindings) == 1 and isinstance(bindings[0].value, ast.Call) and depth < _DEPTH:
                return self._leaves_out(bindings[0].value, home, declaration, depth + 1)
        callee = self.program.inference.infer(decorator, scope)
        if isinstance(callee, Function) and self.program.facts.followed.can_follow(callee.declaration):
            return self._drops(callee, declaration)
        return False

    def _skips(self, path: str, call: ast.Call, scope: Scope) -> bool:
        outcome = _SKIPS.get(path)
        if outcome is None or not call.args or isinstance(call.args[0], ast.Constant):
            return False
        return self.program.facts.truth(call.args[0], scope) is outcome

    def _drops(self, decorator: Function | Closure, declaration: FunctionDeclaration | ClassDeclaration) -> bool:
        """True where a decorator gives None instead of what it decorates, or something that only raises."""
        decorated = Function(declaration) if isinstance(declaration, FunctionDeclaration) else Class(declaration)
        followed = self.program.facts.followed
        result = followed.apply(decorator, Value(decorated))
        if result is None:
            return False
        if isinstance(result.value, Closure):
            return followed.refuses(result.value)
        return result.value is None and result.is_fact
