"""Collects the usages in expressions: names, attributes, calls, subscripts, strings, each with what it meets."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

from driftcheck.surface.declarations import (
    FunctionDeclaration,
    ModuleDeclaration,
    target_names,
)
from driftcheck.surface.program import BUILTINS, Program
from driftcheck.surface.scopes import ModuleScope
from driftcheck.surface.slim_trees import for_slim_nodes
from driftcheck.surface.syntax import children, named_parameters
from driftcheck.surface.types import NONE, Absent, Dictionary, External, Family, Function, Instance, Type, Unknown
from driftcheck.usage.deferred import deferred_call
from driftcheck.usage.flow import FlowScope, path_of
from driftcheck.usage.patches import Patches
from driftcheck.usage.places import Place
from driftcheck.usage.reachability import Reachability
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    Common,
    EnvironmentUsage,
    FamilyUsage,
    Guard,
    ImportUsage,
    ReferenceUsage,
    ReturnUsage,
    StringUsage,
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
_PROBES_OF_MODULES = frozenset(("importlib.util.find_spec", "importlib.find_loader", "pkgutil.find_loader"))
_ENVIRONMENT = {
    "os.getenv": False,
    "os.environ.get": False,
    "os.environ.pop": True,
    "os.environ.setdefault": True,
    "os.putenv": True,
    "os.unsetenv": True,
}


class Expressions:
    """Walks expressions in the order in which they are evaluated and gives each usage to `sink`."""

    def __init__(
        self, program: Program, module: ModuleDeclaration, sink: Sink, concerns: Callable[[Type], bool]
    ) -> None:
        self.program = program
        self.module = module
        self.sink = sink
        self.concerns = concerns
        self.guards: tuple[Guard, ...] = ()
        self.scope_name = ""
        self.typing_depth = 0
        self._awaited: set[int] = set()
        self._discarded: set[int] = set()
        self._loggers: set[int] = set()
        self._beside: dict[int, str] = {}
        # Into how many targets the result of a call is unpacked.
        self._counts: dict[int, int] = {}
        self._prefixes = tuple(f"{name}." for name in sorted(program.target_index.top_level))
        # What was called for the value that a name now holds.
        self._origins: dict[str, ast.Call] = {}
        self._pending: deque[tuple[FunctionDeclaration, str]] = deque()
        # Where it is noted what code that runs mentions, if somebody wants to know.
        self.reachability: Reachability | None = None
        self._scope: FlowScope = FlowScope(ModuleScope(program, module))
        self._patches = Patches(program, concerns, self._infer, self._common)

    # Dicts whose keys are known

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
                elif node.func.attr in ("clear", "popitem"):
                    self._scope.state[path] = Dictionary((), is_open=True, is_forgotten=True)
                elif node.func.attr in ("update", "setdefault"):
                    self._scope.state[path] = self._added(known, node)
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

    def _added(self, known: Dictionary, node: ast.Call) -> Dictionary:
        """A dict after `update` or `setdefault`, which add keys and take none away."""
        items = dict(known.items)
        is_open = known.is_open
        first = node.args[0] if node.args else None
        if isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                items.setdefault(first.value, self._infer(node.args[1]) if len(node.args) > 1 else NONE)
            else:
                is_open = True
            return Dictionary(tuple(items.items()), is_open, known.is_forgotten)
        if first is not None:
            given = self._infer(first)
            if isinstance(given, Dictionary):
                items.update(given.items)
                is_open = is_open or given.is_open
            else:
                is_open = True
        for keyword in node.keywords:
            if keyword.arg is None:
                is_open = True
            else:
                items[keyword.arg] = self._infer(keyword.value)
        return Dictionary(tuple(items.items()), is_open, known.is_forgotten)

    # Expressions

    def _visit(self, node: ast.expr) -> None:
        """Collects the usages in an expression."""
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            handler(self, node)
            return
        for child in children(node):
            if isinstance(child, ast.expr):
                self._visit(child)

    def _visit_await(self, node: ast.Await) -> None:
        self._awaited.add(id(node.value))
        self._visit(node.value)

    def _visit_leaf(self, node: ast.expr) -> None:
        return None

    def _note_string(self, node: ast.Call, callee: Type) -> None:
        """A method named by a string, and the name of a logger, which is no path that anybody resolves."""
        first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "method"), None)
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            return
        if isinstance(callee, External) and callee.path in _PROBES_OF_MODULES:
            # Asking whether a module is there is a question, whatever the answer.
            self._loggers.add(id(first))
            return
        if callee == External("logging.getLogger"):
            self._loggers.add(id(first))
            if first.value.startswith(self._prefixes):
                self._emit(StringUsage(*self._common(first), first.value, "logger"))
        elif isinstance(node.func, ast.Attribute) and first.value.isidentifier():
            self._emit(StringUsage(*self._common(first), first.value, "method", node.func.attr))

    def _mention(self, name: str) -> None:
        if self.reachability is not None:
            self.reachability.mentioned(name, self._scope.function)

    def _visit_constant(self, node: ast.Constant) -> None:
        """A string that may be a dotted path into the target, or name a function."""
        text = node.value
        if not isinstance(text, str) or id(node) in self._loggers:
            return
        if text.isidentifier():
            self._mention(text)
        if text.startswith(self._prefixes) and " " not in text:
            self._emit(StringUsage(*self._common(node), text, "path", beside=self._beside.get(id(node), "")))

    def _visit_name(self, node: ast.Name) -> None:
        """A name; one that nothing but a star import can have brought is a usage."""
        self._mention(node.id)
        if not self.module.star_imports or node.id in self.module.names or node.id in self._scope.state:
            return
        if self._scope.bindings(node.id)[0] or node.id in BUILTINS or not isinstance(node.ctx, ast.Load):
            return
        for star in self.module.star_imports:
            base = self.program.import_base(self.module, star.node)
            if self.program.is_target(base):
                result = self.program.imported_name(base, node.id)
                self._emit(ImportUsage(*self._common(node), base, node.id, result, star.node, node, is_starred=True))

    def _visit_attribute(self, node: ast.Attribute) -> None:
        self._visit(node.value)
        self._use(node.value, node, "attribute", name=node.attr)
        self._emit_attribute(node, is_stored=False)

    def _emit_attribute(self, node: ast.Attribute, *, is_stored: bool, is_called: bool = False) -> None:
        self._mention(node.attr)
        receiver = self._infer(node.value)
        if isinstance(receiver, Family) and not is_stored and not is_called and self._scope.narrowed(node) is None:
            self._emit(FamilyUsage(*self._common(node), receiver.name, node.attr, "read"))
        if isinstance(receiver, Unknown) or not (is_stored or self.concerns(receiver)):
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
        callee = self._infer(node.func)
        self._note_string(node, callee)
        for argument, following in pairwise(node.args):
            if isinstance(argument, ast.Constant) and isinstance(following, ast.Constant):
                # As `wrap("package.module", "Class.method", wrapper)` has them.
                self._beside[id(argument)] = following.value if isinstance(following.value, str) else ""
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
        usage = CallUsage(*self._common(node.func, is_name=True), node, callee, unpacked)
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
        self._emit_family_call(node, callee, unpacked)
        for patch in self._patches.called(node, callee):
            self._emit(patch)
        deferred = deferred_call(node, callee)
        if deferred is not None:
            self._emit(self._left_to_others(deferred))
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
                if self.concerns(receiver):
                    read = ast.copy_location(ast.Attribute(node.args[0], attribute.value, ast.Load()), node)
                    result = self.program.inference.attribute(receiver, attribute.value)
                    self._emit(
                        AttributeUsage(*self._common(node), read, receiver, attribute.value, result, False, True)
                    )

    def _emit_family_call(self, node: ast.Call, callee: Type, unpacked: dict[int, Type]) -> None:
        """A member of a family is called, or a method of one."""
        family, name = callee, ""
        if isinstance(node.func, ast.Attribute) and not isinstance(callee, Family):
            if self._scope.narrowed(node.func) is not None:
                return
            family, name = self._infer(node.func.value), node.func.attr
        if isinstance(family, Family):
            usage = FamilyUsage(*self._common(node.func, is_name=True), family.name, name, "call", node, unpacked)
            usage.count = self._counts.get(id(node), 0)
            self._emit(usage)

    def _left_to_others(self, call: ast.Call) -> CallUsage:
        """A call that a thread, a process or an executor will make; its place is where its keywords are written."""
        unpacked = {id(k.value): self._infer(k.value) for k in call.keywords if k.arg is None}
        usage = CallUsage(*self._common(call.func), call, self._infer(call.func), unpacked)
        for keyword in call.keywords:
            if keyword.arg is None and isinstance(keyword.value, ast.Name):
                bindings, home = self._scope.bindings(keyword.value.id)
                if len(bindings) == 1 and isinstance(bindings[0].value, ast.Dict) and home.module is self.module:
                    usage.place = Place(self.module, bindings[0].value)
        return usage

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
        every = named_parameters(arguments)
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
        call = call_of(value)
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

    # What every usage has

    def _infer(self, node: ast.expr) -> Type:
        return self.program.inference.infer(node, self._scope)

    def _emit(self, usage: Usage) -> None:
        self.sink(usage)

    def _qualified(self, name: str) -> str:
        return f"{self.scope_name}.{name}" if self.scope_name else name

    def _common(self, node: ast.AST, *, is_name: bool = False) -> Common:
        return Place(self.module, node, is_name=is_name), self.scope_name, self.guards, self.typing_depth > 0


def call_of(node: ast.expr) -> ast.Call | None:
    """The call that gives a value, awaited or not."""
    if isinstance(node, ast.Await):
        node = node.value
    return node if isinstance(node, ast.Call) else None


_EXPRESSIONS: dict[type[ast.expr], Callable[[Expressions, Any], None]] = {
    ast.Name: Expressions._visit_name,
    ast.Constant: Expressions._visit_constant,
    ast.Attribute: Expressions._visit_attribute,
    ast.Call: Expressions._visit_call,
    ast.BoolOp: Expressions._visit_boolean,
    ast.IfExp: Expressions._visit_conditional,
    ast.ListComp: Expressions._visit_comprehension,
    ast.SetComp: Expressions._visit_comprehension,
    ast.GeneratorExp: Expressions._visit_comprehension,
    ast.DictComp: Expressions._visit_comprehension,
    ast.Lambda: Expressions._visit_lambda,
    ast.NamedExpr: Expressions._visit_named,
    ast.Await: Expressions._visit_await,
    ast.Subscript: Expressions._visit_subscript,
}
_EXPRESSIONS = for_slim_nodes(_EXPRESSIONS)
