"""What an upgrade means for clients, as the description of the pull request that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driftcheck.model import Certainty, Finding
from driftcheck.report.foot import markdown_foot
from driftcheck.report.harmless import harmless
from driftcheck.report.markdown import code, plain
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
    repair_counts,
    use_sentences,
    versions,
)
from driftcheck.symbol_upgrade import BrokenSymbol, ChangedSymbol, OtherSymbol, Upgrade

_MOST_PLACES = 8
# A description on GitHub holds 65,536 characters; what is left out is counted.
_LONGEST = 60_000


def render_upgrades_markdown(upgrades: Sequence[tuple[Upgrade, str]], *, shows_all: bool = False) -> str:
    """The upgrades one below the other: what breaks as a list to tick off, then what behaves otherwise."""
    share = _LONGEST // max(len(upgrades), 1)
    return "\n".join(
        _shortened(list(_lines(upgrade, command, shows_all=shows_all)), share) for upgrade, command in upgrades
    )


def _shortened(blocks: list[str], longest: int) -> str:
    """The blocks, as many as a description has room for."""
    kept, length = 0, 0
    while kept < len(blocks) and length + len(blocks[kept]) <= longest:
        length += len(blocks[kept])
        kept += 1
    text = "".join(blocks[:kept])
    if kept == len(blocks):
        return text
    return f"{text}\nThe rest is left out: {len(blocks) - kept:,} more entries, which `--format text` has.\n"


def _lines(upgrade: Upgrade, command: str, *, shows_all: bool) -> Iterator[str]:
    """The description in blocks, each of which stays whole."""
    yield f"## {plain(heading(upgrade))}\n\n"
    yield from _repairs(upgrade, command)
    yield f"### Breaking: {plain(breaking_counts(upgrade))}\n\n"
    for symbol in upgrade.broken:
        yield "".join(f"{line}\n" for line in _broken(upgrade, symbol))
    yield f"\n### Behavioural: {plain(behaviour_counts(upgrade))}\n"
    for title, found in by_sort(upgrade.changed):
        yield f"\n#### {plain(title)} ({len(found):,})\n\n"
        for changed in found:
            yield "".join(f"{line}\n" for line in _changed(upgrade, changed))
    yield f"\n### Unchanged: {plain(other_counts(upgrade))}\n"
    if shows_all:
        yield "\n"
        yield from (_other(each) for each in (*upgrade.unchanged, *upgrade.uncompared))
    yield from (f"{line}\n" for line in markdown_foot(upgrade.before, upgrade.notices))


def _repairs(upgrade: Upgrade, command: str) -> Iterator[str]:
    said, has_safe, has_unsafe = repair_counts(upgrade)
    if said:
        yield f"To repair: {plain(said)}.\n\n"
    if has_safe or has_unsafe:
        yield f"```sh\n{harmless(command)}{' --unsafe' if has_unsafe else ''}\n```\n\n"


def _broken(upgrade: Upgrade, symbol: BrokenSymbol) -> Iterator[str]:
    places = both_places(symbol.place_before, symbol.place, versions(upgrade), code)
    yield f"- [ ] {code(symbol.symbol)}{f': {places}' if places else ''}"
    for message, findings in ordered_findings(symbol):
        where = ", ".join(code(each.location.place) for each in findings)
        said = f"{plain(message)}{_doubt(findings[0])}"
        yield f"  - **{findings[0].severity.value}** {where}: {said}; {_remedy(findings)}"
    fitting = fitting_sentence(symbol, _MOST_PLACES, code)
    if fitting:
        yield f"  - {fitting}"
    if symbol.beside is not None:
        yield from _differences(symbol.beside)


def _doubt(finding: Finding) -> str:
    return "" if finding.certainty is Certainty.CERTAIN else f" ({finding.certainty.value})"


def _remedy(findings: Sequence[Finding]) -> str:
    fix = next((finding.fix for finding in findings if finding.fix is not None), None)
    return "by hand" if fix is None else plain(harmless(f"fix ({fix.applicability}): {fix.description}"))


def _changed(upgrade: Upgrade, changed: ChangedSymbol) -> Iterator[str]:
    places = both_places(changed.place_before, changed.place, versions(upgrade), code)
    moved = f" (was {code(changed.symbol_before)})" if changed.symbol_before != changed.symbol else ""
    yield f"- {code(changed.symbol)}{moved}: {places}"
    yield from _differences(changed)
    yield from (f"  - {said}" for said in use_sentences(changed, _MOST_PLACES, code))


def _differences(changed: ChangedSymbol) -> Iterator[str]:
    yield from (f"  - {plain(said)}" for said in change_sentences(changed))
    if changed.body is not None:
        lines = "; ".join(code(line) for line in body_lines(changed.body))
        yield f"  - {plain(body_sentence(changed, changed.body))}{f': {lines}' if lines else ''}"


def _other(other: OtherSymbol) -> str:
    why = f": not compared, {plain(other.reason)}" if other.reason else ""
    return f"- {code(other.symbol)}{why}\n"
