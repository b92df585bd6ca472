"""Edits of imports: a name taken from where it is now, and imports that other edits need."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import libcst

from driftcheck.fixes.document import Document, New, Refused, Statement, dotted, dotted_node
from driftcheck.fixes.import_lines import (
    import_line,
    is_for_tools,
    is_import,
    local_name,
    row_of,
    separated,
    with_row,
)
from driftcheck.fixes.sequences import Row, own_lines
from driftcheck.model import Edit

Line = libcst.SimpleStatementLine

AnyLine = TypeVar("AnyLine", bound=libcst.SimpleStatementLine | libcst.SimpleStatementSuite)


@dataclass(frozen=True)
class _Move:
    """One imported name that comes from another module, perhaps under another name."""

    alias: libcst.ImportAlias
    index: int
    module: str
    name: str
    is_guarded: bool

    @property
    def local(self) -> str:
        """The name by which the file knows it."""
        return local_name(self.alias)

    def imported(self) -> libcst.ImportAlias:
        """What is imported now, under the name that the file knows."""
        asname = self.alias.asname
        if asname is None and self.local != self.name:
            asname = libcst.AsName(libcst.Name(self.local))
        elif asname is not None and self.local == self.name and dotted(self.alias.name) != self.local:
            asname = None  # `X as X` says that the name is handed on, and stays
        return libcst.ImportAlias(libcst.Name(self.name), asname)


@dataclass(eq=False)
class ImportChange:
    """What becomes of the line that holds an import statement."""

    statement: libcst.ImportFrom | libcst.Import
    moves: list[_Move] = field(default_factory=list)
    modules: dict[int, str] = field(default_factory=dict)
    # How many lines it has become.
    lines: int = 1

    def __call__(self, updated: libcst.CSTNode) -> New:
        assert isinstance(updated, Line | libcst.SimpleStatementSuite)
        place = self._place(updated)
        statement = updated.body[place]
        if isinstance(statement, libcst.Import):
            names = list(statement.names)
            for index, module in self.modules.items():
                names[index] = names[index].with_changes(name=dotted_node(module))
            return _with_statement(updated, place, statement.with_changes(names=names))
        assert isinstance(statement, libcst.ImportFrom) and not isinstance(statement.names, libcst.ImportStar)
        groups: dict[tuple[str, bool], list[_Move]] = {}
        for move in sorted(self.moves, key=lambda each: each.index):
            groups.setdefault((move.module, move.is_guarded), []).append(move)
        if len(self.moves) == len(statement.names) and len(groups) == 1 and not self.moves[0].is_guarded:
            return _with_statement(updated, place, self._in_place(statement))
        assert isinstance(updated, Line)
        row = row_of(statement)
        kept = row
        for move in sorted(self.moves, key=lambda each: -each.index):
            if row.is_said_of(move.index):
                kept = kept.without_lines_above(move.index)
            kept = kept.without(move.index)
        pragma = _pragma(updated, row)
        added = [
            _commented(self._line(module, moves, is_guarded=guarded), row, moves, pragma, is_all=not kept.items)
            for (module, guarded), moves in groups.items()
        ]
        if kept.items:
            old = _with_statement(updated, place, with_row(statement, kept))
            return self._counted(libcst.FlattenSentinel([old, *added]))
        added[0] = added[0].with_changes(leading_lines=[*_at_brackets(row), *added[0].leading_lines])
        if len(updated.body) > 1:
            rest = [each for index, each in enumerate(updated.body) if index != place]
            if place == len(updated.body) - 1:
                rest[-1] = rest[-1].with_changes(semicolon=libcst.MaybeSentinel.DEFAULT)
            first = added[0].with_changes(leading_lines=[*updated.leading_lines, *added[0].leading_lines])
            last = updated.with_changes(body=rest, leading_lines=[])
            ordered = (
                [first, *added[1:], last]
                if place == 0
                else [last.with_changes(leading_lines=updated.leading_lines), *added]
            )
            return self._counted(libcst.FlattenSentinel(ordered))
        first = added[0].with_changes(leading_lines=[*updated.leading_lines, *added[0].leading_lines])
        if isinstance(first, Line) and first.trailing_whitespace.comment is None:
            first = first.with_changes(trailing_whitespace=updated.trailing_whitespace)
        elif isinstance(first, libcst.Try):
            first = _with_comment_inside(first, updated.trailing_whitespace.comment)
        return self._counted(libcst.FlattenSentinel([first, *added[1:]]))

    def _counted(self, made: libcst.FlattenSentinel[libcst.CSTNode]) -> libcst.FlattenSentinel[libcst.CSTNode]:
        self.lines = len(list(made))
        return made

    def _place(self, updated: Line | libcst.SimpleStatementSuite) -> int:
        """Which of the line's statements it is; imports have nothing inside that would have changed."""
        return next(
            index
            for index, each in enumerate(updated.body)
            if each is self.statement or each.deep_equals(self.statement)
        )

    def _in_place(self, statement: libcst.ImportFrom) -> libcst.ImportFrom:
        assert not isinstance(statement.names, libcst.ImportStar)
        names = list(statement.names)
        for move in self.moves:
            made = move.imported()
            old = names[move.index]
            asname = old.asname if old.asname is not None and made.asname is not None else made.asname
            names[move.index] = old.with_changes(name=made.name, asname=asname)
        return statement.with_changes(module=dotted_node(self.moves[0].module), names=names)

    def _line(self, module: str, moves: Sequence[_Move], *, is_guarded: bool) -> Line | libcst.Try:
        new = import_line(module, [move.imported() for move in moves])
        if not is_guarded:
            return new
        assert isinstance(self.statement, libcst.ImportFrom) and self.statement.module is not None
        old = [libcst.ImportAlias(move.alias.name, move.alias.asname) for move in moves]
        return _either(new, Line([libcst.ImportFrom(self.statement.module, separated(old))]))


