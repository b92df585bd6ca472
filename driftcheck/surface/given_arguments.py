"""What the client's own calls give to a parameter: a version that one function reads and another compares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import Binding, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.scopes import ModuleScope, Scope
from driftcheck.surface.syntax import last_name, nodes_around
from driftcheck.surface.values import Value

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts
    from driftcheck.surface.program import Program

_MOST_CALLS = 12


class GivenArguments:
    """Finds the calls of a function in the client and what all of them give to a parameter."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self._values: dict[tuple[FunctionDeclaration, str], Value | None] = {}

    def value(self, function: FunctionDeclaration, parameter: str) -> Value | None:
        """What every call gives, where it is one and the same fact; None where a call may give something else."""
        key = (function, parameter)
        if key not in self._values:
            self._values[key] = None
            self._values[key] = self._value(function, parameter)
        return self._values[key]

    def _value(self, function: FunctionDeclaration, parameter: str) -> Value | None:
        if function.outer is not None or not self.program.is_client(function.module.name):
            return None
        found: Value | None = None
        for count, (module, call) in enumerate(self._calls(function.name)):
            given = _argument(function, parameter, call) if call is not None else None
            if given is None or count >= _MOST_CALLS:
                return None
            value = self.facts.evaluate(given, scope_around(self.program, module, given))
            if value is None or not value.is_fact or (found is not None and value.value != found.value):
                return None
            found = value
        return found

    def _calls(self, name: str) -> Iterator[tuple[ModuleDeclaration, ast.Call | None]]:
        """The calls of anything of that name, None for a mention that is no call."""
        for module in self.program.client_modules_holding(name):
            called: set[int] = set()
            for node in nodes_around(module.tree, module.text, name):
                if isinstance(node, ast.Call) and last_name(node.func) == name:
                    called.add(id(node.func))
                    yield module, node
                elif last_name(node) == name and id(node) not in called:
                    yield module, None


def scope_around(program: Program, module: ModuleDeclaration, node: ast.AST) -> Scope:
    """The scope of the innermost function around a node, else the module's."""
    line: int = node.lineno  # type: ignore[attr-defined]
    inner: FunctionDeclaration | None = None
    pending: list[Binding] = [binding for bindings in module.names.values() for binding in bindings]
    while pending:
        binding = pending.pop()
        if binding.class_ is not None:
            pending += [member for members in binding.class_.members.values() for member in members]
        elif (function := binding.function) is not None:
            if function.line <= line <= (function.node.end_lineno or 0):
                inner = function
                scope = program.function_scope(function)
                pending = [member for members in scope.locals.values() for member in members]
    return ModuleScope(program, module) if inner is None else program.function_scope(inner)


def given_by_name(node: ast.Call, function: FunctionDeclaration, *, skips_first: bool) -> dict[str, ast.expr]:
    """What a call gives each parameter, as far as plain arguments say."""
    arguments = function.node.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]][1 if skips_first else 0 :]
    given: dict[str, ast.expr] = {}
    for name, value in zip(names, node.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        given[name] = value
    given.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None})
    return given


def _argument(function: FunctionDeclaration, parameter: str, call: ast.Call) -> ast.expr | None:
    """What a call gives to a parameter, by keyword or by position; None where it can't be told."""
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    arguments = function.node.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    if function.owner is not None:
        names = names[1:]
    if parameter not in names or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    index = names.index(parameter)
    return call.args[index] if index < len(call.args) else None
