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
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.syntax import called_name, children, last_name, named_parameters, nodes_of
from driftcheck.symbol_upgrade import BodyChange, SourcePlace

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_LOGGERS = frozenset(("log", "logger", "logging"))
# Of a statement longer than this so much is shown around its differences, and of how it begins.
_LONGEST, _IN_FRONT, _BEHIND, _HEAD = 100, 25, 15, 30
# More tokens than these are not held against each other one by one.
_MOST_TOKENS = 500
_TOKEN = re.compile(r"\w+|[^\w\s]")
_CLOSING = (")", "]", "}")
_ENDS = ("deprecat", "will be removed", "be removed in")


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement without its blocks, as text that is the same for whatever means the same; "" ends a block.

    The lines are those of the source, from `line` to `last`.
    """

    text: str
    line: int
    last: int


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
    first: tuple[_Difference, _Difference] | None = None
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(
        None, old_texts, new_texts, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        went = [each for each in old[start:end] if each.text]
        came = [each for each in new[new_start:new_end] if each.text]
        if first is None or not (gone or come):
            first = _Difference(before, old, start, went), _Difference(after, new, new_start, came)
        gone += went
        come += came
    assert first is not None
    source_before, source_after = _apart(first[0].source, first[1].source)
    return BodyChange(
        name=after.name,
        statements_before=sum(bool(text) for text in old_texts),
        statements_after=sum(bool(text) for text in new_texts),
        gone=len(gone),
        come=len(come),
        place_before=SourcePlace(before.module.path, first[0].line),
        place_after=SourcePlace(after.module.path, first[1].line),
        source_before=source_before,
        source_after=source_after,
    )


@dataclass(frozen=True, slots=True)
class _Difference:
    """One side of the first place where two bodies differ: what stands there and nowhere in the other."""

    function: FunctionDeclaration
    statements: Sequence[_Statement]
    place: int
    changed: Sequence[_Statement]

    @property
    def line(self) -> int:
        """The line of the first changed statement, else the one at which the other has more."""
        if self.changed:
            return self.changed[0].line
        if not self.statements:
            return self.function.line
        return self.statements[min(self.place, len(self.statements) - 1)].line

    @property
    def source(self) -> str:
        """The first changed statement as written, on one line."""
        if not self.changed:
            return ""
        statement = self.changed[0]
        return " ".join(line.strip() for line in self.function.module.lines[statement.line - 1 : statement.last])


def _apart(before: str, after: str) -> tuple[str, str]:
    """Two statements cut to what a reader has to see: how they begin, and what stands around their differences.

    White space, the sort of quotes and commas in front of brackets that close are no differences.
    """
    if max(len(before), len(after)) <= _LONGEST:
        return before, after
    old, new = _tokens(before), _tokens(after)
    differences = _differences([token for token, _ in old], [token for token, _ in new])
    return (
        _around(before, [_span(before, old, start, end) for start, end, _, _ in differences]),
        _around(after, [_span(after, new, start, end) for _, _, start, end in differences]),
    )


def _tokens(text: str) -> list[tuple[str, int]]:
    """The words and signs of a text that count, each with its place."""
    found = [(match[0].replace("'", '"'), match.start()) for match in _TOKEN.finditer(text)]
    following = [*(token for token, _ in found[1:]), ""]
    return [each for each, next_ in zip(found, following, strict=False) if each[0] != "," or next_ not in _CLOSING]


def _differences(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """The parts of two sequences that are different, from and to in each; of very long ones all between their ends."""
    pairs = list(zip(old, new, strict=False))
    start = next((place for place, (one, other) in enumerate(pairs) if one != other), len(pairs))
    most = min(len(old), len(new)) - start
    end = next((place for place in range(most) if old[-1 - place] != new[-1 - place]), most)
    left, left_new = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(left), len(left_new)) > _MOST_TOKENS:
        return [(start, len(old) - end, start, len(new) - end)]
    matcher = difflib.SequenceMatcher(None, left, left_new, autojunk=False)
    return [
        (start + first, start + last, start + first_new, start + last_new)
        for tag, first, last, first_new, last_new in matcher.get_opcodes()
        if tag != "equal"
    ]


def _span(text: str, tokens: Sequence[tuple[str, int]], start: int, end: int) -> tuple[int, int]:
    """Where the tokens from one to another stand; for none the place between those around them."""
    first = tokens[start][1] if start < len(tokens) else len(text)
    if end <= start:
        return first, first
    last, place = tokens[end - 1]
    return first, place + len(last)


def _around(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The parts of a text that stand around these places, with the text's beginning, and dots for what is left out."""
    parts = [(0, _HEAD)]
    for start, end in spans:
        start, end = max(start - _IN_FRONT, 0), min(end, start + _LONGEST) + _BEHIND
        if start <= parts[-1][1] + _BEHIND:
            parts[-1] = parts[-1][0], max(end, parts[-1][1])
        elif sum(last - first for first, last in parts) < _LONGEST:
            parts.append((start, end))
    whole = [_whole_words(text, start, end) for start, end in parts]
    dots = " …" if whole[-1][1] < len(text) else ""
    return " … ".join(text[start:end].strip() for start, end in whole) + dots


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """A part of a text without the pieces of words at its ends, as long as the words are not too long."""
    space = text.find(" ", start) if start else 0
    if 0 < space <= start + _BEHIND:
        start = space + 1
    space = text.find(" ", end - 1) if end < len(text) else len(text)
    return start, space if end <= space <= end + _BEHIND else end


