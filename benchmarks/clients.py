"""Audits of real clients: on the release each was made for, and from there to a later one.

    python -m benchmarks.clients [CLIENT ...] [--to RELEASE] [--findings SEVERITY] [--top N]

A CLIENT is a name of the table below or a part of one; without any, all are audited, the small ones first. On its own
release a client should have no findings but true ones: `docs/accuracy.md` lists them. `--to` holds each against another
release, its own as the baseline. Per client are printed: what was checked and what could not be judged, by reason; the
findings by kind and severity; and with `--findings` those at or above a severity.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from driftcheck.audit import audit
from driftcheck.errors import DriftcheckError
from driftcheck.model import Report, Severity


@dataclass(frozen=True, slots=True)
class Client:
    """A client and the release of the target that it was made for."""

    specification: str
    release: str


CLIENTS = (
    Client("speculators==0.3.0", "0.11.0"),
    Client("speculators==0.4.0.1", "0.16.0"),
    Client("trl==1.16.0", "0.31.0"),
    Client("vllm-spyre==1.10.0", "0.18.0"),
    Client("verl==0.9.1", "0.24.0"),
    Client("vllm-rbln==0.12.0", "0.30.0"),
    Client("ms-swift==4.6.0", "0.31.0"),
    Client("lmcache==0.5.6", "0.31.0"),
    Client("unsloth-zoo==2026.10.9", "0.32.0"),
    Client("tpu-inference==0.32.0", "0.32.0"),
    Client("vllm-ascend==0.23.0.post1", "0.23.0"),
    Client("vllm-omni==0.30.0", "0.30.0"),
)
_SORTS = ("imports", "calls", "attributes", "overrides", "patches", "strings")


def main() -> None:
    """Parses the options and prints the figures of each client."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clients", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="names of the table, or parts of them")
    parser.add_argument("--to", metavar="RELEASE", help="hold each against this release instead of its own")
    parser.add_argument(
        "--findings",
        choices=[severity.value for severity in Severity],
        help="list the findings of this severity and above",
    )
    parser.add_argument("--top", type=int, default=8, metavar="N", help="reasons shown (default: 8)")
    options = parser.parse_args()
    chosen = [client for client in CLIENTS if is_asked_for(client, options.clients)]
    if not chosen:
        raise SystemExit(f"no such client; there are {', '.join(client.specification for client in CLIENTS)}")
    least = Severity(options.findings) if options.findings else None
    for client in chosen:
        began = time.perf_counter()
        try:
            report = audit(
                client.specification,
                against=f"vllm=={options.to or client.release}",
                baseline=f"vllm=={client.release}",
                static=True,
            )
        except DriftcheckError as error:
            raise SystemExit(f"{client.specification}: {error}") from None
        show(report, time.perf_counter() - began, top=options.top, least=least)


def show(report: Report, seconds: float, *, top: int, least: Severity | None) -> None:
    """Prints the figures of one audit."""
    baseline = report.baseline
    client, target = report.client, report.target
    print(f"{client.name} {client.version} on {target.name} {target.version}", end="")
    print(f", made for {baseline.version}" if baseline is not None and baseline.version != target.version else "")
    print(f"  files {client.files}, read {client.files_using_target}, {seconds:.1f} s")
    for sort in _SORTS:
        count = getattr(report.usages, sort)
        total = count.checked + count.unresolved
        if total:
            print(f"  {sort:11} {count.checked:6} checked {count.unresolved:6} unresolved {count.checked / total:7.1%}")
    print_counts("unresolved", Counter(f"{one.usage}: {one.reason}" for one in report.unresolved), top)
    findings = Counter(f"{finding.severity.value} {finding.kind.value}" for finding in report.findings)
    print_counts("findings", findings, len(findings))
    for finding in report.findings if least is not None else ():
        if least is not None and finding.severity.rank >= least.rank:
            place = finding.location
            print(f"  {place.path}:{place.line}: {finding.severity.value}[{finding.kind.value}] {finding.message}")
    print()


def print_counts(heading: str, counts: Counter[str], top: int) -> None:
    """Prints the most frequent of what was counted, equal ones by name."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if not ordered:
        print(f"  {heading}: none")
        return
    print(f"  {heading}: {counts.total()}")
    for name, count in ordered[:top]:
        print(f"  {count:6} {name}")
    rest = sum(count for _, count in ordered[top:])
    if rest:
        print(f"  {rest:6} others")


def is_asked_for(client: Client, names: Iterable[str]) -> bool:
    """True where one of the names is a part of the client's, or there are none."""
    wanted = list(names)
    return not wanted or any(name in client.specification for name in wanted)


if __name__ == "__main__":
    main()