def _commented(
    line: Line | libcst.Try,
    row: Row[libcst.ImportAlias],
    moves: Sequence[_Move],
    pragma: libcst.Comment | None,
    *,
    is_all: bool,
) -> Line | libcst.Try:
    """The line with the comments that go with what it imports: those behind the names, and those for tools.

    A comment above names may be about several, and then stays where it is as long as anything does.
    """
    above: list[libcst.EmptyLine] = []
    behind: list[libcst.Comment] = []
    for move in moves:
        comment = row.comment_of(move.index)
        if is_all or row.is_said_of(move.index):
            above += [libcst.EmptyLine(comment=each.comment) for each in row.lines_above(move.index)]
        if comment is not None and (is_all or row.is_alone(move.index) or is_for_tools(comment)):
            behind += [comment] if comment.value not in {each.value for each in behind} else []
    if not behind and pragma is not None:
        behind = [pragma]
    if behind and is_for_tools(behind[0]):
        # One that speaks to a tool does so on its own line only; what others say is kept above.
        behind.reverse()
    above += [libcst.EmptyLine(comment=each) for each in behind[:-1]]
    line = line.with_changes(leading_lines=above)
    if behind and isinstance(line, Line):
        return _with_comment(line, behind[-1])
    if behind and isinstance(line, libcst.Try):
        handler = line.handlers[0]
        body = [_with_comment(each, behind[-1]) for each in line.body.body if isinstance(each, Line)]
        old = [_with_comment(each, behind[-1]) for each in handler.body.body if isinstance(each, Line)]
        if not is_for_tools(behind[-1]):
            old = list(handler.body.body)  # type: ignore[arg-type]
        handlers = [handler.with_changes(body=handler.body.with_changes(body=old))]
        return line.with_changes(body=line.body.with_changes(body=body), handlers=handlers)
    return line


def _at_brackets(row: Row[libcst.ImportAlias]) -> list[libcst.EmptyLine]:
    """The comments beside the opening bracket and above the closing one, which are about no name of the row."""
    opening = row.gaps[0]
    beside = opening.first_line.comment if isinstance(opening, libcst.ParenthesizedWhitespace) else None
    lines = [libcst.EmptyLine(comment=beside)] if beside is not None and not is_for_tools(beside) else []
    return [*lines, *(libcst.EmptyLine(comment=each.comment) for each in own_lines(row.gaps[-1]))]


