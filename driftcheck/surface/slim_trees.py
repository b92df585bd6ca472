"""Syntax trees in a third of the memory: the same nodes, with slots in the place of a dictionary each.

The trees of a large client are most of what an audit holds in memory, and most of a tree are the dictionaries of its
nodes and a number for every line of every node. A slim node is an instance of a subclass that has the same name, fields
and attributes; `isinstance` tells no difference, and copies and pickles are ordinary nodes again. What is looked up by
the very type of a node has to know both, see `for_slim_nodes`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Handler = TypeVar("Handler")
Node = TypeVar("Node", bound=ast.AST)
# Nearly always None, for which the ordinary class has a default.
_MOSTLY_NONE = frozenset(("type_comment", "kind"))
# Fields that never hold a node that could be slimmer.
_PLAIN = frozenset(("id", "attr", "ctx", "op", "level", "conversion", "simple", "is_async", "module", "asname"))
# Line numbers up to this one are shared between nodes.
_SHARED_NUMBERS = 20_000


def slim(tree: Node) -> Node:
    """The tree in slim nodes; where it is nested too deeply for that, as it is, or in part.

    The lists of the tree are taken over, so it must not be used any more.
    """
    convert = _CONVERTERS[tree.__class__]
    try:
        return tree if convert is None else convert(tree)
    except RecursionError:
        # Lists hold slim nodes already, or still what they held.
        return tree


def for_slim_nodes(handlers: Mapping[type[Any], Handler]) -> dict[type[Any], Handler]:
    """A table by types of nodes, with their slim ones beside them."""
    return {**handlers, **{_slim_class(type_): handler for type_, handler in handlers.items()}}


class _Converters(dict[type, Callable[[Any], Any] | None]):
    """What makes values of a type slim, by type, made when the first is met; None for what stays as it is."""

    def __missing__(self, type_: type) -> Callable[[Any], Any] | None:
        is_node = issubclass(type_, ast.AST) and type_._fields and type_ not in _SLIM.values()
        self[type_] = converter = _converter(type_) if is_node else None
        return converter


def _slim_list(values: list[Any]) -> list[Any]:
    for place, value in enumerate(values):
        convert = _CONVERTERS[value.__class__]
        if convert is not None:
            values[place] = convert(value)
    return values


_SLIM: dict[type[ast.AST], type[ast.AST]] = {}
_NUMBERS: list[int] = []
_CONVERTERS = _Converters()
_CONVERTERS[list] = _slim_list


def _slim_class(type_: type[ast.AST]) -> type[ast.AST]:
    """The slim class that stands for an ordinary one."""
    found = _SLIM.get(type_)
    if found is None:
        slots = tuple(name for name in (*type_._fields, *type_._attributes) if name not in _MOSTLY_NONE)
        members = {"__slots__": slots, "__module__": type_.__module__, "__reduce__": _ordinary}
        found = _SLIM[type_] = type(type_.__name__, (type_,), members)
    return found


def _ordinary(node: ast.AST) -> tuple[object, ...]:
    """How a slim node is copied and pickled: as an ordinary one."""
    names = (*node._fields, *node._attributes)
    return type(node).__base__, (), {name: getattr(node, name) for name in names if hasattr(node, name)}


def _converter(type_: type[ast.AST]) -> Callable[[Any], Any]:
    """A function that makes a node of this type slim.

    It is written out field by field, as dataclasses write their constructors: a loop takes twice as long, and this is
    done to millions of nodes.
    """
    if not _NUMBERS:
        _NUMBERS.extend(range(_SHARED_NUMBERS))
    lines = ["def convert(old):", " values = old.__dict__", " new = make(slim)"]
    for name in type_._fields:
        if name in _PLAIN:
            lines.append(f" new.{name} = values[{name!r}]")
        elif name in _MOSTLY_NONE:
            lines += [f" value = values.get({name!r})", f" if value is not None: new.{name} = value"]
        else:
            lines += [f" value = values[{name!r}]", " convert = converters[value.__class__]"]
            lines.append(f" new.{name} = value if convert is None else convert(value)")
    for name in type_._attributes:
        lines.append(f" value = values[{name!r}]")
        lines.append(f" new.{name} = numbers[value] if value is not None and 0 <= value < {_SHARED_NUMBERS} else value")
    names: dict[str, Any] = {
        "make": ast.AST.__new__,
        "slim": _slim_class(type_),
        "converters": _CONVERTERS,
        "numbers": _NUMBERS,
    }
    exec("\n".join([*lines, " return new"]), names)  # noqa: S102 - of nothing but the names of ast's own fields
    convert: Callable[[Any], Any] = names["convert"]
    return convert
