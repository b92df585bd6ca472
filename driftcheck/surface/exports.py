"""What a module's own `__getattr__` answers: lazy export tables, tables of settings, and deprecated names."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.scopes import ModuleScope
from driftcheck.surface.types import Absent, Type, Unknown

if TYPE_CHECKING:
    from driftcheck.surface.program import Program


@dataclass(frozen=True, slots=True)
class DeprecatedName:
    """A name that a module still answers for with a warning; `message` is what it says, where that is literal."""

    name: str
    message: str


class ModuleGetattr:
    """A module's `__getattr__`, as far as it can be read.

    `names` are the names it compares with or looks up in a table; it is `closed` where all else ends in
    an AttributeError.
    """

    def __init__(self, program: Program, function: FunctionDeclaration) -> None:
        self.program = program
        self.function = function
        self.scope = program.function_scope(function)
        arguments = function.node.args
        first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
        self.parameter = first.arg if first is not None else "name"
        self.names: dict[str, ast.expr | None] = {}
        self.blocks: dict[str, list[ast.stmt]] = {}
        self.deprecated: dict[str, DeprecatedName] = {}
        self.closed = True
        refusing = [s for s in function.body if isinstance(s, ast.If) and self._refused(s) is not None]
        self._read(function.body)
        if not refusing and not self._ends_in_error(function.body):
            self.closed = False

    def lookup(self, name: str) -> Type:
        """What the module answers for a name; Absent where it raises AttributeError."""
        if name in self.names:
            value = self.names[name]
            return self._value(name, value)
        if not self.closed:
            return Unknown("module __getattr__")
        return Absent(self.function.module.name, name)

    def _value(self, name: str, value: ast.expr | None) -> Type:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found = self._path(value.value)
            if found is not None:
                return found
        if isinstance(value, ast.Tuple) and value.elts and all(isinstance(e, ast.Constant) for e in value.elts):
            parts = [element.value for element in value.elts if isinstance(element, ast.Constant)]
            if all(isinstance(part, str) for part in parts):
                found = self._path(":".join(str(part) for part in parts))
                if found is not None:
                    return found
        for statement in self.blocks.get(name, ()):
            for node in ast.walk(statement):
                if isinstance(node, ast.Return) and node.value is not None:
                    inferred = self.program.inference.infer(node.value, self.scope)
                    if not isinstance(inferred, Absent):
                        return inferred
        if isinstance(value, ast.Lambda):
            return Unknown("value computed when it is read")
        return Unknown("module __getattr__")

    def _path(self, text: str) -> Type | None:
        """What a table's entry leads to: `.module:name`, `package.module:name` or `.module`."""
        location, _, attribute = text.partition(":")
        module = self.function.module
        if location.startswith("."):
            level = len(location) - len(location.lstrip("."))
            package = module.package
            for _ in range(level - 1):
                package = package.rpartition(".")[0]
            location = f"{package}.{location[level:]}".rstrip(".")
        if not self.program.is_inside(location):
            return None
        if attribute:
            return self.program.imported_name(location, attribute)
        found = self.program.module_type(location)
        if isinstance(found, Absent):
            head, _, tail = location.rpartition(".")
            return self.program.imported_name(head, tail)
        return found

    def _read(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.If):
                refused = self._refused(statement)
                if refused is not None:
                    self.names.update(refused)
                    return
                names = self._tested(statement.test)
                if names is not None:
                    for name, value in names.items():
                        self.names.setdefault(name, value)
                        self.blocks.setdefault(name, statement.body)
                    self._note_deprecation(names, statement.body)
                elif not self._harmless(statement):
                    self.closed = False
                else:
                    self._read(statement.body)
                self._read(statement.orelse)
            elif isinstance(statement, ast.Return) and statement.value is not None:
                if not self._table_access(statement.value):
                    self.closed = False
            elif isinstance(statement, ast.Try):
                self._read(statement.body)

    def _refused(self, statement: ast.If) -> dict[str, ast.expr | None] | None:
        """The table of `if name not in TABLE: raise …`, after which every name that is left has an answer."""
        test = statement.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.NotIn):
            return None
        if not self._is_parameter(test.left) or not self._ends_in_error(statement.body):
            return None
        return self._table(test.comparators[0])

    def _tested(self, test: ast.expr) -> dict[str, ast.expr | None] | None:
        """The names for which a test holds, with the table's values; None where the test is about something else."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for value in test.values:
                names = self._tested(value)
                if names is not None:
                    return names
            return None
        if isinstance(test, ast.BoolOp):
            parts = [self._tested(value) for value in test.values]
            merged: dict[str, ast.expr | None] = {}
            for part in parts:
                if part is None:
                    return None
                merged.update(part)
            return merged
        if isinstance(test, ast.NamedExpr):
            return self._table_of_call(test.value)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        left, operator, right = test.left, test.ops[0], test.comparators[0]
        if isinstance(operator, ast.Eq):
            for one, other in ((left, right), (right, left)):
                if self._is_parameter(one) and isinstance(other, ast.Constant) and isinstance(other.value, str):
                    return {other.value: None}
        if isinstance(operator, ast.In) and self._is_parameter(left):
            return self._table(right)
        return None

    def _is_parameter(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.parameter

    def _table(self, node: ast.expr) -> dict[str, ast.expr | None] | None:
        """The literal keys of a table: a dict, tuple, list or set, or a name bound to one."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
            node = node.func.value
        if isinstance(node, ast.Name):
            bindings, scope = self.scope.bindings(node.id)
            if len(bindings) == 1 and bindings[0].value is not None and not bindings[0].path:
                return self._table(bindings[0].value)
            if len(bindings) == 1 and isinstance(bindings[0].node, ast.ImportFrom) and isinstance(scope, ModuleScope):
                return self._imported_table(bindings[0].node, node.id)
            return None
        if isinstance(node, ast.Dict):
            table: dict[str, ast.expr | None] = {}
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    table[key.value] = value
                elif key is None:
                    inner = self._table(value)
                    if inner is None:
                        self.closed = False
                    else:
                        table.update(inner)
                else:
                    self.closed = False
            return table
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return {e.value: None for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)}
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("frozenset", "set", "tuple")
        ):
            return self._table(node.args[0]) if node.args else {}
        return None

    def _imported_table(self, node: ast.ImportFrom, name: str) -> dict[str, ast.expr | None] | None:
        module = self.program.module(self.program.import_base(self.function.module, node))
        bindings = module.names.get(name, []) if module is not None else []
        if len(bindings) == 1 and bindings[0].value is not None:
            return self._table(bindings[0].value)
        return None

    def _table_of_call(self, node: ast.expr) -> dict[str, ast.expr | None] | None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            return self._table(node.func.value)
        return None

    def _table_access(self, node: ast.expr) -> bool:
        """`return TABLE[name]` or `return TABLE[name]()`: a table whose missing keys end in an error of their own."""
        if isinstance(node, ast.Call) and not node.args:
            node = node.func
        if isinstance(node, ast.Subscript) and self._is_parameter(node.slice):
            table = self._table(node.value)
            if table is not None:
                self.names.update(table)
                return True
        return False

    def _harmless(self, statement: ast.If) -> bool:
        """True for a branch that answers nothing: no value is returned in it."""
        return not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(statement))

    def _ends_in_error(self, statements: list[ast.stmt]) -> bool:
        if not statements:
            return False
        last = statements[-1]
        if isinstance(last, ast.Raise):
            return True
        if isinstance(last, ast.If) and last.orelse:
            return self._ends_in_error(last.orelse)
        if isinstance(last, ast.Return) and last.value is not None:
            return self._table_access(last.value)
        if isinstance(last, ast.Try):
            return all(self._ends_in_error(handler.body) for handler in last.handlers)
        return False

    def _note_deprecation(self, names: dict[str, ast.expr | None], body: list[ast.stmt]) -> None:
        for statement in body:
            for node in ast.walk(statement):
                if not isinstance(node, ast.Call):
                    continue
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in ("warn", "warning", "warning_once", "deprecated"):
                    text = _literal_text(node.args[0]) if node.args else ""
                    for name in names:
                        self.deprecated[name] = DeprecatedName(name, text)


def _literal_text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "…"
            for part in node.values
        )
    return ""
