"""What became of one symbol over the releases: plain, frozen data, as in `model.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftcheck.model import Parameter, Signature

Status = Literal["there", "absent", "unknown"]

SymbolChangeKind = Literal[
    "first-seen",
    "added",
    "returned",
    "moved-here",
    "moved-away",
    "removed",
    "unknown",
    "defined-elsewhere",
    "deprecated",
    "deprecated-in-part",
    "deprecation-changed",
    "deprecation-lifted",
    "sort-changed",
    "bases-changed",
    "parameter-added",
    "parameter-removed",
    "parameter-renamed",
    "parameter-required",
    "parameter-optional",
    "default-changed",
    "kind-changed",
    "annotation-changed",
    "order-changed",
    "returns-changed",
    "value-changed",
]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a symbol is in one release.

    `symbol` is the path at which it is defined, "" where that can't be told. `field` is the declared type and the
    default of a field or an environment variable, `value` what the sources say of any other value. `deprecation` is
    what the release says of a thing that is to go. `reason` says why it is absent or why nothing can be told, and
    `near` are names like one that is absent.
    """

    status: Status
    symbol: str = ""
    sort: str = ""
    path: str | None = None
    line: int | None = None
    signature: Signature | None = None
    field: Parameter | None = None
    value: str = ""
    bases: tuple[str, ...] = ()
    deprecation: str | None = None
    reason: str = ""
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SymbolChange:
    """One thing that is different from the release before: `name` is the parameter's, where it is about one.

    `before` and `after` are source text, paths, or what a release says of itself. `in_front_of` is the parameter before
    which a new one was put, so that positional arguments land elsewhere; `is_required` says that calls have to give it.
    """

    kind: SymbolChangeKind
    name: str = ""
    before: str | None = None
    after: str | None = None
    in_front_of: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseChanges:
    """A release in which something about the symbol changed, and what it is from then on.

    `unread` are the releases just before, of which nothing is known: the change may have come with one of them.
    """

    release: str
    changes: tuple[SymbolChange, ...]
    standing: Standing
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Releases in a row, the first and the last of them; `is_last` where no later one was read."""

    first: str
    last: str
    is_first: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class ParameterLife:
    """In which releases a parameter was there, and in which of them calls had to give it."""

    name: str
    there: tuple[Stretch, ...]
    required: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class UnreadRelease:
    """A release of which nothing is known, and why."""

    release: str
    reason: str


@dataclass(frozen=True, slots=True)
class SymbolHistory:
    """The history of a symbol, oldest release first.

    `symbol` is the path that was asked for, `there` the releases in which it answers. `parameters` are those that were
    not there, or not required, all the time. `latest` is what the last release that was read says of the path, and
    `place` where the thing is to be found in it, None where it is nowhere.
    """

    target: str
    symbol: str
    releases: tuple[str, ...]
    changes: tuple[ReleaseChanges, ...]
    there: tuple[Stretch, ...]
    parameters: tuple[ParameterLife, ...]
    latest: Standing
    place: str | None
    unread: tuple[UnreadRelease, ...] = ()
