"""Which functions of the client can run at all: one that only dead branches mention is as dead as they are.

The collector tells what it meets in code that runs; whatever else mentions a function stands in code that does not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from driftcheck.surface.declarations import Binding, ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.syntax import called_name, nodes_around
from driftcheck.surface.types import Class, Unknown
from driftcheck.usage.importers import imported_modules

Declaration = FunctionDeclaration | ClassDeclaration
# Decorators that hand a function to nobody.
_KEEPING = frozenset(
    ("staticmethod", "classmethod", "property", "cached_property", "lru_cache", "cache", "wraps", "override", "final",
     "no_grad", "inference_mode", "contextmanager", "asynccontextmanager", "dataclass", "setter", "deprecated")
)  # fmt: skip
_KEEPING_BASES = frozenset(("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"))


class Reachability:
    """Knows who mentions the functions and classes of the client, in code that runs under the target at hand.

    Ask once every module has been collected.
    """

    def __init__(self, program: Program, modules: Sequence[ModuleDeclaration]) -> None:
        self.program = program
        self.modules = modules
        self._mentions: dict[str, set[FunctionDeclaration | None]] = {
            declaration.name: set() for module in modules for declaration in _declarations(module)
        }
        self._functions: dict[tuple[str, str], list[FunctionDeclaration]] = {}
        self._answers: dict[Declaration, bool] = {}
        self._imports: dict[str, set[tuple[str, FunctionDeclaration | None]]] = {m.name: set() for m in modules}
        self._dead_modules: set[str] | None = None
        for module in modules:
            if module.is_package:
                self._note_exports(module)

    # What the collector tells

    def mentioned(self, name: str, function: FunctionDeclaration | None) -> None:
        """Notes that code that runs, in this function or outside of any, mentions a name."""
        found = self._mentions.get(name)
        if found is not None:
            found.add(function)

    def imported(self, name: str, importer: ModuleDeclaration, function: FunctionDeclaration | None) -> None:
        """Notes that code that runs imports a module, and with it the packages around it."""
        while name:
            found = self._imports.get(name)
            if found is not None and name != importer.name:
                found.add((importer.name, function))
            name = name.rpartition(".")[0]

    def entered(self, path: str, scope: str, function: FunctionDeclaration) -> None:
        """Notes which function stands at a dotted path in a file."""
        self._functions.setdefault((path, scope), []).append(function)

    def _note_exports(self, module: ModuleDeclaration) -> None:
        """What a package imports under its own name, others may take from there."""
        for bindings in module.names.values():
            for binding in bindings:
                if isinstance(binding.node, ast.ImportFrom):
                    for alias in binding.node.names:
                        self.mentioned(alias.name, None)

    # Answers

    def is_reachable(self, path: str, scope: str) -> bool:
        """False where the function at a dotted path in a file, or the file itself, surely never runs."""
        if self._dead_modules is None:
            self._dead_modules = self._find_dead_modules()
        if path in self._dead_modules:
            return False
        functions = self._functions.get((path, scope), ())
        return not functions or any(self._reaches(function) for function in functions)

    def _find_dead_modules(self) -> set[str]:
        """The paths of the modules that only code that does not run imports.

        Who imports a module is known as far as the client's own modules go; what none of them imports is for others.
        """
        index = self.program.client_index
        if index is None:
            return set()
        known = {module.name for module in self.modules}
        importers: dict[str, int] = {}
        for module in self.modules:
            for name in set(imported_modules(module.name, module.text.encode(), index)) & known - {module.name}:
                importers[name] = importers.get(name, 0) + 1
        running: set[str] = {
            module.name
            for module in self.modules
            if not importers.get(module.name) or module.is_package or re.search(r"[\"']__main__[\"']", module.text)
        }
        running |= (known - running) & self._named_in_strings()
        count = -1
        while count != len(running):
            count = len(running)
            running |= {
                name
                for name in known - running
                if any(
                    importer in running and (function is None or self._reaches(function))
                    for importer, function in self._imports[name]
                )
            }
        return {module.path for module in self.modules if module.name not in running}

    def _named_in_strings(self) -> set[str]:
        """The dotted names that stand in quotes, which may be how a module is imported, and those around them."""
        tops = sorted({module.name.partition(".")[0] for module in self.modules})
        pattern = re.compile(rf"[\"']((?:{'|'.join(map(re.escape, tops))})[\w.]*)")
        found: set[str] = set()
        for module in self.modules:
            for name in set(pattern.findall(module.text)):
                while name not in found and name:
                    found.add(name)
                    name = name.rpartition(".")[0]
        return found

    def _reaches(self, declaration: Declaration) -> bool:
        if declaration not in self._answers:
            self._settle(declaration)
        return self._answers[declaration]

    def _settle(self, declaration: Declaration) -> None:
        """Answers for a declaration and all that its answer rests on.

        What is dead is shown to be, step by step: functions that only call each other may well be called by somebody.
        """
        callers: dict[Declaration, list[FunctionDeclaration | None]] = {}
        alive: dict[Declaration, bool] = {}
        pending: list[Declaration] = [declaration]
        while pending:
            current = pending.pop()
            if current in callers or current in self._answers:
                continue
            mentions = self._mentions.get(current.name, set())
            callers[current] = [caller for caller in mentions if not _is_within(caller, current)]
            alive[current] = self._is_called_anyway(current, callers[current])
            pending += [outer for outer in (current.outer, current.owner) if outer is not None]
            if not alive[current]:
                pending += [caller for caller in callers[current] if caller is not None]
        dead = {known for known, reaches in self._answers.items() if not reaches}
        count = -1
        while count != len(dead):
            count = len(dead)
            for known, others in callers.items():
                is_inside = known.outer in dead or known.owner in dead
                if is_inside or (not alive[known] and all(caller in dead for caller in others)):
                    dead.add(known)
        self._answers.update((known, known not in dead) for known in callers)

    def _is_called_anyway(self, declaration: Declaration, others: list[FunctionDeclaration | None]) -> bool:
        """True where it is no matter whether the functions that mention a declaration run."""
        if self._may_be_called_from_outside(declaration) or declaration.name not in self._mentions:
            return True
        # Nobody mentions what is offered to others, or what a framework calls by a name of its own.
        return None in others or (not others and not self._is_mentioned_somewhere(declaration))

    def _may_be_called_from_outside(self, declaration: Declaration) -> bool:
        name = declaration.name
        if name.startswith("__") and name.endswith("__"):
            return True
        if any(called_name(decorator) not in _KEEPING for decorator in declaration.node.decorator_list):
            return True
        owner = declaration.owner
        if isinstance(declaration, ClassDeclaration) or owner is None:
            return False
        for base in self.program.classes.linearize(owner):
            if isinstance(base, Class):
                if name in base.declaration.members and not self.program.is_client(base.declaration.module.name):
                    return True
            elif isinstance(base, Unknown) or (base.path not in _KEEPING_BASES and not name.startswith("_")):
                # A base that can't be read may call what it finds, though hardly under a private name of its subclass.
                return True
        return False

    def _is_mentioned_somewhere(self, declaration: Declaration) -> bool:
        """True where the text of the client mentions the name, apart from where it is defined."""
        for module in self.program.client_modules_holding(declaration.name):
            for node in nodes_around(module.tree, module.text, declaration.name):
                if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                    # What is put under the same name, by a loop elsewhere say, asks for nothing.
                    continue
                name = node.id if isinstance(node, ast.Name) else node.attr
                if name == declaration.name and not _contains(declaration, module, node):
                    return True
        return False


def _declarations(module: ModuleDeclaration) -> Iterator[Declaration]:
    """The functions, classes and methods of a module, without what functions define inside."""
    pending: list[Binding] = [binding for bindings in module.names.values() for binding in bindings]
    while pending:
        binding = pending.pop()
        if binding.function is not None:
            yield binding.function
        elif binding.class_ is not None:
            yield binding.class_
            pending += [inner for bindings in binding.class_.members.values() for inner in bindings]


def _is_within(function: FunctionDeclaration | None, declaration: Declaration) -> bool:
    """True for the function itself, what it defines inside, and the methods of the class."""
    inner: Declaration | None = function
    while inner is not None:
        if inner is declaration:
            return True
        inner = inner.outer or inner.owner
    return False


def _contains(declaration: Declaration, module: ModuleDeclaration, node: ast.expr | ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    return declaration.module is module and declaration.line <= line <= (declaration.node.end_lineno or 0)
