"""What the target itself says of things that are to go."""

from __future__ import annotations

import ast
import re

from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration

_RELEASE = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)\b")


def deprecation_of(declaration: FunctionDeclaration | ClassDeclaration | ModuleDeclaration) -> str | None:
    """The text of a `deprecated` decorator, None where there is none."""
    if isinstance(declaration, ModuleDeclaration):
        return None
    for node in declaration.node.decorator_list:
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name != "deprecated" or not node.args:
            continue
        text = node.args[0]
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            return text.value
        if isinstance(text, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in text.values]
            return "".join(str(part) for part in parts)
        return ""
    return None


def ending_release(text: str) -> str | None:
    """The last release that a deprecation text names: the one that ends the thing."""
    found = _RELEASE.findall(text)
    return found[-1] if found else None


def without_releases(text: str) -> str:
    """A deprecation text without the releases that it names, its spaces evened out."""
    return " ".join(_RELEASE.sub("", text).split())
