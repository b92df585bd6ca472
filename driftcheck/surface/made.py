"""Classes that a call makes (named tuples, typed dictionaries, enumerations), as if they had been written."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import Binding, ClassDeclaration

if TYPE_CHECKING:
    from driftcheck.surface.scopes import Scope

_NAMED_TUPLES = frozenset(("typing.NamedTuple", "typing_extensions.NamedTuple"))
_TYPED_DICTIONARIES = frozenset(("typing.TypedDict", "typing_extensions.TypedDict"))
_ENUMERATIONS = frozenset(("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"))
_ANY = ast.Name("Any")
MAKERS = frozenset(("collections.namedtuple", *_NAMED_TUPLES, *_TYPED_DICTIONARIES, *_ENUMERATIONS))

Member = tuple[str, "ast.expr | None", "ast.expr | None"]


def made_class(path: str, call: ast.Call, scope: Scope) -> ClassDeclaration | None:
    """The class that a call of one of MAKERS makes; None where it can't be read."""
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None
    members = _members(path, call)
    if members is None:
        return None
    keywords = [keyword for keyword in call.keywords if keyword.arg == "total"]
    node = ast.ClassDef(first.value, [call.func], keywords, [], [])
    ast.copy_location(node, call)
    class_ = ClassDeclaration(scope.module, node, first.value, outer=scope.function)
    for name, annotation, value in members:
        binding = Binding(name, call.lineno, call, value=value, annotation=annotation)
        class_.members.setdefault(name, []).append(binding)
    return class_


def _members(path: str, call: ast.Call) -> list[Member] | None:
    second = call.args[1] if len(call.args) > 1 else None
    if path == "collections.namedtuple":
        return _plain_fields(call, second)
    if path in _NAMED_TUPLES:
        pairs = second.elts if isinstance(second, ast.List | ast.Tuple) else None
        if pairs is None or not all(isinstance(pair, ast.Tuple) and len(pair.elts) == 2 for pair in pairs):
            return None
        return _annotated([pair.elts[0] for pair in pairs], [pair.elts[1] for pair in pairs])  # type: ignore[attr-defined]
    if path in _TYPED_DICTIONARIES:
        if not isinstance(second, ast.Dict) or None in second.keys:
            return None
        return _annotated([key for key in second.keys if key is not None], second.values)
    if path in _ENUMERATIONS:
        names = _names(second)
        return None if names is None else [(name, None, ast.Constant(number)) for number, name in enumerate(names, 1)]
    return None


def _plain_fields(call: ast.Call, second: ast.expr | None) -> list[Member] | None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    names = _names(keywords.get("field_names", second))
    defaults = keywords.get("defaults")
    if names is None or None in keywords or "rename" in keywords:
        return None
    given: list[ast.expr] = []
    if isinstance(defaults, ast.Tuple | ast.List):
        given = defaults.elts
    elif defaults is not None and not (isinstance(defaults, ast.Constant) and defaults.value is None):
        return None
    if len(given) > len(names) or any(isinstance(value, ast.Starred) for value in given):
        return None
    values: list[ast.expr | None] = [*[None] * (len(names) - len(given)), *given]
    return [(name, _ANY, value) for name, value in zip(names, values, strict=True)]


def _annotated(names: list[ast.expr], annotations: list[ast.expr]) -> list[Member] | None:
    texts = _texts(names)
    return None if texts is None else [(name, a, None) for name, a in zip(texts, annotations, strict=True)]


def _names(node: ast.expr | None) -> list[str] | None:
    """Names given as one string or as a list of strings."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace(",", " ").split()
    return _texts(node.elts) if isinstance(node, ast.List | ast.Tuple) else None


def _texts(nodes: list[ast.expr]) -> list[str] | None:
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return texts if len(texts) == len(nodes) else None
