"""Edits of calls: arguments renamed, removed, added, named, and a helper put before the callee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst

from driftcheck.fixes.document import LONGEST, Document, Refused, dotted, expression, spread_condition
from driftcheck.fixes.import_edits import add_helper, import_module
from driftcheck.fixes.sequences import Row
from driftcheck.model import Edit

_AROUND_EQUAL = libcst.AssignEqual(
    whitespace_before=libcst.SimpleWhitespace(""), whitespace_after=libcst.SimpleWhitespace("")
)


@dataclass(eq=False)
class CallChange:
    """What becomes of one call of a file.

    `removed` and `keywords` are by index. `added` comes at the end, in order, each with whether the callee is asked for
    such a parameter. The `guarded` ones are those of an index, given as before only where the callee does not have the
    other keyword, or where it has their own.
    """

    document: Document
    call: libcst.Call
    removed: set[int] = field(default_factory=set)
    keywords: dict[int, str] = field(default_factory=dict)
    added: list[tuple[libcst.Arg, bool]] = field(default_factory=list)
    guarded: list[tuple[int, str]] = field(default_factory=list)
    helper: str | None = None

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.Call)
        arguments = list(updated.args)
        late: list[libcst.Arg] = []
        removed = set(self.removed)
        for index, name in self.guarded:
            made = self._guarded(arguments[index], name, updated.func, self.call.args[index])
            if any(each.star == "*" for each in arguments[index + 1 :]):
                # Python takes no positional arguments after a mapping that is unpacked.
                late.append(made)
                removed.add(index)
            else:
                old = arguments[index]
                arguments[index] = made.with_changes(comma=old.comma, whitespace_after_arg=old.whitespace_after_arg)
        for index, name in self.keywords.items():
            arguments[index] = _renamed(arguments[index], name)
        row = Row.of(arguments, updated.whitespace_before_args)
        for index in sorted(removed, reverse=True):
            row = row.without(index)
        extra = [self._guarded(each, "", updated.func) if is_guarded else each for each, is_guarded in self.added]
        for argument in [*extra, *late]:
            row = row.with_item(len(row.items), argument)
        if self.helper is not None:
            row = row.with_item(0, libcst.Arg(updated.func))
            updated = updated.with_changes(func=libcst.Name(self.helper))
        if removed or extra or late or self.helper is not None:
            before, arguments, _ = row.separated()
            return updated.with_changes(args=arguments, whitespace_before_args=before)
        return updated.with_changes(args=arguments)

    def _guarded(
        self, argument: libcst.Arg, new_name: str, callee: libcst.BaseExpression, place: libcst.Arg | None = None
    ) -> libcst.Arg:
        """The argument with its guard, over several lines where one would be too long."""
        made = _guarded(argument, new_name, callee)
        assert isinstance(made.value, libcst.IfExp)
        text = self.document.code(made)
        if place is not None:
            column = self.document.positions[place].start.column
        else:
            last = self.call.args[-1] if self.call.args else None
            is_below = last is not None and self.document.starts_line(last)
            place = last if is_below else None
            where = self.document.positions[last if last is not None and is_below else self.call]
            column = where.start.column if is_below else where.end.column
        if column + len(text) < LONGEST:
            return made
        value = spread_condition(self.document, made.value, place if place is not None else self.call)
        return made.with_changes(value=value)


def call_change(document: Document, call: libcst.Call) -> CallChange:
    """What becomes of a call."""
    return document.changed(call, CallChange, lambda: CallChange(document, call))


def _renamed(argument: libcst.Arg, name: str) -> libcst.Arg:
    """The argument under that keyword, in parentheses where it has to be in some then."""
    value = argument.value
    if isinstance(value, libcst.GeneratorExp | libcst.NamedExpr) and not value.lpar:
        value = value.with_changes(lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()])
    equal = argument.equal if argument.keyword is not None else _AROUND_EQUAL
    return argument.with_changes(keyword=libcst.Name(name), equal=equal, value=value)


def _guarded(argument: libcst.Arg, new_name: str, callee: libcst.BaseExpression) -> libcst.Arg:
    """`**({"name": value} if condition else {})`, or, with a new name, the old one where the new one is unknown."""
    assert argument.keyword is not None
    given = _dictionary(argument.keyword.value, argument.value)
    otherwise: libcst.BaseExpression = libcst.Dict([])
    if new_name:
        given, otherwise = _dictionary(new_name, argument.value), given
    # The callee as it is after the edits: it may have another name now.
    called = dotted(callee) or libcst.Module([]).code_for_node(callee)
    condition = expression(f'"{new_name or argument.keyword.value}" in inspect.signature({called}).parameters')
    chosen = libcst.IfExp(
        test=condition, body=given, orelse=otherwise, lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()]
    )
    return libcst.Arg(chosen, star="**")


def _dictionary(name: str, value: libcst.BaseExpression) -> libcst.Dict:
    return libcst.Dict([libcst.DictElement(libcst.SimpleString(f'"{name}"'), value)])


def _argument(document: Document, edit: Edit) -> tuple[libcst.Call, int]:
    """The call and the index of the argument that an edit is about."""
    for node in document.starting_at(edit.location, libcst.Arg):
        parent = document.parents.get(node)
        if isinstance(parent, libcst.Call):
            return parent, next(index for index, argument in enumerate(parent.args) if argument is node)
    raise Refused("the argument is not written at that place")


def _asks(document: Document, call: libcst.Call) -> None:
    """Sees to it that a callee can be asked which parameters it has."""
    callee = dotted(call.func)
    if callee is None:
        raise Refused("what is called has no name that a guard could ask about")
    if callee == "dict":
        raise Refused("it is given by way of a dictionary, which no guard can ask about")
    import_module(document, "inspect")


def _no_guard(*, is_guarded: bool) -> None:
    if is_guarded:
        raise Refused("it is given by way of what is unpacked there")


def remove_argument(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Leaves an argument out; guarded, it is given where the callee has a parameter for it.

    With `closing` those behind a positional one are meant to move up into its place.
    """
    try:
        call, index = _argument(document, edit)
    except Refused:
        if is_guarded:
            raise
        _remove_entry(document, *_entry(document, edit))
        return
    name = call.args[index].keyword
    if call.args[index].star:
        _no_guard(is_guarded=is_guarded)
        _remove_entry(document, *_unpacked_entry(document, call, index, edit.parameter("argument") or ""))
        return
    _check_leaving_out(call.args[index].value, with_calls=not is_guarded)
    if not document.claim(call.args[index], "argument", "" if not is_guarded else "guard"):
        return
    change = call_change(document, call)
    if is_guarded:
        if name is None:
            raise Refused("an argument without a name can't be given only to some releases")
        _asks(document, call)
        change.guarded.append((index, ""))
        return
    if (
        name is None
        and edit.parameter("closing") != "yes"
        and any(each.keyword is None and each.star != "**" for each in call.args[index + 1 :])
    ):
        raise Refused("other arguments would move up into its place")
    change.removed.add(index)


