"""What a client's own code says by name, wherever it stands: the names it mentions, stores to and gives values for."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from driftcheck.rules import ClientCondition
from driftcheck.surface.declarations import ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.syntax import all_statements, last_name, nodes_of, stored_targets

_QUOTED_PATH = re.compile(r"[\"']([A-Za-z_][\w.]*[.:]\w+)[\"']")
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class ClientCode:
    """Answers questions about the syntax of a client's modules."""

    def __init__(self, program: Program, modules: Sequence[ModuleDeclaration]) -> None:
        self.program = program
        self._mentioned: dict[ast.AST, frozenset[str]] = {}
        self._given: dict[ast.Module, tuple[tuple[str, ast.expr], ...]] = {}
        self._using = tuple(modules)
        self._modules: tuple[ModuleDeclaration, ...] | None = None

    @property
    def modules(self) -> tuple[ModuleDeclaration, ...]:
        """The client's modules that use the target, and those that they import or name in strings."""
        if self._modules is None:
            found = {module.path: module for module in self._using}
            for module in self._using:
                found |= {each.path: each for each in (*self._imported_by(module), *self._named_in(module))}
            self._modules = tuple(found.values())
        return self._modules

    def _imported_by(self, module: ModuleDeclaration) -> Iterator[ModuleDeclaration]:
        """The client's own modules that a module imports, or imports something from."""
        for node in all_statements(module.tree.body) if module.has_tree else ():
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = self.program.import_base(module, node)
                names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            for name in names:
                found = self._module(name)
                if found is not None:
                    yield found

    def _named_in(self, module: ModuleDeclaration) -> Iterator[ModuleDeclaration]:
        """The client's own modules of the things that strings in a module name."""
        for path in dict.fromkeys(_QUOTED_PATH.findall(module.text)):
            found = self._home(path)
            if found is not None:
                yield found

    def _home(self, path: str) -> ModuleDeclaration | None:
        """The client's module of the thing that a dotted path names."""
        return self._module(path.replace(":", ".").rpartition(".")[0])

    def _module(self, name: str) -> ModuleDeclaration | None:
        """The client's module of that name."""
        is_client = self.program.is_client(name) and not self.program.is_target(name)
        return self.program.module(name) if is_client and self.program.has_module(name) else None

    def holds(self, condition: ClientCondition) -> bool:
        """True where the client's code is as a condition asks; of `calls` only the names are told apart."""
        parameter = condition.in_class_of
        modules = self.modules if parameter is None else self.modules_of_class(parameter)
        says = any(
            self._says(question, {path.rpartition(".")[2] for path in paths}, condition, module)
            for module in modules
            for question, paths in condition.questions
        )
        return says is not condition.is_never

    def modules_of_class(self, parameter: str) -> tuple[ModuleDeclaration, ...]:
        """The client's modules of the classes that strings given for a parameter name."""
        found: dict[str, ModuleDeclaration] = {}
        for module in self._using:
            if not module.has_tree or parameter not in module.text:
                continue
            for name, value in self._gives(module.tree):
                if name == parameter and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    home = self._home(value.value)
                    if home is not None:
                        found[home.path] = home
        return tuple(found.values())

    def mentions(self, names: Collection[str], module: ModuleDeclaration, line: int, within: str) -> bool:
        """True where one of these names stands in the function or class of a line, in its module, or anywhere.

        What a module imports of the client's own belongs to it, since a base or a helper there may do the rest.
        """
        if not self._names(_around(module.tree, line, within)).isdisjoint(names):
            return True
        if within not in ("module", "client"):
            return False
        others = self.modules if within == "client" else self._imported_by(module)
        return any(self._mentions(each, names) for each in others)

    def _mentions(self, module: ModuleDeclaration, names: Collection[str]) -> bool:
        tree = _tree_with(names, module)
        return tree is not None and not self._names(tree).isdisjoint(names)

    def _says(self, question: str, names: set[str], condition: ClientCondition, module: ModuleDeclaration) -> bool:
        tree = _tree_with(names, module)
        if tree is None:
            return False
        if question == "gives":
            return any(name in names and _is_one_of(value, condition) for name, value in self._gives(tree))
        if question == "stores":
            targets = (target for statement in tree.body for target in stored_targets(statement))
            return any(isinstance(target, ast.Attribute) and target.attr in names for target in targets)
        if question == "calls":
            return any(isinstance(node, ast.Call) and last_name(node.func) in names for node in nodes_of(tree))
        return not self._names(tree).isdisjoint(names)

    def _names(self, root: ast.AST) -> frozenset[str]:
        """Every name below a node: of things, attributes, keywords, definitions, and of strings that are names."""
        found = self._mentioned.get(root)
        if found is None:
            found = self._mentioned[root] = frozenset(name for node in nodes_of(root) for name in _names_of(node))
        return found

    def _gives(self, tree: ast.Module) -> tuple[tuple[str, ast.expr], ...]:
        """What the client gives by name: as a keyword, under a key, to an attribute, or with `setattr`."""
        found = self._given.get(tree)
        if found is None:
            found = self._given[tree] = tuple(given for node in nodes_of(tree) for given in _given_by(node))
        return found


