"""Classes: their bases and linearization, their members, and what instances store on themselves."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from driftcheck.surface.declarations import Binding, ClassDeclaration, Context, FunctionDeclaration
from driftcheck.surface.libraries import has_member, is_torch_module
from driftcheck.surface.syntax import all_statements, nodes_of, own_nodes, own_statements
from driftcheck.surface.types import (
    Absent,
    Class,
    Dictionary,
    External,
    Function,
    Instance,
    Tuple,
    Type,
    TypeVariable,
    Union,
    Unknown,
    members_of,
    union,
)

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

Role = Literal["method", "classmethod", "staticmethod", "property", "unknown"]
Base = Class | External | Unknown

# Bases of the standard library that give names to subclasses but no unknown attributes.
_GENERIC = frozenset(("typing.Generic", "typing.Protocol", "typing_extensions.Protocol", "typing_extensions.Generic"))
# Names of `typing` that are no classes, though what derives from them is known.
_TUPLES = frozenset(("typing.NamedTuple", "typing_extensions.NamedTuple", "collections.namedtuple"))
# What the interpreter stores on instances, so that their class does not show it.
_OF_INSTANCES = {
    "types.ModuleType": (
        "__name__",
        "__doc__",
        "__package__",
        "__loader__",
        "__spec__",
        "__file__",
        "__path__",
        "__dict__",
    )
}
_SPECIAL = _GENERIC | _TUPLES | {"typing.TypedDict", "typing_extensions.TypedDict"}
# Libraries whose classes have no names in common with what derives from them beside other bases.
_WELL_KNOWN = frozenset(("torch", "pydantic", "msgspec", "transformers", "pydantic_settings", "abc", "typing"))
_PROPERTIES = frozenset(
    ("property", "cached_property", "abstractproperty", "cachedproperty", "lazy_property", "getter")
)
# What puts names on the receiver that only the run knows; to read its `__dict__` adds nothing to it.
_QUOTED_NAME = re.compile(r"[\"'](\w+)[\"']")
_DYNAMIC_SELF = re.compile(
    r"setattr\(\s*(self|cls)\s*,\s*[^\"'\s]|object\.__setattr__\(\s*self\s*,\s*[^\"'\s]"
    r"|(\b(self|cls)\.__dict__|\bvars\(\s*self\s*\))\s*(\.(update|setdefault|__setitem__)\b|\[[^\]]*\]\s*=[^=]|\|?=[^=])"
    r"|=\s*(\b(self|cls)\.__dict__|\bvars\(\s*self\s*\))\s*$",
    re.MULTILINE,
)
STORES_BY_NAME = "stores attributes by computed names"


# A class method that puts members on its own class, as enumerations that can be extended have.
_DYNAMIC_CLASS = re.compile(r"setattr\(\s*cls\s*,\s*[^\"'\s]")
ADDS_MEMBERS = "adds members by computed names"


@dataclass(eq=False, slots=True)
class Store:
    """An assignment to an attribute of the receiver in one of its class's methods."""

    name: str
    function: FunctionDeclaration
    binding: Binding


@dataclass(frozen=True, slots=True)
class Member:
    """Where a class's attribute comes from: the class in whose body it stands, or whose methods store it."""

    owner: Class
    bindings: tuple[Binding, ...]
    stores: tuple[Store, ...] = ()