def _check_leaving_out(value: libcst.CSTNode, *, with_calls: bool = True) -> None:
    """Refuses to leave out a value that does something: it binds a name, waits, yields, or calls something."""
    sorts: tuple[type[libcst.CSTNode], ...] = (libcst.NamedExpr, libcst.Await, libcst.Yield)
    sorts = (*sorts, libcst.Call) if with_calls else sorts
    pending: list[libcst.CSTNode] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, sorts):
            raise Refused("its value does something besides being passed, and that would no longer be done")
        if not isinstance(node, libcst.Lambda):
            pending.extend(node.children)


def rename_argument(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Gives an argument another keyword; guarded, the old one where the callee does not have the new one."""
    new = edit.parameter("to") or ""
    try:
        call, index = _argument(document, edit)
    except Refused:
        if is_guarded:
            raise
        _rename_entry(document, *_entry(document, edit), new)
        return
    if call.args[index].star:
        _no_guard(is_guarded=is_guarded)
        _rename_entry(document, *_unpacked_entry(document, call, index, edit.parameter("argument") or ""), new)
        return
    if call.args[index].keyword is None:
        raise Refused("the argument has no keyword")
    if not document.claim(call.args[index], "argument", new):
        return
    change = call_change(document, call)
    if is_guarded:
        _asks(document, call)
        change.guarded.append((index, new))
    else:
        change.keywords[index] = new


@dataclass(eq=False)
class DictChange:
    """What becomes of a dictionary that a call unpacks, by index of its entries."""

    removed: set[int] = field(default_factory=set)
    renamed: dict[int, str] = field(default_factory=dict)

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.Dict)
        elements: list[libcst.BaseDictElement] = list(updated.elements)
        for index, name in self.renamed.items():
            element = elements[index]
            assert isinstance(element, libcst.DictElement) and isinstance(element.key, libcst.SimpleString)
            quote = element.key.quote
            elements[index] = element.with_changes(key=libcst.SimpleString(f"{quote}{name}{quote}"))
        if not self.removed:
            return updated.with_changes(elements=elements)
        row = Row.of(elements, updated.lbrace.whitespace_after, updated.rbrace.whitespace_before)
        for index in sorted(self.removed, reverse=True):
            row = row.without(index)
        before, elements, behind = row.separated()
        return updated.with_changes(
            elements=elements,
            lbrace=updated.lbrace.with_changes(whitespace_after=before),
            rbrace=updated.rbrace.with_changes(whitespace_before=behind),
        )


def _entry(document: Document, edit: Edit) -> tuple[libcst.Dict, int]:
    """The dictionary and the index of the entry whose key stands at a place."""
    for node in document.starting_at(edit.location, libcst.SimpleString):
        element = document.parents.get(node)
        mapping = document.parents.get(element) if isinstance(element, libcst.DictElement) else None
        if isinstance(mapping, libcst.Dict) and isinstance(element, libcst.DictElement) and element.key is node:
            return mapping, next(index for index, each in enumerate(mapping.elements) if each is element)
    raise Refused("the argument is not written at that place")


def _remove_entry(document: Document, mapping: libcst.Dict | libcst.Call, index: int) -> None:
    entry = mapping.args[index] if isinstance(mapping, libcst.Call) else mapping.elements[index]
    _check_leaving_out(entry.value)
    if isinstance(mapping, libcst.Call):
        if document.claim(mapping.args[index], "argument", ""):
            call_change(document, mapping).removed.add(index)
    elif document.claim(mapping.elements[index], "argument", ""):
        document.changed(mapping, DictChange).removed.add(index)


def _rename_entry(document: Document, mapping: libcst.Dict | libcst.Call, index: int, new: str) -> None:
    if isinstance(mapping, libcst.Call):
        if document.claim(mapping.args[index], "argument", new):
            call_change(document, mapping).keywords[index] = new
    elif document.claim(mapping.elements[index], "argument", new):
        document.changed(mapping, DictChange).renamed[index] = new


def _unpacked_entry(
    document: Document, call: libcst.Call, index: int, key: str
) -> tuple[libcst.Dict | libcst.Call, int]:
    """The one dictionary that `**name` stands for in a call, made in the same function, and where it has a key.

    Whatever else is done with the name has to leave that entry alone, and no other function may get to see it.
    """
    unpacked = call.args[index].value
    if call.args[index].star != "**" or not isinstance(unpacked, libcst.Name) or not key:
        raise Refused("it is given by way of what is unpacked there")
    function = next((each for each in document.around(call) if isinstance(each, libcst.FunctionDef)), document.module)
    found: list[tuple[libcst.Dict | libcst.Call, int]] = []
    for name in _uses(function, unpacked.value):
        parent = document.parents[name]
        if isinstance(parent, libcst.Arg) and parent.star == "**":
            user = document.parents[parent]
            if not isinstance(user, libcst.Call) or document.code(user.func) != document.code(call.func):
                raise Refused(f"{unpacked.value} is unpacked for another call too")
        elif isinstance(parent, libcst.AssignTarget | libcst.AnnAssign):
            assigned = document.parents[parent] if isinstance(parent, libcst.AssignTarget) else parent
            made = getattr(assigned, "value", None)
            places = _places_of(made, key)
            if len(places) != 1 or not isinstance(made, libcst.Dict | libcst.Call):
                raise Refused(f"{unpacked.value} is more than one dictionary that has a {key}")
            found.append((made, places[0]))
        elif not _leaves_alone(document, parent, key):
            raise Refused(f"{unpacked.value} is used for something else too")
    if len(found) != 1:
        raise Refused("the dictionary that is unpacked there is made elsewhere")
    return found[0]


def _uses(node: libcst.CSTNode, name: str) -> list[libcst.Name]:
    """The names below a node that stand for a variable, those of attributes and keywords left out."""
    found: list[libcst.Name] = []
    pending: list[libcst.CSTNode] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, libcst.Name) and each.value == name:
            found.append(each)
        elif isinstance(each, libcst.Attribute | libcst.Arg):
            pending.append(each.value)
        else:
            pending.extend(each.children)
    return found


def _places_of(made: libcst.CSTNode | None, key: str) -> list[int]:
    """Where a dictionary display, or a call of `dict`, has a key."""
    if isinstance(made, libcst.Dict):
        return [
            index
            for index, element in enumerate(made.elements)
            if isinstance(element, libcst.DictElement)
            and isinstance(element.key, libcst.SimpleString)
            and element.key.evaluated_value == key
        ]
    if isinstance(made, libcst.Call) and isinstance(made.func, libcst.Name) and made.func.value == "dict":
        named = enumerate(made.args)
        return [index for index, argument in named if argument.keyword is not None and argument.keyword.value == key]
    return []


def _leaves_alone(document: Document, parent: libcst.CSTNode, key: str) -> bool:
    """True where what is done with a dictionary, by the node around its name, is to fill in other keys."""
    if isinstance(parent, libcst.Subscript):
        index = parent.slice[0].slice
        is_other = isinstance(index, libcst.Index) and isinstance(index.value, libcst.SimpleString)
        return is_other and document.code(parent.slice[0]).strip("\"'") != key
    called = document.parents[parent]
    if isinstance(parent, libcst.Attribute) and parent.attr.value == "update" and isinstance(called, libcst.Call):
        return key not in document.code(called)
    return False


def add_argument(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Gives a call one more argument, by keyword; guarded, only where the callee has a parameter for it."""
    call = document.call_at(edit.location)
    name, text = edit.parameter("argument") or "", edit.parameter("value") or ""
    if any(argument.keyword is not None and argument.keyword.value == name for argument in call.args):
        raise Refused(f"{name} is given already")
    if _is_bare_generator(call):
        raise Refused("the call's one argument is a generator without parentheses")
    value = expression(text)
    if not document.claim(call, f"argument {name}", text):
        return
    helper = edit.parameter("helper")
    if helper is not None:
        add_helper(document, helper, call)
    change = call_change(document, call)
    added = by_keyword(name, value)
    if is_guarded:
        _asks(document, call)
    change.added.append((added, is_guarded))


def by_keyword(name: str, value: libcst.BaseExpression) -> libcst.Arg:
    """An argument given by keyword."""
    return libcst.Arg(value, keyword=libcst.Name(name), equal=_AROUND_EQUAL)


def _is_bare_generator(call: libcst.Call) -> bool:
    return any(isinstance(each.value, libcst.GeneratorExp) and not each.value.lpar for each in call.args)


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
        call_change(document, call).keywords.update(chosen)


def insert_helper(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Lets a helper function, which the rule carries, make the call: `f(x)` becomes `helper(f, x)`."""
    del is_guarded
    call = document.call_at(edit.location)
    source = edit.parameter("helper") or ""
    if isinstance(call.func, libcst.Name) and call.func.value in _defined(source):
        raise Refused("the helper is called already")
    if _is_bare_generator(call):
        raise Refused("the call's one argument is a generator without parentheses")
    name = add_helper(document, source, call)
    if document.claim(call, "helper", name):
        call_change(document, call).helper = name


def _defined(source: str) -> Sequence[str]:
    return [each.name.value for each in libcst.parse_module(source).body if isinstance(each, libcst.FunctionDef)]
