"""What names are at one point of a function: assignments so far, and what the tests around the point have shown."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from driftcheck.surface.declarations import Binding, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.families import TOLD_APART
from driftcheck.surface.inference import without_none
from driftcheck.surface.program import Program
from driftcheck.surface.scopes import Scope
from driftcheck.surface.types import (
    NONE,
    Absent,
    Class,
    Dictionary,
    External,
    Family,
    Function,
    Instance,
    Literal,
    Module,
    Tuple,
    Type,
    Unknown,
    members_of,
    union,
)

State = dict[str, Type]


class FlowScope:
    """A scope whose names and attribute paths have the types they have at the point reached.

    `state` maps names (`x`) and narrowed paths (`self.x.y`) to types; whatever is not there is looked up in the scope
    behind, which knows all assignments at once. `memo` remembers the types of expressions while the state stands.
    """

    __slots__ = ("memo", "module", "outer", "program", "state")

    def __init__(self, outer: Scope, state: State | None = None) -> None:
        self.program: Program = outer.program
        self.module: ModuleDeclaration = outer.module
        self.outer = outer
        self.state: State = {} if state is None else state
        self.memo: dict[int, Type] = {}

    def lookup(self, name: str, *, typing: bool = False) -> Type:
        found = self.state.get(name)
        return found if found is not None else self.outer.lookup(name, typing=typing)

    def narrowed(self, node: ast.Attribute) -> Type | None:
        """The type that a test or an assignment has given to an attribute path."""
        path = path_of(node)
        return self.state.get(path) if path is not None else None

    def bindings(self, name: str) -> tuple[list[Binding], Scope]:
        return self.outer.bindings(name)

    @property
    def function(self) -> FunctionDeclaration | None:
        return self.outer.function

    @property
    def enclosing(self) -> Scope | None:
        return self.outer.enclosing

    def assign(self, path: str, type_: Type) -> None:
        """Notes a new value, and forgets what was known of its attributes."""
        self.forget(path)
        self.state[path] = type_
        self.memo.clear()

    def forget(self, path: str) -> None:
        """Forgets a path and everything below it."""
        state = self.state
        state.pop(path, None)
        prefix = path + "."
        for known in [key for key in state if key.startswith(prefix)]:
            del state[known]
        self.memo.clear()

    def restore(self, state: State) -> None:
        """Continues from another state."""
        self.state = state
        self.memo.clear()

    # Narrowing

    def narrow(self, test: ast.expr, holds: bool) -> None:
        """Notes what follows from a test that holds, or does not."""
        self._narrow(test, holds)
        self.memo.clear()

    def _narrow(self, test: ast.expr, holds: bool) -> None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._narrow(test.operand, not holds)
        elif isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) is holds:
                for value in test.values:
                    self._narrow(value, holds)
        elif isinstance(test, ast.NamedExpr):
            self.state[test.target.id] = self.program.inference.infer(test.value, self)
            self._narrow(test.target, holds)
        elif isinstance(test, ast.Call):
            self._narrow_call(test, holds)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            self._narrow_comparison(test.left, test.ops[0], test.comparators[0], holds)
        elif holds and (path := path_of(test)) is not None:
            self._set(path, without_none(self.program.inference.infer(test, self)))

    def _narrow_comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr, holds: bool) -> None:
        if isinstance(operator, ast.In | ast.NotIn):
            if isinstance(operator, ast.In) is holds and (owner := _listed_owner(right)) is not None:
                self._note_attribute(owner, left)
            return
        if isinstance(operator, ast.IsNot | ast.NotEq):
            holds = not holds
        elif not isinstance(operator, ast.Is | ast.Eq):
            return
        target = left.target if isinstance(left, ast.NamedExpr) else left
        if isinstance(left, ast.NamedExpr):
            self.state[left.target.id] = self.program.inference.infer(left.value, self)
        path = path_of(target)
        if not holds and isinstance(right, ast.Constant) and _is_getattr(target):
            # `getattr(value, "name", None) is not None`
            assert isinstance(target, ast.Call)
            self._narrow_call(target, holds=True)
        elif path is not None and isinstance(right, ast.Constant) and right.value is None:
            type_ = self.program.inference.infer(target, self)
            self._set(path, NONE if holds else without_none(type_))
        elif holds and isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "type":
            if len(left.args) == 1 and (path := path_of(left.args[0])) is not None:
                class_ = self.program.inference.infer(right, self)
                if isinstance(class_, Class):
                    self._set(path, Instance(class_, exact=True))
        elif path is not None and isinstance(operator, ast.Is | ast.IsNot):
            self._narrow_identity(path, target, right, holds)

    def _narrow_identity(self, path: str, target: ast.expr, right: ast.expr, holds: bool) -> None:
        """`value is module` or `value is Class`, of which there is only one."""
        other = self.program.inference.infer(right, self)
        if not isinstance(other, Module | Class | Function) or (isinstance(other, Class) and other.is_open):
            return
        if holds:
            self._set(path, other)
            return
        rest = [member for member in members_of(self.program.inference.infer(target, self)) if member != other]
        if rest:
            self._set(path, union(rest))

    def _narrow_call(self, test: ast.Call, holds: bool) -> None:
        name = test.func.id if isinstance(test.func, ast.Name) else ""
        if name == "callable" and len(test.args) == 1 and isinstance(test.args[0], ast.Call):
            self._narrow_call(test.args[0], holds)
            return
        if not test.args or (path := path_of(test.args[0])) is None:
            return
        if name in ("hasattr", "getattr") and isinstance(self.program.inference.infer(test.args[0], self), Family):
            self.state[path] = TOLD_APART
        elif name in ("hasattr", "getattr") and len(test.args) >= 2:
            if holds:
                self._note_attribute(test.args[0], test.args[1])
        elif name in ("isinstance", "issubclass") and len(test.args) == 2:
            classes = self._classes(test.args[1])
            type_ = self.program.inference.infer(test.args[0], self)
            if classes is not None:
                self._set(path, self._intersection(type_, classes, holds, is_class=name == "issubclass"))
            elif holds:
                self._set(path, Unknown("value of a class that is not known"))

    def _note_attribute(self, owner: ast.expr, named: ast.expr) -> None:
        """Notes that a value has an attribute, whatever its type says."""
        path = path_of(owner)
        name = self.program.inference.infer(named, self)
        if path is None or not isinstance(name, Literal) or not isinstance(name.value, str):
            return
        if isinstance(self.program.inference.infer(ast.Attribute(owner, name.value), self), Absent):
            self.state[f"{path}.{name.value}"] = Unknown("attribute shown by hasattr")

    def _classes(self, node: ast.expr) -> list[Class | External] | None:
        type_ = self.program.inference.infer(node, self)
        found: list[Class | External] = []
        for member in members_of(type_):
            for item in member.items if isinstance(member, Tuple) else (member,):
                if not isinstance(item, Class | External):
                    return None
                found.append(item)
        return found

    def _intersection(self, type_: Type, classes: list[Class | External], holds: bool, *, is_class: bool) -> Type:
        kept: list[Type] = []
        for member in members_of(type_):
            own = member.class_ if isinstance(member, Instance) and not is_class else member
            if isinstance(own, Class):
                fits = [self._fits(own, class_) for class_ in classes]
                if not holds:
                    if True not in fits:
                        kept.append(member)
                elif True in fits:
                    kept.append(member)
                else:
                    # The value is of a class below both: what is asked for is what is known of it.
                    kept += [self._instance(class_, is_class=is_class) for class_ in classes]
            elif isinstance(own, Literal):
                names = {class_.path for class_ in classes if isinstance(class_, External)}
                if (f"builtins.{type(own.value).__name__}" in names) is holds:
                    kept.append(member)
            elif isinstance(own, External) and own in classes:
                if holds:
                    kept.append(member)
            elif holds:
                kept += [self._instance(class_, is_class=is_class) for class_ in classes]
            else:
                kept.append(member)
        return union(kept) if kept else Unknown("branch that no value reaches")

    def _instance(self, class_: Class | External, *, is_class: bool) -> Type:
        if not is_class:
            return Instance(class_)
        return Class(class_.declaration, class_.arguments, is_open=True) if isinstance(class_, Class) else class_

    def _fits(self, own: Class, other: Class | External) -> bool | None:
        if isinstance(other, External):
            return other.path in self.program.classes.external_bases(own.declaration) or None
        return self.program.classes.is_subclass(own.declaration, other.declaration)

    def _set(self, path: str, type_: Type) -> None:
        self.state[path] = type_


def _is_getattr(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"


def _listed_owner(node: ast.expr) -> ast.expr | None:
    """The value whose names `dir(value)`, `vars(value)` or `value.__dict__` lists."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("dir", "vars"):
        return node.args[0] if len(node.args) == 1 else None
    return None


