"""What one release says of the classes of a family, in plain values that are kept for the next audit against it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from driftcheck.compare.release import Release
from driftcheck.model import Arguments, Signature
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.signatures import Callee
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Absent, Class, External, Function, Instance, Tuple, Type, Unknown

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class FamilyClass:
    """One class of a family: its name, its dotted path, and the file and line that hold it."""

    name: str
    symbol: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Member:
    """What the objects of one class have under a name.

    `state` is "absent", also where only a base outside the target could have it, "unknown", "there", or "method", which
    has `callee`, the path of what is called, with its signature and line.
    """

    class_: FamilyClass
    state: Literal["absent", "unknown", "there", "method"]
    callee: str = ""
    signature: Signature | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Names:
    """What a class of a family has in its own body: all names, and the methods among them."""

    symbol: str
    every: tuple[str, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A call that a class makes of a member of a family that it holds."""

    arguments: Arguments
    path: str
    line: int
    owner: str


class FamilyFacts:
    """Asks one release, or its shelf.

    Nothing of the client takes part in what is kept. Where an architecture narrows a family, nothing is.
    """

    def __init__(self, release: Release) -> None:
        self.release = release
        self.program = release.program
        self._members: dict[tuple[str, str], tuple[Member, ...]] = {}
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self._names: dict[str, tuple[Names, ...]] = {}
        self._sites: dict[str, tuple[Site, ...]] = {}

    def members(self, family: str, name: str) -> tuple[Member, ...]:
        """What each class of a family has under a name, in the order of the classes' names."""
        key = (family, name)
        if key not in self._members:
            found = self._kept(family, f"member {name}", list[Member], lambda: self._find_members(family, name))
            self._members[key] = tuple(found)
        return self._members[key]

    def counts(self, family: str, name: str) -> dict[str, int]:
        """How many values a method surely returns, by the symbol of the class; without those that can't be told."""
        key = (family, name)
        if key not in self._counts:
            self._counts[key] = self._kept(
                family, f"count {name}", dict[str, int], lambda: self._find_counts(family, name)
            )
        return self._counts[key]

    def names(self, family: str) -> tuple[Names, ...]:
        """What each class of a family has in its body."""
        if family not in self._names:
            self._names[family] = tuple(self._kept(family, "names", list[Names], lambda: self._find_names(family)))
        return self._names[family]

    def sites(self, family: str) -> tuple[Site, ...]:
        """The calls `self.attribute(...)` in classes whose attribute is a member of the family."""
        if family not in self._sites:
            self._sites[family] = tuple(self._kept(family, "sites", list[Site], lambda: self._find_sites(family)))
        return self._sites[family]

    def _kept(self, family: str, question: str, type_: type[Fact], asked: Callable[[], Fact]) -> Fact:
        if self.program.families.is_chosen:
            return asked()
        return self.program.kept(f"family {family} {question}", type_, asked)

    # Asking the release

    def _find_members(self, family: str, name: str) -> list[Member]:
        return [self._member(class_, name) for class_ in self.program.families.classes(family)]

    def _member(self, class_: ClassDeclaration, name: str) -> Member:
        owner = FamilyClass(class_.name, class_.symbol, class_.module.path, class_.line)
        found = self._attribute(class_, name)
        if isinstance(found, Absent):
            return Member(owner, "absent")
        if isinstance(found, Unknown):
            return Member(owner, "unknown")
        callee = self.release.signatures.callee(found) if isinstance(found, Function) else None
        if isinstance(callee, Callee):
            return Member(owner, "method", callee.name, callee.signature, callee.line)
        return Member(owner, "there")

    def _attribute(self, class_: ClassDeclaration, name: str) -> Type:
        """What objects of a class have under a name; Absent where only a base outside the target could have it."""
        receiver = Instance(Class(class_))
        found = self.program.inference.attribute(receiver, name)
        if isinstance(found, Unknown):
            return self.release.judge.hidden([receiver], name, found) or found
        return found

    def _find_counts(self, family: str, name: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for class_ in self.program.families.classes(family):
            found = self._attribute(class_, name)
            count = self._values_given(found.declaration) if isinstance(found, Function) else None
            if count is not None:
                counts[class_.symbol] = count
        return counts

    def _values_given(self, function: FunctionDeclaration) -> int | None:
        """How many values a function surely returns; 1 for a single tensor, None where that can't be told.

        Annotations lie more often than code does: what is no tuple in any `return` is one value only if they agree.
        """
        counts: set[int | None] = set()
        scope = self.program.function_scope(function)
        for node in own_nodes(function.body):
            if isinstance(node, ast.Return) and node.value is not None:
                if isinstance(node.value, ast.Tuple):
                    counts.add(len(node.value.elts))
                else:
                    type_ = self.program.inference.infer(node.value, scope)
                    counts.add(len(type_.items) if isinstance(type_, Tuple) else None)
        if len(counts) != 1:
            return None
        count = counts.pop()
        returns = function.node.returns
        if count is not None or returns is None:
            return count
        declared = self.program.annotations.instance(returns, self.program.scope_of_function(function))
        is_tensor = isinstance(declared, Instance) and declared.class_ == External("torch.Tensor")
        return 1 if is_tensor else None

    def _find_names(self, family: str) -> list[Names]:
        classes: Sequence[ClassDeclaration] = self.program.families.classes(family)
        return [
            Names(class_.symbol, tuple(class_.members), tuple(function.name for function in class_.methods()))
            for class_ in classes
        ]

    def _find_sites(self, family: str) -> list[Site]:
        found: list[Site] = []
        families = self.program.families
        for holder, attribute in families.holders(family):
            classes = families.classes(holder)
            methods = {
                (base.symbol, name): class_.name
                for class_ in reversed(classes)
                for base in families.own_bases(class_)
                for name in base.members
            }
            for site in self.release.sites.of_method(attribute, families.folder):
                function = site.function
                owner = methods.get((function.owner.symbol, function.name)) if function.owner is not None else None
                if owner is not None and not site.catches_type_error:
                    found.append(Site(site.arguments, site.path, site.line, owner))
        return found
