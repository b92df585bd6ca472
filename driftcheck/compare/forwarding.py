"""`**kwargs` that a callable hands on whole: its keywords are those of the callable that takes them over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from driftcheck.compare.bind import BindingProblem, bind
from driftcheck.model import Argument, Arguments, Kind, ParameterKind
from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.signatures import Callee, Signatures
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Class, Function, Instance, Super, Type, members_of
from driftcheck.usage.arguments import arguments_of

_DEPTH = 4
_READING = frozenset(("get", "keys", "values", "items", "copy"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A keyword that is passed on to a callable which does not take it; not certain where another may stand for it."""

    callee: Callee
    problem: BindingProblem
    is_certain: bool = True


@dataclass(eq=False, slots=True)
class _Handing:
    """What a function does with its `**kwargs`: the calls that get them whole, and the names taken out before.

    `given` are the names that it puts there itself, `is_extended` is True where it puts in what can't be told.
    """

    calls: list[ast.Call]
    taken: frozenset[str]
    given: frozenset[str]
    is_extended: bool


class Forwarding:
    """Follows keywords through the functions that pass them on."""

    def __init__(self, program: Program, signatures: Signatures) -> None:
        self.program = program
        self.signatures = signatures
        self._memo: dict[FunctionDeclaration, _Handing | None] = {}

    def refusals(
        self, callee: Callee, arguments: Arguments, depth: int = 0, *, receiver: Class | None = None
    ) -> tuple[Refusal, ...]:
        """The keywords of a call that end where nothing takes them; `receiver` is the class whose method is called."""
        declaration = callee.declaration
        if callee.called is not None:
            receiver = Class(callee.called)
        if not isinstance(declaration, FunctionDeclaration) or depth > _DEPTH:
            return ()
        swallowing = [p for p in callee.signature.parameters if p.kind is ParameterKind.VAR_KEYWORD]
        if not swallowing:
            return ()
        named = {p.name for p in callee.signature.parameters if p.kind is not ParameterKind.POSITIONAL_ONLY}
        keywords = [a for a in arguments.keywords if a.keyword is not None and a.keyword not in named]
        handing = self._handing(declaration) if keywords else None
        if handing is None:
            return ()
        found: list[Refusal] = []
        for argument in keywords:
            if argument.keyword in handing.taken:
                continue
            refusals = [self._refused(declaration, call, argument, depth, receiver) for call in handing.calls]
            # One that takes the keyword is enough: which of several is called may depend on it.
            if refusals and all(refusal is not None for refusal in refusals):
                found += [refusal for refusal in refusals[:1] if refusal is not None]
        return tuple(found)

    def takers(
        self, callee: Callee, keyword: str, depth: int = 0, *, receiver: Class | None = None
    ) -> Iterator[Callee]:
        """The callables that a keyword of a call ends at, handed on by those before it; `receiver` as above."""
        declaration = callee.declaration
        if callee.called is not None:
            receiver = Class(callee.called)
        if any(each.name == keyword and not each.is_variadic for each in callee.signature.parameters):
            yield callee
            return
        handing = self._handing(declaration) if isinstance(declaration, FunctionDeclaration) else None
        if not isinstance(declaration, FunctionDeclaration) or handing is None or depth > _DEPTH:
            return
        for call in handing.calls if keyword not in handing.taken else ():
            called = members_of(self._called(declaration, call, receiver))
            inner = self._callee(called[0]) if len(called) == 1 else None
            if inner is not None:
                yield from self.takers(inner, keyword, depth + 1, receiver=receiver if _is_super(call.func) else None)

    def missing(self, callee: Callee, arguments: Arguments, depth: int = 0) -> tuple[Refusal, ...]:
        """What is missing where a function passes all that it is given on to one other callable, and to no second."""
        declaration = callee.declaration
        if not isinstance(declaration, FunctionDeclaration) or depth > _DEPTH or arguments.is_open:
            return ()
        kinds = {parameter.kind: parameter.name for parameter in callee.signature.parameters if parameter.is_variadic}
        handing = self._handing(declaration) if ParameterKind.VAR_KEYWORD in kinds else None
        if handing is None or len(handing.calls) != 1 or handing.is_extended:
            return ()
        call = handing.calls[0]
        inner_type = self.program.inference.infer(call.func, self.program.function_scope(declaration))
        inner = self._callee(inner_type) if isinstance(inner_type, Class | Function) else None
        if inner is None or (isinstance(inner_type, Class) and inner_type.is_open):
            # A class that is only declared may be one below it, which asks for less.
            return ()
        handed = self._handed(callee, call, arguments, handing, kinds.get(ParameterKind.VAR_POSITIONAL))
        if handed is None:
            return ()
        problems = [
            problem
            for problem in bind(inner.signature, handed, callee=inner.name)
            if problem.kind is Kind.MISSING_ARGUMENT and problem.parameter not in handing.given
        ]
        if problems:
            return tuple(Refusal(inner, problem) for problem in problems)
        return self.missing(inner, handed, depth + 1)

    def _handed(
        self, callee: Callee, call: ast.Call, arguments: Arguments, handing: _Handing, rest: str | None
    ) -> Arguments | None:
        """The arguments that the inner call gets; None where it gets something that can't be told."""
        own = arguments_of(call)
        places = sum(
            p.kind in (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)
            for p in callee.signature.parameters
        )
        positional: list[Argument] = []
        for argument in own.positional:
            if not argument.unpacked:
                positional.append(argument)
            elif argument.value == rest:
                positional += arguments.positional[places:]
            else:
                return None
        named = {p.name for p in callee.signature.parameters if p.kind is not ParameterKind.POSITIONAL_ONLY}
        keywords = [argument for argument in own.keywords if not argument.unpacked]
        if len(own.keywords) - len(keywords) != 1:
            return None
        keywords += [a for a in arguments.keywords if a.keyword not in named and a.keyword not in handing.taken]
        return Arguments(tuple(positional), tuple(keywords))

    def _refused(
        self, function: FunctionDeclaration, call: ast.Call, argument: Argument, depth: int, receiver: Class | None
    ) -> Refusal | None:
        callees = members_of(self._called(function, call, receiver))
        if len(callees) != 1 or not isinstance(callees[0], Class | Function | Super):
            return None
        inner = self._callee(callees[0])
        if inner is None:
            return None
        is_same = isinstance(callees[0], Function) and callees[0].receiver is not None and _is_super(call.func)
        is_certain = not (isinstance(callees[0], Class) and callees[0].is_open)
        own = arguments_of(call)
        rest = tuple(keyword for keyword in own.keywords if not keyword.unpacked)
        handed = Arguments(own.positional, (*rest, argument))
        for problem in bind(inner.signature, handed, callee=inner.name):
            if problem.kind is Kind.UNKNOWN_ARGUMENT and problem.parameter == argument.keyword:
                return Refusal(inner, problem, is_certain)
        rest_of = Arguments(own.positional, (argument,))
        further = self.refusals(inner, rest_of, depth + 1, receiver=receiver if is_same else None)
        return replace(further[0], is_certain=is_certain and further[0].is_certain) if further else None

    def _called(self, function: FunctionDeclaration, call: ast.Call, receiver: Class | None) -> Type:
        """What a call in a method calls; `super()` goes on from there in the order of the receiver's own class."""
        scope = self.program.function_scope(function)
        called = self.program.inference.infer(call.func, scope)
        if receiver is None or function.owner is None or not _is_super(call.func):
            return called
        assert isinstance(call.func, ast.Attribute)
        base = self.program.inference.infer(call.func.value, scope)
        if not isinstance(base, Super) or base.class_.declaration is not function.owner:
            return called
        moved = replace(base, receiver=Instance(receiver) if isinstance(base.receiver, Instance) else receiver)
        return self.program.inference.attribute(moved, call.func.attr)

    def _callee(self, type_: Type) -> Callee | None:
        found = self.signatures.callee(type_)
        return found if isinstance(found, Callee) else None

    def _handing(self, function: FunctionDeclaration) -> _Handing | None:
        if function not in self._memo:
            self._memo[function] = self._read(function)
        return self._memo[function]

    def _read(self, function: FunctionDeclaration) -> _Handing | None:
        """How the body uses its `**kwargs`; None where it does more than read them and pass them on."""
        variadic = function.node.args.kwarg
        if variadic is None:
            return None
        name = variadic.arg
        calls: list[ast.Call] = []
        taken: set[str] = set()
        given: set[str] = set()
        is_extended = False
        understood: set[int] = set()
        for node in own_nodes(function.body):
            if isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg is None and _is_name(keyword.value, name):
                        calls.append(node)
                        understood.add(id(keyword.value))
                if isinstance(node.func, ast.Attribute) and _is_name(node.func.value, name):
                    if node.func.attr == "pop" and node.args and isinstance(node.args[0], ast.Constant):
                        taken.add(str(node.args[0].value))
                    elif node.func.attr == "setdefault" and node.args and isinstance(node.args[0], ast.Constant):
                        given.add(str(node.args[0].value))
                    elif node.func.attr in ("setdefault", "update"):
                        is_extended = True
                    elif node.func.attr not in _READING:
                        return None
                    understood.add(id(node.func.value))
            elif isinstance(node, ast.Subscript) and _is_name(node.value, name):
                if isinstance(node.ctx, ast.Del):
                    if not isinstance(node.slice, ast.Constant):
                        return None
                    taken.add(str(node.slice.value))
                elif isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant):
                    given.add(str(node.slice.value))
                elif isinstance(node.ctx, ast.Store):
                    is_extended = True
                understood.add(id(node.value))
            elif isinstance(node, ast.Compare) and all(isinstance(o, ast.In | ast.NotIn) for o in node.ops):
                understood.update(id(c) for c in node.comparators if _is_name(c, name))
        for node in own_nodes(function.body):
            if _is_name(node, name) and id(node) not in understood:
                return None
        return _Handing(calls, frozenset(taken), frozenset(given), is_extended) if calls else None


def _is_super(node: ast.expr) -> bool:
    """True for `super().name`."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "super"
    )


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
