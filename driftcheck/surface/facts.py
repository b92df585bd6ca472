"""Conditions that are settled by the target at hand: versions, `hasattr`, signatures, `find_spec`, `TYPE_CHECKING`.

Ordinary booleans are never folded: a flag that some method sets to False is no fact. A condition is decided where a
fact of the target takes part in it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from driftcheck.surface.classes import Store
from driftcheck.surface.declarations import (
    Attempt,
    Binding,
    ClassDeclaration,
    Condition,
    Context,
    ModuleDeclaration,
    caught_names,
)
from driftcheck.surface.given_arguments import GivenArguments
from driftcheck.surface.interpretation import Closure, Interpreter, ValueScope, is_mutable
from driftcheck.surface.outside_calls import OutsideCalls
from driftcheck.surface.probes import TABLES, Probes
from driftcheck.surface.scopes import ClassScope, FunctionScope, ModuleScope, Scope
from driftcheck.surface.types import Absent, Class, External, Function, Instance, Lambda, Module, Type
from driftcheck.surface.values import (
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
    one_of,
    truth_of,
)

if TYPE_CHECKING:
    from driftcheck.surface.program import Program

_DEPTH = 24
_ELEMENTS = 256
_MOST_BINDINGS = 4
_TEXT_VERSIONS = frozenset(("__version__", "version", "VERSION"))
_TUPLE_VERSIONS = frozenset(("__version_tuple__", "version_tuple"))
_KINDS_OF_PARAMETERS = re.compile(r"inspect\.(Parameter\.(\w+)|_ParameterKind\.(\w+)|_empty)$")
_CHANGES = "append|extend|insert|remove|pop|clear|add|discard|update|sort|reverse|difference_update|intersection_update"
# What the evaluation of values says where they don't go together.
_MISFITS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


class Facts:
    """Decides conditions for one target."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.outside = OutsideCalls(self)
        self.probes = Probes(self)
        self.interpreter = Interpreter(self)
        self.given = GivenArguments(self)
        self._depth = 0
        self._names: dict[tuple[object, str], Value | None] = {}
        self._members: dict[tuple[ClassDeclaration, str], Value | None] = {}
        self._globals: dict[ModuleDeclaration, frozenset[str]] = {}

    def truth(self, test: ast.expr, scope: Scope, *, typing: bool = False) -> bool | None:
        """Whether a condition holds; None where no fact decides it. `typing` evaluates as a type checker would."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if _names_type_checking(test):
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
        return truth_of(value.value) if value is not None and value.is_fact else None

    def is_typing_only(self, contexts: tuple[Context, ...]) -> bool:
        """True where a statement stands under `if TYPE_CHECKING`."""
        return any(
            isinstance(context, Condition) and context.value and _names_type_checking(context.test)
            for context in contexts
        )

    def evaluate(self, node: ast.expr, scope: Scope) -> Value | None:
        """The value of an expression where it is known before the program runs."""
        handler = _EVALUATORS.get(type(node))
        if handler is None or self._depth > _DEPTH:
            return None
        self._depth += 1
        try:
            return handler(self, node, scope)
        except _MISFITS:
            return None
        finally:
            self._depth -= 1

    def argument(self, node: ast.expr, scope: Scope) -> Value | None:
        """The value of an expression, or the class, function or instance that it is of the program's."""
        found = self.evaluate(node, scope)
        if found is not None:
            return found
        type_ = self.program.inference.infer(node, scope)
        if isinstance(type_, Module | Class | Function | Lambda):
            return Value(type_, self.is_of_target(type_))
        if isinstance(type_, Instance) and isinstance(type_.class_, Class):
            return Value(type_)
        return None

    # The target

    @property
    def version(self) -> Value | None:
        """The target's version, as text."""
        version = self.program.target.version
        return Value(version, is_fact=True) if version else None

    def is_of_target(self, type_: Type) -> bool:
        """True for a module, class, function or instance of the target's."""
        if isinstance(type_, Module):
            return self.program.is_target(type_.name)
        if isinstance(type_, Instance):
            return isinstance(type_.class_, Class) and self.is_of_target(type_.class_)
        if isinstance(type_, Class | Function):
            return self.program.is_target(type_.declaration.module.name)
        return False

    def has_attribute(self, owner: Type, name: str) -> bool | None:
        """Whether a thing of the target has an attribute; None where that can't be told."""
        return self.probes.has_attribute(owner, name)

    def typed(self, type_: Type) -> Value | None:
        """A module, class or function as a value: what matters is that it is there."""
        if isinstance(type_, Module | Function) or (isinstance(type_, Class) and not type_.is_open):
            return Value(type_, self.is_of_target(type_))
        return None

    def names_version(self, module: str, name: str) -> bool:
        """True where a name of a module of the target is the target's version, whatever file it is written to."""
        return self._version_named(module, name) is not None

    def _version_named(self, module: str, name: str) -> Value | None:
        """What a name of the target's version is, where the module holds it."""
        top, _, rest = module.partition(".")
        if not self.program.is_target(module) or rest not in ("", "version", "_version") or self.version is None:
            return None
        if (
            top != self.program.target.name.replace("-", "_")
            and self.program.target.name in self.program.target_index.top_level
        ):
            return None
        if name == "__version__" or (rest and name in _TEXT_VERSIONS):
            return self.version
        if name == "__version_tuple__" or (rest and name in _TUPLE_VERSIONS):
            parts = re.split(r"[.+]", self.version.value)
            return Value(tuple(int(part) if part.isdigit() else part for part in parts), is_fact=True)
        return None

    # Names

    def _constant(self, node: ast.Constant, scope: Scope) -> Value | None:
        return Value(node.value)

    def _name(self, node: ast.Name, scope: Scope) -> Value | None:
        if isinstance(scope, ValueScope) and (owner := scope.owner(node.id)) is not None:
            return owner.values[node.id]
        return self.named(node.id, scope)

    def named(self, name: str, scope: Scope) -> Value | None:
        """What a name stands for."""
        bindings, home = scope.bindings(name)
        if not bindings:
            if isinstance(home, ModuleScope):
                return self._starred(name, home) if home.module.star_imports else None
            # Every call of a function would have to be looked for: that is worth it for what is called a version.
            if isinstance(home, FunctionScope) and "version" in name and name in home.parameters:
                return self.given.value(home.declaration, name)
            return None
        key = (_owner_of(home), name)
        if key not in self._names:
            # A name that depends on itself is not known.
            self._names[key] = None
            try:
                self._names[key] = self._choose(name, bindings, home, in_order=home.function is None)
            except _MISFITS:
                self._names[key] = None
        return self._names[key]

    def initial(self, name: str, scope: Scope) -> Value | None:
        """What a module gives a name that functions then change: its constant."""
        bindings = scope.module.names.get(name, [])
        if len(bindings) == 1 and isinstance(bindings[0].value, ast.Constant):
            return Value(bindings[0].value.value)
        return None

    def _starred(self, name: str, home: ModuleScope) -> Value | None:
        for star in reversed(home.module.star_imports):
            base = self.program.import_base(home.module, star.node)
            module = self.program.module(base) if self.program.is_client(base) else None
            if module is not None and name in module.names:
                return self.named(name, ModuleScope(self.program, module))
        return None

    def _choose(self, name: str, bindings: list[Binding], home: Scope, *, in_order: bool) -> Value | None:
        """What the one binding gives that holds, or what all that may hold agree on.

        `in_order` where they run once and one after the other, so that the last sure one stands: in the bodies of modules
        and classes.
        """
        if any(binding.element in ("del", "augmented") for binding in bindings):
            return None
        if home.function is None and self._is_made_global(name, home):
            return None
        possible: list[Binding] = []
        rests_on_target = False
        for binding in reversed(bindings):
            runs = self.program.liveness(binding.contexts, home, line=binding.line) if binding.contexts else True
            if runs is not None and len(bindings) > 1 and not rests_on_target:
                rests_on_target = self._rests_on_target(binding, home)
            if runs is False:
                continue
            possible.append(binding)
            if runs is True and in_order:
                break
        if not possible and self._is_lazy(bindings, home):
            possible = [binding for binding in bindings if self.is_typing_only(binding.contexts)]
        if len(possible) > _MOST_BINDINGS:
            return None
        values = {id(binding): self._bound(binding, home) for binding in possible}
        if len(possible) > 1:
            kept = self._after_attempts(possible, values, home)
            rests_on_target = rests_on_target or len(kept) < len(possible)
            possible = kept
        value = one_of([values[id(binding)] for binding in possible])
        if value is None or value.is_fact:
            return value
        if rests_on_target:
            return Value(value.value, is_fact=True)
        # What a module or class says of an ordinary flag need not be what it is by the time somebody asks.
        return None if in_order and isinstance(value.value, bool | None) else value

    def _after_attempts(self, possible: list[Binding], values: dict[int, Value | None], home: Scope) -> list[Binding]:
        """The bindings that are left where a `try` binds a name in its body and in a handler."""
        dropped: set[int] = set()
        for binding in possible:
            attempt = binding.contexts[-1] if binding.contexts else None
            if not isinstance(attempt, Attempt) or attempt.part != "body":
                continue
            handlers = {
                id(other): other.contexts[-1].caught
                for other in possible
                if other.contexts
                and isinstance(other.contexts[-1], Attempt)
                and other.contexts[-1].statement is attempt.statement
                and other.contexts[-1].part == "handler"
            }
            value = values[id(binding)]
            raised = self.raised_by(binding.node, home) if isinstance(binding.node, ast.stmt) else ()
            if raised and any(_may_catch(caught, raised) for caught in handlers.values()):
                dropped.add(id(binding))
            elif value is not None and value.is_fact:
                dropped.update(handlers)
        return [binding for binding in possible if id(binding) not in dropped]

    def _is_lazy(self, bindings: list[Binding], home: Scope) -> bool:
        """True where a module that replaces itself shows type checkers what its names will be."""
        return (
            home.function is None
            and any(self.is_typing_only(binding.contexts) for binding in bindings)
            and "sys.modules[__name__]" in home.module.text
        )

    def _is_made_global(self, name: str, home: Scope) -> bool:
        """True where a function of the module assigns the name."""
        found = self._globals.get(home.module)
        if found is None:
            lines = [line.split() for line in home.module.lines if "global " in line]
            declared = [words[1:] for words in lines if words[0] == "global"]
            found = self._globals[home.module] = frozenset(word.strip(",;") for words in declared for word in words)
        return name in found

    def _rests_on_target(self, binding: Binding, home: Scope) -> bool:
        """True where the target decides one of the branches around a binding, and not a constant."""
        for context in binding.contexts:
            if self.program.liveness((context,), home, line=binding.line) is None:
                continue
            if isinstance(context, Condition):
                test = context.test
                while isinstance(test, ast.UnaryOp):
                    test = test.operand
                if not isinstance(test, ast.Constant) and not _names_type_checking(test):
                    return True
            elif any(
                self.program.is_target(base) for base in _imported_modules(context.statement, home, self.program)
            ):
                return True
        return False

    def _bound(self, binding: Binding, home: Scope) -> Value | None:
        """What one binding gives its name."""
        if isinstance(binding.node, ast.Import | ast.ImportFrom):
            return self._imported(binding.node, binding.name, home)
        if binding.function is not None:
            return self.typed(self.program.inference.decorated(binding.function, home))
        if binding.class_ is not None:
            return Value(Class(binding.class_), self.is_of_target(Class(binding.class_)))
        if binding.value is None or binding.element:
            return None
        value = self.evaluate(binding.value, home)
        if value is not None and is_mutable(binding.value) and self._is_changed(binding.name, home):
            return None
        for index in binding.path:
            if value is None or index is None:
                return None
            value = Value(item_of(value.value, index), value.is_fact)
        return value

    def _is_changed(self, name: str, home: Scope) -> bool:
        """True where a list or set of that name is changed after it was made."""
        text = home.declaration.source if isinstance(home, FunctionScope) else home.module.text
        return re.search(rf"\b{re.escape(name)}(\.({_CHANGES})\(|\[.*\]\s*[-+|]?=[^=])", text) is not None

    def _imported(self, node: ast.Import | ast.ImportFrom, name: str, home: Scope) -> Value | None:
        if isinstance(node, ast.Import):
            return self.typed(self.program.imported(home.module, node, name, typing=False))
        base = self.program.import_base(home.module, node)
        original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), "")
        version = self._version_named(base, original)
        if version is not None:
            return version
        module = self.program.module(base) if self.program.is_client(base) else None
        if module is not None and (original in module.names or module.star_imports):
            found = self.named(original, ModuleScope(self.program, module))
            if found is not None or not self.program.is_target(base):
                return found
        return self.typed(self.program.imported_name(base, original))

    def imported_values(
        self, node: ast.Import | ast.ImportFrom, scope: Scope
    ) -> dict[str, Value | None] | Absent | External:
        """What an import statement binds; Absent where it fails, External where a library may be missing."""
        from driftcheck.surface.program import is_standard_library

        found: dict[str, Value | None] = {}
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                type_ = self.program.module_type(alias.name)
            else:
                name = alias.asname or alias.name
                base = self.program.import_base(scope.module, node)
                has_version = self.names_version(base, alias.name)
                type_ = self.program.module_type(base) if has_version else self.program.imported_name(base, alias.name)
            if isinstance(type_, Absent):
                # What the client itself lacks, a build may have put there.
                return type_ if self.program.is_target(type_.owner or type_.name) else External(type_.name)
            if isinstance(type_, External) and not is_standard_library(type_.path):
                return type_
            found[name] = self._imported(node, name, scope)
        return found

    def raised_by(self, node: ast.AST, scope: Scope) -> tuple[str, ...]:
        """The exceptions that a simple statement surely raises: it reads what the target does not have."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
                owner = self.program.inference.infer(inner.value, scope)
                if isinstance(owner, Module | Class) and self.has_attribute(owner, inner.attr) is False:
                    return ("AttributeError",)
            elif isinstance(inner, ast.Call):
                callee = self.program.inference.infer(inner.func, scope)
                if callee == External("importlib.import_module") and inner.args:
                    name = self.evaluate(inner.args[0], scope)
                    if name is not None and self.program.is_target(str(name.value)):
                        if isinstance(self.program.module_type(str(name.value)), Absent):
                            return ("ModuleNotFoundError",)
            elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                return ()
        return ()

    # Attributes

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
            return self.probes.table(owner, name)
        if isinstance(owner, Module):
            return self._module_attribute(owner, name)
        if isinstance(owner, Class) or (isinstance(owner, Instance) and isinstance(owner.class_, Class)):
            class_ = owner.class_ if isinstance(owner, Instance) else owner
            assert isinstance(class_, Class)
            if self.program.is_client(class_.declaration.module.name):
                found = self._member(owner, class_, name)
                if found is not None:
                    return found
            if self.is_of_target(class_) and not class_.is_open:
                return self.typed(self.program.inference.attribute(owner, name))
        return None

    def _module_attribute(self, owner: Module, name: str) -> Value | None:
        version = self._version_named(owner.name, name)
        if version is not None:
            return version
        if self.program.is_client(owner.name):
            module = self.program.module(owner.name)
            if module is not None and (name in module.names or module.star_imports):
                found = self.named(name, ModuleScope(self.program, module))
                if found is not None:
                    return found
        return self.typed(self.program.module_attribute(owner.name, name))

    def _member(self, owner: Type, class_: Class, name: str) -> Value | None:
        """A flag that a class of the client's has, or stores on its instances in one place; facts only."""
        key = (class_.declaration, name)
        if key not in self._members:
            self._members[key] = None
            try:
                found = self._member_value(owner, class_, name)
            except _MISFITS:
                found = None
            self._members[key] = found if found is not None and found.is_fact else None
        return self._members[key]

    def _member_value(self, owner: Type, class_: Class, name: str) -> Value | None:
        classes = self.program.classes
        bindings: list[tuple[Binding, Scope]] = []
        stores: list[Store] = []
        for base in classes.mro(class_):
            if not isinstance(base, Class):
                continue
            declaration = base.declaration
            own = declaration.members.get(name, [])
            stored = list(classes.stores(declaration, name))
            if (own or stored) and not self.program.is_client(declaration.module.name):
                return None
            bindings += [(binding, self.program.class_scope(declaration)) for binding in own]
            stores += stored
            if any(binding.function for binding in own):
                break
        if len(stores) == 1 and not bindings:
            return self._bound(stores[0].binding, self.program.function_scope(stores[0].function))
        if not stores and len(bindings) == 1:
            binding, home = bindings[0]
            if binding.function is None:
                return self._bound(binding, home)
            if classes.role(binding.function) == "property":
                return self.interpreter.read(Function(binding.function, owner, class_, skips_first=True))
        if not bindings and len({store.function for store in stores}) == 1:
            return self._stored(name, stores)
        return None

    def _stored(self, name: str, stores: list[Store]) -> Value | None:
        """What the last sure one of several stores in one method gives."""
        function = stores[0].function
        placed: list[Binding] = []
        for store in stores:
            contexts = _contexts_of(function.body, store.binding.node)
            if contexts is None:
                return None
            placed.append(replace(store.binding, contexts=contexts))
        return self._choose(name, placed, self.program.function_scope(function), in_order=True)

    # Calls

    def _call(self, node: ast.Call, scope: Scope) -> Value | None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in VALUE_METHODS:
            receiver = self.evaluate(node.func.value, scope)
            if receiver is not None and not is_type(receiver.value):
                return self._method_call(receiver, node.func.attr, node, scope)
        if isinstance(scope, ValueScope) and isinstance(node.func, ast.Name | ast.Call):
            made = self.evaluate(node.func, scope)
            if made is not None and isinstance(made.value, Closure):
                return self.interpreter.call_closure(made.value, node, scope)
        called = self.program.inference.infer(node.func, scope)
        if isinstance(called, External):
            return self.outside.answer(called.path, node, scope)
        if isinstance(called, Function):
            return self.interpreter.call(called, node, scope)
        if isinstance(called, Lambda):
            home = ModuleScope(self.program, called.module)
            return self.interpreter.call_lambda(called, node, scope, home)
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
        truth = truth_of(test.value) if test is not None else self.truth(node.test, scope)
        if truth is None:
            return None
        chosen = self.argument(node.body if truth else node.orelse, scope)
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
            found.append(None if None in truths else self.argument(node.elt, inner))
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