class Classes:
    """Answers questions about the classes of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._linear: dict[ClassDeclaration, tuple[Base, ...]] = {}
        self._linearizing: set[ClassDeclaration] = set()
        self._parameters: dict[ClassDeclaration, tuple[TypeVariable, ...]] = {}
        self._stores: dict[FunctionDeclaration, dict[str, list[Store]]] = {}
        self._storing: dict[ClassDeclaration, dict[str, list[tuple[FunctionDeclaration, str]]]] = {}
        self._roles: dict[FunctionDeclaration, Role] = {}
        self._stand_ins: dict[ClassDeclaration, bool] = {}
        self._attributes: dict[tuple[Class, str, bool], Type] = {}
        self._looking: set[tuple[ClassDeclaration, str, bool]] = set()
        self._decorated: dict[ClassDeclaration, Type] = {}
        self._open: dict[tuple[ClassDeclaration, bool], str] = {}
        # What the client adds to classes at run time: (class symbol, attribute).
        self.extensions: set[tuple[str, str]] = set()

    # Bases

    def type_parameters(self, class_: ClassDeclaration) -> tuple[TypeVariable, ...]:
        """The type variables of a class in the order in which a subscript gives them."""
        found = self._parameters.get(class_)
        if found is None:
            self._parameters[class_] = ()
            found = self._parameters[class_] = self._type_parameters(class_)
        return found

    def _type_parameters(self, class_: ClassDeclaration) -> tuple[TypeVariable, ...]:
        scope = self.program.scope_of_class(class_)
        explicit: dict[TypeVariable, None] = {}
        appearing: dict[TypeVariable, None] = {}
        for base in class_.node.bases:
            if not isinstance(base, ast.Subscript):
                continue
            origin = self.program.annotations.value(base.value, scope)
            is_generic = isinstance(origin, External) and origin.path in _GENERIC
            parts = base.slice.elts if isinstance(base.slice, ast.Tuple) else [base.slice]
            for part in parts:
                for node in nodes_of(part):
                    if isinstance(node, ast.Name | ast.Attribute):
                        type_ = self.program.annotations.value(node, scope)
                        if isinstance(type_, TypeVariable):
                            (explicit if is_generic else appearing)[type_] = None
        return tuple(explicit or appearing)

    def bases(self, class_: ClassDeclaration) -> list[Base]:
        """The bases of a class as written, each a class with its type arguments, an outside thing, or unknown."""
        scope = self.program.scope_of_class(class_)
        found: list[Base] = []
        for node in class_.node.bases:
            if isinstance(node, ast.Starred):
                found.append(Unknown("bases that are computed"))
                continue
            type_ = self.program.inference.infer(node, scope)
            if isinstance(type_, Class) and type_.declaration is class_:
                type_ = self._earlier(class_, type_)
            if isinstance(type_, Union):
                known = [member for member in type_.members if isinstance(member, Class)]
                type_ = known[0] if len(known) == len(type_.members) else Unknown("base that depends on a branch")
            if isinstance(type_, Class | External):
                found.append(type_)
            elif isinstance(type_, Absent):
                found.append(Unknown(f"base {type_.owner}.{type_.name} is not there"))
            elif isinstance(type_, Unknown):
                found.append(Unknown(f"base: {type_.reason}"))
            else:
                found.append(Unknown("base that is no class"))
        return found

    def _earlier(self, class_: ClassDeclaration, type_: Class) -> Type:
        """What the name of a class meant before the class took it: `class X(X)`."""
        scope = self.program.scope_of_class(class_)
        bindings, home = scope.bindings(class_.name)
        for binding in reversed(bindings):
            if binding.line < class_.line and binding.class_ is not class_:
                found = self.program.binding_type(binding, home)
                return Class(found.declaration, type_.arguments) if isinstance(found, Class) else found
        return Unknown("class that derives from itself")

    def linearize(self, class_: ClassDeclaration) -> tuple[Base, ...]:
        """The method resolution order, type arguments expressed in the class's own type variables."""
        found = self._linear.get(class_)
        if found is not None:
            return found
        if class_ in self._linearizing:
            return (Class(class_),)
        self._linearizing.add(class_)
        try:
            own = Class(class_, self.type_parameters(class_))
            bases = self.bases(class_)
            sequences: list[list[Base]] = [
                list(self.mro(base)) if isinstance(base, Class) else [base] for base in bases
            ]
            sequences.append(list(bases))
            linear = (own, *_merge(sequences))
        finally:
            self._linearizing.discard(class_)
        self._linear[class_] = linear
        return linear

    def mro(self, class_: Class) -> tuple[Base, ...]:
        """The method resolution order of a class with its type arguments put in."""
        linear = self.linearize(class_.declaration)
        parameters = self.type_parameters(class_.declaration)
        if not parameters:
            return linear
        mapping = self.mapping(class_)
        return tuple(
            Class(base.declaration, tuple(substitute(argument, mapping) for argument in base.arguments))
            if isinstance(base, Class)
            else base
            for base in linear
        )

    def mapping(self, class_: Class) -> dict[TypeVariable, Type]:
        """What each type variable of a class is, for this use of it."""
        parameters = self.type_parameters(class_.declaration)
        if not class_.arguments:
            # Without arguments a variable is its default, else whatever its bound says.
            return {p: p.default or p.bound or Unknown("type variable") for p in parameters}
        return dict(zip(parameters, class_.arguments, strict=False))

    def is_subclass(self, class_: ClassDeclaration, of: ClassDeclaration) -> bool | None:
        """Whether one class derives from another; None where an unknown base may."""
        linear = self.linearize(class_)
        if any(isinstance(base, Class) and base.declaration is of for base in linear):
            return True
        return None if any(isinstance(base, Unknown) for base in linear) else False

    def external_bases(self, class_: ClassDeclaration) -> list[str]:
        """The dotted paths of the outside classes that a class derives from."""
        return [base.path for base in self.linearize(class_) if isinstance(base, External)]

    def openness(self, class_: ClassDeclaration, *, on_instance: bool = True) -> str:
        """Why a class, or an instance of it, may have attributes that cannot be seen; "" where neither can."""
        key = (class_, on_instance)
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = self._openness(class_, on_instance=on_instance)
        return found

    def _openness(self, class_: ClassDeclaration, *, on_instance: bool) -> str:
        for base in self.linearize(class_):
            if isinstance(base, Unknown):
                return base.reason
            if isinstance(base, External):
                if known_class(base.path) is None and base.path not in _SPECIAL:
                    return f"base {base.path} is outside the target"
                continue
            declaration = base.declaration
            for given in self.bases(declaration):
                if isinstance(given, Class) and given.is_open:
                    return f"base that may be a class below {given.declaration.name}"
            for name in ("__getattr__", "__getattribute__"):
                if on_instance and name in declaration.members:
                    return f"{declaration.name}.{name}"
            if any(keyword.arg == "metaclass" for keyword in declaration.node.keywords):
                scope = self.program.scope_of_class(declaration)
                for keyword in declaration.node.keywords:
                    if keyword.arg == "metaclass":
                        metaclass = self.program.inference.infer(keyword.value, scope)
                        if not (isinstance(metaclass, External) and known_class(metaclass.path) is not None):
                            if not isinstance(metaclass, Class) or self.defines(metaclass.declaration, "__getattr__"):
                                return "metaclass"
            opaque = self.opaque_decorator(declaration)
            if opaque:
                return f"class decorator {opaque}"
            text = "\n".join(declaration.module.lines[declaration.line - 1 : declaration.node.end_lineno])
            if not on_instance and _DYNAMIC_CLASS.search(text):
                return f"{declaration.name} {ADDS_MEMBERS}"
            if on_instance and _DYNAMIC_SELF.search(text):
                return f"{declaration.name} {STORES_BY_NAME}"
        return ""

    def defines(self, class_: ClassDeclaration, name: str) -> bool:
        """True where a class or a base in the program has the name in its body."""
        return any(isinstance(base, Class) and name in base.declaration.members for base in self.linearize(class_))

    # Decorators

    def decorated(self, class_: ClassDeclaration, scope: Scope) -> Type:
        """What the name of a class holds: the class, unless a decorator that can't be read replaces it."""
        found = self._decorated.get(class_)
        if found is None:
            # Whatever a decorator adds, the class stays the class: `openness` says when attributes may have been added.
            found = self._decorated[class_] = Class(class_)
        return found

    def opaque_decorator(self, class_: ClassDeclaration) -> str:
        """The name of a decorator that may add attributes to the class, "" where there is none."""
        scope = self.program.scope_of_class(class_)
        for node in class_.node.decorator_list:
            called = node.func if isinstance(node, ast.Call) else node
            type_ = self.program.inference.infer(called, scope)
            for member in members_of(type_):
                if isinstance(member, External):
                    top = member.path.partition(".")[0]
                    if top in ("dataclasses", "typing", "typing_extensions", "functools", "enum", "builtins",
                               "pydantic", "attr", "attrs", "abc", "msgspec", "torch", "ray", "warnings"):  # fmt: skip
                        continue
                    return member.path
                if isinstance(member, Function):
                    if not _returns_its_class(member.declaration):
                        return member.declaration.name
                elif isinstance(member, Instance | Class):
                    continue
                else:
                    return ast.unparse(called)
        return ""

    def is_open_name(self, class_: ClassDeclaration) -> bool:
        """True where the class is made by a function, so that several classes share its name."""
        return class_.outer is not None

    def is_stand_in(self, class_: ClassDeclaration) -> bool:
        """True where `__new__` may make an instance of a class other than the one that is called."""
        found = self._stand_ins.get(class_)
        if found is None:
            makers = [
                binding.function
                for base in self.linearize(class_)
                if isinstance(base, Class)
                for binding in base.declaration.members.get("__new__", ())
                if binding.function is not None
            ]
            found = self._stand_ins[class_] = any(_makes_another(maker) for maker in makers[:1])
        return found

    def role(self, function: FunctionDeclaration) -> Role:
        """What kind of member a function in a class body is."""
        found = self._roles.get(function)
        if found is None:
            found = self._roles[function] = self._role(function)
        return found

    def _role(self, function: FunctionDeclaration) -> Role:
        role: Role = "method"
        if function.name in ("__new__", "__class_getitem__", "__init_subclass__"):
            role = "classmethod" if function.name != "__new__" else "staticmethod"
        for node in function.node.decorator_list:
            called = node.func if isinstance(node, ast.Call) else node
            name = (
                called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            )
            if name in ("classmethod", "abstractclassmethod"):
                return "classmethod"
            if name in ("staticmethod", "abstractstaticmethod"):
                return "staticmethod"
            if name in ("setter", "deleter") or name in _PROPERTIES or name.endswith("_property"):
                return "property"
        return role

    # Members

    def live_bindings(self, bindings: list[Binding], scope: Scope, *, typing: bool = False) -> list[Binding]:
        """The bindings of a name that may hold, the last sure one and whatever may follow it."""
        if len(bindings) == 1 and not bindings[0].contexts:
            return bindings
        live: list[Binding] = []
        for binding in reversed(bindings):
            alive = (
                self.program.liveness(binding.contexts, scope, typing=typing, line=binding.line)
                if binding.contexts
                else True
            )
            if alive is False:
                continue
            live.append(binding)
            # In a function another branch may have bound the name before: only class and module bodies run in order.
            if alive is True and scope.function is None:
                break
        return live

    def members(self, class_: Class, name: str) -> Iterator[Member | External | Unknown]:
        """The definitions of an attribute along the resolution order, and the bases that might hide one."""
        for base in self.mro(class_):
            if not isinstance(base, Class):
                yield base
                continue
            declaration = base.declaration
            bindings: tuple[Binding, ...] = ()
            if name in declaration.members:
                scope = self.program.class_scope(declaration)
                bindings = tuple(self.live_bindings(declaration.members[name], scope))
            stores = tuple(self.stores(declaration, name))
            if bindings or stores:
                yield Member(base, bindings, stores)

    def stores(self, class_: ClassDeclaration, name: str) -> Iterator[Store]:
        """The places in a class's methods that store an attribute of the receiver."""
        storing = self._storing.get(class_)
        if storing is None:
            storing = self._storing[class_] = _storing_methods(class_)
        for function, receiver in storing.get(name, ()):
            yield from self._stores_of(function, receiver).get(name, ())

    def _stores_of(self, function: FunctionDeclaration, receiver: str) -> dict[str, list[Store]]:
        known = self._stores.get(function)
        if known is None:
            known = self._stores[function] = _collect_stores(function, receiver)
        return known

    def stored_names(self, class_: ClassDeclaration) -> dict[str, list[Store]]:
        """Every attribute that the methods of a class store on the receiver."""
        names: dict[str, list[Store]] = {}
        for function in class_.methods():
            receiver = _receiver_of(function)
            if receiver is not None:
                for name, stores in self._stores_of(function, receiver).items():
                    names.setdefault(name, []).extend(stores)
        return names

    def attribute(self, receiver: Instance | Class, name: str) -> Type:
        """What `receiver.name` is, for an instance or a class of the program."""
        on_instance = isinstance(receiver, Instance)
        class_ = receiver.class_ if isinstance(receiver, Instance) else receiver
        assert isinstance(class_, Class)
        key = (class_, name, on_instance)
        found = self._attributes.get(key)
        if found is None:
            guard = (class_.declaration, name, on_instance)
            if guard in self._looking:
                return Unknown("cyclic definition")
            self._looking.add(guard)
            try:
                found = self._attribute(class_, name, receiver)
            finally:
                self._looking.discard(guard)
            self._attributes[key] = found
        return found

    def _attribute(self, class_: Class, name: str, receiver: Instance | Class) -> Type:
        on_instance = isinstance(receiver, Instance)
        stored: list[Type] = []
        hidden: Type | None = None
        for member in self.members(class_, name):
            if isinstance(member, Unknown):
                if not stored:
                    return member
                break
            if isinstance(member, External):
                found = external_attribute(member.path, name)
                if found is None:
                    continue
                if not isinstance(found, Unknown) or not is_well_known(member.path):
                    # What stands before the rest in the resolution order hides it.
                    if not stored:
                        return found
                    break
                hidden = hidden or found
                continue
            if member.bindings:
                type_ = self._member_type(member, receiver)
                if not stored:
                    if not member.stores or _is_declared(member) or not on_instance:
                        return type_
                stored.append(type_)
                if _is_declared(member):
                    break
                if on_instance:
                    stored += [self._store_type(store, member.owner) for store in member.stores]
                break
            if on_instance:
                stored += [self._store_type(store, member.owner) for store in member.stores]
        if stored:
            return union(stored)
        added = self._added(class_, name, receiver)
        if added is not None:
            return added
        if hidden is not None and not (hasattr(type, name) and not on_instance):
            if on_instance and self.program.registers(name) and self._is_torch_module(class_):
                return Instance(External("torch.nn.Parameter"))
            return hidden
        if not on_instance:
            if hasattr(type, name) or (name == "__members__" and self.is_enum(class_.declaration)):
                return Unknown(f"type.{name}")
            if any(True for m in self.members(class_, name) if isinstance(m, Member) and m.stores):
                return Unknown("instance attribute read from the class")
        if name in self._slots(class_):
            return Unknown("slot")
        if name in vars(object) or name in _MADE_BY_LIBRARIES:
            return Unknown(f"object.{name}")
        for base in self.mro(class_):
            if isinstance(base, Class) and (base.declaration.symbol, name) in self.extensions:
                return Unknown("attribute that the client adds")
        reason = self.openness(class_.declaration, on_instance=on_instance)
        if reason:
            return Unknown(reason)
        return Absent(class_.declaration.symbol, name)

    def _is_torch_module(self, class_: Class) -> bool:
        return any(is_torch_module(path) for path in self.external_bases(class_.declaration))

    def _added(self, class_: Class, name: str, receiver: Instance | Class) -> Type | None:
        """A method that a decorator of the class, or of a base, sets on it."""
        for base in self.mro(class_):
            if isinstance(base, Class):
                function = self.program.class_decorators.added(base.declaration).get(name)
                if function is not None:
                    is_bound = isinstance(receiver, Instance)
                    return Function(function, receiver if is_bound else None, base, skips_first=is_bound)
        return None

    def _slots(self, class_: Class) -> set[str]:
        names: set[str] = set()
        for base in self.mro(class_):
            if isinstance(base, Class):
                for binding in base.declaration.members.get("__slots__", ()):
                    if binding.value is not None:
                        names.update(
                            n.value
                            for n in ast.walk(binding.value)
                            if isinstance(n, ast.Constant) and isinstance(n.value, str)
                        )
        return names

    def _store_type(self, store: Store, owner: Class) -> Type:
        scope = self.program.function_scope(store.function)
        type_ = self.program.binding_type(store.binding, scope)
        if isinstance(type_, Absent):
            type_ = Unknown("value that is not there")
        if isinstance(type_, Dictionary):
            # Other methods may put more into a dict that an instance holds.
            type_ = Dictionary(type_.items, is_open=True)
        return substitute(type_, self.mapping(owner)) if owner.arguments else type_

    def _member_type(self, member: Member, receiver: Instance | Class) -> Type:
        scope = self.program.class_scope(member.owner.declaration)
        mapping = self.mapping(member.owner) if self.type_parameters(member.owner.declaration) else {}
        types: list[Type] = []
        for binding in member.bindings:
            if binding.function is not None:
                types.append(self._function_member(binding.function, member.owner, receiver, mapping))
            elif (
                self.is_enum(member.owner.declaration)
                and binding.value is not None
                and not binding.name.startswith("_")
            ):
                types.append(Instance(member.owner, exact=True))
            else:
                type_ = self.program.binding_type(binding, scope)
                if isinstance(type_, Function) and type_.receiver is None and isinstance(receiver, Instance):
                    # A function that a class attribute names becomes a method, unless it is wrapped.
                    type_ = self._bound_alias(type_, binding, receiver, member.owner)
                types.append(substitute(type_, mapping) if mapping else type_)
        return union(types) if types else Unknown("member")

    def _bound_alias(self, function: Function, binding: Binding, receiver: Instance, owner: Class) -> Type:
        if isinstance(binding.value, ast.Call):
            name = binding.value.func
            if isinstance(name, ast.Name) and name.id == "staticmethod":
                return function
            return Unknown("member made by a call")
        return Function(function.declaration, receiver, owner, function.substitution, skips_first=True)

    def _function_member(
        self, function: FunctionDeclaration, owner: Class, receiver: Instance | Class, mapping: dict[TypeVariable, Type]
    ) -> Type:
        role = self.role(function)
        substitution = tuple(mapping.items())
        if role == "property":
            if isinstance(receiver, Class):
                return Unknown("property read from the class")
            if any(_is_setter(node) for node in function.node.decorator_list):
                getter = [
                    b.function
                    for b in owner.declaration.members[function.name]
                    if b.function is not None and not any(_is_setter(n) for n in b.function.node.decorator_list)
                ]
                if not getter:
                    return Unknown("property")
                function = getter[-1]
            bound = Function(function, receiver, owner, substitution, skips_first=True)
            return self.program.inference.returned(bound)
        scope = self.program.class_scope(owner.declaration)
        type_ = self.program.inference.decorated(function, scope)
        if not isinstance(type_, Function):
            return type_
        transformed, function = type_.transformed, type_.declaration
        if role == "staticmethod":
            return Function(function, None, owner, substitution, transformed=transformed)
        if role == "classmethod":
            class_ = receiver.class_ if isinstance(receiver, Instance) else receiver
            return Function(function, class_, owner, substitution, skips_first=True, transformed=transformed)
        if isinstance(receiver, Instance):
            return Function(function, receiver, owner, substitution, skips_first=True, transformed=transformed)
        return Function(function, None, owner, substitution, transformed=transformed)

    def is_enum(self, class_: ClassDeclaration) -> bool:
        """True for an enumeration."""
        return any(path in _ENUMS for path in self.external_bases(class_))

    def inherited_parameter(self, function: FunctionDeclaration, name: str) -> Type | None:
        """What the overridden method of a base declares for a parameter of that name."""
        owner = function.owner
        assert owner is not None
        for base in self.linearize(owner)[1:]:
            if not isinstance(base, Class):
                continue
            for binding in base.declaration.members.get(function.name, ()):
                if binding.function is None:
                    continue
                scope = self.program.function_scope(binding.function)
                node = scope.parameters.get(name)
                if node is not None and node.annotation is not None:
                    type_ = scope.parameter_type(name)
                    return substitute(type_, self.mapping(base))
        return None


