"""What an annotation says: the type that a value declared with it has."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from driftcheck.surface.declarations import Binding
from driftcheck.surface.types import (
    ANY,
    NONE,
    Absent,
    Class,
    External,
    Instance,
    Literal,
    Module,
    Tuple,
    Type,
    TypeVariable,
    Union,
    Unknown,
    builtin,
    union,
)

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

_TYPING = ("typing.", "typing_extensions.", "collections.abc.", "builtins.", "collections.", "types.", "contextlib.")
_ALIASES = {
    "List": "builtins.list",
    "Dict": "builtins.dict",
    "Set": "builtins.set",
    "FrozenSet": "builtins.frozenset",
    "Tuple": "builtins.tuple",
    "Type": "builtins.type",
    "DefaultDict": "collections.defaultdict",
    "OrderedDict": "collections.OrderedDict",
    "Deque": "collections.deque",
    "Counter": "collections.Counter",
}
_TRANSPARENT = frozenset(("Annotated", "Final", "ClassVar", "Required", "NotRequired", "ReadOnly", "InitVar"))
_NOTHING = frozenset(
    ("Any", "object", "TypeAlias", "Self", "LiteralString", "Never", "NoReturn", "ParamSpec", "Concatenate")
)
_GUARDS = frozenset(("TypeGuard", "TypeIs"))


class Annotations:
    """Reads annotations in the scope in which they stand."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._depth = 0
        self._memo: dict[tuple[int, int], Type] = {}

    def instance(self, node: ast.expr, scope: Scope) -> Type:
        """The type of a value that is declared so."""
        if self._depth > 20:
            return Unknown("annotation nested too deeply")
        self._depth += 1
        try:
            return self._instance(node, scope)
        finally:
            self._depth -= 1

    def _instance(self, node: ast.expr, scope: Scope) -> Type:
        if isinstance(node, ast.Constant):
            if node.value is None:
                return NONE
            if isinstance(node.value, str):
                return self.text(node.value, scope)
            return Unknown("annotation")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return union([self.instance(node.left, scope), self.instance(node.right, scope)])
        if isinstance(node, ast.Subscript):
            return self._subscript(node, scope)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._named(node, scope)
        if isinstance(node, ast.Starred):
            return Unknown("annotation")
        return Unknown("annotation that is computed")

    def text(self, text: str, scope: Scope) -> Type:
        """The type that an annotation written as a string means."""
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return Unknown("annotation that does not parse")
        return self.instance(node, scope)

    def _named(self, node: ast.Name | ast.Attribute, scope: Scope) -> Type:
        found = self.value(node, scope)
        return self.of_value(found, node, scope)

    def value(self, node: ast.expr, scope: Scope) -> Type:
        """What an expression in an annotation names, as a type checker sees it."""
        if isinstance(node, ast.Name):
            return scope.lookup(node.id, typing=True)
        if isinstance(node, ast.Attribute):
            base = self.value(node.value, scope)
            if isinstance(base, Module):
                return self.program.module_attribute(base.name, node.attr, typing=True)
            return self.program.inference.attribute(base, node.attr)
        return self.program.inference.infer(node, scope)

    def of_value(self, found: Type, node: ast.expr, scope: Scope) -> Type:
        """The type of an instance, for the thing that an annotation names."""
        if isinstance(found, Class):
            if self.program.classes.is_open_name(found.declaration):
                return Unknown("class made at run time")
            return Instance(found)
        if isinstance(found, TypeVariable):
            return found
        if isinstance(found, External):
            # `Maybe = Optional[X]` evaluates to something of `typing`; what it stands for is in its assignment.
            alias = self.alias(node, scope) if found.path.startswith(_TYPING) else None
            return alias if alias is not None else self._external(found.path)
        if isinstance(found, Absent):
            return Unknown("annotation of something that is not there")
        alias = self.alias(node, scope)
        if alias is not None:
            return alias
        if isinstance(found, Union):
            return union([self.of_value(member, node, scope) for member in found.members])
        return found if isinstance(found, Unknown) else Unknown("annotation that is no class")

    def _external(self, path: str) -> Type:
        name = path.rpartition(".")[2]
        if path.startswith(_TYPING):
            if name == "Self":
                return Unknown("Self")
            if name in _NOTHING or path == "builtins.object":
                return ANY
            if name == "None":
                return NONE
            if path.startswith(("typing.", "typing_extensions.")) and name in _ALIASES:
                return Instance(External(_ALIASES[name]))
        return Instance(External(path))

    def alias(self, node: ast.expr, scope: Scope) -> Type | None:
        """What a type alias stands for, where the name is one."""
        found = self.definition(node, scope)
        if found is None:
            return None
        binding, home = found
        value = binding.value
        if value is None or binding.path or binding.element:
            return None
        if isinstance(value, ast.Call):
            return self._made_type(value, home)
        if isinstance(value, ast.Subscript | ast.BinOp | ast.Constant | ast.Name | ast.Attribute):
            return self.instance(value, home)
        return None

    def definition(self, node: ast.expr, scope: Scope) -> tuple[Binding, Scope] | None:
        """The one binding that a name leads to, imports followed."""
        if isinstance(node, ast.Name):
            bindings, home = scope.bindings(node.id)
        elif isinstance(node, ast.Attribute):
            base = self.value(node.value, scope)
            if not isinstance(base, Module):
                return None
            return self.module_definition(base.name, node.attr)
        else:
            return None
        if len(bindings) > 1:
            bindings = [b for b in bindings if self.program.liveness(b.contexts, home, typing=True) is not False][-1:]
        if not bindings:
            return None
        return self._follow(bindings[0], home)

    def module_definition(self, name: str, attribute: str, depth: int = 0) -> tuple[Binding, Scope] | None:
        """The binding of a module's name, imports followed."""
        from driftcheck.surface.scopes import ModuleScope

        module = self.program.module(name)
        if module is None or depth > 20:
            return None
        home = ModuleScope(self.program, module)
        bindings = module.names.get(attribute, [])
        if len(bindings) > 1:
            bindings = [b for b in bindings if self.program.liveness(b.contexts, home, typing=True) is not False]
        if bindings:
            return self._follow(bindings[-1], home, depth)
        for star in module.star_imports:
            found = self.module_definition(self.program.import_base(module, star.node), attribute, depth + 1)
            if found is not None:
                return found
        exports = self.program.module_getattr(module)
        if exports is not None and attribute in exports.names:
            value = exports.names[attribute]
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and ":" in value.value:
                location, _, original = value.value.partition(":")
                if location.startswith("."):
                    location = f"{module.package}.{location.lstrip('.')}".rstrip(".")
                return self.module_definition(location, original, depth + 1)
        return None

    def _follow(self, binding: Binding, home: Scope, depth: int = 0) -> tuple[Binding, Scope] | None:
        if isinstance(binding.node, ast.ImportFrom):
            base = self.program.import_base(home.module, binding.node)
            original = next((a.name for a in binding.node.names if (a.asname or a.name) == binding.name), "")
            return self.module_definition(base, original, depth + 1)
        return binding, home

    def _made_type(self, call: ast.Call, scope: Scope) -> Type | None:
        """What `NewType("X", base)` or a functional NamedTuple makes."""
        called = self.value(call.func, scope)
        if isinstance(called, External) and called.path.rpartition(".")[2] == "NewType" and len(call.args) == 2:
            return self.instance(call.args[1], scope)
        return None

    def is_alias_marker(self, node: ast.expr, scope: Scope) -> bool:
        """True for `X: TypeAlias = …`, whose annotation says nothing of the value."""
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        return name in ("TypeAlias", "Final", "ClassVar")

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Type:
        base = self.value(node.value, scope)
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(base, Class):
            return Instance(Class(base.declaration, tuple(self.instance(part, scope) for part in parts)))
        if not isinstance(base, External):
            alias = self.alias(node.value, scope)
            return alias if alias is not None else Unknown("annotation")
        name = base.path.rpartition(".")[2]
        if base.path.startswith(_TYPING) or base.path.startswith("dataclasses."):
            if name == "Optional":
                return union([self.instance(parts[0], scope), NONE])
            if name == "Union":
                return union([self.instance(part, scope) for part in parts])
            if name in _TRANSPARENT:
                return self.instance(parts[0], scope)
            if name == "Literal":
                return union(
                    [Literal(p.value) for p in parts if isinstance(p, ast.Constant) and p.value is not ...] or [ANY]
                )
            if name in _GUARDS:
                return builtin("bool")
            if name == "Callable":
                return self._callable(parts, scope)
            if name in ("tuple", "Tuple"):
                return self._tuple(parts, scope)
            if name in ("type", "Type"):
                return self.class_of(self.instance(parts[0], scope))
        path = _ALIASES.get(name, base.path) if base.path.startswith("typing") else base.path
        return Instance(External(path), tuple(self.instance(part, scope) for part in parts))

    def _tuple(self, parts: list[ast.expr], scope: Scope) -> Type:
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is Ellipsis:
            return builtin("tuple", self.instance(parts[0], scope))
        if len(parts) == 1 and isinstance(parts[0], ast.Tuple) and not parts[0].elts:
            return Tuple(())
        if any(isinstance(part, ast.Starred) for part in parts):
            return builtin("tuple")
        return Tuple(tuple(self.instance(part, scope) for part in parts))

    def _callable(self, parts: list[ast.expr], scope: Scope) -> Type:
        returns = self.instance(parts[1], scope) if len(parts) == 2 else ANY
        return Instance(External("typing.Callable"), (returns,))

    def class_of(self, type_: Type) -> Type:
        """`type[X]` for an instance type X."""
        if isinstance(type_, Instance):
            if not isinstance(type_.class_, Class):
                return type_.class_
            return Class(type_.class_.declaration, type_.class_.arguments, is_open=True)
        if isinstance(type_, Union):
            return union([self.class_of(member) for member in type_.members])
        if isinstance(type_, TypeVariable):
            return Instance(External("builtins.type"), (type_,))
        return Unknown("type[…]")
