"""One release of the target as the questions about classes and patches see it: its program, judge and call sites."""

from __future__ import annotations

from collections.abc import Collection

from driftcheck.compare.callsites import CallSites
from driftcheck.compare.judge import Judge
from driftcheck.model import Location
from driftcheck.origins.names import is_older
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration


class Release:
    """A release of the target with the client beside it.

    `replaced` are the functions and classes of the target that the client puts something else in the place of, as
    (owner, name): what they would call is never called.
    """

    def __init__(self, judge: Judge, replaced: Collection[tuple[str, str]] = ()) -> None:
        self.judge = judge
        self.replaced = replaced
        self.program = judge.program
        self.signatures = judge.signatures
        self.sites = CallSites(judge.program, self.is_replaced)

    def is_older_than(self, other: Release) -> bool:
        """True where both have a version, and this one's is the lower: what it lacks may be what came later."""
        return is_older(self.program.target.version, other.program.target.version)

    def is_replaced(self, function: FunctionDeclaration) -> bool:
        """True for a function that never runs, since the client replaces it, or the class or function around it."""
        around: FunctionDeclaration | ClassDeclaration | None = function
        while around is not None:
            owner, _, name = around.symbol.replace(".<locals>", "").rpartition(".")
            if (owner, name) in self.replaced:
                return True
            around = around.owner or around.outer
        return False

    def is_target(self, declaration: ClassDeclaration | FunctionDeclaration | ModuleDeclaration) -> bool:
        """True for what the target declares."""
        module = declaration if isinstance(declaration, ModuleDeclaration) else declaration.module
        return self.program.is_target(module.name)


def name_place(declaration: ClassDeclaration | FunctionDeclaration) -> Location:
    """The place of the name in a `def` or `class` statement, columns in characters."""
    module, node = declaration.module, declaration.node
    text = module.lines[node.lineno - 1] if node.lineno <= len(module.lines) else ""
    start = len(text.encode()[: node.col_offset].decode(errors="replace"))
    word = "class" if isinstance(declaration, ClassDeclaration) else "def"
    found = text.find(declaration.name, text.find(word, start) + len(word))
    column = (found if found >= 0 else start) + 1
    return Location(module.path, node.lineno, column, node.lineno, column + len(declaration.name))
