"""Whether other files of a client take a name from one of its files."""

from __future__ import annotations

import ast
import warnings

from driftcheck.tree import SourceTree


def is_taken_from(tree: SourceTree, path: str, name: str) -> bool:
    """True where another file may take a name from the one at a path: where it can't be told, it may.

    What a package's `__init__` imports is there to be taken from it.
    """
    stem = path.rpartition("/")[2].partition(".")[0]
    if stem == "__init__":
        return True
    return any(
        other != path and other.endswith((".py", ".pyi")) and _takes(tree.read(other), stem, name)
        for other in sorted(tree.paths)
    )


def _takes(source: bytes, stem: str, name: str) -> bool:
    if name.encode() not in source or stem.encode() not in source:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == stem:
            if any(alias.name in (name, "*") for alias in node.names):
                return True
        elif isinstance(node, ast.Attribute) and node.attr == name:
            if isinstance(node.value, ast.Name | ast.Attribute):
                return True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and f"{stem}.{name}" in node.value:
            return True
    return False