# What dataclasses, structs and models put on their classes.
_MADE_BY_LIBRARIES = frozenset(
    ("__dict__", "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__struct_fields__",
     "__struct_config__", "__attrs_attrs__", "__annotations__", "__slots__", "__weakref__", "__abstractmethods__",
     "__orig_bases__", "__parameters__", "__orig_class__", "__total__", "__required_keys__", "__optional_keys__",
     "__replace__")
)  # fmt: skip
# Methods of a torch module that store an attribute of the name given first.
_REGISTERING = frozenset(("register_buffer", "register_parameter", "register_module", "add_module"))
_ENUMS = frozenset(("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"))


def _merge(sequences: list[list[Base]]) -> list[Base]:
    """The C3 merge; where no order is consistent the remaining bases follow depth first."""
    result: list[Base] = []
    while sequences := [sequence for sequence in sequences if sequence]:
        for sequence in sequences:
            head = sequence[0]
            if not any(_same(head, other) for rest in sequences for other in rest[1:]):
                break
        else:
            head = sequences[0][0]
        result.append(head)
        sequences = [
            [base for index, base in enumerate(sequence) if index or not _same(base, head)] for sequence in sequences
        ]
        if len(result) > 200:
            break
    return result


def _same(one: Base, other: Base) -> bool:
    if isinstance(one, Class) and isinstance(other, Class):
        return one.declaration is other.declaration
    return one == other


