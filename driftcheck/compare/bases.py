"""Class statements that no longer work: bases that can't stand together, or that can't be derived from so."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from driftcheck.compare.release import Release
from driftcheck.model import Parameter, ParameterKind
from driftcheck.surface.classes import Base
from driftcheck.surface.declarations import ClassDeclaration
from driftcheck.surface.fields import parameters_of_fields
from driftcheck.surface.types import Class, External, Unknown

_FINAL = frozenset(("typing.final", "typing_extensions.final"))


@dataclass(frozen=True, slots=True)
class BaseProblem:
    """What keeps a class statement from working: `raises` is None where it only ought not to be written."""

    base: ClassDeclaration
    message: str
    raises: str | None


class Bases:
    """Judges the bases of a class in one release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.program = release.program

    def problem(self, class_: ClassDeclaration) -> BaseProblem | None:
        """The first thing that is wrong with the bases of a class, None where nothing is or one can't be read."""
        bases = self.program.classes.bases(class_)
        return (
            self._subscripted(class_)
            or self._enumeration(bases)
            or self._duplicate(class_, bases)
            or self._order(class_, bases)
            or self._final(bases)
            or self._fields(class_)
        )

    def _subscripted(self, class_: ClassDeclaration) -> BaseProblem | None:
        """`class Mine(Base[int])` where the base takes no type arguments."""
        scope = self.program.scope_of_class(class_)
        for node in class_.node.bases:
            if not isinstance(node, ast.Subscript):
                continue
            type_ = self.program.inference.infer(node.value, scope)
            if not isinstance(type_, Class) or not self.release.is_target(type_.declaration):
                continue
            if self._takes_arguments(type_.declaration):
                continue
            name = type_.declaration.name
            return BaseProblem(
                type_.declaration,
                f"{name} takes no type arguments",
                f"TypeError: type '{name}' is not subscriptable",
            )
        return None

    def _takes_arguments(self, class_: ClassDeclaration) -> bool:
        if getattr(class_.node, "type_params", None) or self.program.classes.type_parameters(class_):
            return True
        for entry in self.program.classes.linearize(class_):
            if isinstance(entry, Unknown):
                return True
            if isinstance(entry, External) and entry.path not in ("builtins.object", "abc.ABC", "enum.Enum"):
                return True
            if isinstance(entry, Class):
                if "__class_getitem__" in entry.declaration.members or getattr(
                    entry.declaration.node, "type_params", None
                ):
                    return True
                if any(isinstance(base, ast.Subscript) for base in entry.declaration.node.bases):
                    return True
                if any(keyword.arg == "metaclass" for keyword in entry.declaration.node.keywords):
                    return True
        return False

    def _enumeration(self, bases: list[Base]) -> BaseProblem | None:
        """An enumeration with members can't be extended."""
        for base in bases:
            if isinstance(base, Class) and self.release.is_target(base.declaration):
                if self.program.classes.is_enum(base.declaration) and _has_members(base.declaration):
                    name = base.declaration.name
                    return BaseProblem(
                        base.declaration,
                        f"{name} is an enumeration with members, which can't be extended",
                        f"TypeError: cannot extend enumeration '{name}'",
                    )
        return None

    def _duplicate(self, class_: ClassDeclaration, bases: list[Base]) -> BaseProblem | None:
        for index, base in enumerate(bases):
            if isinstance(base, Class) and any(_is_same(base, other) for other in bases[:index]):
                names = " and ".join(ast.unparse(node) for node in class_.node.bases)
                return BaseProblem(
                    base.declaration,
                    f"two of the bases {names} are one class, {base.declaration.symbol}",
                    f"TypeError: duplicate base class {base.declaration.name}",
                )
        return None

    def _order(self, class_: ClassDeclaration, bases: list[Base]) -> BaseProblem | None:
        """Bases of which a later one derives from an earlier one have no order."""
        for index, base in enumerate(bases):
            if not isinstance(base, Class):
                continue
            for later in bases[index + 1 :]:
                if isinstance(later, Class) and not _is_same(base, later):
                    if self.program.classes.is_subclass(later.declaration, base.declaration):
                        return BaseProblem(
                            later.declaration,
                            f"{later.declaration.name} derives from {base.declaration.name}, which stands before it",
                            "TypeError: Cannot create a consistent method resolution order (MRO) for bases "
                            f"{', '.join(ast.unparse(node) for node in class_.node.bases)}",
                        )
        return None

    def _final(self, bases: list[Base]) -> BaseProblem | None:
        for base in bases:
            if not isinstance(base, Class) or not self.release.is_target(base.declaration):
                continue
            scope = self.program.scope_of_class(base.declaration)
            for node in base.declaration.node.decorator_list:
                type_ = self.program.inference.infer(node, scope)
                if isinstance(type_, External) and type_.path in _FINAL:
                    return BaseProblem(base.declaration, f"{base.declaration.name} is declared final", None)
        return None

    def _fields(self, class_: ClassDeclaration) -> BaseProblem | None:
        """A field without a default after an inherited one that has one, in a dataclass."""
        constructors = self.release.signatures.constructors
        transformation = constructors.decorators.dataclass_transformation(class_)
        # A constructor that is written doesn't help: the other one is made first.
        if transformation is None or not transformation.flag("init", default=True):
            return None
        optional: Parameter | None = None
        for parameter in parameters_of_fields(constructors.fields.of_dataclass(class_, transformation)):
            if parameter.kind is not ParameterKind.POSITIONAL_OR_KEYWORD:
                continue
            if not parameter.is_required:
                optional = optional or parameter
            elif optional is not None and (owner := self._owner(class_, optional.name)) is not None:
                return BaseProblem(
                    owner,
                    f"field '{parameter.name}' has no default and comes after '{optional.name}', which has one",
                    f"TypeError: non-default argument '{parameter.name}' follows default argument",
                )
        return None

    def _owner(self, class_: ClassDeclaration, name: str) -> ClassDeclaration | None:
        """The target's class from which a class has a field."""
        for entry in self.program.classes.linearize(class_):
            if isinstance(entry, Class) and name in entry.declaration.members:
                return entry.declaration if self.release.is_target(entry.declaration) else None
        return None


def _has_members(class_: ClassDeclaration) -> bool:
    return any(
        not name.startswith("_") and any(binding.value is not None for binding in bindings)
        for name, bindings in class_.members.items()
    )


def _is_same(one: Base, other: Base) -> bool:
    return isinstance(one, Class) and isinstance(other, Class) and one.declaration is other.declaration
