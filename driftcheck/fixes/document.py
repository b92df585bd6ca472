"""One client file under repair: its syntax tree, what stands where in it, and the changes that fixes ask for."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property
from typing import Protocol, TypeVar

import libcst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from driftcheck.model import Location

Node = TypeVar("Node", bound=libcst.CSTNode)
Made = TypeVar("Made", bound="Change")


# What would be a longer line is spread over several.
LONGEST = 88

Statement = libcst.SimpleStatementLine | libcst.BaseCompoundStatement


class Refused(Exception):
    """An edit that can't be made, with the reason in words."""


class Contradicted(Refused):
    """An edit that wants something else than another edit does."""


New = libcst.CSTNode | libcst.FlattenSentinel[libcst.CSTNode]


class Change(Protocol):
    """What becomes of one node: called once, with what the changes inside of it have left."""

    def __call__(self, updated: libcst.CSTNode) -> New:
        """The node that takes its place."""


class Document:
    """A file, parsed, to which changes are registered and then made in one pass.

    A node is changed by one object at most; `claims` are what edits want of it, so that two that contradict each other
    are refused and two that say the same count once.
    """

    def __init__(self, source: bytes) -> None:
        try:
            self.module = libcst.parse_module(source)
        except (libcst.ParserSyntaxError, UnicodeError, ValueError, RecursionError) as error:
            raise Refused(f"can't be parsed for editing: {str(error).splitlines()[0]}") from error
        if self.module.bytes != source:
            raise Refused("can't be written back byte for byte")
        found = MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)
        self.positions: dict[libcst.CSTNode, CodeRange] = dict(found)
        self.parents, self.names = _seen(self.module)
        self._at: dict[tuple[int, int], list[libcst.CSTNode]] = {}
        for node, place in self.positions.items():
            self._at.setdefault((place.start.line, place.start.column), []).append(node)
        self._changes: dict[libcst.CSTNode, Change] = {}
        self._claims: dict[tuple[libcst.CSTNode, str], str] = {}

    # Where things are

    def starting_at(self, location: Location, sort: type[Node]) -> Iterator[Node]:
        """The nodes of a sort that start at a place, the outermost first."""
        found = self._at.get((location.line, location.column - 1), [])
        nodes = [node for node in found if isinstance(node, sort)]
        yield from sorted(nodes, key=self._size, reverse=True)

    def _size(self, node: libcst.CSTNode) -> tuple[int, int]:
        end = self.positions[node].end
        return end.line, end.column

    def ends_at(self, node: libcst.CSTNode, location: Location) -> bool:
        """True where a node ends where a place does."""
        end = self.positions[node].end
        return (end.line, end.column) == (location.end_line, location.end_column - 1)

    def around(self, node: libcst.CSTNode) -> Iterator[libcst.CSTNode]:
        """The nodes around a node, from the inside out."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def call_at(self, location: Location) -> libcst.Call:
        """The call whose callee, or the callee's last name, stands at a place."""
        for node in self.starting_at(location, libcst.BaseExpression):  # type: ignore[type-abstract]
            if not self.ends_at(node, location):
                continue
            callee = node
            parent = self.parents.get(node)
            if isinstance(parent, libcst.Attribute) and parent.attr is node:
                callee, parent = parent, self.parents.get(parent)
            if isinstance(parent, libcst.Call) and parent.func is callee:
                return parent
        raise Refused("no call is found at that place")

    def named_at(self, location: Location, sort: type[Node], part: str) -> Node | None:
        """The node of a sort whose own name, which is a part of it, stands at a place; None where there is none."""
        for name in self.starting_at(location, libcst.Name):
            parent = self.parents.get(name)
            if isinstance(parent, sort) and getattr(parent, part) is name:
                return parent
        return None

    def code(self, node: libcst.CSTNode) -> str:
        """The source text of a node."""
        return self.module.code_for_node(node)

    def starts_line(self, node: libcst.CSTNode) -> bool:
        """True where nothing stands before a node on its line."""
        start = self.positions[node].start
        return not self._lines[start.line - 1][: start.column].strip()

    @cached_property
    def _lines(self) -> list[str]:
        return self.module.code.split("\n")

    def indent_of(self, node: libcst.CSTNode) -> str:
        """What the line on which a node starts is indented with, beyond the block that it stands in."""
        line = self._lines[self.positions[node].start.line - 1]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        blocks = [each for each in self.around(node) if isinstance(each, libcst.IndentedBlock)]
        of_block = "".join(each.indent or self.module.default_indent for each in reversed(blocks))
        return indent.removeprefix(of_block) if indent.startswith(of_block) else ""

    # What is to become of them

    def claim(self, node: libcst.CSTNode, aspect: str, value: str) -> bool:
        """True where an edit has this for itself, False where the same is wanted already; refused where another is."""
        known = self._claims.setdefault((node, aspect), "\0unclaimed")
        if known == "\0unclaimed":
            self._claims[node, aspect] = value
            return True
        if known != value:
            raise Contradicted(f"another fix wants something else of the same place: {known or 'to remove it'}")
        return False

    def changed(self, node: libcst.CSTNode, sort: type[Made], make: Callable[[], Made] | None = None) -> Made:
        """The one object of a sort that changes a node, made where there is none yet."""
        found = self._changes.get(node)
        if found is None:
            made = make() if make is not None else sort()
            self._changes[node] = made
            return made
        if not isinstance(found, sort):
            raise Contradicted("another fix changes the same place in another way")
        return found

    def lines_made(self, node: libcst.CSTNode) -> int:
        """How many statements have taken the place of one, once it is changed."""
        return getattr(self._changes.get(node), "lines", 1)

    def result(self) -> libcst.Module:
        """The tree with all changes made."""
        if not self._changes:
            return self.module
        made = self.module.visit(
            _Transformer(self._changes, {each for node in self._changes for each in self.around(node)})
        )
        assert isinstance(made, libcst.Module)
        return made


