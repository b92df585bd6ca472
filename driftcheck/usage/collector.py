"""Walks a client's module in the order in which it runs and collects every usage, with the types met on the way."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from driftcheck.model import Location
from driftcheck.surface.calls import Calls
from driftcheck.surface.declarations import (
    Attempt,
    Binding,
    ClassDeclaration,
    FunctionDeclaration,
    ModuleDeclaration,
    caught_names,
    target_names,
)
from driftcheck.surface.program import BUILTINS, IMPORT_ERRORS, Program
from driftcheck.surface.scopes import ClassScope, FunctionScope, ModuleScope, Scope
from driftcheck.surface.types import Absent, Class, Dictionary, External, Function, Instance, Type, Unknown, union
from driftcheck.usage.flow import FlowScope, State, merge, path_of
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    EnvironmentUsage,
    Guard,
    ImportUsage,
    ReferenceUsage,
    ReturnUsage,
    Usage,
)

Sink = Callable[[Usage], None]
# Built-in functions that never change what they are given.
_HARMLESS = frozenset(
    (
        "len",
        "print",
        "str",
        "repr",
        "dict",
        "list",
        "tuple",
        "set",
        "sorted",
        "isinstance",
        "bool",
        "type",
        "id",
        "iter",
    )
)
_ENVIRONMENT = {
    "os.getenv": False,
    "os.environ.get": False,
    "os.environ.pop": True,
    "os.environ.setdefault": True,
    "os.putenv": True,
    "os.unsetenv": True,
}
_ENDINGS = frozenset(("exit", "abort", "_exit", "fail", "skip", "xfail"))


class Collector:
    """Collects the usages of one client module and gives each to `sink`."""

    def __init__(
        self, program: Program, module: ModuleDeclaration, sink: Sink, concerns: Callable[[Type], bool]
    ) -> None:
        self.program = program
        self.module = module
        self.sink = sink
        self.concerns = concerns
        self.guards: list[Guard] = []
        self.names: list[str] = []
        self.typing_depth = 0
        self._awaited: set[int] = set()
        self._discarded: set[int] = set()
        # What was called for the value that a name now holds.
        self._origins: dict[str, ast.Call] = {}
        self._pending: list[tuple[FunctionDeclaration, tuple[str, ...]]] = []
        self._scope: FlowScope = FlowScope(ModuleScope(program, module))

    def collect(self) -> None:
        """Walks the module's own statements, then its functions."""
        assert self.module.tree is not None
        self._block(self.module.tree.body)
        while self._pending:
            function, names = self._pending.pop(0)
            self._function_body(function, list(names))

    # Blocks

    def _block(self, statements: Sequence[ast.stmt]) -> bool:
        """Walks statements in order; False where control does not come out at the end."""
        for statement in statements:
            handler = _STATEMENTS.get(type(statement))
            self._scope.memo.clear()
            if handler is None:
                for child in ast.iter_child_nodes(statement):
                    if isinstance(child, ast.expr):
                        self._visit(child)
            elif handler(self, statement) is False:
                return False
        return True

    def _function_body(self, function: FunctionDeclaration, names: list[str]) -> None:
        scope = self.program.function_scope(function)
        self.names = names
        self.guards = []
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
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [variadic for variadic in (arguments.vararg, arguments.kwarg) if variadic is not None]
        for argument in every:
            if argument.annotation is not None:
                self._annotation(argument.annotation)
        if node.returns is not None:
            self._annotation(node.returns)
        function = self._declared(node)
        if isinstance(function, FunctionDeclaration):
            self._pending.append((function, (*self.names, node.name)))
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
                self._emit(CallUsage(*self._common(decorator), call, callee, {}, self.location))

    def _class(self, node: ast.ClassDef) -> None:
        self._decorators(node)
        for base in node.bases:
            self._visit(base)
            self._refer(base, "base")
        for keyword in node.keywords:
            self._visit(keyword.value)
        class_ = self._declared(node)
        if not isinstance(class_, ClassDeclaration):
            return
        if self._scope.function is not None:
            self._scope.assign(node.name, self.program.classes.decorated(class_, self._scope.outer))
        self.names.append(node.name)
        self._in_scope(self.program.class_scope(class_), node.body)
        self.names.pop()

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            result = self.program.module_type(alias.name)
            name = alias.asname or alias.name.partition(".")[0]
            if self._scope.function is not None:
                self._scope.assign(name, result if alias.asname else self.program.module_type(name))
            self._emit(ImportUsage(*self._common(alias), alias.name, None, result, node, self.location(node)))

    def _import_from(self, node: ast.ImportFrom) -> None:
        base = self.program.import_base(self.module, node)
        for alias in node.names:
            if alias.name == "*":
                self._emit(
                    ImportUsage(
                        *self._common(node), base, None, self.program.module_type(base), node, self.location(node)
                    )
                )
                continue
            result = self.program.imported_name(base, alias.name)
            if isinstance(result, Absent) and self.typing_depth:
                result = self.program.imported_name(base, alias.name, typing=True)
            if self._scope.function is not None:
                self._scope.assign(alias.asname or alias.name, result)
            self._emit(ImportUsage(*self._common(alias), base, alias.name, result, node, self.location(node)))

    def _assign(self, node: ast.Assign) -> None:
        self._visit(node.value)
        type_ = self._infer(node.value)
        for target in node.targets:
            self._bind(target, type_, node.value)
            if isinstance(target, ast.Name):
                call = _call_of(node.value)
                if call is not None:
                    self._origins[target.id] = call
                else:
                    self._origins.pop(target.id, None)

    def _annotated(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self._visit(node.value)
        declared = self.program.annotations.instance(node.annotation, self._scope)
        if isinstance(declared, Unknown) and node.value is not None:
            declared = self._infer(node.value)
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
        if _is_type_checking(node.test):
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
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Store | ast.Del):
                path = path_of(inner)
                if path is None or path not in self._scope.state:
                    continue
                if "." in path:
                    self._scope.forget(path)
                else:
                    known = self._scope.state[path]
                    self._scope.assign(path, union([known, self._scope.outer.lookup(path)]))

    def _try(self, node: ast.Try) -> bool:
        outcome = self.program.attempt_outcome(node, self._scope)
        guard = self._guard_of(node)
        before = dict(self._scope.state)
        self.guards.append(guard)
        through = self._block(node.body)
        self.guards.pop()
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
            if self._block(handler.body):
                states.append(self._scope.state)
        ends = not states
        self._scope.restore(merge(states, self._scope) if states else entry)
        if node.finalbody and not self._block(node.finalbody):
            return False
        return not ends

    def _guard_of(self, node: ast.Try) -> Guard:
        caught: set[str] = set()
        reraises = falls_back = swallows = False
        for handler in node.handlers:
            caught.update(caught_names(handler.type))
            last = handler.body[-1]
            raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(ast.Module(handler.body, [])))
            tries = any(_does_something_else(statement) for statement in handler.body)
            reraises = reraises or (raises and not tries) or isinstance(last, ast.Raise)
            falls_back = falls_back or (tries and not isinstance(last, ast.Raise))
            swallows = swallows or not (raises or tries)
        return Guard(node.lineno, frozenset(caught), reraises, falls_back, swallows)

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        suppressed: set[str] = set()
        for item in node.items:
            self._visit(item.context_expr)
            method = "__enter__" if isinstance(node, ast.With) else "__aenter__"
            self._emit_protocol(item.context_expr, item.context_expr, method)
            suppressed.update(_suppressed(item.context_expr))
            if item.optional_vars is not None:
                type_ = self._infer(item.context_expr)
                if isinstance(node, ast.With):
                    entered = self.program.inference.entered(type_, "__enter__")
                else:
                    entered = self.program.inference.awaited(self.program.inference.entered(type_, "__aenter__"))
                self._bind_loop(item.optional_vars, entered)
        if suppressed:
            self.guards.append(Guard(node.lineno, frozenset(suppressed), False, False, True))
        through = self._block(node.body)
        if suppressed:
            self.guards.pop()
        return through or bool(suppressed)

    def _match(self, node: ast.Match) -> None:
        self._visit(node.subject)
        before = dict(self._scope.state)
        states = [before]
        for case in node.cases:
            self._scope.restore(dict(before))
            for pattern in ast.walk(case.pattern):
                if isinstance(pattern, ast.MatchClass):
                    self._visit(pattern.cls)
                elif isinstance(pattern, ast.MatchValue):
                    self._visit(pattern.value)
            subject = path_of(node.subject)
            if subject is not None and isinstance(case.pattern, ast.MatchClass):
                check = ast.Call(ast.Name("isinstance"), [node.subject, case.pattern.cls], [])
                self._scope.narrow(check, True)
            for pattern in ast.walk(case.pattern):
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

    def _assert(self, node: ast.Assert) -> None:
        self._visit(node.test)
        if node.msg is not None:
            self._visit(node.msg)
        self._scope.narrow(node.test, True)

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

    def _drop_key(self, container: ast.expr, key: ast.expr) -> None:
        """Notes that a dict no longer holds a key; a key that is computed may be any."""
        path = path_of(container)
        known = self._scope.state.get(path) if path is not None else None
        if path is None or not isinstance(known, Dictionary):
            return
        if isinstance(key, ast.Constant):
            items = tuple(item for item in known.items if item[0] != key.value)
            self._scope.state[path] = Dictionary(items, known.is_open, known.is_forgotten)
        else:
            self._scope.state[path] = Dictionary((), is_open=True, is_forgotten=True)
        self._scope.memo.clear()

    def _note_changes(self, node: ast.Call) -> None:
        """Notes what a call may do to the dicts it gets: methods that change one, and functions that are handed one."""
        if isinstance(node.func, ast.Attribute):
            path = path_of(node.func.value)
            known = self._scope.state.get(path) if path is not None else None
            if path is not None and isinstance(known, Dictionary):
                if node.func.attr == "pop" and node.args:
                    self._drop_key(node.func.value, node.args[0])
                elif node.func.attr in ("update", "setdefault", "clear", "popitem"):
                    given = self._infer(node.args[0]) if len(node.args) == 1 and node.func.attr == "update" else None
                    items = dict(known.items)
                    if node.func.attr == "update" and all(keyword.arg for keyword in node.keywords):
                        items.update(
                            (keyword.arg, self._infer(keyword.value)) for keyword in node.keywords if keyword.arg
                        )
                    if isinstance(given, Dictionary):
                        items.update(given.items)
                    is_open = not (node.func.attr == "update" and (given is None or isinstance(given, Dictionary)))
                    self._scope.state[path] = Dictionary(
                        tuple(items.items()) if not is_open else (),
                        known.is_open or is_open,
                        known.is_forgotten or is_open,
                    )
                self._scope.memo.clear()
        if isinstance(node.func, ast.Name) and node.func.id in _HARMLESS:
            return
        for argument in [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg is not None)]:
            path = path_of(argument)
            if path is not None and isinstance(
                self._scope.lookup(path) if "." not in path else self._scope.state.get(path), Dictionary
            ):
                self._scope.state[path] = Dictionary((), is_open=True, is_forgotten=True)
                self._scope.memo.clear()

    def _expression(self, node: ast.Expr) -> bool:
        self._discarded.add(id(node.value))
        self._visit(node.value)
        return not _ends_the_program(node.value)

    def _nothing(self, node: ast.stmt) -> None:
        return None

    # Expressions

    def _visit(self, node: ast.expr) -> None:
        """Collects the usages in an expression."""
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            handler(self, node)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._visit(child)

    def _visit_await(self, node: ast.Await) -> None:
        self._awaited.add(id(node.value))
        self._visit(node.value)

    def _visit_leaf(self, node: ast.expr) -> None:
        return None

    def _visit_name(self, node: ast.Name) -> None:
        """A name that nothing but a star import can have brought."""
        if not self.module.star_imports or node.id in self.module.names or node.id in self._scope.state:
            return
        if self._scope.bindings(node.id)[0] or node.id in BUILTINS or not isinstance(node.ctx, ast.Load):
            return
        for star in self.module.star_imports:
            base = self.program.import_base(self.module, star.node)
            if self.program.is_target(base):
                result = self.program.imported_name(base, node.id)
                place = self.location(node)
                self._emit(ImportUsage(*self._common(node), base, node.id, result, star.node, place, is_starred=True))

    def _visit_attribute(self, node: ast.Attribute) -> None:
        self._visit(node.value)
        self._use(node.value, node, "attribute", name=node.attr)
        self._emit_attribute(node, is_stored=False)

    def _emit_attribute(self, node: ast.Attribute, *, is_stored: bool, is_called: bool = False) -> None:
        receiver = self._infer(node.value)
        if isinstance(receiver, Unknown):
            return
        result: Type | None = None if is_stored else self._scope.narrowed(node)
        if result is None:
            result = self.program.inference.attribute(receiver, node.attr)
        self._emit(
            AttributeUsage(*self._common(node), node, receiver, node.attr, result, is_stored, is_called=is_called)
        )

    def _emit_protocol(self, node: ast.expr, receiver_node: ast.expr, *names: str) -> None:
        """Syntax asks for a special method, or for one of several."""
        receiver = self._infer(receiver_node)
        if isinstance(receiver, Instance) and self.concerns(receiver):
            results = [self.program.inference.attribute(receiver, name) for name in names]
            result = next((found for found in results if not isinstance(found, Absent)), results[0])
            usage = AttributeUsage(
                *self._common(receiver_node), ast.Attribute(receiver_node, names[0]), receiver, names[0], result, False
            )
            usage.is_protocol = True
            self._emit(usage)

    def _visit_subscript(self, node: ast.Subscript) -> None:
        self._visit(node.value)
        self._visit(node.slice)
        self._note_variable(node.value, node.slice, node, is_set=False)
        if isinstance(node.ctx, ast.Load) and not self._use(node.value, node.value, "subscript"):
            self._emit_protocol(node, node.value, "__getitem__")

    def _visit_call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute):
            self._visit(node.func.value)
            self._emit_attribute(node.func, is_stored=False, is_called=True)
        else:
            self._visit(node.func)
        for argument in node.args:
            self._visit(argument)
        for keyword in node.keywords:
            self._visit(keyword.value)
        callee = self._infer(node.func)
        if name == "len" and len(node.args) == 1:
            self._emit_protocol(node, node.args[0], "__len__")
        if isinstance(callee, Instance):
            self._emit_protocol(node.func, node.func, "__call__")
        unpacked = {id(k.value): self._infer(k.value) for k in node.keywords if k.arg is None}
        usage = CallUsage(*self._common(node.func), node, callee, unpacked, self.location)
        usage.location = self._name_location(node.func)
        usage.is_awaited, usage.is_discarded = id(node) in self._awaited, id(node) in self._discarded
        if isinstance(callee, External):
            if callee.path in _ENVIRONMENT and node.args:
                self._note_variable(None, node.args[0], node, is_set=_ENVIRONMENT[callee.path])
            if callee.path in ("functools.partial", "functools.partialmethod") and node.args:
                usage.first = self._infer(node.args[0])
            else:
                if len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                    usage.first = self._infer(node.args[0])
                usage.is_member = isinstance(node.func, ast.Attribute) and self.concerns(self._infer(node.func.value))
        elif isinstance(callee, Unknown):
            usage.is_rooted = self._is_rooted(node.func)
        self._emit(usage)
        self._note_changes(node)
        if name in ("isinstance", "issubclass") and len(node.args) == 2:
            for part in node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]:
                self._refer(part, "isinstance")
        if name == "setattr" and len(node.args) == 3:
            self._set_attribute(node)
        if name == "getattr" and len(node.args) == 2:
            attribute = node.args[1]
            if isinstance(attribute, ast.Constant) and isinstance(attribute.value, str):
                receiver = self._infer(node.args[0])
                if not isinstance(receiver, Unknown):
                    read = ast.copy_location(ast.Attribute(node.args[0], attribute.value, ast.Load()), node)
                    result = self.program.inference.attribute(receiver, attribute.value)
                    self._emit(
                        AttributeUsage(*self._common(node), read, receiver, attribute.value, result, False, True)
                    )

    def _set_attribute(self, node: ast.Call) -> None:
        """`setattr(owner, "name", value)` stores like an assignment."""
        attribute = node.args[1]
        if isinstance(attribute, ast.Constant) and isinstance(attribute.value, str):
            stored = ast.copy_location(ast.Attribute(node.args[0], attribute.value, ast.Store()), node)
            receiver = self._infer(node.args[0])
            if not isinstance(receiver, Unknown):
                result = self.program.inference.attribute(receiver, attribute.value)
                self._emit(AttributeUsage(*self._common(node), stored, receiver, attribute.value, result, True, True))

    def _visit_boolean(self, node: ast.BoolOp) -> None:
        before = dict(self._scope.state)
        for value in node.values:
            self._visit(value)
            truth = self.program.facts.truth(value, self._scope)
            if truth is not None and truth is isinstance(node.op, ast.Or):
                # The rest is never evaluated.
                break
            self._scope.narrow(value, isinstance(node.op, ast.And))
        self._scope.restore(before)

    def _visit_conditional(self, node: ast.IfExp) -> None:
        self._visit(node.test)
        truth = self.program.facts.truth(node.test, self._scope)
        before = dict(self._scope.state)
        if truth is not False:
            self._scope.narrow(node.test, True)
            self._visit(node.body)
            self._scope.restore(dict(before))
        if truth is not True:
            self._scope.narrow(node.test, False)
            self._visit(node.orelse)
        self._scope.restore(before)

    def _visit_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = dict(self._scope.state)
        for generator in node.generators:
            self._visit(generator.iter)
            element = self.program.inference.element(self._infer(generator.iter))
            for name, path in target_names(generator.target):
                self._scope.assign(name, self.program.inference.at_path(element, path))
            for condition in generator.ifs:
                self._visit(condition)
                self._scope.narrow(condition, True)
        if isinstance(node, ast.DictComp):
            self._visit(node.key)
            self._visit(node.value)
        else:
            self._visit(node.elt)
        self._scope.restore(before)

    def _visit_lambda(self, node: ast.Lambda) -> None:
        before = dict(self._scope.state)
        arguments = node.args
        for default in [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]:
            self._visit(default)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [variadic for variadic in (arguments.vararg, arguments.kwarg) if variadic is not None]
        for argument in every:
            self._scope.assign(argument.arg, Unknown("unannotated parameter"))
        self._visit(node.body)
        self._scope.restore(before)

    def _visit_named(self, node: ast.NamedExpr) -> None:
        self._visit(node.value)
        self._scope.assign(node.target.id, self._infer(node.value))

    def _annotation(self, node: ast.expr) -> None:
        """Annotations are read for usages too, though nothing in a string runs."""
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            return
        is_lazy = any("annotations" in (alias.name for alias in star.names) for star in self._future_imports())
        if isinstance(node, ast.Constant):
            text = str(node.value)
            if "." not in text:
                return
            try:
                parsed = ast.parse(text.strip(), mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return
            for inner in ast.walk(parsed):
                ast.copy_location(inner, node)
            node, is_lazy = parsed, True
        self.typing_depth += is_lazy
        self._visit(node)
        self.typing_depth -= is_lazy

    def _future_imports(self) -> list[ast.ImportFrom]:
        found = getattr(self, "_futures", None)
        if found is None:
            assert self.module.tree is not None
            found = [n for n in self.module.tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
            self._futures = found
        return found

    def _use(
        self,
        value: ast.expr,
        place: ast.expr,
        use: Literal["unpack", "subscript", "iterate", "enter", "attribute"],
        *,
        count: int = 0,
        has_star: bool = False,
        name: str = "",
    ) -> bool:
        """Notes what is done with the result of a call of the target's; False where it is no such result."""
        call = _call_of(value)
        if call is None and isinstance(value, ast.Name) and use != "attribute":
            call = self._origins.get(value.id)
        if call is None:
            return False
        callee = self._infer(call.func)
        if not isinstance(callee, Function) or not self.concerns(callee):
            return False
        usage = ReturnUsage(*self._common(place), callee, self._infer(value), use, count, has_star, name)
        self._emit(usage)
        return True

    def _refer(self, node: ast.expr, role: Literal["base", "isinstance", "except"]) -> None:
        type_ = self._infer(node)
        if isinstance(type_, Unknown) or self.concerns(type_):
            self._emit(ReferenceUsage(*self._common(node), node, type_, role))

    def _note_variable(self, container: ast.expr | None, key: ast.expr, node: ast.expr, *, is_set: bool) -> None:
        """An environment variable named by a literal, in `os.environ` or a function of `os`."""
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        if container is not None and self._infer(container) != External("os.environ"):
            return
        self._emit(EnvironmentUsage(*self._common(node), key.value, is_set))

    def _is_rooted(self, node: ast.expr) -> bool:
        """True where something on the way to a callee comes from the target."""
        while True:
            if isinstance(node, ast.Attribute | ast.Subscript | ast.Await):
                node = node.value
            elif isinstance(node, ast.Call):
                node = node.func
            else:
                return self.concerns(self._infer(node)) or self._is_imported_from_target(node)
            if self.concerns(self._infer(node)):
                return True

    def _is_imported_from_target(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name):
            return False
        bindings, home = self._scope.bindings(node.id)
        return any(
            isinstance(binding.node, ast.ImportFrom)
            and self.program.is_target(self.program.import_base(home.module, binding.node))
            for binding in bindings
        )

    # Places

    def _infer(self, node: ast.expr) -> Type:
        return self.program.inference.infer(node, self._scope)

    def _emit(self, usage: Usage) -> None:
        self.sink(usage)

    def _common(self, node: ast.AST) -> tuple[Location, str, tuple[Guard, ...], bool, bool]:
        line = getattr(node, "lineno", 1)
        return (
            self.location(node),
            ".".join(self.names),
            tuple(self.guards),
            self.typing_depth > 0,
            "# type: ignore" in self.module.lines[line - 1] if line <= len(self.module.lines) else False,
        )

    def location(self, node: Any) -> Location:
        """The place of a node, its columns in characters from 1."""
        end_line = node.end_lineno or node.lineno
        return Location(
            self.module.path,
            node.lineno,
            self._column(node.lineno, node.col_offset),
            end_line,
            self._column(end_line, node.end_col_offset or 0),
        )

    def _name_location(self, node: ast.expr) -> Location:
        """The place of the last name of a callee: in a chain over several lines, the line on which it stands."""
        place = self.location(node)
        if not isinstance(node, ast.Attribute):
            return place
        return Location(
            place.path, place.end_line, max(1, place.end_column - len(node.attr)), place.end_line, place.end_column
        )

    def _column(self, line: int, offset: int) -> int:
        """A column in characters from 1, for ast's offset in UTF-8 bytes."""
        text = self.module.lines[line - 1] if line <= len(self.module.lines) else ""
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1


def _call_of(node: ast.expr) -> ast.Call | None:
    """The call that gives a value, awaited or not."""
    if isinstance(node, ast.Await):
        node = node.value
    return node if isinstance(node, ast.Call) else None


def _or_unknown(type_: Type) -> Type:
    return Unknown("something that is not there") if isinstance(type_, Absent) else type_


def _opened(type_: Type, key: ast.expr, value: Type) -> Type:
    if not isinstance(type_, Dictionary):
        return type_
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        items = tuple({**dict(type_.items), key.value: value}.items())
        return Dictionary(items, type_.is_open, type_.is_forgotten)
    return Dictionary(type_.items, True, type_.is_forgotten)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _suppressed(node: ast.expr) -> set[str]:
    """The exceptions that `contextlib.suppress(...)` or `pytest.raises(...)` takes care of."""
    if not isinstance(node, ast.Call):
        return set()
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ("suppress", "raises", "assertRaises"):
        return set()
    return {name for argument in node.args for name in caught_names(argument)}


def _does_something_else(statement: ast.stmt) -> bool:
    """True for a statement of a handler that provides what the `try` could not: an import, a definition, a call's value."""
    if isinstance(
        statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Try
    ):
        return True
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        value = statement.value
        return value is not None and not isinstance(value, ast.Constant)
    if isinstance(statement, ast.If):
        return any(_does_something_else(inner) for inner in [*statement.body, *statement.orelse])
    if isinstance(statement, ast.Return):
        return isinstance(statement.value, ast.Call | ast.Name | ast.Attribute | ast.Await)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Await):
        call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
        text = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        return not any(word in text for word in ("log", "warn", "print", "debug", "info", "error", "exception"))
    return False


def _ends_the_program(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _ENDINGS:
        return isinstance(node.func.value, ast.Name) and node.func.value.id in ("sys", "os", "pytest")
    return isinstance(node.func, ast.Name) and node.func.id in ("exit", "quit")


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
_EXPRESSIONS: dict[type[ast.expr], Callable[[Collector, Any], None]] = {
    ast.Name: Collector._visit_name,
    ast.Constant: Collector._visit_leaf,
    ast.Attribute: Collector._visit_attribute,
    ast.Call: Collector._visit_call,
    ast.BoolOp: Collector._visit_boolean,
    ast.IfExp: Collector._visit_conditional,
    ast.ListComp: Collector._visit_comprehension,
    ast.SetComp: Collector._visit_comprehension,
    ast.GeneratorExp: Collector._visit_comprehension,
    ast.DictComp: Collector._visit_comprehension,
    ast.Lambda: Collector._visit_lambda,
    ast.NamedExpr: Collector._visit_named,
    ast.Await: Collector._visit_await,
    ast.Subscript: Collector._visit_subscript,
}
_ = (Attempt, Calls, IMPORT_ERRORS)
