"""Edits of function definitions: one more parameter, handed on to the base's method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import libcst

from driftcheck.fixes.call_edits import by_keyword, call_change
from driftcheck.fixes.document import Document, Refused, expression
from driftcheck.fixes.sequences import Row
from driftcheck.model import Edit


@dataclass(frozen=True)
class _Addition:
    """A parameter to add: after the one of that name, by keyword only, or with the `star` of `*name` or `**name`."""

    name: str
    annotation: str | None
    default: str | None
    after: str | None
    is_keyword_only: bool
    star: str


@dataclass(eq=False)
class FunctionChange:
    """What becomes of a function's parameters."""

    additions: list[_Addition] = field(default_factory=list)

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.FunctionDef)
        row: Row[_Listed] = Row.of(_listed(updated.params), updated.whitespace_before_params)
        for addition in self.additions:
            row = _with_parameter(row, addition)
        before, listed, _ = row.separated()
        return updated.with_changes(params=_parameters(listed), whitespace_before_params=before)


_Listed = libcst.Param | libcst.ParamSlash | libcst.ParamStar


def _listed(parameters: libcst.Parameters) -> list[_Listed]:
    """The parameters as they are written, `/` and `*` among them."""
    listed: list[_Listed] = [*parameters.posonly_params]
    if isinstance(parameters.posonly_ind, libcst.ParamSlash):
        listed.append(parameters.posonly_ind)
    listed += parameters.params
    if not isinstance(parameters.star_arg, libcst.MaybeSentinel):
        listed.append(_marked(parameters.star_arg, "*"))
    listed += parameters.kwonly_params
    return [*listed, _marked(parameters.star_kwarg, "**")] if parameters.star_kwarg is not None else listed


def _marked(parameter: libcst.Param | libcst.ParamStar, star: str) -> libcst.Param | libcst.ParamStar:
    return parameter.with_changes(star=star) if isinstance(parameter, libcst.Param) else parameter


def _parameters(listed: Sequence[_Listed]) -> libcst.Parameters:
    """What is written as the parameters of a function."""
    slash = next((index for index, each in enumerate(listed) if isinstance(each, libcst.ParamSlash)), -1)
    star = next((index for index, each in enumerate(listed) if _is_star(each)), len(listed))
    last = listed[-1] if listed and _is_rest(listed[-1]) else None
    ordinary = [each for each in listed[slash + 1 : star] if each is not last]
    keywords = [each for each in listed[star + 1 :] if each is not last]
    made = libcst.Parameters(params=ordinary, kwonly_params=keywords, star_kwarg=last)  # type: ignore[arg-type]
    if slash >= 0:
        made = made.with_changes(posonly_params=listed[:slash], posonly_ind=listed[slash])
    return made.with_changes(star_arg=listed[star]) if star < len(listed) else made


def _is_star(listed: _Listed) -> bool:
    """True for `*` and `*name`, after which parameters are given by keyword only."""
    return isinstance(listed, libcst.ParamStar) or (isinstance(listed, libcst.Param) and listed.star == "*")


def _is_rest(listed: _Listed) -> bool:
    """True for `**name`."""
    return isinstance(listed, libcst.Param) and listed.star == "**"


def _with_parameter(row: Row[_Listed], addition: _Addition) -> Row[_Listed]:
    listed = row.items
    end = len(listed) - 1 if listed and _is_rest(listed[-1]) else len(listed)
    stars = next((index for index, each in enumerate(listed) if _is_star(each)), end)
    if addition.star == "**":
        return row.with_item(len(listed), _made(addition, listed))
    if addition.star == "*":
        return row.with_item(stars, _made(addition, listed))
    has_rest = stars < end and isinstance(listed[stars], libcst.Param)
    if addition.is_keyword_only or has_rest:
        if stars == end:
            row, end = row.with_item(end, libcst.ParamStar()), end + 1
        return row.with_item(end, _made(addition, listed))
    names = [each.name.value if isinstance(each, libcst.Param) else None for each in listed[:stars]]
    place = names.index(addition.after) + 1 if addition.after in names else stars
    if place < stars and isinstance(listed[place], libcst.ParamSlash):
        place += 1
    made = _made(addition, listed)
    if any(isinstance(each, libcst.Param) and each.default is None for each in listed[place:stars]):
        place = stars
    if made.default is None and any(_has_default(each) for each in listed[:place]):
        made = _made(replace(addition, default="None"), listed)
    return row.with_item(place, made)


