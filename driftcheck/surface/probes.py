"""What asking a thing of the target for its attributes gives: `hasattr`, `dir`, `__dict__`, `__dataclass_fields__`."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

from driftcheck.surface.branches import branches_around
from driftcheck.surface.classes import Member, Store
from driftcheck.surface.declarations import Binding, ClassDeclaration
from driftcheck.surface.types import (
    NONE,
    Absent,
    Class,
    External,
    Function,
    Instance,
    Module,
    Type,
    Unknown,
    members_of,
)
from driftcheck.surface.values import Described, Names, Value
from driftcheck.surface.words import encoded

if TYPE_CHECKING:
    from driftcheck.surface.facts import Facts

FIELD_TABLES = frozenset(
    ("__dataclass_fields__", "model_fields", "__fields__", "__struct_fields__", "_fields", "__pydantic_fields__")
)
TABLES = FIELD_TABLES | {"__dict__", "__annotations__", "__code__"}
"""The attributes that list names."""


class Probes:
    """Answers which attributes the target's modules, classes and instances have."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.program
        self._stored: dict[str, bool] = {}
        self._put: dict[str, bool] = {}
        self._put_by_client: dict[str, bool] = {}
        self._defined: dict[str, bool] = {}
        self._mentions: dict[str, list[bytes]] = {}

    def has_attribute(self, owner: Type, name: str) -> bool | None:
        """Whether `hasattr(owner, name)` holds; None where that can't be told or the target has no part in it."""
        members = members_of(owner)
        answers = {self._has_attribute(member, name) for member in members if member != NONE}
        if NONE in members and answers:
            answers.add(hasattr(None, name))
        return answers.pop() if len(answers) == 1 else None

    def _has_attribute(self, owner: Type, name: str) -> bool | None:
        if not self.facts.is_of_target(owner):
            return False if self._surely_lacks(owner, name) else None
        if isinstance(owner, Module):
            found: bool | None = self._module_has(owner, name)
        elif isinstance(owner, Class):
            found = self._class_has(owner, name)
        elif isinstance(owner, Instance):
            found = self._instance_has(owner, name)
        else:
            return None
        if found is False and self._is_stored_by_client(name):
            return None
        return found

    def _surely_lacks(self, owner: Type, name: str) -> bool:
        """True where an object of a class that the client derives from the target's has no such attribute by any way.

        That one has it is no fact of the target's: the client's own class may be what gives it.
        """
        if not isinstance(owner, Instance) or not isinstance(owner.class_, Class):
            return False
        linear = self.program.classes.linearize(owner.class_.declaration)
        if not any(isinstance(base, Class) and self.facts.is_of_target(base) for base in linear):
            return False
        return self._instance_has(owner, name) is False and not self._is_stored_by_client(name)

    def _module_has(self, owner: Module, name: str) -> bool | None:
        found = self.program.module_attribute(owner.name, name)
        if isinstance(found, Absent):
            return False
        return None if isinstance(found, Unknown) else True

    def _class_has(self, owner: Class, name: str) -> bool | None:
        for member in self.program.classes.members(owner, name):
            if isinstance(member, Unknown):
                return None
            if isinstance(member, External):
                from driftcheck.surface.classes import external_attribute

                found = external_attribute(member.path, name)
                if found is not None:
                    return None if isinstance(found, Unknown) else True
                continue
            if member.bindings:
                return self._stays_on_class(member)
        if hasattr(type, name):
            return True
        if owner.is_open or self.program.classes.openness(owner.declaration, on_instance=False):
            return None
        return False

    def _stays_on_class(self, member: Member) -> bool | None:
        """Whether what a class body binds is an attribute of the class: fields without a default are none."""
        binding = member.bindings[0]
        if binding.annotation is None or binding.function is not None or binding.class_ is not None:
            return True
        kind = self._kind_of_fields(member.owner)
        if kind == "struct":
            return True
        if kind == "model":
            return False
        if binding.value is None:
            return False
        if isinstance(binding.value, ast.Call) and kind:
            called = binding.value.func
            name = getattr(called, "id", getattr(called, "attr", ""))
            if name != "field":
                return None
            return any(keyword.arg == "default" for keyword in binding.value.keywords)
        return True

    def _kind_of_fields(self, class_: Class) -> str:
        """What a class makes of the annotated names in its body: "" where nothing."""
        for path in self.program.classes.external_bases(class_.declaration):
            name = path.rpartition(".")[2]
            if name in ("Struct", "NamedTuple"):
                return "struct"
            if name in ("BaseModel", "BaseSettings"):
                return "model"
        return "decorated" if class_.declaration.node.decorator_list else ""

    def _instance_has(self, owner: Instance, name: str) -> bool | None:
        class_ = owner.class_
        assert isinstance(class_, Class)
        for member in self.program.classes.members(class_, name):
            if not isinstance(member, Member):
                if isinstance(member, Unknown):
                    return None
                continue
            if any(self._is_on_instances(member, binding) for binding in member.bindings):
                return True
            return True if any(_is_always_stored(store) for store in member.stores) else None
        if not isinstance(self.program.classes.attribute(owner, name), Absent):
            return None
        return False if owner.exact or not self._may_have(class_.declaration, name) else None

    def _may_have(self, class_: ClassDeclaration, name: str) -> bool:
        """True where a value of a declared class may have an attribute that the class has not."""
        classes = self.program.classes
        if any(path.endswith(".Protocol") for path in classes.external_bases(class_)):
            return True
        if self._is_defined_by_client(name):
            return True
        mentioning = self._mentioning(name)
        if not mentioning:
            # What no source of the target so much as names, no class of it has. Reading its heirs costs far more.
            return False
        if self._is_put_on_values(name, mentioning):
            return True
        heirs = self.program.heirs.of(class_)
        return any(not isinstance(classes.attribute(Instance(Class(heir)), name), Absent) for heir in heirs)

    def _mentioning(self, name: str) -> list[bytes]:
        """The sources of the target that hold a name."""
        found = self._mentions.get(name)
        if found is None:
            found = self._mentions[name] = [data for _, data in self.program.target_holding(name)]
        return found

    def _is_put_on_values(self, name: str, mentioning: list[bytes]) -> bool:
        """True where the target stores an attribute of that name on something else than a method's own receiver."""
        found = self._put.get(name)
        if found is None:
            found = self._put[name] = any(_is_put_in(name, data) for data in mentioning)
        return found

    def is_put_by_client(self, name: str) -> bool:
        """True where the client stores an attribute of that name on something else than a method's own receiver."""
        found = self._put_by_client.get(name)
        if found is None:
            sources = self.program.client_holding(name)
            found = self._put_by_client[name] = any(_is_put_in(name, data) for _, data in sources)
        return found

    def _is_defined_by_client(self, name: str) -> bool:
        """True where a class of the client's defines a member of that name."""
        if (known := self._defined.get(name)) is not None:
            return known
        needle = encoded(re.escape(name))
        pattern = re.compile(rb"^[ \t]+(?:(?:async[ \t]+)?def[ \t]+%s\b|%s[ \t]*[:=])" % (needle, needle), re.MULTILINE)
        found = any(pattern.search(data) for _, data in self.program.client_holding(name))
        self._defined[name] = found
        return found

    def _is_on_instances(self, member: Member, binding: Binding) -> bool:
        if binding.function is not None or binding.class_ is not None or binding.value is not None:
            return True
        # A field without a default is what the constructor stores.
        return binding.annotation is not None and bool(self._kind_of_fields(member.owner))

    def _is_stored_by_client(self, name: str) -> bool:
        """True where the client itself stores an attribute of that name, somewhere."""
        found = self._stored.get(name)
        if found is None:
            needle = encoded(re.escape(name))
            pattern = re.compile(
                rb"\.%s\s*(:[^=\n]+)?=[^=]|setattr\(\s*[^,]{1,200},\s*[\"']%s[\"']" % (needle, needle), re.MULTILINE
            )
            found = any(pattern.search(data) for _, data in self.program.client_holding(name))
            self._stored[name] = found
        return found

    # Tables of names

    def table(self, owner: Type, name: str) -> Value | None:
        """What `owner.__dict__` and its like hold, None where that is not known."""
        if not self.facts.is_of_target(owner):
            return None
        if name == "__code__":
            return self._code(owner) if isinstance(owner, Function) else None
        if isinstance(owner, Module):
            if name == "__dict__":
                return Value(Names(is_open=True, ask=lambda asked: self.has_attribute(owner, asked)), is_fact=True)
            return None
        if name in FIELD_TABLES:
            fields = self.facts.shapes.fields(owner)
            return None if fields is None else Value(fields, is_fact=True)
        class_ = owner.class_ if isinstance(owner, Instance) else owner
        if not isinstance(class_, Class):
            return None
        if name == "__annotations__":
            annotated = [n for n, found in class_.declaration.members.items() if any(b.annotation for b in found)]
            return Value(Names(tuple(annotated)), is_fact=True)
        return Value(self._own_names(class_), is_fact=True) if isinstance(owner, Class) else None

    def _own_names(self, class_: Class) -> Names:
        """The names in the namespace of one class, without its bases."""
        sure: list[str] = []
        possible: list[str] = []
        scope = self.program.class_scope(class_.declaration)
        for name, bindings in class_.declaration.members.items():
            live = tuple(self.program.classes.live_bindings(bindings, scope))
            if not live:
                continue
            stays = self._stays_on_class(Member(class_, live))
            if stays is not False:
                (sure if stays else possible).append(name)
        is_open = bool(self.program.classes.opaque_decorator(class_.declaration))
        return Names(tuple(sure), frozenset(possible), is_open)

    def _code(self, function: Function) -> Value | None:
        scope = self.program.function_scope(function.declaration)
        parameters = scope.parameters
        names = Names((*parameters, *(name for name in scope.locals if name not in parameters)))
        arguments = function.declaration.node.args
        count = len(arguments.posonlyargs) + len(arguments.args)
        return Value(Described({"co_varnames": names, "co_argcount": count}), is_fact=True)


def _is_put_in(name: str, data: bytes) -> bool:
    """True where a source stores an attribute of that name on something else than a method's own receiver."""
    stored, owner, by_call = _putting(name)
    for match in stored.finditer(data):
        # What the attribute belongs to stands on the same line, in front of it.
        if owner.search(data, data.rfind(b"\n", 0, match.start()) + 1, match.start()):
            return True
    return b"setattr(" in data and by_call.search(data) is not None


@functools.lru_cache(maxsize=1024)
def _putting(name: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes], re.Pattern[bytes]]:
    """What stores an attribute, what it must not belong to, and what stores one whose name is given as a string."""
    needle = encoded(re.escape(name))
    return (
        re.compile(rb"\.%s(?=\s*(?::[^=\n]+)?=[^=])" % needle),
        re.compile(rb"\b(?!(?:self|cls)\Z)\w+(?:\.\w+|\[[^\]\n]*\])*\Z"),
        re.compile(rb"setattr\(\s*[^,]{1,200},\s*[\"']%s[\"']" % needle),
    )


def _is_always_stored(store: Store) -> bool:
    """True for what a constructor stores whatever happens."""
    return store.function.name == "__init__" and branches_around(store.function.body, store.binding.node) == ()
