"""Whether a method of the client's takes an argument apart as its base used to, where the base now does it otherwise.

A layout has no signature: which axis of a cache holds keys and values shows only in what the target does with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.syntax import named_parameters, nodes_of, own_nodes

# What makes several tensors of one, and what says on the way there that the axes are in another order.
_SPLITTING = frozenset(("unbind", "split", "chunk", "tensor_split"))
_ORDERING = frozenset(("transpose", "permute", "movedim", "swapaxes", "view", "reshape", "flatten"))


@dataclass(frozen=True, slots=True)
class Changed:
    """A place where an argument is taken apart otherwise than the base does it.

    `now` and `was` are the base's own lines, `was` None where the base did not do it in the client's way before either.
    """

    parameter: str
    way: str
    node: ast.expr
    line: int
    now: str
    was: str | None


def changed_ways(
    own: FunctionDeclaration, base: FunctionDeclaration, before: FunctionDeclaration | None
) -> Iterator[Changed]:
    """The places in a client's method where it does with an argument what its base did at the baseline only.

    And what the base did at neither release, where the client's class hands the same argument to the base's own method.
    """
    if not any(word in own.source for word in _SPLITTING):
        return
    for parameter, ways in _ways(own).items():
        now = _ways(base).get(parameter, {})
        was = _ways(before).get(parameter, {}) if before is not None else {}
        if not now or ways.keys() & now.keys() or _asks_for_shape(own, parameter):
            continue
        first = next((node for way, node in now.items() if _is_split(way)), next(iter(now.values())))
        for way, node in ways.items():
            if _is_split(way) and (way in was or _hands_on(own, parameter)):
                old = _text(before, was[way]) if before is not None and way in was else None
                yield Changed(parameter, way, node, first.lineno, _text(base, first), old)
                break


def _is_split(way: str) -> bool:
    return way.partition("(")[0] in _SPLITTING


def _hands_on(own: FunctionDeclaration, parameter: str) -> bool:
    """True where a method of the same class gives a parameter of that name to the base's own method."""
    for method in own.owner.methods() if own.owner is not None else ():
        for node in own_nodes(method.body):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            asked = node.func.value
            is_base = isinstance(asked, ast.Call) and isinstance(asked.func, ast.Name) and asked.func.id == "super"
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if is_base and node.func.attr == own.name:
                return any(isinstance(value, ast.Name) and value.id == parameter for value in given)
    return False


def _ways(function: FunctionDeclaration) -> dict[str, dict[str, ast.expr]]:
    """The methods called right on each parameter that order or split its axes, with their arguments, as written."""
    arguments = function.node.args
    names = {argument.arg for argument in named_parameters(arguments)}
    found: dict[str, dict[str, ast.expr]] = {}
    for node in own_nodes(function.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            # From here on the name may be something else.
            names.discard(node.id)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        value = node.func.value
        if isinstance(value, ast.Name) and value.id in names and node.func.attr in _SPLITTING | _ORDERING:
            found.setdefault(value.id, {}).setdefault(_way(node, node.func.attr), node)
    return {name: ways for name, ways in found.items() if name in names}


def _way(node: ast.Call, name: str) -> str:
    """A call as written, an axis by position whether it is named or not."""
    given = [ast.unparse(argument) for argument in [*node.args, *(keyword.value for keyword in node.keywords)]]
    return f"{name}({', '.join(given) or ('0' if name == 'unbind' else '')})"


def _asks_for_shape(function: FunctionDeclaration, parameter: str) -> bool:
    """True where the client tells layouts apart itself."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("shape", "size", "ndim", "stride")
        and isinstance(node.value, ast.Name)
        and node.value.id == parameter
        for test in own_nodes(function.body)
        if isinstance(test, ast.If | ast.IfExp | ast.Match)
        for node in nodes_of(test.subject if isinstance(test, ast.Match) else test.test)
    )


def _text(function: FunctionDeclaration, node: ast.expr) -> str:
    return function.module.lines[node.lineno - 1].strip()
