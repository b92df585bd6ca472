"""The recipes by name, and how the edits of one file are made in one pass."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import libcst

from driftcheck.fixes.call_edits import add_argument, insert_helper, name_arguments, remove_argument, rename_argument
from driftcheck.fixes.document import Contradicted, Document, Refused
from driftcheck.fixes.function_edits import add_parameter
from driftcheck.fixes.import_edits import move_import
from driftcheck.fixes.name_edits import move_attribute, rename_attribute, rename_string, unwrap_subscript
from driftcheck.fixes.statement_edits import insert_call_after
from driftcheck.model import Edit


class _Recipe(Protocol):
    def __call__(self, document: Document, edit: Edit, *, is_guarded: bool) -> None:
        """Registers what an edit changes; raises Refused where it can't be made."""


RECIPES: Mapping[str, _Recipe] = {
    "add-argument": add_argument,
    "add-parameter": add_parameter,
    "insert-call-after": insert_call_after,
    "insert-helper": insert_helper,
    "move-attribute": move_attribute,
    "move-import": move_import,
    "positional-to-keyword": name_arguments,
    "remove-argument": remove_argument,
    "rename-argument": rename_argument,
    "rename-attribute": rename_attribute,
    "rename-string": rename_string,
    "unwrap-subscript": unwrap_subscript,
}


@dataclass(frozen=True, slots=True)
class Planned:
    """The edits of one fix in one file: all of them are made, or none."""

    edits: tuple[Edit, ...]
    is_guarded: bool = False


@dataclass(frozen=True, slots=True)
class Edited:
    """A file after its edits: `refused` says why a fix was not made, by its index among those asked for."""

    source: bytes
    refused: Mapping[int, str]


def edited(source: bytes, fixes: Iterable[Planned]) -> Edited:
    """The file with the fixes made, in one pass: comments and layout stay, and what can't be made is told.

    A fix that is made only in part is not made at all, so a file with one of those is done again without it.
    """
    planned = list(fixes)
    refused: dict[int, str] = {}
    while True:
        try:
            document = Document(source)
        except Refused as problem:
            return Edited(source, dict.fromkeys(range(len(planned)), str(problem)))
        failed = {
            index: reason
            for index, fix in enumerate(planned)
            if index not in refused and (reason := _register(document, fix)) is not None
        }
        if not failed:
            result = _written(document)
            if result is not None:
                return Edited(result, refused)
            left = [index for index in range(len(planned)) if index not in refused]
            failed = {
                index: Refused("the file would be no Python any more")
                for index in left
                if len(left) == 1 or edited(source, [planned[index]]).refused
            } or {index: Contradicted("the file would be no Python any more") for index in left}
        # One that contradicts another may be right once the other turns out to be impossible.
        impossible = {index: reason for index, reason in failed.items() if not isinstance(reason, Contradicted)}
        refused |= {index: str(reason) for index, reason in (impossible or failed).items()}


def _written(document: Document) -> bytes | None:
    """The file with all changes made, None where it would be none that Python can read."""
    try:
        result = document.result().bytes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(result)
    except (libcst.CSTValidationError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return result


def _register(document: Document, fix: Planned) -> Refused | None:
    """Asks for what a fix changes; gives the reason where it can't be made."""
    try:
        for edit in fix.edits:
            RECIPES[edit.recipe](document, edit, is_guarded=fix.is_guarded)
    except Refused as reason:
        return reason
    return None
