"""Signatures as sources write them, and which signature a call of a thing meets."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.surface.accepted import ANYTHING, takes_anything
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.types import (
    Absent,
    Class,
    External,
    Function,
    Instance,
    Lambda,
    Partial,
    Type,
    TypeVariable,
    Union,
    Unknown,
)

if TYPE_CHECKING:
    from driftcheck.surface.program import Program


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call meets: its signature without the receiver, its canonical path, and where its source stands.

    `name` is what Python's own messages call it. `declaration` is the function or class behind it, `called` the class
    whose constructor it is. `is_declared` is True where the receiver's type is only a declared one, so that a subclass
    may accept more. `runtime_signature` is what `inspect.signature` said, where it was asked; `stated` what it is
    expected to say, where that is not what the call meets. `raises` is the exception of a call that does not bind, ""
    where none is raised; `drops_keywords` says that an unknown keyword is taken and forgotten.
    """

    signature: Signature
    symbol: str
    name: str
    path: str
    line: int
    declaration: FunctionDeclaration | ClassDeclaration | ModuleDeclaration
    is_declared: bool = False
    called: ClassDeclaration | None = None
    runtime_signature: Signature | None = None
    stated: Signature | None = None
    raises: str = "TypeError"
    drops_keywords: bool = False


def shape(signature: Signature) -> tuple[tuple[str, str, bool], ...]:
    """What of a signature decides whether a call fits: names, kinds, order, and which ones have a default."""
    return tuple(
        (parameter.name, parameter.kind.value, parameter.default is not None) for parameter in signature.parameters
    )


def declared_signature(function: FunctionDeclaration, *, skips_first: bool = False) -> Signature:
    """The signature that a `def` writes, without its first parameter where that is the receiver."""
    parameters = parameters_of(function.node.args)
    if function.owner is not None:
        parameters = tuple(_mangled(parameter, function.owner.name) for parameter in parameters)
    if (
        skips_first
        and parameters
        and parameters[0].kind
        in (
            ParameterKind.POSITIONAL_ONLY,
            ParameterKind.POSITIONAL_OR_KEYWORD,
        )
    ):
        parameters = parameters[1:]
    returns = function.node.returns
    return Signature(parameters, ast.unparse(returns) if returns is not None else None)


def launch_signature(signature: Signature, *, is_tuned: bool) -> Signature:
    """What the launch of a kernel accepts: its parameters, any of which a tuner may give, and launch options."""
    options = Parameter("options", ParameterKind.VAR_KEYWORD)
    parameters = (
        replace(parameter, default="...") if is_tuned and parameter.is_required else parameter
        for parameter in signature.parameters
    )
    return Signature((*parameters, options), signature.returns)


def _mangled(parameter: Parameter, class_name: str) -> Parameter:
    """The parameter under the name that Python gives to `__private` names in class bodies."""
    if not parameter.name.startswith("__") or parameter.name.endswith("__") or not class_name.strip("_"):
        return parameter
    return replace(parameter, name=f"_{class_name.lstrip('_')}{parameter.name}")


def parameters_of(arguments: ast.arguments) -> tuple[Parameter, ...]:
    """The parameters of an argument list, in order."""
    found: list[Parameter] = []
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    for index, node in enumerate(positional):
        kind = (
            ParameterKind.POSITIONAL_ONLY if index < len(arguments.posonlyargs) else ParameterKind.POSITIONAL_OR_KEYWORD
        )
        found.append(_parameter(node, kind, arguments.defaults[index - missing] if index >= missing else None))
    if arguments.vararg is not None:
        found.append(_parameter(arguments.vararg, ParameterKind.VAR_POSITIONAL, None))
    for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(_parameter(node, ParameterKind.KEYWORD_ONLY, default))
    if arguments.kwarg is not None:
        found.append(_parameter(arguments.kwarg, ParameterKind.VAR_KEYWORD, None))
    return tuple(found)


def _parameter(node: ast.arg, kind: ParameterKind, default: ast.expr | None) -> Parameter:
    return Parameter(
        node.arg,
        kind,
        ast.unparse(default) if default is not None else None,
        ast.unparse(node.annotation) if node.annotation is not None else None,
    )


class Signatures:
    """Finds the signature that a call of a type meets."""

    def __init__(self, program: Program) -> None:
        from driftcheck.surface.constructors import Constructors

        self.program = program
        self.constructors = Constructors(program)
        self._memo: dict[tuple[FunctionDeclaration, bool], Signature] = {}

    def signature(self, function: FunctionDeclaration, *, skips_first: bool) -> Signature:
        """The signature of a function, remembered."""
        key = (function, skips_first)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = declared_signature(function, skips_first=skips_first)
        return found

    def callee(self, type_: Type) -> Callee | Unknown:
        """What calling a value of this type meets; Unknown where that can't be told."""
        if isinstance(type_, Function):
            return self._function(type_)
        if isinstance(type_, Class):
            return self.constructors.callee(type_)
        if isinstance(type_, Instance) and isinstance(type_.class_, Class):
            return self._instance(type_)
        if isinstance(type_, Unknown):
            return type_
        if isinstance(type_, External):
            return Unknown(f"outside the target: {type_.path.partition('(')[0]}")
        if isinstance(type_, Partial):
            return Unknown("functools.partial")
        if isinstance(type_, Union):
            return self._several(type_)
        if isinstance(type_, TypeVariable):
            return self.callee(type_.bound) if type_.bound is not None else Unknown("type variable")
        if isinstance(type_, Absent):
            return Unknown("not there")
        if isinstance(type_, Lambda):
            signature = Signature(parameters_of(type_.node.args))
            return Callee(
                signature,
                f"{type_.module.name}.<lambda>",
                "<lambda>",
                type_.module.path,
                type_.node.lineno,
                type_.module,
            )
        return Unknown(f"call of a {type(type_).__name__.lower()}")

    def _several(self, type_: Union) -> Callee | Unknown:
        """What a call meets where several things may be behind a name that all take the same.

        One that takes anything says nothing: it stands in where the real one can't be had.
        """
        found: list[Callee] = []
        for member in type_.members:
            callee = self.callee(member)
            if not isinstance(callee, Callee):
                return Unknown("one of several")
            found.append(callee)
        told = [callee for callee in found if not takes_anything(callee.signature)] or found
        if any(shape(callee.signature) != shape(told[0].signature) for callee in told[1:]):
            return Unknown("one of several")
        return told[0]

    def _function(self, type_: Function) -> Callee | Unknown:
        declaration = type_.declaration
        # A kernel that is called and not launched is called by another kernel, and binds as any function does.
        signature = self.signature(declaration, skips_first=type_.skips_first)
        if type_.transformed.startswith("launched"):
            signature = launch_signature(signature, is_tuned=type_.transformed == "launched tuned kernel")
        receiver = type_.receiver
        is_declared = isinstance(receiver, Instance) and not receiver.exact
        return Callee(
            signature,
            declaration.symbol,
            declaration.qualified_name.rpartition("<locals>.")[2],
            declaration.module.path,
            declaration.line,
            declaration,
            is_declared,
            stated=ANYTHING if type_.transformed == "wrapped" else None,
        )

    def _instance(self, type_: Instance) -> Callee | Unknown:
        method = self.program.inference.calls.called(type_)
        if isinstance(method, Function):
            return self._function(method)
        return Unknown("call of an instance")
