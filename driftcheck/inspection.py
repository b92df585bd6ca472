"""Shows what a target offers: one symbol, a module, the whole; and how far its sources and its interpreter agree."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.progress import UNWATCHED, Progress

if TYPE_CHECKING:
    from driftcheck.origins.installed import InstalledTree
    from driftcheck.origins.settings import Settings
    from driftcheck.surface.agreement import Agreement
    from driftcheck.surface.description import Description
    from driftcheck.surface.runtime import RuntimeModule
    from driftcheck.tree import SourceTree

_WIDTH = 100
_COMPARISON_TIMEOUT = 600.0


def describe(
    target: str,
    symbol: str | None = None,
    *,
    compare: bool = False,
    python: str | None = None,
    offline: bool = False,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Iterator[str]:
    """The lines that show a target, or one symbol of it, or with `compare` where sources and interpreter differ.

    Raises DriftcheckError where the target can't be had, has no such symbol, or is not installed and is to be compared.
    """
    from driftcheck.fetching import Fetching
    from driftcheck.origins.select import target_tree
    from driftcheck.origins.settings import Settings

    progress = progress or UNWATCHED
    settings = Settings(offline=offline, python=python, timeout=timeout, progress=Fetching(progress))
    tree = target_tree(target, settings=settings)
    with _without_collection():
        if compare:
            yield from _comparison(tree, symbol, settings, timeout, progress)
        elif symbol is None:
            yield from _overview(tree)
        else:
            yield from _symbol(tree, symbol)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Syntax trees are many small objects that live to the end: collecting among them costs more than parsing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _title(tree: SourceTree) -> str:
    return f"{tree.name} {tree.version}" if tree.version else tree.name


# The whole target


def _overview(tree: SourceTree) -> Iterator[str]:
    from driftcheck.surface.description import Descriptions
    from driftcheck.surface.program import Program

    program = Program(tree)
    index = program.target_index
    yield f"{_title(tree)}, {tree.origin}: {len(index.sources)} modules, {len(index.extensions)} compiled"
    descriptions = Descriptions(program)
    for name in sorted(index.top_level):
        yield ""
        yield from _lines(descriptions.describe(name), tree)


# One symbol


def _symbol(tree: SourceTree, symbol: str) -> Iterator[str]:
    from driftcheck.surface.description import Descriptions
    from driftcheck.surface.program import Program

    program = Program(tree)
    symbol = symbol.replace(":", ".").strip(".")
    if not program.is_target(symbol):
        names = ", ".join(sorted(program.target_index.top_level)) or "nothing that can be imported"
        raise DriftcheckError(f"{symbol} is not part of {_title(tree)}, which has {names}")
    found = Descriptions(program).describe(symbol)
    if found.sort == "missing":
        near = f"; there is {' or '.join(found.near)}" if found.near else ""
        raise DriftcheckError(f"{_title(tree)} has no {symbol}: {found.text}{near}")
    yield from _lines(found, tree)


def _lines(found: Description, tree: SourceTree) -> Iterator[str]:
    yield f"{found.sort} {found.symbol}"
    if found.asked != found.symbol and found.symbol.removesuffix(".__init__") != found.asked:
        yield f"  asked for as {found.asked}"
    if found.path is not None:
        yield f"  {found.path}:{found.line} in {_title(tree)}"
    if found.bases:
        yield f"  derives from {', '.join(found.bases)}"
    if found.signature is not None:
        yield ""
        yield from _written(found)
    elif found.text:
        yield f"  {found.text}"
    if found.members:
        yield ""
        yield from _member_lines(found)


def _written(found: Description) -> Iterator[str]:
    """The call as one writes it, a parameter a line where it is long."""
    assert found.signature is not None
    name = found.symbol.removesuffix(".__init__").rpartition(".")[2]
    text = f"{name}{found.signature}"
    if len(text) <= _WIDTH:
        yield f"  {text}"
        return
    from driftcheck.report.signature import parse_signature

    parsed = parse_signature(text)
    if parsed is None:
        yield f"  {text}"
        return
    yield f"  {name}("
    for parameter in parsed.parameters:
        yield f"      {parameter.text},"
    yield f"  ) {parsed.returns}".rstrip()


def _member_lines(found: Description) -> Iterator[str]:
    for member in found.members:
        name = member.asked.rpartition(".")[2]
        text = f"{name}{member.signature}" if member.signature is not None else f"{name}  {member.text}".rstrip()
        if len(text) > _WIDTH:
            text = f"{text[: _WIDTH - 1]}…"
        owner = member.symbol.removesuffix(".__init__").rpartition(".")[0]
        inherited = f"  (of {owner})" if found.sort == "class" and member.symbol and owner != found.symbol else ""
        yield f"  {member.sort:<13} {text}{inherited}"


# Sources against interpreter


def _comparison(
    tree: SourceTree, symbol: str | None, settings: Settings, timeout: float | None, progress: Progress
) -> Iterator[str]:
    from driftcheck.origins.installed import InstalledTree
    from driftcheck.surface.agreement import hold
    from driftcheck.surface.program import Program
    from driftcheck.surface.runtime import probe

    if not isinstance(tree, InstalledTree):
        raise DriftcheckError(
            f"{_title(tree)} is no installed target, which --compare needs: name it as installed, "
            "with --python for the interpreter that has it"
        )
    program = Program(tree)
    names = _modules(program.target_index.sources, symbol, tree)
    with progress.task(f"Asking the interpreter about {len(names)} modules"):
        surface = probe(
            tree.executable,
            modules=names,
            timeout=timeout or _COMPARISON_TIMEOUT,
            cache_folder=settings.cache,
            cache_key=tree.record_digest,
        )
    modules = list(surface.modules.values())
    if symbol is not None and symbol not in names and len(modules) == 1 and modules[0].failure is None:
        modules = [_part(modules[0], symbol, tree)]
    failed = sum(1 for module in modules if module.failure is not None)
    agreement = hold(program, modules)
    yield from comparison_lines(agreement, _title(tree), failed)


def _part(module: RuntimeModule, symbol: str, tree: InstalledTree) -> RuntimeModule:
    """The symbol of a module, with its members, and nothing else."""
    name = symbol.removeprefix(f"{module.name}.")
    kept = tuple(found for found in module.symbols if f"{found.name}.".startswith(f"{name}."))
    if not kept:
        raise DriftcheckError(f"{_title(tree)} defines no {name} in {module.name}")
    return replace(module, symbols=kept)


def _modules(sources: dict[str, str], symbol: str | None, tree: InstalledTree) -> list[str]:
    names = [name for name in sorted(sources) if not name.endswith("__main__") and _is_importable(name)]
    if symbol is None:
        return names
    inside = [name for name in names if f"{name}.".startswith(f"{symbol}.")]
    holders = [name for name in names if f"{symbol}.".startswith(f"{name}.")]
    if not inside and not holders:
        raise DriftcheckError(f"{_title(tree)} has no module {symbol}")
    return inside or holders[-1:]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _is_importable(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def comparison_lines(agreement: Agreement, title: str, failed: int = 0) -> Iterator[str]:
    """What the comparison found: figures, causes with counts, then every difference."""
    differing = [difference for difference in agreement.differences if difference.static is not None]
    left_open = len(agreement.differences) - len(differing)
    yield f"{title}: {_count(agreement.compared, 'public callable')} in {_count(agreement.modules, 'module')}"
    if failed:
        yield f"{_count(failed, 'module')} can't be imported here"
    yield f"{agreement.equal} agree ({agreement.share:.2%}), {len(differing)} differ, {left_open} are left open"
    for cause, count in agreement.causes():
        yield f"{count:6}  {cause}"
    for difference in agreement.differences:
        place = f"  {difference.path}:{difference.line}" if difference.path is not None else ""
        yield ""
        yield f"{difference.kind} {difference.symbol}{place}"
        yield f"    {difference.cause}"
        if difference.static is not None:
            yield f"    sources      {difference.static}"
        yield f"    interpreter  {difference.runtime}"
