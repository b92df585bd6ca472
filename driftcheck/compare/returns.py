"""Whether what a client does with a result fits what the call gives."""

from __future__ import annotations

import ast
from typing import Literal

from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import NONE, Absent, Class, Function, Instance, Tuple, Type, Unknown, members_of
from driftcheck.surface.types import Literal as LiteralType
from driftcheck.usage.usages import ReturnUsage

Answer = Literal["fits", "broken", "unresolved"]
_METHODS = {"subscript": ("__getitem__",), "iterate": ("__iter__", "__getitem__"), "enter": ("__enter__",)}


class Returns:
    """Judges the use of results against one release."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._arities: dict[FunctionDeclaration, frozenset[int] | None] = {}

    def judge(self, usage: ReturnUsage) -> tuple[Answer, str]:
        """The answer, and what the result is, in words."""
        members = members_of(usage.type)
        if any(isinstance(member, Unknown | Absent) for member in members):
            return "unresolved", ""
        without = [member for member in members if member != NONE]
        if not without:
            return "unresolved", ""
        if usage.use == "unpack":
            return self._unpacked(usage, without)
        for member in without:
            answer, text = self._used(usage, member)
            if answer != "broken":
                break
        if answer == "fits" and len(without) < len(members) and usage.use != "enter":
            return "broken", "it may be None"
        return answer, text

    def _unpacked(self, usage: ReturnUsage, members: list[Type]) -> tuple[Answer, str]:
        arities = {len(member.items) for member in members if isinstance(member, Tuple)}
        if len(arities) != 1 or not all(isinstance(member, Tuple) for member in members):
            return "unresolved", ""
        arity = arities.pop()
        if arity == usage.count or (usage.has_star and arity >= usage.count):
            return "fits", ""
        # Annotations lie more often than code does: every return has to agree.
        returned = self.returned_arities(usage.callee)
        if returned is None or (returned and returned != {arity}):
            return "unresolved", ""
        return "broken", f"it gives {arity} values, {usage.count} are unpacked"

    def returned_arities(self, callee: Type) -> frozenset[int] | None:
        """The lengths of the tuples that a function's own `return` statements give; None where one can't be read.

        Empty where the body returns nothing: an interface.
        """
        if not isinstance(callee, Function):
            return None
        declaration = callee.declaration
        if declaration not in self._arities:
            lengths: set[int] | None = set()
            for node in own_nodes(declaration.body):
                if isinstance(node, ast.Return) and node.value is not None and lengths is not None:
                    if isinstance(node.value, ast.Tuple):
                        lengths.add(len(node.value.elts))
                    else:
                        type_ = self.program.inference.infer(node.value, self.program.function_scope(declaration))
                        lengths = {*lengths, len(type_.items)} if isinstance(type_, Tuple) else None
            self._arities[declaration] = frozenset(lengths) if lengths is not None else None
        return self._arities[declaration]

    def _used(self, usage: ReturnUsage, member: Type) -> tuple[Answer, str]:
        if usage.use == "attribute":
            found = self.program.inference.attribute(member, usage.name)
            # Whether the attribute is there is another question: this one is only about None.
            return ("unresolved", "") if isinstance(found, Unknown | Absent) else ("fits", "")
        if isinstance(member, Tuple):
            return "fits", ""
        if isinstance(member, LiteralType) and not isinstance(member.value, str | bytes):
            return "broken", f"it gives {member.value!r}"
        if not isinstance(member, Instance):
            return ("unresolved", "") if not isinstance(member, Class) else ("fits", "")
        answers = [self.program.inference.attribute(member, name) for name in _METHODS[usage.use]]
        if all(isinstance(type_, Absent) for type_ in answers):
            return "broken", f"it gives {_name(member)}"
        if any(isinstance(type_, Unknown) for type_ in answers):
            return "unresolved", ""
        return "fits", ""


def _name(type_: Instance) -> str:
    if isinstance(type_.class_, Class):
        return type_.class_.declaration.name
    return type_.class_.path.rpartition(".")[2]
