"""Where a name is looked up: modules, class bodies, functions, and the small scopes of comprehensions and flow."""

from __future__ import annotations

import ast
import builtins
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from driftcheck.surface.declarations import (
    Binding,
    ClassDeclaration,
    FunctionDeclaration,
    ModuleDeclaration,
    declare_locals,
)
from driftcheck.surface.syntax import named_parameters
from driftcheck.surface.types import Absent, Class, External, Instance, Literal, Type, Unknown, builtin, union

if TYPE_CHECKING:
    from driftcheck.surface.program import Program

_BUILTINS = frozenset(dir(builtins))


class Scope(Protocol):
    """A place where names mean something; `lookup` gives Absent where a name is bound nowhere."""

    program: Program
    module: ModuleDeclaration

    @property
    def memo(self) -> dict[int, Type] | None:
        """Where the types of expressions are remembered while nothing changes; None for scopes that don't."""

    def lookup(self, name: str, *, typing: bool = False) -> Type: ...

    def narrowed(self, node: ast.Attribute) -> Type | None:
        """The type that the flow up to here has given to an attribute path, None where it has given none."""

    def bindings(self, name: str) -> tuple[list[Binding], Scope]:
        """The bindings a name refers to and the scope that holds them, for constants and aliases."""

    @property
    def function(self) -> FunctionDeclaration | None:
        """The innermost function."""

    @property
    def enclosing(self) -> Scope | None:
        """The scope that functions inside look names up in after this one."""


def _builtin(name: str) -> Type:
    if name in _BUILTINS:
        return External(f"builtins.{name}")
    if name in ("__name__", "__file__", "__doc__", "__qualname__", "__module__"):
        return builtin("str")
    return Unknown("undefined name")


class _PlainScope:
    """What scopes without flow have in common: they remember no expressions and narrow nothing."""

    __slots__ = ()

    @property
    def memo(self) -> dict[int, Type] | None:
        return None

    def narrowed(self, node: ast.Attribute) -> Type | None:
        return None


class ModuleScope(_PlainScope):
    """The names of a module, then the built-in ones."""

    __slots__ = ("module", "program")

    def __init__(self, program: Program, module: ModuleDeclaration) -> None:
        self.program = program
        self.module = module

    def lookup(self, name: str, *, typing: bool = False) -> Type:
        if name in self.module.names or self.module.star_imports:
            found = self.program.lookup(self.module, name, typing=typing)
            if not isinstance(found, Absent) or name in self.module.names:
                return found
        return _builtin(name)

    def bindings(self, name: str) -> tuple[list[Binding], Scope]:
        return self.module.names.get(name, []), self

    @property
    def function(self) -> FunctionDeclaration | None:
        return None

    @property
    def enclosing(self) -> Scope | None:
        return None


class ClassScope(_PlainScope):
    """The names of a class body while it runs; functions inside do not see them."""

    __slots__ = ("class_", "module", "outer", "program")

    def __init__(self, program: Program, class_: ClassDeclaration, outer: Scope) -> None:
        self.program = program
        self.module = class_.module
        self.class_ = class_
        self.outer = outer

    def lookup(self, name: str, *, typing: bool = False) -> Type:
        bindings = self.class_.members.get(name)
        if bindings:
            live = self.program.classes.live_bindings(bindings, self, typing=typing)
            types = [self.program.binding_type(binding, self, typing=typing) for binding in live]
            if types:
                return union(types)
        # A method of the same name as a global hides it in annotations only where it comes first: too fine to model.
        return self.outer.lookup(name, typing=typing)

    def bindings(self, name: str) -> tuple[list[Binding], Scope]:
        found = self.class_.members.get(name)
        return (found, self) if found else self.outer.bindings(name)

    @property
    def function(self) -> FunctionDeclaration | None:
        return self.outer.function

    @property
    def enclosing(self) -> Scope | None:
        return self.outer