class _Transformer(libcst.CSTTransformer):
    """Makes the changes; what holds none of them, anywhere inside, is not looked through."""

    def __init__(self, changes: dict[libcst.CSTNode, Change], around: Container[libcst.CSTNode]) -> None:
        super().__init__()
        self.changes = changes
        self.around = around

    def on_visit(self, node: libcst.CSTNode) -> bool:
        return node in self.around

    def on_leave(self, original_node: libcst.CSTNode, updated_node: libcst.CSTNode) -> New:  # type: ignore[override]
        change = self.changes.get(original_node)
        return updated_node if change is None else change(updated_node)


def _seen(module: libcst.Module) -> tuple[dict[libcst.CSTNode, libcst.CSTNode], frozenset[str]]:
    """The parent of each node, and all names: one walk takes less than a third of what LibCST's own visitors take."""
    parents: dict[libcst.CSTNode, libcst.CSTNode] = {}
    names: set[str] = set()
    pending: list[libcst.CSTNode] = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, libcst.Name):
            names.add(node.value)
        children = node.children
        for child in children:
            parents[child] = node
        pending.extend(children)
    return parents, frozenset(names)


def dotted(node: libcst.CSTNode) -> str | None:
    """The dotted path that an expression is, None where it is another."""
    parts: list[str] = []
    while isinstance(node, libcst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, libcst.Name):
        return None
    return ".".join([node.value, *reversed(parts)])


def dotted_node(path: str) -> libcst.Name | libcst.Attribute:
    """The expression that a dotted path is."""
    names = path.split(".")
    node: libcst.Name | libcst.Attribute = libcst.Name(names[0])
    for name in names[1:]:
        node = libcst.Attribute(node, libcst.Name(name))
    return node


def expression(text: str) -> libcst.BaseExpression:
    """The expression that a text is; refused where it is none."""
    try:
        return libcst.parse_expression(text)
    except (libcst.ParserSyntaxError, ValueError, RecursionError) as error:
        raise Refused(f"{text!r} is no expression") from error


def new_line(indent: str) -> libcst.ParenthesizedWhitespace:
    """A line break within brackets, and how far in the next line begins, beyond the block that it stands in."""
    return libcst.ParenthesizedWhitespace(indent=True, last_line=libcst.SimpleWhitespace(indent))


def spread_condition(document: Document, chosen: libcst.IfExp, place: libcst.CSTNode) -> libcst.IfExp:
    """A conditional expression in parentheses, over several lines below the one where a node starts.

    Within a formatted string it has to stay on one line.
    """
    if any(isinstance(each, libcst.FormattedString) for each in document.around(place)):
        return chosen
    outer = document.indent_of(place)
    inner = new_line(outer + document.module.default_indent)
    return chosen.with_changes(
        lpar=[libcst.LeftParen(whitespace_after=inner)],
        whitespace_before_if=inner,
        whitespace_before_else=inner,
        rpar=[libcst.RightParen(whitespace_before=new_line(outer))],
    )


def statements(text: str) -> Sequence[Statement]:
    """The statements that a text is; refused where it is none."""
    try:
        return libcst.parse_module(text).body
    except (libcst.ParserSyntaxError, ValueError, RecursionError) as error:
        raise Refused(f"{text!r} is no statement") from error
