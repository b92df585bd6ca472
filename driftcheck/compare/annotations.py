"""What annotations say without being evaluated: which types they name, and whether None is among them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

_LONGEST = 2000
_OPEN = frozenset({"Any", "object"})
_TRANSPARENT = frozenset({"Optional", "Union", "Annotated"})
_NUMBERS = frozenset({"bool", "int", "float", "complex"})
_BUILTINS = frozenset(
    {"bool", "int", "float", "complex", "str", "bytes", "list", "dict", "set", "frozenset", "tuple", "type"}
)
_GENERICS = frozenset(
    {"List", "Dict", "Set", "FrozenSet", "Tuple", "Type", "Sequence", "Mapping", "Iterable", "Callable"}
)
_CLOSED = _BUILTINS | _GENERICS


def types_differ(one: str | None, other: str | None) -> bool:
    """True where both annotations can be read and no type is named in both; numbers count as one type."""
    names, other_names = _type_names(one), _type_names(other)
    if not names or not other_names:
        return False
    if any(name in _OPEN or len(name) == 1 for name in names | other_names):
        # Any takes everything, and so may a type variable.
        return False
    return not names & other_names and not (names & _NUMBERS and other_names & _NUMBERS)


def admits_none(annotation: str | None) -> bool | None:
    """True where None is among the types of an annotation, False where it can't be, None where that is not known.

    A name that is no builtin may be an alias of a union, so it leaves the question open.
    """
    expression = _parsed(annotation)
    try:
        return None if expression is None else _admits_none(expression)
    except RecursionError:
        return None


def _admits_none(node: ast.expr) -> bool | None:
    if isinstance(node, ast.Constant):
        if node.value is None:
            return True
        return admits_none(node.value) if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _any_admits_none([node.left, node.right])
    if isinstance(node, ast.Subscript):
        name = _last_name(node.value)
        members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            return True
        if name == "Union":
            return _any_admits_none(members)
        if name == "Annotated" and members:
            return _admits_none(members[0])
        if name == "Literal":
            return any(isinstance(member, ast.Constant) and member.value is None for member in members)
        return False if name in _CLOSED else None
    name = _last_name(node)
    if name in _OPEN:
        return True
    return False if name in _CLOSED else None


def _any_admits_none(nodes: list[ast.expr]) -> bool | None:
    answers = [_admits_none(node) for node in nodes]
    if True in answers:
        return True
    return None if None in answers else False


def _type_names(annotation: str | None) -> set[str]:
    expression = _parsed(annotation)
    return set() if expression is None else set(_names_in(expression)) - _TRANSPARENT


def _names_in(root: ast.expr) -> Iterator[str]:
    """The last parts of the dotted names in an annotation, and the types of the values of a Literal."""
    pending: list[ast.AST] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and (quoted := _parsed(node.value)) is not None:
                pending.append(quoted)
        elif isinstance(node, ast.Subscript) and _last_name(node.value) == "Literal":
            members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            yield from (type(member.value).__name__ for member in members if isinstance(member, ast.Constant))
        else:
            pending.extend(ast.iter_child_nodes(node))


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _parsed(annotation: str | None) -> ast.expr | None:
    if annotation is None or len(annotation) > _LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            # What Python would warn of (an escape in a string) is its author's business.
            warnings.simplefilter("ignore")
            return ast.parse(annotation.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
