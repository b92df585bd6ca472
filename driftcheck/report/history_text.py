"""The history of a symbol in words: what changed with which release, and from when to when what was there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driftcheck.report.change_words import change_sentence, shown_source
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import cells, counted, listed, wrap
from driftcheck.symbol_history import ReleaseChanges, Standing, Stretch, SymbolChange, SymbolHistory

_NARROWEST = 40


def render_history(history: SymbolHistory, *, width: int = 100) -> str:
    """The history as text of at most `width` columns, where words allow it."""
    width = max(width, _NARROWEST)
    return "".join(f"{line}\n" for line in _lines(history, width))


def _lines(history: SymbolHistory, width: int) -> Iterator[str]:
    yield harmless(history.symbol)
    yield f"in {scope(history)}"
    yield ""
    column = max((len(each.release) for each in history.changes), default=0)
    for entry in history.changes:
        margin = harmless(entry.release).ljust(column)
        for said in sentences(entry, history):
            yield from _wrapped(margin, said, width)
            margin = " " * column
    rows = [(harmless(life.name), parameter_sentence(history, life.name)) for life in history.parameters]
    if rows:
        yield ""
        yield "parameters that came, went, or were required for a time:"
        widest = max(cells(name) for name, _ in rows)
        for name, said in rows:
            yield from _wrapped(f"  {name}{' ' * (widest - cells(name))}", said, width)
    yield ""
    for said in summary_sentences(history):
        yield from wrap(said, width)


def _wrapped(margin: str, said: str, width: int) -> Iterator[str]:
    indent = cells(margin) + 2
    first, *others = wrap(said, max(width - indent, _NARROWEST // 2))
    yield f"{margin}  {first}"
    yield from (f"{' ' * indent}  {line}" for line in others)


def scope(history: SymbolHistory) -> str:
    """Which releases were read: `35 releases of vllm, 0.11.0 to 0.33.0`."""
    releases = history.releases
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
    return f"{counted(len(releases), 'release')} of {history.target}, {span}"


def sentences(entry: ReleaseChanges, history: SymbolHistory) -> Iterator[str]:
    """What changed with a release, a sentence a change; then which releases before it hide when exactly."""
    has_field = entry.standing.field is not None
    for change in entry.changes:
        yield harmless(_said(change, entry.standing, history, has_field=has_field))
    if entry.unread:
        yield f"(or before that: of {listed(map(harmless, entry.unread))} nothing is known)"


def _said(change: SymbolChange, standing: Standing, history: SymbolHistory, *, has_field: bool) -> str:
    before, after = shown_source(change.before), shown_source(change.after)
    match change.kind:
        case "first-seen":
            return f"there already: {_described(standing, history, change)}"
        case "added":
            return f"added: {_described(standing, history, change)}"
        case "returned":
            return f"there again: {_described(standing, history, change)}"
        case "removed":
            return "gone" if change.before == history.symbol else f"gone from {before}, too"
        case "unknown":
            return f"can't be told: {after}"
        case "moved-away":
            if change.before != history.symbol:
                return f"moved from {before} to {after}"
            return f"moved to {after}; this path no longer leads to it"
        case "moved-here":
            return f"moved here from {before}"
        case "defined-elsewhere" if standing.sort == "environment variable":
            if "." in after:
                return f"listed in {_home(after)} now"
            return f"no longer listed in {_home(before)}, only read ({standing.path}:{standing.line})"
        case "defined-elsewhere":
            return f"defined in {_home(after)} now, no longer in {_home(before)}; this path still leads to it"
        case _:
            return change_sentence(change, standing.sort, has_field=has_field)


def _described(standing: Standing, history: SymbolHistory, change: SymbolChange) -> str:
    """A thing in few words: its sort, how it is called or what it holds, and where it is."""
    text = standing.sort or "name"
    name = history.symbol.removesuffix(".__init__").rpartition(".")[2]
    if standing.signature is not None:
        text += f" {name}{standing.signature}"
    elif standing.field is not None:
        text += f" {standing.field}"
    elif standing.value:
        text += f" {name} {standing.value}"
    if change.after is not None and change.after != history.symbol:
        text += f", as {change.after}"
    elif standing.symbol and standing.sort != "environment variable" and standing.symbol != history.symbol:
        text += f", defined in {_home(standing.symbol)}"
    return text if standing.path is None else f"{text} ({standing.path}:{standing.line})"


def _home(symbol: str) -> str:
    return symbol.removesuffix(".__init__").rpartition(".")[0] or symbol


# From when to when


def summary_sentences(history: SymbolHistory) -> Iterator[str]:
    """Where it stands in the newest release that was read, and of which releases nothing is known."""
    yield harmless(_summary(history))
    latest = history.latest
    if latest.status != "absent" and latest.deprecation is not None:
        yield f"It is deprecated in {harmless(history.releases[-1])}."
    for unread in history.unread:
        yield f"{harmless(unread.release)} can't be read: {harmless(unread.reason)}"


def _summary(history: SymbolHistory) -> str:
    newest = history.releases[-1]
    if history.latest.status == "unknown":
        return f"Whether {newest} has it can't be told: {history.latest.reason}."
    elsewhere = ""
    if history.place is not None and history.place != history.symbol:
        elsewhere = f" {newest} has it as {history.place}."
    if not history.there:
        return f"No release that was read has it under this path.{elsewhere}"
    return f"There {_span(history.there)}.{elsewhere}"


def parameter_sentence(history: SymbolHistory, name: str) -> str:
    """From when to when a parameter is there, and when calls have to give it."""
    life = next(life for life in history.parameters if life.name == name)
    if not life.required:
        return _span(life.there)
    if life.required == life.there:
        return f"{_span(life.there)}, required"
    return f"{_span(life.there)}; required {_span(life.required)}"


def _span(stretches: Sequence[Stretch]) -> str:
    return listed([_stretch(stretch, is_only=len(stretches) == 1) for stretch in stretches])


def _stretch(stretch: Stretch, *, is_only: bool) -> str:
    first, last = stretch.first, stretch.last
    if stretch.is_first and stretch.is_last:
        return f"in all of them, {first} to {last}" if first != last else f"in {first}"
    if stretch.is_last:
        return f"since {first}"
    if stretch.is_first:
        return f"until {last}"
    only = " only" if is_only else ""
    return f"in {first}{only}" if first == last else f"from {first} to {last}{only}"
