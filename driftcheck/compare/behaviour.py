"""What is different about the symbols that a client couples to and goes on fitting."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from driftcheck.compare.annotations import types_differ
from driftcheck.compare.bodies import SaidEnd, announced_ends, body_change
from driftcheck.compare.couplings import Coupling
from driftcheck.compare.deprecation import ending_release, without_releases
from driftcheck.compare.standing import Standings
from driftcheck.compare.standing_changes import is_part_of, standing_changes
from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.symbol_history import Standing, SymbolChange, SymbolChangeKind
from driftcheck.symbol_upgrade import (
    DEPRECATIONS,
    SORTS_OF_CHANGE,
    BodyChange,
    ChangedSymbol,
    OtherSymbol,
    Role,
    SourcePlace,
    Use,
)

# Whose body runs, or would run if the client had nothing of its own in its place.
_RUNNING: frozenset[Role] = frozenset(("call", "super", "override", "patch", "attribute"))
# Who has its own version of a signature has to keep up with all of it.
_IN_PLACE: frozenset[Role] = frozenset(("override", "patch"))
_CALLING: frozenset[Role] = frozenset(("call", "super"))
_OF_VALUES: frozenset[Role] = frozenset(("attribute", "import", "variable", "override", "patch"))

_SIGNATURES: frozenset[SymbolChangeKind] = frozenset((
    "parameter-added",
    "parameter-removed",
    "parameter-renamed",
    "parameter-required",
    "parameter-optional",
    "default-changed",
    "kind-changed",
    "annotation-changed",
    "order-changed",
    "returns-changed",
))  # fmt: skip
# What no finding tells, since a call or an override fits all the same.
_TOLD_HERE: frozenset[SymbolChangeKind] = frozenset(("default-changed",))
# These tell nothing but which release it is.
_NUMBERS_OF_RELEASES = (".__version__", ".__version_tuple__")
_TOO_DEEP = "its sources are nested too deeply"


@dataclass(slots=True)
class _Symbol:
    """All couplings to one thing, which several paths may lead to."""

    standing: Standing
    before: Standing
    couplings: list[Coupling] = field(default_factory=list)
    changes: dict[SymbolChange, None] = field(default_factory=dict)

    @property
    def roles(self) -> set[Role]:
        return {coupling.use.role for coupling in self.couplings}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The symbols that changed, those that did not, and those that could not be compared.

    Those with findings are among none of these: `broken` has what is said of them besides, changed or not.
    """

    changed: tuple[ChangedSymbol, ...]
    unchanged: tuple[OtherSymbol, ...]
    uncompared: tuple[OtherSymbol, ...]
    broken: Mapping[str, ChangedSymbol] = field(default_factory=dict)


def behaviour(
    couplings: Sequence[Coupling], target: Standings, earlier: Standings, broken: Collection[str]
) -> Behaviour:
    """What both releases say of all that the client couples to.

    `broken` are the symbols with findings, which say already what is different in what these take.
    """
    symbols, uncompared = _symbols(couplings, target, earlier)
    changed: list[ChangedSymbol] = []
    unchanged: list[OtherSymbol] = []
    besides: dict[str, ChangedSymbol] = {}
    for name, symbol in symbols.items():
        try:
            body, announced = _body(symbol, target, earlier)
        except RecursionError:
            uncompared.setdefault((name, _TOO_DEEP), []).extend(symbol.couplings)
            continue
        changes = list(dict.fromkeys([*symbol.changes, *announced]))
        if name in broken:
            changes = [change for change in changes if change.kind not in _SIGNATURES or change.kind in _TOLD_HERE]
        told = _told(name, symbol, changes, body)
        if name in broken:
            besides[name] = told
        elif changes or body is not None:
            changed.append(told)
        else:
            unchanged.append(OtherSymbol(name, len(told.uses)))
    for name, reason in [key for key in uncompared if key[0] in broken]:
        uses = _uses(uncompared.pop((name, reason)))
        besides.setdefault(name, ChangedSymbol(name, name, "", uses, None, None))
    return Behaviour(
        tuple(sorted(changed, key=urgency)),
        tuple(sorted(unchanged)),
        tuple(sorted(OtherSymbol(name, len(_uses(found)), reason) for (name, reason), found in uncompared.items())),
        besides,
    )


