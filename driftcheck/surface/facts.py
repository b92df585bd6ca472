"""Conditions that are settled by the target at hand: versions, `hasattr`, `find_spec`, `TYPE_CHECKING`.

Ordinary booleans are never folded: a flag that some method sets to False is no fact. A condition is decided only where a
fact of the target takes part in it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from driftcheck.surface.declarations import Binding, Condition, Context
from driftcheck.surface.types import Absent, Class, External, Function, Module, Unknown

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

_DEPTH = 12
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


@dataclass(frozen=True, slots=True)
class Value:
    """A value known before the program runs; `is_fact` where it follows from the target and not from a mere constant."""

    value: Any
    is_fact: bool = False


class Facts:
    """Decides conditions for one target."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._depth = 0
        self._evaluating: set[int] = set()

    def truth(self, test: ast.expr, scope: Scope, *, typing: bool = False) -> bool | None:
        """Whether a condition holds; None where no fact decides it. `typing` evaluates as a type checker would."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
            return typing
        if isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING":
            return typing
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(test.operand, scope, typing=typing)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self.truth(value, scope, typing=typing) for value in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        value = self.evaluate(test, scope)
        return bool(value.value) if value is not None and value.is_fact else None

    def is_typing_only(self, contexts: tuple[Context, ...]) -> bool:
        """True where a statement stands under `if TYPE_CHECKING`."""
        return any(
            isinstance(context, Condition) and context.value and _names_type_checking(context.test)
            for context in contexts
        )

    def evaluate(self, node: ast.expr, scope: Scope) -> Value | None:
        """The value of an expression where it is known before the program runs."""
        handler = _EVALUATORS.get(type(node))
        if handler is None or self._depth > _DEPTH or id(node) in self._evaluating:
            return None
        self._depth += 1
        self._evaluating.add(id(node))
        try:
            return handler(self, node, scope)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
            return None
        finally:
            self._depth -= 1
            self._evaluating.discard(id(node))

    # Expressions

    def _constant(self, node: ast.Constant, scope: Scope) -> Value | None:
        return Value(node.value)

    def _name(self, node: ast.Name, scope: Scope) -> Value | None:
        bindings, home = scope.bindings(node.id)
        if len(bindings) == 1 and isinstance(bindings[0].node, ast.ImportFrom | ast.Import):
            return self._imported(bindings[0], home)
        alive: list[Binding] = []
        excluded = False
        for binding in bindings:
            runs = self.program.liveness(binding.contexts, home, line=binding.line) if binding.contexts else True
            if runs is False:
                excluded = True
            elif runs is None:
                return None
            else:
                alive.append(binding)
        if len(alive) != 1 or alive[0].value is None or alive[0].path or alive[0].element:
            return None
        value = self.evaluate(alive[0].value, home)
        if value is not None and excluded:
            return Value(value.value, is_fact=True)
        return value

    def _imported(self, binding: Binding, home: Scope) -> Value | None:
        node = binding.node
        if not isinstance(node, ast.ImportFrom):
            return None
        base = self.program.import_base(home.module, node)
        original = next((alias.name for alias in node.names if (alias.asname or alias.name) == binding.name), "")
        if original == "__version__" and self.program.is_target(base):
            return self._version()
        module = self.program.module(base)
        if module is None or not self.program.is_client(base):
            return None
        from driftcheck.surface.scopes import ModuleScope

        return self.evaluate(ast.Name(original), ModuleScope(self.program, module))

    def _version(self) -> Value | None:
        return Value(self.program.target.version, is_fact=True) if self.program.target.version else None

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value | None:
        if node.attr == "__version__":
            found = self.program.inference.infer(node.value, scope)
            return self._version() if isinstance(found, Module) and self.program.is_target(found.name) else None
        base = self.evaluate(node.value, scope)
        if base is None or node.attr.startswith("_") or not _is_version(base.value):
            return None
        return Value(getattr(base.value, node.attr), base.is_fact)

    def _call(self, node: ast.Call, scope: Scope) -> Value | None:
        if isinstance(node.func, ast.Name) and node.func.id == "hasattr" and len(node.args) == 2:
            return self._hasattr(node, scope)
        if isinstance(node.func, ast.Attribute):
            receiver = self.evaluate(node.func.value, scope)
            if receiver is not None and isinstance(receiver.value, str):
                arguments = [self.evaluate(argument, scope) for argument in node.args]
                if node.func.attr in ("split", "startswith", "endswith", "strip", "lstrip", "rstrip", "partition"):
                    known = [argument.value for argument in arguments if argument is not None]
                    if len(known) == len(arguments):
                        return Value(getattr(receiver.value, node.func.attr)(*known), receiver.is_fact)
                return None
        called = self.program.inference.infer(node.func, scope)
        arguments = [self.evaluate(argument, scope) for argument in node.args]
        if isinstance(called, External):
            return self._external_call(called.path, node, arguments, scope)
        if isinstance(called, Function):
            return self.call(called, node, scope)
        return None

    def call(self, called: Function, node: ast.Call, scope: Scope) -> Value | None:
        """What a helper of the client's answers (a version check, a feature probe)."""
        return None

    def _external_call(self, path: str, node: ast.Call, arguments: list[Value | None], scope: Scope) -> Value | None:
        first = arguments[0] if arguments else None
        name = path.rpartition(".")[2]
        if path.startswith(("packaging.version.", "pkg_resources.", "packaging.", "pkg_resources.")) and name in (
            "parse", "Version", "parse_version", "LegacyVersion",
        ):  # fmt: skip
            return Value(parse_version(str(first.value)), first.is_fact) if first is not None else None
        if path in ("importlib.metadata.version", "importlib_metadata.version"):
            return self._version() if first is not None and self._is_target_distribution(first.value) else None
        if path in ("importlib.util.find_spec", "importlib.find_spec") and first is not None:
            found = self.program.module_type(str(first.value))
            if isinstance(found, Module):
                return Value(found, is_fact=True)
            return Value(None, is_fact=True) if isinstance(found, Absent) else None
        if path == "builtins.int" and first is not None:
            return Value(int(first.value), first.is_fact)
        if path == "builtins.bool" and first is not None:
            return Value(bool(first.value), first.is_fact)
        if path in ("builtins.tuple", "builtins.list") and first is not None:
            return Value(tuple(first.value), first.is_fact)
        if path == "builtins.str" and first is not None:
            return Value(str(first.value), first.is_fact)
        if path == "builtins.map" and len(node.args) == 2 and arguments[1] is not None:
            function = self.program.inference.infer(node.args[0], scope)
            if function == External("builtins.int"):
                return Value(tuple(int(part) for part in arguments[1].value), arguments[1].is_fact)
        if path == "builtins.getattr" and len(arguments) >= 2 and arguments[1] is not None:
            if arguments[1].value == "__version__":
                return self._attribute(ast.Attribute(node.args[0], "__version__"), scope)
        return None

    def _is_target_distribution(self, name: object) -> bool:
        return isinstance(name, str) and (
            name in self.program.target_index.top_level or name == self.program.target.name
        )

    def _hasattr(self, node: ast.Call, scope: Scope) -> Value | None:
        name = self.evaluate(node.args[1], scope)
        if name is None or not isinstance(name.value, str):
            return None
        owner = self.program.inference.infer(node.args[0], scope)
        if not isinstance(owner, Module | Class):
            return None
        path = owner.name if isinstance(owner, Module) else owner.declaration.symbol
        if not self.program.is_target(path):
            return None
        found = self.program.inference.attribute(owner, name.value)
        if isinstance(found, Absent):
            return Value(False, is_fact=True)
        return None if isinstance(found, Unknown) else Value(True, is_fact=True)

    def _compare(self, node: ast.Compare, scope: Scope) -> Value | None:
        left = self.evaluate(node.left, scope)
        if left is None:
            return None
        is_fact = left.is_fact
        result = True
        for comparison, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator, scope)
            if right is None:
                return None
            is_fact = is_fact or right.is_fact
            one, other = left.value, right.value
            if _is_version(one) and isinstance(other, str):
                other = parse_version(other)
            if not _COMPARISONS[type(comparison)](one, other):
                result = False
                break
            left = right
        return Value(result, is_fact)

    def _boolean(self, node: ast.BoolOp, scope: Scope) -> Value | None:
        truth = self.truth(node, scope)
        return None if truth is None else Value(truth, is_fact=True)

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Value | None:
        value = self.evaluate(node.operand, scope)
        if value is None or not isinstance(node.op, ast.Not):
            return None
        return Value(not value.value, value.is_fact)

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> Value | None:
        values = [self.evaluate(element, scope) for element in node.elts]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return Value(tuple(value.value for value in known), any(value.is_fact for value in known))

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value | None:
        base = self.evaluate(node.value, scope)
        if base is None:
            return None
        if isinstance(node.slice, ast.Slice):
            bounds = [
                self.evaluate(bound, scope) if bound is not None else Value(None)
                for bound in (node.slice.lower, node.slice.upper)
            ]
            if None in bounds or node.slice.step is not None:
                return None
            lower, upper = (bound.value for bound in bounds if bound is not None)
            return Value(base.value[lower:upper], base.is_fact)
        index = self.evaluate(node.slice, scope)
        return None if index is None else Value(base.value[index.value], base.is_fact)

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp, scope: Scope) -> Value | None:
        if len(node.generators) != 1 or node.generators[0].ifs or not isinstance(node.generators[0].target, ast.Name):
            return None
        values = self.evaluate(node.generators[0].iter, scope)
        element = node.elt
        if values is None or not isinstance(element, ast.Call) or len(element.args) != 1:
            return None
        if self.program.inference.infer(element.func, scope) != External("builtins.int"):
            return None
        return Value(tuple(int(value) for value in values.value), values.is_fact)


def parse_version(text: str) -> Any:
    """A version that compares as pip does; raises ValueError."""
    from packaging.version import Version

    return Version(text)


def _is_version(value: object) -> bool:
    return hasattr(value, "release") and hasattr(value, "is_prerelease")


def _names_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


_EVALUATORS: dict[type[ast.expr], Callable[[Facts, Any, Scope], Value | None]] = {
    ast.Constant: Facts._constant,
    ast.Name: Facts._name,
    ast.Attribute: Facts._attribute,
    ast.Call: Facts._call,
    ast.Compare: Facts._compare,
    ast.BoolOp: Facts._boolean,
    ast.UnaryOp: Facts._unary,
    ast.Tuple: Facts._tuple,
    ast.List: Facts._tuple,
    ast.Subscript: Facts._subscript,
    ast.GeneratorExp: Facts._comprehension,
    ast.ListComp: Facts._comprehension,
}
