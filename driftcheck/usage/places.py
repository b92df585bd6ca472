"""Where in a client's source a node stands."""

from __future__ import annotations

import ast
from typing import Any

from driftcheck.model import Location
from driftcheck.surface.declarations import ModuleDeclaration


class Place:
    """The place of a node, or of the last name of it, worked out when somebody asks: of most usages nobody does."""

    __slots__ = ("_location", "is_name", "module", "node")

    def __init__(self, module: ModuleDeclaration, node: ast.AST, *, is_name: bool = False) -> None:
        self.module = module
        self.node = node
        self.is_name = is_name
        self._location: Location | None = None

    @property
    def location(self) -> Location:
        """The place in lines and columns."""
        if self._location is None:
            self._location = location_of(self.module, self.node)
            if self.is_name and isinstance(self.node, ast.Attribute):
                self._location = _end_of(self._location, len(self.node.attr))
        return self._location

    @property
    def is_type_ignored(self) -> bool:
        """True where the line carries `# type: ignore`."""
        return "# type: ignore" in _line(self.module, getattr(self.node, "lineno", 1))


def location_of(module: ModuleDeclaration, node: Any) -> Location:
    """The place of a node, its columns in characters from 1."""
    end_line = node.end_lineno or node.lineno
    return Location(
        module.path,
        node.lineno,
        _column(module, node.lineno, node.col_offset),
        end_line,
        _column(module, end_line, node.end_col_offset or 0),
    )


def _end_of(place: Location, length: int) -> Location:
    """The last characters of a place: in a chain over several lines, they are on its last line."""
    return Location(place.path, place.end_line, max(1, place.end_column - length), place.end_line, place.end_column)


def _column(module: ModuleDeclaration, line: int, offset: int) -> int:
    """A column in characters from 1, for ast's offset in UTF-8 bytes."""
    text = _line(module, line)
    return offset + 1 if text.isascii() else len(text.encode()[:offset].decode(errors="replace")) + 1


def _line(module: ModuleDeclaration, line: int) -> str:
    return module.lines[line - 1] if line <= len(module.lines) else ""
