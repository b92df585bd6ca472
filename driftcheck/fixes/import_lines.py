"""Lines that import: how they are written, and what the names in them are."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst

from driftcheck.fixes.document import LONGEST, dotted, dotted_node, new_line
from driftcheck.fixes.sequences import Row

Line = libcst.SimpleStatementLine


def row_of(statement: libcst.ImportFrom) -> Row[libcst.ImportAlias]:
    """The names of an import, and what stands around them in parentheses."""
    assert not isinstance(statement.names, libcst.ImportStar)
    if statement.lpar is None or statement.rpar is None:
        return Row.of(statement.names)
    return Row.of(statement.names, statement.lpar.whitespace_after, statement.rpar.whitespace_before)


def with_row(statement: libcst.ImportFrom, row: Row[libcst.ImportAlias]) -> libcst.ImportFrom:
    """The import of the names in a row."""
    before, names, behind = row.separated()
    if statement.lpar is None or statement.rpar is None:
        return statement.with_changes(names=names)
    return statement.with_changes(
        names=names,
        lpar=statement.lpar.with_changes(whitespace_after=before),
        rpar=statement.rpar.with_changes(whitespace_before=behind),
    )


def local_name(alias: libcst.ImportAlias) -> str:
    """The name by which a file knows what it imports."""
    if alias.asname is not None and isinstance(alias.asname.name, libcst.Name):
        return alias.asname.name.value
    return (dotted(alias.name) or "").partition(".")[0]


def is_import(statement: libcst.CSTNode) -> bool:
    """True for a line of imports, and for a block with nothing but imports in it (`try`, `if TYPE_CHECKING`)."""
    if isinstance(statement, Line):
        return any(isinstance(each, libcst.Import | libcst.ImportFrom) for each in statement.body)
    if isinstance(statement, libcst.Try):
        return any(is_import(each) for each in statement.body.body)
    if isinstance(statement, libcst.If) and isinstance(statement.body, libcst.IndentedBlock):
        return all(is_import(each) for each in statement.body.body)
    return False


def import_line(module: str, names: Sequence[libcst.ImportAlias]) -> Line:
    """A line that imports names from a module, or several lines where it would be too long."""
    plain = separated(names)
    width = len(f"from {module} import ") + sum(len(_written(name)) + 2 for name in plain) - 2
    if width <= LONGEST:
        return Line([libcst.ImportFrom(dotted_node(module), plain)])
    comma = libcst.Comma(whitespace_after=new_line("    "))
    last = libcst.Comma(whitespace_after=new_line(""))
    spread = [*(name.with_changes(comma=comma) for name in plain[:-1]), plain[-1].with_changes(comma=last)]
    opened = libcst.LeftParen(whitespace_after=new_line("    "))
    return Line([libcst.ImportFrom(dotted_node(module), spread, lpar=opened, rpar=libcst.RightParen())])


def _written(name: libcst.ImportAlias) -> str:
    return libcst.Module([]).code_for_node(name)


def separated(names: Sequence[libcst.ImportAlias]) -> list[libcst.ImportAlias]:
    """Names with plain commas between them."""
    plain: list[libcst.ImportAlias] = [name.with_changes(comma=libcst.MaybeSentinel.DEFAULT) for name in names]
    return plain


_TOOLS = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:|mypy:|pylint:|isort:|fmt:|ruff:|pragma:)", re.IGNORECASE)


def is_for_tools(comment: libcst.Comment) -> bool:
    """True for a comment that tells a tool something of the line that it stands on."""
    return _TOOLS.match(comment.value) is not None
