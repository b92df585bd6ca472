"""What an upgrade means for a client, in the words that text and Markdown share."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from driftcheck.model import Finding, Severity
from driftcheck.report.change_words import change_sentence
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import cells, counted, listed, named
from driftcheck.symbol_history import SymbolChange
from driftcheck.symbol_upgrade import BodyChange, BrokenSymbol, ChangedSymbol, Role, SortOfChange, SourcePlace, Upgrade

HEADINGS: dict[SortOfChange, str] = {
    "ends": "Announced to go",
    "values": "Other defaults and values",
    "signature": "Other signatures of what the client overrides, replaces, makes or derives from",
    "body": "Other bodies, to be read",
    "types": "Other declared types",
    "moved": "Defined elsewhere, and still there under the path that the client names",
}
_DOING: dict[Role, str] = {
    "override": "overridden",
    "super": "called by super()",
    "patch": "replaced",
    "base": "derived from",
    "call": "called",
    "attribute": "used",
    "variable": "used",
    "string": "named in a string",
    "reference": "named",
    "import": "imported",
}
_Shown = Callable[[str], str]
"""How a place is shown."""

_WITH_FIELD = ("field", "environment variable")


def heading(upgrade: Upgrade) -> str:
    """The client and both releases."""
    client = named(upgrade.client.name, upgrade.client.version)
    return harmless(f"{client}: {release_before(upgrade)} to {upgrade.after.version or upgrade.after.origin}")


def release_before(upgrade: Upgrade) -> str:
    """The older release and its name."""
    return named(upgrade.before.name, upgrade.before.version or upgrade.before.origin)


def versions(upgrade: Upgrade) -> tuple[str, str]:
    """How both releases are told apart, the older first."""
    before = upgrade.before.version or "before"
    after = upgrade.after.version or "after"
    return harmless(before), harmless(after if after != before else f"{after} (after)")


def breaking_counts(upgrade: Upgrade) -> str:
    """How much breaks: `3 symbols, 5 places: 4 errors, 1 warning`."""
    findings = [finding for symbol in upgrade.broken for finding in symbol.findings]
    if not findings:
        return "nothing that was checked"
    counts = Counter(finding.severity for finding in findings)
    words = {
        Severity.ERROR: counted(counts[Severity.ERROR], "error"),
        Severity.SILENT: f"{counts[Severity.SILENT]:,} silent",
        Severity.WARNING: counted(counts[Severity.WARNING], "warning"),
        Severity.NOTE: counted(counts[Severity.NOTE], "note"),
    }
    said = ", ".join(text for severity, text in words.items() if counts[severity])
    return f"{counted(len(upgrade.broken), 'symbol')}, {counted(len(findings), 'place')}: {said}"


def behaviour_counts(upgrade: Upgrade) -> str:
    """How much still fits and is not what it was."""
    if not upgrade.changed:
        return "nothing that was compared"
    number = len(upgrade.changed)
    return f"{counted(number, 'symbol')} that still {'fits' if number == 1 else 'fit'}, but {_are(number)} not the same"


def fitting_sentence(symbol: BrokenSymbol, most: int, shown: _Shown = harmless) -> str:
    """At how many usages a symbol breaks, and at which others it fits; "" where there are none."""
    if symbol.beside is None or not symbol.beside.uses:
        return ""
    uses = "; ".join(use_sentences(symbol.beside, most, shown))
    return f"breaks at {counted(len(symbol.broken_lines), 'usage')} and fits at {len(symbol.beside.uses):,}: {uses}"


def other_counts(upgrade: Upgrade) -> str:
    """How many of the client's symbols nothing is said of, and why."""
    same = counted(len(upgrade.unchanged), "symbol")
    if not upgrade.uncompared:
        return same
    return f"{same}; {len(upgrade.uncompared):,} could not be compared"


def repair_counts(upgrade: Upgrade) -> tuple[str, bool, bool]:
    """What can be repaired in words, and whether there are safe fixes and unsafe ones to make."""
    findings = [finding for symbol in upgrade.broken for finding in symbol.findings]
    made = [finding.fix.applicability for finding in findings if finding.fix is not None and finding.fix.edits]
    safe, unsafe = made.count("safe"), made.count("unsafe")
    by_hand = len(findings) - safe - unsafe
    parts = [f"{safe:,} by itself"] if safe else []
    parts += [f"{unsafe:,} with --unsafe, to be looked at"] if unsafe else []
    parts += [f"{by_hand:,} by hand"] if by_hand else []
    return listed(parts) if parts else "", bool(safe), bool(unsafe)


