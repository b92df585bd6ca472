"""Signatures and calls, written as Python writes them."""

from __future__ import annotations

import ast
from typing import Any

from driftcheck.model import Arguments, Parameter, ParameterKind, Signature
from driftcheck.usage.arguments import arguments_of


def signature(text: str) -> Signature:
    """The signature whose parameters are written between the parentheses of a `def`."""
    function = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    written = function.args
    positional = [*written.posonlyargs, *written.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(written.defaults)), *written.defaults]
    parameters = [
        _parameter(
            argument,
            ParameterKind.POSITIONAL_ONLY if place < len(written.posonlyargs) else ParameterKind.POSITIONAL_OR_KEYWORD,
            default,
        )
        for place, (argument, default) in enumerate(zip(positional, defaults, strict=True))
    ]
    if written.vararg is not None:
        parameters.append(_parameter(written.vararg, ParameterKind.VAR_POSITIONAL, None))
    for argument, default in zip(written.kwonlyargs, written.kw_defaults, strict=True):
        parameters.append(_parameter(argument, ParameterKind.KEYWORD_ONLY, default))
    if written.kwarg is not None:
        parameters.append(_parameter(written.kwarg, ParameterKind.VAR_KEYWORD, None))
    return Signature(tuple(parameters))


def _parameter(argument: ast.arg, kind: ParameterKind, default: ast.expr | None) -> Parameter:
    return Parameter(
        argument.arg,
        kind,
        default=ast.unparse(default) if default is not None else None,
        annotation=ast.unparse(argument.annotation) if argument.annotation is not None else None,
    )


def call(text: str) -> Arguments:
    """The arguments of a call, written in full: `f(1, a=2)`."""
    expression = ast.parse(text, mode="eval").body
    assert isinstance(expression, ast.Call)
    return arguments_of(expression)


def defined(definition: str, *, is_method: bool = False) -> dict[str, Any]:
    """A namespace in which Python itself has defined `f`, which returns what its parameters received, by name.

    As a method it is `C.m`, bound.
    """
    namespace: dict[str, Any] = {}
    body = "return {name: value for name, value in locals().items() if name != 'self'}"
    source = f"def f({definition}): {body}"
    if is_method:
        source = f"class C:\n    def m(self, {definition}): {body}\nf = C().m"
    exec(source, namespace)  # Python is what we compare with, and the text is the tests' own
    return namespace
