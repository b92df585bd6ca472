"""What the client itself puts on the target's modules and classes, and whether it gets there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from driftcheck.compare.judge import Verdict
from driftcheck.usage.usages import AttributeUsage, Usage

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
        """Those that some place puts there before it reads, unguarded, what is not there yet."""
        first: dict[tuple[str, str, Name], int] = {}
        for usage, verdict in judged:
            if not isinstance(usage, AttributeUsage) or verdict.status != "broken" or verdict.absent is None:
                continue
            if not usage.guards and not usage.is_probed:
                key = (usage.location.path, usage.scope, (verdict.absent.owner, verdict.absent.name))
                first[key] = min(first.get(key, usage.location.line), usage.location.line)
        return {
            name
            for name, places in self._places.items()
            if any(line <= first.get((path, scope, name), line) for path, scope, line in places)
        }
