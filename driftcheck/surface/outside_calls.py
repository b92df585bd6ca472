"""Calls of functions that no tree holds, where their answer about the target is known: versions, probes, signatures."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from driftcheck.surface.types import (
    Absent,
    Class,
    External,
    Function,
    Instance,
    Module,
    Tuple,
    Type,
)
from driftcheck.surface.values import (
    Described,
    Distribution,
    Names,
    Providers,
    Value,
    bounded,
    is_type,
    is_version,
    items_of,
    match,
    parse_version,
    specifier_set,
    truth_of,
)

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts
    from driftcheck.surface.scopes import Scope

_VERSION_MAKERS = re.compile(
    r"(^|\.)packaging\.version\.(parse|Version|LegacyVersion)$"
    r"|^pkg_resources\.parse_version$|^setuptools\.version\.parse_version$"
    r"|^(distutils\.version|setuptools\._distutils\.version|looseversion)\.(Loose|Strict)Version$"
)
_SPECIFIER_MAKERS = re.compile(r"(^|\.)packaging\.specifiers\.(SpecifierSet|Specifier)$")
_CONTAINERS = frozenset(("tuple", "list", "set", "frozenset", "sorted", "dict", "iter", "reversed"))
_PLAIN_CLASSES: dict[str, type] = {
    f"builtins.{class_.__name__}": class_
    for class_ in (str, int, float, bool, bytes, tuple, list, set, frozenset, dict)
}


class OutsideCalls:
    """Answers calls by the dotted path of what they call."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self.shapes = facts.shapes
        self._answers: dict[str, Callable[[ast.Call, Scope], Value | None]] = {
            "importlib.metadata.version": self._metadata_version,
            "importlib_metadata.version": self._metadata_version,
            "importlib.metadata.distribution": self._distribution,
            "importlib_metadata.distribution": self._distribution,
            "pkg_resources.get_distribution": self._distribution,
            "importlib.metadata.packages_distributions": self._providers,
            "importlib_metadata.packages_distributions": self._providers,
            "importlib.util.find_spec": self._find_spec,
            "importlib.find_loader": self._find_spec,
            "pkgutil.find_loader": self._find_spec,
            "importlib.import_module": self._import_module,
            "builtins.__import__": self._import_module,
            "inspect.signature": self._signature,
            "inspect.Signature.from_callable": self._signature,
            "inspect.getfullargspec": self._argument_specification,
            "inspect.iscoroutinefunction": self._is_coroutine,
            "asyncio.iscoroutinefunction": self._is_coroutine,
            "dataclasses.fields": self._fields,
            "msgspec.structs.fields": self._fields,
            "attr.fields": self._fields,
            "attrs.fields": self._fields,
            "dataclasses.is_dataclass": self._is_dataclass,
            "typing.get_type_hints": self._hints,
            "builtins.vars": self._vars,
            "builtins.dir": self._dir,
            "builtins.globals": self._globals,
            "builtins.hasattr": self._hasattr,
            "builtins.getattr": self._getattr,
            "builtins.issubclass": self._issubclass,
            "builtins.isinstance": self._isinstance,
            "inspect.isclass": partial(self._is_kind, Class),
            "inspect.isfunction": partial(self._is_kind, Function),
            "inspect.isroutine": partial(self._is_kind, Function),
            "inspect.ismodule": partial(self._is_kind, Module),
            "builtins.callable": self._callable,
            "builtins.int": self._plain(int),
            "builtins.str": self._plain(str),
            "builtins.len": self._len,
            "builtins.bool": self._bool,
            "builtins.any": self._any,
            "builtins.all": self._all,
            "builtins.map": self._map,
            "os.getenv": self._environment,
            "os.environ.get": self._environment,
            "typing.cast": self._cast,
        }
        for name in _CONTAINERS:
            self._answers[f"builtins.{name}"] = partial(self._container, name)
        for name in ("match", "fullmatch", "search", "sub", "split", "findall"):
            self._answers[f"re.{name}"] = partial(self._match, name)

    def answer(self, path: str, node: ast.Call, scope: Scope) -> Value | None:
        """What the call gives, None where that is not known; raises as a wrong use of a value does."""
        found = self._answers.get(path)
        if found is not None:
            return found(node, scope)
        if _VERSION_MAKERS.search(path):
            first = self._first(node, scope)
            return Value(parse_version(str(first.value)), first.is_fact) if first is not None else None
        if _SPECIFIER_MAKERS.search(path):
            first = self._first(node, scope)
            return Value(specifier_set(first.value), first.is_fact) if first is not None else None
        if path.rpartition(".")[2] == f"is_{self.program.target.name.replace('-', '_')}_available":
            return self._is_available(node, scope)
        return None

    def _first(self, node: ast.Call, scope: Scope) -> Value | None:
        given = node.args[0] if node.args else node.keywords[0].value if node.keywords else None
        return self.facts.evaluate(given, scope) if given is not None else None

    def _type(self, node: ast.Call, scope: Scope, index: int = 0) -> Type:
        """The type of an argument, which may be a value known to be a class or function."""
        value = self.facts.evaluate(node.args[index], scope)
        if value is not None and is_type(value.value):
            found: Type = value.value
            return found
        return self.program.inference.infer(node.args[index], scope)

    # Versions and distributions

    def _metadata_version(self, node: ast.Call, scope: Scope) -> Value | None:
        return self.facts.version if self._names_target(node, scope) else None

    def _distribution(self, node: ast.Call, scope: Scope) -> Value | None:
        version = self.facts.version
        if version is None or not self._names_target(node, scope):
            return None
        return Value(Distribution(version.value), is_fact=True)

    def _providers(self, node: ast.Call, scope: Scope) -> Value | None:
        packages = frozenset(self.program.target_index.top_level)
        return Value(Providers(packages, self.program.target.name), is_fact=True)

    def _names_target(self, node: ast.Call, scope: Scope) -> bool:
        first = self._first(node, scope)
        if first is None or not isinstance(first.value, str):
            return False
        return first.value in self.program.target_index.top_level or first.value == self.program.target.name

    def _is_available(self, node: ast.Call, scope: Scope) -> Value | None:
        """`is_<target>_available(...)` of another library: the target is there, in the release at hand."""
        first = self._first(node, scope)
        if not node.args and not node.keywords:
            return Value(value=True, is_fact=True)
        version = self.facts.version
        if first is None or version is None or not isinstance(first.value, str):
            return None
        return Value(parse_version(version.value) >= parse_version(first.value), is_fact=True)

    # Modules

    def _find_spec(self, node: ast.Call, scope: Scope) -> Value | None:
        first = self._first(node, scope)
        if first is None:
            return None
        found = self.program.module_type(str(first.value))
        if isinstance(found, Module):
            return Value(found, self.facts.is_of_target(found))
        if isinstance(found, Absent) and self.program.is_target(str(first.value)):
            return Value(None, is_fact=True)
        return None

    def _import_module(self, node: ast.Call, scope: Scope) -> Value | None:
        first = self._first(node, scope)
        if first is None:
            return None
        found = self.program.module_type(str(first.value))
        return Value(found, self.facts.is_of_target(found)) if isinstance(found, Module) else None

    # Attributes

    def _hasattr(self, node: ast.Call, scope: Scope) -> Value | None:
        if len(node.args) != 2:
            return None
        name = self.facts.evaluate(node.args[1], scope)
        if name is None or not isinstance(name.value, str):
            return None
        found = self.facts.has_attribute(self._type(node, scope), name.value)
        return None if found is None else Value(found, is_fact=True)

    def _getattr(self, node: ast.Call, scope: Scope) -> Value | None:
        if len(node.args) < 2:
            return None
        name = self.facts.evaluate(node.args[1], scope)
        if name is None or not isinstance(name.value, str):
            return None
        owner = self._type(node, scope)
        read = ast.Attribute(node.args[0], name.value, ast.Load())
        if len(node.args) == 2 or self.facts.has_attribute(owner, name.value):
            found = self.facts.evaluate(read, scope)
            if found is not None:
                return found
            return self.facts.typed(self.program.inference.attribute(owner, name.value))
        if isinstance(owner, Module) and name.value in ("__version__", "__version_tuple__"):
            return self.facts.evaluate(read, scope)
        if self.facts.has_attribute(owner, name.value) is False:
            default = self.facts.evaluate(node.args[2], scope)
            return Value(default.value, is_fact=True) if default is not None else None
        return None

    def _issubclass(self, node: ast.Call, scope: Scope) -> Value | None:
        one, other = self._type(node, scope), self._type(node, scope, 1)
        if not isinstance(one, Class) or not isinstance(other, Class) or one.is_open:
            return None
        found = self.program.classes.is_subclass(one.declaration, other.declaration)
        is_fact = self.facts.is_of_target(one) and self.facts.is_of_target(other)
        return None if found is None else Value(found, is_fact)

    def _isinstance(self, node: ast.Call, scope: Scope) -> Value | None:
        """What a known value is; `isinstance(X, type)` asks whether the target's X is still a class."""
        if len(node.args) != 2:
            return None
        asked = self.program.inference.infer(node.args[1], scope)
        if asked == External("builtins.type"):
            return self._is_kind(Class, node, scope)
        value = self.facts.evaluate(node.args[0], scope)
        if value is None or isinstance(value.value, Instance | Names | Described):
            return None
        answers = [_is_of(value.value, item) for item in (asked.items if isinstance(asked, Tuple) else (asked,))]
        if True in answers:
            return Value(value=True, is_fact=value.is_fact)
        return None if None in answers else Value(value=False, is_fact=value.is_fact)

    def _is_kind(self, kind: type[Type], node: ast.Call, scope: Scope) -> Value | None:
        value = self.facts.evaluate(node.args[0], scope)
        if value is None or not isinstance(value.value, Class | Function | Module | None):
            return None
        return Value(isinstance(value.value, kind), value.is_fact)

    def _callable(self, node: ast.Call, scope: Scope) -> Value | None:
        value = self.facts.argument(node.args[0], scope)
        if value is None or not (value.value is None or isinstance(value.value, Class | Function)):
            return None
        return Value(value.value is not None, value.is_fact)

    # Signatures and fields

    def _signature(self, node: ast.Call, scope: Scope) -> Value | None:
        names = self.shapes.described(self._type(node, scope), self.shapes.parameters)
        return None if names is None else Value(Described({"parameters": names}), is_fact=True)

    def _argument_specification(self, node: ast.Call, scope: Scope) -> Value | None:
        names = self.shapes.described(self._type(node, scope), self.shapes.parameters)
        if names is None or not names.is_exact:
            return None
        kinds = {entry.name: entry.kind for entry in names.entries if isinstance(entry, inspect.Parameter)}
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        specification = {
            "args": Names(tuple(name for name, kind in kinds.items() if kind in positional)),
            "kwonlyargs": Names(tuple(name for name, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY)),
            "varargs": next((n for n, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL), None),
            "varkw": next((n for n, kind in kinds.items() if kind is inspect.Parameter.VAR_KEYWORD), None),
        }
        return Value(Described(specification), is_fact=True)

    def _fields(self, node: ast.Call, scope: Scope) -> Value | None:
        names = self.shapes.described(self._type(node, scope), self.shapes.fields)
        if names is None:
            return None
        if names.is_exact:
            # An iteration over fields gives fields, and their names are asked for.
            return Value(names.entries, is_fact=True)
        return None

    def _hints(self, node: ast.Call, scope: Scope) -> Value | None:
        names = self.shapes.described(self._type(node, scope), self.shapes.fields)
        return None if names is None else Value(names, is_fact=True)

    def _is_dataclass(self, node: ast.Call, scope: Scope) -> Value | None:
        found = self._type(node, scope)
        return Value(value=True, is_fact=True) if self.shapes.described(found, self.shapes.fields) is not None else None

    def _is_coroutine(self, node: ast.Call, scope: Scope) -> Value | None:
        found = self._type(node, scope)
        if not isinstance(found, Function) or found.declaration.node.decorator_list:
            return None
        return Value(found.declaration.is_async, self.facts.is_of_target(found))

    def _vars(self, node: ast.Call, scope: Scope) -> Value | None:
        return self.facts.evaluate(ast.Attribute(node.args[0], "__dict__", ast.Load()), scope) if node.args else None

    def _dir(self, node: ast.Call, scope: Scope) -> Value | None:
        found = self._type(node, scope) if node.args else None
        if not isinstance(found, Module | Class) or not self.facts.is_of_target(found):
            return None
        return Value(Names(is_open=True, ask=partial(self.facts.has_attribute, found)), is_fact=True)

    def _globals(self, node: ast.Call, scope: Scope) -> Value | None:
        """The names of the client's module, as far as they stand for something known."""
        from driftcheck.surface.scopes import ModuleScope

        home = ModuleScope(self.program, scope.module)

        def ask(name: str) -> bool | None:
            value = self.facts.named(name, home)
            return True if value is not None and value.is_fact else None

        return Value(Names(is_open=True, ask=ask), is_fact=True)

    # Plain values

    def _plain(self, make: Callable[[Any], Any]) -> Callable[[ast.Call, Scope], Value | None]:
        def answer(node: ast.Call, scope: Scope) -> Value | None:
            first = self._first(node, scope)
            if (
                first is None
                or is_type(first.value)
                or isinstance(first.value, Names | Described)
                or len(node.args) > 1
            ):
                return None
            return Value(bounded(make(first.value)), first.is_fact, first.is_assumed)

        return answer

    def _len(self, node: ast.Call, scope: Scope) -> Value | None:
        first = self._first(node, scope)
        return Value(len(list(items_of(first.value))), first.is_fact) if first is not None else None

    def _bool(self, node: ast.Call, scope: Scope) -> Value | None:
        truth = self.facts.truth(node.args[0], scope)
        return None if truth is None else Value(truth, is_fact=True)

    def _container(self, name: str, node: ast.Call, scope: Scope) -> Value | None:
        if not node.args:
            return Value(()) if not node.keywords else None
        first = self._first(node, scope)
        if first is None:
            return None
        if isinstance(first.value, Names):
            return first
        items: Any = tuple(items_of(first.value))
        if name in ("set", "frozenset"):
            items = frozenset(items)
        elif name == "sorted":
            items = tuple(sorted(items))
        elif name == "reversed":
            items = items[::-1]
        elif name == "dict":
            return None
        return Value(items, first.is_fact)

    def _truths(self, node: ast.Call, scope: Scope) -> tuple[list[bool | None], bool] | None:
        """What the elements of an argument count as, and whether a fact takes part."""
        if not node.args:
            return None
        values = self.facts.elements(node.args[0], scope)
        if values is None:
            return None
        truths = [None if value is None else truth_of(value.value) for value in values]
        return truths, any(value is not None and value.is_fact for value in values)

    def _any(self, node: ast.Call, scope: Scope) -> Value | None:
        found = self._truths(node, scope)
        if found is None or (None in found[0] and True not in found[0]):
            return None
        return Value(True in found[0], found[1])

    def _all(self, node: ast.Call, scope: Scope) -> Value | None:
        found = self._truths(node, scope)
        if found is None or (None in found[0] and False not in found[0]):
            return None
        return Value(False not in found[0], found[1])

    def _map(self, node: ast.Call, scope: Scope) -> Value | None:
        if len(node.args) != 2:
            return None
        values = self.facts.evaluate(node.args[1], scope)
        function = self.program.inference.infer(node.args[0], scope)
        makers: dict[str, Callable[[Any], Any]] = {"builtins.int": int, "builtins.str": str}
        make = makers.get(function.path) if isinstance(function, External) else None
        if values is None or make is None:
            return None
        return Value(tuple(make(item) for item in items_of(values.value)), values.is_fact)

    def _environment(self, node: ast.Call, scope: Scope) -> Value | None:
        """What a variable gives that nobody sets."""
        if len(node.args) + len(node.keywords) < 2:
            return Value(None, is_assumed=True)
        default = self.facts.evaluate(node.args[1] if len(node.args) > 1 else node.keywords[0].value, scope)
        return None if default is None else Value(default.value, default.is_fact, is_assumed=True)

    def _match(self, function: str, node: ast.Call, scope: Scope) -> Value | None:
        values = [self.facts.evaluate(argument, scope) for argument in node.args]
        known = [value for value in values if value is not None]
        if node.keywords or len(known) < len(values) or not all(isinstance(value.value, str) for value in known):
            return None
        found = match(function, *(value.value for value in known))
        return Value(found, any(value.is_fact for value in known))

    def _cast(self, node: ast.Call, scope: Scope) -> Value | None:
        return self.facts.evaluate(node.args[1], scope) if len(node.args) == 2 else None


def _is_of(value: Any, class_: Type) -> bool | None:
    """Whether a plain value is of a class of another library; None for classes that may be anything to it."""
    if not isinstance(class_, External):
        return None
    if _VERSION_MAKERS.search(class_.path):
        return is_version(value)
    if class_.path not in _PLAIN_CLASSES:
        return None
    # Lists are held as tuples, so that which of the two a value is can't be told.
    if isinstance(value, tuple | frozenset):
        return (
            None if class_.path in ("builtins.tuple", "builtins.list", "builtins.set", "builtins.frozenset") else False
        )
    return isinstance(value, _PLAIN_CLASSES[class_.path])
