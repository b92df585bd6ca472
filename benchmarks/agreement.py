"""Static against runtime: how often the sources alone give the signature that the target's interpreter gives.

    python -m benchmarks.agreement INTERPRETER PACKAGE [--dump FILE] [--list]

INTERPRETER has PACKAGE installed. The interpreter is asked once; with `--dump` its answers are kept in FILE and taken
from there the next time. Prints the share of public callables that agree, the causes of every difference with counts,
and with `--list` the differences themselves.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.origins.folders import folder_tree
from driftcheck.surface.agreement import Agreement, hold
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.program import Program
from driftcheck.surface.runtime import RuntimeFailure, RuntimeModule, RuntimeSymbol, probe


def main(arguments: list[str] | None = None) -> int:
    """Runs the comparison and prints its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("interpreter", type=Path)
    parser.add_argument("package")
    parser.add_argument("--dump", type=Path)
    parser.add_argument("--list", action="store_true", dest="lists")
    options = parser.parse_args(arguments)
    sources = next(options.interpreter.parent.parent.glob(f"lib/python3*/site-packages/{options.package}"))
    program = Program(folder_tree(sources))
    modules = runtime_modules(options.interpreter, program, options.dump)
    gc.disable()
    start = time.process_time()
    agreement = hold(program, modules)
    show(agreement, time.process_time() - start, lists=options.lists)
    return 0


def show(agreement: Agreement, seconds: float, *, lists: bool) -> None:
    """Print the figures."""
    out = sys.stdout.write
    known = [difference for difference in agreement.differences if difference.static is not None]
    out(f"{agreement.modules} modules, {agreement.compared} public callables, {seconds:.1f} s of CPU\n")
    unknown = len(agreement.differences) - len(known)
    out(f"agree: {agreement.equal} ({agreement.share:.2%}); differ: {len(known)}; ")
    out(f"left open by the sources: {unknown}\n")
    for cause, count in agreement.causes():
        out(f"{count:6} {cause}\n")
    for difference in agreement.differences if lists else ():
        out(f"\n{difference.kind} {difference.symbol}: {difference.cause}\n")
        if difference.static is not None:
            out(f"  static  {difference.static}\n  runtime {difference.runtime}\n")


def runtime_modules(interpreter: Path, program: Program, dump: Path | None) -> list[RuntimeModule]:
    """What the interpreter says of every module of the program, asked now or taken from an earlier dump."""
    if dump is not None and dump.is_file():
        stored = json.loads(dump.read_text("utf-8"))["modules"]
        return [module_from(name, record) for name, record in stored.items()]
    names = [name for name in sorted(ModuleIndex(program.target).sources) if not name.endswith("__main__")]
    surface = probe(interpreter, modules=names, timeout=1500, patience=400)
    if dump is not None:
        dump.write_text(json.dumps({"modules": {name: plain(module) for name, module in surface.modules.items()}}))
    return list(surface.modules.values())


def plain(value: Any) -> Any:
    """A value object as JSON takes it; what is empty is left out."""
    if isinstance(value, ParameterKind):
        return value.value
    if dataclasses.is_dataclass(value):
        pairs = [(field.name, plain(getattr(value, field.name))) for field in dataclasses.fields(value)]
        return {name: item for name, item in pairs if item not in (None, (), False)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def module_from(name: str, record: dict[str, Any]) -> RuntimeModule:
    """One module of a dump."""
    failure = record.get("failure")
    return RuntimeModule(
        name,
        symbols=tuple(symbol_from(symbol) for symbol in record.get("symbols", ())),
        failure=RuntimeFailure(**failure) if failure else None,
    )


def symbol_from(record: dict[str, Any]) -> RuntimeSymbol:
    """One symbol of a dump, as far as the comparison needs it."""
    stated, outer = (signature_from(record[key]) if key in record else None for key in ("signature", "outer_signature"))
    return RuntimeSymbol(
        record["name"], record.get("status", "found"), record.get("kind"), signature=stated, outer_signature=outer
    )


def signature_from(record: dict[str, Any]) -> Signature:
    """One signature of a dump."""
    return Signature(
        tuple(
            Parameter(
                parameter["name"],
                ParameterKind(parameter["kind"]),
                parameter.get("default"),
                parameter.get("annotation"),
            )
            for parameter in record.get("parameters", ())
        ),
        record.get("returns"),
    )


if __name__ == "__main__":
    sys.exit(main())
