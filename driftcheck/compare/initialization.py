"""Constructors of the client's that skip a base's, and attributes that nobody then sets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from driftcheck.compare.members import Definition, Members
from driftcheck.compare.release import Release
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Class, External, Unknown


@dataclass(frozen=True, slots=True)
class Unset:
    """An attribute that only a skipped constructor sets, and an inherited method that reads it.

    `is_certain` where the method reads it whatever happens before.
    """

    name: str
    skipped: FunctionDeclaration
    reader: FunctionDeclaration
    line: int
    is_certain: bool


class Initialization:
    """Follows constructors in one release of the target."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.program = release.program
        self.members = Members(release)
        self._reads: dict[FunctionDeclaration, dict[str, tuple[int, bool]]] = {}

    def unset(self, class_: ClassDeclaration) -> dict[str, Unset]:
        """The attributes of a class of the client's that a skipped constructor would have set, by name.

        Only classes with a constructor of their own whose calls can all be followed are answered for.
        """
        own = self.members.definition(class_, "__init__")
        if own is None or own.function is None or self.program.classes.openness(class_, on_instance=False):
            return {}
        reached = self._reached(class_, own)
        if reached is None:
            return {}
        skipped = [
            definition
            for base in self.members.target_classes(class_)
            if (definition := self.members.definition(base, "__init__")) is not None and base not in reached
        ]
        if not skipped:
            return {}
        return self._left_out(class_, skipped, reached)

    # Which constructors run

    def _reached(self, class_: ClassDeclaration, own: Definition) -> set[ClassDeclaration] | None:
        """The classes whose constructors run when one of a class runs; None where that can't be followed."""
        order = list(self.program.classes.linearize(class_))
        reached: set[ClassDeclaration] = set()
        assert own.function is not None
        pending: list[FunctionDeclaration] = [own.function]
        while pending:
            function = pending.pop()
            owner = function.owner
            if owner is None or owner in reached:
                continue
            reached.add(owner)
            following = self._called_from(function, order)
            if following is None:
                return None
            pending += following
        return reached

    def _called_from(
        self, function: FunctionDeclaration, order: list[Class | External | Unknown]
    ) -> list[FunctionDeclaration] | None:
        found: list[FunctionDeclaration] = []
        for node in ast.walk(ast.Module(function.body, [])):
            if not isinstance(node, ast.Attribute) or node.attr != "__init__":
                continue
            if (
                isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Name)
                and node.value.func.id == "super"
            ):
                start = function.owner
                if node.value.args:
                    type_ = self.program.inference.infer(node.value.args[0], self.program.function_scope(function))
                    start = type_.declaration if isinstance(type_, Class) else None
                    if start is None:
                        return None
                following = self._next(order, start)
            else:
                type_ = self.program.inference.infer(node.value, self.program.function_scope(function))
                if isinstance(type_, External):
                    continue
                if not isinstance(type_, Class):
                    return None
                following = self._constructor(self.program.classes.linearize(type_.declaration))
            if following is not None:
                found.append(following)
        return found

    def _next(
        self, order: list[Class | External | Unknown], after: ClassDeclaration | None
    ) -> FunctionDeclaration | None:
        for index, entry in enumerate(order):
            if isinstance(entry, Class) and entry.declaration is after:
                return self._constructor(order[index + 1 :])
        return None

    def _constructor(
        self, entries: tuple[Class | External | Unknown, ...] | list[Class | External | Unknown]
    ) -> FunctionDeclaration | None:
        for entry in entries:
            if isinstance(entry, Class):
                found = self.members.definition(entry.declaration, "__init__")
                if found is not None:
                    return found.function
        return None

    # What is then missing

    def _left_out(
        self, class_: ClassDeclaration, skipped: list[Definition], reached: set[ClassDeclaration]
    ) -> dict[str, Unset]:
        candidates: dict[str, FunctionDeclaration] = {}
        for definition in skipped:
            assert definition.function is not None
            for name in _stored(definition.function):
                candidates.setdefault(name, definition.function)
        for name in list(candidates):
            if self._is_set_elsewhere(class_, name, {d.function for d in skipped}):
                del candidates[name]
        if not candidates:
            return {}
        found: dict[str, Unset] = {}
        for reader in self._inherited(class_):
            for name, (line, is_certain) in self._reads_of(reader).items():
                if name not in candidates or (name in found and (found[name].is_certain or not is_certain)):
                    continue
                found[name] = Unset(name, candidates[name], reader, line, is_certain)
        return found

    def _is_set_elsewhere(self, class_: ClassDeclaration, name: str, skipped: set[FunctionDeclaration | None]) -> bool:
        """True where a class body, another method, or whoever gets hold of an instance may set the attribute."""
        for entry in self.program.classes.linearize(class_):
            if not isinstance(entry, Class):
                continue
            if name in entry.declaration.members:
                return True
            if any(store.function not in skipped for store in self.program.classes.stores(entry.declaration, name)):
                return True
        # Something of the client's that stores it on another object than its own is doubt enough.
        pattern = re.compile(rf"(?<!\bself)\.{re.escape(name)}\s*(?::[^=\n]+)?=[^=]|[\"']{re.escape(name)}[\"']")
        return pattern.search(class_.module.text) is not None

    def _inherited(self, class_: ClassDeclaration) -> Iterator[FunctionDeclaration]:
        """The target's methods that an instance of the class has, constructors left out."""
        for base in self.members.target_classes(class_):
            for name in base.members:
                if name in ("__init__", "__new__", "__del__", "__repr__", "__str__"):
                    continue
                first = self.members.first(class_, name)
                if isinstance(first, Definition) and first.owner is base and first.function is not None:
                    if first.form not in ("static method", "class method"):
                        yield first.function

    def _reads_of(self, function: FunctionDeclaration) -> dict[str, tuple[int, bool]]:
        """The attributes that a method reads of its receiver: the line, and whether it is always read."""
        found = self._reads.get(function)
        if found is None:
            found = self._reads[function] = dict(_reads(function))
        return found


