"""One change of a symbol in words, for the history of a symbol and for an upgrade."""

from __future__ import annotations

from driftcheck.report.harmless import harmless
from driftcheck.symbol_history import SymbolChange

_LONGEST_SOURCE = 300
_SAYING = {
    "default-changed": "the default of {name} is {after} instead of {before}",
    "kind-changed": "{name} is {after} instead of {before}",
    "parameter-removed": "no longer takes {before}",
    "parameter-renamed": "{before} is called {after}",
    "value-changed": "is {after} instead of {before}",
}
# What a single field or variable is among its own changes needs no name.
_SAYING_OF_FIELD = {
    "default-changed": "the default is {after} instead of {before}",
    "parameter-required": "has to be given now; the default was {before}",
    "parameter-optional": "may be left out now; the default is {after}",
}
_NOTHING = "nothing"
_MOST_NAMES = 8


def change_sentence(change: SymbolChange, sort: str, *, has_field: bool) -> str:
    """A change of a symbol of this sort, its place apart; `has_field` where the symbol is a single field."""
    before, after = shown_source(change.before), shown_source(change.after)
    match change.kind:
        case "deprecated":
            said = f"deprecated: {after}" if change.after else "deprecated"
            if not change.name:
                return said
            return (
                f"leaving {harmless(change.name)} out is {said}" if change.is_required else f"{change.name} is {said}"
            )
        case "deprecated-in-part":
            return f"warns in some cases: {after}"
        case "deprecation-lifted":
            return "no longer deprecated"
        case "deprecation-changed":
            if change.after is None:
                return f"its end is no longer announced for {before}"
            return f"its end is announced for {after}" + (f" instead of {before}" if change.before else "")
        case "parameter-added":
            required = ", which calls have to give" if change.is_required else ""
            front = f", in front of {harmless(change.in_front_of)}" if change.in_front_of else ""
            return f"takes a new parameter {after}{front}{required}"
        case "order-changed":
            verb = "stand" if ", " in change.name else "stands"
            named = f"{harmless(change.name)} {verb} elsewhere among the positional parameters"
            return f"{named}, which are now {after}" if after.count(",") < _MOST_NAMES else named
        case "sort-changed":
            return f"is now {_a(after)}, was {_a(before)}"
        case "bases-changed":
            return f"derives from {after if change.after else _NOTHING} instead of {before or _NOTHING}"
        case "annotation-changed":
            return _declared(change, "" if has_field else f"{harmless(change.name)} ", before, after)
        case "returns-changed":
            return _declared(change, "the result ", before, after)
        case "parameter-required" if not has_field:
            return f"{harmless(change.name)} has to be given now; its default was {before}"
        case "parameter-optional" if not has_field:
            return f"{harmless(change.name)} may be left out now; its default is {after}"
        case "value-changed" if sort == "environment variable":
            return f"is read as {after or _NOTHING} instead of {before or _NOTHING}"
        case _:
            saying = (_SAYING_OF_FIELD if has_field else {}).get(change.kind) or _SAYING[change.kind]
            return saying.format(name=harmless(change.name), before=before or _NOTHING, after=after or _NOTHING)


def shown_source(text: str | None) -> str:
    """Source text, or what a release says of itself, as far as a report has room for it; "" for None."""
    return "" if text is None else harmless(text, _LONGEST_SOURCE)


def _declared(change: SymbolChange, subject: str, before: str, after: str) -> str:
    if change.before is None:
        return f"{subject}is declared as {after}"
    if change.after is None:
        return f"{subject}is no longer declared, was {before}"
    return f"{subject}is declared as {after} instead of {before}"


def _a(sort: str) -> str:
    return f"{'an' if sort[:1] in 'aeiou' else 'a'} {sort}"
