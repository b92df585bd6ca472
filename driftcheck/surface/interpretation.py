"""A small, bounded interpreter for the client's helpers that answer by what the target is: versions, feature probes.

It follows what is known and keeps count of what is not: an unknown test takes both branches. It runs nothing: values
are computed here, from constants and from facts of the target.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import FunctionDeclaration, caught_names
from driftcheck.surface.syntax import called_name, named_parameters, nodes_of, own_nodes
from driftcheck.surface.types import Absent, External
from driftcheck.surface.value_scope import Closure, ValueScope
from driftcheck.surface.values import Value, calculate, item_of, items_of, one_of, truth_of

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts

_CALLS = 8
_STEPS = 1500
_ROUNDS = 64
# What runs any number of times, or in parts that are not worth telling apart.
_UNCERTAIN: tuple[type[ast.stmt], ...] = (ast.While, ast.AsyncFor, ast.Match)
if sys.version_info >= (3, 11):
    _UNCERTAIN = (*_UNCERTAIN, ast.TryStar)
# Built-in functions that don't change what they are given.
_READERS = frozenset(
    ("len", "print", "str", "repr", "list", "tuple", "set", "frozenset", "sorted", "any", "all", "bool", "max", "min")
)
# What reports or collects, and never fails on the way.
_SAFE_CALLS = _READERS | {"warn", "warning", "info", "debug", "error", "append", "add", "warning_once", "info_once"}


@dataclass(frozen=True, slots=True)
class Returned:
    """The function gives this value; None where it is unknown."""

    value: Value | None


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception surely leaves the statement, of one of these names."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """A loop is left or begun anew."""

    is_break: bool


Exit = Returned | Raised | Left | None


class _Lost(Exception):
    """What happens can't be followed."""


@dataclass(slots=True)
class _Frame:
    """One call under way.

    `pending` are the values it may have returned on branches that nobody can tell; `attempts` counts the `try`
    statements around; `may_raise` holds what may have gone wrong since the innermost one began: "ImportError" for an
    import of another library, "" for a call of which nothing is known. `uses_fact` is set once a fact of the target has
    decided which way to go. `mutable` are the names of lists and sets, which calls may change.
    """

    scope: ValueScope
    pending: list[Value | None] = field(default_factory=list)
    attempts: int = 0
    may_raise: set[str] = field(default_factory=set)
    uses_fact: bool = False
    mutable: set[str] = field(default_factory=set)


