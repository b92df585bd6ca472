"""The target's calls that something of the client's does not take, and which of them proves most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftcheck.compare.acceptance import takes_all, without_variadics
from driftcheck.compare.bind import BindingProblem, bind
from driftcheck.compare.callsites import CallSite
from driftcheck.model import Certainty, Kind, Severity, Signature


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with a definition of the client's, before it becomes a finding.

    `site` is the call in the target that shows it, None where only the signatures do.
    """

    kind: Kind
    severity: Severity
    certainty: Certainty
    message: str
    parameter: str | None = None
    raises: str | None = None
    site: CallSite | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A call of the target's that a definition of the client's does not take.

    `is_typed` where the receiver's type leads there, `needs_variadic` where the target's own definition takes the call
    only by `*args` or `**kwargs`, and so may be meant for others.
    """

    site: CallSite
    problems: tuple[BindingProblem, ...]
    is_typed: bool
    needs_variadic: bool

    @property
    def shapes(self) -> frozenset[tuple[Kind, str | None]]:
        """What identifies the problems, whichever call shows them."""
        return frozenset((problem.kind, problem.parameter) for problem in self.problems)

    @property
    def said(self) -> str:
        """The problems in words."""
        return "; ".join(problem.message for problem in self.problems)


def refused_of(
    own: Signature,
    base: Signature,
    sites: Sequence[tuple[CallSite, bool]],
    *,
    name: str,
    has_receiver: bool,
) -> list[Refused]:
    """The calls that the target's definition takes and the client's does not; each site says whether it is typed."""
    if takes_all(own, base):
        return []
    plain = without_variadics(base)
    found: list[Refused] = []
    for site, is_typed in sites:
        if site.catches_type_error:
            continue
        problems = bind(own, site.arguments, callee=name, has_receiver=has_receiver)
        if problems and not bind(base, site.arguments):
            found.append(Refused(site, problems, is_typed, bool(bind(plain, site.arguments))))
    return found


def new_ones(refused: Sequence[Refused], before: Sequence[Refused]) -> list[Refused]:
    """The refusals that are not like one that the baseline shows as well."""
    known = {shape for each in before for shape in each.shapes}
    return [each for each in refused if not each.shapes & known]


def worst_of(refused: Sequence[Refused], near: str) -> Refused:
    """The refusal that proves most: by type, by what the target itself declares, then the one nearest to a file."""
    parts = near.split("/")

    def distance(path: str) -> int:
        shared = 0
        for one, other in zip(parts, path.split("/"), strict=False):
            if one != other:
                break
            shared += 1
        return -shared

    return min(
        refused,
        key=lambda each: (
            not each.is_typed,
            each.needs_variadic,
            distance(each.site.path),
            each.site.path,
            each.site.line,
        ),
    )
