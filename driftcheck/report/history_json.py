"""The history of a symbol for programs."""

from __future__ import annotations

from collections.abc import Sequence

from driftcheck.report.history_text import sentences
from driftcheck.report.json_report import SCHEMA_VERSION, Json, json_text
from driftcheck.symbol_history import ReleaseChanges, Standing, Stretch, SymbolChange, SymbolHistory


def render_history_json(history: SymbolHistory) -> str:
    """The history as one object, ASCII throughout: a program reads `kind`, a person `text`."""
    document: Json = {
        "schema": SCHEMA_VERSION,
        "target": history.target,
        "symbol": history.symbol,
        "releases": list(history.releases),
        "changes": [_entry(entry, history) for entry in history.changes],
        "there": _stretches(history.there),
        "parameters": [
            {"name": life.name, "there": _stretches(life.there), "required": _stretches(life.required)}
            for life in history.parameters
        ],
        "latest": {**_standing(history.latest), "place": history.place},
        "unread": [{"release": each.release, "reason": each.reason} for each in history.unread],
    }
    return json_text(document)


def _entry(entry: ReleaseChanges, history: SymbolHistory) -> dict[str, Json]:
    said = sentences(entry, history)
    return {
        "release": entry.release,
        "unread_before": list(entry.unread),
        "standing": _standing(entry.standing),
        "changes": [change_json(change, text) for change, text in zip(entry.changes, said, strict=False)],
    }


def change_json(change: SymbolChange, text: str) -> dict[str, Json]:
    """A change of a symbol as one object, with what a person reads of it."""
    return {
        "kind": change.kind,
        "parameter": change.name or None,
        "before": change.before,
        "after": change.after,
        "in_front_of": change.in_front_of or None,
        "text": text,
    }


def _standing(standing: Standing) -> dict[str, Json]:
    return {
        "status": standing.status,
        "sort": standing.sort or None,
        "symbol": standing.symbol or None,
        "path": standing.path,
        "line": standing.line,
        "signature": None if standing.signature is None else str(standing.signature),
        "field": None if standing.field is None else str(standing.field),
        "deprecation": standing.deprecation,
        "reason": standing.reason or None,
    }


def _stretches(stretches: Sequence[Stretch]) -> list[Json]:
    return [{"first": stretch.first, "last": stretch.last} for stretch in stretches]