def enclosing_function(tree: ast.Module, line: int) -> ast.AST:
    """The innermost function around a line, else the module."""
    return _around(tree, line, "function")


def enclosing_class(tree: ast.Module, line: int) -> ast.AST:
    """The outermost class around a line, else its outermost function, else the module."""
    return _around(tree, line, "class")


def _tree_with(names: Collection[str], module: ModuleDeclaration) -> ast.Module | None:
    """The syntax tree of a module whose text has one of the names: few have, and to walk through all takes seconds."""
    return module.tree if any(name in module.text for name in names) else None


def scope_name(tree: ast.Module, line: int) -> str:
    """The names of the classes and functions around a line, dotted as a usage's scope is."""
    return ".".join(node.name for node in _chain(tree, line))


def _around(tree: ast.Module, line: int, within: str) -> ast.AST:
    chain = _chain(tree, line)
    if within not in ("function", "class") or not chain:
        return tree
    if within == "class":
        return next((node for node in chain if isinstance(node, ast.ClassDef)), chain[0])
    return next((node for node in reversed(chain) if not isinstance(node, ast.ClassDef)), tree)


def _chain(tree: ast.Module, line: int) -> list[Scope]:
    """The classes and functions around a line, the outermost first."""
    chain: list[Scope] = []
    body: Sequence[ast.AST] = tree.body
    while True:
        inner = next((each for root in body for each in _scopes_at(root, line)), None)
        if inner is None:
            return chain
        chain.append(inner)
        body = inner.body


def _scopes_at(root: ast.AST, line: int) -> Iterator[Scope]:
    for node in nodes_of(root):
        if isinstance(node, _SCOPES) and node.lineno <= line <= (node.end_lineno or node.lineno):
            yield node


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.keyword | ast.arg) and node.arg is not None:
        yield node.arg
    elif isinstance(node, ast.alias):
        yield node.name.rpartition(".")[2]
    elif isinstance(node, _SCOPES):
        yield node.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.replace(":", ".").rpartition(".")[2]
        if name.isidentifier():
            yield name


def _given_by(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield keyword.arg, keyword.value
        if last_name(node.func) in ("setattr", "setdefault") and len(node.args) > 1:
            name = node.args[-2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, node.args[-1]
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute):
                yield target.attr, node.value
            elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                yield str(target.slice.value), node.value


def _is_one_of(value: ast.expr, condition: ClientCondition) -> bool:
    """True where a value is one of those asked for, or where the answer has to be no and it might be one."""
    if not condition.values:
        return True
    if not isinstance(value, ast.Constant):
        return condition.is_never
    return ast.unparse(value) in condition.values
