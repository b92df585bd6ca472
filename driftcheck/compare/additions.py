"""What the client itself puts on the target's modules and classes, and whether it gets there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from driftcheck.compare.judge import Verdict
from driftcheck.usage.usages import AttributeUsage, ImportUsage, Usage

Name = tuple[str, str]
"""A dotted path of the target's, and what is put there."""


class Additions:
    """The names that stores of one run over the client put on the target."""

    def __init__(self) -> None:
        self._places: dict[Name, list[tuple[str, str, int]]] = {}

    def note(self, names: Iterable[Name], usage: Usage) -> None:
        """Notes a place that puts names on the target."""
        for name in names:
            self._places.setdefault(name, []).append((usage.location.path, usage.scope, usage.location.line))

    @property
    def names(self) -> set[Name]:
        """All of them."""
        return set(self._places)

    def reached(self, judged: Sequence[tuple[Usage, Verdict]]) -> set[Name]:
        """Those that some place puts there before the code around it fails.

        A module ends with the first thing that is not there; in a function only what is put there itself counts, since
        branches hide the rest.
        """
        first: dict[tuple[str, str, Name | None], int] = {}
        for usage, verdict in judged:
            if not isinstance(usage, AttributeUsage | ImportUsage) or verdict.status != "broken" or usage.guards:
                continue
            absent = verdict.absent
            if absent is None or usage.is_typing_only or (isinstance(usage, AttributeUsage) and usage.is_probed):
                continue
            name = (absent.owner, absent.name) if usage.scope else None
            key = (usage.location.path, usage.scope, name)
            first[key] = min(first.get(key, usage.location.line), usage.location.line)
        return {
            name
            for name, places in self._places.items()
            if any(line <= first.get((path, scope, name if scope else None), line) for path, scope, line in places)
        }
