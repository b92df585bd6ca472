"""Whether a method of the client's is passed something else by position than it was, and takes it all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from driftcheck.compare.bind import assignment, bind
from driftcheck.compare.callsites import CallSite
from driftcheck.compare.counterparts import counterparts
from driftcheck.compare.members import Definition
from driftcheck.compare.refusals import Complaint
from driftcheck.model import Certainty, Kind, ParameterKind, Severity, Signature
from driftcheck.surface.syntax import own_nodes

_BY_PLACE = (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)


def shifted_override(
    own: Definition, base: Definition, before: Definition | None, sites: Iterable[tuple[CallSite, bool]]
) -> Complaint | None:
    """A call of the target's whose argument an override takes for another of its own parameters than is meant.

    Its base takes the argument for a parameter that the override has as well, in another place. Where it lands instead
    the base had, at the baseline, the parameter that the override has there; the base's does not continue that one.
    """
    if own.signature is None or base.signature is None or before is None or before.signature is None:
        return None
    agreed = _agreed(own.signature, before.signature)
    if _names(own.signature)[: len(_names(base.signature))] == _names(base.signature) or not agreed:
        return None
    suspected = agreed & _read(own)
    continued = counterparts(before.signature, base.signature)
    for site, is_typed in sites if suspected else ():
        if not is_typed or bind(own.signature, site.arguments) or bind(base.signature, site.arguments):
            continue
        pairs = zip(assignment(own.signature, site.arguments), assignment(base.signature, site.arguments), strict=True)
        for mine, theirs in pairs:
            if mine.parameter is None or theirs.parameter is None:
                continue
            name, meant = mine.parameter.name, theirs.parameter.name
            if name != meant and name in suspected and continued.get(name) != meant and own.signature.parameter(meant):
                return Complaint(
                    Kind.INVALID_OVERRIDE,
                    Severity.SILENT,
                    Certainty.LIKELY,
                    f"{own.shown}() takes for '{name}' what {site.path} passes {base.shown}() as '{meant}' now",
                    name,
                    None,
                    site,
                )
    return None


def _agreed(own: Signature, before: Signature) -> frozenset[str]:
    """The override's parameters that stand where the base had them."""
    return frozenset(name for name, theirs in zip(_names(own), _names(before), strict=False) if name == theirs)


def _names(signature: Signature) -> list[str]:
    return [parameter.name for parameter in signature.parameters if parameter.kind in _BY_PLACE]


def _read(own: Definition) -> frozenset[str]:
    """The names that a function reads."""
    if own.function is None:
        return frozenset()
    nodes = own_nodes(own.function.body)
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
