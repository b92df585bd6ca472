"""Values that are known before a program runs, and what may be done with them without running any of it."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from driftcheck.surface.types import Class, Function, Instance, Lambda, Module

if TYPE_CHECKING:
    from inspect import Parameter

# What a helper of the client's may build up on the way to an answer about a version.
LARGEST_VALUE = 4096
_LARGEST_INTEGER = 1 << 64
MISFITS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""What computing with values raises where they don't go together."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value known before the program runs.

    `is_fact` where it follows from the target, not from a mere constant; `is_assumed` where it is what an environment
    variable that nobody sets gives.
    """

    value: Any
    is_fact: bool = False
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """Something of which only the name counts: a field of a dataclass."""

    name: str


@dataclass(frozen=True, slots=True)
class Names:
    """Names that a thing of the target surely has, in order, and others that it may have.

    `entries` are what the names stand for, where somebody may ask: parameters of a signature, fields of a class.
    `is_open` where it may have any name; `ask` tells of a name what can be told of it, where the names are not listed.
    """

    sure: tuple[str, ...] = ()
    possible: frozenset[str] = frozenset()
    is_open: bool = False
    entries: tuple[Parameter | Named, ...] = ()
    ask: Callable[[str], bool | None] | None = None

    @property
    def is_exact(self) -> bool:
        """True where exactly these names are there."""
        return not self.is_open and not self.possible

    def contains(self, name: object) -> bool | None:
        """Whether a name is there; None where it may be."""
        if name in self.sure:
            return True
        if self.ask is not None:
            return self.ask(name) if isinstance(name, str) else None
        return None if self.is_open or name in self.possible else False

    def entry(self, name: str) -> Parameter | Named | None:
        """What a name stands for, None where that is not known."""
        return next((entry for entry in self.entries if entry.name == name), None)


@dataclass(frozen=True, slots=True)
class Described:
    """What `inspect.signature` or `inspect.getfullargspec` gives, or a code object: attributes, by name."""

    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed distribution, which knows its version."""

    version: str


@dataclass(frozen=True, slots=True)
class Providers:
    """What `importlib.metadata.packages_distributions` gives: which distribution brings the target's packages."""

    packages: frozenset[str]
    distribution: str

    def of(self, package: object) -> tuple[str, ...]:
        """The distributions that bring a package; raises ValueError for one that is not the target's."""
        if package not in self.packages:
            raise ValueError("not the target's")
        return (self.distribution,)


def parse_version(text: str) -> Any:
    """A version that compares as pip does; raises ValueError."""
    from packaging.version import Version

    return Version(text)


def specifier_set(text: str) -> Any:
    """A set of version specifiers; raises ValueError."""
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(text)


def is_version(value: object) -> bool:
    """True for a version of packaging's."""
    return hasattr(value, "release") and hasattr(value, "is_prerelease")


def is_specifier(value: object) -> bool:
    """True for a set of version specifiers."""
    return hasattr(value, "contains") and hasattr(value, "prereleases")


def is_type(value: object) -> bool:
    """True where the value is a module, class or function of the program, or an instance of one of its classes."""
    return isinstance(value, Module | Class | Function | Lambda | Instance)


def truth_of(value: object) -> bool | None:
    """Whether a known value counts as true; None where that can't be told."""
    if isinstance(value, Names):
        return True if value.sure else None if value.is_open or value.possible else False
    if isinstance(value, Instance):
        return None
    return True if is_type(value) else bool(value)


def one_of(values: Sequence[Value | None]) -> Value | None:
    """What is known of a value that is one of several, on branches that nobody can tell.

    A version that the target gives stands against whatever else it may be: that is an override which a user may set.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    chosen = next((value for value in known if value.is_fact), known[0])
    same = all(type(value.value) is type(chosen.value) and value.value == chosen.value for value in known)
    if same and len(known) == len(values):
        return Value(chosen.value, chosen.is_fact)
    if not chosen.is_fact or not (isinstance(chosen.value, str | tuple) or is_version(chosen.value)):
        return None
    return chosen if all(not value.is_fact or value.value == chosen.value for value in known) else None


# Comparisons

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def compare(operation: ast.cmpop, left: Any, right: Any) -> bool | None:
    """The outcome of one comparison, None where it can't be told; raises as the comparison would."""
    if isinstance(operation, ast.NotIn | ast.IsNot):
        opposite = compare(ast.In() if isinstance(operation, ast.NotIn) else ast.Is(), left, right)
        return None if opposite is None else not opposite
    if isinstance(operation, ast.In):
        return _is_in(left, right)
    if isinstance(operation, ast.Is):
        return _is_same(left, right)
    if is_type(left) or is_type(right):
        same = _is_same(left, right)
        return None if same is None else same is isinstance(operation, ast.Eq)
    if isinstance(left, Names) or isinstance(right, Names):
        return _compare_names(operation, left, right)
    if is_version(left) and isinstance(right, str):
        right = parse_version(right)
    elif is_version(right) and isinstance(left, str):
        left = parse_version(left)
    return bool(_COMPARISONS[type(operation)](left, right))


