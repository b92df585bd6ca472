"""What an upgrade of the target means for a client: what breaks, and what only behaves otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from driftcheck.assembly import backwards, unread
from driftcheck.audit import Sources
from driftcheck.compare.behaviour import behaviour
from driftcheck.compare.couplings import couplings
from driftcheck.compare.standing import Standings
from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import knowledge_of
from driftcheck.model import Finding, Fix, Report, Severity
from driftcheck.readings import Readings
from driftcheck.symbol_upgrade import BrokenSymbol, ChangedSymbol, SourcePlace, Upgrade
from driftcheck.tree import SourceTree


def upgrade_of(
    sources: Sources,
    *,
    selected: Callable[[Report], Report] = lambda report: report,
    is_excluded: Callable[[str], bool] = lambda path: False,
) -> Upgrade:
    """What the way from the baseline to the target means for the client.

    `selected` leaves of a report what counts, and `is_excluded` says which of the client's files don't. Raises
    DriftcheckError where no baseline was found.
    """
    if sources.baseline is None:
        why = "".join(f" ({notice})" for notice in sources.notices[:1])
        raise DriftcheckError(
            f"{sources.client.name}: which release it was written for can't be told{why}; name one with --from"
        )
    return sources.asked(partial(_upgrade, selected=selected, is_excluded=is_excluded))


def _upgrade(
    audited: Report, readings: Readings, *, selected: Callable[[Report], Report], is_excluded: Callable[[str], bool]
) -> Upgrade:
    report = _with_makeable_fixes(selected(audited), readings.client)
    assert report.baseline is not None and readings.before is not None
    earlier = readings.earlier if readings.earlier is not None else readings.reading
    knowledge = knowledge_of(readings.reading.program.target_index.top_level)
    environment = knowledge.environment if knowledge is not None else None
    target, baseline = Standings(readings.reading.program, environment), Standings(earlier.program, environment)
    # What it may break, too.
    breaks = [finding for finding in report.findings if finding.is_break(Severity.WARNING)]
    found = [
        coupling
        for coupling in couplings(readings.reading, earlier, readings.before)
        if not is_excluded(coupling.use.location.path)
    ]
    compared = behaviour(found, target, baseline, {finding.symbol for finding in breaks})
    return Upgrade(
        report.client,
        report.baseline,
        report.target,
        tuple(_broken(breaks, target, baseline, compared.broken)),
        compared.changed,
        compared.unchanged,
        compared.uncompared,
        (*backwards(report.baseline, report.target), *report.notices, *unread(report.client), *_notices(report)),
    )


def _with_makeable_fixes(report: Report, client: SourceTree) -> Report:
    """The report, in which a fix that the client's text does not allow is left to a person, as `driftcheck fix` does.

    The safe ones are made without the others.
    """
    refused: dict[Finding, str] = {}
    for applicability in ("safe", "unsafe"):
        refused |= _refused([each for each in report.findings if _is_fixed(each, applicability)], client)
    return replace(report, findings=tuple(_by_hand(each, refused.get(each)) for each in report.findings))


def _is_fixed(finding: Finding, applicability: str) -> bool:
    return finding.fix is not None and bool(finding.fix.edits) and finding.fix.applicability == applicability


def _refused(findings: Sequence[Finding], client: SourceTree) -> dict[Finding, str]:
    """Why fixes can't be made, by finding, where they are made together."""
    if not findings:
        return {}
    from driftcheck.fixes.recipes import Planned, edited_files

    planned = [Planned(finding.fix.edits) for finding in findings if finding.fix is not None]
    return {findings[index]: reason for index, reason in edited_files(client.read, planned).refused.items()}


def _by_hand(finding: Finding, reason: str | None) -> Finding:
    """The finding, with its fix left to a person where there is a reason for that."""
    if reason is None or finding.fix is None:
        return finding
    said = f"{finding.fix.description}, by hand: {reason}"
    return replace(finding, fix=Fix("manual", said))


def _broken(
    findings: Iterable[Finding], target: Standings, baseline: Standings, besides: Mapping[str, ChangedSymbol]
) -> Iterator[BrokenSymbol]:
    """The findings by what they are about, the worst first, each with what is said of the symbol besides."""
    by_symbol: dict[str, list[Finding]] = {}
    for finding in findings:
        by_symbol.setdefault(finding.symbol, []).append(finding)
    groups = [
        BrokenSymbol(symbol, tuple(found), _place(baseline, symbol), _place(target, symbol))
        for symbol, found in by_symbol.items()
    ]
    for group in sorted(groups, key=lambda each: (-_worst(each.findings), -len(each.findings), each.symbol)):
        yield replace(group, beside=_beside(group, besides.get(group.symbol)))


def _beside(broken: BrokenSymbol, said: ChangedSymbol | None) -> ChangedSymbol | None:
    """What is said of a symbol besides its findings, with the uses that go on to fit: that it is imported is none."""
    if said is None:
        return None
    places = broken.broken_lines
    fitting = tuple(
        use for use in said.uses if use.role != "import" and (use.location.path, use.location.line) not in places
    )
    return replace(said, uses=fitting)


def _worst(findings: Sequence[Finding]) -> int:
    return max(finding.severity.rank for finding in findings)


def _place(standings: Standings, symbol: str) -> SourcePlace | None:
    try:
        standing = standings.of(symbol)
    except RecursionError:
        return None
    return SourcePlace(standing.path, standing.line or 1) if standing.path is not None else None


def _notices(report: Report) -> Iterator[str]:
    old = [finding for finding in report.findings if finding.is_severe and not finding.is_break()]
    if old:
        place = f"{old[0].location.place}: {old[0].message}"
        number = "a finding" if len(old) == 1 else f"{len(old):,} findings"
        yield f"not counted: {number} that the older release has as well ({place})"
    if report.accepted:
        number = "a finding is" if len(report.accepted) == 1 else f"{len(report.accepted):,} findings are"
        yield f"not counted: {number} accepted by comments or as known"
