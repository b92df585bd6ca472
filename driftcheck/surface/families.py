"""Values of which only the family is known: whatever model is loaded, its inner model, one of its layers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from driftcheck import knowledge
from driftcheck.surface.registry import Registry
from driftcheck.surface.syntax import called_name
from driftcheck.surface.types import Absent, Class, External, Family, Instance, Type, Unknown, members_of

if TYPE_CHECKING:
    from driftcheck.surface.declarations import ClassDeclaration
    from driftcheck.surface.program import Program


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def symbol(self) -> str: ...


Named = TypeVar("Named", bound=_Named)
# What the flow says of a member once the client has asked it for an attribute: it knows which sort it has before it.
TOLD_APART = Unknown("member that the client tells from others")
# What the target itself says of such a value where it says anything.
_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module")


class Families:
    """Knows by which paths a client gets at a member of a family, and which classes are members."""

    def __init__(self, program: Program) -> None:
        self.program = program
        known = knowledge.knowledge_of(program.target_index.top_level)
        self.rules = {family.name: family for family in known.families} if known is not None else {}
        self.registry = Registry(program, known.registry) if known is not None and known.registry is not None else None
        self._ends = [(*_parts(end), Family(family.name)) for family in self.rules.values() for end in family.reached]
        self._names = {last.removesuffix("()") for _, last, _ in self._ends}
        self._members: dict[str, tuple[ClassDeclaration, ...]] = {}

    # Which values are members

    def reached(self, node: ast.expr, found: Type, module: str) -> Type:
        """What an expression of the client's gives: what was found, or a member of the family its path leads to."""
        name = called_name(node)
        if name not in self._names or not self._says_nothing(found) or not self.program.is_client(module):
            return found
        for owner, last, family in self._ends:
            if last == name + ("()" if isinstance(node, ast.Call) else "") and (not owner or owner == _owner(node)):
                return family
        return found

    def reached_on(self, node: ast.Attribute, base: Type, found: Type, module: str) -> Type:
        """As `reached`, for an attribute whose owner's type is known: one that the client fills itself is its own."""
        if node.attr in self._names and any(self._is_own(owner, node.attr) for owner in members_of(base)):
            return found
        return self.reached(node, found, module)

    def _is_own(self, owner: Type, name: str) -> bool:
        """True where a class of the client's gives its objects an attribute of the name."""
        if not isinstance(owner, Instance) or not isinstance(owner.class_, Class):
            return False
        classes = self.program.classes
        return any(
            name in entry.declaration.members or next(classes.stores(entry.declaration, name), None) is not None
            for entry in classes.linearize(owner.class_.declaration)
            if isinstance(entry, Class) and not self.program.is_target(entry.declaration.module.name)
        )

    def attribute(self, family: Family, name: str) -> Type:
        """What an attribute or a method of a member is, as far as the rules say."""
        for attribute, leads_to in self.rules[family.name].attributes:
            part = Family(leads_to.removesuffix("[]"))
            if attribute == name:
                return Instance(External("torch.nn.ModuleList"), (part,)) if leads_to.endswith("[]") else part
            if attribute == f"{name}()":
                return Instance(External("typing.Callable"), (part,))
        return Unknown("attribute of a member of a family")

    def _says_nothing(self, found: Type) -> bool:
        if isinstance(found, Instance):
            return isinstance(found.class_, External) and found.class_.path in _MODULES
        return isinstance(found, Unknown | Absent) and found != TOLD_APART

    # Which classes are members

    def classes(self, name: str) -> tuple[ClassDeclaration, ...]:
        """The target's classes of a family, by their names; those that the chosen architecture runs, where one is."""
        found = self._members.get(name)
        if found is None:
            assert self.registry is not None
            members = self.registry.members(self.rules[name].members)
            found = self._members[name] = tuple(sorted(members, key=lambda class_: (class_.name, class_.symbol)))
        return found

    def architectures(self) -> list[str]:
        """The names by which a configuration may choose a model."""
        return sorted(self.registry.architectures()) if self.registry is not None else []

    def choose(self, architecture: str) -> bool:
        """Lets only the classes count that an architecture runs; False where the target has none of that name."""
        return self.registry is not None and self.registry.choose(architecture)

    @property
    def is_chosen(self) -> bool:
        """True where an architecture is chosen."""
        return self.registry is not None and self.registry.is_chosen

    def is_narrowed(self, name: str) -> bool:
        """True where an architecture is chosen and it is known which classes of a family it runs."""
        return self.registry is not None and self.registry.is_narrowed(self.rules[name].members)

    def holders(self, name: str) -> Iterator[tuple[str, str]]:
        """The families that have members of a family as attributes, with the attribute."""
        for family in self.rules.values():
            for attribute, leads_to in family.attributes:
                if leads_to == name and not attribute.endswith("()"):
                    yield family.name, attribute

    @property
    def folder(self) -> str:
        """The folder of the registered classes, as a path in the target."""
        assert self.registry is not None
        return self.registry.rules.package.replace(".", "/") + "/"

    def own_bases(self, class_: ClassDeclaration) -> Iterator[ClassDeclaration]:
        """A class and its bases in the target."""
        for base in self.program.classes.linearize(class_):
            if isinstance(base, Class):
                yield base.declaration

    def leading(self, name: str, classes: Iterable[Named]) -> list[Named]:
        """Classes of a family in the order in which they are named: the well-known ones first."""
        known = self.rules[name].known
        return sorted(
            classes,
            key=lambda class_: (known.index(class_.name) if class_.name in known else len(known), class_.symbol),
        )


def _parts(end: str) -> tuple[str, str]:
    owner, _, last = end.rpartition(".")
    return owner, last


def _owner(node: ast.expr) -> str:
    """The last name of what an attribute is read of or a method called on."""
    if isinstance(node, ast.Call):
        node = node.func
    return called_name(node.value) if isinstance(node, ast.Attribute) else ""