def _is_same(left: Any, right: Any) -> bool | None:
    singletons = (None, True, False)
    if any(left is single or right is single for single in singletons):
        return left is right
    if _is_unique(left) or _is_unique(right):
        return left is right
    # Whether two names stand for one function or class can change at run time: that is what monkey-patching is.
    return None if is_type(left) or is_type(right) or left is not right else True


def _is_unique(value: Any) -> bool:
    """True for what there is one of: a kind of parameter, the mark of a parameter without a default."""
    return type(value).__module__ == "inspect" or getattr(value, "__qualname__", "") == "_empty"


def _is_in(item: Any, container: Any) -> bool | None:
    if isinstance(container, Names):
        return container.contains(item.name if isinstance(item, Named) else item)
    if is_specifier(container):
        return bool(container.contains(item, prereleases=True))
    if is_type(container) or isinstance(container, Described):
        return None
    if is_version(item) and isinstance(container, tuple):
        return any(compare(ast.Eq(), item, other) for other in container)
    return bool(item in container)


def _compare_names(operation: ast.cmpop, left: Any, right: Any) -> bool | None:
    """Sets of names against sets or sequences of plain names."""
    if isinstance(left, Names) and isinstance(right, Names):
        return None
    if isinstance(operation, ast.GtE | ast.Gt) and isinstance(left, Names):
        found = [left.contains(name) for name in right]
        return False if False in found else None if None in found or isinstance(operation, ast.Gt) else True
    if isinstance(operation, ast.LtE | ast.Lt) and isinstance(right, Names):
        return _compare_names(ast.GtE() if isinstance(operation, ast.LtE) else ast.Gt(), right, left)
    names, other = (left, right) if isinstance(left, Names) else (right, left)
    if not names.is_exact or not isinstance(operation, ast.Eq | ast.NotEq):
        return None
    same = set(names.sure) == other if isinstance(other, frozenset) else names.sure == tuple(other)
    return same is isinstance(operation, ast.Eq)


# Attributes and methods

_VERSION_ATTRIBUTES = frozenset(
    ("release", "major", "minor", "micro", "base_version", "public", "local", "pre", "post", "dev", "epoch",
     "is_prerelease", "is_postrelease", "is_devrelease")
)  # fmt: skip
_PARAMETER_ATTRIBUTES = frozenset(
    ("name", "kind", "default", "empty", "POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY",
     "VAR_KEYWORD")
)  # fmt: skip
_DESCRIBED_ATTRIBUTES = frozenset(
    ("parameters", "args", "kwonlyargs", "varargs", "varkw", "co_varnames", "co_argcount", "version", "parsed_version")
)
VALUE_ATTRIBUTES = _VERSION_ATTRIBUTES | _PARAMETER_ATTRIBUTES | _DESCRIBED_ATTRIBUTES
"""The attributes of known values: any other attribute belongs to something that is not one."""


def attribute_of(value: Any, name: str) -> Any:
    """An attribute of a known value; raises AttributeError where it has none that may be read."""
    if isinstance(value, Described):
        if name in value.attributes:
            return value.attributes[name]
    elif isinstance(value, Named):
        if name == "name":
            return value.name
    elif isinstance(value, Distribution):
        if name == "version":
            return value.version
        if name == "parsed_version":
            return parse_version(value.version)
    elif is_version(value):
        if name in _VERSION_ATTRIBUTES:
            return getattr(value, name)
    elif type(value).__module__ == "inspect" and name in _PARAMETER_ATTRIBUTES:
        return getattr(value, name)
    raise AttributeError(name)


_TEXT_METHODS = frozenset(
    ("split", "rsplit", "startswith", "endswith", "strip", "lstrip", "rstrip", "partition", "rpartition", "lower",
     "upper", "replace", "isdigit", "isdecimal", "isnumeric", "removeprefix", "removesuffix", "count", "find", "index",
     "join", "casefold", "isalpha")
)  # fmt: skip
_NAMES_METHODS = frozenset(("keys", "copy", "get", "values", "items", "issuperset"))
_MATCH_METHODS = frozenset(("group", "groups"))
VALUE_METHODS = _TEXT_METHODS | _NAMES_METHODS | _MATCH_METHODS | {"contains", "issubset", "public"}
"""The methods of known values: a call of any other is a call of something that is not one."""


