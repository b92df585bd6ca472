"""How long the README's audit takes, whole process, beside a type checker on the same files.

    python -m benchmarks.audit [--pairs 15] [--sources-only] [--imports]

With everything cached, driftcheck and ty take turns in one run, so that both meet the same machine: what counts is the
ratio. ty checks all the client's files, and only those that use the target. It gets the target in two ways: installed
with its dependencies, as a type checker needs it (in the environment that the tests with a real vLLM use, which is made
if need be), and as bare sources on its search path, where torch and all else is unknown to it. Then the audit is run
with an empty cache, and what it fetches is counted. `--imports` lists the modules that take longest to import.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import CACHE_FOLDER_VARIABLE, Settings, Traffic
from driftcheck.tree import SourceTree
from tests.real.environments import interpreter_of

CLIENT, TARGET, BASELINE = "speculators==0.3.0", "vllm==0.16.0", "vllm==0.11.0"
DRIFTCHECK = (sys.executable, "-m", "driftcheck")
AUDIT = (*DRIFTCHECK, "audit", CLIENT, "--against", TARGET, "--no-cache")
_IMPORT_RUNS = 5
_SLOW_IMPORT = 1_000
"""Microseconds from which an import is listed."""


@dataclass(frozen=True, slots=True)
class Run:
    """One whole process: seconds on the clock and on the processors, and how it ended."""

    wall: float
    cpu: float
    code: int


def variables(bytecode: Path) -> dict[str, str]:
    """The environment of what is measured: Python keeps its bytecode, as it does for what is installed."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPYCACHEPREFIX": str(bytecode)}


def timed(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Runs a command to its end, without its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, cpu, done.returncode)


def take_turns(commands: Mapping[str, Sequence[str]], turns: int, bytecode: Path) -> dict[str, list[Run]]:
    """Runs each command once a turn, in an order that changes from turn to turn; a first turn is not counted."""
    names = list(commands)
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for turn in range(turns + 1):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            run = timed(commands[name], variables(bytecode))
            # Both exit with 1 for findings; anything else is a failure that would look fast.
            if run.code not in (0, 1):
                raise SystemExit(f"{name} ended with {run.code}: {' '.join(commands[name])}")
            if turn:
                runs[name].append(run)
    return runs


def write_files(tree: SourceTree, folder: Path, only: re.Pattern[bytes] | None = None) -> int:
    """Writes a tree's Python files, or those that match, below a folder; returns how many."""
    count = 0
    for path in sorted(tree.paths):
        if not path.endswith((".py", ".pyi")):
            continue
        data = tree.read(path)
        if only is not None and not only.search(data):
            continue
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        count += 1
    return count


def ty_program() -> str:
    """The path of ty: beside this interpreter, else on the PATH."""
    beside = Path(sys.executable).with_name("ty")
    found = str(beside) if beside.is_file() else shutil.which("ty")
    if found is None:
        raise SystemExit("ty is needed to compare with: pip install ty")
    return found


def fetched(folder: Path) -> Traffic:
    """What the three trees of the audit cost with an empty cache."""
    settings = Settings(cache_folder=folder)
    for specification in (TARGET, BASELINE):
        target_tree(specification, settings=settings)
    client_tree(CLIENT, settings=settings)
    return settings.traffic


