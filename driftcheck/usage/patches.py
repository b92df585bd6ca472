"""Recognizes what a client puts in the place of the target's things: stores, `setattr`, helpers, mocks, wrappers."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Absent, Class, External, Function, Instance, Lambda, Module, Type, Unknown
from driftcheck.usage.usages import Common, PatchUsage, Wrapped

_WRAPPED: dict[str, Wrapped] = {
    "types.MethodType": "bound method",
    "builtins.staticmethod": "static method",
    "builtins.classmethod": "class method",
    "builtins.property": "property",
}
# Fixtures of pytest and its plug-ins, known by the names under which tests ask for them.
_SETTERS = frozenset(("monkeypatch.setattr", "mp.setattr"))
_MOCKS = frozenset(("mocker.patch", "unittest.mock.patch", "mock.patch"))
_OBJECT_MOCKS = frozenset(f"{name}.object" for name in _MOCKS)
_WRAPPERS = frozenset(("wrap_function_wrapper", "wrap_object", "wrap"))
_PUTTING = re.compile(r"\bsetattr\(|^\s*\w+\.\w+\s*=\s*\w+\s*$")


@dataclass(frozen=True, slots=True)
class _Put:
    """What a helper of the client's stores: each part is a parameter's name or an expression of the helper's own."""

    owner: str
    name: str | ast.Constant
    value: str | None


class Patches:
    """Finds patches in one module; `infer` and `common` are those of whoever walks it."""

    def __init__(
        self,
        program: Program,
        concerns: Callable[[Type], bool],
        infer: Callable[[ast.expr], Type],
        common: Callable[[ast.AST], Common],
    ) -> None:
        self.program = program
        self.concerns = concerns
        self.infer = infer
        self.common = common
        self._helpers: dict[FunctionDeclaration, tuple[_Put, ...]] = {}

    def stored(self, owner: ast.expr, name: str, value: ast.expr, place: ast.AST) -> Iterator[PatchUsage]:
        """The patch that an assignment to an attribute makes."""
        yield from self._patch(self.infer(owner), name, value, place)

    def called(self, node: ast.Call, callee: Type) -> Iterator[PatchUsage]:
        """The patches that a call makes."""
        if not node.args:
            return
        if isinstance(callee, Function):
            yield from self._by_helper(node, callee)
            return
        path = callee.path if isinstance(callee, External) else _dotted(node.func)
        name = path.rpartition(".")[2]
        if path == "builtins.setattr" and len(node.args) == 3:
            yield from self._named(node, node.args[0], node.args[1], node.args[2])
        elif path in _SETTERS:
            if len(node.args) > 2:
                yield from self._named(node, node.args[0], node.args[1], node.args[2], needs_name=True)
            elif len(node.args) == 2:
                yield from self._by_path(node, node.args[0], node.args[1])
        elif path in _MOCKS:
            yield from self._by_path(node, node.args[0], _replacement(node, 1))
        elif path in _OBJECT_MOCKS and len(node.args) > 1:
            creates = any(keyword.arg == "create" for keyword in node.keywords)
            yield from self._named(node, node.args[0], node.args[1], _replacement(node, 2), needs_name=not creates)
        elif name in _WRAPPERS and len(node.args) == 3:
            yield from self._wrapped(node)

    def _named(
        self,
        node: ast.Call,
        owner: ast.expr,
        name: ast.expr,
        value: ast.expr | None,
        *,
        needs_name: bool = False,
    ) -> Iterator[PatchUsage]:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield from self._patch(self.infer(owner), name.value, value, node, needs_name=needs_name)

    def _by_path(self, node: ast.Call, path: ast.expr, value: ast.expr | None) -> Iterator[PatchUsage]:
        """A patch of what a dotted path names; whether the path leads anywhere is the question of the string itself."""
        if not isinstance(path, ast.Constant) or not isinstance(path.value, str):
            return
        owner, _, name = path.value.rpartition(".")
        found = self._resolved(owner) if owner else None
        if found is not None:
            yield from self._patch(found, name, value, node, is_path=True)

    def _wrapped(self, node: ast.Call) -> Iterator[PatchUsage]:
        """`wrap(module, "Class.method", wrapper)`: the wrapper is given the call's arguments as they are."""
        first, second = node.args[0], node.args[1]
        if not isinstance(second, ast.Constant) or not isinstance(second.value, str):
            return
        owner: Type | None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            owner = self._resolved(first.value)
        else:
            owner = self.infer(first)
        *parents, name = second.value.split(".")
        for parent in parents:
            if owner is None or isinstance(owner, Unknown | Absent):
                return
            found = self.program.inference.attribute(owner, parent)
            if isinstance(found, Absent):
                # The class itself is gone, and the method with it.
                name = parent
                break
            owner = found
        if isinstance(owner, Module | Class):
            yield from self._patch(owner, name, None, node, needs_name=True)

    def _resolved(self, path: str) -> Type | None:
        """The module or class that a dotted path into the target leads to, None where it leads to neither."""
        program = self.program
        parts = path.split(".")
        if not program.is_target(path) or not all(part.isidentifier() for part in parts):
            return None
        split = len(parts)
        while split > 1 and not program.has_module(".".join(parts[:split])):
            split -= 1
        found: Type = Module(".".join(parts[:split]))
        for part in parts[split:]:
            found = program.inference.attribute(found, part)
        return found if isinstance(found, Module | Class) else None

    def _patch(
        self,
        owner: Type,
        name: str,
        value: ast.expr | None,
        place: ast.AST,
        *,
        needs_name: bool = False,
        is_path: bool = False,
    ) -> Iterator[PatchUsage]:
        if not isinstance(owner, Module | Class | Instance) or not self.concerns(owner):
            return
        wrapped: Wrapped = ""
        if isinstance(value, ast.Call) and value.args:
            callee = self.infer(value.func)
            wrapped = _WRAPPED.get(callee.path, "") if isinstance(callee, External) else ""
            if wrapped:
                value = value.args[0]
        type_ = self.infer(value) if value is not None else Unknown("made by the call that patches")
        # What is put on an object is data, unless it is a function that stands in for a method.
        if isinstance(owner, Instance) and not wrapped and not isinstance(type_, Function | Lambda):
            return
        yield PatchUsage(*self.common(place), owner, name, value, type_, wrapped, needs_name, is_path)

    def _by_helper(self, node: ast.Call, callee: Function) -> Iterator[PatchUsage]:
        """What a function of the client's puts where its arguments say."""
        declaration = callee.declaration
        if self.program.is_target(declaration.module.name) or not self.program.is_client(declaration.module.name):
            return
        puts = self._helpers.get(declaration)
        if puts is None:
            lines = declaration.module.lines[declaration.line : declaration.node.end_lineno]
            is_helper = any(_PUTTING.search(line) for line in lines)
            puts = self._helpers[declaration] = tuple(_puts(declaration)) if is_helper else ()
        if not puts:
            return
        given = _given(node, declaration, skips_first=callee.skips_first)
        for put in puts:
            owner = given.get(put.owner)
            name = put.name if isinstance(put.name, ast.Constant) else given.get(put.name)
            value = given.get(put.value) if put.value is not None else None
            if owner is not None and name is not None:
                yield from self._named(node, owner, name, value)


