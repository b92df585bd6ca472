"""The values of expressions where they are known before the program runs."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from driftcheck.surface.probes import TABLES
from driftcheck.surface.scopes import ModuleScope, Scope
from driftcheck.surface.slim_trees import for_slim_nodes
from driftcheck.surface.types import Class, External, Function, Instance, Lambda, Module
from driftcheck.surface.value_scope import Closure, ValueScope
from driftcheck.surface.values import (
    MISFITS,
    VALUE_ATTRIBUTES,
    VALUE_METHODS,
    Value,
    attribute_of,
    bounded,
    calculate,
    call_method,
    compare,
    is_type,
    item_of,
    items_of,
    truth_of,
)

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts

_DEPTH = 24
_ELEMENTS = 256
_KINDS_OF_PARAMETERS = re.compile(r"inspect\.(Parameter\.(\w+)|_ParameterKind\.(\w+)|_empty)$")


class Evaluator:
    """Computes with what is known: constants, and what is a fact of the target."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self._depth = 0

    def evaluate(self, node: ast.expr, scope: Scope) -> Value | None:
        """The value of an expression, None where it is not known."""
        handler = _EVALUATORS.get(type(node))
        if handler is None or self._depth > _DEPTH:
            return None
        self._depth += 1
        try:
            return handler(self, node, scope)
        except MISFITS:
            return None
        finally:
            self._depth -= 1

    # Names and attributes

    def _constant(self, node: ast.Constant, scope: Scope) -> Value | None:
        return Value(node.value)

    def _name(self, node: ast.Name, scope: Scope) -> Value | None:
        if isinstance(scope, ValueScope) and (owner := scope.owner(node.id)) is not None:
            return owner.values[node.id]
        return self.facts.named(node.id, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value | None:
        name = node.attr
        if name in VALUE_ATTRIBUTES or name in TABLES:
            base = self.evaluate(node.value, scope)
            if base is not None and not is_type(base.value):
                return Value(attribute_of(base.value, name), base.is_fact)
        owner = self.program.inference.infer(node.value, scope)
        if isinstance(owner, External):
            return _outside_constant(f"{owner.path}.{name}")
        if name in TABLES:
            return self.facts.probes.table(owner, name)
        if isinstance(owner, Module):
            return self._module_attribute(owner, name)
        if isinstance(owner, Class) or (isinstance(owner, Instance) and isinstance(owner.class_, Class)):
            class_ = owner.class_ if isinstance(owner, Instance) else owner
            assert isinstance(class_, Class)
            if self.program.is_client(class_.declaration.module.name):
                found = self.facts.members.member(owner, class_, name)
                if found is not None:
                    return found
            if self.facts.is_of_target(class_) and not class_.is_open:
                return self.facts.typed(self.program.inference.attribute(owner, name))
        return None

    def _module_attribute(self, owner: Module, name: str) -> Value | None:
        version = self.facts.version_named(owner.name, name)
        if version is not None:
            return version
        if self.program.is_client(owner.name):
            module = self.program.module(owner.name)
            if module is not None and (name in module.names or module.star_imports):
                found = self.facts.named(name, ModuleScope(self.program, module))
                if found is not None:
                    return found
        return self.facts.typed(self.program.module_attribute(owner.name, name))

    # Calls

    def _call(self, node: ast.Call, scope: Scope) -> Value | None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in VALUE_METHODS:
            receiver = self.evaluate(node.func.value, scope)
            if receiver is not None and not is_type(receiver.value):
                return self._method_call(receiver, node.func.attr, node, scope)
        if isinstance(scope, ValueScope) and isinstance(node.func, ast.Name | ast.Call):
            made = self.evaluate(node.func, scope)
            if made is not None and isinstance(made.value, Closure):
                return self.facts.followed.call_closure(made.value, node, scope)
        called = self.program.inference.infer(node.func, scope)
        if isinstance(called, External):
            return self.facts.outside.answer(called.path, node, scope)
        if isinstance(called, Function):
            return self.facts.followed.call(called, node, scope)
        if isinstance(called, Lambda):
            home = ModuleScope(self.program, called.module)
            return self.facts.followed.call_lambda(called, node, scope, home)
        return None

    def _method_call(self, receiver: Value, name: str, node: ast.Call, scope: Scope) -> Value | None:
        arguments = [self.evaluate(argument, scope) for argument in node.args]
        keywords = {keyword.arg: self.evaluate(keyword.value, scope) for keyword in node.keywords}
        every = [*arguments, *keywords.values()]
        known = [value for value in every if value is not None]
        if len(known) < len(every) or None in keywords:
            return None
        result = call_method(
            receiver.value,
            name,
            [value.value for value in arguments if value is not None],
            {key: value.value for key, value in keywords.items() if key is not None and value is not None},
        )
        return Value(result, receiver.is_fact or any(value.is_fact for value in known))

    # Operators

    def _compare(self, node: ast.Compare, scope: Scope) -> Value | None:
        left = self.evaluate(node.left, scope)
        if left is None:
            return None
        is_fact, is_assumed = left.is_fact, left.is_assumed
        result: bool | None = True
        for operation, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator, scope)
            if right is None:
                return None
            is_fact, is_assumed = is_fact or right.is_fact, is_assumed or right.is_assumed
            result = compare(operation, left.value, right.value)
            if not result:
                break
            left = right
        return None if result is None else Value(result, is_fact, is_assumed)

    def _boolean(self, node: ast.BoolOp, scope: Scope) -> Value | None:
        """`and` and `or`, as Python picks one of the values; a part that only the environment decides is not known."""
        stops = isinstance(node.op, ast.Or)
        is_fact = is_doubtful = False
        for index, part in enumerate(node.values):
            value = self.evaluate(part, scope)
            truth = None if value is None else truth_of(value.value)
            if truth is None:
                is_doubtful = True
                continue
            assert value is not None
            is_fact = is_fact or value.is_fact
            if truth is stops or index == len(node.values) - 1:
                if is_doubtful and (truth is not stops or not isinstance(value.value, bool)):
                    return None
                return Value(value.value, is_fact)
            is_doubtful = is_doubtful or (value.is_assumed and isinstance(value.value, bool))
        return None

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Value | None:
        value = self.evaluate(node.operand, scope)
        if value is None:
            return None
        if isinstance(node.op, ast.Not):
            truth = truth_of(value.value)
            return None if truth is None else Value(not truth, value.is_fact, value.is_assumed)
        if isinstance(node.op, ast.USub) and isinstance(value.value, int):
            return Value(-value.value, value.is_fact)
        return None

    def _arithmetic(self, node: ast.BinOp, scope: Scope) -> Value | None:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        if left is None or right is None:
            return None
        return Value(calculate(node.op, left.value, right.value), left.is_fact or right.is_fact)

    def _conditional(self, node: ast.IfExp, scope: Scope) -> Value | None:
        test = self.evaluate(node.test, scope)
        truth = truth_of(test.value) if test is not None else self.facts.truth(node.test, scope)
        if truth is None:
            return None
        chosen = self.facts.argument(node.body if truth else node.orelse, scope)
        is_fact = test is None or test.is_fact
        return None if chosen is None else Value(chosen.value, chosen.is_fact or is_fact)

    def _walrus(self, node: ast.NamedExpr, scope: Scope) -> Value | None:
        return self.evaluate(node.value, scope)

    # Containers and text

    def _tuple(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Value | None:
        values = [self.evaluate(element, scope) for element in node.elts]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        items: Any = tuple(value.value for value in known)
        if isinstance(node, ast.Set):
            items = frozenset(items)
        return Value(items, any(value.is_fact for value in known))

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value | None:
        base = self.evaluate(node.value, scope)
        if base is None:
            return None
        if isinstance(node.slice, ast.Slice):
            bounds = [
                self.evaluate(bound, scope) if bound is not None else Value(None)
                for bound in (node.slice.lower, node.slice.upper)
            ]
            if None in bounds or node.slice.step is not None or not isinstance(base.value, str | tuple):
                return None
            lower, upper = (bound.value for bound in bounds if bound is not None)
            return Value(base.value[lower:upper], base.is_fact)
        index = self.evaluate(node.slice, scope)
        return None if index is None else Value(item_of(base.value, index.value), base.is_fact)

    def elements(self, node: ast.expr, scope: Scope) -> list[Value | None] | None:
        """The values of a comprehension's elements or of an iterable, None each where unknown; None where unlisted."""
        if not isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            value = self.evaluate(node, scope)
            if value is None:
                if isinstance(node, ast.Tuple | ast.List | ast.Set):
                    return [self.evaluate(element, scope) for element in node.elts]
                return None
            return [Value(item, value.is_fact) for item in items_of(value.value)]
        if len(node.generators) != 1 or node.generators[0].is_async:
            return None
        generator = node.generators[0]
        found: list[Value | None] = []
        for item in self.elements(generator.iter, scope) or ():
            inner = ValueScope(scope, _unpacked(generator.target, item))
            tests = [self.evaluate(test, inner) for test in generator.ifs]
            truths = [None if test is None else truth_of(test.value) for test in tests]
            if False in truths:
                continue
            found.append(None if None in truths else self.facts.argument(node.elt, inner))
            if len(found) > _ELEMENTS:
                return None
        return found if found or self.evaluate(generator.iter, scope) is not None else None

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp, scope: Scope) -> Value | None:
        values = self.elements(node, scope)
        if values is None or None in values:
            return None
        known = [value for value in values if value is not None]
        items: Any = tuple(value.value for value in known)
        source = self.evaluate(node.generators[0].iter, scope)
        is_fact = any(value.is_fact for value in known) or (source is not None and source.is_fact)
        return Value(frozenset(items) if isinstance(node, ast.SetComp) else items, is_fact)

    def _text(self, node: ast.JoinedStr, scope: Scope) -> Value | None:
        parts: list[str] = []
        is_fact = False
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
                continue
            if not isinstance(part, ast.FormattedValue) or part.format_spec is not None or part.conversion != -1:
                return None
            value = self.evaluate(part.value, scope)
            if value is None or is_type(value.value):
                return None
            parts.append(str(value.value))
            is_fact = is_fact or value.is_fact
        return Value(bounded("".join(parts)), is_fact)