def compare(pairs: int, work: Path, python: Path | None) -> None:
    """Prints the table of whole processes with everything cached."""
    client, target = client_tree(CLIENT), target_tree(TARGET)
    target_tree(BASELINE)
    every, using, path = work / "every", work / "using", work / "target"
    counts = write_files(client, every), write_files(client, using, re.compile(rb"\bvllm\b"))
    write_files(target, path)
    ty = (ty_program(), "check", "--no-progress")
    commands: dict[str, Sequence[str]] = {"driftcheck audit": AUDIT}
    for place, options in (("installed", ("--python", str(python))), ("sources", ("--extra-search-path", str(path)))):
        if place == "installed" and python is None:
            continue
        for folder, count in zip((every, using), counts, strict=True):
            commands[f"ty check, {count:2} files, vllm {place}"] = (
                *ty,
                *options,
                "--project",
                str(folder),
                str(folder),
            )
    commands["driftcheck --version"] = (*DRIFTCHECK, "--version")
    commands["python -c pass"] = (sys.executable, "-c", "pass")
    runs = take_turns(commands, pairs, work / "bytecode")
    print(f"{'everything cached':36} {'wall':>8} {'best':>8} {'cpu':>8} {'ratio':>8}")
    for command, taken in runs.items():
        walls = [run.wall for run in taken]
        row = f"{command:36} {median(walls):7.3f}s {min(walls):7.3f}s {median(run.cpu for run in taken):7.3f}s"
        if command.startswith("ty "):
            ratio = median(own.wall / peer.wall for own, peer in zip(runs["driftcheck audit"], taken, strict=True))
            row += f" {ratio:8.2f}"
        print(row)
    print("ratio: of the audit to this, by the clock, the median over the turns")


def from_nothing(repeats: int, work: Path) -> None:
    """Prints what the audit costs where nothing is cached."""
    environment = variables(work / "bytecode")
    caches = [str(work / f"cache-{number}") for number in range(repeats)]
    runs = [timed(AUDIT, {**environment, CACHE_FOLDER_VARIABLE: cache}) for cache in caches]
    failed = next((run for run in runs if run.code not in (0, 1)), None)
    if failed is not None:
        raise SystemExit(f"the audit with an empty cache ended with {failed.code}")
    traffic = fetched(work / "cache-counted")
    walls = sorted(run.wall for run in runs)
    cpu = median(run.cpu for run in runs)
    print(f"\n{'nothing cached':36} {median(walls):7.3f}s {walls[0]:7.3f}s {cpu:7.3f}s")
    print(f"fetched: {traffic.received / 1e6:.1f} MB in {traffic.requests} requests ({CLIENT}, {TARGET}, {BASELINE})")


def slow_imports(bytecode: Path) -> None:
    """Prints the imports of a cached audit that take longest, alone and with what they import: the best of five."""
    command = [sys.executable, "-X", "importtime", *AUDIT[1:]]
    best: dict[str, tuple[int, int]] = {}
    for _ in range(_IMPORT_RUNS):
        done = subprocess.run(command, env=variables(bytecode), capture_output=True, text=True, check=False)
        for own, whole, module in re.findall(r"^import time: +(\d+) \| +(\d+) \| +(\S+)$", done.stderr, re.MULTILINE):
            before = best.get(module, (int(own), int(whole)))
            best[module] = min(int(own), before[0]), min(int(whole), before[1])
    total = sum(own for own, _ in best.values())
    print(f"\nimports: {len(best)} modules, {total / 1000:.0f} ms; the slow ones")
    print(f"{'alone':>8} {'in all':>8}")
    for module, (own, whole) in sorted(best.items(), key=lambda item: -item[1][1]):
        if own >= _SLOW_IMPORT or (whole >= 2 * _SLOW_IMPORT and module.startswith("driftcheck")):
            print(f"{own / 1000:5.1f} ms {whole / 1000:5.1f} ms  {module}")


def main() -> None:
    """Parses the options and prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=15, metavar="N", help="counted runs of each program (default: 15)")
    parser.add_argument("--sources-only", action="store_true", help="make and use no environment with the target")
    parser.add_argument("--imports", action="store_true", help="also list the slow imports")
    options = parser.parse_args()
    runtime = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"{runtime}, {os.cpu_count()} processors, driftcheck {version_of('driftcheck')}, ty {version_of('ty')}\n")
    python = None if options.sources_only else interpreter_of("vllm-0.16.0")
    with tempfile.TemporaryDirectory(prefix="driftcheck-benchmark-") as folder:
        compare(options.pairs, Path(folder), python)
        from_nothing(3, Path(folder))
        if options.imports:
            slow_imports(Path(folder) / "bytecode")


def version_of(name: str) -> str:
    """The version of driftcheck itself, or of an installed distribution."""
    from importlib.metadata import PackageNotFoundError

    import driftcheck

    if name == "driftcheck":
        return driftcheck.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        return "of unknown version"


if __name__ == "__main__":
    main()
