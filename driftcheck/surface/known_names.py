"""What names of the client stand for where that is known: versions, flags, what guarded imports bind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import Attempt, Binding, Condition, ModuleDeclaration
from driftcheck.surface.interpretation import is_mutable
from driftcheck.surface.scopes import ClassScope, FunctionScope, ModuleScope, Scope
from driftcheck.surface.syntax import nodes_of
from driftcheck.surface.types import Absent, Class, External, Module, Unknown
from driftcheck.surface.values import MISFITS, Value, item_of, one_of

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts
    from driftcheck.surface.program import Program

_MOST_BINDINGS = 4
_CHANGES = "append|extend|insert|remove|pop|clear|add|discard|update|sort|reverse|difference_update|intersection_update"


class KnownNames:
    """Chooses among the bindings of a name the one that holds under the target at hand."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self._names: dict[tuple[object, str], Value | None] = {}
        self._globals: dict[ModuleDeclaration, frozenset[str]] = {}

    def named(self, name: str, scope: Scope) -> Value | None:
        """What a name stands for."""
        bindings, home = scope.bindings(name)
        if not bindings:
            if isinstance(home, ModuleScope):
                return self._starred(name, home) if home.module.star_imports else None
            # Every call of a function would have to be looked for: that is worth it for what is called a version.
            if isinstance(home, FunctionScope) and "version" in name and name in home.parameters:
                return self.facts.given.value(home.declaration, name)
            return None
        key = (_owner_of(home), name)
        if key not in self._names:
            # A name that depends on itself is not known.
            self._names[key] = None
            try:
                self._names[key] = self.chosen(name, bindings, home, in_order=home.function is None)
            except MISFITS:
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

    def chosen(self, name: str, bindings: list[Binding], home: Scope, *, in_order: bool) -> Value | None:
        """What the one binding gives that holds, or what all that may hold agree on.

        `in_order` where they run once and one after the other, so that the last sure one stands: in the bodies of
        modules and classes.
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
            possible = [binding for binding in bindings if self.facts.is_typing_only(binding.contexts)]
        if len(possible) > _MOST_BINDINGS:
            return None
        values = {id(binding): self.bound(binding, home) for binding in possible}
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
            and any(self.facts.is_typing_only(binding.contexts) for binding in bindings)
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
                if not isinstance(test, ast.Constant) and not names_type_checking(test):
                    return True
            elif any(self.program.is_target(base) for base in _imported_modules(context.statement, home, self.program)):
                return True
        return False

    def bound(self, binding: Binding, home: Scope) -> Value | None:
        """What one binding gives its name."""
        if isinstance(binding.node, ast.Import | ast.ImportFrom):
            return self._imported(binding.node, binding.name, home)
        if binding.function is not None:
            return self.facts.typed(self.program.inference.decorated(binding.function, home))
        if binding.class_ is not None:
            return Value(Class(binding.class_), self.facts.is_of_target(Class(binding.class_)))
        if binding.value is None or binding.element:
            return None
        value = self.facts.evaluate(binding.value, home)
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
            return self.facts.typed(self.program.imported(home.module, node, name, typing=False))
        base = self.program.import_base(home.module, node)
        original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), "")
        version = self.facts.version_named(base, original)
        if version is not None:
            return version
        module = self.program.module(base) if self.program.is_client(base) else None
        if module is not None and (original in module.names or module.star_imports):
            found = self.named(original, ModuleScope(self.program, module))
            if found is not None or not self.program.is_target(base):
                return found
        return self.facts.typed(self.program.imported_name(base, original))

    def imported_values(
        self, node: ast.Import | ast.ImportFrom, scope: Scope
    ) -> dict[str, Value | None] | Absent | External:
        """What an import statement binds; Absent where it fails, External where a library may be missing."""
        from driftcheck.surface.program import is_standard_library

        found: dict[str, Value | None] = {}
        base = "" if isinstance(node, ast.Import) else self.program.import_base(scope.module, node)
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                type_ = self.program.module_type(alias.name)
            else:
                name = alias.asname or alias.name
                has_version = self.facts.names_version(base, alias.name)
                type_ = self.program.module_type(base) if has_version else self.program.imported_name(base, alias.name)
            if isinstance(type_, Absent):
                # What the client itself lacks, a build may have put there.
                return type_ if self.program.is_target(type_.owner or type_.name) else External(type_.name)
            if isinstance(type_, External) and not is_standard_library(type_.path):
                return type_
            if isinstance(type_, Unknown) and (
                isinstance(node, ast.Import) or not self.program.defines(base, alias.name)
            ):
                # A compiled module, which this build may have or not.
                return External(alias.name)
            found[name] = self._imported(node, name, scope)
        return found

    def raised_by(self, node: ast.AST, scope: Scope) -> tuple[str, ...]:
        """The exceptions that a simple statement surely raises: it reads what the target does not have."""
        for inner in nodes_of(node):
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
                owner = self.program.inference.infer(inner.value, scope)
                if isinstance(owner, Module | Class) and self.facts.has_attribute(owner, inner.attr) is False:
                    return ("AttributeError",)
            elif isinstance(inner, ast.Call):
                callee = self.program.inference.infer(inner.func, scope)
                if callee == External("importlib.import_module") and inner.args:
                    name = self.facts.evaluate(inner.args[0], scope)
                    if name is not None and self.program.is_target(str(name.value)):
                        if isinstance(self.program.module_type(str(name.value)), Absent):
                            return ("ModuleNotFoundError",)
            elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                return ()
        return ()


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


def names_type_checking(test: ast.expr) -> bool:
    """True for `TYPE_CHECKING`, under whatever module it stands."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