class FunctionScope(_PlainScope):
    """The parameters and locals of a function: a local is whatever some binding of it in the body gives."""

    __slots__ = ("_locals", "_looking", "_memo", "_parameters", "declaration", "module", "outer", "program")

    def __init__(self, program: Program, function: FunctionDeclaration, outer: Scope) -> None:
        self.program = program
        self.module = function.module
        self.declaration = function
        while isinstance(outer, ClassScope):
            outer = outer.outer
        self.outer = outer
        self._locals: dict[str, list[Binding]] | None = None
        self._memo: dict[str, Type] = {}
        self._looking: set[str] = set()
        self._parameters: dict[str, ast.arg] | None = None

    @property
    def function(self) -> FunctionDeclaration | None:
        return self.declaration

    @property
    def enclosing(self) -> Scope | None:
        return self.outer

    @property
    def locals(self) -> dict[str, list[Binding]]:
        """The bindings in the body, by name."""
        if self._locals is None:
            self._locals = declare_locals(self.declaration)
            for node in self.declaration.body:
                if isinstance(node, ast.Global | ast.Nonlocal):
                    for name in node.names:
                        self._locals.pop(name, None)
        return self._locals

    @property
    def parameters(self) -> dict[str, ast.arg]:
        """The parameters, by name."""
        if self._parameters is None:
            arguments = self.declaration.node.args
            nodes = named_parameters(arguments)
            self._parameters = {node.arg: node for node in nodes}
            for variadic in (arguments.vararg, arguments.kwarg):
                if variadic is not None:
                    self._parameters[variadic.arg] = variadic
        return self._parameters

    def lookup(self, name: str, *, typing: bool = False) -> Type:
        found = self._memo.get(name)
        if found is not None:
            return found
        if name in self._looking:
            return Unknown("cyclic definition")
        self._looking.add(name)
        try:
            found = self._lookup(name, typing=typing)
        finally:
            self._looking.discard(name)
        if found is None:
            return self.outer.lookup(name, typing=typing)
        self._memo[name] = found
        return found

    def _lookup(self, name: str, *, typing: bool) -> Type | None:
        types: list[Type] = []
        if name in self.parameters:
            types.append(self.parameter_type(name))
        bindings = self.locals.get(name)
        if bindings:
            live = self.program.classes.live_bindings(bindings, self, typing=typing)
            declared = [b for b in live if b.annotation is not None]
            for binding in declared or live:
                if binding.element in ("del", "augmented"):
                    continue
                types.append(self.program.binding_type(binding, self, typing=typing))
            if not types:
                return Unknown("name bound only in a branch that does not run")
        if not types:
            return None
        known = [type_ for type_ in types if not isinstance(type_, Absent)]
        return union(known) if known else types[0]

    def bindings(self, name: str) -> tuple[list[Binding], Scope]:
        if name in self.parameters:
            return [], self
        found = self.locals.get(name)
        return (found, self) if found else self.outer.bindings(name)

    def parameter_type(self, name: str) -> Type:
        """What a parameter holds: the receiver, its annotation, or the annotation of the method it overrides."""
        node = self.parameters[name]
        arguments = self.declaration.node.args
        if arguments.vararg is node:
            return builtin("tuple", self._annotated(node) or Unknown("unannotated parameter"))
        if arguments.kwarg is node:
            return builtin("dict", builtin("str"), self._annotated(node) or Unknown("unannotated parameter"))
        first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
        owner = self.declaration.owner
        if owner is not None and node is first:
            role = self.program.classes.role(self.declaration)
            self_class = self.program.self_type(owner)
            if role in ("method", "property"):
                return Instance(self_class)
            if role == "classmethod":
                # The class may be one that derives from this one.
                return replace(self_class, is_open=True)
        annotated = self._annotated(node)
        if annotated is not None:
            return annotated
        if owner is not None:
            inherited = self.program.classes.inherited_parameter(self.declaration, name)
            if inherited is not None:
                return inherited
        elif first is not None and first.arg == "self":
            installations = self.program.installations
            installed = (
                installations.receiver(self.declaration)
                if node is first
                else installations.parameter(self.declaration, name)
            )
            if installed is not None:
                return installed
        default = self.default(node)
        if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
            found = self.program.inference.infer(default, self.outer)
            if isinstance(found, Literal):
                return union([builtin(type(found.value).__name__), Unknown("unannotated parameter")])
            if isinstance(found, Class):
                return union([found, Unknown("unannotated parameter")])
        return Unknown("unannotated parameter")

    def _annotated(self, node: ast.arg) -> Type | None:
        if node.annotation is None:
            return None
        scope = self.program.scope_of_function(self.declaration)
        return self.program.annotations.instance(node.annotation, scope)

    def default(self, node: ast.arg) -> ast.expr | None:
        """The default of a parameter."""
        arguments = self.declaration.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        if node in positional:
            index = positional.index(node) - (len(positional) - len(arguments.defaults))
            return arguments.defaults[index] if index >= 0 else None
        if node in arguments.kwonlyargs:
            return arguments.kw_defaults[arguments.kwonlyargs.index(node)]
        return None


class LocalScope(_PlainScope):
    """Names with known types in front of another scope: comprehension variables, lambda parameters, flow."""

    __slots__ = ("module", "names", "outer", "program")

    def __init__(self, outer: Scope, names: dict[str, Type]) -> None:
        self.program = outer.program
        self.module = outer.module
        self.outer = outer
        self.names = names

    def lookup(self, name: str, *, typing: bool = False) -> Type:
        found = self.names.get(name)
        return found if found is not None else self.outer.lookup(name, typing=typing)

    def bindings(self, name: str) -> tuple[list[Binding], Scope]:
        return self.outer.bindings(name)

    @property
    def function(self) -> FunctionDeclaration | None:
        return self.outer.function

    @property
    def enclosing(self) -> Scope | None:
        return self.outer.enclosing
