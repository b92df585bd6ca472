"""What is ahead of clients: for people as text or Markdown, for programs as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driftcheck.model import Finding
from driftcheck.report.foot import markdown_foot, release_chosen
from driftcheck.report.harmless import harmless
from driftcheck.report.json_report import SCHEMA_VERSION, Json, brief_finding_json, json_text, origin_json
from driftcheck.report.layout import counted, hanging, named, sourced, wrap
from driftcheck.report.placed import headline
from driftcheck.upstream import AnnouncedEnd, Forecast


def render_forecasts(forecasts: Sequence[Forecast], *, width: int) -> str:
    """For each client what breaks, and what ends with which release, the nearest first."""
    return "\n".join("".join(f"{harmless(line)}\n" for line in _text(forecast, width)) for forecast in forecasts)


def _text(forecast: Forecast, width: int) -> Iterator[str]:
    yield from wrap(_heading(forecast), width)
    for label, findings in _sections(forecast):
        yield ""
        yield label
        for finding in findings:
            yield from hanging("  ", f"{finding.location.place}: {headline(finding)}", indent=4, width=width)
    yield ""
    yield from wrap(_end(forecast), width)
    if chosen := release_chosen(forecast.baseline):
        yield from hanging("", chosen, indent=4, width=width)
    for notice in forecast.notices:
        yield from hanging("", f"note: {notice}", indent=4, width=width)


def _heading(forecast: Forecast) -> str:
    client, baseline = forecast.client, forecast.baseline
    written = f", written for {baseline.version}" if baseline is not None and baseline.version else ""
    return f"{named(client.name, client.version)}{written}: {sourced(forecast.target)}"


def _sections(forecast: Forecast) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """What is ahead, in the order in which it comes: a label and its findings."""
    if forecast.breaks:
        number = len(forecast.breaks)
        verb = "breaks" if number == 1 else "break"
        yield f"now: {counted(number, 'usage')} {verb} with {_target(forecast)}", forecast.breaks
    for end in forecast.ends:
        yield _ending(end, forecast), end.findings


def _ending(end: AnnouncedEnd, forecast: Forecast) -> str:
    number = counted(len(end.findings), "usage")
    goes = "goes" if len(end.findings) == 1 else "go"
    if end.release is None:
        return f"some time: {number} {goes}"
    overdue = f" (announced, and still there in {_target(forecast)})" if end.is_overdue else ""
    return f"{end.release}: {number} {goes}{overdue}"


def _when(end: AnnouncedEnd) -> str:
    """When it ends, in a cell of a table."""
    return "some time" if end.release is None else f"{end.release}, overdue" if end.is_overdue else end.release


def _target(forecast: Forecast) -> str:
    return named(forecast.target.name, forecast.target.version)


def _end(forecast: Forecast) -> str:
    ending = sum(len(end.findings) for end in forecast.ends)
    if not forecast.breaks and not ending:
        return f"Nothing is ahead, as far as {_target(forecast)} tells."
    parts = [f"{len(forecast.breaks):,} broken"] if forecast.breaks else []
    parts += [f"{ending:,} announced to end"] if ending else []
    return f"{counted(len(forecast.breaks) + ending, 'usage')} to see to: {', '.join(parts)}."


def render_forecasts_markdown(forecasts: Sequence[Forecast]) -> str:
    """The same as Markdown: a table a client."""
    return "\n".join("".join(f"{line}\n" for line in _markdown(forecast)) for forecast in forecasts)


def _markdown(forecast: Forecast) -> Iterator[str]:
    from driftcheck.report.markdown import code, plain

    yield f"## {plain(_heading(forecast))}"
    yield ""
    sections = [("now", forecast.breaks), *((_when(end), end.findings) for end in forecast.ends)]
    if forecast.breaks or forecast.ends:
        yield "| when | where | what |"
        yield "| --- | --- | --- |"
    for when, findings in sections:
        places = ((code(finding.location.place), plain(headline(finding))) for finding in findings)
        yield from (f"| {plain(when)} | {place} | {said} |" for place, said in places)
    if forecast.breaks or forecast.ends:
        yield ""
    yield plain(_end(forecast))
    yield from markdown_foot(forecast.baseline, forecast.notices)


def render_forecasts_json(forecasts: Sequence[Forecast]) -> str:
    """The same as one object, ASCII throughout."""
    document: Json = {"schema": SCHEMA_VERSION, "forecasts": [_json(forecast) for forecast in forecasts]}
    return json_text(document)


def _json(forecast: Forecast) -> dict[str, Json]:
    return {
        "client": origin_json(forecast.client),
        "target": origin_json(forecast.target),
        "baseline": forecast.baseline.version if forecast.baseline is not None else None,
        "baseline_chosen": forecast.baseline.chosen if forecast.baseline is not None else None,
        "breaks": [brief_finding_json(finding) for finding in forecast.breaks],
        "ends": [
            {
                "release": end.release,
                "overdue": end.is_overdue,
                "usages": [brief_finding_json(finding) for finding in end.findings],
            }
            for end in forecast.ends
        ],
        "notices": list(forecast.notices),
    }
