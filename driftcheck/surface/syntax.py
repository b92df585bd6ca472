"""Ways through syntax trees that cost a fraction of `ast.walk`, which visits every operator and context as well."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

# Fields that hold text or numbers, or nodes that say nothing but which operator or context it is.
_PLAIN = frozenset(
    ("ctx", "op", "ops", "id", "attr", "arg", "name", "asname", "module", "level", "kind", "conversion", "simple",
     "rest", "is_async", "kwd_attrs", "type_comment", "type_ignores", "tag")
)  # fmt: skip
_WITHOUT_NODES = (ast.Constant, ast.MatchSingleton, ast.Global, ast.Nonlocal)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
_BLOCKS: dict[type[ast.AST], tuple[str, ...]] = {}
_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, in order, without operators and contexts."""
    fields = _FIELDS.get(type(node))
    if fields is None:
        is_leaf = isinstance(node, _WITHOUT_NODES)
        fields = _FIELDS[type(node)] = () if is_leaf else tuple(name for name in node._fields if name not in _PLAIN)
    found: list[ast.AST] = []
    for name in fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            # An unpacked dict among keys, and a parameter without a default, are None.
            found += [item for item in value if item is not None]
        elif value is not None:
            found.append(value)
    return found


def nodes_of(root: ast.AST) -> Iterator[ast.AST]:
    """A node and everything below it, each before what it holds."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)[::-1]


def nodes_around(tree: ast.Module, text: str, word: str) -> Iterator[ast.AST]:
    """The nodes of a module that span a line on which a word stands; `text` is its source.

    A definition spans its decorators as well; what has no lines of its own spans those of what it belongs to.
    """
    lines: list[int] = []
    line, before = 1, 0
    for match in re.finditer(re.escape(word), text):
        line, before = line + text.count("\n", before, match.start()), match.start()
        lines.append(line)
    pending: list[ast.AST] = [tree] if lines else []
    while pending:
        node = pending.pop()
        yield node
        for child in children(node):
            first = getattr(child, "lineno", None)
            if first is not None:
                decorators = getattr(child, "decorator_list", None)
                found = bisect_left(lines, decorators[0].lineno if decorators else first)
                last = getattr(child, "end_lineno", None) or first
                if found == len(lines) or lines[found] > last:
                    continue
            pending.append(child)


def drop_bodies(tree: ast.Module) -> None:
    """Drops the bodies of a module's functions and of its classes' methods."""
    for function in list(functions_outside(tree.body)):
        function.body = []


def functions_outside(statements: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module and the methods of its classes, in whatever branches they stand."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            for block in ("body", "handlers", "orelse", "finalbody", "cases"):
                pending += getattr(node, block, ())


def named_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters in order, without `*args` and `**kwargs`."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def last_name(node: ast.AST) -> str:
    """The name itself, or that of the attribute read; "" for any other node."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def called_name(node: ast.AST) -> str:
    """As `last_name`; of a call, that of what it calls."""
    return last_name(node.func if isinstance(node, ast.Call) else node)


def own_nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function's body in order, those of functions and classes inside left out."""
    pending = list(body[::-1])
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _OTHER_SCOPES):
            pending += children(node)[::-1]


def own_statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a body in order, with handlers and cases, those of functions and classes inside left out."""
    return _statements(body, enters_scopes=False)


def all_statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a body in order, with handlers and cases, and those of functions and classes inside."""
    return _statements(body, enters_scopes=True)


def _statements(body: Iterable[ast.AST], *, enters_scopes: bool) -> Iterator[ast.AST]:
    pending = list(body)[::-1]
    while pending:
        node = pending.pop()
        yield node
        blocks = _BLOCKS.get(type(node))
        if blocks is None:
            names = ("body", "handlers", "orelse", "finalbody", "cases")
            blocks = _BLOCKS[type(node)] = tuple(name for name in reversed(names) if name in node._fields)
        if blocks and (enters_scopes or not isinstance(node, _OTHER_SCOPES)):
            for name in blocks:
                pending += getattr(node, name)[::-1]


def stored_targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """The names and attributes that a statement and those inside it assign or delete, expressions left out."""
    for node in all_statements([statement]):
        if isinstance(node, ast.Assign | ast.Delete):
            pending = list(node.targets)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
            pending = [node.target]
        elif isinstance(node, ast.With | ast.AsyncWith):
            pending = [item.optional_vars for item in node.items if item.optional_vars is not None]
        else:
            continue
        while pending:
            target = pending.pop()
            if isinstance(target, ast.Name | ast.Attribute):
                yield target
            elif isinstance(target, ast.Tuple | ast.List):
                pending += target.elts
            elif isinstance(target, ast.Starred):
                pending.append(target.value)
