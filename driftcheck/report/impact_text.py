"""What a change of the target breaks: for people as text or Markdown, for programs as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from driftcheck.model import Finding
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import SCHEMA_VERSION, Json, brief_finding_json, json_text, origin_json
from driftcheck.report.layout import cells, counted, hanging, named, sourced, wrap
from driftcheck.upstream import BrokenSymbol, ClientImpact, Impact

_HEAD = ("clients", "usages")
_MOST_WAYS = 3
_MOST_CLIENTS = 6


def render_impact(impact: Impact, *, width: int, with_places: bool = False) -> str:
    """A table by symbol, what most clients use first; with every place where asked for."""
    return "".join(f"{harmless(line)}\n" for line in _text(impact, width, with_places=with_places))


def _text(impact: Impact, width: int, *, with_places: bool) -> Iterator[str]:
    yield from wrap(_change(impact), width)
    yield _verdict(impact)
    if impact.symbols:
        yield ""
        yield f"  {_HEAD[0]}  {_HEAD[1]}  symbol"
    indent = len(_HEAD[0]) + len(_HEAD[1]) + 6
    for broken in impact.symbols:
        yield f"  {len(broken.clients):>{len(_HEAD[0])},}  {len(broken.findings):>{len(_HEAD[1])},}  {broken.symbol}"
        for said in _ways(broken):
            yield from (f"{'':{indent}}{line}" for line in wrap(said, max(width - indent, 30)))
        if not with_places:
            yield from (f"{'':{indent}}{line}" for line in wrap(f"in {_names(broken)}", max(width - indent, 30)))
            continue
        for client, findings in broken.clients:
            yield f"{'':{indent}}{_name(client)}"
            yield from (f"{'':{indent + 2}}{finding.location.place}  {finding.kind.value}" for finding in findings)
    rows = [*_clients(impact), *(("note", notice) for notice in impact.notices)]
    if rows:
        yield ""
    first = max((cells(label) for label, _ in rows), default=0)
    for label, said in rows:
        yield from hanging(f"  {label:<{first}}  ", said, indent=first + 4, width=width)


def _change(impact: Impact) -> str:
    return f"{sourced(impact.before)} to {sourced(impact.after)}, {counted(len(impact.changed), 'source file')} changed"


def _verdict(impact: Impact) -> str:
    """What it comes to, in words."""
    read = [client for client in impact.clients if client.fault is None]
    breaking = [client for client in read if client.breaks]
    if not read:
        return "no client could be read"
    if not breaking:
        return f"nothing breaks in {counted(len(read), 'client')}"
    usages = sum(len(client.breaks) for client in breaking)
    of_all = f"{len(breaking):,} of {counted(len(read), 'client')}"
    return f"{counted(usages, 'usage')} of {counted(len(impact.symbols), 'symbol')} {_break(usages)} in {of_all}"


def _break(number: int) -> str:
    return "breaks" if number == 1 else "break"


def _ways(broken: BrokenSymbol) -> Iterator[str]:
    """In which ways a symbol breaks clients, the most frequent first, each with where the target has it."""
    messages = Counter(finding.message for finding in broken.findings)
    for message, number in sorted(messages.items(), key=lambda item: (-item[1], item[0]))[:_MOST_WAYS]:
        finding = next(finding for finding in broken.findings if finding.message == message)
        evidence = finding.evidence
        where = f" ({evidence.path}:{evidence.line})" if evidence.path is not None else ""
        times = f", {number:,} times" if number > 1 else ""
        yield f"{message}{times}{where}"
    if len(messages) > _MOST_WAYS:
        yield f"and {counted(len(messages) - _MOST_WAYS, 'other way', 'other ways')}"


def _names(broken: BrokenSymbol) -> str:
    names = [_name(client) for client, _ in broken.clients]
    more = f" and {len(names) - _MOST_CLIENTS:,} more" if len(names) > _MOST_CLIENTS else ""
    return ", ".join(names[:_MOST_CLIENTS]) + more


def _name(client: ClientImpact) -> str:
    return named(client.name, client.version)


def _clients(impact: Impact) -> Iterator[tuple[str, str]]:
    """What there is to say of the clients besides what breaks in them, as (label, sentence)."""
    fitting = [client for client in impact.clients if client.fault is None and not client.breaks]
    if fitting:
        untouched = sum(client.is_untouched for client in fitting)
        said = ", ".join(_name(client) for client in fitting)
        if untouched:
            they = "it rests" if len(fitting) == 1 else f"{untouched:,} of them {'rests' if untouched == 1 else 'rest'}"
            said += f" ({they} on nothing that has changed)"
        yield "fit", said
    for client in impact.clients:
        if client.fault is not None:
            yield "not read", f"{_name(client)}: {client.fault}"
    for client in impact.clients:
        yield from (("note", f"{_name(client)}: {notice}") for notice in client.notices)


def render_impact_markdown(impact: Impact, *, with_places: bool = False) -> str:
    """The same as Markdown, for a comment on the change."""
    return "".join(f"{line}\n" for line in _markdown(impact, with_places=with_places))


def _markdown(impact: Impact, *, with_places: bool) -> Iterator[str]:
    from driftcheck.report.markdown import code, plain

    yield f"## {plain(_verdict(impact))}"
    yield ""
    yield f"{plain(_change(impact))}."
    yield ""
    if impact.symbols:
        yield "| symbol | clients | usages | what breaks |"
        yield "| --- | ---: | ---: | --- |"
        for broken in impact.symbols:
            said = "<br>".join(plain(each) for each in _ways(broken))
            clients = f"{len(broken.clients):,}: {plain(_names(broken))}"
            yield f"| {code(broken.symbol)} | {clients} | {len(broken.findings):,} | {said} |"
        yield ""
    if with_places:
        for broken in impact.symbols:
            for client, findings in broken.clients:
                places = ", ".join(code(finding.location.place) for finding in findings)
                yield f"- {code(broken.symbol)} in {plain(_name(client))}: {places}"
        yield ""
    for label, said in [*_clients(impact), *(("note", notice) for notice in impact.notices)]:
        yield f"- {label}: {plain(said)}"


def render_impact_json(impact: Impact) -> str:
    """The same as one object, ASCII throughout, with every place."""
    document: Json = {
        "schema": SCHEMA_VERSION,
        "before": origin_json(impact.before),
        "after": origin_json(impact.after),
        "changed": list(impact.changed),
        "symbols": [_symbol(broken) for broken in impact.symbols],
        "clients": [_client(client) for client in impact.clients],
        "notices": list(impact.notices),
    }
    return json_text(document)


def _symbol(broken: BrokenSymbol) -> dict[str, Json]:
    return {
        "symbol": broken.symbol,
        "clients": [
            {"name": client.name, "version": client.version, "breaks": _breaks(findings)}
            for client, findings in broken.clients
        ],
        "usages": len(broken.findings),
    }


def _client(client: ClientImpact) -> dict[str, Json]:
    verdict = "unread" if client.fault is not None else "breaks" if client.breaks else "fits"
    return {
        "name": client.name,
        "version": client.version,
        "verdict": verdict,
        "untouched": client.is_untouched,
        "breaks": len(client.breaks),
        "other_findings": client.others,
        "reason": client.fault,
        "notices": list(client.notices),
    }


def _breaks(findings: Sequence[Finding]) -> list[Json]:
    """The findings, without the symbol that they stand under."""
    return [
        {name: value for name, value in brief_finding_json(finding).items() if name != "symbol"} for finding in findings
    ]