def _replacement(node: ast.Call, place: int) -> ast.expr | None:
    if len(node.args) > place:
        return node.args[place]
    return next((keyword.value for keyword in node.keywords if keyword.arg == "new"), None)


def _puts(function: FunctionDeclaration) -> Iterator[_Put]:
    arguments = function.node.args
    parameters = {argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    for node in own_nodes(function.body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            if len(node.args) != 3:
                continue
            owner, name, value = node.args
            if not isinstance(owner, ast.Name) or owner.id not in parameters:
                continue
            shown = value.id if isinstance(value, ast.Name) and value.id in parameters else None
            if isinstance(name, ast.Name) and name.id in parameters:
                yield _Put(owner.id, name.id, shown)
            elif isinstance(name, ast.Constant):
                yield _Put(owner.id, name, shown)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            if isinstance(target.value, ast.Name) and target.value.id in parameters - {"self", "cls"}:
                shown = node.value.id if isinstance(node.value, ast.Name) and node.value.id in parameters else None
                if shown is not None:
                    yield _Put(target.value.id, ast.copy_location(ast.Constant(target.attr), target), shown)


def _given(node: ast.Call, function: FunctionDeclaration, *, skips_first: bool) -> dict[str, ast.expr]:
    """What a call gives each parameter, as far as plain arguments say."""
    arguments = function.node.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]][1 if skips_first else 0 :]
    given: dict[str, ast.expr] = {}
    for name, value in zip(names, node.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        given[name] = value
    given.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None})
    return given


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join(reversed([*parts, node.id]))
