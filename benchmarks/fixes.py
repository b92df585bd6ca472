"""What `driftcheck fix` makes of published clients.

    python -m benchmarks.fixes [NAME==V TARGET ...] [--unsafe]

prints a line for each client: findings at `silent` or above, what became of them, the files edited, and whether the
edits hold: every edited file parses, keeps its comments, is what the patch makes of the published one, and a second run
changes nothing and finds nothing new but what a name that was gone had hidden. Without arguments the clients below are
taken, which takes half an hour.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import tempfile
import time
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from driftcheck.audit import Sources, sources_of
from driftcheck.fixes.changes import Changes
from driftcheck.fixes.diff import unified
from driftcheck.fixing import Choice, EditedTree, fixed
from driftcheck.model import Finding, Kind, Repair, Severity

CLIENTS = (
    ("lm-eval==0.4.11", "vllm==0.33.0"),
    ("trl==0.25.0", "vllm==0.33.0"),
    ("lmcache==0.5.6", "vllm==0.33.0"),
    ("tpu-inference==0.32.0", "vllm==0.33.0"),
    ("vllm-rbln==0.12.0", "vllm==0.33.0"),
    ("verl==0.9.1", "vllm==0.33.0"),
    ("vllm-ascend==0.23.0.post1", "vllm==0.24.0"),
    ("vllm-ascend==0.23.0.post1", "vllm==0.33.0"),
    ("vllm-omni==0.30.0", "vllm==0.33.0"),
)
_GONE = (Kind.UNRESOLVED_MODULE, Kind.UNRESOLVED_SYMBOL, Kind.UNRESOLVED_ATTRIBUTE, Kind.SILENT_FALLBACK)
_STATUSES = ("proved", "unproved", "unsafe", "person")


def repaired(client: str, target: str, *, is_unsafe: bool) -> tuple[Sources, Repair, Changes]:
    """A published client, and what `fix` makes of it for a release."""
    sources = sources_of(client, against=target)
    return (sources, *fixed([sources], Choice(is_unsafe=is_unsafe)))


def faults(sources: Sources, changes: Changes, *, is_unsafe: bool) -> Iterator[str]:
    """What is wrong with the edits, in words."""
    for change in changes:
        try:
            ast.parse(change.after)
        except SyntaxError as error:
            yield f"{change.path} does not parse any more: {error}"
            continue
        lost = comments(change.before) - comments(change.after)
        if lost:
            yield f"{change.path} has lost a comment: {next(iter(lost))}"
        if change.before.count(b"\r\n") == change.before.count(b"\n") and b"\n" in change.after.replace(b"\r\n", b""):
            yield f"{change.path} has line ends of another sort"
    patched = _patched(changes)
    yield from (f"git apply makes another {each.path}" for each in changes if patched[each.path] != each.after)
    if not changes:
        return
    edited = EditedTree(sources.client, {change.path: change.after for change in changes})
    again = replace(sources, client=edited)
    repair, more = fixed([again], Choice(is_unsafe=is_unsafe))
    yield from (f"a second run changes {each.path}" for each in more)
    before = sources.audited().findings
    known = {_key(each) for each in before}
    # What a name that was gone hid, once the name is found again, is the release's doing and no edit's.
    hidden = {(each.location.path, each.symbol.rpartition(".")[2]) for each in before if each.kind in _GONE}
    for entry in repair.findings:
        finding = entry.finding
        name = finding.symbol.removesuffix(".__init__").rpartition(".")[2]
        if _is_bad(finding) and _key(finding) not in known and (finding.location.path, name) not in hidden:
            yield f"found now, and not before: {' '.join(_key(finding))}"


def _key(finding: Finding) -> tuple[str, ...]:
    return (finding.kind.value, finding.location.path, finding.symbol, finding.scope, finding.parameter or "")


def _is_bad(finding: Finding) -> bool:
    return finding.severity.rank >= Severity.SILENT.rank


def comments(source: bytes) -> Counter[str]:
    """The comments of a file."""
    found = tokenize.tokenize(BytesIO(source).readline)
    return Counter(token.string for token in found if token.type == tokenize.COMMENT)


def _patched(changes: Changes) -> Mapping[str, bytes]:
    """What `git apply` makes of the files before, by path."""
    with tempfile.TemporaryDirectory() as folder:
        for change in changes:
            file = Path(folder, change.path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(change.before)
        if changes:
            subprocess.run(["git", "apply", "-"], input=unified(changes), cwd=folder, check=True)
        return {change.path: Path(folder, change.path).read_bytes() for change in changes}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="NAME==V TARGET", help="clients and releases, in turns")
    parser.add_argument("--unsafe", action="store_true", help="make edits too that may need a person's eye")
    parser.add_argument("--patches", metavar="DIR", help="write the patches there")
    options = parser.parse_args()
    if len(options.pairs) % 2:
        parser.error("a client is without a release")
    pairs = list(zip(options.pairs[::2], options.pairs[1::2], strict=True)) or CLIENTS
    print(f"{'client':28}{'target':15}{'found':>6}" + "".join(f"{each:>9}" for each in _STATUSES) + "  files   cpu")
    for client, target in pairs:
        start = time.process_time()
        sources, repair, changes = repaired(client, target, is_unsafe=options.unsafe)
        spent = time.process_time() - start
        entries = [each for each in repair.findings if _is_bad(each.finding)]
        counts = Counter[str](each.status for each in entries)
        figures = "".join(f"{counts[each]:9}" for each in _STATUSES)
        print(f"{client:28}{target:15}{len(entries):6}{figures}{len(changes):7}{spent:5.0f}s", flush=True)
        if options.patches:
            folder = Path(options.patches)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{client}-{target}.patch").write_bytes(unified(changes))
        for fault in faults(sources, changes, is_unsafe=options.unsafe):
            print(f"    {fault}", flush=True)


if __name__ == "__main__":
    main()
