"""Which paths of a release a name stands for that is no whole path: `SamplingParams`, `Scheduler.schedule`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from driftcheck.compare.standing import Standings
from driftcheck.surface.declarations import Binding, ModuleDeclaration


def full_names(name: str, target: str, standings: Standings) -> list[str]:
    """The paths that a name may stand for, the shortest first: none where the release has nothing of that name.

    What the target's top level has under the name is what is meant. Else it is what modules define, and where these
    define nothing of that name, what their classes do.
    """
    top = f"{target}.{name}"
    if standings.of(top).status == "there":
        return [top]
    first = name.partition(".")[0]
    modules = list(_modules(first, standings))
    for defined in (_defined, _set, _members):
        paths = [f"{path}{name[len(first) :]}" for module in modules for path in defined(module, first)]
        found = _there(paths, standings)
        if found:
            return found
    return []


def _there(paths: list[str], standings: Standings) -> list[str]:
    there = {path for path in paths if standings.of(path).status == "there"}
    return sorted(there, key=lambda path: (path.count("."), path))


def _modules(name: str, standings: Standings) -> Iterator[ModuleDeclaration]:
    """The modules of the target whose text defines the name or sets it."""
    program = standings.program
    own = re.escape(name).encode()
    pattern = re.compile(rb"^\s*(?:(?:class|(?:async\s+)?def)\s+%b\b|%b\s*[:=])" % (own, own), re.MULTILINE)
    for path, data in program.target_holding(name):
        module_name = program.target_index.name_of(path) if pattern.search(data) else None
        module = program.module(module_name) if module_name is not None else None
        if module is not None:
            yield module


def _defined(module: ModuleDeclaration, name: str) -> list[str]:
    bindings = module.names.get(name, [])
    return [f"{module.name}.{name}"] if any(each.class_ or each.function for each in bindings) else []


def _set(module: ModuleDeclaration, name: str) -> list[str]:
    bindings = module.names.get(name, [])
    return [f"{module.name}.{name}"] if any(_is_set(each) for each in bindings) else []


def _is_set(binding: Binding) -> bool:
    return binding.value is not None or binding.annotation is not None


def _members(module: ModuleDeclaration, name: str) -> list[str]:
    classes = {each.class_ for bindings in module.names.values() for each in bindings if each.class_ is not None}
    return [f"{class_.symbol}.{name}" for class_ in classes if name in class_.members]
