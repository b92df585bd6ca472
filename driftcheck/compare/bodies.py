"""What a function does, apart from how it is written: the statements of two bodies are held against each other.

These don't count: comments, layout, docstrings and other bare strings, `pass`, annotations, `typing.cast`, branches
for type checkers, imports inside the function, calls of loggers and `warnings.warn` together with an `if` that holds
nothing else, the text of assertions and the texts given to an exception that is raised. All else counts: decorators,
the names of variables, the order of statements, how they are nested, and assertions themselves.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.syntax import called_name, last_name, nodes_of
from driftcheck.symbol_upgrade import BodyChange

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_LOGGERS = frozenset(("log", "logger", "logging"))
_ENDS = ("deprecat", "will be removed", "be removed in")


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement without its blocks, as text that is the same for whatever means the same; "" ends a block."""

    text: str
    line: int


def body_change(before: FunctionDeclaration, after: FunctionDeclaration) -> BodyChange | None:
    """What is different in what two functions do; None where nothing is, or a body can't be read."""
    if _decorated(before) == _decorated(after) and before.source == after.source:
        return None
    old, new = list(_statements(before)), list(_statements(after))
    if not before.body or not after.body:
        return None
    old_texts, new_texts = [each.text for each in old], [each.text for each in new]
    if old_texts == new_texts:
        return None
    gone: list[_Statement] = []
    come: list[_Statement] = []
    first: tuple[int, int] | None = None
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(
        None, old_texts, new_texts, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        first = first if first is not None else (start, new_start)
        gone += [each for each in old[start:end] if each.text]
        come += [each for each in new[new_start:new_end] if each.text]
    assert first is not None
    return BodyChange(
        statements_before=sum(bool(text) for text in old_texts),
        statements_after=sum(bool(text) for text in new_texts),
        gone=len(gone),
        come=len(come),
        line_before=_line(gone, old, first[0], before),
        line_after=_line(come, new, first[1], after),
        source_before=_source(before, gone),
        source_after=_source(after, come),
    )


def announced_ends(function: FunctionDeclaration) -> list[str]:
    """What the function says, while it runs, of something that is to go."""
    found: dict[str, None] = {}
    for node in nodes_of(ast.Module(function.body, [])):
        if not isinstance(node, ast.Call) or not _is_said(node):
            continue
        text = _text(node.args[0]) if node.args else ""
        is_category = any(called_name(argument).endswith("DeprecationWarning") for argument in _given(node))
        if text and (is_category or any(word in text.lower() for word in _ENDS)):
            found[text] = None
    return list(found)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _text(node: ast.expr) -> str:
    """A text as written, with an ellipsis for what is put into it while the program runs."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + (_text(node.right) if isinstance(node.op, ast.Add) else "")
    return ""


def _decorated(function: FunctionDeclaration) -> list[str]:
    return [ast.dump(decorator) for decorator in function.node.decorator_list]


def _line(changed: Sequence[_Statement], all_: Sequence[_Statement], place: int, function: FunctionDeclaration) -> int:
    """The line of the first changed statement, else the one where something was put in or taken out."""
    if changed:
        return changed[0].line
    return all_[min(place, len(all_) - 1)].line if all_ else function.line


def _source(function: FunctionDeclaration, changed: Sequence[_Statement]) -> str:
    lines = function.module.lines
    return lines[changed[0].line - 1].strip() if changed and changed[0].line <= len(lines) else ""


# Statements


def _statements(function: FunctionDeclaration) -> Iterator[_Statement]:
    for decorator in function.node.decorator_list:
        yield _Statement(f"@{ast.dump(decorator)}", decorator.lineno)
    yield from _block(function.body)


def _block(statements: Sequence[ast.AST]) -> Iterator[_Statement]:
    for statement in statements:
        if not _counts(statement):
            continue
        inside: list[_Statement] = []
        holds = False
        for name in _BLOCKS:
            block = getattr(statement, name, None)
            if not isinstance(block, list) or not block:
                continue
            found = list(_block(block))
            holds = holds or bool(found)
            line = found[-1].line if found else getattr(statement, "lineno", 0)
            inside += [*found, _Statement("", line)]
        if isinstance(statement, ast.If) and not holds:
            continue
        yield _Statement(_meaning(statement), getattr(statement, "lineno", 0) or _first_line(statement))
        yield from inside


def _first_line(node: ast.AST) -> int:
    """The line of what has none of its own, which is a case of a `match`."""
    return min((child.lineno for child in ast.walk(node) if isinstance(child, ast.expr | ast.pattern)), default=0)


def _counts(statement: ast.AST) -> bool:
    if isinstance(statement, ast.Pass | ast.Import | ast.ImportFrom):
        return False
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None
    if isinstance(statement, ast.If):
        return last_name(statement.test) != "TYPE_CHECKING"
    if isinstance(statement, ast.Expr):
        value = statement.value
        return not isinstance(value, ast.Constant) and not (isinstance(value, ast.Call) and _is_said(value))
    return True


def _is_said(call: ast.Call) -> bool:
    """True for a call that only tells somebody something: of a logger, or `warnings.warn`."""
    if not isinstance(call.func, ast.Attribute):
        return False
    of = last_name(call.func.value).strip("_").lower()
    return of in _LOGGERS or (of == "warnings" and call.func.attr == "warn")


def _meaning(statement: ast.AST) -> str:
    head = copy.copy(statement)
    for name in _BLOCKS:
        if isinstance(getattr(head, name, None), list):
            setattr(head, name, [])
    return ast.dump(_Plain().visit(copy.deepcopy(head)))


class _Plain(ast.NodeTransformer):
    """Takes out of a statement what changes nothing while it runs."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return self.generic_visit(ast.Assert(node.test))

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        raised = node.exc
        if isinstance(raised, ast.Call):
            raised.args = [argument for argument in raised.args if not _text(argument)]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if last_name(node.func) == "cast" and len(node.args) == 2 and not node.keywords:
            found: ast.AST = self.visit(node.args[1])
            return found
        return self.generic_visit(node)
