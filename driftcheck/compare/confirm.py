"""Holds the static verdicts against `inspect.signature` in the target's interpreter: where they differ, it wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from driftcheck.compare.bind import bind
from driftcheck.compare.judge import Verdict
from driftcheck.model import Signature
from driftcheck.surface.declarations import FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.runtime import RuntimeSymbol
from driftcheck.surface.signatures import Callee
from driftcheck.usage.usages import AttributeUsage, CallUsage, ImportUsage, Usage

Judged = tuple[Usage, Verdict]
CONFIRMED_BY_SIGNATURE = "inspect.signature"
CONFIRMED_BY_IMPORT = "import"


def runtime_name(usage: Usage, verdict: Verdict) -> str | None:
    """What the interpreter has to be asked about a usage, None where it can't say: `module:qualified.name`."""
    if verdict.is_handed_on:
        return None
    if isinstance(usage, CallUsage) and verdict.callee is not None:
        return _callee_name(verdict.callee)
    if verdict.status != "broken" or verdict.absent is None:
        return None
    if isinstance(usage, ImportUsage):
        return f"{usage.module}:{usage.name}" if usage.name else usage.module
    if isinstance(usage, AttributeUsage) and verdict.is_certain:
        return verdict.symbol
    return None


def _callee_name(callee: Callee) -> str | None:
    declaration = callee.declaration
    if isinstance(declaration, ModuleDeclaration) or "<locals>" in declaration.qualified_name:
        return None
    asked = declaration if callee.called is None else callee.called
    return f"{asked.module.name}:{asked.qualified_name}"


def confirmed(judged: Iterable[Judged], symbols: Mapping[str, RuntimeSymbol]) -> list[Judged]:
    """The verdicts once the interpreter has spoken; what it could not say stays as it was."""
    result: list[Judged] = []
    for usage, verdict in judged:
        name = runtime_name(usage, verdict)
        symbol = symbols.get(name) if name is not None else None
        if symbol is not None:
            verdict = _confirmed(usage, verdict, symbol)
        result.append((usage, verdict))
    return result


def _confirmed(usage: Usage, verdict: Verdict, symbol: RuntimeSymbol) -> Verdict:
    if not isinstance(usage, CallUsage):
        if symbol.status == "missing":
            return replace(verdict, confirmed_by=CONFIRMED_BY_IMPORT)
        if symbol.status == "found":
            return replace(verdict, status="unresolved", reason="the interpreter finds what the sources do not show")
        return verdict
    if symbol.status != "found" or symbol.signature is None or verdict.callee is None or verdict.arguments is None:
        return verdict
    signature = _with_receiver(verdict, symbol)
    callee = replace(verdict.callee, runtime_signature=signature)
    problems = bind(signature, verdict.arguments, callee=callee.name, has_receiver=verdict.has_receiver)
    if problems and verdict.status == "fits":
        # A stand-in for what this machine lacks (a GPU's compiler), or a wrapper: neither answer is proof.
        return replace(verdict, status="unresolved", reason="the interpreter refuses what the sources take")
    wrapped = symbol.outer_signature
    if problems and wrapped is not None and not bind(wrapped, verdict.arguments):
        # `inspect.signature` looks through a wrapper that itself takes the call: what it then does is its own affair.
        return replace(verdict, callee=callee, problems=problems, status="broken", is_wrapped=True)
    return replace(
        verdict,
        callee=callee,
        problems=problems,
        status="broken" if problems else "fits",
        confirmed_by=CONFIRMED_BY_SIGNATURE,
    )


def _with_receiver(verdict: Verdict, symbol: RuntimeSymbol) -> Signature:
    """The interpreter's signature, with its receiver where the call passes that itself: `Base.method(self)`."""
    assert symbol.signature is not None and verdict.callee is not None
    declaration = verdict.callee.declaration
    is_method = isinstance(declaration, FunctionDeclaration) and declaration.owner is not None
    written = verdict.callee.signature.parameters
    if (
        not is_method
        or verdict.has_receiver
        or verdict.callee.called is not None
        or symbol.kind != "method"
        or not written
    ):
        return symbol.signature
    return replace(symbol.signature, parameters=(written[0], *symbol.signature.parameters))
