"""What edits leave behind: imports of one module on two lines, names set to themselves, imports that nobody uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence

import libcst

from driftcheck.fixes.document import Statement, dotted
from driftcheck.fixes.import_lines import import_line, is_for_tools, is_import, local_name, row_of, with_row

Line = libcst.SimpleStatementLine
Body = list[Statement]
Block = libcst.Module | libcst.IndentedBlock

_WORD = re.compile(r"[^\W\d]\w*")
# How imported names are sorted where they are: constants, classes, the rest; without capitals; as they are.
_ORDERS: tuple[Callable[[str], object], ...] = (
    lambda name: (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name),
    lambda name: (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name.casefold()),
    str.casefold,
    str,
)


def tidied(
    before: libcst.Module,
    known: Collection[libcst.CSTNode],
    after: libcst.Module,
    is_wanted: Callable[[str], bool],
) -> libcst.Module:
    """The edited module without what the edits have made pointless.

    `known` are the nodes of the module as it was, all others are new. `is_wanted` tells of a name at the head of the
    file whether other files take it from there.
    """
    result = after.visit(_Tidier(known, is_split=_is_split(before)))
    assert isinstance(result, libcst.Module)
    unused = {name for name in _unused(before, result) if not is_wanted(name)}
    if not unused:
        return result
    result = result.visit(_Remover(unused))
    assert isinstance(result, libcst.Module)
    return result


_HOLDERS = (
    libcst.Module,
    libcst.BaseSuite,
    libcst.BaseCompoundStatement,
    libcst.Else,
    libcst.ExceptHandler,
    libcst.Finally,
    libcst.MatchCase,
)
_BLOCKS = (libcst.Module, libcst.IndentedBlock)


class _Tidier(libcst.CSTTransformer):
    """Goes through the blocks that hold something new; what is as it was is not looked through."""

    def __init__(self, known: Collection[libcst.CSTNode], *, is_split: bool) -> None:
        super().__init__()
        self.known = known
        self.is_split = is_split
        self.class_bodies: set[libcst.CSTNode] = set()

    def on_visit(self, node: libcst.CSTNode) -> bool:
        if isinstance(node, libcst.ClassDef):
            self.class_bodies.add(node.body)
        return node not in self.known and isinstance(node, _HOLDERS)

    def on_leave(self, original_node: libcst.CSTNode, updated_node: libcst.CSTNode) -> libcst.CSTNode:  # type: ignore[override]
        if isinstance(updated_node, _BLOCKS) and original_node not in self.known:
            return self._block(updated_node, is_class=original_node in self.class_bodies)
        return updated_node

    def _block(self, block: Block, *, is_class: bool) -> Block:
        old: Sequence[Statement] = block.body  # type: ignore[assignment]
        body: Body = list(old)
        footer = list(block.footer)
        if not is_class:
            # In a class, a name set to itself is one that the class takes from outside.
            body = _without_idle_statements(body, footer, self.known)
        if not self.is_split:
            body = _merged(body, self.known)
        if len(body) == len(old) and all(one is other for one, other in zip(body, old, strict=True)):
            return block
        return block.with_changes(body=body, footer=footer)


# Statements that do nothing


def _without_idle_statements(body: Body, footer: list[libcst.EmptyLine], known: Collection[libcst.CSTNode]) -> Body:
    """The body without new statements `x = x` and `pass`; what is said above them is said above what comes next."""
    kept: Body = []
    above: list[libcst.EmptyLine] = []
    blank: Sequence[libcst.EmptyLine] = ()
    if not any(isinstance(each, Line) and all(_is_nothing(part, known) for part in each.body) for each in body):
        return body
    for statement in body:
        if not isinstance(statement, Line) or not all(_is_nothing(each, known) for each in statement.body):
            following = _with_lines_above(statement, above)
            kept.append(_set_apart(following, blank) if kept else following)
            above, blank = [], ()
            continue
        blank = blank or [line for line in statement.leading_lines if line.comment is None]
        comment = statement.trailing_whitespace.comment
        above += [line for line in statement.leading_lines if line.comment is not None or not kept]
        above += [libcst.EmptyLine(comment=comment)] if comment is not None else []
    if not kept and body:
        kept.append(Line([libcst.Pass()], leading_lines=above))
    else:
        footer[:0] = above
    return kept


def _is_nothing(statement: libcst.CSTNode, known: Collection[libcst.CSTNode]) -> bool:
    if isinstance(statement, libcst.Pass):
        # What an edit has put there for a statement that it took away.
        return statement not in known
    return (
        isinstance(statement, libcst.Assign)
        and statement not in known
        and len(statement.targets) == 1
        and dotted(statement.value) is not None
        and dotted(statement.targets[0].target) == dotted(statement.value)
    )


def _with_lines_above(statement: Statement, lines: Sequence[libcst.EmptyLine]) -> Statement:
    if not lines:
        return statement
    return statement.with_changes(leading_lines=[*lines, *getattr(statement, "leading_lines", ())])


# Imports of one module


def _is_split(module: libcst.Module) -> bool:
    """True where a file imports from one module on two lines already: that is how it is written, then."""
    modules = [
        dotted(each.module) for statement in module.body for each in _plain_import(statement) if each.module is not None
    ]
    return len(modules) > len(set(modules))


def _plain_import(statement: libcst.CSTNode) -> Iterator[libcst.ImportFrom]:
    """The one import of a line, where it takes names of a module, one at least under its own name."""
    if not isinstance(statement, Line) or len(statement.body) != 1:
        return
    only = statement.body[0]
    if (
        isinstance(only, libcst.ImportFrom)
        and only.module is not None
        and not only.relative
        and not isinstance(only.names, libcst.ImportStar)
        and any(name.asname is None for name in only.names)
    ):
        yield only


def _merged(body: Body, known: Collection[libcst.CSTNode]) -> Body:
    """The body with the names of each new import among those of the line that imports from the same module."""
    place = 0
    while place < len(body):
        line = body[place]
        other = _partner(body, place) if line not in known else None
        if other is None or not isinstance(line, Line):
            place += 1
            continue
        target = body[other]
        assert isinstance(target, Line)
        body[other] = _joined(target, line)
        blank = list(line.leading_lines)
        del body[place]
        if place < len(body):
            # What set the line apart from what is above it now sets the next one apart.
            body[place] = _set_apart(body[place], blank)
        place = 0 if place > other else place
    return body


def _partner(body: Body, place: int) -> int | None:
    """Where another line is that imports from the same module, with nothing but imports of other names between."""
    line = body[place]
    own = next(_plain_import(line), None)
    if own is None or not isinstance(line, Line) or _has_comments(line) or isinstance(own.names, libcst.ImportStar):
        return None
    if any(name.asname is not None for name in own.names):
        return None
    names = {local_name(name) for name in own.names}
    for step in (-1, 1):
        index = place + step
        while 0 <= index < len(body) and is_import(body[index]):
            for each in _plain_import(body[index]):
                other = body[index]
                assert isinstance(other, Line) and each.module is not None and own.module is not None
                if dotted(each.module) == dotted(own.module) and not _speaks_to_tools(other):
                    return index
            if names & _bound(body[index]):
                break
            index += step
    return None


def _bound(statement: libcst.CSTNode) -> set[str]:
    """The names that imports bind, anywhere in a statement."""
    found: set[str] = set()
    pending: list[libcst.CSTNode] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, libcst.ImportAlias):
            found.add(local_name(node))
        pending.extend(node.children)
    return found


def _has_comments(line: Line) -> bool:
    pending: list[libcst.CSTNode] = [line]
    while pending:
        node = pending.pop()
        if isinstance(node, libcst.Comment):
            return True
        pending.extend(node.children)
    return False


def _speaks_to_tools(line: Line) -> bool:
    """True where a line says something to a tool that would then be said of more names."""
    comment = line.trailing_whitespace.comment
    return comment is not None and is_for_tools(comment)


def _joined(line: Line, more: Line) -> Line:
    """A line that imports what another one does too."""
    one, other = line.body[0], more.body[0]
    assert isinstance(one, libcst.ImportFrom) and isinstance(other, libcst.ImportFrom)
    assert not isinstance(other.names, libcst.ImportStar) and not isinstance(one.names, libcst.ImportStar)
    row = row_of(one)
    for alias in other.names:
        name = local_name(alias)
        written = [_name(each) for each in row.items]
        if name in written:
            continue
        order = next((each for each in _ORDERS if _is_sorted(written, each)), None)
        place = sum(order(each) <= order(name) for each in written) if order is not None else len(written)  # type: ignore[operator]
        row = row.with_item(place, alias.with_changes(comma=libcst.MaybeSentinel.DEFAULT))
    made = line.with_changes(body=[with_row(one, row)])
    if one.lpar is not None or one.module is None:
        return made
    spread = import_line(dotted(one.module) or "", row.items)
    return made.with_changes(body=spread.body)


def _name(alias: libcst.ImportAlias) -> str:
    return dotted(alias.name) or ""


def _is_sorted(names: Sequence[str], key: Callable[[str], object]) -> bool:
    return list(names) == sorted(names, key=key)  # type: ignore[arg-type]


def _set_apart(statement: Statement, blank: Sequence[libcst.EmptyLine]) -> Statement:
    lines = getattr(statement, "leading_lines", ())
    return statement if lines or not blank else statement.with_changes(leading_lines=blank)


def _without_blank_lines(statement: Statement) -> Statement:
    """The statement without the blank lines above it and its comments."""
    lines = list(getattr(statement, "leading_lines", ()))
    while lines and lines[0].comment is None:
        del lines[0]
    return statement.with_changes(leading_lines=lines)


# Imports that nobody uses any more


def _unused(before: libcst.Module, after: libcst.Module) -> set[str]:
    """The names that were used before, and are mentioned nowhere now."""
    try:
        was, now = ast.parse(before.bytes), ast.parse(after.bytes)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    gone = _read(was) - _read(now)
    return gone - _in_strings(now) if gone else set()


def _read(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _in_strings(tree: ast.Module) -> set[str]:
    """The words in strings, which may be annotations or `__all__`; what is only said to people is left out."""
    said = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
        for word in _WORD.findall(node.value)
    }


class _Remover(libcst.CSTTransformer):
    """Takes names out of imports; those in `try`, which may be there to see whether they work, stay."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self.names = names

    def on_visit(self, node: libcst.CSTNode) -> bool:
        return not isinstance(node, libcst.Try | libcst.TryStar | libcst.BaseSmallStatement | libcst.BaseExpression)

    def on_leave(self, original_node: libcst.CSTNode, updated_node: libcst.CSTNode) -> libcst.CSTNode:  # type: ignore[override]
        del original_node
        return self._block(updated_node) if isinstance(updated_node, _BLOCKS) else updated_node

    def _block(self, block: Block) -> Block:
        old: Sequence[Statement] = block.body  # type: ignore[assignment]
        body: Body = []
        blank: Sequence[libcst.EmptyLine] = ()
        is_first_gone = False
        for statement in old:
            left = self._left(statement)
            if left is None:
                blank = blank or statement.leading_lines
                is_first_gone = is_first_gone or not body
                continue
            if is_first_gone and not body and not (isinstance(block, libcst.Module) and block.header):
                left = _without_blank_lines(left)
            body.append(_set_apart(left, blank) if body else left)
            blank = ()
        if not body:
            return block
        if len(body) == len(old) and all(one is other for one, other in zip(body, old, strict=True)):
            return block
        return block.with_changes(body=body)

    def _left(self, statement: Statement) -> Statement | None:
        """What is left of a statement, None where nothing is."""
        if not isinstance(statement, Line) or len(statement.body) != 1 or _has_comments(statement):
            return statement
        only = statement.body[0]
        if not isinstance(only, libcst.ImportFrom | libcst.Import) or isinstance(only.names, libcst.ImportStar):
            return statement
        if isinstance(only, libcst.ImportFrom) and only.module is not None and dotted(only.module) == "__future__":
            return statement
        gone = [index for index, alias in enumerate(only.names) if self._is_gone(alias)]
        if len(gone) == len(only.names):
            return None
        if not gone:
            return statement
        if isinstance(only, libcst.Import):
            names = [alias for index, alias in enumerate(only.names) if index not in gone]
            names[-1] = names[-1].with_changes(comma=libcst.MaybeSentinel.DEFAULT)
            return statement.with_changes(body=[only.with_changes(names=names)])
        row = row_of(only)
        for index in reversed(gone):
            row = row.without(index)
        return statement.with_changes(body=[with_row(only, row)])

    def _is_gone(self, alias: libcst.ImportAlias) -> bool:
        is_handed_on = alias.asname is not None and local_name(alias) == dotted(alias.name)
        return local_name(alias) in self.names and not is_handed_on
