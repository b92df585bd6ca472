"""Calls of the client's own functions that answer by what the target is: which can be followed, and what they give."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.inference import is_generator
from driftcheck.surface.interpretation import Interpreter, Raised, Returned, parameter_names
from driftcheck.surface.scopes import Scope
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Function, Lambda
from driftcheck.surface.value_scope import Closure, ValueScope
from driftcheck.surface.values import Value, is_type

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts

_LONGEST_HELPER = 90
_LONGEST_FLAG = 12
# A function whose text has none of these answers by something else than the target, unless a name in it means a fact.
_HINTS = re.compile(
    r"version|hasattr|getattr|find_spec|find_loader|signature|argspec|co_varnames|fields|__dict__|import_|distribution"
    r"|\bdir\(|\bvars\(|__code__|iscoroutine|__annotations__|issubclass"
)


class FollowedCalls:
    """Answers calls of helpers, each with the same arguments once."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self.interpreter = Interpreter(facts)
        self._telling: dict[FunctionDeclaration, bool] = {}
        self._results: dict[object, Value | None] = {}

    def call(self, function: Function, node: ast.Call, scope: Scope) -> Value | None:
        """What a call of a function of the client's gives."""
        declaration = function.declaration
        can_follow = self.can_follow(declaration)
        if not can_follow and not self._is_short(declaration):
            return None
        values = self._bound(declaration, function, node, scope)
        if values is None or not (can_follow or any(_is_plain_fact(value) for value in values.values())):
            return None
        return self._answer(declaration, values)

    def read(self, function: Function) -> Value | None:
        """What a property of the client's gives."""
        declaration = function.declaration
        if not self.can_follow(declaration):
            return None
        return self._answer(declaration, dict.fromkeys(parameter_names(declaration)))

    def call_closure(self, closure: Closure, node: ast.Call, scope: Scope) -> Value | None:
        """What a call of a function gives that a helper has made."""
        values = self._bound(closure.declaration, None, node, scope)
        if values is None:
            return None
        exit_, _ = self.interpreter.run(closure.declaration, values, closure.scope)
        return exit_.value if isinstance(exit_, Returned) else None

    def apply(self, decorator: Function | Closure, value: Value) -> Value | None:
        """What a decorator makes of a value, its only argument."""
        declaration = decorator.declaration
        names = parameter_names(declaration)
        if not names:
            return None
        values: dict[str, Value | None] = dict.fromkeys(names)
        values[names[0]] = value
        around = decorator.scope if isinstance(decorator, Closure) else None
        exit_, _ = self.interpreter.run(declaration, values, around)
        return exit_.value if isinstance(exit_, Returned) else None

    def refuses(self, closure: Closure) -> bool:
        """True where calling what a helper made surely raises, because of what the target is."""
        unknown: dict[str, Value | None] = dict.fromkeys(parameter_names(closure.declaration))
        exit_, uses_fact = self.interpreter.run(closure.declaration, unknown, closure.scope)
        return isinstance(exit_, Raised) and uses_fact

    def call_lambda(self, function: Lambda, node: ast.Call, scope: Scope, home: Scope) -> Value | None:
        """What a call of a lambda expression gives."""
        arguments = function.node.args
        names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
        if arguments.vararg or arguments.kwonlyargs or arguments.kwarg or node.keywords or len(node.args) > len(names):
            return None
        values = {name: self.facts.argument(value, scope) for name, value in zip(names, node.args, strict=False)}
        return self.facts.evaluate(function.node.body, ValueScope(home, {**dict.fromkeys(names), **values}))

    def can_follow(self, declaration: FunctionDeclaration) -> bool:
        """True for a short function of the client's whose answer may follow from the target."""
        found = self._telling.get(declaration)
        if found is None:
            self._telling[declaration] = False
            found = self._telling[declaration] = self._can_follow(declaration)
        return found

    def _can_follow(self, declaration: FunctionDeclaration) -> bool:
        if not self._is_short(declaration):
            return False
        source = declaration.source
        if "yield" in source and is_generator(declaration):
            return False
        if _HINTS.search(source) is not None:
            return True
        if "import " in source and any(name in source for name in self.program.target_index.top_level):
            return True
        return _length(declaration) <= _LONGEST_FLAG and self._names_fact(declaration)

    def _is_short(self, declaration: FunctionDeclaration) -> bool:
        is_client = self.program.is_client(declaration.module.name)
        return is_client and not declaration.is_async and _length(declaration) <= _LONGEST_HELPER

    def _names_fact(self, declaration: FunctionDeclaration) -> bool:
        """True where a name in the body stands for a fact, or for a function that may tell one."""
        scope = self.program.function_scope(declaration)
        parameters = scope.parameters
        for node in own_nodes(declaration.body):
            found: Value | None = None
            if isinstance(node, ast.Name):
                if node.id in parameters or node.id in scope.locals:
                    continue
                found = self.facts.named(node.id, scope)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found = self.facts.evaluate(node, scope)
                called = self.program.inference.infer(node, scope) if declaration.owner is not None else None
                if isinstance(called, Function) and self.can_follow(called.declaration):
                    return True
            if found is None:
                continue
            if found.is_fact or (isinstance(found.value, Function) and self.can_follow(found.value.declaration)):
                return True
        return False

    def _bound(
        self, declaration: FunctionDeclaration, function: Function | None, node: ast.Call, scope: Scope
    ) -> dict[str, Value | None] | None:
        """What the parameters hold for a call: known values, or None each."""
        arguments = declaration.node.args
        positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
        values: dict[str, Value | None] = dict.fromkeys(parameter_names(declaration))
        home = self.program.scope_of_function(declaration)
        defaults = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
        keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        defaults += [(argument.arg, default) for argument, default in keyword_only if default is not None]
        for name, default in defaults:
            values[name] = self.facts.argument(default, home)
        if function is not None and function.skips_first:
            positional = positional[1:]
        for name, given in zip(positional, node.args, strict=False):
            if isinstance(given, ast.Starred):
                return dict.fromkeys(values)
            values[name] = self.facts.argument(given, scope)
        for keyword in node.keywords:
            if keyword.arg is None:
                return dict.fromkeys(values)
            if keyword.arg in values:
                values[keyword.arg] = self.facts.argument(keyword.value, scope)
        return values

    def _answer(self, declaration: FunctionDeclaration, values: dict[str, Value | None]) -> Value | None:
        key: object = (declaration, tuple(values.values()))
        try:
            if key in self._results:
                return self._results[key]
        except TypeError:
            key = None
        exit_, _ = self.interpreter.run(declaration, values, None)
        found = exit_.value if isinstance(exit_, Returned) else None
        if key is not None and not self.interpreter.is_running:
            self._results[key] = found
        return found


def _length(declaration: FunctionDeclaration) -> int:
    return (declaration.node.end_lineno or declaration.line) - declaration.line


def _is_plain_fact(value: Value | None) -> bool:
    """True for a version or what was made of one, and not for a class of the target's."""
    return value is not None and value.is_fact and not is_type(value.value)