def _has_default(listed: _Listed) -> bool:
    return isinstance(listed, libcst.Param) and listed.default is not None


def _made(addition: _Addition, others: Sequence[_Listed]) -> libcst.Param:
    """The parameter, annotated where others are."""
    made = libcst.Param(libcst.Name(addition.name), star=addition.star)
    is_annotated = any(isinstance(each, libcst.Param) and each.annotation is not None for each in others)
    has_annotation = is_annotated and addition.annotation is not None
    if addition.annotation is not None and is_annotated:
        made = made.with_changes(annotation=libcst.Annotation(expression(addition.annotation)))
    if addition.default is not None:
        # Around the `=` of an annotated parameter stand blanks.
        blank = libcst.SimpleWhitespace(" " if has_annotation else "")
        equal = libcst.AssignEqual(whitespace_before=blank, whitespace_after=blank)
        made = made.with_changes(default=expression(addition.default), equal=equal)
    return made


def add_parameter(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Gives a function one more parameter, and hands it on where the body calls the same method of `super()`."""
    del is_guarded
    function = _function(document, edit)
    written = edit.parameter("parameter") or ""
    declared, _, default = (part.strip() for part in written.partition("="))
    name, _, annotation = (part.strip() for part in declared.partition(":"))
    star = name[: len(name) - len(name.lstrip("*"))]
    name = name.lstrip("*")
    if not name.isidentifier():
        raise Refused(f"{written!r} is no parameter")
    listed = _listed(function.params)
    if any(isinstance(each, libcst.Param) and each.name.value == name for each in listed):
        raise Refused(f"{name} is a parameter already")
    if star == "**" and any(_is_rest(each) for each in listed):
        raise Refused("it takes any keyword already")
    if star == "*" and any(_is_star(each) for each in listed):
        raise Refused("it takes further arguments already, or none without a keyword")
    if not document.claim(function, f"parameter {name}", written):
        return
    is_keyword_only = edit.parameter("keyword-only") == "yes"
    document.changed(function, FunctionChange).additions.append(
        _Addition(name, annotation or None, default or None, edit.parameter("after"), is_keyword_only, star)
    )
    if not star:
        _hand_on(document, function, name)


def _function(document: Document, edit: Edit) -> libcst.FunctionDef:
    found = document.named_at(edit.location, libcst.FunctionDef, "name")
    if found is None:
        raise Refused("no function is defined at that place")
    return found


def _hand_on(document: Document, function: libcst.FunctionDef, name: str) -> None:
    for call in _base_calls(function):
        is_given = any(each.keyword is not None and each.keyword.value == name for each in call.args)
        if is_given or any(each.star == "**" for each in call.args):
            continue
        if document.claim(call, f"argument {name}", name):
            call_change(document, call).added.append((by_keyword(name, libcst.Name(name)), False))


def _base_calls(function: libcst.FunctionDef) -> list[libcst.Call]:
    """The calls `super().name(...)` in a method of that name, nested functions left out."""
    found: list[libcst.Call] = []
    pending: list[libcst.CSTNode] = [function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, libcst.FunctionDef | libcst.ClassDef | libcst.Lambda):
            continue
        if (
            isinstance(node, libcst.Call)
            and isinstance(node.func, libcst.Attribute)
            and node.func.attr.value == function.name.value
            and isinstance(node.func.value, libcst.Call)
            and isinstance(node.func.value.func, libcst.Name)
            and node.func.value.func.value == "super"
        ):
            found.append(node)
        pending.extend(node.children)
    return found
