"""Edits of function definitions: one more parameter, handed on to the base's method."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst

from driftcheck.fixes.call_edits import CallChange
from driftcheck.fixes.document import Document, Refused, expression
from driftcheck.model import Edit


@dataclass(frozen=True)
class _Addition:
    """A parameter to add: after the one of that name, by keyword only, or as `**name`."""

    name: str
    default: str | None
    after: str | None
    is_keyword_only: bool
    is_variadic: bool


@dataclass(eq=False)
class FunctionChange:
    """What becomes of a function's parameters."""

    additions: list[_Addition] = field(default_factory=list)

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.FunctionDef)
        parameters = updated.params
        for addition in self.additions:
            parameters = _with_parameter(parameters, addition)
        return updated.with_changes(params=parameters)


def _with_parameter(parameters: libcst.Parameters, addition: _Addition) -> libcst.Parameters:
    default = None if addition.default is None else expression(addition.default)
    made = libcst.Param(libcst.Name(addition.name), default=default)
    if default is not None:
        made = made.with_changes(
            equal=libcst.AssignEqual(
                whitespace_before=libcst.SimpleWhitespace(""), whitespace_after=libcst.SimpleWhitespace("")
            )
        )
    if addition.is_variadic:
        return _at_end(parameters, made.with_changes(star="**"), "star_kwarg")
    if addition.is_keyword_only or isinstance(parameters.star_arg, libcst.Param):
        return _keyword_only(parameters, made)
    return _positional(parameters, made, addition.after)


def _keyword_only(parameters: libcst.Parameters, made: libcst.Param) -> libcst.Parameters:
    if parameters.star_kwarg is not None:
        space = _space_of(parameters)
        made = made.with_changes(comma=libcst.Comma(whitespace_after=space))
        keywords = [*parameters.kwonly_params]
        if keywords:
            keywords[-1] = keywords[-1].with_changes(comma=libcst.Comma(whitespace_after=space))
        changed = parameters.with_changes(kwonly_params=[*keywords, made])
        if not keywords and not isinstance(parameters.star_arg, libcst.Param):
            changed = changed.with_changes(star_arg=libcst.ParamStar(comma=libcst.Comma(whitespace_after=space)))
        return changed
    if parameters.kwonly_params or isinstance(parameters.star_arg, libcst.Param):
        return _at_end(parameters, made, "kwonly_params")
    space = _space_of(parameters)
    every = _everything(parameters)
    if every:
        last = every[-1]
        made = made.with_changes(comma=last.comma, whitespace_after_param=last.whitespace_after_param)
        parameters = _swapped(parameters, last, _followed(last, space))
    star = libcst.ParamStar(comma=libcst.Comma(whitespace_after=space))
    return parameters.with_changes(star_arg=star, kwonly_params=[made])


def _positional(parameters: libcst.Parameters, made: libcst.Param, after: str | None) -> libcst.Parameters:
    listed = list(parameters.params)
    place = next((index + 1 for index, each in enumerate(listed) if each.name.value == after), len(listed))
    if made.default is None and any(each.default is not None for each in listed[:place]):
        made = made.with_changes(
            default=libcst.Name("None"),
            equal=libcst.AssignEqual(
                whitespace_before=libcst.SimpleWhitespace(""), whitespace_after=libcst.SimpleWhitespace("")
            ),
        )
    if made.default is not None and any(each.default is None for each in listed[place:]):
        place = len(listed)
    is_last = place == len(listed)
    has_rest = bool(parameters.kwonly_params or parameters.star_kwarg) or not isinstance(
        parameters.star_arg, libcst.MaybeSentinel
    )
    if is_last and not has_rest:
        return _at_end(parameters, made, "params")
    space = _space_of(parameters)
    made = made.with_changes(comma=libcst.Comma(whitespace_after=space))
    if place and not isinstance(listed[place - 1].comma, libcst.Comma):
        listed[place - 1] = listed[place - 1].with_changes(comma=libcst.Comma(whitespace_after=space))
    listed.insert(place, made)
    return parameters.with_changes(params=listed)


