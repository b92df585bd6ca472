"""Calls that a client leaves to threads, processes and executors, which are given a function and its arguments."""

from __future__ import annotations

import ast

from driftcheck.surface.types import External, Type, Unknown

_STARTERS = frozenset(("Process", "Thread", "Timer"))
_SUBMITTING = ("concurrent.futures.ThreadPoolExecutor", "concurrent.futures.ProcessPoolExecutor")


def deferred_call(node: ast.Call, callee: Type) -> ast.Call | None:
    """The call that will be made in the end, with the arguments it will get; None where a call starts none."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if not isinstance(callee, External | Unknown):
        return None
    path = callee.path if isinstance(callee, External) else ""
    if name in _STARTERS:
        return _started(node, name)
    if path == "asyncio.to_thread" and node.args:
        return _call(node.args[0], node.args[1:], node.keywords)
    if name == "submit" and path.startswith(_SUBMITTING) and node.args:
        return _call(node.args[0], node.args[1:], node.keywords)
    if name == "run_in_executor" and len(node.args) > 1:
        return _call(node.args[1], node.args[2:], [])
    return None


def _started(node: ast.Call, name: str) -> ast.Call | None:
    """`Process(target=f, args=(1,), kwargs={…})`; a Timer takes its function and the arguments by place as well."""
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    if len(given) < len(node.keywords):
        return None
    if name == "Timer":
        given.update(zip(("interval", "function", "args", "kwargs"), node.args, strict=False))
        target = given.get("function")
    else:
        target = given.get("target")
    if target is None or isinstance(target, ast.Constant):
        return None
    positional: list[ast.expr] = []
    values = given.get("args")
    if isinstance(values, ast.Tuple | ast.List):
        positional = list(values.elts)
    elif values is not None:
        positional = [ast.copy_location(ast.Starred(values, ast.Load()), values)]
    named = given.get("kwargs")
    keywords = [ast.copy_location(ast.keyword(None, named), named)] if named is not None else []
    return _call(target, positional, keywords)


def _call(function: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]) -> ast.Call:
    return ast.copy_location(ast.Call(function, args, keywords), function)
