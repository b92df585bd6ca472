"""The exception to expect where a call does not bind, in the words of whoever raises it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftcheck.model import Kind

if TYPE_CHECKING:
    from driftcheck.compare.bind import BindingProblem
    from driftcheck.surface.signatures import Callee

_PYDANTIC = {
    Kind.MISSING_ARGUMENT: "Field required",
    Kind.UNKNOWN_ARGUMENT: "Unexpected keyword argument",
    Kind.TOO_MANY_POSITIONAL_ARGUMENTS: "Unexpected positional argument",
}


def expected_exception(problem: BindingProblem, callee: Callee) -> str | None:
    """What the call raises: CPython's TypeError, or the exception of the library that made the constructor."""
    if problem.raises is None or callee.raises == "TypeError":
        return problem.raises
    words = _PYDANTIC.get(problem.kind)
    if not callee.raises or words is None:
        return callee.raises or None
    place = f"{problem.parameter}: " if problem.parameter else ""
    return f"{callee.raises}: 1 validation error for {callee.name}: {place}{words}"