def _everything(parameters: libcst.Parameters) -> list[libcst.Param]:
    every = [*parameters.posonly_params, *parameters.params]
    if isinstance(parameters.star_arg, libcst.Param):
        every.append(parameters.star_arg)
    every += parameters.kwonly_params
    return [*every, parameters.star_kwarg] if parameters.star_kwarg is not None else every


def _space_of(parameters: libcst.Parameters) -> libcst.BaseParenthesizableWhitespace:
    """What stands between two parameters."""
    for parameter in _everything(parameters):
        if isinstance(parameter.comma, libcst.Comma):
            space = parameter.comma.whitespace_after
            if isinstance(space, libcst.ParenthesizedWhitespace):
                return space.with_changes(
                    first_line=libcst.TrailingWhitespace(newline=space.first_line.newline), empty_lines=[]
                )
            return space
    return libcst.SimpleWhitespace(" ")


def _at_end(parameters: libcst.Parameters, made: libcst.Param, where: str) -> libcst.Parameters:
    """The parameters with one more at their end; a comma and a line break after the last stay after the last."""
    every = _everything(parameters)
    last = every[-1] if every else None
    if last is None:
        listed = [made] if where in ("params", "kwonly_params") else made
        return parameters.with_changes(**{where: listed})
    space = _space_of(parameters)
    changed = _followed(last, space)
    made = made.with_changes(comma=last.comma, whitespace_after_param=last.whitespace_after_param)
    parameters = _swapped(parameters, last, changed)
    if where in ("params", "kwonly_params"):
        return parameters.with_changes(**{where: [*getattr(parameters, where), made]})
    return parameters.with_changes(**{where: made})


def _followed(parameter: libcst.Param, space: libcst.BaseParenthesizableWhitespace) -> libcst.Param:
    """A parameter after which another comes."""
    comma = libcst.Comma(whitespace_after=space)
    changed: libcst.Param = parameter.with_changes(comma=comma, whitespace_after_param=libcst.SimpleWhitespace(""))
    return changed


def _swapped(parameters: libcst.Parameters, old: libcst.Param, new: libcst.Param) -> libcst.Parameters:
    for name in ("posonly_params", "params", "kwonly_params"):
        listed = getattr(parameters, name)
        if any(each is old for each in listed):
            return parameters.with_changes(**{name: [new if each is old else each for each in listed]})
    if parameters.star_arg is old:
        return parameters.with_changes(star_arg=new)
    return parameters.with_changes(star_kwarg=new)


def add_parameter(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Gives a function one more parameter, and hands it on where the body calls the same method of `super()`."""
    del is_guarded
    function = _function(document, edit)
    written = edit.parameter("parameter") or ""
    name, _, default = (part.strip() for part in written.partition("="))
    is_variadic = name.startswith("**")
    name = name.lstrip("*")
    if not name.isidentifier():
        raise Refused(f"{written!r} is no parameter")
    parameters = function.params
    if any(each.name.value == name for each in _everything(parameters)):
        raise Refused(f"{name} is a parameter already")
    if is_variadic and parameters.star_kwarg is not None:
        raise Refused("it takes any keyword already")
    if not document.claim(function, f"parameter {name}", written):
        return
    document.changed(function, FunctionChange).additions.append(
        _Addition(name, default or None, edit.parameter("after"), edit.parameter("keyword-only") == "yes", is_variadic)
    )
    if not is_variadic:
        _hand_on(document, function, name)


def _function(document: Document, edit: Edit) -> libcst.FunctionDef:
    for node in document.starting_at(edit.location, libcst.Name):
        parent = document.parents.get(node)
        if isinstance(parent, libcst.FunctionDef) and parent.name is node:
            return parent
    raise Refused("no function is defined at that place")


def _hand_on(document: Document, function: libcst.FunctionDef, name: str) -> None:
    for call in _base_calls(function):
        is_given = any(each.keyword is not None and each.keyword.value == name for each in call.args)
        if is_given or any(each.star == "**" for each in call.args):
            continue
        if document.claim(call, f"argument {name}", name):
            document.changed(call, CallChange).added.append(
                libcst.Arg(
                    libcst.Name(name),
                    keyword=libcst.Name(name),
                    equal=libcst.AssignEqual(
                        whitespace_before=libcst.SimpleWhitespace(""), whitespace_after=libcst.SimpleWhitespace("")
                    ),
                )
            )


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