def _with_comment(line: Line, comment: libcst.Comment) -> Line:
    """The line with a comment behind it, or behind each of the names in it where a tool looks for it there."""
    only = line.body[0]
    if isinstance(only, libcst.ImportFrom) and only.lpar is not None and is_for_tools(comment):
        assert not isinstance(only.names, libcst.ImportStar)
        said = libcst.TrailingWhitespace(libcst.SimpleWhitespace("  "), comment)
        names = []
        for name in only.names:
            assert isinstance(name.comma, libcst.Comma)
            below = name.comma.whitespace_after
            assert isinstance(below, libcst.ParenthesizedWhitespace)
            comma = name.comma.with_changes(whitespace_after=below.with_changes(first_line=said))
            names.append(name.with_changes(comma=comma))
        return line.with_changes(body=[only.with_changes(names=names)])
    space = libcst.TrailingWhitespace(libcst.SimpleWhitespace("  "), comment)
    return line.with_changes(trailing_whitespace=space)


def _with_comment_inside(block: libcst.Try, comment: libcst.Comment | None) -> libcst.Try:
    """The block with a comment behind the first import in it, where none stands there yet."""
    new = block.body.body[0]
    if comment is None or not isinstance(new, Line) or new.trailing_whitespace.comment is not None:
        return block
    return block.with_changes(body=block.body.with_changes(body=[_with_comment(new, comment)]))


def _pragma(line: Line, row: Row[libcst.ImportAlias]) -> libcst.Comment | None:
    """What the statement's own line says to tools, which what becomes of it has to say too."""
    opening = row.gaps[0]
    spread = opening.first_line.comment if isinstance(opening, libcst.ParenthesizedWhitespace) else None
    for comment in (spread, line.trailing_whitespace.comment):
        if comment is not None and is_for_tools(comment):
            return comment
    return None


def _with_statement(line: AnyLine, place: int, statement: libcst.BaseSmallStatement) -> AnyLine:
    body = [statement if index == place else each for index, each in enumerate(line.body)]
    return cast(AnyLine, line.with_changes(body=body))


def _either(new: Line, old: Line) -> libcst.Try:
    """`try: new`, and where that fails the old import."""
    handler = libcst.ExceptHandler(libcst.IndentedBlock([old]), libcst.Name("ImportError"))
    return libcst.Try(libcst.IndentedBlock([new]), [handler])


