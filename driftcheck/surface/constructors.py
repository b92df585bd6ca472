"""Constructors: the signature that a call of a class meets, whether somebody wrote it or a library makes it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.surface.accepted import (
    ANYTHING,
    DROPPED,
    Constructor,
    handed_on,
    signature_of,
    takes_anything,
    with_parameter,
)
from driftcheck.surface.class_decorators import Transformation
from driftcheck.surface.classes import Base, known_class
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.fields import (
    MODELS,
    NAMED_TUPLES,
    STRUCTS,
    TYPED_DICTIONARIES,
    Field,
    Fields,
    parameters_of_fields,
)
from driftcheck.surface.models import VALIDATION_ERROR, Models
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Class, External, Function, Unknown

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.signatures import Callee

_NOTHING = Signature()
_GENERIC = frozenset(
    ("typing.Generic", "typing_extensions.Generic", "typing.Protocol", "typing_extensions.Protocol", "builtins.object",
     "abc.ABC")
)  # fmt: skip
_PROTOCOLS = frozenset(("typing.Protocol", "typing_extensions.Protocol"))
_ARGUMENTS = Signature((Parameter("args", ParameterKind.VAR_POSITIONAL),))
# Bases of other libraries: what they take, and what they state. A module of torch refuses whatever it is given.
_LIBRARIES: dict[str, tuple[Signature, Signature]] = {
    "torch.nn.Module": (_NOTHING, ANYTHING),
    "torch.nn.modules.module.Module": (_NOTHING, ANYTHING),
    "torch.nn.modules.Module": (_NOTHING, ANYTHING),
    "torch.nn.Sequential": (_ARGUMENTS, _ARGUMENTS),
    "torch.autograd.Function": (ANYTHING, ANYTHING),
}
# Exceptions that do more with their arguments than keep them; the others take any positional one and no keywords.
_PARTICULAR_EXCEPTIONS = (
    OSError, ImportError, AttributeError, NameError, StopIteration, SystemExit, SyntaxError, UnicodeError,
)  # fmt: skip


class Constructors:
    """Finds the signatures that calls of classes meet, each class once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.decorators = program.class_decorators
        self.fields = Fields(program, self.decorators)
        self.models = Models(program, self.fields)
        self._memo: dict[ClassDeclaration, Callee | Unknown] = {}

    def callee(self, class_: Class) -> Callee | Unknown:
        """What a call of the class meets; Unknown, with the reason, where that can't be told."""
        declaration = class_.declaration
        found = self._memo.get(declaration)
        if found is None:
            self._memo[declaration] = Unknown("cyclic definition")
            found = self._memo[declaration] = self._callee(declaration)
        if isinstance(found, Unknown) or not (class_.is_open or self.program.classes.is_stand_in(declaration)):
            return found
        return replace(found, is_declared=True)

    def _callee(self, class_: ClassDeclaration) -> Callee | Unknown:
        from driftcheck.surface.signatures import Callee

        made = self._construct(class_)
        if isinstance(made, Unknown):
            return made
        stated = made.stated if made.stated is not None and made.stated != made.signature else None
        place = made.place
        return Callee(
            made.signature,
            f"{class_.symbol}.__init__",
            made.name,
            place.module.path,
            place.line,
            place,
            called=class_,
            stated=stated,
            raises=made.raises,
            drops_keywords=made.drops_keywords,
        )

    def _construct(self, class_: ClassDeclaration) -> Constructor | Unknown:
        linear = self.program.classes.linearize(class_)
        if self.program.classes.is_enum(class_):
            return self._enumeration(class_)
        outer = self._metaclass_call(linear)
        if isinstance(outer, Unknown):
            return outer
        inner = self._inner(class_, linear)
        if outer is None:
            return inner
        if not takes_anything(outer.signature):
            return outer
        if not _calls_on(outer.place):
            return Unknown(f"metaclass with {outer.name}")
        return inner if isinstance(inner, Unknown) else replace(inner, stated=outer.signature)

    def _inner(self, class_: ClassDeclaration, linear: Sequence[Base]) -> Constructor | Unknown:
        """What `__new__` and `__init__` accept between them; a call has to fit both."""
        found_new, found = self._new(linear), self._initializer(class_, linear)
        if found_new is None:
            return found[0]
        new, made = found_new[0], found[0]
        if isinstance(new, Unknown) or isinstance(made, Unknown):
            return new if isinstance(new, Unknown) or not takes_anything(new.signature) else made
        # `inspect.signature` shows the one that is nearer, and `__new__` where one class has both.
        nearer = new if found_new[1] <= found[1] else made
        narrower = new if takes_anything(made.signature) else made if takes_anything(new.signature) else nearer
        return narrower if nearer is narrower else replace(narrower, stated=nearer.seen)

    def _new(self, linear: Sequence[Base]) -> tuple[Constructor | Unknown, int] | None:
        """A `__new__` that somebody wrote, and how far away; what stands behind an unknown base is not looked for."""
        for index, base in enumerate(linear):
            if isinstance(base, Class):
                found = self._written(base, "__new__")
                if found is not None:
                    return found, index
            elif isinstance(base, Unknown):
                return None
        return None

    def _initializer(self, class_: ClassDeclaration, linear: Sequence[Base]) -> tuple[Constructor | Unknown, int]:
        """The `__init__` that the resolution order leads to, and how far away it is."""
        stated: Signature | None = None
        made: Constructor | Unknown | None = None
        nearest = len(linear)
        for index, base in enumerate(linear):
            if isinstance(base, Unknown):
                return base, index
            if isinstance(base, External):
                made = self._external(base.path, class_, linear)
            else:
                made = self._own(base, linear[index + 1 :])
                if made is None and stated is None and self._is_bare_protocol(base.declaration):
                    # A protocol's own `__init__` takes anything and looks for the real one when it runs.
                    stated, nearest = ANYTHING, index
                if made is None and self._has_called_base(base.declaration):
                    return Unknown("base that a function makes"), index
            if made is not None:
                nearest = min(nearest, index)
                made = self._before_model(made, class_, linear[index + 1 :], linear)
                break
        if made is None:
            made = Constructor(_NOTHING, class_, class_.name)
        if isinstance(made, Unknown):
            return made, nearest
        if any(transformation.hides_signature for transformation in self.decorators.transformations(class_)):
            stated = ANYTHING
        return made if stated is None else replace(made, stated=stated), nearest

    def _before_model(
        self, made: Constructor | Unknown, class_: ClassDeclaration, rest: Sequence[Base], linear: Sequence[Base]
    ) -> Constructor | Unknown:
        """An `__init__` that somebody wrote for a pydantic model, with what pydantic states for it."""
        for base in rest:
            if isinstance(base, External) and base.path in MODELS and isinstance(made, Constructor):
                found = self.models.constructor(base.path, class_, linear, made)
                return made if isinstance(found, Unknown) else found
        return made

    # What a class of the program brings along

    def _own(self, class_: Class, rest: Sequence[Base]) -> Constructor | Unknown | None:
        """The `__init__` that a class has in its own namespace once its decorators have run, None where it has none."""
        declaration = class_.declaration
        made: Constructor | Unknown | None = self._written(class_, "__init__")
        is_written = made is not None
        for transformation in self.decorators.transformations(declaration):
            if transformation.kind == "unknown":
                return Unknown(transformation.reason)
            if transformation.kind == "replaced":
                old = made if made is not None else self._initializer(declaration, rest)[0]
                made = self._replaced(transformation, old, declaration)
            elif transformation.kind in ("dataclass", "pydantic dataclass"):
                made = self._dataclass(declaration, transformation, made)
            elif transformation.kind == "attrs":
                detects = transformation.flag("auto_detect", default=transformation.is_modern)
                if transformation.flag("init", default=not (is_written and detects)):
                    fields = self._fields_or_unknown(declaration, rest)
                    made = fields or self._from_fields(
                        declaration, self.fields.of_attrs(declaration, transformation), f"{declaration.name}.__init__"
                    )
        return made

    def _written(self, class_: Class, name: str) -> Constructor | Unknown | None:
        """The `__init__` or `__new__` that stands in a class's own body."""
        declaration = class_.declaration
        bindings = declaration.members.get(name)
        if not bindings:
            return None
        scope = self.program.class_scope(declaration)
        live = self.program.classes.live_bindings(bindings, scope)
        found: list[Constructor] = []
        for binding in live:
            function = binding.function
            if function is None:
                type_ = self.program.binding_type(binding, scope)
                if not isinstance(type_, Function):
                    return Unknown(f"{declaration.name}.{name} made by a call")
                function = type_.declaration
            decorated = self.program.inference.decorated(function, scope)
            if not isinstance(decorated, Function):
                return decorated if isinstance(decorated, Unknown) else Unknown(f"{declaration.name}.{name}")
            function = decorated.declaration
            stated = ANYTHING if decorated.transformed == "wrapped" else None
            found.append(Constructor(self._signature(function), function, _qualified(function), stated))
        if not found:
            return None
        if any(other.signature != found[0].signature for other in found[1:]):
            return Unknown("one of several")
        return found[0]

    def _signature(self, function: FunctionDeclaration) -> Signature:
        from driftcheck.surface.signatures import declared_signature

        return declared_signature(function, skips_first=True)

    def _has_called_base(self, class_: ClassDeclaration) -> bool:
        """True for `class X(wrap(Y))`: whatever `wrap` says it returns, it may return a subclass of that."""
        scope = self.program.scope_of_class(class_)
        for node in class_.node.bases:
            if isinstance(node, ast.Call):
                found = self.program.inference.infer(node, scope)
                # `class X(namedtuple("X", …))` derives from what the call itself describes.
                if isinstance(found, Class) and found.declaration.node.bases[:1] != [node.func]:
                    return True
        return False

    def _is_bare_protocol(self, class_: ClassDeclaration) -> bool:
        """True for a protocol that neither writes nor inherits an `__init__`."""
        bases = self.program.classes.bases(class_)
        if not any(isinstance(base, External) and base.path in _PROTOCOLS for base in bases):
            return False
        linear = self.program.classes.linearize(class_)
        return not any(isinstance(base, Class) and "__init__" in base.declaration.members for base in linear)

    def _replaced(
        self, transformation: Transformation, old: Constructor | Unknown, class_: ClassDeclaration
    ) -> Constructor | Unknown:
        """An `__init__` put there by a decorator, which may hand what it does not name on to the old one."""
        assert transformation.replacement is not None
        replacement = transformation.replacement
        stated = self._signature(replacement)
        if transformation.wraps and not isinstance(old, Unknown):
            stated = old.seen
        merged = handed_on(self._signature(replacement), old, transformation.hands_on)
        if isinstance(merged, Unknown):
            return merged
        place = old.place if isinstance(old, Constructor) else replacement
        return Constructor(merged, place, f"{class_.name}.__init__", stated)

    # Fields

    def _dataclass(
        self, class_: ClassDeclaration, transformation: Transformation, written: Constructor | Unknown | None
    ) -> Constructor | Unknown | None:
        is_pydantic = transformation.kind == "pydantic dataclass"
        if not is_pydantic and (written is not None or not transformation.flag("init", default=True)):
            return written
        unknown = self._fields_or_unknown(class_, self.program.classes.linearize(class_)[1:])
        if unknown is not None:
            return unknown
        fields = self.fields.of_dataclass(class_, transformation)
        made = self._from_fields(class_, fields, f"{class_.qualified_name}.__init__")
        if not is_pydantic:
            return made
        stated = written.seen if isinstance(written, Constructor) else made.signature
        made = replace(made, name=class_.name, raises=VALIDATION_ERROR)
        if transformation.extra == "forbid":
            return replace(made, stated=stated)
        drops = transformation.extra != "allow"
        return replace(made, signature=with_parameter(made.signature, DROPPED), stated=stated, drops_keywords=drops)

    def _fields_or_unknown(self, class_: ClassDeclaration, bases: Sequence[Base]) -> Unknown | None:
        """Why the fields are not all known: a base that may bring some of its own."""
        for base in bases:
            if isinstance(base, Unknown):
                return base
            if isinstance(base, External) and base.path not in _GENERIC | MODELS | STRUCTS | _LIBRARIES.keys():
                if known_class(base.path) is None:
                    return Unknown(f"outside the target: base {base.path}")
        return None

    def _from_fields(self, class_: ClassDeclaration, fields: dict[str, Field], name: str) -> Constructor:
        return Constructor(Signature(parameters_of_fields(fields), "None"), class_, name)

    # Bases outside the program

    def _external(self, path: str, class_: ClassDeclaration, linear: Sequence[Base]) -> Constructor | Unknown | None:
        """What a base outside the program gives to a class, None where it gives no `__init__`."""
        if path in _GENERIC:
            return None
        if path in MODELS:
            return self.models.constructor(path, class_, linear)
        if path in STRUCTS:
            return self._from_fields(class_, self.fields.of_struct(class_), class_.name)
        if path in NAMED_TUPLES:
            return self._named_tuple(linear)
        if path in TYPED_DICTIONARIES:
            # A dictionary takes any key and requires none, whatever a type checker says.
            return Constructor(ANYTHING, class_, class_.name, raises="")
        if path in _LIBRARIES:
            return Constructor(_LIBRARIES[path][0], class_, f"{path.rpartition('.')[2]}.__init__", _LIBRARIES[path][1])
        known = known_class(path)
        if known is None:
            return Unknown(f"outside the target: base {path}")
        return self._standard(known, class_)

    def _standard(self, known: type, class_: ClassDeclaration) -> Constructor | Unknown | None:
        """What a class of Python's own library accepts, as the real one says."""
        inherited = inspect.getattr_static(known, "__init__"), inspect.getattr_static(known, "__new__")
        if inherited == (vars(object)["__init__"], vars(object)["__new__"]):
            return None
        name = f"{known.__qualname__}.__init__"
        try:
            return Constructor(signature_of(known), class_, name)
        except (ValueError, TypeError):
            pass
        if issubclass(known, BaseException) and not issubclass(known, _PARTICULAR_EXCEPTIONS):
            return Constructor(_ARGUMENTS, class_, class_.name)
        return Unknown(f"constructor of {known.__module__}.{known.__qualname__}")

    def _named_tuple(self, linear: Sequence[Base]) -> Constructor:
        for base in linear:
            if isinstance(base, Class):
                bases = self.program.classes.bases(base.declaration)
                if any(isinstance(inner, External) and inner.path in NAMED_TUPLES for inner in bases):
                    found = self.fields.of_named_tuple(base.declaration)
                    return self._from_fields(base.declaration, found, f"{base.declaration.name}.__new__")
        first = linear[0]
        assert isinstance(first, Class)
        return self._from_fields(first.declaration, {}, f"{first.declaration.name}.__new__")

    def _enumeration(self, class_: ClassDeclaration) -> Constructor:
        import enum

        value = Signature((Parameter("value"),))
        return Constructor(value, class_, class_.name, signature_of(enum.Enum))

    # Metaclasses

    def _metaclass_call(self, linear: Sequence[Base]) -> Constructor | Unknown | None:
        """The `__call__` of a metaclass, None where it is type's own."""
        for base in linear:
            if not isinstance(base, Class):
                continue
            for keyword in base.declaration.node.keywords:
                if keyword.arg == "metaclass":
                    scope = self.program.scope_of_class(base.declaration)
                    return self._call_of_metaclass(self.program.inference.infer(keyword.value, scope))
        return None

    def _call_of_metaclass(self, metaclass: object) -> Constructor | Unknown | None:
        if isinstance(metaclass, External):
            known = known_class(metaclass.path)
            if known is not None and issubclass(known, type):
                return None
            return Unknown(f"outside the target: metaclass {metaclass.path}")
        if not isinstance(metaclass, Class):
            return Unknown("metaclass")
        for base in self.program.classes.linearize(metaclass.declaration):
            if isinstance(base, Class):
                found = self._written(base, "__call__")
                if found is not None:
                    return found
            elif isinstance(base, Unknown) or known_class(base.path) is None:
                return Unknown("metaclass")
        return None


def _qualified(function: FunctionDeclaration) -> str:
    return function.qualified_name.rpartition("<locals>.")[2]


def _calls_on(place: FunctionDeclaration | ClassDeclaration) -> bool:
    """True for a metaclass's `__call__` that passes all it gets to the one it overrides."""
    if not isinstance(place, FunctionDeclaration):
        return False
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__call__"
        and any(isinstance(argument, ast.Starred) for argument in node.args)
        and any(keyword.arg is None for keyword in node.keywords)
        for node in own_nodes(place.body)
    )
