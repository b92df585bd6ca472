"""Edits that put statements into a file: after a call, and helper functions at its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import libcst

from driftcheck.fixes.document import Document, New, Refused, Statement, dotted, statements
from driftcheck.fixes.sequences import Row
from driftcheck.model import Edit, Location

_RESULT = "output"


@dataclass(eq=False)
class LineChange:
    """What becomes of a line with one statement: its result gets a name, and statements come after it."""

    name: str | None
    after: list[Statement] = field(default_factory=list)
    returned: str | None = None

    def __call__(self, updated: libcst.CSTNode) -> New:
        assert isinstance(updated, libcst.SimpleStatementLine)
        statement = updated.body[0]
        rest: list[Statement] = list(self.after)
        if self.returned is not None:
            rest.append(libcst.SimpleStatementLine([libcst.Return(libcst.Name(self.returned))]))
        if self.name is not None and isinstance(statement, libcst.Expr | libcst.Return) and statement.value is not None:
            assigned = libcst.Assign([libcst.AssignTarget(libcst.Name(self.name))], statement.value)
            updated = updated.with_changes(body=[assigned])
        return libcst.FlattenSentinel([updated, *rest])


@dataclass(eq=False)
class RestTaken:
    """Targets that take whatever comes behind them too, under a name that nobody reads."""

    name: str

    def __call__(self, updated: libcst.CSTNode) -> New:
        assert isinstance(updated, libcst.Tuple | libcst.List)
        rest = libcst.StarredElement(libcst.Name(self.name))
        if isinstance(updated, libcst.List):
            row = Row.of(updated.elements, updated.lbracket.whitespace_after, updated.rbracket.whitespace_before)
            before, elements, behind = row.with_item(len(row.items), rest).separated()
            return updated.with_changes(
                elements=elements,
                lbracket=updated.lbracket.with_changes(whitespace_after=before),
                rbracket=updated.rbracket.with_changes(whitespace_before=behind),
            )
        if not updated.lpar:
            _, elements, _ = Row.of(updated.elements).with_item(len(updated.elements), rest).separated()
            return updated.with_changes(elements=elements)
        *outer, opening = updated.lpar
        closing, *rest_of = updated.rpar
        row = Row.of(updated.elements, opening.whitespace_after, closing.whitespace_before)
        before, elements, behind = row.with_item(len(row.items), rest).separated()
        return updated.with_changes(
            elements=elements,
            lpar=[*outer, opening.with_changes(whitespace_after=before)],
            rpar=[closing.with_changes(whitespace_before=behind), *rest_of],
        )


def take_rest(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Unpacks a result into the names that there are, and what comes behind into one that nobody reads."""
    del is_guarded
    node = _targets(document, edit.location)
    if node is None:
        raise Refused("the result is not unpacked at that place")
    if any(isinstance(each, libcst.StarredElement) for each in node.elements):
        raise Refused("a rest is taken already")
    if document.claim(node, "rest", ""):
        document.changed(node, RestTaken, lambda: RestTaken(_rest(document)))


def _targets(document: Document, location: Location) -> libcst.Tuple | libcst.List | None:
    """The outermost targets at a place, of which the brackets of a tuple are a part and no part."""
    first, last = (location.line, location.column - 1), (location.end_line, location.end_column - 1)
    found: dict[tuple[tuple[int, int], tuple[int, int]], libcst.Tuple | libcst.List] = {}
    for node, place in document.positions.items():
        start, end = (place.start.line, place.start.column), (place.end.line, place.end.column)
        if isinstance(node, libcst.Tuple | libcst.List) and node.elements and first <= start and end <= last:
            found[start, (-end[0], -end[1])] = node
    return found[min(found)] if found else None


def _rest(document: Document) -> str:
    """The name for what nobody reads: where `_` is a function, for translations as a rule, it stays one."""
    is_called = any(isinstance(each, libcst.Call) and dotted(each.func) == "_" for each in document.parents)
    return "_rest" if is_called else "_"