def _told(name: str, symbol: _Symbol, changes: Iterable[SymbolChange], body: BodyChange | None) -> ChangedSymbol:
    """What is said of one symbol: where it stands in both releases, where it is used, and what is different."""
    return ChangedSymbol(
        name,
        symbol.before.symbol or name,
        symbol.standing.sort,
        _uses(symbol.couplings),
        _place(symbol.before),
        _place(symbol.standing),
        tuple(changes),
        body,
    )


def urgency(changed: ChangedSymbol) -> tuple[int, float, str]:
    """What comes first is smaller: by sort of change, then by the share of a body that is different, times its uses."""
    share = changed.body.share if changed.body is not None else 0.0
    return SORTS_OF_CHANGE.index(changed.sort_of_change), -share * len(changed.uses), changed.symbol


def _symbols(
    couplings: Sequence[Coupling], target: Standings, earlier: Standings
) -> tuple[dict[str, _Symbol], dict[tuple[str, str], list[Coupling]]]:
    """What the couplings lead to, by where it is defined, and what could not be compared, with the reason."""
    symbols: dict[str, _Symbol] = {}
    uncompared: dict[tuple[str, str], list[Coupling]] = {}
    by_path: dict[tuple[str, str], list[Coupling]] = {}
    for coupling in couplings:
        by_path.setdefault((coupling.symbol, coupling.before), []).append(coupling)
    for (path, path_before), found in by_path.items():
        now, was = _standing(target, path), _standing(earlier, path_before)
        unknown = next((each for each in (now, was) if each.status != "there"), None)
        if unknown is not None:
            uncompared.setdefault((path, unknown.reason or "it can't be told what it is"), []).extend(found)
            continue
        symbol = symbols.setdefault(_defined_at(now, path, target), _Symbol(now, was))
        symbol.couplings += found
        for change in _relevant(now, was, found):
            symbol.changes[change] = None
    return symbols, uncompared


def _defined_at(standing: Standing, path: str, standings: Standings) -> str:
    """Where a thing is defined, for a constructor that a class inherits the one that it inherits."""
    if standing.sort == "constructor" and (written := standings.function(standing.symbol)) is not None:
        return written.symbol if written.name == "__init__" else standing.symbol
    return standing.symbol or path


def _standing(standings: Standings, path: str) -> Standing:
    try:
        return standings.of(path)
    except RecursionError:
        return Standing("unknown", reason=_TOO_DEEP)


def _relevant(now: Standing, was: Standing, couplings: Sequence[Coupling]) -> Iterator[SymbolChange]:
    """The changes that concern who uses the symbol in these ways."""
    roles = {coupling.use.role for coupling in couplings}
    for change in standing_changes(was, now):
        if change.kind in DEPRECATIONS:
            yield change
        elif change.kind == "defined-elsewhere":
            if _is_left_behind(was, now, couplings):
                yield change
        elif change.kind == "bases-changed":
            if "base" in roles:
                yield change
        elif change.kind == "value-changed":
            value = _value(change)
            if roles & _OF_VALUES and value is not None and not now.symbol.endswith(_NUMBERS_OF_RELEASES):
                yield value
        elif change.kind in _SIGNATURES:
            is_met = _is_met(change, couplings, is_field=now.signature is None)
            if is_met or roles & _IN_PLACE or _is_new_part(change, now, roles):
                yield change


def _is_left_behind(was: Standing, now: Standing, couplings: Iterable[Coupling]) -> bool:
    """True where the client imports a thing from what was its home, or by what was its name, and is no longer."""
    is_renamed = was.symbol.rpartition(".")[2] != now.symbol.rpartition(".")[2]
    imported = [coupling for coupling in couplings if coupling.use.role == "import"]
    return any(is_renamed or coupling.before == was.symbol for coupling in imported)