class Interpreter:
    """Runs helpers of the client's as far as values are known."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self._running: list[FunctionDeclaration] = []
        self._steps = 0

    @property
    def is_running(self) -> bool:
        """True while a call is followed."""
        return bool(self._running)

    def run(
        self, declaration: FunctionDeclaration, values: dict[str, Value | None], around: ValueScope | None
    ) -> tuple[Exit, bool]:
        """How a call ends, what it returns or raises, None where it can't be followed; and whether a fact decided."""
        if len(self._running) >= _CALLS or declaration in self._running:
            return None, False
        if not self._running:
            self._steps = 0
        scope = self.program.function_scope(declaration)
        own = {**dict.fromkeys(scope.locals), **values}
        frame = _Frame(ValueScope(scope, own, around))
        self._running.append(declaration)
        try:
            exit_ = self._block(declaration.body, frame)
        except _Lost:
            return None, False
        finally:
            self._running.pop()
        if isinstance(exit_, Left):
            return None, False
        if isinstance(exit_, Raised) and not frame.pending:
            return exit_, frame.uses_fact
        values_returned = list(frame.pending)
        if not isinstance(exit_, Raised):
            values_returned.append(exit_.value if isinstance(exit_, Returned) else Value(None))
        found = one_of(values_returned)
        if found is not None and frame.uses_fact:
            found = Value(found.value, is_fact=True)
        return Returned(found), frame.uses_fact

    # Statements

    def _block(self, statements: Sequence[ast.stmt], frame: _Frame) -> Exit:
        for statement in statements:
            self._steps += 1
            if self._steps > _STEPS:
                raise _Lost
            exit_ = self._statement(statement, frame)
            if exit_ is not None:
                return exit_
        return None

    def _statement(self, node: ast.stmt, frame: _Frame) -> Exit:
        if isinstance(node, ast.If):
            return self._if(node, frame)
        if isinstance(node, ast.Try):
            return self._try(node, frame)
        if isinstance(node, ast.For):
            return self._for(node, frame)
        if isinstance(node, _UNCERTAIN):
            return self._uncertain(node, frame)
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, None, frame)
            return self._block(node.body, frame)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._import(node, frame)
        if isinstance(node, ast.Raise):
            return Raised(caught_names(_raised(node.exc)))
        if isinstance(node, ast.Break | ast.Continue):
            return Left(isinstance(node, ast.Break))
        if frame.attempts and (names := self.facts.names.raised_by(node, frame.scope)):
            return Raised(names)
        return self._simple(node, frame)

    def _simple(self, node: ast.stmt, frame: _Frame) -> Exit:
        evaluate = self.facts.evaluate
        if frame.mutable:
            self._note_changes(node, frame)
        if isinstance(node, ast.Return):
            returned = self.facts.argument(node.value, frame.scope) if node.value is not None else Value(None)
            if returned is None:
                self._note_doubt(node, frame)
            return Returned(returned)
        if isinstance(node, ast.Expr):
            self._note_doubt(node, frame)
        elif isinstance(node, ast.Assign):
            value = self.facts.argument(node.value, frame.scope)
            if value is None:
                self._note_doubt(node, frame)
            for target in node.targets:
                self._assign(target, value, frame)
                self._note_container(target, node.value, frame)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self.facts.argument(node.value, frame.scope), frame)
                self._note_container(node.target, node.value, frame)
        elif isinstance(node, ast.AugAssign):
            left, right = evaluate(_loaded(node.target), frame.scope), evaluate(node.value, frame.scope)
            self._assign(node.target, _calculated(node.op, left, right), frame)
        elif isinstance(node, ast.Assert):
            if self._decided(node.test, frame) is False:
                return Raised(("AssertionError",))
        elif isinstance(node, ast.FunctionDef):
            bindings = self.program.function_scope(self._running[-1]).locals.get(node.name, ())
            made = next((binding.function for binding in bindings if binding.node is node), None)
            frame.scope.values[node.name] = Value(Closure(made, frame.scope)) if made is not None else None
        elif isinstance(node, ast.Global):
            for name in node.names:
                frame.scope.values[name] = self.facts.names.initial(name, frame.scope)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._assign(target, None, frame)
        return None

    def _note_doubt(self, node: ast.stmt, frame: _Frame) -> None:
        """Notes that a statement within a `try` calls something of which nothing is known, so that it may raise."""
        if frame.attempts and any(
            isinstance(inner, ast.Call) and called_name(inner) not in _SAFE_CALLS for inner in nodes_of(node)
        ):
            frame.may_raise.add("")

    def _assign(self, target: ast.expr, value: Value | None, frame: _Frame) -> None:
        if isinstance(target, ast.Name):
            frame.scope.values[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for index, element in enumerate(target.elts):
                item: Value | None = None
                if value is not None and not any(isinstance(e, ast.Starred) for e in target.elts):
                    try:
                        item = Value(item_of(value.value, index), value.is_fact)
                    except (TypeError, LookupError, ValueError):
                        item = None
                self._assign(element.value if isinstance(element, ast.Starred) else element, item, frame)

    def _note_container(self, target: ast.expr, value: ast.expr, frame: _Frame) -> None:
        """Notes that a name holds a list or set."""
        if not isinstance(target, ast.Name):
            return
        if isinstance(value, ast.Name) and value.id in frame.mutable:
            # Two names for one list: what either shows is followed no further.
            frame.scope.values[target.id] = frame.scope.values[value.id] = None
        elif is_mutable(value):
            frame.mutable.add(target.id)

    def _note_changes(self, node: ast.stmt, frame: _Frame) -> None:
        """Notes what the calls and stores of a statement do to lists and sets."""
        values = frame.scope.values
        for inner in nodes_of(node):
            if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store | ast.Del):
                if isinstance(inner.value, ast.Name) and inner.value.id in frame.mutable:
                    values[inner.value.id] = None
            if not isinstance(inner, ast.Call):
                continue
            called = inner.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                name = called.value.id
                if name in frame.mutable and called.attr not in ("copy", "count", "index"):
                    values[name] = self._extended(values.get(name), called.attr, inner, frame)
            elif not (isinstance(called, ast.Name) and called.id in _READERS):
                for argument in inner.args:
                    if isinstance(argument, ast.Name) and argument.id in frame.mutable:
                        values[argument.id] = None

    def _extended(self, value: Value | None, method: str, node: ast.Call, frame: _Frame) -> Value | None:
        """A list or set after `append` or `add`; None after anything else."""
        if value is None or method not in ("append", "add") or len(node.args) != 1:
            return None
        item = self.facts.argument(node.args[0], frame.scope)
        if item is None:
            return None
        items = (*value.value, item.value) if method == "append" else frozenset((*value.value, item.value))
        return Value(items, value.is_fact or item.is_fact)

    def _decided(self, test: ast.expr, frame: _Frame) -> bool | None:
        """Whether a test holds, for values that are known, facts or not."""
        value = self.facts.evaluate(test, frame.scope)
        if value is None:
            truth = self.facts.truth(test, frame.scope)
            frame.uses_fact = frame.uses_fact or truth is not None
            return truth
        frame.uses_fact = frame.uses_fact or value.is_fact
        return truth_of(value.value)

    def _if(self, node: ast.If, frame: _Frame) -> Exit:
        truth = self._decided(node.test, frame)
        if truth is not None:
            return self._block(node.body if truth else node.orelse, frame)
        return self._either(node.body, node.orelse, frame)

    def _either(self, one: Sequence[ast.stmt], other: Sequence[ast.stmt], frame: _Frame) -> Exit:
        """Two ways on, of which nobody can tell which is taken."""
        before = dict(frame.scope.values)
        first = self._block(one, frame)
        after = frame.scope.values
        frame.scope.values = before
        return self._joined(first, after, self._block(other, frame), frame)

    def _joined(self, first: Exit, after: dict[str, Value | None], second: Exit, frame: _Frame) -> Exit:
        """Where two ways meet: `after` are the values on the first, the frame's those on the second."""
        if isinstance(first, Left) or isinstance(second, Left):
            if first != second:
                raise _Lost
        elif isinstance(first, Raised):
            # An exception that only some unknown state brings about is no way on.
            return second
        elif isinstance(second, Raised):
            frame.scope.values = after
            return first
        elif isinstance(first, Returned):
            if isinstance(second, Returned):
                return Returned(one_of([first.value, second.value]))
            frame.pending.append(first.value)
            return second
        elif isinstance(second, Returned):
            frame.pending.append(second.value)
            frame.scope.values = after
            return first
        merged = {name: one_of([after.get(name), frame.scope.values.get(name)]) for name in after}
        frame.scope.values.update(merged)
        return first

    def _try(self, node: ast.Try, frame: _Frame) -> Exit:
        before = dict(frame.scope.values)
        outer, frame.may_raise = frame.may_raise, set()
        frame.attempts += 1
        exit_ = self._block(node.body, frame)
        frame.attempts -= 1
        raised, frame.may_raise = frame.may_raise, outer
        if isinstance(exit_, Raised):
            handler = next((handler for handler in node.handlers if _catches(handler, exit_.names)), None)
            if handler is not None:
                frame.uses_fact = True
                exit_ = self._handle(handler, frame)
        else:
            if exit_ is None:
                exit_ = self._block(node.orelse, frame)
            for handler in node.handlers:
                if "" in raised or (raised and _catches(handler, tuple(sorted(raised)))):
                    after = frame.scope.values
                    frame.scope.values = dict(before)
                    exit_ = self._joined(exit_, after, self._handle(handler, frame), frame)
        last = self._block(node.finalbody, frame)
        return exit_ if last is None else last

    def _handle(self, handler: ast.ExceptHandler, frame: _Frame) -> Exit:
        if handler.name is not None:
            frame.scope.values[handler.name] = None
        return self._block(handler.body, frame)

    def _for(self, node: ast.For, frame: _Frame) -> Exit:
        iterable = self.facts.evaluate(node.iter, frame.scope)
        if iterable is None:
            return self._uncertain(node, frame)
        try:
            items = list(items_of(iterable.value))
        except TypeError:
            return self._uncertain(node, frame)
        if len(items) > _ROUNDS:
            raise _Lost
        frame.uses_fact = frame.uses_fact or iterable.is_fact
        for item in items:
            self._assign(node.target, Value(item, iterable.is_fact), frame)
            exit_ = self._block(node.body, frame)
            if isinstance(exit_, Left):
                if exit_.is_break:
                    return None
            elif exit_ is not None:
                return exit_
        return self._block(node.orelse, frame)

    def _uncertain(self, node: ast.stmt, frame: _Frame) -> Exit:
        """Statements that run any number of times: what they assign or change is unknown, what they return possible."""
        for inner in own_nodes([node]):
            if isinstance(inner, ast.Name) and (isinstance(inner.ctx, ast.Store) or inner.id in frame.mutable):
                frame.scope.values[inner.id] = None
            elif isinstance(inner, ast.Return) and None not in frame.pending:
                frame.pending.append(None)
        return None

    def _import(self, node: ast.Import | ast.ImportFrom, frame: _Frame) -> Exit:
        values = self.facts.names.imported_values(node, frame.scope)
        if isinstance(values, Absent):
            return Raised(("ModuleNotFoundError" if values.is_module else "ImportError",))
        if isinstance(values, External):
            frame.may_raise.add("ImportError")
            return None
        frame.uses_fact = frame.uses_fact or bool(frame.attempts and any(v and v.is_fact for v in values.values()))
        frame.scope.values.update(values)
        return None