@dataclass(eq=False)
class Removed:
    """A statement that goes from its line; what is said above the line stays."""

    statement: libcst.CSTNode

    def __call__(self, updated: libcst.CSTNode) -> New:
        assert isinstance(updated, libcst.SimpleStatementLine)
        left = [each for each in updated.body if each is not self.statement]
        if left:
            left[-1] = left[-1].with_changes(semicolon=libcst.MaybeSentinel.DEFAULT)
            return updated.with_changes(body=left)
        # Where it was not the only one of its block, that goes too.
        bare = libcst.TrailingWhitespace(newline=updated.trailing_whitespace.newline)
        return updated.with_changes(body=[libcst.Pass()], trailing_whitespace=bare)


def remove_statement(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Leaves out a statement that sets an environment variable to a plain value."""
    if is_guarded:
        raise Refused("an older release may ask for it")
    for node in document.starting_at(edit.location, libcst.BaseExpression):  # type: ignore[type-abstract]
        for each in (node, *document.around(node)):
            line = document.parents.get(each)
            if isinstance(each, libcst.BaseSmallStatement) and isinstance(line, libcst.SimpleStatementLine):
                if not _is_plain_setting(each):
                    raise Refused("the statement does more than to set it to a plain value")
                if document.claim(each, "statement", ""):
                    document.changed(line, Removed, partial(Removed, each))
                return
    raise Refused("no statement is found at that place")


def _is_plain_setting(statement: libcst.BaseSmallStatement) -> bool:
    """True for `environ["NAME"] = "text"` and for such a call of `setdefault` or `putenv`."""
    if isinstance(statement, libcst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        return isinstance(target, libcst.Subscript) and _is_plain(statement.value)
    call = statement.value if isinstance(statement, libcst.Expr) else None
    return isinstance(call, libcst.Call) and all(_is_plain(argument.value) for argument in call.args)


def _is_plain(value: libcst.BaseExpression) -> bool:
    return isinstance(value, libcst.SimpleString | libcst.Name | libcst.Integer)


def insert_call_after(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Puts statements after the one that makes a call: `{result}` and `{receiver}` in them are the call's own."""
    del is_guarded
    call = document.call_at(edit.location)
    statement = document.parents.get(call)
    line = document.parents.get(statement) if statement is not None else None
    if not isinstance(line, libcst.SimpleStatementLine) or len(line.body) != 1:
        raise Refused("the call is part of a larger expression")
    name, returned = None, None
    if isinstance(statement, libcst.Expr):
        result = name = _free(document)
    elif isinstance(statement, libcst.Return):
        result = name = returned = _free(document)
    elif isinstance(statement, libcst.Assign) and len(statement.targets) == 1:
        found = dotted(statement.targets[0].target)
        if found is None:
            raise Refused("the result is taken apart at once")
        result = found
    else:
        raise Refused("the call is part of a larger expression")
    receiver = document.code(call.func.value) if isinstance(call.func, libcst.Attribute) else ""
    if isinstance(call.func, libcst.Attribute) and dotted(call.func.value) is None:
        raise Refused("what it is called on has no name to call it on again")
    text = (edit.parameter("call") or "").replace("{result}", result).replace("{receiver}", receiver)
    if _follows(document, line, text):
        raise Refused("it stands there already")
    if document.claim(line, "after", text):
        document.changed(line, LineChange, lambda: LineChange(name, list(statements(text)), returned))


def _free(document: Document) -> str:
    """A name that the file has not used."""
    name = _RESULT
    while name in document.names:
        name = f"{name}_"
    return name


def _follows(document: Document, line: libcst.SimpleStatementLine, text: str) -> bool:
    """True where the very statements stand after the line."""
    block = document.parents.get(line)
    body: Sequence[libcst.CSTNode] = getattr(block, "body", ())
    place = next((index for index, each in enumerate(body) if each is line), None)
    wanted = list(statements(text))
    if place is None or not wanted:
        return False
    following = body[place + 1 : place + 1 + len(wanted)]
    return len(following) == len(wanted) and all(
        one.deep_equals(other) for one, other in zip(following, wanted, strict=True)
    )
