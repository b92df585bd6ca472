"""Functions that a client puts in the place of methods: the patch tells what their receiver is."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.given_arguments import given_by_name, scope_around
from driftcheck.surface.scopes import Scope
from driftcheck.surface.syntax import all_statements, last_name, named_parameters, own_nodes
from driftcheck.surface.types import Class, External, Family, Function, Instance, Type, union

if TYPE_CHECKING:
    from driftcheck.surface.program import Program

# What makes a method of a function where it is put on a class, or on an object.
_MAKERS = frozenset(("builtins.classmethod", "builtins.property"))
# A word that only ends in "def" gives a name that is none of a function's, and is asked for by nobody.
_FUNCTION = re.compile(r"def[ \t]+(\w+)")
_SETTING = re.compile(r"\bsetattr\(")
_PUTTING = re.compile(r"^\s*\w+\.\w+\s*=\s*\w+\s*$")
# Of more statements that may put a function somewhere only so many are looked at.
_MOST_PLACES = 40


@dataclass(frozen=True, slots=True)
class Put:
    """What a helper of the client's stores: each part is a parameter's name or an expression of the helper's own."""

    owner: str
    name: str | ast.Constant
    value: str | None


@dataclass(frozen=True, slots=True)
class _Installation:
    """A function that becomes `owner.name`; `receiver` is the object it is bound to, where the patch binds it."""

    owner: ast.expr
    name: str
    receiver: ast.expr | None
    scope: Scope


class Installations:
    """Finds whose methods the client's functions become, for those that call their first parameter `self`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._found: dict[FunctionDeclaration, tuple[_Installation, ...]] = {}
        self._looking: set[FunctionDeclaration] = set()
        self._helpers: dict[FunctionDeclaration, tuple[Put, ...]] = {}
        self._putting: dict[ModuleDeclaration, list[int]] = {}
        self._statements: dict[str, list[tuple[ModuleDeclaration, ast.AST]]] | None = None

    def receiver(self, function: FunctionDeclaration) -> Type | None:
        """What `self` is in a function that a patch makes a method of; None where no patch does."""
        if function in self._looking:
            return None
        self._looking.add(function)
        try:
            types = [type_ for place in self._of(function) if (type_ := self._receiver(place)) is not None]
        finally:
            self._looking.discard(function)
        return union(types) if types else None

    def parameter(self, function: FunctionDeclaration, name: str) -> Type | None:
        """What the methods that a function replaces declare for a parameter of that name."""
        receiver = self.receiver(function)
        if not isinstance(receiver, Instance) or not isinstance(receiver.class_, Class):
            return None
        for place in self._of(function):
            replaced = self.program.inference.attribute(receiver, place.name)
            if isinstance(replaced, Function) and replaced.declaration is not function:
                scope = self.program.function_scope(replaced.declaration)
                node = scope.parameters.get(name)
                if node is not None and node.annotation is not None:
                    return scope.parameter_type(name)
        return None

    def puts(self, function: FunctionDeclaration) -> tuple[Put, ...]:
        """What a function of the client's puts where its arguments say; nothing for any other function."""
        found = self._helpers.get(function)
        if found is None:
            home = function.module.name
            is_client = self.program.is_client(home) and not self.program.is_target(home)
            is_helper = is_client and self._may_put(function)
            found = self._helpers[function] = tuple(_puts(function)) if is_helper else ()
        return found

    def _may_put(self, function: FunctionDeclaration) -> bool:
        """True where a line of a function after its first looks as if it puts something somewhere."""
        module = function.module
        lines = self._putting.get(module)
        if lines is None:
            lines = self._putting[module] = list(_lines_putting(module.text))
        found = bisect_right(lines, function.line)
        return found < len(lines) and lines[found] <= (function.node.end_lineno or 0)

    def _receiver(self, place: _Installation) -> Type | None:
        if place.receiver is not None:
            bound = self.program.inference.infer(place.receiver, place.scope)
            return bound if isinstance(bound, Instance | Family) else None
        owner = self.program.inference.infer(place.owner, place.scope)
        return Instance(owner) if isinstance(owner, Class) else None

    # Where a function is put

    def _of(self, function: FunctionDeclaration) -> tuple[_Installation, ...]:
        found = self._found.get(function)
        if found is None:
            is_candidate = function.owner is None and self.program.is_client(function.module.name)
            self._found[function] = ()
            found = self._found[function] = tuple(self._search(function)) if is_candidate else ()
        return found

    def _search(self, function: FunctionDeclaration) -> Iterator[_Installation]:
        places = sorted(self._mentions().get(function.name, ()), key=lambda place: place[0] is not function.module)
        for module, statement in places[:_MOST_PLACES]:
            scope = scope_around(self.program, module, statement)
            for owner, name, value in self._stored(statement, scope):
                place = self._installation(function, owner, name, value, scope)
                if place is not None:
                    yield place

    def _mentions(self) -> dict[str, list[tuple[ModuleDeclaration, ast.AST]]]:
        """The client's statements that may put something somewhere, by the names of what they put there."""
        if self._statements is None:
            self._statements = {}
            loaded = map(self.program.module, sorted(self.program.loaded_modules()))
            modules = [m for m in loaded if m is not None and m.has_tree and self.program.is_client(m.name)]
            functions = {name for module in modules for name in _FUNCTION.findall(module.text)}
            for module in modules:
                for statement in all_statements(module.tree.body):
                    for name in functions.intersection(_put_by(statement)):
                        self._statements.setdefault(name, []).append((module, statement))
        return self._statements

    def _installation(
        self, function: FunctionDeclaration, owner: ast.expr, name: str, value: ast.expr, scope: Scope
    ) -> _Installation | None:
        receiver: ast.expr | None = None
        if isinstance(value, ast.Call) and value.args:
            maker = self.program.inference.infer(value.func, scope)
            if maker == External("types.MethodType") and len(value.args) == 2:
                receiver = value.args[1]
            elif not isinstance(maker, External) or maker.path not in _MAKERS:
                return None
            value = value.args[0]
        if last_name(value) != function.name:
            return None
        stored = self.program.inference.infer(value, scope)
        if not isinstance(stored, Function) or stored.declaration is not function:
            return None
        return _Installation(owner, name, receiver, scope)

    def _stored(self, statement: ast.AST, scope: Scope) -> Iterator[tuple[ast.expr, str, ast.expr]]:
        """What a statement stores in an attribute, as (owner, name, value)."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Attribute):
                    yield target.value, target.attr, statement.value
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            yield from self._stored_by(statement.value, scope)

    def _stored_by(self, node: ast.Call, scope: Scope) -> Iterator[tuple[ast.expr, str, ast.expr]]:
        """What `setattr`, a mock or a helper of the client's stores."""
        is_setter = last_name(node.func) == "setattr" or ast.unparse(node.func).endswith("patch.object")
        if is_setter and len(node.args) == 3:
            owner, name, value = node.args
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield owner, name.value, value
            return
        if not isinstance(node.func, ast.Name | ast.Attribute) or len(node.args) + len(node.keywords) < 2:
            return
        helper = self.program.inference.infer(node.func, scope)
        if not isinstance(helper, Function):
            return
        for put in self.puts(helper.declaration):
            given = given_by_name(node, helper.declaration, skips_first=helper.skips_first)
            placed = put.name if isinstance(put.name, ast.Constant) else given.get(put.name)
            held, what = given.get(put.owner), given.get(put.value) if put.value is not None else None
            if held is not None and what is not None and isinstance(placed, ast.Constant):
                yield held, str(placed.value), what


