"""Which of the client's classes somebody else makes instances of: registered, returned, listed, named by a path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration
from driftcheck.surface.syntax import nodes_around

# Calls that are given a class and make no instance of it.
_ASKING = frozenset(
    (
        "isinstance",
        "issubclass",
        "cast",
        "super",
        "getattr",
        "hasattr",
        "setattr",
        "delattr",
        "type",
        "id",
        "repr",
        "str",
    )
)


class HandedOver:
    """Looks for classes as values in the client's modules."""

    def __init__(self, client: Sequence[ModuleDeclaration]) -> None:
        self.client = client
        self._memo: dict[str, bool] = {}

    def __contains__(self, class_: ClassDeclaration) -> bool:
        """True where the class is handed on as a value, by whatever name it goes elsewhere."""
        if any("regist" in ast.unparse(node) for node in class_.node.decorator_list):
            return True
        found = self._memo.get(class_.name)
        if found is None:
            found = self._memo[class_.name] = any(self._is_value_in(module, class_.name) for module in self.client)
        return found

    def _is_value_in(self, module: ModuleDeclaration, name: str) -> bool:
        if not module.has_tree or name not in module.text or not re.search(rf"\b{re.escape(name)}\b", module.text):
            return False
        if re.search(rf"[\"'][\w.]+[.:]{re.escape(name)}[\"']", module.text):
            return True
        return any(
            (isinstance(value, ast.Name) and value.id == name)
            or (isinstance(value, ast.Attribute) and value.attr == name)
            for node in nodes_around(module.tree, module.text, name)
            for value in _values(node)
        )


def _values(node: ast.AST) -> Iterator[ast.expr | None]:
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in _ASKING:
            yield from node.args
            yield from (keyword.value for keyword in node.keywords)
    elif isinstance(node, ast.List):
        yield from node.elts
    elif isinstance(node, ast.Dict):
        yield from node.values
    elif isinstance(node, ast.Return | ast.Assign):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
