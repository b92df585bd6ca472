"""What a module declares, read from its source with `ast`: names, classes and functions, without judging any of them.

Function bodies are dropped after parsing (they are most of a module, and few are asked for) and parsed again from
the source when somebody wants to know what a method stores or returns.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from driftcheck.surface.slim_trees import for_slim_nodes, slim
from driftcheck.surface.source_lines import SourceLines
from driftcheck.surface.syntax import all_statements, drop_bodies, nodes_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
BlockPart = Literal["body", "handler", "orelse", "finalbody"]


@dataclass(eq=False, slots=True)
class Condition:
    """A branch that has to be taken for a statement to run: the test and the value it must have."""

    test: ast.expr
    value: bool


@dataclass(eq=False, slots=True)
class Attempt:
    """A part of a `try` statement: which part a statement stands in, and for handlers what they catch."""

    statement: ast.Try
    part: BlockPart
    caught: tuple[str, ...] = ()


Context = Condition | Attempt


@dataclass(eq=False, slots=True)
class Binding:
    """One place where a scope binds a name.

    `node` is the statement that binds, `value` the expression bound where there is one, `annotation` the declared type;
    `path` leads into `value` for unpacked targets (`a, b = value` binds b at path (1,)), `element` marks the targets of
    loops (an element of value), of `with` (what value's `__enter__` gives) and of `async with`.
    """

    name: str
    line: int
    node: ast.AST
    contexts: tuple[Context, ...] = ()
    value: ast.expr | None = None
    annotation: ast.expr | None = None
    path: tuple[int | None, ...] = ()
    element: Literal["", "for", "async for", "with", "async with", "del", "except", "augmented"] = ""
    function: FunctionDeclaration | None = None
    class_: ClassDeclaration | None = None

    def __repr__(self) -> str:
        return f"<binding of {self.name} on line {self.line}>"


@dataclass(eq=False, slots=True)
class FunctionDeclaration:
    """A function or method as declared; `owner` is the class whose body holds it, `outer` the function that does."""

    module: ModuleDeclaration
    node: FunctionNode
    qualified_name: str
    owner: ClassDeclaration | None = None
    outer: FunctionDeclaration | None = None
    contexts: tuple[Context, ...] = ()
    _body: list[ast.stmt] | None = None

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    @property
    def line(self) -> int:
        """The line of its `def`."""
        return self.node.lineno

    @property
    def symbol(self) -> str:
        """The canonical dotted path."""
        return f"{self.module.name}.{self.qualified_name}"

    def __repr__(self) -> str:
        return f"<def {self.symbol}>"

    @property
    def is_async(self) -> bool:
        """True for `async def`."""
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def body(self) -> list[ast.stmt]:
        """The statements of the body, parsed again from the source where they were dropped."""
        if self._body is None:
            self._body = self.node.body or _parse_body(self.module, self.node)
        return self._body

    @property
    def source(self) -> str:
        """The source text of the whole definition, decorators excluded."""
        return "\n".join(self.module.lines[self.node.lineno - 1 : self.node.end_lineno])


@dataclass(eq=False, slots=True)
class ClassDeclaration:
    """A class as declared; `members` are what its body binds."""

    module: ModuleDeclaration
    node: ast.ClassDef
    qualified_name: str
    owner: ClassDeclaration | None = None
    outer: FunctionDeclaration | None = None
    contexts: tuple[Context, ...] = ()
    members: dict[str, list[Binding]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The class's own name."""
        return self.node.name

    @property
    def line(self) -> int:
        """The line of its `class`."""
        return self.node.lineno

    @property
    def symbol(self) -> str:
        """The canonical dotted path."""
        return f"{self.module.name}.{self.qualified_name}"

    def __repr__(self) -> str:
        return f"<class {self.symbol}>"

    def methods(self) -> Iterator[FunctionDeclaration]:
        """Every function bound in the class body, in order, redefinitions included."""
        for bindings in self.members.values():
            for binding in bindings:
                if binding.function is not None:
                    yield binding.function


@dataclass(eq=False, slots=True)
class StarImport:
    """A `from module import *` at module level."""

    node: ast.ImportFrom
    contexts: tuple[Context, ...]


@dataclass(eq=False, slots=True)
class ModuleDeclaration:
    """A module as declared: `text` is its source, `names` maps each name to its bindings in order.

    `kept` is its syntax tree, for clients only.
    """

    name: str
    path: str
    is_package: bool
    text: str
    names: dict[str, list[Binding]] = field(default_factory=dict)
    star_imports: list[StarImport] = field(default_factory=list)
    kept: ast.Module | None = None
    _lines: SourceLines | None = None
    _has_walrus: bool | None = None

    def __repr__(self) -> str:
        return f"<module {self.name}>"

    @property
    def has_tree(self) -> bool:
        """True where the syntax tree can be had."""
        return self.kept is not None

    @property
    def has_walrus(self) -> bool:
        """True where the source may bind names within expressions."""
        if self._has_walrus is None:
            self._has_walrus = ":=" in self.text
        return self._has_walrus

    @property
    def tree(self) -> ast.Module:
        """The syntax tree, function bodies included; raises ValueError where it can't be had."""
        if self.kept is None:
            raise ValueError(f"the syntax tree of {self.name} is not kept")
        return self.kept

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def classes(self) -> Iterator[ClassDeclaration]:
        """Every class bound at module level, in order, redefinitions included."""
        for bindings in self.names.values():
            for binding in bindings:
                if binding.class_ is not None:
                    yield binding.class_

    @property
    def lines(self) -> Sequence[str]:
        """The source in lines."""
        if self._lines is None:
            self._lines = SourceLines(self.text)
        return self._lines


class UnreadableSource(Exception):
    """A file that is no Python this interpreter can read; the message says why, in a few words."""


_ENCODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
LARGEST_SOURCE = 8_000_000


def decode_source(data: bytes) -> str:
    """The text of a Python file, decoded as Python does; raises UnreadableSource."""
    if len(data) > LARGEST_SOURCE:
        raise UnreadableSource(f"larger than {LARGEST_SOURCE // 1_000_000} MB")
    if b"\0" in data:
        raise UnreadableSource("holds null bytes")
    encoding = "utf-8"
    head = b"\n".join(data.split(b"\n", 2)[:2])
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    elif b"coding" in head and (match := _ENCODING.search(head)):
        encoding = match.group(1).decode("ascii", "replace")
    try:
        text = data.decode(encoding)
    except LookupError:
        raise UnreadableSource(f"declares the unknown encoding {encoding!r}") from None
    except UnicodeDecodeError as error:
        raise UnreadableSource(f"is not {encoding}: byte {error.start}") from None
    except UnicodeError:
        # Some codecs name no byte, and "undefined" decodes nothing at all.
        raise UnreadableSource(f"is not {encoding}") from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def parse_source(text: str) -> ast.Module:
    """The syntax tree; raises UnreadableSource for whatever the parser refuses, nesting too deep included."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise UnreadableSource(f"syntax error on line {error.lineno or 0}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise UnreadableSource("nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise UnreadableSource(str(error)) from None


def declare_module(
    name: str,
    path: str,
    data: bytes,
    *,
    keep_tree: bool = False,
    parse: Callable[[str], ast.Module] | None = None,
) -> ModuleDeclaration:
    """What the module of that name and path declares; raises UnreadableSource.

    `parse` gives the syntax tree of the text; it may lack the bodies of functions.
    """
    text = decode_source(data)
    tree = parse_source(text) if parse is None else parse(text)
    if not keep_tree:
        drop_bodies(tree)
    tree = slim(tree)
    stem = path.rpartition("/")[2].partition(".")[0]
    module = ModuleDeclaration(name, path, stem == "__init__", text)
    if keep_tree:
        module.kept = tree
    try:
        _declare_block(tree.body, _ModuleScope(module, keep_tree=keep_tree))
    except RecursionError:
        raise UnreadableSource("nested too deeply") from None
    return module


@dataclass(eq=False, slots=True)
class _ModuleScope:
    """Where `_declare_block` puts what it finds: a module's names, or a class's members."""

    module: ModuleDeclaration
    keep_tree: bool
    owner: ClassDeclaration | None = None
    outer: FunctionDeclaration | None = None
    names: dict[str, list[Binding]] | None = None

    def add(self, binding: Binding) -> None:
        names = self.names
        if names is None:
            names = self.module.names if self.owner is None else self.owner.members
        names.setdefault(binding.name, []).append(binding)

    def qualify(self, name: str) -> str:
        if self.owner is not None:
            return f"{self.owner.qualified_name}.{name}"
        return name if self.outer is None else f"{self.outer.qualified_name}.<locals>.{name}"


def declare_locals(function: FunctionDeclaration) -> dict[str, list[Binding]]:
    """What the body of a function binds: its locals, without its parameters."""
    scope = _ModuleScope(function.module, keep_tree=True, outer=function, names={})
    _declare_block(function.body, scope)
    assert scope.names is not None
    return scope.names


def _declare_block(statements: Sequence[ast.stmt], scope: _ModuleScope, contexts: tuple[Context, ...] = ()) -> None:
    for statement in statements:
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            handler(statement, scope, contexts)


def _declare_function(node: FunctionNode, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    function = FunctionDeclaration(scope.module, node, scope.qualify(node.name), scope.owner, scope.outer, contexts)
    scope.add(Binding(node.name, node.lineno, node, contexts, function=function))


def _declare_class(node: ast.ClassDef, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    class_ = ClassDeclaration(scope.module, node, scope.qualify(node.name), scope.owner, scope.outer, contexts)
    _declare_block(node.body, _ModuleScope(scope.module, scope.keep_tree, owner=class_))
    if not scope.keep_tree:
        node.body = []
    scope.add(Binding(node.name, node.lineno, node, contexts, class_=class_))


def _declare_import(node: ast.Import, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        scope.add(Binding(name, node.lineno, node, contexts))


def _declare_import_from(node: ast.ImportFrom, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    for alias in node.names:
        if alias.name == "*":
            scope.module.star_imports.append(StarImport(node, contexts))
        else:
            scope.add(Binding(alias.asname or alias.name, node.lineno, node, contexts))


def _declare_assign(node: ast.Assign, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    for target in node.targets:
        for name, path in target_names(target):
            scope.add(Binding(name, node.lineno, node, contexts, node.value, path=path))
    _declare_walrus(node.value, scope, contexts)


def _declare_annotated(node: ast.AnnAssign, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    if isinstance(node.target, ast.Name):
        scope.add(Binding(node.target.id, node.lineno, node, contexts, node.value, node.annotation))


def _declare_augmented(node: ast.AugAssign, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    if isinstance(node.target, ast.Name):
        scope.add(Binding(node.target.id, node.lineno, node, contexts, node.value, element="augmented"))


def _declare_if(node: ast.If, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    _declare_walrus(node.test, scope, contexts)
    _declare_block(node.body, scope, (*contexts, Condition(node.test, True)))
    if node.orelse:
        _declare_block(node.orelse, scope, (*contexts, Condition(node.test, False)))


def _declare_try(node: ast.Try, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    _declare_block(node.body, scope, (*contexts, Attempt(node, "body")))
    for handler in node.handlers:
        inside = (*contexts, Attempt(node, "handler", caught_names(handler.type)))
        if handler.name is not None:
            scope.add(Binding(handler.name, handler.lineno, handler, inside, handler.type, element="except"))
        _declare_block(handler.body, scope, inside)
    _declare_block(node.orelse, scope, (*contexts, Attempt(node, "orelse")))
    _declare_block(node.finalbody, scope, contexts)


def _declare_with(node: ast.With | ast.AsyncWith, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    for item in node.items:
        if item.optional_vars is not None:
            for name, path in target_names(item.optional_vars):
                element: Literal["with", "async with"] = "with" if isinstance(node, ast.With) else "async with"
                scope.add(Binding(name, node.lineno, node, contexts, item.context_expr, path=path, element=element))
    _declare_block(node.body, scope, contexts)


def _declare_for(node: ast.For | ast.AsyncFor, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    element: Literal["for", "async for"] = "for" if isinstance(node, ast.For) else "async for"
    for name, path in target_names(node.target):
        scope.add(Binding(name, node.lineno, node, contexts, node.iter, path=path, element=element))
    _declare_block(node.body, scope, contexts)
    _declare_block(node.orelse, scope, contexts)


def _declare_while(node: ast.While, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    _declare_walrus(node.test, scope, contexts)
    _declare_block(node.body, scope, contexts)
    _declare_block(node.orelse, scope, contexts)


def _declare_delete(node: ast.Delete, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            scope.add(Binding(target.id, node.lineno, node, contexts, element="del"))


def _declare_match(node: ast.Match, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    for case in node.cases:
        for pattern in nodes_of(case.pattern):
            name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
            if isinstance(name, str):
                scope.add(Binding(name, case.pattern.lineno, pattern, contexts))
        _declare_block(case.body, scope, contexts)


def _declare_expression(node: ast.Expr, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    _declare_walrus(node.value, scope, contexts)


def _declare_walrus(value: ast.expr, scope: _ModuleScope, contexts: tuple[Context, ...]) -> None:
    # Names and constants are most values, and a walk over them is what costs.
    if not scope.module.has_walrus or isinstance(value, ast.Name | ast.Constant | ast.Attribute):
        return
    if scope.outer is None and scope.owner is None and not isinstance(value, ast.NamedExpr | ast.BoolOp | ast.Compare):
        return
    if not any(":=" in line for line in scope.module.lines[value.lineno - 1 : value.end_lineno]):
        return
    for node in nodes_of(value):
        if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            scope.add(Binding(node.target.id, node.lineno, node, contexts, node.value))


_HANDLERS: dict[type[ast.stmt], Callable[..., None]] = {
    ast.FunctionDef: _declare_function,
    ast.AsyncFunctionDef: _declare_function,
    ast.ClassDef: _declare_class,
    ast.Import: _declare_import,
    ast.ImportFrom: _declare_import_from,
    ast.Assign: _declare_assign,
    ast.AnnAssign: _declare_annotated,
    ast.AugAssign: _declare_augmented,
    ast.If: _declare_if,
    ast.Try: _declare_try,
    ast.With: _declare_with,
    ast.AsyncWith: _declare_with,
    ast.For: _declare_for,
    ast.AsyncFor: _declare_for,
    ast.While: _declare_while,
    ast.Delete: _declare_delete,
    ast.Match: _declare_match,
    ast.Expr: _declare_expression,
}
if sys.version_info >= (3, 11):
    _HANDLERS[ast.TryStar] = _declare_try
_HANDLERS = for_slim_nodes(_HANDLERS)


def target_names(target: ast.expr, path: tuple[int | None, ...] = ()) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    """The plain names an assignment target binds, each with its way into the value (None where a star blurs it)."""
    if isinstance(target, ast.Name):
        yield target.id, path
    elif isinstance(target, ast.Tuple | ast.List):
        starred = False
        for index, element in enumerate(target.elts):
            if isinstance(element, ast.Starred):
                starred = True
                yield from target_names(element.value, (*path, None))
            else:
                yield from target_names(element, (*path, None if starred else index))


def caught_names(node: ast.expr | None) -> tuple[str, ...]:
    """The last names of the exceptions a handler catches; a bare `except` catches BaseException."""
    if node is None:
        return ("BaseException",)
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return tuple(
        part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else "?"
        for part in nodes
    )


def _parse_body(module: ModuleDeclaration, node: FunctionNode) -> list[ast.stmt]:
    assert node.end_lineno is not None
    segment = "\n".join(module.lines[node.lineno - 1 : node.end_lineno])
    if node.col_offset:
        # An indented definition is parsed as the body of an `if`, so that columns and multi-line strings stay true.
        segment, before = f"if 1:\n{segment}", node.lineno - 2
    else:
        before = node.lineno - 1
    try:
        # Empty lines in front make its lines those of the module.
        tree = parse_source("\n" * before + segment)
    except UnreadableSource:
        # Something else stands on the first or last line (`if x: def …`, a semicolon): the body stays unread.
        return []
    for found in all_statements(tree.body):
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) and found.name == node.name:
            return [slim(statement) for statement in found.body]
    return []