def _receiver(function: FunctionDeclaration) -> str:
    arguments = function.node.args
    first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
    return first.arg if first is not None else ""


def _stored(function: FunctionDeclaration) -> Iterator[str]:
    receiver = _receiver(function)
    for node in own_nodes(function.body):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == receiver:
                yield node.attr


def evaluated_always(function: FunctionDeclaration) -> set[int]:
    """The identities of the nodes that are evaluated on every run of a function, or before it first can return."""
    always: set[int] = set()
    for statement in function.body:
        parts: list[ast.AST] = [statement]
        if isinstance(statement, ast.If | ast.While):
            parts = [statement.test]
        elif isinstance(statement, ast.For):
            parts = [statement.iter]
        elif isinstance(statement, ast.Try | ast.Match | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        elif isinstance(statement, ast.With):
            parts = [item.context_expr for item in statement.items]
        for part in parts:
            always.update(id(node) for node in ast.walk(part))
        if any(isinstance(node, ast.Return | ast.Raise) for node in ast.walk(statement)):
            # What follows may never be reached.
            break
    return always


def _reads(function: FunctionDeclaration) -> Iterator[tuple[str, tuple[int, bool]]]:
    receiver = _receiver(function)
    text = function.source
    always = evaluated_always(function)
    seen: dict[str, tuple[int, bool]] = {}
    for node in own_nodes(function.body):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if not isinstance(node.value, ast.Name) or node.value.id != receiver:
            continue
        if re.search(rf"hasattr\(\s*{receiver}\s*,\s*[\"']{re.escape(node.attr)}[\"']", text):
            continue
        is_always = id(node) in always
        if node.attr not in seen or (is_always and not seen[node.attr][1]):
            seen[node.attr] = (node.lineno, is_always)
    yield from seen.items()
