"""All distributions that an interpreter has installed, and which of them use a package."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.kept import keep
from driftcheck.origins.installed import Distribution, InstalledTree, sites_of, tree_of
from driftcheck.origins.interpreter import ask_interpreter, find_interpreter, plain_environment
from driftcheck.origins.limits import MEMBER_BYTES
from driftcheck.origins.names import normalized
from driftcheck.origins.settings import Settings

_MOST_REMEMBERED = 64


def search_path_of(settings: Settings) -> tuple[Path, tuple[str, ...]]:
    """The interpreter in force and the folders in which it looks for modules; raises DriftcheckError without one."""
    executable = find_interpreter(settings.python)
    interpreter = plain_environment(executable) or ask_interpreter(executable, settings.timeout)
    return executable, interpreter.search_path


def distributions_on(search_path: tuple[str, ...]) -> Iterator[Distribution]:
    """The distributions in these folders by name; of two of the same name the one that is found first."""
    found: dict[str, Distribution] = {}
    for site, entries in sites_of(search_path):
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info")):
                name = normalized(entry.rpartition(".")[0].partition("-")[0])
                found.setdefault(name, Distribution(site, site / entry))
    for name in sorted(found):
        yield found[name]


def users_of(package: str, settings: Settings) -> list[InstalledTree]:
    """The installed distributions that import the package or name things of it in strings, sorted by name.

    Those that hold the package are none. What was found of a distribution is remembered as long as its RECORD stays the
    same. Raises DriftcheckError where there is no interpreter.
    """
    executable, search_path = search_path_of(settings)
    memory = settings.cache / "users" / f"{hashlib.sha256(f'{executable} {package}'.encode()).hexdigest()[:32]}.json"
    remembered, fresh = _remembered(memory), {}
    trees = []
    for distribution in distributions_on(search_path):
        tree = tree_of(distribution, executable)
        if any(head.partition("/")[0].partition(".")[0] == package for head in tree.heads or ()):
            continue
        key = tree.record_digest if tree.origin == "installed distribution" else None
        answer = remembered.get(key) if key is not None else None
        if answer is None:
            answer = _uses(tree, package)
        if key is not None:
            fresh[key] = answer
        if answer:
            trees.append(tree)
    if fresh != remembered:
        keep(memory, json.dumps(fresh, sort_keys=True).encode(), most=_MOST_REMEMBERED)
    return sorted(trees, key=lambda tree: normalized(tree.name))


def _remembered(path: Path) -> dict[str, bool]:
    try:
        found = json.loads(path.read_bytes()) if path.is_file() and path.stat().st_size <= MEMBER_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: answer for key, answer in found.items() if isinstance(answer, bool)}


def _uses(tree: InstalledTree, package: str) -> bool:
    name = re.escape(package.encode())
    pattern = re.compile(rb"\b(?:import|from)\s+" + name + rb"\b|[\"']" + name + rb"(?:[.:][\w.:]+)?[\"']")
    word = package.encode()
    for path in tree.paths:
        if not path.endswith(".py"):
            continue
        try:
            source = tree.read(path)
        except DriftcheckError:
            continue
        if word in source and pattern.search(source) is not None:
            return True
    return False
