"""What a class of the client's has under a name in one release, and what of the target's stands behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from driftcheck.compare.kinds import is_async
from driftcheck.compare.release import Release
from driftcheck.model import Signature
from driftcheck.surface.classes import external_attribute, is_well_known
from driftcheck.surface.declarations import Binding, ClassDeclaration, FunctionDeclaration
from driftcheck.surface.inference import is_generator
from driftcheck.surface.types import Class, External, Function, Unknown

Form = Literal["method", "async method", "async generator", "class method", "static method", "property", "value"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A name in the body of a class: `signature` is without the receiver, None where a decorator hides it."""

    owner: ClassDeclaration
    name: str
    binding: Binding
    form: Form
    function: FunctionDeclaration | None = None
    signature: Signature | None = None

    @property
    def symbol(self) -> str:
        """The canonical dotted path."""
        return f"{self.owner.symbol}.{self.name}"

    @property
    def shown(self) -> str:
        """What a message calls it."""
        return f"{self.owner.name}.{self.name}"


@dataclass(frozen=True, slots=True)
class Override:
    """A definition of the client's and the target's definition that it stands before.

    `class_` is the class whose resolution order says so. `base` is None where the target has none; `hidden_by` says
    which base can't be read and may have one.
    """

    class_: ClassDeclaration
    own: Definition
    base: Definition | None
    hidden_by: str = ""


class Members:
    """Looks up definitions along the resolution orders of one release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.program = release.program
        self._definitions: dict[tuple[ClassDeclaration, str], Definition | None] = {}

    def client_classes(self, class_: ClassDeclaration) -> Iterator[ClassDeclaration]:
        """The client's own classes in the resolution order, up to the first base that can't be read."""
        for entry in self.program.classes.linearize(class_):
            if isinstance(entry, Unknown) or (isinstance(entry, External) and _hides(entry, "") is not None):
                return
            if isinstance(entry, Class) and not self.release.is_target(entry.declaration):
                yield entry.declaration

    def target_classes(self, class_: ClassDeclaration) -> list[ClassDeclaration]:
        """The target's classes in the resolution order."""
        return [
            entry.declaration
            for entry in self.program.classes.linearize(class_)
            if isinstance(entry, Class) and self.release.is_target(entry.declaration)
        ]

    def override(self, class_: ClassDeclaration, owner: ClassDeclaration, name: str) -> Override | None:
        """What a class of the client's overrides by the name in the body of `owner`; None where another comes first."""
        own: Definition | None = None
        hidden = ""
        for entry in self.program.classes.linearize(class_):
            if not isinstance(entry, Class):
                hidden = hidden or _hides(entry, name) or ""
                if hidden and own is None:
                    return None
                continue
            found = self.definition(entry.declaration, name)
            if found is None:
                continue
            if own is None:
                if entry.declaration is not owner:
                    return None
                own = found
            elif self.release.is_target(entry.declaration):
                return Override(class_, own, found)
        return Override(class_, own, None, hidden) if own is not None else None

    def first(self, class_: ClassDeclaration, name: str) -> Definition | str | None:
        """The definition that an instance of a class has under a name; a text where an unreadable base may have it."""
        for entry in self.program.classes.linearize(class_):
            if isinstance(entry, Class):
                found = self.definition(entry.declaration, name)
                if found is not None:
                    return found
            else:
                hidden = _hides(entry, name)
                if hidden is not None:
                    return hidden
        return None

    def definition(self, class_: ClassDeclaration, name: str) -> Definition | None:
        """What the body of a class binds to a name in this release."""
        bindings = class_.members.get(name)
        if not bindings:
            return None
        key = (class_, name)
        if key not in self._definitions:
            self._definitions[key] = self._define(class_, name, bindings)
        return self._definitions[key]

    def _define(self, class_: ClassDeclaration, name: str, bindings: list[Binding]) -> Definition | None:
        scope = self.program.class_scope(class_)
        live = self.program.classes.live_bindings(bindings, scope)
        live = [binding for binding in live if binding.value is not None or binding.function or binding.class_]
        if not live:
            return None
        binding = live[0]
        function = binding.function
        if function is None:
            return Definition(class_, name, binding, "value")
        role = self.program.classes.role(function)
        if role == "property":
            return Definition(class_, name, binding, "property", function)
        type_ = self.program.inference.decorated(function, scope)
        signature: Signature | None = None
        # Which of two definitions holds may depend on what nobody can tell from here.
        is_sure = len(live) == 1 or not binding.contexts
        if is_sure and isinstance(type_, Function) and not type_.transformed:
            signature = self.release.signatures.signature(type_.declaration, skips_first=role != "staticmethod")
        form: Form = "method"
        if role == "staticmethod":
            form = "static method"
        elif role == "classmethod":
            form = "class method"
        elif is_async(function):
            form = "async method"
        elif function.is_async and is_generator(function):
            form = "async generator"
        return Definition(class_, name, binding, form, function, signature)


def _hides(entry: External | Unknown, name: str) -> str | None:
    """Why a base outside the program may have a name, None where it surely, or by all experience, has not."""
    if isinstance(entry, Unknown):
        return entry.reason
    if is_well_known(entry.path):
        return None
    found = external_attribute(entry.path, name)
    return found.reason if isinstance(found, Unknown) else None
