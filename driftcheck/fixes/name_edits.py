"""Edits of names and of what is read: attributes renamed or taken from elsewhere, strings, subscripts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import libcst

from driftcheck.fixes.document import LONGEST, Document, Refused, dotted, expression, spread_condition
from driftcheck.fixes.import_edits import import_name
from driftcheck.model import Edit


@dataclass(eq=False)
class Renamed:
    """An attribute under another name."""

    name: str

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.Attribute)
        return updated.with_changes(attr=updated.attr.with_changes(value=self.name))


@dataclass(eq=False)
class Replaced:
    """An expression in the place of another, whose parentheses stay around it."""

    node: libcst.BaseExpression

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.BaseExpression)
        if updated.lpar:
            return self.node.with_changes(lpar=updated.lpar, rpar=updated.rpar)
        return self.node


@dataclass(eq=False)
class Unwrapped:
    """What is subscripted, without the subscript."""

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.Subscript)
        value = updated.value
        return value.with_changes(lpar=[*updated.lpar, *value.lpar], rpar=[*value.rpar, *updated.rpar])


def _attribute(document: Document, edit: Edit) -> libcst.Attribute:
    """The attribute whose name stands at a place."""
    found = document.named_at(edit.location, libcst.Attribute, "attr")
    if found is None:
        raise Refused("no attribute is written at that place")
    return found


def rename_attribute(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Reads an attribute under another name; guarded, under the old one where the object does not have the new one."""
    node = _attribute(document, edit)
    old, new = node.attr.value, edit.parameter("to") or ""
    if edit.parameter("attribute") not in (None, old):
        raise Refused(f"the attribute there is {old}")
    if not is_guarded:
        if document.claim(node, "name", new):
            document.changed(node, Renamed, lambda: Renamed(new))
        return
    owner = dotted(node.value)
    if owner is None:
        raise Refused("what it is read from has no name that a guard could ask about")
    if _is_stored(document, node):
        raise Refused("it is stored, and both names can't be")
    if isinstance(document.parents.get(node), libcst.MatchValue):
        raise Refused("as a pattern it has to be a name with a dot")
    if _has_comment(node):
        raise Refused("a comment stands within it")
    if document.claim(node, "name", new):
        either = expression(f'({owner}.{new} if hasattr({owner}, "{new}") else {owner}.{old})')
        start = document.positions[node].start.column
        if start + len(document.code(either)) > LONGEST and isinstance(either, libcst.IfExp):
            either = spread_condition(document, either, node)
        document.changed(node, Replaced, lambda: Replaced(either))


@dataclass(eq=False)
class OneSide:
    """What is left of `a and b`, or `a or b`, where the other side decides nothing."""

    side: str

    def __call__(self, updated: libcst.CSTNode) -> libcst.CSTNode:
        assert isinstance(updated, libcst.BooleanOperation)
        kept = updated.left if self.side == "left" else updated.right
        return kept.with_changes(lpar=[*updated.lpar, *kept.lpar], rpar=[*kept.rpar, *updated.rpar])


