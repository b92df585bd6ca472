"""The history of a symbol as Markdown, for release notes and comments."""

from __future__ import annotations

from collections.abc import Iterator

from driftcheck.report.harmless import harmless
from driftcheck.report.history_text import parameter_sentence, scope, sentences, summary_sentences
from driftcheck.report.markdown import code, plain
from driftcheck.symbol_history import SymbolHistory


def render_history_markdown(history: SymbolHistory) -> str:
    """A heading, a table of changes by release, one of parameters, and how things stand now."""
    return "".join(f"{line}\n" for line in _lines(history))


def _lines(history: SymbolHistory) -> Iterator[str]:
    yield f"## {code(history.symbol)}"
    yield ""
    yield plain(f"In {scope(history)}.")
    yield ""
    yield "| release | what changed |"
    yield "| --- | --- |"
    for entry in history.changes:
        said = "<br>".join(plain(text) for text in sentences(entry, history))
        yield f"| {plain(harmless(entry.release))} | {said} |"
    if history.parameters:
        yield ""
        yield "| parameter | there |"
        yield "| --- | --- |"
        for life in history.parameters:
            yield f"| {plain(harmless(life.name))} | {plain(parameter_sentence(history, life.name))} |"
    yield ""
    for said in summary_sentences(history):
        yield plain(said)
        yield ""