@dataclass(frozen=True, slots=True)
class SaidEnd:
    """What a function says of something that is to go: of a parameter that is given, or that `is_left_out`.

    Without a parameter it is the function itself where it `is_always` said, else something that only its text tells.
    """

    text: str
    parameter: str = ""
    is_left_out: bool = False
    is_always: bool = False


def announced_ends(function: FunctionDeclaration) -> list[SaidEnd]:
    """What the function says, while it runs, of things that are to go."""
    arguments = function.node.args
    names = frozenset(each.arg for each in named_parameters(arguments))
    return list(dict.fromkeys(_said_ends(function.body, names, SaidEnd("", is_always=True))))


def _said_ends(statements: Iterable[ast.AST], names: frozenset[str], where: SaidEnd) -> Iterator[SaidEnd]:
    """What is said in a block; `where` has when the block runs."""
    for statement in statements:
        if isinstance(statement, ast.If):
            name, is_given = _asked_for(statement.test, names)
            for branch, is_left_out in ((statement.body, not is_given), (statement.orelse, is_given)):
                when = SaidEnd("", name, is_left_out=is_left_out) if name else replace(where, is_always=False)
                yield from _said_ends(branch, names, when)
            continue
        blocks = [block for field in _BLOCKS if isinstance(block := getattr(statement, field, None), list)]
        inside = replace(where, is_always=where.is_always and isinstance(statement, ast.With | ast.AsyncWith))
        for block in blocks:
            yield from _said_ends(block, names, inside)
        if not blocks:
            yield from (replace(where, text=text) for node in nodes_of(statement) if (text := _ending_text(node)))


def _asked_for(test: ast.expr, names: Collection[str]) -> tuple[str, bool]:
    """The parameter of which a test asks whether it is given, and whether it then holds; "" for any other test.

    What the function has put on its object under the parameter's name counts as the parameter.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        name, is_given = _asked_for(test.operand, names)
        return name, not is_given
    if isinstance(test, ast.Compare):
        operator, other = test.ops[0], test.comparators[-1]
        is_of_none = isinstance(other, ast.Constant) and other.value is None
        if len(test.ops) != 1 or not isinstance(operator, ast.Is | ast.IsNot) or not is_of_none:
            return "", True
        return _asked_for(test.left, names)[0], isinstance(operator, ast.IsNot)
    is_own = isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == "self"
    name = last_name(test).lstrip("_" if is_own else "") if is_own or isinstance(test, ast.Name) else ""
    return (name, True) if name in names else ("", True)


def _ending_text(node: ast.AST) -> str:
    """What a call tells somebody of an end; "" for all else."""
    if not isinstance(node, ast.Call) or not _is_said(node) or not node.args:
        return ""
    text = _text(node.args[0])
    is_category = any(called_name(argument).endswith("DeprecationWarning") for argument in _given(node))
    return text if is_category or any(word in text.lower() for word in _ENDS) else ""


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


# Statements


def _statements(function: FunctionDeclaration) -> Iterator[_Statement]:
    for decorator in function.node.decorator_list:
        yield _Statement(f"@{ast.dump(decorator)}", decorator.lineno, decorator.end_lineno or decorator.lineno)
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
            last = found[-1].last if found else _lines(block[-1])[1]
            inside += [*found, _Statement("", last, last)]
        if isinstance(statement, ast.If) and not holds:
            continue
        yield _Statement(_meaning(statement), *_lines(statement))
        yield from inside


def _lines(statement: ast.AST) -> tuple[int, int]:
    """The first and the last line of a statement, its blocks left out."""
    blocks = [block for name in _BLOCKS if isinstance(block := getattr(statement, name, None), list) and block]
    inside = {id(each) for block in blocks for each in block}
    own = [_lines(each) for each in children(statement) if id(each) not in inside]
    # A case of a `match` has no lines of its own.
    first = getattr(statement, "lineno", None) or min((line for line, _ in own), default=1)
    last = first if blocks else getattr(statement, "end_lineno", None) or first
    return first, max([last, *(line for _, line in own)])


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
