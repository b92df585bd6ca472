"""Edits of calls: arguments renamed, removed, added, named, and a helper put before the callee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst

from driftcheck.fixes.document import Document, Refused, dotted, expression
from driftcheck.fixes.import_edits import add_helper, import_module
from driftcheck.fixes.sequences import with_arguments, without
from driftcheck.model import Edit

_AROUND_EQUAL = libcst.AssignEqual(
    whitespace_before=libcst.SimpleWhitespace(""), whitespace_after=libcst.SimpleWhitespace("")
)


@dataclass(eq=False)
class CallChange:
    """What becomes of one call: `removed` and `renamed` are by index, `added` comes at the end, in order."""

    removed: set[int] = field(default_factory=set)
    keywords: dict[int, str] = field(default_factory=dict)
    added: list[libcst.Arg] = field(default_factory=list)
    guarded: list[tuple[int, str, str]] = field(default_factory=list)
    helper: str | None = None

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.Call)
        arguments = list(updated.args)
        late = [_guarded(arguments[index], name, condition) for index, name, condition in self.guarded]
        for index, name in self.keywords.items():
            arguments[index] = arguments[index].with_changes(
                keyword=libcst.Name(name), equal=arguments[index].equal if arguments[index].keyword else _AROUND_EQUAL
            )
        for index in sorted(self.removed, reverse=True):
            arguments = without(arguments, index)
        call = updated.with_changes(args=arguments)
        if not arguments and updated.args:
            call = call.with_changes(whitespace_before_args=libcst.SimpleWhitespace(""))
        call = with_arguments(call, [*self.added, *late])
        return _through(call, self.helper) if self.helper is not None else call


def _through(call: libcst.Call, helper: str) -> libcst.Call:
    first = libcst.Arg(call.func)
    if call.args:
        before = call.whitespace_before_args
        comma = call.args[0].comma
        is_spread = len(call.args) == 1 or (
            isinstance(comma, libcst.Comma) and isinstance(comma.whitespace_after, libcst.ParenthesizedWhitespace)
        )
        is_spread = is_spread and isinstance(before, libcst.ParenthesizedWhitespace)
        first = first.with_changes(comma=libcst.Comma(whitespace_after=before if is_spread else _SPACE))
    return call.with_changes(func=libcst.Name(helper), args=[first, *call.args])


_SPACE = libcst.SimpleWhitespace(" ")


def _guarded(argument: libcst.Arg, new_name: str, condition: str) -> libcst.Arg:
    """`**({"name": value} if condition else {})`, or, with a new name, the old one where the new one is unknown."""
    assert argument.keyword is not None
    given = _dictionary(argument.keyword.value, argument.value)
    otherwise: libcst.BaseExpression = libcst.Dict([])
    if new_name:
        given, otherwise = _dictionary(new_name, argument.value), given
    chosen = libcst.IfExp(
        test=expression(condition), body=given, orelse=otherwise, lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()]
    )
    return libcst.Arg(chosen, star="**")


def _dictionary(name: str, value: libcst.BaseExpression) -> libcst.Dict:
    return libcst.Dict([libcst.DictElement(libcst.SimpleString(f'"{name}"'), value)])


def _change(document: Document, call: libcst.Call) -> CallChange:
    return document.changed(call, CallChange)


def _argument(document: Document, edit: Edit) -> tuple[libcst.Call, int]:
    """The call and the index of the argument that an edit is about."""
    for node in document.starting_at(edit.location, libcst.Arg):
        parent = document.parents.get(node)
        if isinstance(parent, libcst.Call):
            return parent, next(index for index, argument in enumerate(parent.args) if argument is node)
    raise Refused("the argument is not written at that place")


def _takes(document: Document, call: libcst.Call, name: str) -> str:
    """The condition under which a callee has a parameter of that name."""
    callee = dotted(call.func)
    if callee is None:
        raise Refused("what is called has no name that a guard could ask about")
    import_module(document, "inspect")
    return f'"{name}" in inspect.signature({callee}).parameters'


def remove_argument(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Leaves an argument out; guarded, it is given where the callee has a parameter for it."""
    try:
        call, index = _argument(document, edit)
    except Refused:
        if is_guarded:
            raise
        _remove_entry(document, edit)
        return
    name = call.args[index].keyword
    if not document.claim(call.args[index], "argument", "" if not is_guarded else "guard"):
        return
    change = _change(document, call)
    if is_guarded:
        if name is None:
            raise Refused("an argument without a name can't be given only to some releases")
        change.guarded.append((index, "", _takes(document, call, name.value)))
    elif name is None and index < len(call.args) - 1 and call.args[index + 1].keyword is None:
        raise Refused("other arguments would move up into its place")
    change.removed.add(index)


