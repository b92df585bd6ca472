"""What an upgrade means for clients, for programs."""

from __future__ import annotations

from collections.abc import Sequence

from driftcheck.report.history_json import change_json
from driftcheck.report.json_report import SCHEMA_VERSION, Json, finding_json, json_text, target_json
from driftcheck.report.upgrade_words import body_sentence, change_sentences
from driftcheck.symbol_upgrade import (
    BodyChange,
    BrokenSymbol,
    ChangedSymbol,
    OtherSymbol,
    SourcePlace,
    Upgrade,
    Use,
)


def render_upgrades_json(upgrades: Sequence[tuple[Upgrade, str]], *, shows_all: bool = False) -> str:
    """The upgrades as one object, ASCII throughout: a program reads `kind` and the numbers, a person `text`."""
    document: Json = {
        "schema": SCHEMA_VERSION,
        "upgrades": [_upgrade(upgrade, command, shows_all=shows_all) for upgrade, command in upgrades],
    }
    return json_text(document)


def _upgrade(upgrade: Upgrade, command: str, *, shows_all: bool) -> dict[str, Json]:
    client = upgrade.client
    document: dict[str, Json] = {
        "client": {"name": client.name, "version": client.version, "origin": client.origin},
        "from": target_json(upgrade.before),
        "to": target_json(upgrade.after),
        "fix_command": command,
        "breaking": [_broken(symbol) for symbol in upgrade.broken],
        "behavioural": [_changed(symbol) for symbol in upgrade.changed],
        "unchanged": len(upgrade.unchanged),
        "not_compared": len(upgrade.uncompared),
        "notices": list(upgrade.notices),
    }
    if shows_all:
        document["unchanged_symbols"] = [_other(symbol) for symbol in upgrade.unchanged]
        document["not_compared_symbols"] = [_other(symbol) for symbol in upgrade.uncompared]
    return document


def _broken(symbol: BrokenSymbol) -> dict[str, Json]:
    return {
        "symbol": symbol.symbol,
        "before": _place(symbol.place_before),
        "after": _place(symbol.place),
        "findings": [finding_json(finding) for finding in sorted(symbol.findings, key=lambda each: each.location)],
        "fitting": [_use(use) for use in symbol.beside.uses] if symbol.beside is not None else [],
        "besides": _difference(symbol.beside) if symbol.beside is not None and symbol.beside.is_different else None,
    }


def _changed(symbol: ChangedSymbol) -> dict[str, Json]:
    return {
        "symbol": symbol.symbol,
        "symbol_before": symbol.symbol_before,
        "sort": symbol.sort or None,
        "change": symbol.sort_of_change,
        "before": _place(symbol.place_before),
        "after": _place(symbol.place),
        "uses": [_use(use) for use in symbol.uses],
        **_difference(symbol),
    }


def _difference(symbol: ChangedSymbol) -> dict[str, Json]:
    said = change_sentences(symbol)
    return {
        "changes": [change_json(change, text) for change, text in zip(symbol.changes, said, strict=True)],
        "body": None if symbol.body is None else _body(symbol, symbol.body),
    }


def _body(symbol: ChangedSymbol, body: BodyChange) -> dict[str, Json]:
    return {
        "function": body.name,
        "statements_before": body.statements_before,
        "statements_after": body.statements_after,
        "gone": body.gone,
        "come": body.come,
        "before": _place(body.place_before),
        "after": _place(body.place_after),
        "source_before": body.source_before or None,
        "source_after": body.source_after or None,
        "text": body_sentence(symbol, body),
    }


def _use(use: Use) -> dict[str, Json]:
    return {"role": use.role, "path": use.location.path, "line": use.location.line, "scope": use.scope}


def _place(place: SourcePlace | None) -> dict[str, Json] | None:
    return None if place is None else {"path": place.path, "line": place.line}


def _other(symbol: OtherSymbol) -> dict[str, Json]:
    return {"symbol": symbol.symbol, "uses": symbol.uses, "reason": symbol.reason or None}
