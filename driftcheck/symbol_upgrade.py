"""What an upgrade of the target changes for one client: plain, frozen data, as in `model.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftcheck.model import ClientSummary, Finding, Location, TargetSummary
from driftcheck.symbol_history import SymbolChange, SymbolChangeKind

Role = Literal["call", "override", "super", "patch", "base", "import", "attribute", "reference", "variable", "string"]

SortOfChange = Literal["ends", "values", "signature", "body", "types", "moved"]
SORTS_OF_CHANGE: tuple[SortOfChange, ...] = ("ends", "values", "signature", "body", "types", "moved")
"""What can be different about a symbol that still fits, what should be looked at first in front."""

DEPRECATIONS: frozenset[SymbolChangeKind] = frozenset(("deprecated", "deprecated-in-part", "deprecation-changed"))
_VALUES: frozenset[SymbolChangeKind] = frozenset(("default-changed", "value-changed"))
_TYPES: frozenset[SymbolChangeKind] = frozenset(("annotation-changed", "returns-changed"))
_MOVES: frozenset[SymbolChangeKind] = frozenset(("defined-elsewhere",))


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """A place where the client couples to a symbol, and how: an `override` stands in the place of a base's method.

    `scope` is the qualified name of the function or class around it, "" at module level.
    """

    location: Location
    role: Role
    scope: str = ""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in a release's own sources: the path is relative to its root, lines count from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class BodyChange:
    """What is different in the body of a function whose calls go on to fit; `name` is the function's own.

    Of its statements so many are `gone` and so many have `come`; where neither, they are nested otherwise. The places
    are those of the first difference, the sources what stands there, "" where that release has nothing of its own.
    """

    name: str
    statements_before: int
    statements_after: int
    gone: int
    come: int
    place_before: SourcePlace
    place_after: SourcePlace
    source_before: str
    source_after: str

    @property
    def share(self) -> float:
        """How much of both bodies is different, from 0 to 1."""
        changed = max(self.gone + self.come, 1)
        return min(changed / max(self.statements_before + self.statements_after, 1), 1.0)


@dataclass(frozen=True, slots=True)
class ChangedSymbol:
    """A symbol that the client couples to, that still fits, and that is not what it was.

    `symbol` is its path in the newer release, `symbol_before` that in the older one.
    """

    symbol: str
    symbol_before: str
    sort: str
    uses: tuple[Use, ...]
    place_before: SourcePlace | None
    place: SourcePlace | None
    changes: tuple[SymbolChange, ...] = ()
    body: BodyChange | None = None

    @property
    def is_different(self) -> bool:
        """True where anything at all is said to be different."""
        return bool(self.changes) or self.body is not None

    @property
    def sort_of_change(self) -> SortOfChange:
        """The first of the sorts that its changes are of."""
        kinds = {change.kind for change in self.changes}
        if kinds & DEPRECATIONS:
            return "ends"
        if kinds & _VALUES:
            return "values"
        if kinds - _TYPES - _MOVES:
            return "signature"
        if self.body is not None:
            return "body"
        return "types" if kinds & _TYPES else "moved"


@dataclass(frozen=True, slots=True)
class BrokenSymbol:
    """A symbol that the client no longer fits, with the findings on it; a place is None where a release has it not.

    `beside` has the uses of it that go on to fit, and what is different about it besides, which may be neither; it is
    None where all its uses are refused calls.
    """

    symbol: str
    findings: tuple[Finding, ...]
    place_before: SourcePlace | None
    place: SourcePlace | None
    beside: ChangedSymbol | None = None

    @property
    def broken_lines(self) -> frozenset[tuple[str, int]]:
        """The lines of the client with what breaks: of an argument that of its call, where both are known."""
        places = (finding.call or finding.location for finding in self.findings)
        return frozenset((place.path, place.line) for place in places)


@dataclass(frozen=True, slots=True, order=True)
class OtherSymbol:
    """A symbol that nothing is to be said of: unchanged where `reason` is "", else why it could not be compared."""

    symbol: str
    uses: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """All that an upgrade of the target means for one client.

    `before` is the release that the client was written for, `after` the one that it is to run with. `unchanged` and
    `uncompared` are the other symbols that it couples to.
    """

    client: ClientSummary
    before: TargetSummary
    after: TargetSummary
    broken: tuple[BrokenSymbol, ...]
    changed: tuple[ChangedSymbol, ...]
    unchanged: tuple[OtherSymbol, ...]
    uncompared: tuple[OtherSymbol, ...]
    notices: tuple[str, ...] = ()