def rename_argument(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Gives an argument another keyword; guarded, the old one where the callee does not have the new one."""
    new = edit.parameter("to") or ""
    try:
        call, index = _argument(document, edit)
    except Refused:
        if is_guarded:
            raise
        _rename_entry(document, edit, new)
        return
    if call.args[index].keyword is None:
        raise Refused("the argument has no keyword")
    if not document.claim(call.args[index], "argument", new):
        return
    change = _change(document, call)
    if is_guarded:
        change.guarded.append((index, new, _takes(document, call, new)))
        change.removed.add(index)
    else:
        change.keywords[index] = new


@dataclass(eq=False)
class DictChange:
    """What becomes of a dictionary that a call unpacks, by index of its entries."""

    removed: set[int] = field(default_factory=set)
    renamed: dict[int, str] = field(default_factory=dict)

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.Dict)
        elements = list(updated.elements)
        for index, name in self.renamed.items():
            element = elements[index]
            assert isinstance(element, libcst.DictElement) and isinstance(element.key, libcst.SimpleString)
            quote = element.key.quote
            elements[index] = element.with_changes(key=libcst.SimpleString(f"{quote}{name}{quote}"))
        for index in sorted(self.removed, reverse=True):
            elements = without(elements, index)  # type: ignore[type-var]
        return updated.with_changes(elements=elements)


def _entry(document: Document, edit: Edit) -> tuple[libcst.Dict, int]:
    """The dictionary and the index of the entry whose key stands at a place."""
    for node in document.starting_at(edit.location, libcst.SimpleString):
        element = document.parents.get(node)
        mapping = document.parents.get(element) if isinstance(element, libcst.DictElement) else None
        if isinstance(mapping, libcst.Dict) and isinstance(element, libcst.DictElement) and element.key is node:
            return mapping, next(index for index, each in enumerate(mapping.elements) if each is element)
    raise Refused("the argument is not written at that place")


def _remove_entry(document: Document, edit: Edit) -> None:
    mapping, index = _entry(document, edit)
    if document.claim(mapping.elements[index], "argument", ""):
        document.changed(mapping, DictChange).removed.add(index)


def _rename_entry(document: Document, edit: Edit, new: str) -> None:
    mapping, index = _entry(document, edit)
    if document.claim(mapping.elements[index], "argument", new):
        document.changed(mapping, DictChange).renamed[index] = new


def add_argument(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Gives a call one more argument, by keyword; guarded, only where the callee has a parameter for it."""
    call = document.call_at(edit.location)
    name, text = edit.parameter("argument") or "", edit.parameter("value") or ""
    if any(argument.keyword is not None and argument.keyword.value == name for argument in call.args):
        raise Refused(f"{name} is given already")
    if any(isinstance(each.value, libcst.GeneratorExp) and not each.value.lpar for each in call.args):
        raise Refused("the call's one argument is a generator without parentheses")
    value = expression(text)
    if not document.claim(call, f"argument {name}", text):
        return
    helper = edit.parameter("helper")
    if helper is not None:
        add_helper(document, helper, call)
    change = _change(document, call)
    added = libcst.Arg(value, keyword=libcst.Name(name), equal=_AROUND_EQUAL)
    change.added.append(_guarded(added, "", _takes(document, call, name)) if is_guarded else added)


def name_arguments(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Gives positional arguments by keyword, from a place on: `names` has the keyword of each place from the first."""
    del is_guarded
    call = document.call_at(edit.location)
    names = (edit.parameter("names") or "").split(",")
    start = int(edit.parameter("first") or 0)
    positional = [index for index, argument in enumerate(call.args) if argument.keyword is None and not argument.star]
    if any(argument.star == "*" for argument in call.args):
        raise Refused("an unpacked argument hides which place each one has")
    if len(positional) > len(names):
        raise Refused("there are more positional arguments than parameters")
    chosen = {index: names[place] for place, index in enumerate(positional) if place >= start}
    given = {argument.keyword.value for argument in call.args if argument.keyword is not None}
    if not chosen or any(not name for name in chosen.values()) or given.intersection(chosen.values()):
        raise Refused("not every argument from there on has a keyword of its own")
    if document.claim(call, "keywords", ",".join(chosen.values())):
        _change(document, call).keywords.update(chosen)


def insert_helper(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Lets a helper function, which the rule carries, make the call: `f(x)` becomes `helper(f, x)`."""
    del is_guarded
    call = document.call_at(edit.location)
    source = edit.parameter("helper") or ""
    if isinstance(call.func, libcst.Name) and call.func.value in _defined(source):
        raise Refused("the helper is called already")
    name = add_helper(document, source, call)
    if document.claim(call, "helper", name):
        _change(document, call).helper = name


def _defined(source: str) -> Sequence[str]:
    return [each.name.value for each in libcst.parse_module(source).body if isinstance(each, libcst.FunctionDef)]
