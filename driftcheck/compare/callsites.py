"""Where the target's own sources call a name: what they pass, on what, and what they do with the result."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from driftcheck.model import Arguments
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.scopes import Scope
from driftcheck.surface.syntax import children
from driftcheck.surface.types import Type
from driftcheck.surface.words import encoded
from driftcheck.usage.arguments import arguments_of

# A name that is defined in more classes than this says nothing about what an untyped receiver is.
_DEFINITIONS_READ = 40
# Sites of a name that is called all over the place are read only up to here; those nearest to the base come first.
_SITES_READ = 400

Use = Literal["discarded", "iterated", "unpacked", "subscripted", "attribute", "taken"]


@dataclass(eq=False, slots=True)
class CallSite:
    """One call in the target: `receiver` is None for a plain name, `count` how many targets an unpacking has.

    `is_super` where the receiver is `super()`, which never leads to an override. `catches_type_error` where a handler
    around the call provides for a refusal.
    """

    module: ModuleDeclaration
    node: ast.Call
    function: FunctionDeclaration
    receiver: ast.expr | None
    arguments: Arguments
    use: Use
    count: int
    is_awaited: bool
    is_super: bool
    catches_type_error: bool

    @property
    def path(self) -> str:
        """The file that holds it."""
        return self.module.path

    @property
    def line(self) -> int:
        """The line on which the called name stands."""
        name = self.node.func
        return name.end_lineno or name.lineno


class CallSites:
    """An index over the text of one release of the target, parsed only where a name that is asked for is called.

    Calls in functions of which `is_left_out` says that they never run are left out.
    """

    def __init__(self, program: Program, is_left_out: Callable[[FunctionDeclaration], bool]) -> None:
        self.program = program
        self.is_left_out = is_left_out
        self._methods: dict[str, tuple[CallSite, ...]] = {}
        self._names: dict[tuple[str, str], tuple[CallSite, ...]] = {}
        self._holding: dict[str, tuple[CallSite, ...]] = {}
        self._definers: dict[str, tuple[ClassDeclaration, ...] | None] = {}
        self._functions: dict[str, list[FunctionDeclaration]] = {}
        self._receivers: dict[int, Type] = {}
        self._calls: dict[FunctionDeclaration, tuple[CallSite, ...]] = {}

    # Questions

    def of_method(self, name: str, near: str = "") -> tuple[CallSite, ...]:
        """The calls `something.name(...)` in functions of the target, those of modules near to `near` first."""
        found = self._methods.get(name)
        if found is None:
            places = self.files_with(re.compile(rb"\.%s\s*\(" % re.escape(encoded(name))), (name,))
            if sum(map(len, places.values())) > _SITES_READ:
                places = _nearest(places, near)
            found = self._methods[name] = tuple(self._read(places, name, is_attribute=True))
        return found

    def of_name(self, module: str, name: str) -> tuple[CallSite, ...]:
        """The calls `name(...)` in functions of one module of the target."""
        key = (module, name)
        found = self._names.get(key)
        if found is None:
            declared = self.program.module(module)
            pattern = re.compile(rf"(?<![\w.]){re.escape(name)}\s*\(")
            lines = [] if declared is None else [n for n, line in enumerate(declared.lines, 1) if pattern.search(line)]
            places = {declared.path: lines} if declared is not None and lines else {}
            found = self._names[key] = tuple(self._read(places, name, is_attribute=False))
        return found

    def of_attributes_holding(self, name: str) -> tuple[CallSite, ...]:
        """The calls `something.attribute(...)` in files that set the attribute to `Name(...)`, on what it holds."""
        found = self._holding.get(name)
        if found is None:
            found = self._holding[name] = tuple(self._read_attributes_holding(name))
        return found

    def receiver(self, site: CallSite) -> Type | None:
        """What a call is made on, None for a plain name."""
        if site.receiver is None:
            return None
        key = id(site.receiver)
        found = self._receivers.get(key)
        if found is None:
            scope = self.scope(site)
            found = self._receivers[key] = self.program.inference.infer(site.receiver, scope)
        return found

    def scope(self, site: CallSite) -> Scope:
        """The scope in which a call stands."""
        return self.program.function_scope(site.function)

    def definers(self, name: str) -> tuple[ClassDeclaration, ...] | None:
        """The classes of the target that define a method of that name; None where there are too many to read."""
        if name not in self._definers:
            self._definers[name] = self._find_definers(name)
        return self._definers[name]

    def mentions(self, pattern: re.Pattern[bytes], word: str) -> bool:
        """True where some source of the target holds the pattern, of which the word is a part."""
        return any(pattern.search(data) for _, data in self.program.target_holding(word))

    def files_with(self, pattern: re.Pattern[bytes], words: Collection[str]) -> dict[str, list[int]]:
        """The lines of every file on which a pattern begins; one of the words is part of whatever it matches."""
        places: dict[str, list[int]] = {}
        holding = {path: data for word in words for path, data in self.program.target_holding(word)}
        for path, data in sorted(holding.items()):
            lines = [data.count(b"\n", 0, match.start()) + 1 for match in pattern.finditer(data)]
            if lines:
                places[path] = lines
        return places

    def modules_defining(self, name: str, parameters: Collection[str]) -> list[ModuleDeclaration]:
        """The modules whose source defines a function of that name and holds the names of these parameters."""
        needle = f"def {name}(".encode()
        paths = [path for path, data in self.program.target_holding(name, *sorted(parameters)) if needle in data]
        return [module for path in paths if (module := self._module(path)) is not None]

    def sites_on(self, path: str, lines: list[int]) -> Iterator[tuple[FunctionDeclaration, ModuleDeclaration]]:
        """The innermost functions that hold these lines of a file, each once."""
        module = self._module(path)
        if module is None:
            return
        seen: set[int] = set()
        for line in lines:
            for function in self._functions_at(module, line):
                if id(function) not in seen:
                    seen.add(id(function))
                    yield function, module

    def calls_in(self, function: FunctionDeclaration) -> Iterator[CallSite]:
        """Every call in a function's own body."""
        found = self._calls.get(function)
        if found is None:
            found = self._calls[function] = tuple(self._read_calls(function))
        yield from found

    # Reading

    def _module(self, path: str) -> ModuleDeclaration | None:
        name = self.program.target_index.name_of(path)
        return self.program.module(name) if name is not None else None

    def _read(self, places: dict[str, list[int]], name: str, *, is_attribute: bool) -> Iterator[CallSite]:
        for path in sorted(places):
            for function, _ in self.sites_on(path, places[path]):
                if self.is_left_out(function):
                    continue
                for site in self.calls_in(function):
                    called = site.node.func
                    if (is_attribute and isinstance(called, ast.Attribute) and called.attr == name) or (
                        not is_attribute and isinstance(called, ast.Name) and called.id == name
                    ):
                        yield site

    def _read_attributes_holding(self, name: str) -> Iterator[CallSite]:
        made = re.compile(rb"\.(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)*%s\(" % re.escape(encoded(name)))
        for path, data in sorted(self.program.target_holding(name)):
            for attribute in sorted(set(made.findall(data))):
                called = re.compile(rb"\.%s\s*\(" % attribute)
                lines = [data.count(b"\n", 0, match.start()) + 1 for match in called.finditer(data)]
                for site in self._read({path: lines}, attribute.decode(), is_attribute=True):
                    yield replace(site, receiver=site.node.func)

    def _functions_at(self, module: ModuleDeclaration, line: int) -> Iterator[FunctionDeclaration]:
        for function in self._all_functions(module):
            if function.line <= line <= (function.node.end_lineno or 0):
                yield self._innermost(function, line)

    def _innermost(self, function: FunctionDeclaration, line: int) -> FunctionDeclaration:
        for bindings in self.program.function_scope(function).locals.values():
            for binding in bindings:
                inner = binding.function
                if inner is not None and inner.line <= line <= (inner.node.end_lineno or 0):
                    return self._innermost(inner, line)
        return function

    def _all_functions(self, module: ModuleDeclaration) -> list[FunctionDeclaration]:
        found = self._functions.get(module.name)
        if found is None:
            found = self._functions[module.name] = list(_functions_in(module))
        return found

    def _read_calls(self, function: FunctionDeclaration) -> Iterator[CallSite]:
        for call, parent, guarded in _calls_with_parents(function.body):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            use, count, is_awaited = _use_of(call, parent)
            yield CallSite(
                function.module,
                call,
                function,
                receiver,
                arguments_of(call),
                use,
                count,
                is_awaited,
                isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super",
                guarded,
            )

    def _find_definers(self, name: str) -> tuple[ClassDeclaration, ...] | None:
        pattern = re.compile(rb"^[ \t]+(?:async[ \t]+)?def[ \t]+%s\b" % re.escape(encoded(name)), re.MULTILINE)
        places = self.files_with(pattern, (name,))
        if sum(map(len, places.values())) > _DEFINITIONS_READ:
            return None
        found: list[ClassDeclaration] = []
        for path in sorted(places):
            module = self._module(path)
            if module is None:
                continue
            found += [class_ for class_ in classes_in(module) if name in class_.members]
        return tuple(found)