def _unpacked(target: ast.expr, item: Value | None) -> dict[str, Value | None]:
    """What the variables of a comprehension hold in one round."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    names: dict[str, Value | None] = {}
    if isinstance(target, ast.Tuple | ast.List):
        for index, element in enumerate(target.elts):
            inner = None if item is None else Value(item_of(item.value, index), item.is_fact)
            names.update(_unpacked(element, inner))
    return names


def _outside_constant(path: str) -> Value | None:
    """The constants of `inspect` that tests of parameters name."""
    found = _KINDS_OF_PARAMETERS.search(path)
    if found is None:
        return None
    if found[1] is None and found[3] is None:
        return Value(inspect.Parameter.empty)
    name = found[2] or found[3]
    return Value(getattr(inspect.Parameter, name)) if name.isupper() or name == "empty" else None


_EVALUATORS: dict[type[ast.expr], Callable[[Evaluator, Any, Scope], Value | None]] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.Call: Evaluator._call,
    ast.Compare: Evaluator._compare,
    ast.BoolOp: Evaluator._boolean,
    ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._arithmetic,
    ast.IfExp: Evaluator._conditional,
    ast.NamedExpr: Evaluator._walrus,
    ast.Tuple: Evaluator._tuple,
    ast.List: Evaluator._tuple,
    ast.Set: Evaluator._tuple,
    ast.Subscript: Evaluator._subscript,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.ListComp: Evaluator._comprehension,
    ast.SetComp: Evaluator._comprehension,
    ast.JoinedStr: Evaluator._text,
}
_EVALUATORS = for_slim_nodes(_EVALUATORS)
