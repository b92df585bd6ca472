"""Walks a client's module in the order in which it runs and collects every usage, with the types met on the way."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from driftcheck.surface.declarations import (
    Binding,
    ClassDeclaration,
    FunctionDeclaration,
    caught_names,
    target_names,
)
from driftcheck.surface.scopes import ClassScope, FunctionScope, ModuleScope, Scope
from driftcheck.surface.slim_trees import for_slim_nodes
from driftcheck.surface.syntax import children, named_parameters, nodes_of, stored_targets
from driftcheck.surface.types import Absent, Class, Dictionary, Function, Instance, Type, Unknown, inexact, union
from driftcheck.usage.expressions import Expressions, call_of
from driftcheck.usage.flow import FlowScope, State, merge, path_of
from driftcheck.usage.guards import (
    ends_the_program,
    guard_of,
    is_type_checking,
    suppressed_exceptions,
)
from driftcheck.usage.usages import (
    CallUsage,
    ClassUsage,
    Guard,
    ImportUsage,
)

# What is raised where a call or a name does not fit.
_MISFITS = frozenset(("TypeError", "AttributeError", "ImportError", "ModuleNotFoundError"))


class Collector(Expressions):
    """Collects the usages of one client module and gives each to `sink`."""

    def collect(self, scopes: Collection[str] | None = None) -> None:
        """Walks the module's own statements, then its functions; only those with these scopes in them where given."""
        entered = None if scopes is None else {around for scope in scopes for around in _scopes_around(scope)}
        self._block(self.module.tree.body)
        while self._pending:
            function, scope_name = self._pending.popleft()
            if entered is None or scope_name in entered:
                self._function_body(function, scope_name)

    # Blocks

    def _block(self, statements: Sequence[ast.stmt]) -> bool:
        """Walks statements in order; False where control does not come out at the end."""
        for statement in statements:
            handler = _STATEMENTS.get(type(statement))
            self._scope.memo.clear()
            if handler is None:
                for child in children(statement):
                    if isinstance(child, ast.expr):
                        self._visit(child)
            elif handler(self, statement) is False:
                return False
        return True

    def _function_body(self, function: FunctionDeclaration, scope_name: str) -> None:
        scope = self.program.function_scope(function)
        if self.reachability is not None:
            self.reachability.entered(self.module.path, scope_name, function)
        self.scope_name = scope_name
        self.guards = ()
        self.typing_depth = 0
        self._origins = {}
        state: State = {name: scope.parameter_type(name) for name in scope.parameters}
        self._scope = FlowScope(scope, state)
        self._block(function.body)

    def _in_scope(self, outer: Scope, statements: Sequence[ast.stmt]) -> None:
        before = self._scope
        self._scope = FlowScope(outer)
        self._block(statements)
        self._scope = before

    # Statements

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node)
        arguments = node.args
        for default in [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]:
            self._visit(default)
        every = named_parameters(arguments)
        every += [variadic for variadic in (arguments.vararg, arguments.kwarg) if variadic is not None]
        for argument in every:
            if argument.annotation is not None:
                self._annotation(argument.annotation)
        if node.returns is not None:
            self._annotation(node.returns)
        function = self._declared(node)
        if isinstance(function, FunctionDeclaration):
            if not self.program.conditional.is_left_out(function):
                self._pending.append((function, self._qualified(node.name)))
            if self._scope.function is not None:
                self._scope.assign(node.name, self.program.inference.decorated(function, self._scope.outer))

    def _declared(self, node: ast.stmt) -> FunctionDeclaration | ClassDeclaration | None:
        """The declaration of a function or class statement in the scope at hand."""
        name: str = node.name  # type: ignore[attr-defined]
        outer: Scope = self._scope.outer
        candidates: list[Binding] = []
        if isinstance(outer, FunctionScope):
            candidates = outer.locals.get(name, [])
        elif isinstance(outer, ClassScope):
            candidates = outer.class_.members.get(name, [])
        elif isinstance(outer, ModuleScope):
            candidates = self.module.names.get(name, [])
        for binding in candidates:
            if binding.node is node:
                return binding.function or binding.class_
        return None

    def _decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Visits decorators, each of which is called with what it decorates."""
        for decorator in node.decorator_list:
            self._visit(decorator)
            callee = self._infer(decorator)
            if self.concerns(callee):
                call = ast.copy_location(
                    ast.Call(decorator, [ast.copy_location(ast.Name(node.name), decorator)], []), decorator
                )
                self._emit(CallUsage(*self._common(decorator), call, callee, {}))

    def _class(self, node: ast.ClassDef) -> None:
        self._decorators(node)
        for base in node.bases:
            self._visit(base)
            self._refer(base, "base")
        for keyword in node.keywords:
            self._visit(keyword.value)
        class_ = self._declared(node)
        if not isinstance(class_, ClassDeclaration) or self.program.conditional.is_left_out(class_):
            return
        if node.bases:
            self._emit(ClassUsage(*self._common(node), class_))
            self._class_keywords(node, class_)
        if self._scope.function is not None:
            self._scope.assign(node.name, self.program.classes.decorated(class_, self._scope.outer))
        before, self.scope_name = self.scope_name, self._qualified(node.name)
        self._in_scope(self.program.class_scope(class_), node.body)
        self.scope_name = before

    def _class_keywords(self, node: ast.ClassDef, class_: ClassDeclaration) -> None:
        """The keywords of a class statement, which `__init_subclass__` of a base is called with."""
        keywords = [keyword for keyword in node.keywords if keyword.arg != "metaclass"]
        if not keywords:
            return
        for base in self.program.classes.linearize(class_)[1:]:
            bindings = base.declaration.members.get("__init_subclass__") if isinstance(base, Class) else None
            if not isinstance(base, Class) or not bindings or bindings[-1].function is None:
                continue
            callee = Function(bindings[-1].function, Class(class_), base, skips_first=True)
            if self.concerns(callee):
                name = ast.copy_location(ast.Name("__init_subclass__"), node)
                call = ast.copy_location(ast.Call(name, [], keywords), node)
                self._emit(CallUsage(*self._common(node), call, callee, {}))
            return

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            result = self.program.module_type(alias.name)
            name = alias.asname or alias.name.partition(".")[0]
            if self._scope.function is not None:
                self._scope.assign(name, result if alias.asname else self.program.module_type(name))
            self._emit(ImportUsage(*self._common(alias), alias.name, None, result, node, node))
            self._note_import(alias.name)

    def _note_import(self, module: str) -> None:
        if self.reachability is not None:
            self.reachability.imported(module, self.module, self._scope.function)

    def _import_from(self, node: ast.ImportFrom) -> None:
        base = self.program.import_base(self.module, node)
        self._note_import(base)
        for alias in node.names:
            self._note_import(f"{base}.{alias.name}")
            if alias.name == "*":
                self._emit(ImportUsage(*self._common(node), base, None, self.program.module_type(base), node, node))
                continue
            result = self.program.imported_name(base, alias.name)
            if isinstance(result, Absent) and self.typing_depth:
                result = self.program.imported_name(base, alias.name, typing=True)
            if self._scope.function is not None:
                self._scope.assign(alias.asname or alias.name, result)
            self._emit(ImportUsage(*self._common(alias), base, alias.name, result, node, node))

    def _assign(self, node: ast.Assign) -> None:
        self._note_unpacking(node)
        self._visit(node.value)
        type_ = self._infer(node.value)
        for target in node.targets:
            self._bind(target, type_, node.value)
            if isinstance(target, ast.Attribute):
                for patch in self._patches.stored(target.value, target.attr, node.value, target):
                    self._emit(patch)
            if isinstance(target, ast.Name):
                call = call_of(node.value)
                if call is not None:
                    self._origins[target.id] = call
                else:
                    self._origins.pop(target.id, None)

    def _note_unpacking(self, node: ast.Assign) -> None:
        """Notes into how many targets the result of a call goes, before the call is collected."""
        target, call = node.targets[0], call_of(node.value)
        if call is not None and isinstance(target, ast.Tuple | ast.List):
            if not any(isinstance(element, ast.Starred) for element in target.elts):
                self._counts[id(call)] = len(target.elts)

    def _annotated(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self._visit(node.value)
        declared = self.program.annotations.instance(node.annotation, self._scope)
        if isinstance(declared, Unknown) and node.value is not None:
            # Whoever writes `Any` says that the value may be more than what is seen to be put there.
            declared = inexact(self._infer(node.value))
        self._store(node.target, declared)

    def _augmented(self, node: ast.AugAssign) -> None:
        self._visit(node.value)
        if isinstance(node.target, ast.Attribute):
            self._visit(node.target.value)
            self._emit_attribute(node.target, is_stored=False)
        else:
            self._visit(node.target)
        path = path_of(node.target)
        if path is not None:
            self._scope.forget(path)

    def _bind(self, target: ast.expr, type_: Type, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            has_star = any(isinstance(element, ast.Starred) for element in target.elts)
            self._use(value, target, "unpack", count=len(target.elts) - has_star, has_star=has_star)
            is_exact = True
            for index, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    is_exact = False
                    self._store(element.value, self.program.inference.at_path(type_, (None,)))
                else:
                    way = index if is_exact else None
                    inner = (
                        self.program.inference.at_path(type_, (way,)) if way is not None else Unknown("unpacked value")
                    )
                    if isinstance(element, ast.Tuple | ast.List):
                        self._bind(element, inner, value)
                    else:
                        self._store(element, inner)
        else:
            self._store(target, type_)

    def _store(self, target: ast.expr, type_: Type) -> None:
        if isinstance(type_, Absent):
            type_ = Unknown("something that is not there")
        if isinstance(target, ast.Name):
            if self._scope.function is not None or not isinstance(self._scope.outer, ClassScope):
                self._scope.assign(target.id, type_)
        elif isinstance(target, ast.Attribute):
            self._visit(target.value)
            self._emit_attribute(target, is_stored=True)
            path = path_of(target)
            if path is not None:
                declared = self.program.inference.attribute(self._infer(target.value), target.attr)
                self._scope.assign(path, type_ if not isinstance(type_, Unknown) else _or_unknown(declared))
        elif isinstance(target, ast.Starred):
            self._store(target.value, Unknown("unpacked value"))
        elif isinstance(target, ast.Subscript):
            self._visit(target.value)
            self._visit(target.slice)
            self._note_variable(target.value, target.slice, target, is_set=True)
            path = path_of(target.value)
            if path is not None and path in self._scope.state:
                # What a dict literal held is no longer all it holds.
                self._scope.state[path] = _opened(self._scope.state[path], target.slice, type_)
                self._scope.memo.clear()
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._store(element, Unknown("unpacked value"))

    def _if(self, node: ast.If) -> bool:
        self._visit(node.test)
        truth = self.program.facts.truth(node.test, self._scope, typing=False)
        if truth is not None:
            return self._settled(node, truth=truth)
        before = dict(self._scope.state)
        self._scope.narrow(node.test, True)
        through = self._block(node.body)
        states = [self._scope.state] if through else []
        self._scope.restore(before)
        self._scope.narrow(node.test, False)
        if self._block(node.orelse):
            states.append(self._scope.state)
        if not states:
            return False
        self._scope.restore(merge(states, self._scope))
        return True

    def _settled(self, node: ast.If, *, truth: bool) -> bool:
        """A branch that a fact decides: the other is dead, and only looked at where it is for type checkers."""
        if truth:
            return self._block(node.body)
        if is_type_checking(node.test):
            self.typing_depth += 1
            before = dict(self._scope.state)
            self._block(node.body)
            self._scope.restore(before)
            self.typing_depth -= 1
        return self._block(node.orelse)

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        self._visit(node.iter)
        if isinstance(node, ast.For):
            if not self._use(node.iter, node.iter, "iterate"):
                self._emit_protocol(node.iter, node.iter, "__iter__", "__getitem__")
        element = self.program.inference.element(self._infer(node.iter))
        self._widen(node)
        before = dict(self._scope.state)
        self._bind_loop(node.target, element)
        self._block(node.body)
        self._scope.restore(merge([before, self._scope.state], self._scope))
        self._block(node.orelse)

    def _bind_loop(self, target: ast.expr, element: Type) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for name, path in target_names(target):
                self._scope.assign(name, self.program.inference.at_path(element, path))
        else:
            self._store(target, element)

    def _while(self, node: ast.While) -> None:
        self._widen(node)
        self._visit(node.test)
        before = dict(self._scope.state)
        self._scope.narrow(node.test, True)
        self._block(node.body)
        self._scope.restore(merge([before, self._scope.state], self._scope))
        self._block(node.orelse)

    def _widen(self, node: ast.stmt) -> None:
        """Forgets, before a loop, the exact types of what its body assigns: a later round sees other values."""
        for target in stored_targets(node):
            path = path_of(target)
            if path is None or path not in self._scope.state:
                continue
            if "." in path:
                self._scope.forget(path)
            else:
                known = self._scope.state[path]
                self._scope.assign(path, union([known, self._scope.outer.lookup(path)]))

    def _try(self, node: ast.Try) -> bool:
        outcome = self.program.attempt_outcome(node, self._scope)
        guard = guard_of(node)
        before = dict(self._scope.state)
        around = self.guards
        self.guards = (*around, guard)
        through = self._block(node.body)
        self.guards = around
        states: list[State] = []
        after = dict(self._scope.state)
        if through:
            through = self._block(node.orelse)
            if through and outcome is not False:
                states.append(self._scope.state)
        entry = merge([before, after], self._scope)
        for handler in node.handlers:
            if outcome is True and set(caught_names(handler.type)) <= {"ImportError", "ModuleNotFoundError"}:
                continue
            self._scope.restore(dict(entry))
            if handler.type is not None:
                self._visit(handler.type)
                for caught in handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]:
                    self._refer(caught, "except")
            if handler.name is not None and handler.type is not None:
                self._scope.assign(handler.name, self.program.inference.caught(handler.type, self._scope))
            is_for_misfits = set(caught_names(handler.type)) <= _MISFITS
            if is_for_misfits:
                self.guards = (*around, Guard(handler.lineno, frozenset(), False, False, False, guard))
            if self._block(handler.body):
                states.append(self._scope.state)
            self.guards = around
        if outcome is False and not states and guard.reraises and through:
            # The import is a finding. Once that is put right, what follows runs.
            states.append(after)
        ends = not states
        self._scope.restore(merge(states, self._scope) if states else entry)
        if node.finalbody and not self._block(node.finalbody):
            return False
        return not ends

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        suppressed: set[str] = set()
        for item in node.items:
            self._visit(item.context_expr)
            method = "__enter__" if isinstance(node, ast.With) else "__aenter__"
            self._emit_protocol(item.context_expr, item.context_expr, method)
            suppressed.update(suppressed_exceptions(item.context_expr))
            if item.optional_vars is not None:
                type_ = self._infer(item.context_expr)
                if isinstance(node, ast.With):
                    entered = self.program.inference.entered(type_, "__enter__")
                else:
                    entered = self.program.inference.awaited(self.program.inference.entered(type_, "__aenter__"))
                self._bind_loop(item.optional_vars, entered)
        around = self.guards
        if suppressed:
            self.guards = (*around, Guard(node.lineno, frozenset(suppressed), False, False, True))
        through = self._block(node.body)
        self.guards = around
        return through or bool(suppressed)

    def _match(self, node: ast.Match) -> None:
        self._visit(node.subject)
        before = dict(self._scope.state)
        states = [before]
        for case in node.cases:
            self._scope.restore(dict(before))
            for pattern in nodes_of(case.pattern):
                if isinstance(pattern, ast.MatchClass):
                    self._visit(pattern.cls)
                elif isinstance(pattern, ast.MatchValue):
                    self._visit(pattern.value)
            subject = path_of(node.subject)
            if subject is not None and isinstance(case.pattern, ast.MatchClass):
                check = ast.Call(ast.Name("isinstance"), [node.subject, case.pattern.cls], [])
                self._scope.narrow(check, True)
            for pattern in nodes_of(case.pattern):
                name = getattr(pattern, "name", None)
                if isinstance(name, str):
                    self._scope.assign(name, self._matched(pattern))
            if case.guard is not None:
                self._visit(case.guard)
                self._scope.narrow(case.guard, True)
            if self._block(case.body):
                states.append(self._scope.state)
        self._scope.restore(merge(states, self._scope))

    def _matched(self, pattern: ast.AST) -> Type:
        """What `case Class() as name` binds."""
        if isinstance(pattern, ast.MatchAs) and isinstance(pattern.pattern, ast.MatchClass):
            class_ = self._infer(pattern.pattern.cls)
            if isinstance(class_, Class):
                return Instance(class_)
        return Unknown("value of a pattern")

    def _return(self, node: ast.Return) -> bool:
        if node.value is not None:
            self._visit(node.value)
        return False

    def _raise(self, node: ast.Raise) -> bool:
        for value in (node.exc, node.cause):
            if value is not None:
                self._visit(value)
        return False

    def _leave(self, node: ast.stmt) -> bool:
        return False

    def _assert(self, node: ast.Assert) -> bool:
        self._visit(node.test)
        if node.msg is not None:
            self._visit(node.msg)
        if self.program.facts.truth(node.test, self._scope) is False:
            return False
        self._scope.narrow(node.test, True)
        return True

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self._drop_key(target.value, target.slice)
            if isinstance(target, ast.Attribute):
                self._visit(target.value)
                self._emit_attribute(target, is_stored=False)
            elif not isinstance(target, ast.Name):
                self._visit(target)
            path = path_of(target)
            if path is not None:
                self._scope.forget(path)

    def _expression(self, node: ast.Expr) -> bool:
        if isinstance(node.value, ast.Constant):
            # A docstring.
            return True
        self._discarded.add(id(node.value))
        self._visit(node.value)
        return not ends_the_program(node.value)

    def _nothing(self, node: ast.stmt) -> None:
        return None


def _scopes_around(scope: str) -> Iterator[str]:
    """A scope and those around it."""
    while scope:
        yield scope
        scope = scope.rpartition(".")[0]


def _or_unknown(type_: Type) -> Type:
    return Unknown("something that is not there") if isinstance(type_, Absent) else type_


def _opened(type_: Type, key: ast.expr, value: Type) -> Type:
    if not isinstance(type_, Dictionary):
        return type_
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        items = tuple({**dict(type_.items), key.value: value}.items())
        return Dictionary(items, type_.is_open, type_.is_forgotten)
    return Dictionary(type_.items, True, type_.is_forgotten)


_STATEMENTS: dict[type[ast.stmt], Callable[[Collector, Any], bool | None]] = {
    ast.FunctionDef: Collector._function,
    ast.AsyncFunctionDef: Collector._function,
    ast.ClassDef: Collector._class,
    ast.Import: Collector._import,
    ast.ImportFrom: Collector._import_from,
    ast.Assign: Collector._assign,
    ast.AnnAssign: Collector._annotated,
    ast.AugAssign: Collector._augmented,
    ast.If: Collector._if,
    ast.For: Collector._loop,
    ast.AsyncFor: Collector._loop,
    ast.While: Collector._while,
    ast.Try: Collector._try,
    ast.With: Collector._with,
    ast.AsyncWith: Collector._with,
    ast.Match: Collector._match,
    ast.Return: Collector._return,
    ast.Raise: Collector._raise,
    ast.Break: Collector._leave,
    ast.Continue: Collector._leave,
    ast.Assert: Collector._assert,
    ast.Delete: Collector._delete,
    ast.Expr: Collector._expression,
    ast.Pass: Collector._nothing,
    ast.Global: Collector._nothing,
    ast.Nonlocal: Collector._nothing,
}
if sys.version_info >= (3, 11):
    _STATEMENTS[ast.TryStar] = Collector._try
_STATEMENTS = for_slim_nodes(_STATEMENTS)