def classes_in(module: ModuleDeclaration) -> Iterator[ClassDeclaration]:
    """Every class of a module, those in other classes included."""
    pending = list(module.classes())
    while pending:
        class_ = pending.pop(0)
        yield class_
        pending += [b.class_ for bindings in class_.members.values() for b in bindings if b.class_ is not None]


def _functions_in(module: ModuleDeclaration) -> Iterator[FunctionDeclaration]:
    for bindings in module.names.values():
        for binding in bindings:
            if binding.function is not None:
                yield binding.function
    for class_ in classes_in(module):
        yield from class_.methods()


def _nearest(places: dict[str, list[int]], near: str) -> dict[str, list[int]]:
    """The places of a name that is called everywhere, up to a bound, nearest files first."""
    folder = near.rpartition("/")[0].split("/")

    def distance(path: str) -> tuple[int, str]:
        shared = 0
        for one, other in zip(folder, path.split("/"), strict=False):
            if one != other:
                break
            shared += 1
        return -shared, path

    kept: dict[str, list[int]] = {}
    count = 0
    for path in sorted(places, key=distance):
        kept[path] = places[path]
        count += len(places[path])
        if count >= _SITES_READ:
            break
    return kept


_Parent = tuple[ast.AST | None, ast.AST | None]


def _calls_with_parents(body: list[ast.stmt]) -> Iterator[tuple[ast.Call, _Parent, bool]]:
    """The calls of a function's own body, each with the node around it and the one around that."""
    pending: list[tuple[ast.AST, ast.AST | None, ast.AST | None, bool]] = [
        (node, None, None, False) for node in reversed(body)
    ]
    while pending:
        node, parent, grandparent, guarded = pending.pop()
        if isinstance(node, ast.Call):
            yield node, (parent, grandparent), guarded
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Try) and any(_catches_type_error(handler) for handler in node.handlers):
            pending += [(child, node, parent, True) for child in reversed(node.body)]
            rest: list[ast.AST] = [*node.handlers, *node.orelse, *node.finalbody]
            pending += [(child, node, parent, guarded) for child in reversed(rest)]
            continue
        pending += [(child, node, parent, guarded) for child in reversed(children(node))]


def _catches_type_error(handler: ast.ExceptHandler) -> bool:
    names = ast.unparse(handler.type) if handler.type is not None else ""
    return "TypeError" in names


def _use_of(call: ast.Call, around: _Parent) -> tuple[Use, int, bool]:
    """What is done with the result of a call, an `await` between left out."""
    parent, grandparent = around
    value: ast.AST = call
    is_awaited = isinstance(parent, ast.Await)
    if is_awaited:
        assert parent is not None
        value, parent = parent, grandparent
    if isinstance(parent, ast.Expr):
        return "discarded", 0, is_awaited
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple | ast.List):
        targets = parent.targets[0].elts
        if not any(isinstance(target, ast.Starred) for target in targets):
            return "unpacked", len(targets), is_awaited
        return "iterated", 0, is_awaited
    if isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension) and parent.iter is value:
        return "iterated", 0, is_awaited
    if isinstance(parent, ast.Subscript) and parent.value is value:
        return "subscripted", 0, is_awaited
    if isinstance(parent, ast.Attribute):
        return "attribute", 0, is_awaited
    return "taken", 0, is_awaited