def is_mutable(node: ast.expr | None) -> bool:
    """True for an expression that makes a list or set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("list", "set", "sorted")
    return isinstance(node, ast.List | ast.Set | ast.ListComp | ast.SetComp)


def parameter_names(declaration: FunctionDeclaration) -> list[str]:
    """The names of a function's parameters, variadic ones last."""
    arguments = declaration.node.args
    names = [argument.arg for argument in named_parameters(arguments)]
    return names + [variadic.arg for variadic in (arguments.vararg, arguments.kwarg) if variadic is not None]


def _raised(node: ast.expr | None) -> ast.expr | None:
    """The class in `raise X` or `raise X(...)`."""
    if node is None:
        return ast.Name("")
    return node.func if isinstance(node, ast.Call) else node


def _catches(handler: ast.ExceptHandler, names: tuple[str, ...]) -> bool:
    """True where a handler surely catches one of these exceptions."""
    for caught in caught_names(handler.type):
        class_ = getattr(builtins, caught, None)
        for name in names:
            raised = getattr(builtins, name, Exception)
            if caught == name or (isinstance(class_, type) and isinstance(raised, type) and issubclass(raised, class_)):
                return True
    return False


def _loaded(node: ast.expr) -> ast.expr:
    return ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node


def _calculated(operation: ast.operator, left: Value | None, right: Value | None) -> Value | None:
    if left is None or right is None:
        return None
    try:
        return Value(calculate(operation, left.value, right.value), left.is_fact or right.is_fact)
    except (TypeError, ValueError, KeyError, ArithmeticError):
        return None
