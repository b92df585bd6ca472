"""What an expression can be: the types that inference gives, each a small frozen value.

A type speaks of values, so a class and its instances are two things: `Class` is the class object itself, `Instance` a
value of it. `Unknown` carries the reason, `Absent` says that a name surely is not there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal as Choice
from typing import Union as _Union

from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing can be said, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The name is not there: `owner` is where it was looked for (a dotted path), `is_module` whether that is a module.

    `typing_only` is set where the name exists for type checkers alone.
    """

    owner: str
    name: str
    is_module: bool = False
    typing_only: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """A module of one of the program's trees."""

    name: str


@dataclass(frozen=True, slots=True)
class External:
    """A thing in a library that the program does not hold, by its dotted path: `torch.nn.Module`, `builtins.len`."""

    path: str


@dataclass(frozen=True, slots=True)
class Class:
    """A class object; `arguments` are its type arguments where it was subscripted.

    `is_open` where the object may be a subclass: it came as `type[X]`.
    """

    declaration: ClassDeclaration
    arguments: tuple[Type, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """A value of a class; `exact` where the value was made by calling that very class.

    `by_names` where nothing but the names of attributes tells the class.
    """

    class_: Class | External
    arguments: tuple[Type, ...] = ()
    exact: bool = False
    by_names: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """A value of one of the classes of a family that the target's rules name; which one, nothing says."""

    name: str


# What a decorator makes of a function: a kernel is launched on a grid, `kernel[grid](…)`, and a tuned one is given some
# of its arguments by its tuner; "wrapped" stands for a wrapper that takes anything and passes all of it on.
Transformed = Choice[
    "",
    "context manager",
    "async context manager",
    "wrapped",
    "kernel",
    "tuned kernel",
    "launched kernel",
    "launched tuned kernel",
]


@dataclass(frozen=True, slots=True)
class Function:
    """A function; `receiver` is what it is bound to, `owner` the class through which it was found.

    `substitution` maps type variables of the class that declares it to what they are for this receiver.
    """

    declaration: FunctionDeclaration
    receiver: Type | None = None
    owner: Class | None = None
    substitution: tuple[tuple[TypeVariable, Type], ...] = ()
    skips_first: bool = False
    transformed: Transformed = ""


@dataclass(frozen=True, slots=True)
class Lambda:
    """A lambda expression, and the module that holds it."""

    node: ast.Lambda
    module: ModuleDeclaration


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant whose value is known: a string, number, boolean, bytes or None."""

    value: str | int | float | bool | bytes | complex | None


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of known length."""

    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A dict whose string keys are known; `is_open` where it may hold others.

    `is_forgotten` where keys that it held before may be gone.
    """

    items: tuple[tuple[str, Type], ...]
    is_open: bool = False
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """One of several; never nested and never of one."""

    members: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """A type variable, kept as such until it is used; `path` is where it is declared.

    `default` is what it is where nothing fills it in.
    """

    path: str
    bound: Type | None = None
    default: Type | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """`functools.partial(function, ...)`; `call` is the call that made it."""

    function: Type
    call: ast.Call


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` in a method of `class_`, bound to `receiver`."""

    class_: Class
    receiver: Type


Type = _Union[  # noqa: UP007 - a class here is named Union, and mypy takes no `|` for an alias that recurs
    Unknown,
    Absent,
    Module,
    External,
    Class,
    Instance,
    Family,
    Function,
    Lambda,
    Literal,
    Tuple,
    Dictionary,
    Union,
    TypeVariable,
    Partial,
    Super,
]

NONE = Literal(None)
ANY = Unknown("Any")
OBJECT = External("builtins.object")


def union(members: Iterable[Type]) -> Type:
    """The union of types, flattened and without doubles; Unknown members stay, since they silence checks."""
    given = members if isinstance(members, list) else list(members)
    if given and all(member is given[0] for member in given):
        # Mostly there is only one, and comparing types costs more than asking.
        return given[0]
    flat: dict[Type, None] = {}
    for member in given:
        if isinstance(member, Union):
            flat.update(dict.fromkeys(member.members))
        else:
            flat[member] = None
    if len(flat) == 1:
        return next(iter(flat))
    if not flat:
        return Unknown("no value")
    if len(flat) > LARGEST_UNION:
        return Unknown("too many possible types")
    return Union(tuple(flat))


LARGEST_UNION = 24
LARGEST_TYPE = 400


def bounded(type_: Type) -> Type:
    """The type, or Unknown where it has grown too large to be compared: containers of containers, many times over."""
    pending: list[Type] = [type_]
    size = 0
    while pending:
        member = pending.pop()
        size += 1
        if size > LARGEST_TYPE:
            return Unknown("type of too many parts")
        if isinstance(member, Tuple):
            pending.extend(member.items)
        elif isinstance(member, Union):
            pending.extend(member.members)
        elif isinstance(member, Dictionary):
            pending.extend(value for _, value in member.items)
        elif isinstance(member, Instance):
            pending.extend(member.arguments)
    return type_


def inexact(type_: Type) -> Type:
    """The type of a value that may be of a class below the one it was made of."""
    if isinstance(type_, Union):
        return union([inexact(member) for member in type_.members])
    return replace(type_, exact=False) if isinstance(type_, Instance) else type_


def told_by_names(type_: Type) -> Type:
    """The type of a value that was got from one of which only names tell the class."""
    if isinstance(type_, Union):
        return union([told_by_names(member) for member in type_.members])
    return replace(type_, exact=False, by_names=True) if isinstance(type_, Instance) else type_


def members_of(type_: Type) -> tuple[Type, ...]:
    """The members of a union, or the type alone."""
    return type_.members if isinstance(type_, Union) else (type_,)


def is_unknown(type_: Type) -> bool:
    """True where nothing can be judged on the type."""
    return isinstance(type_, Unknown | Absent)


def builtin(name: str, *arguments: Type) -> Instance:
    """An instance of a built-in class."""
    return Instance(External(f"builtins.{name}"), arguments)
