"""How much of what a client does with the target is judged, and how many of its calls are known to be of the target.

    python -m benchmarks.coverage [CLIENT ...] [--calls N] [--missed] [--cache FOLDER]

A CLIENT is a name of the pairs of `benchmarks.recall`, or a part of one; each is held against the good release. First
the usages judged and left open, by sort, with the reasons. Then pyright's language server is asked where what is called
is defined: at calls of names and attributes in the files that name the target, all of them or N chosen by a hash of
their places. The calls that lead into the target's sources are those that should be resolved; printed is how
many are, and why the others are not. `--missed` lists these. What the server answered is kept in the cache folder.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from benchmarks.checkers import Checking, write_configuration
from benchmarks.clients import Client, is_asked_for, print_counts, show
from benchmarks.definitions import Definitions, Spot
from benchmarks.recall import PAIRS
from driftcheck.audit import audit_trees
from driftcheck.compare.judge import Judge
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.surface.declarations import ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.types import Type, Unknown, members_of
from driftcheck.tree import SourceTree
from driftcheck.usage.collector import Collector
from driftcheck.usage.files import ClientFiles
from driftcheck.usage.places import Place
from driftcheck.usage.reachability import Reachability
from driftcheck.usage.usages import CallUsage, Usage
from tests.real.environments import interpreter_of

CALLS = 4_000
NOT_RUN = "a branch that does not run"


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the audit sees it; `reason` is why it is not resolved, "" where it is."""

    spot: Spot
    reason: str


def main() -> None:
    """Parses the options and prints the figures of each client."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coverage", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="names of the pairs, or parts of them")
    parser.add_argument("--calls", type=int, default=CALLS, metavar="N", help=f"calls asked for (default: {CALLS})")
    parser.add_argument("--missed", action="store_true", help="list the calls that are not resolved")
    parser.add_argument("--python", type=Path, help="the interpreter that has the other libraries")
    parser.add_argument("--cache", type=Path, default=platformdirs.user_cache_path("driftcheck") / "recall")
    options = parser.parse_args()
    python = options.python or interpreter_of("vllm-0.30.0")
    gc.disable()
    for client in (Client(name, good) for name, good, _ in PAIRS):
        if is_asked_for(client, options.clients):
            tree, target = client_tree(client.specification), target_tree(f"vllm=={client.release}")
            began = time.perf_counter()
            show(audit_trees(tree, target, target), time.perf_counter() - began, top=8, least=None)
            with tempfile.TemporaryDirectory(prefix="driftcheck-coverage-") as folder:
                checking = Checking(python, options.cache, Path(folder))
                measure(tree, target, checking, options.calls, missed=options.missed)
            gc.collect()


def measure(client: SourceTree, target: SourceTree, checking: Checking, count: int, *, missed: bool) -> None:
    """Prints how many of the calls that pyright leads into the target are resolved."""
    files = ClientFiles(client, target)
    modules = files.modules([])
    program = Program(target, client, shared=files.shared)
    program.replaced_modules = files.replaced_modules
    resolved = {call.spot: call.reason for call in calls_of(program, modules)}
    word = re.compile(rf"\b({'|'.join(sorted(files.target_names))})\b")
    every = [spot for module in modules if word.search(module.text) for spot in spots_of(module)]
    asked = chosen(every, count)
    led = leading(client, target, checking, asked)
    reasons = {spot: resolved.get(spot, NOT_RUN) for spot in led}
    running = [spot for spot in led if reasons[spot] != NOT_RUN]
    fitting = [spot for spot in running if not reasons[spot]]
    share = f" {len(fitting) / len(running):.1%}" if running else ""
    print(f"  pyright asked at {len(asked)} of {len(every)} calls, {len(led)} of which lead into the target")
    print(f"  of these {len(led) - len(running)} in {NOT_RUN}; resolved {len(fitting)} of {len(running)}{share}")
    print_counts("not resolved", Counter(reasons[spot] for spot in running if reasons[spot]), 20)
    if missed:
        for spot in sorted(led):
            if reasons[spot]:
                print(f"  {spot.path}:{spot.line}:{spot.column} {reasons[spot]}")
    print()


def calls_of(program: Program, modules: Sequence[ModuleDeclaration]) -> list[Call]:
    """Every call that the audit comes by in a client, whatever is called."""
    judge, reachability = Judge(program), Reachability(program, modules)
    usages: list[CallUsage] = []

    def note(usage: Usage) -> None:
        if isinstance(usage, CallUsage):
            usages.append(usage)

    for module in modules:
        collector = Collector(program, module, note, judge.concerns)
        collector.reachability = reachability
        collector.collect()
    calls: list[Call] = []
    for usage in usages:
        place = usage.location
        if isinstance(usage.node.func, ast.Name | ast.Attribute):
            reason = _reason(judge, usage) if reachability.is_reachable(place.path, usage.scope) else NOT_RUN
            calls.append(Call(Spot(place.path, place.line, place.column), reason))
    return calls


def _reason(judge: Judge, usage: CallUsage) -> str:
    verdict = judge.verdict(usage)
    if verdict is None or verdict.is_own:
        return f"taken for something else: {_kind_of(usage.callee)}"
    return verdict.reason or "left open" if verdict.status == "unresolved" else ""


def _kind_of(type_: Type) -> str:
    """A few words on what a callee is taken for."""
    unknown = next((member for member in members_of(type_) if isinstance(member, Unknown)), None)
    return unknown.reason if unknown is not None else type(type_).__name__.lower()


def spots_of(module: ModuleDeclaration) -> list[Spot]:
    """The places of the names that the calls of a module call."""
    assert module.tree is not None
    called = (node.func for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    places = [
        Place(module, func, is_name=True).location for func in called if isinstance(func, ast.Name | ast.Attribute)
    ]
    return [Spot(place.path, place.line, place.column) for place in places]


def chosen(spots: Sequence[Spot], count: int) -> list[Spot]:
    """So many of the places, by a hash of each, sorted."""
    ordered = sorted(set(spots), key=lambda spot: hashlib.sha256(repr(spot).encode()).digest())
    return sorted(ordered[:count])


def leading(client: SourceTree, target: SourceTree, checking: Checking, spots: Sequence[Spot]) -> list[Spot]:
    """The places at which pyright leads into the target."""
    asked = hashlib.sha256(repr(spots).encode()).hexdigest()
    kept = checking.cache / f"definitions-{checking.key(asked, 'pyright', client, target)}.json"
    if not kept.is_file():
        folders = checking.folder(client), checking.folder(target)
        write_configuration(*folders, client.roots, sorted({spot.path for spot in spots}))
        found = sorted(Definitions(*folders, checking.python).leading_into_the_target(spots))
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([(spot.path, spot.line, spot.column) for spot in found]))
    return [Spot(*place) for place in json.loads(kept.read_text())]


if __name__ == "__main__":
    main()
