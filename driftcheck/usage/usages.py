"""The usages that are collected from a client: where it touches the target, and what it meets there."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from driftcheck.model import Location
from driftcheck.surface.declarations import ClassDeclaration
from driftcheck.surface.types import Type
from driftcheck.usage.places import Place, location_of


@dataclass(eq=False, slots=True)
class Guard:
    """A `try` around a usage: what its handlers catch, and what they then do.

    `reraises` where some handler that would catch ends in a raise; `falls_back` where a handler tries something else.
    Around the handlers themselves stands a guard that catches nothing, `handles` the one whose failures they are for.
    """

    line: int
    caught: frozenset[str]
    reraises: bool
    falls_back: bool
    swallows: bool
    handles: Guard | None = None


Common = tuple[Place, str, tuple[Guard, ...], bool]


@dataclass(eq=False, slots=True)
class Usage:
    """What every usage has: its place, the qualified name around it, and the guards that stand around it.

    `is_typing_only` where the code is only for type checkers.
    """

    place: Place
    scope: str
    guards: tuple[Guard, ...]
    is_typing_only: bool

    @property
    def location(self) -> Location:
        """The place in lines and columns."""
        return self.place.location

    @property
    def is_type_ignored(self) -> bool:
        """True where the line carries `# type: ignore`."""
        return self.place.is_type_ignored


@dataclass(eq=False, slots=True)
class ImportUsage(Usage):
    """`import module` (name None) or `from module import name`; `result` is what it gives.

    `reported` is the node to point at where the whole statement is meant; `is_starred` where a name is used that only
    `from module import *` can have brought.
    """

    module: str
    name: str | None
    result: Type
    statement: ast.Import | ast.ImportFrom
    reported: ast.AST
    is_starred: bool = False


@dataclass(eq=False, slots=True)
class AttributeUsage(Usage):
    """`receiver.name`, read, stored or deleted; `result` is Absent where it is not there.

    `is_called` where the attribute is what a call calls, which counts as a call; `is_protocol` where syntax asks for a
    special method (`len(x)`, `x[0]`, `for … in x`) and nothing names it.
    """

    node: ast.Attribute
    receiver: Type
    name: str
    result: Type
    is_stored: bool
    is_probed: bool = False
    is_called: bool = False
    is_protocol: bool = False


@dataclass(eq=False, slots=True)
class CallUsage(Usage):
    """A call: what is called, and the node with its arguments.

    `unpacked` holds the types of what `**` unpacks, by the identity of the node; `first` the type of the first argument
    where the call makes a partial object. `is_awaited` where the result is awaited at once, `is_discarded` where nobody
    takes it. `is_rooted` is True where something on the way to the callee is the target's,
    `is_member` where what is called is an attribute of something of the target's.
    """

    node: ast.Call
    callee: Type
    unpacked: dict[int, Type]
    is_rooted: bool = False
    is_member: bool = False
    first: Type | None = None
    is_awaited: bool = False
    is_discarded: bool = False

    def locate(self, node: ast.expr | ast.keyword) -> Location:
        """The place of a part of the call."""
        return location_of(self.place.module, node)


@dataclass(eq=False, slots=True)
class ReturnUsage(Usage):
    """What a client does with the result of a call: `callee` was called, `type` is what it gives.

    `use` is "unpack" (into `count` targets, or at least so many where `has_star`), "subscript", "iterate", "enter" or
    "attribute", whose name is `name`.
    """

    callee: Type
    type: Type
    use: Literal["unpack", "subscript", "iterate", "enter", "attribute"]
    count: int = 0
    has_star: bool = False
    name: str = ""


@dataclass(eq=False, slots=True)
class EnvironmentUsage(Usage):
    """An environment variable that is read or set by its literal name."""

    name: str
    is_set: bool


@dataclass(eq=False, slots=True)
class StringUsage(Usage):
    """A string that may name something of the target.

    `role` is "path" for a dotted path, "logger" for the name of a logger, "method" for the first argument of a call of
    the method `caller`. `beside` is the string that is passed next to a path, where it may name something in there.
    """

    text: str
    role: Literal["path", "logger", "method"]
    caller: str = ""
    beside: str = ""


@dataclass(eq=False, slots=True)
class ReferenceUsage(Usage):
    """A thing of the target named where only a class will do: as a base, in `isinstance`, in `except`."""

    node: ast.expr
    type: Type
    role: Literal["base", "isinstance", "except"]


Wrapped = Literal["", "bound method", "static method", "class method", "property"]


@dataclass(eq=False, slots=True)
class ClassUsage(Usage):
    """A class statement of the client's with bases."""

    declaration: ClassDeclaration


@dataclass(eq=False, slots=True)
class PatchUsage(Usage):
    """Something of the client's put in the place of `owner.name`, on a module, a class or an object.

    `value` is what is put there, None where the patching call makes it up itself; `type` is its type, `wrapped` what
    was made of it. `needs_name` where what patches raises if the name is not there, `is_path` where a string names the
    whole, `is_temporary` where a test takes it away again.
    """

    owner: Type
    name: str
    value: ast.expr | None
    type: Type
    wrapped: Wrapped = ""
    needs_name: bool = False
    is_path: bool = False
    is_temporary: bool = False


@dataclass(eq=False, slots=True)
class FamilyUsage(Usage):
    """A member of a family is touched: its attribute `name` is read or called, it is called itself, or patched.

    `call` is the call, where there is one, with the types that it unpacks; `count` is how many targets its result is
    unpacked into, 0 where it is not. `value` is what is put in the place of `name`.
    """

    family: str
    name: str
    use: Literal["read", "call", "patch"]
    call: ast.Call | None = None
    unpacked: dict[int, Type] = field(default_factory=dict)
    count: int = 0
    value: Type | None = None
