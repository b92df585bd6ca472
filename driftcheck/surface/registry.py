"""The target's tables of classes that a configuration chooses by name, and the classes that such a class is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from driftcheck import knowledge
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.syntax import nodes_of
from driftcheck.surface.types import Class, Dictionary, Instance, Type, members_of

if TYPE_CHECKING:
    from driftcheck.knowledge import Membership
    from driftcheck.surface.program import Program

# What a class is made of is followed so far: wrapper, language model, inner model, layer.
_DEEPEST = 6


class Registry:
    """Reads the tables and finds the members of families; narrowed to what one name chooses, where one is given."""

    def __init__(self, program: Program, rules: knowledge.Registry) -> None:
        self.program = program
        self.rules = rules
        self._members: dict[Membership, tuple[ClassDeclaration, ...]] = {}
        self._architectures: dict[str, tuple[str, str, str]] | None = None
        self._chosen: frozenset[ClassDeclaration] | None = None
        # True where a class on the way lets the configuration choose what it is made of.
        self._is_left_open = False

    # Names

    def architectures(self) -> dict[str, tuple[str, str, str]]:
        """The names that the tables hold, each with (table, module, class)."""
        if self._architectures is None:
            self._architectures = {}
            module = self.program.module(self.rules.module)
            for table, bindings in module.names.items() if module is not None else ():
                for binding in bindings:
                    if isinstance(binding.value, ast.Dict):
                        self._architectures.update(_entries(table, binding.value))
        return self._architectures

    def choose(self, architecture: str) -> bool:
        """Narrows the families to the classes that an architecture is made of; False where there is no such name."""
        class_ = self._registered(architecture)
        if class_ is None:
            return False
        self._chosen = frozenset(self._made_of(class_, with_overridden=False))
        if self._chosen.isdisjoint(self._every("part")):
            self._chosen = frozenset(self._made_of(class_, with_overridden=True))
        return True

    def _registered(self, architecture: str) -> ClassDeclaration | None:
        entry = self.architectures().get(architecture)
        if entry is None:
            return None
        _, module, name = entry
        found = self.program.imported_name(f"{self.rules.package}.{module}", name)
        return found.declaration if isinstance(found, Class) else None

    @property
    def is_chosen(self) -> bool:
        """True where an architecture is chosen."""
        return self._chosen is not None

    # Members

    def members(self, membership: Membership) -> tuple[ClassDeclaration, ...]:
        """The classes of one sort; of those the chosen architecture is made of, where it is made of any."""
        every = self._every(membership)
        if self._chosen is None or not self.is_narrowed(membership):
            return every
        return tuple(class_ for class_ in every if class_ in self._chosen)

    def is_narrowed(self, membership: Membership) -> bool:
        """True where an architecture is chosen and it is known which classes of a sort it runs."""
        if self._chosen is None or (self._is_left_open and membership != "registered"):
            return False
        return not self._chosen.isdisjoint(self._every(membership))

    def _every(self, membership: Membership) -> tuple[ClassDeclaration, ...]:
        if membership not in self._members:
            found = {
                "registered": self._all_registered,
                "makes parts": self._makers,
                "part": self._parts,
            }[membership]()
            self._members[membership] = tuple(dict.fromkeys(found))
        return self._members[membership]

    def _all_registered(self) -> Iterator[ClassDeclaration]:
        tables = self.rules.tables
        for name, (table, _, _) in sorted(self.architectures().items()):
            class_ = self._registered(name) if table in tables or not self._has_tables() else None
            if class_ is not None:
                yield class_

    def _has_tables(self) -> bool:
        return any(table in self.rules.tables for table, _, _ in self.architectures().values())

    def _makers(self) -> Iterator[ClassDeclaration]:
        """The classes of which a method calls the maker of parts, and those that derive from one."""
        for class_, _ in self._making():
            yield class_
            yield from (heir for heir in self.program.heirs.of(class_) if self._is_inside(heir.module))

    def _making(self) -> Iterator[tuple[ClassDeclaration, FunctionDeclaration]]:
        index = self.program.target_index
        needle = f"{self.rules.maker}("
        for path, _ in self.program.target_holding(self.rules.maker):
            name = index.name_of(path)
            if name is None or not name.startswith(f"{self.rules.package}."):
                continue
            module = self.program.module(name)
            for class_ in module.classes() if module is not None else ():
                for function in class_.methods():
                    if needle in function.source:
                        yield class_, function

    def _is_inside(self, module: ModuleDeclaration) -> bool:
        return module.name.startswith(f"{self.rules.package}.")

    def _parts(self) -> Iterator[ClassDeclaration]:
        for class_, function in self._making():
            for node in nodes_of(ast.Module(function.body, [])):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == self.rules.maker:
                    for given in [*node.args, *(keyword.value for keyword in node.keywords)]:
                        yield from self._made_by(given, function)
            for heir in self.program.heirs.of(class_):
                for made in heir.methods():
                    if made.name == "__init__" and self._is_inside(heir.module):
                        yield from self._handed_over(made)

    def _handed_over(self, function: FunctionDeclaration) -> Iterator[ClassDeclaration]:
        """The classes that a constructor has as defaults, or hands on by keyword."""
        given = [node.value for root in function.body for node in nodes_of(root) if isinstance(node, ast.keyword)]
        for value in [*_defaults_of(function), *given]:
            if isinstance(value, ast.Name):
                yield from self._classes_in(self.program.inference.infer(value, self.program.function_scope(function)))

    def _made_by(self, given: ast.expr, function: FunctionDeclaration) -> Iterator[ClassDeclaration]:
        """The classes of which the function that a call hands over, a lambda or a local one, makes objects."""
        if isinstance(given, ast.Lambda):
            yield from self._named_in(given.body, function)
        elif isinstance(given, ast.Name):
            for binding in self.program.function_scope(function).locals.get(given.id, ()):
                if binding.function is not None:
                    yield from self._named_in(ast.Module(binding.function.body, []), binding.function)

    def _named_in(self, node: ast.AST, function: FunctionDeclaration) -> Iterator[ClassDeclaration]:
        """The classes that an expression names, or that are the default of a parameter it names."""
        for name in nodes_of(node):
            if isinstance(name, ast.Name):
                default = self._default(name.id, function)
                if default is not None:
                    yield from self._classes_in(default)
                else:
                    yield from self._classes_in(
                        self.program.inference.infer(name, self.program.function_scope(function))
                    )

    def _default(self, name: str, function: FunctionDeclaration | None) -> Type | None:
        """What a parameter of a function, or of one around it, is unless it is given."""
        while function is not None:
            scope = self.program.function_scope(function)
            if name in scope.parameters:
                default = scope.default(scope.parameters[name])
                return self.program.inference.infer(default, scope.outer) if default is not None else None
            function = function.outer
        return None

    def _classes_in(self, type_: Type) -> Iterator[ClassDeclaration]:
        """The classes of the package with a `forward` that a value is, or holds as a table."""
        for member in members_of(type_):
            if isinstance(member, Class):
                if self._is_inside(member.declaration.module) and self._has_forward(member.declaration):
                    yield member.declaration
            elif isinstance(member, Dictionary):
                for _, value in member.items:
                    yield from self._classes_in(value)
            elif isinstance(member, Instance):
                for argument in member.arguments[1:]:
                    yield from self._classes_in(argument)

    def _has_forward(self, class_: ClassDeclaration) -> bool:
        linear = self.program.classes.linearize(class_)
        return any(isinstance(base, Class) and "forward" in base.declaration.members for base in linear)

    # What a class is made of

    def _made_of(self, first: ClassDeclaration, *, with_overridden: bool) -> Iterator[ClassDeclaration]:
        """A class, the classes of the package that its methods mention, by name or as registered, and so on.

        With overridden methods too, where it is they that make the parts.
        """
        seen: set[ClassDeclaration] = set()
        pending = [(first, 0)]
        while pending:
            class_, depth = pending.pop()
            if class_ in seen or depth > _DEEPEST:
                continue
            seen.add(class_)
            yield class_
            for mentioned in self._mentioned_in(class_, with_overridden=with_overridden):
                if self.program.classes.is_subclass(class_, mentioned) is False:
                    pending.append((mentioned, depth + 1))

    def _mentioned_in(self, class_: ClassDeclaration, *, with_overridden: bool) -> Iterator[ClassDeclaration]:
        """The classes that a class and its bases in the package mention."""
        seen: set[str] = set()
        for base in self.program.classes.linearize(class_):
            if not isinstance(base, Class) or not self._is_inside(base.declaration.module):
                continue
            for name, bindings in base.declaration.members.items():
                for binding in bindings if name not in seen else ():
                    if binding.function is not None:
                        yield from self._mentioned(_run_by(binding.function), base.declaration.module)
                    elif binding.value is not None:
                        yield from self._mentioned([binding.value], base.declaration.module)
            seen.update(() if with_overridden else base.declaration.members)

    def _mentioned(self, nodes: list[ast.AST], module: ModuleDeclaration) -> Iterator[ClassDeclaration]:
        for root in nodes:
            for node in nodes_of(root):
                if isinstance(node, ast.Name) and node.id in module.names:
                    found = self.program.lookup(module, node.id)
                    if isinstance(found, Class) and self._is_inside(found.declaration.module):
                        yield found.declaration
                elif (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id == self.rules.chooser
                ):
                    registered = list(self._named_by(node))
                    self._is_left_open = self._is_left_open or not registered
                    yield from registered

    def _named_by(self, call: ast.Call) -> Iterator[ClassDeclaration]:
        """The classes of the registered names that a call gives."""
        for node in nodes_of(call):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                registered = self._registered(node.value)
                if registered is not None:
                    yield registered


def _run_by(function: FunctionDeclaration) -> list[ast.AST]:
    """The defaults and the body of a function."""
    return [*_defaults_of(function), *function.body]


def _defaults_of(function: FunctionDeclaration) -> list[ast.expr]:
    arguments = function.node.args
    return [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]


def _entries(table: str, node: ast.Dict) -> Iterator[tuple[str, tuple[str, str, str]]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or not isinstance(value, ast.Tuple):
            continue
        parts = [part.value for part in value.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if len(parts) == len(value.elts) == 2:
            yield key.value, (table, parts[0], parts[1])
