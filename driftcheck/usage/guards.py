"""What stands around usages and takes care of their failure: `try`, `suppress`, and statements that end the program."""

from __future__ import annotations

import ast

from driftcheck.surface.declarations import caught_names
from driftcheck.surface.syntax import all_statements
from driftcheck.usage.usages import Guard

_BROAD = frozenset(("Exception", "BaseException"))
# What is raised where the target is not what it was, and what catches that.
_MISFITS = _BROAD | {"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "ValueError"}
_ENDINGS = frozenset(("exit", "abort", "_exit", "fail", "skip", "xfail"))


def guard_of(node: ast.Try) -> Guard:
    """What the handlers of a `try` catch, and what they then do, those that could catch a misfit if there are any."""
    caught = {name for handler in node.handlers for name in caught_names(handler.type)}
    reraises = falls_back = swallows = False
    for handler in [each for each in node.handlers if _MISFITS & set(caught_names(each.type))] or node.handlers:
        last = handler.body[-1]
        raises = any(isinstance(inner, ast.Raise) for inner in all_statements(handler.body))
        told = {handler.name} if handler.name and _BROAD & set(caught_names(handler.type)) else set()
        tries = any(does_something_else(each) and not _tells_of(each, told) for each in handler.body)
        reraises = reraises or (raises and not tries) or isinstance(last, ast.Raise)
        falls_back = falls_back or (tries and not isinstance(last, ast.Raise))
        swallows = swallows or not (raises or tries)
    return Guard(node.lineno, frozenset(caught), reraises, falls_back, swallows)


def _tells_of(statement: ast.stmt, told: set[str]) -> bool:
    """True for what a handler for whatever may happen makes of the exception: a message, a response.

    `told` are the names of the exception and of what has been made of it so far, and grows.
    """
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr):
        return False
    value = statement.value
    if value is None or not any(isinstance(node, ast.Name) and node.id in told for node in ast.walk(value)):
        return False
    if isinstance(statement, ast.Assign):
        told.update(target.id for target in statement.targets if isinstance(target, ast.Name))
    return True


def is_type_checking(test: ast.expr) -> bool:
    """True for `TYPE_CHECKING`, under whatever module it stands."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def suppressed_exceptions(node: ast.expr) -> set[str]:
    """The exceptions that `contextlib.suppress(...)` or `pytest.raises(...)` takes care of."""
    if not isinstance(node, ast.Call):
        return set()
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ("suppress", "raises", "assertRaises"):
        return set()
    return {name for argument in node.args for name in caught_names(argument)}


def does_something_else(statement: ast.stmt) -> bool:
    """True for what provides in a handler what the `try` could not: an import, a definition, a call's value."""
    if isinstance(
        statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Try
    ):
        return True
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        value = statement.value
        return value is not None and not isinstance(value, ast.Constant)
    if isinstance(statement, ast.If):
        return any(does_something_else(inner) for inner in [*statement.body, *statement.orelse])
    if isinstance(statement, ast.Return):
        return isinstance(statement.value, ast.Call | ast.Name | ast.Attribute | ast.Await)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Await):
        call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
        text = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        return not any(word in text for word in ("log", "warn", "print", "debug", "info", "error", "exception"))
    return False


def ends_the_program(node: ast.expr) -> bool:
    """True for `sys.exit()` and its like, which never return."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _ENDINGS:
        return isinstance(node.func.value, ast.Name) and node.func.value.id in ("sys", "os", "pytest")
    return isinstance(node.func, ast.Name) and node.func.id in ("exit", "quit")
