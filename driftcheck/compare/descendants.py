"""What a value of a declared class may be at run time: its descendants, one of which may take what it refuses."""

from __future__ import annotations

from driftcheck.compare.bind import bind
from driftcheck.compare.judge import Judge, Verdict
from driftcheck.model import ParameterKind, Signature
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.signatures import Callee
from driftcheck.surface.types import Class, Function, Instance, Type, members_of
from driftcheck.usage.usages import CallUsage


class Descendants:
    """Finds the classes that derive from one, in the target and in what has been read of the client."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.program = judge.program
        self.heirs = judge.heirs

    # Calls

    def taking(self, usage: CallUsage, verdict: Verdict) -> str:
        """Why a call may fit although the declared class refuses it, "" where nothing says so."""
        if verdict.is_certain or verdict.callee is None or verdict.arguments is None:
            return ""
        if verdict.is_handed_on:
            return self._taking_over(verdict.callee, [problem.parameter for problem in verdict.problems])
        for member in members_of(usage.callee):
            class_ = _declared_class(member)
            if class_ is None:
                continue
            if any(path.endswith(".Protocol") for path in self.program.classes.external_bases(class_.declaration)):
                return f"{class_.declaration.name} is a protocol, which other classes fulfil"
            for heir in self.heirs.of(class_.declaration):
                if self._takes(heir, member, verdict):
                    return f"{class_.declaration.name} may be {heir.name} here, which takes the call"
        return ""

    def _taking_over(self, callee: Callee, keywords: list[str | None]) -> str:
        """Why keywords that are passed on may find somebody who takes them."""
        declaration = callee.declaration
        class_ = callee.called or (declaration.owner if isinstance(declaration, FunctionDeclaration) else None)
        if class_ is None:
            return ""
        for heir in self.heirs.of(class_):
            method = self.program.inference.attribute(Instance(Class(heir)), declaration.name)
            found = self.judge.signatures.callee(Class(heir) if callee.called is not None else method)
            if not isinstance(found, Callee) or all(_has_keyword(found.signature, name) for name in keywords):
                return f"{class_.name} may be {heir.name} here, which takes the keywords that are passed on"
        return ""

    def _takes(self, heir: ClassDeclaration, member: Type, verdict: Verdict) -> bool:
        assert verdict.callee is not None
        assert verdict.arguments is not None
        asked: Type = Class(heir)
        if not isinstance(member, Class):
            name = verdict.callee.declaration.name
            asked = self.program.inference.attribute(Instance(Class(heir)), name)
        found = self.judge.signatures.callee(asked)
        return not isinstance(found, Callee) or not bind(found.signature, verdict.arguments, callee=found.name)


def _has_keyword(signature: Signature, name: str | None) -> bool:
    return any(
        parameter.kind is ParameterKind.VAR_KEYWORD
        or (parameter.name == name and parameter.kind is not ParameterKind.POSITIONAL_ONLY)
        for parameter in signature.parameters
    )


def _declared_class(member: Type) -> Class | None:
    """The class that is only declared behind what is called: the receiver's, or an open one that is made."""
    if isinstance(member, Function) and isinstance(member.receiver, Instance):
        member = member.receiver
    elif isinstance(member, Function) and isinstance(member.receiver, Class):
        return member.receiver
    if isinstance(member, Instance) and isinstance(member.class_, Class):
        return None if member.exact else member.class_
    return member if isinstance(member, Class) and member.is_open else None
