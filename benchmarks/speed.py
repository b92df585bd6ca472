"""How long a large client takes, beside bare parsing of the same files and beside type checkers.

    python -m benchmarks.speed [CLIENT [TARGET]] [--turns 3] [--pyright] [--python INTERPRETER]

What the audit parses (the client's files that have to do with the target, and the modules of both releases that their
usages reach) is parsed by `ast.parse` alone, in one process; then come the audit itself, the audit again with nothing
changed, and ty and, if asked for, pyright on the client with one release on their path. All take turns in one run. Wall
seconds, processor seconds, and the largest memory of any one process.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from benchmarks.audit import ty_program, variables, write_files
from benchmarks.checkers import MEMORY, write_configuration
from driftcheck.apart import begun_apart
from driftcheck.compare.reading import Client, Reading
from driftcheck.model import Skipped
from driftcheck.origins.baseline import baseline_specification
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import Settings
from driftcheck.surface.modules import ModuleIndex
from driftcheck.tree import SourceTree
from driftcheck.usage.files import ClientFiles

_DRIFTCHECK = (sys.executable, "-m", "driftcheck", "audit")


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: seconds on the clock and on the processors, and the memory of the largest process in megabytes."""

    wall: float
    cpu: float
    memory: float


def main() -> None:
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("client", nargs="?", default="vllm-omni==0.30.0")
    parser.add_argument("target", nargs="?", default="vllm==0.33.0")
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="counted runs of each program (default: 3)")
    parser.add_argument("--pyright", action="store_true", help="run pyright too, which takes minutes")
    parser.add_argument("--python", type=Path, help="an interpreter with the target's dependencies, for the checkers")
    options = parser.parse_args()
    settings = Settings()
    client, target = client_tree(options.client, settings=settings), target_tree(options.target, settings=settings)
    found = baseline_specification(client, target.name, settings=settings)
    if found is None:
        raise SystemExit(f"{options.client} has no baseline")
    baseline = target_tree(found[0], settings=settings)
    # Elsewhere, since the largest memory of a process counts what it was split off from.
    parsed = begun_apart(functools.partial(_parsed, client, target, baseline))()
    print(f"{options.client} from {found[0]} to {options.target}: {len(parsed)} files parsed", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        commands: dict[str, Sequence[str]] = {
            "audit": (*_DRIFTCHECK, options.client, "--against", options.target, "--format", "json", "--no-cache"),
            "audit again": (*_DRIFTCHECK, options.client, "--against", options.target, "--format", "json"),
            **_checkers(client, target, work, options.python, with_pyright=options.pyright),
        }
        runs: dict[str, list[Measured]] = {name: [] for name in ("ast.parse", *commands)}
        # The first turn fills the caches and is not counted.
        for turn in range(options.turns + 1):
            row = {"ast.parse": _parsing(parsed)}
            row.update({name: _timed(command, work) for name, command in commands.items() if turn or "aud" in name})
            if turn:
                for name, run in row.items():
                    runs[name].append(run)
    print(f"{'':14} {'wall':>8} {'cpu':>8} {'memory':>9} {'ratio':>7}")
    for name, taken in runs.items():
        ratio = median(own.wall / bare.wall for own, bare in zip(taken, runs["ast.parse"], strict=True))
        row_of = (median(run.wall for run in taken), median(run.cpu for run in taken), median(r.memory for r in taken))
        print("{:14} {:7.2f}s {:7.2f}s {:6.0f} MB {:7.2f}".format(name, *row_of, ratio))
    print("ratio: to ast.parse, by the clock, the median over the turns")


def _parsed(client: SourceTree, target: SourceTree, baseline: SourceTree) -> list[str]:
    """The sources that the audit parses."""
    files = ClientFiles(client, target)
    skipped: list[Skipped] = []
    modules = files.modules(skipped)
    as_read = Client(client, modules, files.shared, files.replaced_modules, files.words)
    texts = {module.path: module.text for module in modules}
    for release in (baseline, target):
        reading = Reading(release, as_read)
        reading.read()
        program = reading.program
        declared = [program.module(name) for name in program.loaded_modules() if program.is_target(name)]
        texts.update({f"{release.version} {module.path}": module.text for module in declared if module is not None})
    return list(texts.values())


def _parsing(texts: Sequence[str]) -> Measured:
    wall, cpu = perf_counter(), process_time()
    for text in texts:
        ast.parse(text)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return Measured(perf_counter() - wall, process_time() - cpu, memory)


def _timed(command: Sequence[str], work: Path) -> Measured:
    began = perf_counter()
    process = subprocess.Popen(
        command, env=variables(work / "bytecode"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"ended with {process.returncode}: {' '.join(command)}")
    return Measured(perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def _checkers(
    client: SourceTree, target: SourceTree, work: Path, python: Path | None, *, with_pyright: bool
) -> dict[str, Sequence[str]]:
    """The checkers' commands, on the client's files with the target's on their path."""
    files, path = work / "client", work / "target"
    write_files(client, files)
    write_files(target, path)
    interpreter = Path(sys.executable) if python is None else python
    commands: dict[str, Sequence[str]] = {
        "ty": (
            ty_program(), "check", "--no-progress", "--python", str(interpreter), "--extra-search-path", str(path),
            "--project", str(files), str(files),
        )
    }  # fmt: skip
    if with_pyright:
        naming = [path for path in ModuleIndex(client).sources.values() if b"vllm" in client.read(path)]
        write_configuration(files, path, client.roots, naming)
        program = str(Path(sys.executable).with_name("pyright"))
        commands["pyright"] = (
            "env", f"NODE_OPTIONS={MEMORY}", program, "--project", str(files), "--pythonpath", str(interpreter),
        )  # fmt: skip
    return commands


if __name__ == "__main__":
    main()