def repair_command(command: str, width: int, *, with_unsafe: bool) -> list[str]:
    """The command that makes the fixes on lines of at most `width` cells, as a shell goes on reading them."""
    parts: list[str] = []
    for word in shlex.split(command):
        is_value = bool(parts) and parts[-1].startswith("--") and " " not in parts[-1] and not word.startswith("--")
        if is_value:
            parts[-1] += f" {shlex.quote(word)}"
        else:
            parts.append(shlex.quote(word))
    lines: list[str] = []
    for part in [*parts, "--unsafe"] if with_unsafe else parts:
        if lines and cells(lines[-1]) + cells(part) + len("  \\") <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"  {part}" if lines else part)
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def ordered_findings(symbol: BrokenSymbol) -> list[tuple[str, list[Finding]]]:
    """The findings on a symbol by what they say, in the order of their places."""
    found: dict[str, list[Finding]] = {}
    for finding in sorted(symbol.findings, key=lambda each: (-each.severity.rank, each.location, each.message)):
        found.setdefault(finding.message, []).append(finding)
    return list(found.items())


def both_places(
    before: SourcePlace | None, after: SourcePlace | None, names: tuple[str, str], shown: _Shown = harmless
) -> str:
    """Where a thing stands in both releases: the path once where it is the same."""
    old, new = names
    if before is None or after is None:
        if after is not None:
            return f"{_place(after, shown)} in {new}, not in {old}"
        return f"{_place(before, shown)} in {old}, gone in {new}" if before is not None else ""
    if before.path == after.path:
        return f"{_place(before, shown)} in {old}, line {after.line} in {new}"
    return f"{_place(before, shown)} in {old}, {_place(after, shown)} in {new}"


def _place(place: SourcePlace, shown: _Shown) -> str:
    return shown(f"{place.path}:{place.line}")


def use_sentences(changed: ChangedSymbol, most: int, shown: _Shown = harmless) -> Iterator[str]:
    """Where the client couples to a symbol, by how: `overridden at a.py:3 and b.py:5`."""
    by_role: dict[Role, dict[str, None]] = {}
    for use in changed.uses:
        by_role.setdefault(use.role, {})[shown(use.location.place)] = None
    for role, doing in _DOING.items():
        places = list(by_role.get(role, ()))
        if places:
            more = len(places) - most
            yield f"{doing} at {listed(places if more <= 0 else [*places[:most], f'{more:,} more'])}"


def change_sentences(changed: ChangedSymbol) -> list[str]:
    """What is different, a sentence a change."""
    return [harmless(_sentence(change, changed.sort)) for change in changed.changes]


def _sentence(change: SymbolChange, sort: str) -> str:
    if change.kind == "defined-elsewhere":
        return f"defined as {change.after} now; {change.before} is no more than a way to it"
    return change_sentence(change, sort, has_field=sort in _WITH_FIELD)


def body_sentence(changed: ChangedSymbol, body: BodyChange) -> str:
    """How much of a body is different, and from which lines on."""
    whole = counted(body.statements_before, "statement")
    if body.name != changed.symbol.rpartition(".")[2]:
        whole += f" of {harmless(body.name)}()"
    if not body.gone and not body.come:
        said = f"its {whole} are nested otherwise"
    elif not body.gone:
        said = f"{counted(body.come, 'statement')} {_are(body.come)} new beside its {whole}"
    elif not body.come:
        said = f"{body.gone:,} of its {whole} {_are(body.gone)} gone"
    else:
        said = f"{body.gone:,} of its {whole} {_are(body.gone)} {_others(body.come)} now"
    before = _first_at(body.place_before, changed.place_before)
    return f"{said} (first at {before}, now {_first_at(body.place_after, changed.place)})"


def _first_at(place: SourcePlace, of_symbol: SourcePlace | None) -> str:
    is_same = of_symbol is not None and of_symbol.path == place.path
    return f"line {place.line}" if is_same else harmless(f"{place.path}:{place.line}")


def _others(number: int) -> str:
    return "another" if number == 1 else f"{number:,} others"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def body_lines(body: BodyChange) -> list[str]:
    """The first lines that are different, as a diff shows them."""
    return [f"{mark} {harmless(text)}" for mark, text in (("-", body.source_before), ("+", body.source_after)) if text]


def by_sort(changed: Sequence[ChangedSymbol]) -> Iterator[tuple[str, list[ChangedSymbol]]]:
    """The changed symbols under the heading of their sort."""
    for sort, title in HEADINGS.items():
        found = [each for each in changed if each.sort_of_change == sort]
        if found:
            yield title, found