def _is_new_part(change: SymbolChange, now: Standing, roles: Collection[Role]) -> bool:
    """True for a new part of objects that the client makes for the target, which goes on without it."""
    return change.kind == "parameter-added" and now.sort == "constructor" and "call" in roles


def _value(change: SymbolChange) -> SymbolChange | None:
    """The change of a value without its declared type; None where that alone is different, or values are left out."""
    before, after = ((text or "").rpartition("= ")[2] for text in (change.before, change.after))
    return replace(change, before=before, after=after) if before != after and "…" not in (before, after) else None


def _is_met(change: SymbolChange, couplings: Iterable[Coupling], *, is_field: bool) -> bool:
    """True where the client relies on what changed: on a value it reads, a default it leaves, or the type it gives."""
    if is_field:
        is_read = any(coupling.use.role in _OF_VALUES for coupling in couplings)
        return is_read and (change.kind != "annotation-changed" or not is_part_of(change.after, change.before))
    calls = [coupling for coupling in couplings if coupling.use.role in _CALLING]
    if change.kind == "returns-changed":
        is_told = change.before is not None and change.after is not None
        return bool(calls) and is_told and not is_part_of(change.after, change.before)
    if change.kind == "default-changed":
        return any(coupling.given is not None and change.name not in coupling.given for coupling in calls)
    if change.kind == "annotation-changed":
        is_given = any(coupling.given is not None and change.name in coupling.given for coupling in calls)
        return is_given and types_differ(change.before, change.after)
    return False


def _body(symbol: _Symbol, target: Standings, earlier: Standings) -> tuple[BodyChange | None, list[SymbolChange]]:
    """What is different in what runs, and what it newly announces."""
    if not symbol.roles & _RUNNING:
        return None, []
    path, path_before = symbol.standing.symbol, symbol.before.symbol
    if not path or not path_before:
        return None, []
    now, was = target.function(path), earlier.function(path_before)
    if now is None or was is None:
        return None, []
    return body_change(was, now), list(_announced(was, now, symbol.couplings))


def _announced(
    before: FunctionDeclaration, after: FunctionDeclaration, couplings: Sequence[Coupling]
) -> Iterator[SymbolChange]:
    """The ends that a function newly tells of, or tells of for another release, as far as the client meets them."""
    known = {without_releases(each.text): ending_release(each.text) for each in announced_ends(before)}
    for end in announced_ends(after):
        if not _is_told_to(end, couplings):
            continue
        said, release = without_releases(end.text), ending_release(end.text)
        if said not in known:
            kind: SymbolChangeKind = "deprecated" if end.parameter or end.is_always else "deprecated-in-part"
            text = " ".join(end.text.split())
            yield SymbolChange(kind, end.parameter, after=text, is_required=end.is_left_out)
        elif known[said] != release:
            yield SymbolChange("deprecation-changed", end.parameter, before=known[said], after=release)


def _is_told_to(end: SaidEnd, couplings: Iterable[Coupling]) -> bool:
    """True where the client may meet what a function says of a parameter: all its uses are not calls that do not."""
    return not end.parameter or any(
        coupling.given is None or (end.parameter in coupling.given) is not end.is_left_out
        for coupling in couplings
        if coupling.use.role != "import"
    )


def _uses(couplings: Iterable[Coupling]) -> tuple[Use, ...]:
    """The places, each once: that a method is there and that it is called are two usages of one line.

    Imports count only where nothing else does.
    """
    found: dict[tuple[str, int, Role], Use] = {}
    for coupling in sorted(couplings, key=lambda each: each.use):
        use = coupling.use
        found.setdefault((use.location.path, use.location.line, use.role), use)
    uses = tuple(found.values())
    return tuple(use for use in uses if use.role != "import") or uses


def _place(standing: Standing) -> SourcePlace | None:
    return SourcePlace(standing.path, standing.line or 1) if standing.path is not None else None
