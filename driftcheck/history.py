"""The history of one symbol: every release is asked what it is there, and the answers are compared in a row."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.progress import UNWATCHED, Progress
from driftcheck.symbol_history import (
    ParameterLife,
    ReleaseChanges,
    Standing,
    Stretch,
    SymbolChange,
    SymbolHistory,
    UnreadRelease,
)

if TYPE_CHECKING:
    from driftcheck.compare.standing import Standings
    from driftcheck.knowledge import Environment
    from driftcheck.model import Parameter
    from driftcheck.surface.declarations import Binding
    from driftcheck.surface.program import Program
    from driftcheck.tree import SourceTree

_EVERY_RELEASE = ">=0"
_LONGEST_SYMBOL = 500
_MOST_NAMES = 6
# Two modules of one name are the same where so much of what both offer is the same.
_MODULE_LIKENESS = 0.5


@dataclass(frozen=True, slots=True)
class ReadableRelease:
    """A release by its version, and how its sources are had; `tree` raises DriftcheckError where they can't be."""

    version: str
    tree: Callable[[], SourceTree]


@dataclass(frozen=True, slots=True)
class _Record:
    """One release: what stands at the path that was asked for, and the thing itself, with the path that leads to it."""

    release: str
    asked: Standing
    thing: Standing
    place: str
    unread: tuple[str, ...]


