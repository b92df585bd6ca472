"""What an upgrade means for clients, for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driftcheck.model import Certainty, Finding
from driftcheck.report.foot import release_chosen
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import cells, wrap
from driftcheck.report.upgrade_words import (
    behaviour_counts,
    body_lines,
    body_sentence,
    both_places,
    breaking_counts,
    by_sort,
    change_sentences,
    fitting_sentence,
    heading,
    ordered_findings,
    other_counts,
    repair_command,
    repair_counts,
    use_sentences,
    versions,
)
from driftcheck.symbol_upgrade import BrokenSymbol, ChangedSymbol, Upgrade

_NARROWEST = 40
_MOST_PLACES = 4


def render_upgrades(upgrades: Sequence[tuple[Upgrade, str]], *, width: int, shows_all: bool = False) -> str:
    """The upgrades, each with the command that makes its fixes; `shows_all` lists what is unchanged as well."""
    width = max(width, _NARROWEST)
    texts = (
        "".join(f"{line}\n" for line in _lines(each, command, width, shows_all=shows_all)) for each, command in upgrades
    )
    return "\n".join(texts)


def _lines(upgrade: Upgrade, command: str, width: int, *, shows_all: bool) -> Iterator[str]:
    yield heading(upgrade)
    yield ""
    yield f"Breaking: {breaking_counts(upgrade)}"
    for symbol in upgrade.broken:
        yield ""
        yield from _broken(upgrade, symbol, width)
    yield ""
    yield f"Behavioural: {behaviour_counts(upgrade)}"
    for title, found in by_sort(upgrade.changed):
        yield ""
        yield f"  {title} ({len(found):,})"
        for changed in found:
            yield ""
            yield from _changed(upgrade, changed, width)
    yield ""
    yield f"Unchanged: {other_counts(upgrade)}"
    if shows_all:
        yield from (f"  {harmless(each.symbol)}" for each in upgrade.unchanged)
        yield from (f"  {harmless(each.symbol)}: not compared, {harmless(each.reason)}" for each in upgrade.uncompared)
    yield from _foot(upgrade, command, width)


def _broken(upgrade: Upgrade, symbol: BrokenSymbol, width: int) -> Iterator[str]:
    yield f"  {harmless(symbol.symbol)}"
    places = both_places(symbol.place_before, symbol.place, versions(upgrade))
    yield from _wrapped(places, "    ", width) if places else ()
    for message, findings in ordered_findings(symbol):
        for finding in findings:
            yield f"    {finding.severity.value:<8}{harmless(finding.location.place)}"
        yield from _wrapped(harmless(message) + _doubt(findings[0]), "            ", width)
        proof = findings[0].evidence
        if proof.path is not None and proof.path not in places:
            line = f":{proof.line}" if proof.line is not None else ""
            yield from _wrapped(harmless(f"see {proof.path}{line} in {versions(upgrade)[1]}"), "            ", width)
        yield from _wrapped(_remedy(findings), "            ", width)
    fitting = fitting_sentence(symbol, _MOST_PLACES)
    if fitting:
        yield from _wrapped(fitting, "    ", width)
    if symbol.beside is not None and symbol.beside.is_different:
        yield "    it is not the same besides:"
        yield from _differences(symbol.beside, width)


def _doubt(finding: Finding) -> str:
    return "" if finding.certainty is Certainty.CERTAIN else f" ({finding.certainty.value})"


def _remedy(findings: Sequence[Finding]) -> str:
    fix = next((finding.fix for finding in findings if finding.fix is not None), None)
    return "by hand" if fix is None else harmless(f"fix ({fix.applicability}): {fix.description}")


def _changed(upgrade: Upgrade, changed: ChangedSymbol, width: int) -> Iterator[str]:
    yield f"    {harmless(changed.symbol)}"
    if changed.symbol_before != changed.symbol:
        yield from _wrapped(f"was {harmless(changed.symbol_before)}", "      ", width)
    yield from _wrapped(both_places(changed.place_before, changed.place, versions(upgrade)), "      ", width)
    yield from _differences(changed, width)
    for said in use_sentences(changed, _MOST_PLACES):
        yield from _wrapped(said, "      ", width)


def _differences(changed: ChangedSymbol, width: int) -> Iterator[str]:
    for said in change_sentences(changed):
        yield from _wrapped(said, "      ", width)
    if changed.body is not None:
        yield from _wrapped(body_sentence(changed, changed.body), "      ", width)
        for line in body_lines(changed.body):
            yield from _wrapped(line, "        ", width)


def _foot(upgrade: Upgrade, command: str, width: int) -> Iterator[str]:
    said, has_safe, has_unsafe = repair_counts(upgrade)
    if said:
        yield f"To repair: {said}"
        if has_safe or has_unsafe:
            yield from (f"  {line}" for line in repair_command(harmless(command), width - 2, with_unsafe=has_unsafe))
    if chosen := release_chosen(upgrade.before):
        yield from _wrapped(harmless(chosen), "", width)
    for notice in upgrade.notices:
        yield from _wrapped(f"note: {harmless(notice)}", "", width)


def _wrapped(text: str, indent: str, width: int) -> Iterator[str]:
    room = max(width - cells(indent), _NARROWEST // 2)
    first, *others = wrap(text, room) if text else [""]
    if first:
        yield f"{indent}{first}"
    yield from (f"{indent}  {line}" for line in others)