def _put_by(statement: ast.AST) -> set[str]:
    """The names that an assignment to an attribute, or a call that stands alone, may put somewhere."""
    values: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        if any(isinstance(target, ast.Attribute) for target in statement.targets):
            values = [statement.value]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
    values += [value.args[0] for value in values if isinstance(value, ast.Call) and value.args]
    return {name for value in values if (name := last_name(value))}


def _lines_putting(text: str) -> Iterator[int]:
    """The lines that call `setattr` or store a name in an attribute of another, in order."""
    for number, line in enumerate(text.split("\n"), 1):
        if ("setattr(" in line and _SETTING.search(line)) or ("=" in line and "." in line and _PUTTING.match(line)):
            yield number


def _puts(function: FunctionDeclaration) -> Iterator[Put]:
    arguments = function.node.args
    parameters = {argument.arg for argument in named_parameters(arguments)}
    for node in own_nodes(function.body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            if len(node.args) != 3:
                continue
            owner, name, value = node.args
            if not isinstance(owner, ast.Name) or owner.id not in parameters:
                continue
            shown = value.id if isinstance(value, ast.Name) and value.id in parameters else None
            if isinstance(name, ast.Name) and name.id in parameters:
                yield Put(owner.id, name.id, shown)
            elif isinstance(name, ast.Constant):
                yield Put(owner.id, name, shown)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            if isinstance(target.value, ast.Name) and target.value.id in parameters - {"self", "cls"}:
                shown = node.value.id if isinstance(node.value, ast.Name) and node.value.id in parameters else None
                if shown is not None:
                    yield Put(target.value.id, ast.copy_location(ast.Constant(target.attr), target), shown)
