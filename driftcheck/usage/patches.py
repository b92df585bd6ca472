"""Recognizes what a client puts in the place of the target's things: stores, `setattr`, helpers, mocks, wrappers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from driftcheck.surface.given_arguments import given_by_name
from driftcheck.surface.program import Program
from driftcheck.surface.types import Absent, Class, External, Family, Function, Instance, Lambda, Module, Type, Unknown
from driftcheck.usage.usages import Common, FamilyUsage, PatchUsage, Wrapped

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

    def stored(self, owner: ast.expr, name: str, value: ast.expr, place: ast.AST) -> Iterator[PatchUsage | FamilyUsage]:
        """The patch that an assignment to an attribute makes."""
        yield from self._patch(self.infer(owner), name, value, place)

    def called(self, node: ast.Call, callee: Type) -> Iterator[PatchUsage | FamilyUsage]:
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
                yield from self._named(
                    node, node.args[0], node.args[1], node.args[2], needs_name=True, is_temporary=True
                )
            elif len(node.args) == 2:
                yield from self._by_path(node, node.args[0], node.args[1])
        elif path in _MOCKS:
            yield from self._by_path(node, node.args[0], _replacement(node, 1))
        elif path in _OBJECT_MOCKS and len(node.args) > 1:
            creates = any(keyword.arg == "create" for keyword in node.keywords)
            value = _replacement(node, 2)
            yield from self._named(node, node.args[0], node.args[1], value, needs_name=not creates, is_temporary=True)
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
        is_temporary: bool = False,
    ) -> Iterator[PatchUsage | FamilyUsage]:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield from self._patch(
                self.infer(owner), name.value, value, node, needs_name=needs_name, is_temporary=is_temporary
            )

    def _by_path(self, node: ast.Call, path: ast.expr, value: ast.expr | None) -> Iterator[PatchUsage | FamilyUsage]:
        """A patch of what a dotted path names; whether the path leads anywhere is the question of the string itself."""
        if not isinstance(path, ast.Constant) or not isinstance(path.value, str):
            return
        owner, _, name = path.value.rpartition(".")
        found = self._resolved(owner) if owner else None
        if found is not None:
            yield from self._patch(found, name, value, node, is_path=True, is_temporary=True)

    def _wrapped(self, node: ast.Call) -> Iterator[PatchUsage | FamilyUsage]:
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
        is_temporary: bool = False,
    ) -> Iterator[PatchUsage | FamilyUsage]:
        if isinstance(owner, Family) and isinstance(value, ast.Call) and len(value.args) == 2:
            maker = self.infer(value.func)
            if isinstance(maker, External) and _WRAPPED.get(maker.path) == "bound method":
                yield FamilyUsage(*self.common(place), owner.name, name, "patch", value=self.infer(value.args[0]))
            return
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
        yield PatchUsage(*self.common(place), owner, name, value, type_, wrapped, needs_name, is_path, is_temporary)

    def _by_helper(self, node: ast.Call, callee: Function) -> Iterator[PatchUsage | FamilyUsage]:
        """What a function of the client's puts where its arguments say."""
        puts = self.program.installations.puts(callee.declaration)
        if not puts:
            return
        given = given_by_name(node, callee.declaration, skips_first=callee.skips_first)
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


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join(reversed([*parts, node.id]))
