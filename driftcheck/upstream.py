"""The value objects of what looks at the target's own development: commits, whom a change breaks, what is to end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from driftcheck.model import ClientSummary, Finding, TargetSummary


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a clone, named whole; `day` is its committer's in its own time zone, None where it says none.

    `parents` are the commits that it was made from, the line that it continues first; none where the clone ends there.
    """

    name: str
    day: date | None
    subject: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlamedFinding:
    """A finding, and the commit of the target since which it is there.

    `merge` is the commit that brought it in, where that was made on another line. `is_lost` says that the commit is the
    one that the client rests on instead: it stands on the baseline's own line, which the target does not have. `reason`
    says why there is no commit.
    """

    finding: Finding
    commit: Commit | None
    merge: Commit | None = None
    is_lost: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Blame:
    """What made the findings of one client, in the order of the findings; `others` were there with the baseline.

    `commits` is how many commits lie between the two, `asked` with how many of them the client was read.
    """

    client: ClientSummary
    target: TargetSummary
    baseline: TargetSummary
    findings: tuple[BlamedFinding, ...]
    others: int
    commits: int
    asked: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientImpact:
    """What a change of the target breaks in one client.

    `others` counts what is found and was there before, or does not count. `is_untouched` says that nothing of what the
    client rests on has changed, so that it was not audited and `others` is None. `fault` says why it could not be
    checked, `notices` what has to be known besides.
    """

    name: str
    version: str | None
    breaks: tuple[Finding, ...] = ()
    others: int | None = 0
    is_untouched: bool = False
    fault: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokenSymbol:
    """A symbol of the target whose change breaks clients; each with what breaks in it, sorted by client."""

    symbol: str
    clients: tuple[tuple[ClientImpact, tuple[Finding, ...]], ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that breaks, over all clients."""
        return tuple(finding for _, findings in self.clients for finding in findings)


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change of the target breaks: `changed` are the source files that differ, `clients` are all looked at."""

    before: TargetSummary
    after: TargetSummary
    changed: tuple[str, ...]
    clients: tuple[ClientImpact, ...]
    notices: tuple[str, ...] = ()

    @property
    def symbols(self) -> tuple[BrokenSymbol, ...]:
        """What breaks by symbol, what concerns most clients first."""
        by_symbol: dict[str, list[tuple[ClientImpact, tuple[Finding, ...]]]] = {}
        for client in self.clients:
            for symbol in dict.fromkeys(finding.symbol for finding in client.breaks):
                own = tuple(finding for finding in client.breaks if finding.symbol == symbol)
                by_symbol.setdefault(symbol, []).append((client, own))
        broken = [BrokenSymbol(symbol, tuple(clients)) for symbol, clients in by_symbol.items()]
        return tuple(sorted(broken, key=lambda each: (-len(each.clients), -len(each.findings), each.symbol)))


@dataclass(frozen=True, slots=True)
class AnnouncedEnd:
    """What ends with one release, as the target says: `release` is None where it names none.

    `is_overdue` where that is the target's own release or an earlier one, so that it may be gone any day.
    """

    release: str | None
    findings: tuple[Finding, ...]
    is_overdue: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is ahead of one client: what breaks with the target, then what that says will end, nearest first."""

    client: ClientSummary
    target: TargetSummary
    baseline: TargetSummary | None
    breaks: tuple[Finding, ...]
    ends: tuple[AnnouncedEnd, ...]
    notices: tuple[str, ...] = ()