def path_of(node: ast.expr) -> str | None:
    """The dotted path of a name or of attributes of one, None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if not isinstance(node, ast.Attribute):
        return None
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def merge(states: Iterable[State], scope: FlowScope) -> State:
    """The state where several branches meet: what is known on all of them."""
    branches = list(states)
    if len(branches) == 1:
        return branches[0]
    merged: State = {}
    for name in dict.fromkeys(name for branch in branches for name in branch):
        types: list[Type] = []
        for branch in branches:
            found = branch.get(name)
            if found is None:
                if "." in name:
                    break
                found = scope.outer.lookup(name)
            types.append(found)
        else:
            # On most branches most names are what they were.
            merged[name] = types[0] if all(type_ is types[0] for type_ in types) else _joined(types)
    return merged


def _joined(types: list[Type]) -> Type:
    """The union; dicts that hold other keys on other branches become one that may hold more than is sure."""
    if len(types) > 1 and all(isinstance(type_, Dictionary) for type_ in types) and len(set(types)) > 1:
        items: dict[str, Type] = {}
        dictionaries = [type_ for type_ in types if isinstance(type_, Dictionary)]
        for type_ in dictionaries:
            items.update(type_.items)
        forgotten = [dict(type_.items) for type_ in dictionaries if type_.is_forgotten]
        kept = [(key, value) for key, value in items.items() if all(key in known for known in forgotten)]
        return Dictionary(tuple(kept), is_open=True, is_forgotten=bool(forgotten))
    return union(types)
