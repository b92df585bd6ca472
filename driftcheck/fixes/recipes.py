"""The recipes by name, and how the edits of one file are made in one pass."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import libcst

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.call_edits import add_argument, insert_helper, name_arguments, remove_argument, rename_argument
from driftcheck.fixes.changes import check_path
from driftcheck.fixes.document import Contradicted, Document, Refused
from driftcheck.fixes.function_edits import add_parameter
from driftcheck.fixes.import_edits import move_import
from driftcheck.fixes.name_edits import (
    move_attribute,
    rename_attribute,
    rename_string,
    rename_strings,
    replace_attribute,
    unwrap_subscript,
)
from driftcheck.fixes.statement_edits import insert_call_after, remove_statement, take_rest
from driftcheck.fixes.tidying import tidied
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
    "rename-strings": rename_strings,
    "remove-statement": remove_statement,
    "replace-attribute": replace_attribute,
    "take-rest": take_rest,
    "unwrap-subscript": unwrap_subscript,
}


@dataclass(frozen=True, slots=True)
class Planned:
    """The edits of one fix: all of them are made, or none."""

    edits: tuple[Edit, ...]
    is_guarded: bool = False


@dataclass(frozen=True, slots=True)
class Edited:
    """A file after its edits: `refused` says why a fix was not made, by its index among those asked for."""

    source: bytes
    refused: Mapping[int, str]


def _always(*_: str) -> bool:
    return True


def edited(source: bytes, fixes: Iterable[Planned], is_wanted: Callable[[str], bool] = _always) -> Edited:
    """The file with the fixes made, in one pass: comments and layout stay, and what can't be made is told.

    An import that nobody needs any more goes where `is_wanted` says that no other file takes the name from this one.
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
            result = _written(document, is_wanted)
            if result is not None:
                return Edited(result, refused)
            left = [index for index in range(len(planned)) if index not in refused]
            failed = {
                index: Refused("the file would be no Python any more")
                for index in left
                if len(left) == 1 or edited(source, [planned[index]], is_wanted).refused
            } or {index: Contradicted("the file would be no Python any more") for index in left}
        # One that contradicts another may be right once the other turns out to be impossible.
        impossible = {index: reason for index, reason in failed.items() if not isinstance(reason, Contradicted)}
        refused |= {index: str(reason) for index, reason in (impossible or failed).items()}


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """Files after their edits, those that are other than before: `refused` is as of `Edited`."""

    files: Mapping[str, bytes]
    refused: Mapping[int, str]


def edited_files(
    read: Callable[[str], bytes], fixes: Iterable[Planned], is_wanted: Callable[[str, str], bool] = _always
) -> EditedFiles:
    """The files with the fixes made: one that can't be made in one of its files is made in none.

    `is_wanted` tells of the name that a file imports whether others take it from there.
    """
    planned = list(fixes)
    refused: dict[int, str] = {}
    for index, fix in enumerate(planned):
        for path in {edit.location.path for edit in fix.edits}:
            try:
                check_path(path)
            except DriftcheckError as problem:
                refused[index] = str(problem)
    done: dict[str, tuple[list[int], Edited]] = {}
    while True:
        by_path: dict[str, list[int]] = {}
        for index, fix in enumerate(planned):
            for path in {edit.location.path for edit in fix.edits} if index not in refused else ():
                by_path.setdefault(path, []).append(index)
        failed: dict[int, str] = {}
        for path, indexes in sorted(by_path.items()):
            known, result = done.get(path, (None, None))
            if result is None or known != indexes:
                parts = [_part(planned[index], path) for index in indexes]
                result = edited(read(path), parts, partial(is_wanted, path))
                done[path] = indexes, result
            failed |= {indexes[place]: reason for place, reason in result.refused.items()}
        if not any(len({edit.location.path for edit in planned[index].edits}) > 1 for index in failed):
            refused |= failed
            break
        # What is refused in one file is taken out of the others too, where something else may have its place then.
        refused |= failed
    files = {path: done[path][1].source for path in sorted(by_path)}
    return EditedFiles({path: after for path, after in files.items() if after != read(path)}, refused)


def _part(fix: Planned, path: str) -> Planned:
    """The edits of a fix in one file."""
    return replace(fix, edits=tuple(edit for edit in fix.edits if edit.location.path == path))


def _written(document: Document, is_wanted: Callable[[str], bool]) -> bytes | None:
    """The file with all changes made, None where it would be none that Python can read."""
    try:
        made = document.result()
        if made is not document.module:
            made = tidied(document.module, document.parents, made, is_wanted)
        result = made.bytes
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