def _contexts_of(body: Sequence[ast.stmt], node: ast.AST) -> tuple[Context, ...] | None:
    """The branches of a function's body in which a statement stands; None where a loop makes it run again."""
    for statement in body:
        if statement is node:
            return ()
        parts: list[tuple[Sequence[ast.stmt], tuple[Context, ...]]] = []
        if isinstance(statement, ast.If):
            parts = [(statement.body, (Condition(statement.test, True),)), (statement.orelse, (Condition(statement.test, False),))]
        elif isinstance(statement, ast.Try):
            parts = [(statement.body, (Attempt(statement, "body"),)), (statement.orelse, (Attempt(statement, "orelse"),))]
            parts += [(h.body, (Attempt(statement, "handler", caught_names(h.type)),)) for h in statement.handlers]
        elif isinstance(statement, ast.With):
            parts = [(statement.body, ())]
        for inner, contexts in parts:
            found = _contexts_of(inner, node)
            if found is not None:
                return (*contexts, *found)
    return None


def _owner_of(home: Scope) -> object:
    """What makes a scope the one it is."""
    if isinstance(home, FunctionScope):
        return home.declaration
    return home.class_ if isinstance(home, ClassScope) else home.module


def _may_catch(caught: tuple[str, ...], raised: tuple[str, ...]) -> bool:
    wider = {"Exception", "BaseException", *raised}
    if "ModuleNotFoundError" in raised:
        wider.add("ImportError")
    return bool(wider.intersection(caught))


def _imported_modules(statement: ast.Try, home: Scope, program: Program) -> Iterable[str]:
    for node in statement.body:
        if isinstance(node, ast.ImportFrom):
            yield program.import_base(home.module, node)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


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
    import inspect

    if found[1] is None and found[3] is None:
        return Value(inspect.Parameter.empty)
    name = found[2] or found[3]
    return Value(getattr(inspect.Parameter, name)) if name.isupper() or name == "empty" else None


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
    ast.BinOp: Facts._arithmetic,
    ast.IfExp: Facts._conditional,
    ast.NamedExpr: Facts._walrus,
    ast.Tuple: Facts._tuple,
    ast.List: Facts._tuple,
    ast.Set: Facts._tuple,
    ast.Subscript: Facts._subscript,
    ast.GeneratorExp: Facts._comprehension,
    ast.ListComp: Facts._comprehension,
    ast.SetComp: Facts._comprehension,
    ast.JoinedStr: Facts._text,
}