def replace_attribute(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Says a value where an attribute was read; guarded, only where the object does not have the attribute."""
    node = _attribute(document, edit)
    old, text = node.attr.value, edit.parameter("value") or ""
    if edit.parameter("attribute") != old:
        raise Refused(f"the attribute there is {old}")
    if _is_stored(document, node) or isinstance(document.parents.get(node), libcst.MatchValue):
        raise Refused("it is more than read there")
    if _has_comment(node):
        raise Refused("a comment stands within it")
    value = expression(text)
    if not document.claim(node, "name", text):
        return
    if is_guarded:
        owner = document.code(node.value)
        document.changed(node, Replaced, lambda: Replaced(expression(f'getattr({owner}, "{old}", {text})')))
        return
    parent = document.parents.get(node)
    if isinstance(parent, libcst.BooleanOperation) and not _has_comment(parent):
        # `a and True` is as true as `a`, which is all that a condition asks.
        is_neutral = text == ("True" if isinstance(parent.operator, libcst.And) else "False")
        if is_neutral and _is_condition(document, parent):
            side = "right" if parent.left is node else "left"
            if document.claim(parent, "side", side):
                document.changed(parent, OneSide, lambda: OneSide(side))
            return
    document.changed(node, Replaced, lambda: Replaced(value))


def _is_condition(document: Document, node: libcst.CSTNode) -> bool:
    """True where only the truth of an expression counts."""
    parent = document.parents.get(node)
    while isinstance(parent, libcst.BooleanOperation):
        node, parent = parent, document.parents.get(parent)
    is_not = isinstance(parent, libcst.UnaryOperation) and isinstance(parent.operator, libcst.Not)
    return is_not or (isinstance(parent, libcst.If | libcst.IfExp | libcst.While) and parent.test is node)


def _is_stored(document: Document, node: libcst.CSTNode) -> bool:
    """True where something is put there, or taken from there for good."""
    parent = document.parents.get(node)
    while isinstance(parent, libcst.Element | libcst.StarredElement | libcst.Tuple | libcst.List):
        node, parent = parent, document.parents.get(parent)
    if isinstance(parent, libcst.AssignTarget | libcst.Del):
        return True
    if isinstance(parent, libcst.AugAssign | libcst.AnnAssign | libcst.For | libcst.CompFor):
        return parent.target is node
    return isinstance(parent, libcst.AsName)


def _has_comment(node: libcst.CSTNode, *, inside: bool = True) -> bool:
    """True where a comment stands between the parts of an expression, parentheses around it left out."""
    if inside and isinstance(node, libcst.BaseExpression):
        node = node.with_changes(lpar=[], rpar=[])
    return isinstance(node, libcst.Comment) or any(_has_comment(each, inside=False) for each in node.children)


def move_attribute(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Imports what was read as an attribute of a module from where it is now."""
    node = _attribute(document, edit)
    old, path = dotted(node), edit.parameter("to") or ""
    if old is None or _is_stored(document, node):
        raise Refused("it is not read from a module by its name")
    if isinstance(document.parents.get(node), libcst.MatchValue):
        raise Refused("as a pattern it has to be a name with a dot")
    if _has_comment(node):
        raise Refused("a comment stands within it")
    module, _, name = path.rpartition(".")
    if not document.claim(node, "name", path):
        return
    was = edit.parameter("was") or ""
    local = import_name(document, module, name, node, otherwise=was if is_guarded else None)
    document.changed(node, Replaced, lambda: Replaced(libcst.Name(local)))


def rename_string(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Writes another text between the quotes of a string."""
    if is_guarded:
        raise Refused("a text is the same for every release")
    was, new = edit.parameter("was") or "", edit.parameter("to") or ""
    node = next(document.starting_at(edit.location, libcst.SimpleString), None)
    if node is None or node.raw_value != was or node.prefix:
        raise Refused("the text is not written there in one piece")
    if document.claim(node, "text", new):
        text = libcst.SimpleString(f"{node.quote}{new}{node.quote}")
        document.changed(node, Replaced, lambda: Replaced(text))


def rename_strings(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Writes another module and another name in it, where two strings of a call say them one after the other."""
    if is_guarded:
        raise Refused("a text is the same for every release")
    was, new = ((edit.parameter(each) or "").partition(":") for each in ("was", "to"))
    first = next(document.starting_at(edit.location, libcst.SimpleString), None)
    argument = document.parents.get(first) if first is not None else None
    call = document.parents.get(argument) if argument is not None else None
    if first is None or not isinstance(call, libcst.Call) or not isinstance(argument, libcst.Arg):
        raise Refused("the texts are not written there in one piece each")
    following = call.args[next(index for index, each in enumerate(call.args) if each is argument) + 1 :]
    second = following[0].value if following else None
    if not isinstance(second, libcst.SimpleString):
        raise Refused("the texts are not written there in one piece each")
    for node, old, text in ((first, was[0], new[0]), (second, was[2], new[2])):
        if node.raw_value != old or node.prefix:
            raise Refused("the texts are not written there in one piece each")
        if text != old and document.claim(node, "text", text):
            string = libcst.SimpleString(f"{node.quote}{text}{node.quote}")
            document.changed(node, Replaced, partial(Replaced, string))


def unwrap_subscript(document: Document, edit: Edit, *, is_guarded: bool) -> None:
    """Takes the whole instead of its first part: `reply[0]` becomes `reply`."""
    if is_guarded:
        raise Refused("what is right depends on the release")
    for node in document.starting_at(edit.location, libcst.Subscript):
        if not document.ends_at(node, edit.location):
            continue
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if not isinstance(index, libcst.Index) or document.code(index.value) != "0":
            raise Refused("another part than the first is taken")
        if _is_stored(document, node):
            raise Refused("something is put in its place")
        if any(_has_comment(each) for each in (*node.slice, node.lbracket, node.rbracket, node.whitespace_after_value)):
            raise Refused("a comment stands within it")
        if document.claim(node, "subscript", ""):
            document.changed(node, Unwrapped)
        return
    raise Refused("the result is taken apart in another way than by [0]")
