"""Which modules a client does without where they can't be imported: its own imports of them provide for that."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from driftcheck.errors import DriftcheckError
from driftcheck.surface.declarations import caught_names
from driftcheck.surface.modules import ModuleIndex
from driftcheck.tree import SourceTree
from driftcheck.usage.guards import is_type_checking, suppressed_exceptions
from driftcheck.usage.importers import imported_modules


class OptionalModules:
    """Knows which files of a client are imported by its own package alone, and only where a failure is taken care of.

    What nobody in the package imports is for others to import: that is not optional, whatever it is for.
    """

    def __init__(self, client: SourceTree) -> None:
        self.client = client
        self.index = ModuleIndex(client)
        self._names = {path: name for name, path in self.index.sources.items()}
        self._answers: dict[tuple[str, frozenset[str]], bool] = {}
        self._parsed: dict[str, list[_Import]] = {}

    def is_optional(self, path: str, errors: frozenset[str]) -> bool:
        """True where the client goes on if a file can't be imported; `errors` are the names of what catches that."""
        name = self._names.get(path)
        return name is not None and self._is_optional(name, errors)

    def _is_optional(self, name: str, errors: frozenset[str]) -> bool:
        key = (name, errors)
        if key not in self._answers:
            # Modules that import each other, and that nobody else imports, are not optional for that.
            self._answers[key] = False
            imports = {importer: self._imports_of(name, importer) for importer in self._importers.get(name, ())}
            at_run_time = {importer: found for importer, found in imports.items() if found}
            self._answers[key] = bool(at_run_time) and all(
                all(each.caught & errors for each in found) or self._is_optional(importer, errors)
                for importer, found in at_run_time.items()
            )
        return self._answers[key]

    @cached_property
    def _importers(self) -> dict[str, list[str]]:
        """The modules of the same package whose text says that they import a module."""
        found: dict[str, list[str]] = {}
        for name, path in sorted(self.index.sources.items()):
            for imported in sorted(set(imported_modules(name, self._read(path), self.index))):
                if imported != name and imported.partition(".")[0] == name.partition(".")[0]:
                    found.setdefault(imported, []).append(name)
        return found

    def _imports_of(self, name: str, importer: str) -> list[_Import]:
        """The imports of a module in another one."""
        if importer not in self._parsed:
            try:
                body = ast.parse(self._read(self.index.sources[importer])).body
                self._parsed[importer] = list(_imports(body, frozenset()))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._parsed[importer] = []
        return [each for each in self._parsed[importer] if name in imported_modules(importer, each.text, self.index)]

    def _read(self, path: str) -> bytes:
        try:
            return self.client.read(path)
        except DriftcheckError:
            return b""


@dataclass(frozen=True, slots=True)
class _Import:
    """A statement that imports, by itself, and the names of the exceptions that are caught around it and swallowed."""

    text: bytes
    caught: frozenset[str]


def _imports(statements: Iterable[ast.stmt], caught: frozenset[str]) -> Iterator[_Import]:
    """The imports among statements and within them, without those that only type checkers read."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield _Import(ast.unparse(statement).encode(errors="replace"), caught)
        elif isinstance(statement, ast.If) and is_type_checking(statement.test):
            yield from _imports(statement.orelse, caught)
        elif isinstance(statement, ast.Try):
            yield from _imports(statement.body, caught | _swallowed(statement))
            yield from _imports((inner for handler in statement.handlers for inner in handler.body), caught)
            yield from _imports([*statement.orelse, *statement.finalbody], caught)
        elif isinstance(statement, ast.With | ast.AsyncWith):
            suppressed = (name for item in statement.items for name in suppressed_exceptions(item.context_expr))
            yield from _imports(statement.body, caught.union(suppressed))
        elif isinstance(statement, ast.Match):
            yield from _imports((inner for case in statement.cases for inner in case.body), caught)
        else:
            for block in ("body", "orelse"):
                yield from _imports(getattr(statement, block, ()), caught)


def _swallowed(statement: ast.Try) -> frozenset[str]:
    """The exceptions that a `try` catches without raising another."""
    return frozenset(
        name
        for handler in statement.handlers
        if not any(isinstance(inner, ast.Raise) for inner in ast.walk(handler))
        for name in caught_names(handler.type)
    )