def call_method(value: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """What a method of a known value gives; raises AttributeError where there is none that may be called."""
    if isinstance(value, str) and name in _TEXT_METHODS:
        found = getattr(value, name)(*arguments, **keywords)
        return bounded(tuple(found) if isinstance(found, list) else found)
    if isinstance(value, Providers) and name == "get":
        return value.of(arguments[0])
    if isinstance(value, Names) and name in _NAMES_METHODS:
        return _call_names_method(value, name, arguments)
    if name == "issubset" and isinstance(value, frozenset) and len(arguments) == 1:
        return known(compare(ast.LtE(), value, arguments[0]))
    if name == "contains" and is_specifier(value):
        item = arguments[0] if arguments else keywords["item"]
        # A development version of the target is what is installed: it is asked for, whatever the set says of them.
        return bool(value.contains(str(item), prereleases=True))
    if name in _MATCH_METHODS and isinstance(value, re.Match):
        return getattr(value, name)(*arguments)
    raise AttributeError(name)


def _call_names_method(value: Names, name: str, arguments: list[Any]) -> Any:
    if name in ("keys", "copy"):
        return value
    if name == "get":
        there = known(value.contains(arguments[0]))
        if not there:
            return arguments[1] if len(arguments) > 1 else None
        return known(value.entry(arguments[0]))
    if name == "issuperset":
        return known(compare(ast.GtE(), value, arguments[0]))
    if not value.is_exact or len(value.entries) != len(value.sure):
        raise AttributeError(name)
    return value.entries if name == "values" else tuple(zip(value.sure, value.entries, strict=True))


def known(value: Any) -> Any:
    """The value; raises ValueError where it is None, which says that it is not known."""
    if value is None:
        raise ValueError("not known")
    return value


def items_of(value: Any) -> Iterator[Any]:
    """What iterating over a known value gives; raises TypeError where it can't be told."""
    if isinstance(value, Names):
        if not value.is_exact:
            raise TypeError("names that are not all known")
        return iter(value.sure)
    if isinstance(value, str | tuple):
        return iter(value)
    if isinstance(value, frozenset):
        # In the order of the words, so that nothing depends on hash seeds.
        return iter(sorted(value, key=repr))
    raise TypeError("not iterable")


def item_of(value: Any, index: Any) -> Any:
    """`value[index]` of a known value; raises as the subscript would."""
    if isinstance(value, Names):
        if isinstance(index, str):
            return known(value.entry(index)) if known(value.contains(index)) else _missing(index)
        if value.is_exact:
            return value.sure[index]
        raise TypeError("names that are not all known")
    if isinstance(value, str | tuple):
        return value[index]
    if isinstance(value, Providers):
        return value.of(index)
    if isinstance(value, re.Match):
        return value.group(index)
    raise TypeError("not subscriptable")


def _missing(index: str) -> Any:
    raise KeyError(index)


def bounded(value: Any) -> Any:
    """The value; raises ValueError where it has grown too large to follow."""
    if isinstance(value, str | tuple | frozenset) and len(value) > LARGEST_VALUE:
        raise ValueError("too large")
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        raise ValueError("too large")
    return value


# Regular expressions

# A group that repeats can take time without bound on the shortest text.
_REPEATED_GROUP = re.compile(r"\)[*+{]")
# `(?:\.\d+)*` and its like begin with what the rest can't match: there is one way to match them.
_PARTS_OF_VERSIONS = re.compile(r"\((?:\?:)?\\?[.\-_](?:\\d|\[0-9\])[+*]?\)[*+?]?")
_MATCHING: dict[str, Callable[..., Any]] = {
    "match": re.match,
    "fullmatch": re.fullmatch,
    "search": re.search,
    "sub": re.sub,
    "split": re.split,
    "findall": re.findall,
}


def match(function: str, pattern: str, *arguments: Any) -> Any:
    """What a function of `re` gives on short texts; raises ValueError for patterns that might run away."""
    rest = _PARTS_OF_VERSIONS.sub("", pattern)
    quantifiers = sum(rest.count(sign) for sign in "*+{")
    if len(pattern) > 100 or quantifiers > 5 or _REPEATED_GROUP.search(rest) or len(str(arguments)) > 300:
        raise ValueError("pattern that may take long")
    try:
        found = _MATCHING[function](pattern, *arguments)
    except re.error as error:
        raise ValueError("no pattern") from error
    return bounded(tuple(found) if isinstance(found, list) else found)


# Arithmetic

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}


def calculate(operation: ast.operator, left: Any, right: Any) -> Any:
    """What an operator gives on two known values; raises where it can't be told."""
    if isinstance(operation, ast.Mult):
        if isinstance(left, int) and isinstance(right, int):
            return bounded(bounded(left) * bounded(right))
        raise TypeError("repetition")
    if isinstance(operation, ast.Mod) and not (isinstance(left, int) and isinstance(right, int)):
        raise TypeError("formatting")
    if not isinstance(left, int | str | tuple | frozenset) or not isinstance(right, int | str | tuple | frozenset):
        raise TypeError("not plain values")
    return bounded(_ARITHMETIC[type(operation)](left, right))
