"""vLLM as its own client: whatever is found in a release that is held against itself is a fault of vLLM's, or ours.

    python -m benchmarks.precision [RELEASE ...] [--findings] [--reasons N]

Audits each release's sources against themselves, with themselves as the baseline, one process each. Prints how much was
judged, how much was left open, and how many findings of which severity came; those at `silent` or above that are not in
the list of what is proved by a run (`benchmarks/vllm_faults.py`) are printed one by one. `--findings` prints all, and
`--reasons` why usages were left open, the most frequent first. Exits with 1 where something is not explained.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.vllm_faults import FAULTS

RELEASES = ("0.11.0", "0.16.0", "0.20.2", "0.26.0", "0.33.0")
_FAILING = ("error", "silent")


def main(arguments: list[str] | None = None) -> int:
    """Runs the audits and prints their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--findings", action="store_true")
    parser.add_argument("--reasons", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    out = sys.stdout.write
    out("| vLLM | files | calls judged | left open | attributes judged | left open | imports | error or silent |")
    out(" proved | warning | note |\n")
    out("| --- " * 11 + "|\n")
    details: list[str] = []
    unexplained = 0
    for release in options.releases:
        report = audited(release)
        left = unproved(release, report["findings"])
        unexplained += len(left)
        out(row(release, report, len(left)) + "\n")
        sys.stdout.flush()
        shown = report["findings"] if options.findings else left
        details += [f"\n{release}: {described(finding)}" for finding in shown]
        if options.reasons:
            details.append(f"\n\n{release}, left open because of:\n{reasons(report, options.reasons)}")
    out("".join(details) + ("\n" if details else ""))
    return int(unexplained > 0)


def audited(release: str) -> dict[str, Any]:
    """The report of a release on itself."""
    name = f"vllm=={release}"
    with tempfile.TemporaryDirectory(prefix="driftcheck-") as folder:
        output = Path(folder) / "report.json"
        command = [sys.executable, "-m", "driftcheck", "audit", name, f"--against={name}", f"--baseline={name}"]
        options = ["--exit-zero", "--format=json", "--explain-unresolved", f"--output={output}"]
        subprocess.run([*command, *options], check=True)
        report: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return report


def row(release: str, report: dict[str, Any], unproved_count: int) -> str:
    """A row of the table."""
    usages = report["usages"]
    severities = Counter(finding["severity"] for finding in report["findings"])
    failing = sum(severities[severity] for severity in _FAILING)
    calls, attributes = usages["calls"], usages["attributes"]
    cells = [
        release, report["client"]["files"], calls["checked"], f"{calls['unresolved']} ({share(calls)})",
        attributes["checked"], f"{attributes['unresolved']} ({share(attributes)})", usages["imports"]["checked"],
        failing, failing - unproved_count, severities["warning"], severities["note"],
    ]  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def share(count: dict[str, int]) -> str:
    """How much of all usages of a sort was left open."""
    return f"{count['unresolved'] / max(1, count['checked'] + count['unresolved']):.1%}"


def unproved(release: str, findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The findings at `silent` or above in files of which no run shows that vLLM is wrong."""
    proved = {fault.path for fault in FAULTS if release in fault.releases and fault.is_certain}
    return [finding for finding in findings if finding["severity"] in _FAILING and finding["path"] not in proved]


def described(finding: dict[str, Any]) -> str:
    """A finding on one line."""
    place = f"{finding['path']}:{finding['line']}"
    return f"{place} {finding['severity']}[{finding['kind']}] {finding['message']}"


def reasons(report: dict[str, Any], count: int) -> str:
    """The most frequent reasons why usages were left open."""
    counted = Counter((entry["usage"], entry["reason"]) for entry in report["unresolved"])
    return "\n".join(f"{number:6} {usage:10} {reason}" for (usage, reason), number in counted.most_common(count))


if __name__ == "__main__":
    sys.exit(main())