def move_import(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Imports a name from where it is now, under the name that the file has for it.

    Guarded, it is imported from where it was in releases that don't have it there.
    """
    alias = next(document.starting_at(edit.location, libcst.ImportAlias), None)
    statement = document.parents.get(alias) if alias is not None else None
    line = document.parents.get(statement) if statement is not None else None
    is_import = alias is not None and isinstance(statement, libcst.ImportFrom | libcst.Import)
    if not is_import or not isinstance(line, Line | libcst.SimpleStatementSuite):
        raise Refused("no import is written at that place")
    assert alias is not None and isinstance(statement, libcst.ImportFrom | libcst.Import)
    if not isinstance(line, Line) and (
        is_guarded or isinstance(statement.names, libcst.ImportStar) or len(statement.names) > 1
    ):
        raise Refused("it stands on the line of what it depends on, where there is no room for a second import")
    to = edit.parameter("to") or ""
    if isinstance(statement, libcst.Import):
        _move_module(document, alias, statement, line, to, is_guarded=is_guarded)
        return
    if isinstance(statement.names, libcst.ImportStar) or statement.relative:
        raise Refused("the import names no single thing of a module")
    if not document.claim(alias, "import", to):
        return
    module, _, name = to.rpartition(".")
    index = next(place for place, each in enumerate(statement.names) if each is alias)
    change = document.changed(line, ImportChange, lambda: ImportChange(statement))
    if change.statement is not statement:
        raise Refused("two imports stand on one line")
    change.moves.append(_Move(alias, index, module, name, is_guarded))


def _move_module(
    document: Document,
    alias: libcst.ImportAlias,
    statement: libcst.Import,
    line: Line | libcst.SimpleStatementSuite,
    to: str,
    *,
    is_guarded: bool,
) -> None:
    if alias.asname is None:
        raise Refused("the module is used by its whole path, in more places than this")
    if is_guarded:
        raise Refused("a module under another name is imported for one release only")
    if document.claim(alias, "import", to):
        index = next(place for place, each in enumerate(statement.names) if each is alias)
        document.changed(line, ImportChange, lambda: ImportChange(statement)).modules[index] = to


# Imports that other edits need


@dataclass(eq=False)
class ModuleChange:
    """What is put at the head of a file: imports of modules and of names, and helper functions with their places."""

    document: Document
    modules: list[str] = field(default_factory=list)
    names: dict[tuple[str, str], str | None] = field(default_factory=dict)
    helpers: dict[str, tuple[str, int]] = field(default_factory=dict)
    # The first statement of the file that uses what is imported.
    user: int = sys.maxsize

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.Module)
        body = list(updated.body)
        user = self._place_now(self.user)
        # From the end to the beginning, so that places stay what they are.
        for place, sources in sorted(self._helpers_by_place().items(), reverse=True):
            functions = [function for source in sources for function in _spaced(source)]
            body[place] = _with_blank_lines(body[place], 2)
            body[place:place] = functions
        plainly: dict[str, list[libcst.ImportAlias]] = {}
        guarded: list[libcst.Try] = []
        for (module, name), otherwise in sorted(self.names.items()):
            alias = libcst.ImportAlias(libcst.Name(name))
            if otherwise is None:
                plainly.setdefault(module, []).append(alias)
                continue
            old_module, _, old_name = otherwise.rpartition(".")
            asname = libcst.AsName(libcst.Name(name)) if old_name != name else None
            old = import_line(old_module, [libcst.ImportAlias(libcst.Name(old_name), asname)])
            guarded.append(_either(import_line(module, [alias]), old))
        _, last = _import_block(body, user)
        body[last:last] = guarded
        for module, names in plainly.items():
            body = _with_import(body, module, import_line(module, names), user)
            user += 1
        return updated.with_changes(body=_with_modules(body, sorted(self.modules)))

    def _helpers_by_place(self) -> dict[int, list[str]]:
        by_place: dict[int, list[str]] = {}
        for source, place in self.helpers.values():
            by_place.setdefault(self._place_now(place), []).append(source)
        return by_place

    def _place_now(self, place: int) -> int:
        """Where a statement of the file is now that imports before it may have become several."""
        return place + sum(self.document.lines_made(each) - 1 for each in self.document.module.body[:place])


def _with_import(body: list[Statement], module: str, line: Line, user: int) -> list[Statement]:
    """The body with an import of something of a module.

    It goes where the order of the alphabet wants it among those of the same package, else behind all imports.
    """
    first, last = _import_block(body, user)
    package = module.partition(".")[0]
    places = [index for index in range(first, last) if _imported_package(body[index]) == package]
    if not places:
        return [*body[:last], line, *body[last:]]
    before = [index for index in places if (_imported_module(body[index]) or "") <= module]
    if before:
        return [*body[: before[-1] + 1], line, *body[before[-1] + 1 :]]
    return _before(body, places[0], [line])


def _before(body: list[Statement], place: int, lines: Sequence[Statement]) -> list[Statement]:
    """The body with lines before another; comments and blank lines before that one stay before all."""
    above = getattr(body[place], "leading_lines", [])
    first = lines[0].with_changes(leading_lines=above)
    return [*body[:place], first, *lines[1:], body[place].with_changes(leading_lines=[]), *body[place + 1 :]]


def _imported_module(statement: libcst.CSTNode) -> str | None:
    """The module that a line imports from, an empty text for `import module`."""
    for each in statement.body if isinstance(statement, Line) else ():
        if isinstance(each, libcst.ImportFrom) and each.module is not None and not each.relative:
            return dotted(each.module)
    return None


def _imported_package(statement: libcst.CSTNode) -> str | None:
    """The top-level package that a line imports from, None for a relative import and for what is no such line."""
    if not isinstance(statement, Line):
        return None
    for each in statement.body:
        if isinstance(each, libcst.ImportFrom) and each.module is not None and not each.relative:
            return (dotted(each.module) or "").partition(".")[0]
        if isinstance(each, libcst.Import):
            return (dotted(each.names[0].name) or "").partition(".")[0]
    return None


def _with_modules(body: list[Statement], names: Sequence[str]) -> list[Statement]:
    """The body with `import name` for each name: Python's own before all imports, others before the first other."""
    own = [name for name in names if name.partition(".")[0] in sys.stdlib_module_names]
    others = [name for name in names if name not in own]
    if others:
        first, last = _import_block(body)
        known = (index for index in range(first, last) if _imported_package(body[index]) not in _PYTHONS_OWN)
        place = next(known, None)
        if place is not None:
            body = _before(body, place, _module_lines(others))
        else:
            body = _at_border(body, last, _module_lines(others), is_after=first < last)
    if not own:
        return body
    first, last = _import_block(body)
    if first == last:
        return _at_border(body, first, _module_lines(own), is_after=first > 0)
    is_own = _imported_package(body[first]) in sys.stdlib_module_names
    body = _before(body, first, _module_lines(own))
    if not is_own:
        place = first + len(own)
        body[place] = body[place].with_changes(leading_lines=[libcst.EmptyLine(indent=False)])
    return body


_PYTHONS_OWN = sys.stdlib_module_names | {None}


def _module_lines(names: Sequence[str]) -> list[Statement]:
    return [Line([libcst.Import([libcst.ImportAlias(dotted_node(name))])]) for name in names]


def _at_border(body: list[Statement], place: int, lines: list[Statement], *, is_after: bool) -> list[Statement]:
    """The body with lines set apart from what is before them and what comes after."""
    if is_after:
        lines[0] = _with_blank_lines(lines[0], 1)
    rest = body[place:]
    if rest:
        rest[0] = _with_blank_lines(rest[0], 1)
    return [*body[:place], *lines, *rest]


def _with_blank_lines(statement: Statement, count: int) -> Statement:
    lines = list(getattr(statement, "leading_lines", []))
    blank = 0
    while blank < len(lines) and lines[blank].comment is None:
        blank += 1
    missing = [libcst.EmptyLine(indent=False)] * max(0, count - blank)
    return statement.with_changes(leading_lines=[*missing, *lines])


def _spaced(source: str) -> list[Statement]:
    functions = [each for each in libcst.parse_module(source).body if isinstance(each, libcst.FunctionDef)]
    return [_with_blank_lines(each, 2) for each in functions]


def _is_future(statement: libcst.CSTNode) -> bool:
    return isinstance(statement, Line) and any(
        isinstance(each, libcst.ImportFrom) and each.module is not None and dotted(each.module) == "__future__"
        for each in statement.body
    )


def _is_docstring(statement: libcst.CSTNode) -> bool:
    return (
        isinstance(statement, Line)
        and isinstance(statement.body[0], libcst.Expr)
        and isinstance(statement.body[0].value, libcst.SimpleString | libcst.ConcatenatedString)
    )


def _import_block(body: Sequence[Statement], user: int = sys.maxsize) -> tuple[int, int]:
    """Where the file's imports begin and end, as indexes: after the last before any definition, and before a user."""
    first = 0
    while first < len(body) and (_is_future(body[first]) or (first == 0 and _is_docstring(body[first]))):
        first += 1
    last = first
    for index in range(first, min(len(body), max(first, user))):
        if isinstance(body[index], libcst.FunctionDef | libcst.ClassDef):
            break
        if is_import(body[index]):
            last = index + 1
    while first < last and not is_import(body[first]):
        first += 1
    return first, last


def _at_head(document: Document) -> ModuleChange:
    return document.changed(document.module, ModuleChange, lambda: ModuleChange(document))


def import_module(document: Document, name: str) -> None:
    """Sees to it that a module is imported under its own name at the head of the file."""
    for statement in document.module.body:
        for each in statement.body if isinstance(statement, Line) else ():
            if isinstance(each, libcst.Import) and any(
                alias.asname is None and dotted(alias.name) == name for alias in each.names
            ):
                return
    change = _at_head(document)
    if name in change.modules:
        return
    if name in document.names:
        raise Refused(f"the file has something else under the name {name}")
    change.modules.append(name)


def import_name(
    document: Document, module: str, name: str, user: libcst.CSTNode, *, otherwise: str | None = None
) -> str:
    """The name by which a node can use something of a module, imported at the head of the file where it is not yet.

    `otherwise` is where releases that don't have it there have it, as a dotted path.
    """
    place = _top_level(document, user)
    for statement in document.module.body[:place]:
        for each in statement.body if isinstance(statement, Line) else ():
            if not isinstance(each, libcst.ImportFrom) or isinstance(each.names, libcst.ImportStar) or each.relative:
                continue
            if each.module is None or dotted(each.module) != module:
                continue
            for alias in each.names:
                if dotted(alias.name) == name:
                    if _is_hidden(document, local_name(alias), user):
                        raise Refused(f"{local_name(alias)} is something else there")
                    return local_name(alias)
    change = _at_head(document)
    if (module, name) not in change.names:
        if _is_bound(document, name) or any(known == name for _, known in change.names):
            raise Refused(f"the file has something else under the name {name}")
        change.names[module, name] = otherwise
    change.user = min(change.user, place)
    return name


def _is_hidden(document: Document, name: str, node: libcst.CSTNode) -> bool:
    """True where a function or class around a node has a name of its own for something else."""
    for each in document.around(node):
        if isinstance(each, libcst.Lambda | libcst.FunctionDef | libcst.ClassDef):
            pending: list[libcst.CSTNode] = [each]
            while pending:
                inner = pending.pop()
                if isinstance(inner, libcst.Name) and inner.value == name and _is_binding(document, inner):
                    return True
                pending.extend(inner.children)
    return False


def _is_binding(document: Document, name: libcst.Name) -> bool:
    """True where a name is given to something."""
    node: libcst.CSTNode = name
    parent = document.parents.get(node)
    while isinstance(parent, libcst.Element | libcst.StarredElement | libcst.Tuple | libcst.List):
        node, parent = parent, document.parents.get(parent)
    if isinstance(parent, libcst.Param | libcst.FunctionDef | libcst.ClassDef | libcst.ImportAlias):
        return parent.name is node
    if isinstance(parent, libcst.AugAssign | libcst.AnnAssign | libcst.For | libcst.CompFor | libcst.NamedExpr):
        return parent.target is node
    return isinstance(parent, libcst.AssignTarget | libcst.AsName | libcst.NameItem)


def _is_bound(document: Document, name: str) -> bool:
    """True where a name stands for something in the file; as an attribute or a keyword it does not."""
    pending: list[libcst.CSTNode] = [document.module]
    while pending:
        node = pending.pop()
        if isinstance(node, libcst.Name) and node.value == name:
            return True
        if isinstance(node, libcst.Attribute | libcst.Arg):
            pending.append(node.value)
        else:
            pending.extend(node.children)
    return False


def add_helper(document: Document, source: str, user: libcst.CSTNode) -> str:
    """The name of the last function of a rule's helper, which is put before what uses it where the file has it not.

    What the helper imports is imported at the head of the file; the functions before the last are its own helpers.
    """
    tree = libcst.parse_module(source)
    functions = [each for each in tree.body if isinstance(each, libcst.FunctionDef)]
    if not functions:
        raise Refused("the rule carries no helper function")
    name = functions[-1].name.value
    known = {each.name.value: each for each in document.module.body if isinstance(each, libcst.FunctionDef)}
    own = known.get(name)
    if own is not None:
        if document.code(own).strip() != tree.code_for_node(functions[-1]).strip():
            raise Refused(f"the file has a function {name} of its own")
        return name
    change = _at_head(document)
    place = _top_level(document, user)
    if name in change.helpers:
        change.helpers[name] = (source, min(place, change.helpers[name][1]))
    else:
        taken = next((each.name.value for each in functions if each.name.value in document.names), None)
        if taken is not None:
            raise Refused(f"the file has something else under the name {taken}")
        for statement in tree.body:
            _import_for_helper(document, statement, user)
        change.helpers[name] = (source, place)
    return name


def _top_level(document: Document, node: libcst.CSTNode) -> int:
    """The index of the statement of the file that holds a node."""
    outermost = node
    for each in document.around(node):
        if isinstance(each, libcst.Module):
            break
        outermost = each
    return next(index for index, each in enumerate(document.module.body) if each is outermost)


def _import_for_helper(
    document: Document, statement: libcst.CSTNode, user: libcst.CSTNode, otherwise: str | None = None
) -> None:
    if isinstance(statement, libcst.Try):
        # The import of a newer release, and in its handler that of an older one.
        old = statement.handlers[0].body.body[0]
        assert isinstance(old, Line) and isinstance(old.body[0], libcst.ImportFrom) and old.body[0].module is not None
        for inner in statement.body.body:
            _import_for_helper(document, inner, user, dotted(old.body[0].module))
        return
    for each in statement.body if isinstance(statement, Line) else ():
        if isinstance(each, libcst.Import):
            for alias in each.names:
                import_module(document, dotted(alias.name) or "")
        elif isinstance(each, libcst.ImportFrom) and each.module is not None:
            assert not isinstance(each.names, libcst.ImportStar)
            for alias in each.names:
                name = dotted(alias.name) or ""
                old_path = f"{otherwise}.{name}" if otherwise is not None else None
                import_name(document, dotted(each.module) or "", name, user, otherwise=old_path)