def history(
    symbol: str,
    releases: str | None = None,
    *,
    offline: bool = False,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> SymbolHistory:
    """The history of a dotted path, or an environment variable, over the index's releases in a range, or over all.

    Raises DriftcheckError where no release can be read, or none has the symbol.
    """
    from driftcheck.audit import DEFAULT_TARGET, releases_in
    from driftcheck.fetching import Fetching
    from driftcheck.origins.select import target_tree
    from driftcheck.origins.settings import Settings

    symbol = checked_symbol(symbol)
    progress = progress or UNWATCHED
    settings = Settings(offline=offline, timeout=timeout, progress=Fetching(progress))
    try:
        wanted = releases_in(_EVERY_RELEASE if releases is None else releases, offline=offline)
    except DriftcheckError as error:
        if not offline or releases is not None:
            raise
        raise DriftcheckError(
            f"no release of {DEFAULT_TARGET} is cached; without --offline the index is asked"
        ) from error

    def release(specification: str) -> ReadableRelease:
        version = specification.partition("==")[2]
        return ReadableRelease(version, lambda: target_tree(specification, settings=settings))

    def others() -> list[ReadableRelease]:
        every = releases_in(_EVERY_RELEASE, offline=offline) if releases is not None else wanted
        return [release(each) for each in reversed(every) if each not in wanted]

    return history_over(symbol, DEFAULT_TARGET, [release(each) for each in reversed(wanted)], progress, others)


def checked_symbol(symbol: str) -> str:
    """The symbol as a dotted path; raises DriftcheckError for what can be none."""
    path = symbol.strip().replace(":", ".")
    if len(path) > _LONGEST_SYMBOL or not all(part.isidentifier() for part in path.split(".")):
        shown = symbol if len(symbol) <= 80 else f"{symbol[:80]}…"
        raise DriftcheckError(f"{shown!r} is no dotted path; write vllm.LLM.generate or VLLM_PLUGINS for example")
    return path


def history_over(
    symbol: str,
    target: str,
    releases: Sequence[ReadableRelease],
    progress: Progress = UNWATCHED,
    others: Callable[[], Sequence[ReadableRelease]] = tuple,
) -> SymbolHistory:
    """The history over releases that are at hand, oldest first; raises DriftcheckError where none has the symbol.

    A name that is no whole path is looked up in the newest release that has it. `others` gives the target's other
    releases, oldest first, which are asked for a symbol that none of the releases has.
    """
    from driftcheck.knowledge import knowledge_of

    knowledge = knowledge_of([target])
    environment = knowledge.environment if knowledge is not None else None
    top = symbol.partition(".")[0]
    is_variable = environment is not None and top == symbol and symbol.startswith(environment.prefix)
    if top != target and not is_variable:
        symbol = _whole_path(symbol, target, [*others(), *releases], environment)
    with progress.task(f"Reading {len(releases)} releases of {target}", len(releases)) as task:
        reading = _Reading(symbol, environment, task.advance)
        records = reading.records(releases)
    if not records:
        first = next(iter(reading.unread.values()))
        raise DriftcheckError(f"no release of {target} can be read: {first}")
    if all(record.thing.status == "absent" for record in records):
        elsewhere = _elsewhere_in_time(symbol, target, records, others(), environment)
        raise DriftcheckError(elsewhere or _nowhere(symbol, target, records))
    return _summed_up(symbol, target, records, reading.unread)


def _whole_path(name: str, target: str, releases: Sequence[ReadableRelease], environment: Environment | None) -> str:
    """The path that a name stands for in the last of these releases that has it.

    Raises DriftcheckError where it stands for none, or for several.
    """
    from driftcheck.compare.full_names import full_names

    for release in reversed(releases):
        standings = _standings_of(release, environment)
        found = full_names(name, target, standings) if standings is not None else []
        if len(found) == 1:
            return found[0]
        if found:
            more = f" and {len(found) - _MOST_NAMES:,} more" if len(found) > _MOST_NAMES else ""
            names = ", ".join(found[:_MOST_NAMES])
            raise DriftcheckError(
                f"{name} is {len(found):,} things in {target} {release.version}: {names}{more}; name one"
            )
    variable = f" or {environment.prefix}…" if environment is not None else ""
    raise DriftcheckError(f"{name} is not part of {target}: a symbol begins with {target}.{variable}")


def _elsewhere_in_time(
    symbol: str,
    target: str,
    records: Sequence[_Record],
    others: Sequence[ReadableRelease],
    environment: Environment | None,
) -> str:
    """Says that a symbol was gone before the releases that were asked about, or came after them; "" for neither."""
    from driftcheck.origins.names import is_older

    first, last = records[0].release, records[-1].release
    earlier = [each for each in others if is_older(each.version, first)]
    asked = [(each, "last") for each in reversed(earlier)]
    asked += [(each, "first") for each in others if each not in earlier]
    for release, word in asked:
        standings = _standings_of(release, environment)
        if standings is not None and standings.of(symbol).status == "there":
            where = first if first == last else f"any release from {first} to {last}"
            return f"{symbol} is not in {where}: {target} {release.version} is the {word} that has it"
    return ""


def _standings_of(release: ReadableRelease, environment: Environment | None) -> Standings | None:
    """One release to be asked about symbols; None where it can't be read."""
    from driftcheck.compare.standing import Standings
    from driftcheck.surface.program import Program

    gc.collect()
    try:
        return Standings(Program(release.tree()), environment)
    except DriftcheckError:
        return None


def _nowhere(symbol: str, target: str, records: Sequence[_Record]) -> str:
    newest = next((record for record in reversed(records) if record.asked.near), None)
    meant = f": did you mean {newest.asked.near[0]} (in {newest.release})?" if newest is not None else ""
    first, last = records[0].release, records[-1].release
    where = f"{target} {first}" if first == last else f"any release of {target} from {first} to {last}"
    return f"{symbol} is not in {where}{meant}"


class _Reading:
    """Asks one release after the other; of those asked before only the last tree is kept."""

    def __init__(self, symbol: str, environment: Environment | None, advance: Callable[[], None]) -> None:
        self.symbol = symbol
        self.environment = environment
        self.advance = advance
        self.unread: dict[str, str] = {}

    def records(self, releases: Sequence[ReadableRelease]) -> list[_Record]:
        """What each release that can be read says, oldest first."""
        return self._followed(self.symbol, releases)

    def _followed(self, symbol: str, releases: Sequence[ReadableRelease]) -> list[_Record]:
        records: list[_Record] = []
        pending: list[str] = []
        previous: SourceTree | None = None
        for number, release in enumerate(releases):
            if symbol == self.symbol:
                self.advance()
            if release.version in self.unread:
                pending.append(release.version)
                continue
            try:
                tree = release.tree()
                record, origin = self._asked(symbol, release.version, tree, records, previous)
            except (DriftcheckError, RecursionError) as error:
                reason = str(error) if isinstance(error, DriftcheckError) else "its sources are nested too deeply"
                self.unread[release.version] = reason
                pending.append(release.version)
                continue
            finally:
                # Syntax trees refer to each other: without this they stay.
                gc.collect()
            if origin is not None:
                # What was somewhere else until now is followed there, over the releases before this one.
                there = {record.release: record for record in self._followed(origin, releases[:number])}
                records = [replace(there.get(own.release, own), asked=own.asked) for own in records]
            records.append(replace(record, unread=tuple(pending)))
            pending = []
            previous = tree
        return records

    def _asked(
        self, symbol: str, version: str, tree: SourceTree, records: Sequence[_Record], previous: SourceTree | None
    ) -> tuple[_Record, str | None]:
        """What the release says; and for what it has anew the path where the release before had it."""
        from driftcheck.compare.standing import Standings
        from driftcheck.surface.program import Program

        program = Program(tree)
        standings = Standings(program, self.environment)
        asked = standings.of(symbol)
        thing, place = asked, symbol
        last = next((record for record in reversed(records) if record.thing.status != "unknown"), None)
        origin: str | None = None
        if standings.variable(symbol) is not None or previous is None or last is None:
            return _Record(version, asked, thing, place, ()), None
        is_opaque = asked.status == "there" and not asked.symbol
        if last.thing.status == "there" and (asked.status == "absent" or is_opaque):
            found = self._elsewhere(symbol, standings, program, last, previous)
            if found is not None:
                thing, place = found
                if is_opaque:
                    place = symbol
                    thing = replace(thing, deprecation=asked.deprecation)
        elif last.thing.status == "absent" and asked.status == "there":
            origin = _new_home(symbol, Program(previous), program)
        return _Record(version, asked, thing, place, ()), origin

    def _elsewhere(
        self, symbol: str, standings: Standings, program: Program, last: _Record, previous: SourceTree
    ) -> tuple[Standing, str] | None:
        """Where the thing is to be found now that its path does not lead to it any more."""
        from driftcheck.surface.program import Program

        if last.place != symbol:
            standing = standings.of(last.place)
            if standing.status == "there":
                return standing, last.place
        home = _new_home(last.place, program, Program(previous))
        for place in (home, last.thing.symbol):
            if place:
                standing = standings.of(place)
                if standing.status == "there" and standing.symbol:
                    return standing, place
        return None


def _new_home(symbol: str, program: Program, other: Program) -> str | None:
    """The path of what `other` has under `symbol`, in a program that has it somewhere else; None where it has it not.

    Only where nothing else could be meant: one thing of that name, which `other` does not have as well.
    """
    from driftcheck.compare.relocation import Relocation

    parts = symbol.split(".")
    count = next((count for count in range(len(parts), 0, -1) if other.has_module(".".join(parts[:count]))), 0)
    if count == len(parts):
        return _module_home(symbol, program, other)
    if not count:
        return None
    module, name, rest = ".".join(parts[:count]), parts[count], parts[count + 1 :]
    home = Relocation(program, other).home(module, name)
    if home is None or home.likeness > 1 or not home.is_only or home.module == module:
        return None
    return ".".join([home.module, home.name, *rest])


def _module_home(name: str, program: Program, other: Program) -> str | None:
    """The module of the same last name that `other` lacks and that offers much the same; None unless it is one."""
    leaf = name.rpartition(".")[2]
    module = other.module(name)
    offered = _offered(module.names) if module is not None else set()
    if not offered:
        return None
    found: list[str] = []
    for candidate in sorted(program.target_index.sources):
        if candidate.rpartition(".")[2] != leaf or other.has_module(candidate):
            continue
        declared = program.module(candidate)
        names = _offered(declared.names) if declared is not None else set()
        if len(names & offered) >= _MODULE_LIKENESS * len(names | offered):
            found.append(candidate)
    return found[0] if len(found) == 1 else None


def _offered(names: dict[str, list[Binding]]) -> set[str]:
    return {name for name, bindings in names.items() if any(each.function or each.class_ for each in bindings)}


# What the records come to


def _summed_up(symbol: str, target: str, records: list[_Record], unread: dict[str, str]) -> SymbolHistory:
    last = records[-1]
    return SymbolHistory(
        target=target,
        symbol=symbol,
        releases=tuple(record.release for record in records),
        changes=tuple(_changes(symbol, records)),
        there=_stretches(records, [record.asked.status == "there" for record in records]),
        parameters=tuple(_lives(records)),
        latest=last.thing if last.asked.status == "absent" and last.thing.status == "there" else last.asked,
        place=last.place if last.thing.status == "there" else None,
        unread=tuple(UnreadRelease(release, reason) for release, reason in unread.items()),
    )


def _changes(symbol: str, records: Sequence[_Record]) -> Iterator[ReleaseChanges]:
    known: _Record | None = None
    before: _Record | None = None
    was_there = False
    for record in records:
        changes = tuple(_step(symbol, before, known, record, was_there=was_there))
        unread = () if before is None else record.unread
        if before is not None and before.thing.status == "unknown" and known is not None:
            unread = (*(each.release for each in _unknown_before(records, record)), *unread)
        if changes:
            yield ReleaseChanges(record.release, changes, record.thing, unread)
        was_there = was_there or record.thing.status == "there"
        before = record
        if record.thing.status != "unknown":
            known = record


def _unknown_before(records: Sequence[_Record], record: _Record) -> list[_Record]:
    """The records right before one of which nothing could be told, oldest first."""
    found: list[_Record] = []
    for earlier in reversed(records[: list(records).index(record)]):
        if earlier.thing.status != "unknown":
            break
        found.insert(0, earlier)
    return found


def _step(
    symbol: str, before: _Record | None, known: _Record | None, record: _Record, *, was_there: bool
) -> Iterator[SymbolChange]:
    """What changed with a release: against the one before, or the last of which something is known."""
    from driftcheck.compare.standing_changes import standing_changes

    thing = record.thing
    if thing.status == "unknown":
        if before is None or before.thing.status != "unknown":
            yield SymbolChange("unknown", after=thing.reason)
        return
    if thing.status == "absent":
        if known is not None and known.thing.status == "there":
            yield SymbolChange("removed", before=known.place)
        return
    if known is None or known.thing.status == "absent":
        if known is None:
            yield SymbolChange("first-seen", after=record.place)
        else:
            yield SymbolChange("returned" if was_there else "added", after=record.place)
        if thing.deprecation is not None:
            yield from standing_changes(replace(thing, deprecation=None), thing)
        return
    moved = known.place != record.place
    if moved:
        is_here = record.place == symbol
        yield SymbolChange("moved-here" if is_here else "moved-away", before=known.place, after=record.place)
    for change in standing_changes(known.thing, thing):
        # A move says both: where it is defined now, and that the old path's warning is left behind.
        if not moved or change.kind not in ("defined-elsewhere", "deprecation-lifted"):
            yield change


def _stretches(records: Sequence[_Record], holds: Sequence[bool]) -> tuple[Stretch, ...]:
    """The releases in a row for which something holds."""
    found: list[Stretch] = []
    start: int | None = None
    for number, value in enumerate([*holds, False]):
        if value and start is None:
            start = number
        elif not value and start is not None:
            last = number - 1
            first, end = records[start].release, records[last].release
            found.append(Stretch(first, end, start == 0, last == len(records) - 1))
            start = None
    return tuple(found)


def _lives(records: Sequence[_Record]) -> Iterator[ParameterLife]:
    """The lives of the parameters that were not there, or not required, in all releases that have a signature."""
    signatures = [record.thing.signature for record in records]
    names = {each.name: _starred(each) for signature in signatures if signature for each in signature.parameters}
    for name, shown in names.items():
        found = [signature.parameter(name) if signature is not None else None for signature in signatures]
        states = {
            (parameter is not None, parameter is not None and parameter.is_required)
            for parameter, signature in zip(found, signatures, strict=True)
            if signature is not None
        }
        if len(states) > 1:
            yield ParameterLife(
                shown,
                _stretches(records, [each is not None for each in found]),
                _stretches(records, [each is not None and each.is_required for each in found]),
            )


def _starred(parameter: Parameter) -> str:
    return str(replace(parameter, annotation=None, default=None))