def substitute(type_: Type, mapping: dict[TypeVariable, Type]) -> Type:
    """The type with type variables replaced."""
    if not mapping:
        return type_
    if isinstance(type_, TypeVariable):
        return mapping.get(type_, type_)
    if isinstance(type_, Instance):
        class_ = type_.class_
        if isinstance(class_, Class) and class_.arguments:
            class_ = Class(class_.declaration, tuple(substitute(a, mapping) for a in class_.arguments), class_.is_open)
        elif not type_.arguments:
            return type_
        return Instance(class_, tuple(substitute(a, mapping) for a in type_.arguments), type_.exact)
    if isinstance(type_, Class) and type_.arguments:
        return Class(type_.declaration, tuple(substitute(a, mapping) for a in type_.arguments), type_.is_open)
    if isinstance(type_, Union):
        return union([substitute(member, mapping) for member in type_.members])
    if isinstance(type_, Tuple):
        return Tuple(tuple(substitute(item, mapping) for item in type_.items))
    if isinstance(type_, Dictionary):
        return Dictionary(tuple((k, substitute(v, mapping)) for k, v in type_.items), type_.is_open)
    return type_


@functools.cache
def known_class(path: str) -> type | None:
    """The real class behind a dotted path into Python's own library, None for anything else."""
    from driftcheck.surface.program import is_standard_library

    if not is_standard_library(path) or path.partition(".")[0] in ("antigravity", "this", "idlelib", "test"):
        return None
    parts = path.split(".")
    for split in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:split]))
            for part in parts[split:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found if isinstance(found, type) else None
    return None


@functools.cache
def _names_in_methods(class_: type) -> frozenset[str]:
    """The names that the Python code of a class's methods mentions: what they store on an instance is among them."""
    names: set[str] = set()
    for base in class_.__mro__:
        for value in vars(base).values():
            code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
            if code is not None:
                names.update(code.co_names)
    return frozenset(names)


def is_well_known(path: str) -> bool:
    """True for an outside base whose names are no names of the classes that stand beside it."""
    return path.partition(".")[0] in _WELL_KNOWN


def external_attribute(path: str, name: str) -> Type | None:
    """What an outside base gives under a name; None where it surely gives nothing."""
    if path in _SPECIAL:
        if path in _TUPLES:
            if name in ("_asdict", "_replace", "_make", "_fields", "_field_defaults"):
                return Unknown("NamedTuple")
            return External(f"builtins.tuple.{name}") if hasattr(tuple, name) else None
        return External(f"builtins.dict.{name}") if "TypedDict" in path and hasattr(dict, name) else None
    known = known_class(path)
    if known is None:
        return External(f"{path}.{name}") if has_member(path, name) else Unknown(f"base {path} is outside the target")
    if name in _OF_INSTANCES.get(path, ()):
        return External(f"{path}.{name}")
    # What only `object` gives comes after everything else in the resolution order.
    if any(name in vars(base) for base in known.__mro__[:-1]):
        return External(f"{path}.{name}")
    if path.startswith("ctypes.") or name in _names_in_methods(known):
        return Unknown(f"attribute of instances of {path}")
    return None


def _is_declared(member: Member) -> bool:
    return any(binding.annotation is not None or binding.function is not None for binding in member.bindings)


def _makes_another(maker: FunctionDeclaration) -> bool:
    """True for a `__new__` that hands something else than its own class to the `__new__` that makes the instance."""
    arguments = maker.node.args
    first = next((argument.arg for argument in [*arguments.posonlyargs, *arguments.args]), None)
    for node in ast.walk(ast.Module(maker.body, [])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__new__":
            if node.args and not (isinstance(node.args[0], ast.Name) and node.args[0].id == first):
                return True
    return False


def _is_setter(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("setter", "deleter")


def _receiver_of(function: FunctionDeclaration) -> str | None:
    arguments = function.node.args
    return next((argument.arg for argument in [*arguments.posonlyargs, *arguments.args]), None)


def _storing_methods(class_: ClassDeclaration) -> dict[str, list[tuple[FunctionDeclaration, str]]]:
    """For each attribute the methods that may store it, going by their text, each with the name of its receiver."""
    found: dict[str, list[tuple[FunctionDeclaration, str]]] = {}
    for function in class_.methods():
        receiver = _receiver_of(function)
        if receiver is None:
            continue
        text = function.source
        names = dict.fromkeys(_stored_attribute(receiver).findall(text))
        if _may_store_by_call(text):
            names.update(dict.fromkeys(_QUOTED_NAME.findall(text)))
        for name in names:
            found.setdefault(name, []).append((function, receiver))
    return found


@functools.lru_cache(maxsize=64)
def _stored_attribute(receiver: str) -> re.Pattern[str]:
    """Finds the attributes of a receiver that are neither called, read further, subscribed nor compared."""
    return re.compile(rf"{re.escape(receiver)}\.(\w+)\b(?!\s*(?:[(.\[]|==))")


def _may_store_by_call(text: str) -> bool:
    """True where a text may call what stores an attribute whose name is given as a string."""
    return "setattr" in text or "register_" in text or "add_module" in text


def _collect_stores(function: FunctionDeclaration, receiver: str) -> dict[str, list[Store]]:
    """What a method stores on its receiver, by attribute."""
    stores: dict[str, list[Store]] = {}

    def add(name: str, binding: Binding) -> None:
        stores.setdefault(name, []).append(Store(name, function, binding))

    def targets(node: ast.expr, path: tuple[int | None, ...] = ()) -> Iterator[tuple[str, tuple[int | None, ...]]]:
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == receiver:
                yield node.attr, path
        elif isinstance(node, ast.Tuple | ast.List):
            for index, element in enumerate(node.elts):
                yield from targets(element, (*path, index))
        elif isinstance(node, ast.Starred):
            yield from targets(node.value, (*path[:-1], None))

    no_contexts: tuple[Context, ...] = ()
    has_calls = _may_store_by_call(function.source)
    for node in own_nodes(function.body) if has_calls else own_statements(function.body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, path in targets(target):
                    add(name, Binding(name, node.lineno, node, no_contexts, node.value, path=path))
        elif isinstance(node, ast.AnnAssign):
            for name, _ in targets(node.target):
                add(name, Binding(name, node.lineno, node, no_contexts, node.value, node.annotation))
        elif isinstance(node, ast.AugAssign):
            for name, _ in targets(node.target):
                add(name, Binding(name, node.lineno, node, no_contexts, None, element="augmented"))
        elif isinstance(node, ast.For | ast.AsyncFor):
            for name, path in targets(node.target):
                add(name, Binding(name, node.lineno, node, no_contexts, node.iter, path=path, element="for"))
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                for name, path in targets(item.optional_vars) if item.optional_vars is not None else ():
                    add(name, Binding(name, 0, item, no_contexts, item.context_expr, path=path, element="with"))
        elif isinstance(node, ast.Call):
            called = node.func
            is_setattr = (isinstance(called, ast.Name) and called.id == "setattr") or (
                isinstance(called, ast.Attribute) and called.attr == "__setattr__"
            )
            if is_setattr and len(node.args) == 3 and isinstance(node.args[1], ast.Constant):
                if isinstance(node.args[0], ast.Name) and node.args[0].id == receiver:
                    name = str(node.args[1].value)
                    add(name, Binding(name, node.lineno, node, no_contexts, node.args[2]))
            elif isinstance(called, ast.Attribute) and called.attr in _REGISTERING and node.args:
                if isinstance(called.value, ast.Name) and called.value.id == receiver:
                    if isinstance(node.args[0], ast.Constant):
                        name = str(node.args[0].value)
                        value = node.args[1] if len(node.args) > 1 else None
                        # What is registered as None waits for its value.
                        value = None if isinstance(value, ast.Constant) else value
                        add(name, Binding(name, node.lineno, node, no_contexts, value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # Closures store on the receiver too, though what they store is not inferred from here.
            for inner in all_statements(node.body):
                if isinstance(inner, ast.Assign):
                    for target in inner.targets:
                        for name, _ in targets(target):
                            add(name, Binding(name, inner.lineno, inner, no_contexts, None))
    return stores


def _either(value: ast.expr) -> Iterator[ast.expr]:
    """The values that a conditional expression may give."""
    if isinstance(value, ast.IfExp):
        yield from _either(value.body)
        yield from _either(value.orelse)
    else:
        yield value


def _returns_its_class(function: FunctionDeclaration) -> bool:
    """True for a class decorator, or a maker of one, that gives back the class it got and sets nothing on it."""
    arguments = function.node.args
    names = {argument.arg for argument in [*arguments.posonlyargs, *arguments.args]}
    nested = [node for node in ast.walk(ast.Module(function.body, [])) if isinstance(node, ast.FunctionDef)]
    for inner in nested:
        names.update(argument.arg for argument in [*inner.args.posonlyargs, *inner.args.args])
    returned = False
    for node in ast.walk(ast.Module(function.body, [])):
        if isinstance(node, ast.Return) and node.value is not None:
            for value in _either(node.value):
                # A decorator that wraps another (dataclass(cls), a registry's) gives what that one gives.
                if not isinstance(value, ast.Name) and not (isinstance(value, ast.Call) and value.args):
                    return False
            returned = True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            return False
    return returned
