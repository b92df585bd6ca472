"""Fields: the parameters of constructors that are written as annotated names in class bodies.

Dataclasses (Python's and pydantic's), attrs, pydantic models, msgspec structs, named tuples and typed dictionaries all
read the same statements, and disagree in which bases count, what moves, what a default is and what is keyword-only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driftcheck.model import Parameter, ParameterKind
from driftcheck.surface.class_decorators import ClassDecorators, Transformation
from driftcheck.surface.classes import known_class
from driftcheck.surface.declarations import Binding, ClassDeclaration, ModuleDeclaration
from driftcheck.surface.literals import Literals
from driftcheck.surface.types import Class, External, Function

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

MODELS = frozenset(
    ("pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic.RootModel", "pydantic.root_model.RootModel",
     "pydantic_settings.BaseSettings", "pydantic_settings.main.BaseSettings")
)  # fmt: skip
STRUCTS = frozenset(("msgspec.Struct",))
NAMED_TUPLES = frozenset(("typing.NamedTuple", "typing_extensions.NamedTuple", "collections.namedtuple"))
TYPED_DICTIONARIES = frozenset(("typing.TypedDict", "typing_extensions.TypedDict"))

_FIELD_MAKERS = frozenset(
    ("dataclasses.field", "pydantic.Field", "pydantic.fields.Field", "pydantic.dataclasses.Field", "msgspec.field",
     "attr.ib", "attr.attrib", "attr.field", "attrs.field")
)  # fmt: skip
_PYDANTIC_FIELDS = frozenset(("pydantic.Field", "pydantic.fields.Field", "pydantic.dataclasses.Field"))
_ATTRS_FIELDS = frozenset(("attr.ib", "attr.attrib", "attr.field", "attrs.field"))
_UNDEFINED = frozenset(("MISSING", "NODEFAULT", "NOTHING", "PydanticUndefined", "Undefined"))
FACTORY = "<factory>"


@dataclass(frozen=True, slots=True)
class Field:
    """One field: the name it has as a parameter and what it says; `default` is source text, None where it is required.

    `on_class` is the text of the default that stays on the class as an attribute, which subclasses inherit.
    `has_other_names` where an alias that can't be read, or is no identifier, is what a call has to use.
    """

    name: str
    parameter: str
    annotation: ast.expr | None = None
    default: str | None = None
    on_class: str | None = None
    keyword_only: bool = False
    in_constructor: bool = True
    has_other_names: bool = False

    @property
    def is_aliased(self) -> bool:
        """True where the parameter is not called what the field is called."""
        return self.parameter != self.name

    def as_parameter(self, *, is_optional: bool = False) -> Parameter:
        """The parameter that the field becomes, with a default of some sort where it is optional."""
        kind = ParameterKind.KEYWORD_ONLY if self.keyword_only else ParameterKind.POSITIONAL_OR_KEYWORD
        annotation = ast.unparse(self.annotation) if self.annotation is not None else None
        default = "..." if self.default is None and is_optional else self.default
        return Parameter(self.parameter, kind, default, annotation)


def parameters_of_fields(fields: Mapping[str, Field]) -> tuple[Parameter, ...]:
    """The parameters of a constructor made from fields: keyword-only ones follow the others."""
    shown = [field for field in fields.values() if field.in_constructor]
    ordered = [field for field in shown if not field.keyword_only] + [field for field in shown if field.keyword_only]
    return tuple(field.as_parameter() for field in ordered)


class Fields:
    """Reads the fields of classes, each class once."""

    def __init__(self, program: Program, decorators: ClassDecorators) -> None:
        self.program = program
        self.decorators = decorators
        self.literals = Literals(program)
        self._dataclasses: dict[ClassDeclaration, dict[str, Field]] = {}
        self._attrs: dict[ClassDeclaration, dict[str, Field]] = {}

    # Dataclasses, Python's own and pydantic's

    def of_dataclass(self, class_: ClassDeclaration, transformation: Transformation) -> dict[str, Field]:
        """The fields of a dataclass with those of its dataclass bases, in the order of its parameters' positions."""
        found = self._dataclasses.get(class_)
        if found is None:
            self._dataclasses[class_] = {}
            found = self._dataclasses[class_] = self._of_dataclass(class_, transformation)
        return found

    def _of_dataclass(self, class_: ClassDeclaration, transformation: Transformation) -> dict[str, Field]:
        fields: dict[str, Field] = {}
        for base in reversed(self.program.classes.linearize(class_)[1:]):
            if isinstance(base, Class):
                made = self._dataclass_behind(base.declaration)
                if made is not None:
                    fields.update(self.of_dataclass(*made))
        keyword_only = transformation.flag("kw_only", default=False)
        for binding in self.annotated(class_):
            head = self.head(binding.annotation, class_.module)
            if head == "KW_ONLY":
                keyword_only = True
                continue
            field = self._dataclass_field(class_, binding, transformation, keyword_only=keyword_only)
            # A class variable hides the field of a base, and keeps its place for a field that hides it in turn.
            fields[binding.name] = replace(field, in_constructor=False) if head == "ClassVar" else field
        return fields

    def _dataclass_behind(self, class_: ClassDeclaration) -> tuple[ClassDeclaration, Transformation] | None:
        """The nearest class, itself or a base, that was made a dataclass: the one whose fields it shows."""
        for base in self.program.classes.linearize(class_):
            if isinstance(base, Class):
                transformation = self.decorators.dataclass_transformation(base.declaration)
                if transformation is not None:
                    return base.declaration, transformation
        return None

    def _dataclass_field(
        self, class_: ClassDeclaration, binding: Binding, transformation: Transformation, *, keyword_only: bool
    ) -> Field:
        scope: Scope = self.program.class_scope(class_)
        name = binding.name
        field = Field(name, name, binding.annotation, keyword_only=keyword_only)
        value: ast.expr | Binding | str | None = self.class_value(class_, name)
        is_pydantic = transformation.kind == "pydantic dataclass"
        if is_pydantic:
            for metadata in annotated_metadata(binding.annotation):
                if (keywords := self.field_call(metadata, scope, _PYDANTIC_FIELDS)) is not None:
                    field = self._with_keywords(field, keywords, scope, is_pydantic=True)
        if value is None and field.default is None:
            value, scope = self._inherited_value(class_, name) or (None, scope)
        if value is None:
            return field
        if not isinstance(value, ast.expr):
            text = value.name if isinstance(value, Binding) else value
            return replace(field, default=text, on_class=text)
        makers = _FIELD_MAKERS if is_pydantic else frozenset(("dataclasses.field",))
        keywords = self.field_call(value, scope, makers)
        if keywords is None:
            text = ast.unparse(value)
            return replace(field, default=text, on_class=text)
        field = self._with_keywords(field, keywords, scope, is_pydantic=is_pydantic)
        return replace(field, on_class=None if "default_factory" in keywords else field.default)

    def _with_keywords(
        self, field: Field, keywords: dict[str, ast.expr], scope: Scope, *, is_pydantic: bool = False
    ) -> Field:
        default = self._default_of(keywords)
        if default is not None:
            field = replace(field, default=default)
        keyword_only = self._flag(keywords.get("kw_only"), scope)
        if keyword_only is not None:
            field = replace(field, keyword_only=keyword_only)
        if self._flag(keywords.get("init"), scope) is False:
            field = replace(field, in_constructor=False)
        if is_pydantic and (alias := keywords.get("validation_alias", keywords.get("alias"))) is not None:
            text = alias.value if isinstance(alias, ast.Constant) else None
            if isinstance(text, str) and text.isidentifier():
                field = replace(field, parameter=text)
            elif not (isinstance(alias, ast.Constant) and text is None):
                field = replace(field, has_other_names=True)
        return field

    def _inherited_value(self, class_: ClassDeclaration, name: str) -> tuple[ast.expr | Binding | str, Scope] | None:
        """What an annotation without a value finds on a base, as `getattr(cls, name)` does, and in which scope."""
        for base in self.program.classes.linearize(class_)[1:]:
            if isinstance(base, External):
                known = known_class(base.path)
                if known is not None and known is not object and name in vars(known):
                    return f"{base.path}.{name}", self.program.class_scope(class_)
                continue
            if not isinstance(base, Class):
                continue
            scope = self.program.class_scope(base.declaration)
            transformation = self.decorators.dataclass_transformation(base.declaration)
            annotated = [b for b in base.declaration.members.get(name, ()) if b.annotation is not None]
            if transformation is not None and annotated:
                head = self.head(annotated[-1].annotation, base.declaration.module)
                if transformation.flag("slots", default=False) and head not in ("InitVar", "ClassVar"):
                    # A member descriptor stands where the default was.
                    return None
                field = self.of_dataclass(base.declaration, transformation).get(name)
                if field is not None:
                    if field.on_class is not None:
                        return field.on_class, scope
                    continue
            value = self.class_value(base.declaration, name)
            if value is not None:
                return value, scope
        return None

    # attrs

    def of_attrs(self, class_: ClassDeclaration, transformation: Transformation) -> dict[str, Field]:
        """The fields of a class made by attrs; those of its bases come first, unless it defines them again."""
        found = self._attrs.get(class_)
        if found is None:
            self._attrs[class_] = {}
            found = self._attrs[class_] = self._of_attrs(class_, transformation)
        return found

    def _of_attrs(self, class_: ClassDeclaration, transformation: Transformation) -> dict[str, Field]:
        own = {field.name: field for field in self._own_attrs(class_, transformation)}
        fields: dict[str, Field] = {}
        for base in reversed(self.program.classes.linearize(class_)[1:]):
            inner = self.decorators.attrs_transformation(base.declaration) if isinstance(base, Class) else None
            if inner is not None and isinstance(base, Class):
                for field in self._own_attrs(base.declaration, inner):
                    fields.pop(field.name, None)
                    fields[field.name] = field
        fields = {name: field for name, field in fields.items() if name not in own}
        forces = transformation.flag("force_kw_only", default=not transformation.is_modern)
        if forces and transformation.flag("kw_only", default=False):
            fields = {name: replace(field, keyword_only=True) for name, field in fields.items()}
        return {**fields, **own}

    def _own_attrs(self, class_: ClassDeclaration, transformation: Transformation) -> Iterator[Field]:
        scope = self.program.class_scope(class_)
        keyword_only = transformation.flag("kw_only", default=False)
        made = {
            name: keywords
            for name in class_.members
            if isinstance(value := self.class_value(class_, name), ast.expr)
            and (keywords := self.field_call(value, scope, _ATTRS_FIELDS)) is not None
        }
        annotations = {binding.name: binding.annotation for binding in self.annotated(class_)}
        by_annotation = transformation.option_value("auto_attribs")
        if by_annotation is None:
            # `define` takes annotated names unless some attribute is made without an annotation.
            by_annotation = transformation.by_annotation or (
                transformation.is_modern and all(name in annotations for name in made)
            )
        names = list(annotations) if by_annotation else list(made)
        for name in names:
            annotation = annotations.get(name)
            if self.head(annotation, class_.module) == "ClassVar":
                continue
            field = Field(name, name.lstrip("_"), annotation, keyword_only=keyword_only)
            value = self.class_value(class_, name)
            if name in made:
                field = self._with_keywords(field, made[name], scope)
                if isinstance(alias := made[name].get("alias"), ast.Constant) and isinstance(alias.value, str):
                    field = replace(field, parameter=alias.value)
            elif value is not None:
                field = replace(field, default=ast.unparse(value) if isinstance(value, ast.expr) else value.name)
            yield field

    # Models, structs, named tuples, typed dictionaries

    def of_model(self, class_: ClassDeclaration) -> dict[str, Field]:
        """The fields of a pydantic model, mixins without pydantic included; all are keyword-only."""
        fields: dict[str, Field] = {}
        for base in reversed(self.program.classes.linearize(class_)):
            if not isinstance(base, Class):
                continue
            for binding in self.annotated(base.declaration):
                if binding.name.startswith("_") or binding.name == "model_config":
                    continue
                if self.head(binding.annotation, base.declaration.module) == "ClassVar":
                    continue
                fields[binding.name] = self._model_field(base.declaration, binding)
        return fields

    def _model_field(self, class_: ClassDeclaration, binding: Binding) -> Field:
        scope = self.program.class_scope(class_)
        field = Field(binding.name, binding.name, binding.annotation, keyword_only=True)
        for metadata in annotated_metadata(binding.annotation):
            if (keywords := self.field_call(metadata, scope, _PYDANTIC_FIELDS)) is not None:
                field = self._with_keywords(field, keywords, scope, is_pydantic=True)
        value = self.class_value(class_, binding.name)
        if isinstance(value, Binding):
            return replace(field, default=value.name)
        if value is None or (isinstance(value, ast.Constant) and value.value is Ellipsis):
            return field
        keywords = self.field_call(value, scope, _PYDANTIC_FIELDS)
        if keywords is None:
            return replace(field, default=ast.unparse(value))
        return self._with_keywords(field, keywords, scope, is_pydantic=True)

    def of_struct(self, class_: ClassDeclaration) -> dict[str, Field]:
        """The fields of a msgspec struct; `kw_only` holds for the fields of the class that says it."""
        fields: dict[str, Field] = {}
        for base in reversed(self.program.classes.linearize(class_)):
            if not isinstance(base, Class) or not STRUCTS.intersection(
                self.program.classes.external_bases(base.declaration)
            ):
                continue
            scope = self.program.class_scope(base.declaration)
            keyword_only = self.class_flag(base.declaration, "kw_only") is True
            for binding in self.annotated(base.declaration):
                if self.head(binding.annotation, base.declaration.module) == "ClassVar":
                    continue
                field = Field(binding.name, binding.name, binding.annotation, keyword_only=keyword_only)
                value = self.class_value(base.declaration, binding.name)
                if isinstance(value, ast.expr):
                    keywords = self.field_call(value, scope, frozenset(("msgspec.field",)))
                    default = ast.unparse(value) if keywords is None else self._default_of(keywords)
                    field = replace(field, default=default)
                elif value is not None:
                    field = replace(field, default=value.name)
                if binding.name in fields and fields[binding.name].keyword_only is not keyword_only:
                    del fields[binding.name]
                fields[binding.name] = field
        return fields

    def of_named_tuple(self, class_: ClassDeclaration) -> dict[str, Field]:
        """The fields of the class that derives from NamedTuple itself."""
        fields: dict[str, Field] = {}
        for binding in self.annotated(class_):
            value = self.class_value(class_, binding.name)
            text = ast.unparse(value) if isinstance(value, ast.expr) else None
            fields[binding.name] = Field(binding.name, binding.name, binding.annotation, text)
        return fields

    # What a class body says

    def annotated(self, class_: ClassDeclaration) -> list[Binding]:
        """The annotated names of a class body that exist at run time, each once, in order."""
        scope = self.program.class_scope(class_)
        found: dict[str, Binding] = {}
        for bindings in class_.members.values():
            for binding in bindings:
                if binding.annotation is None or binding.function is not None:
                    continue
                if (
                    not binding.contexts
                    or self.program.liveness(binding.contexts, scope, line=binding.line) is not False
                ):
                    earlier = found.get(binding.name)
                    found[binding.name] = binding
                    if earlier is not None:
                        # The last annotation holds, at the place of the first.
                        found[binding.name] = replace(binding, line=earlier.line)
        return sorted(found.values(), key=lambda binding: binding.line)

    def class_value(self, class_: ClassDeclaration, name: str) -> ast.expr | Binding | None:
        """What a class body leaves under a name: an expression, or the binding of a function or class."""
        scope = self.program.class_scope(class_)
        for binding in reversed(class_.members.get(name, ())):
            if binding.contexts and self.program.liveness(binding.contexts, scope, line=binding.line) is False:
                continue
            if binding.element == "del":
                return None
            if binding.function is not None or binding.class_ is not None:
                return binding
            if binding.value is not None:
                return binding.value
            if binding.annotation is None:
                return binding
        return None

    def class_flag(self, class_: ClassDeclaration, name: str) -> bool | None:
        """A true-or-false keyword of a class statement, None where it is not given or not literal."""
        for keyword in class_.node.keywords:
            if keyword.arg == name:
                return self._flag(keyword.value, self.program.scope_of_class(class_))
        return None

    def head(self, annotation: ast.expr | None, module: ModuleDeclaration) -> str:
        """The name that an annotation begins with, as its library calls it, found without loading any module."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = _parsed(annotation.value)
        while isinstance(annotation, ast.Subscript):
            base = annotation.value
            name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if name == "Annotated":
                annotation = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
                continue
            annotation = base
        if isinstance(annotation, ast.Attribute):
            return annotation.attr
        if isinstance(annotation, ast.Name):
            for binding in module.names.get(annotation.id, ()):
                if isinstance(binding.node, ast.ImportFrom):
                    for alias in binding.node.names:
                        if alias.asname == annotation.id:
                            return alias.name
            return annotation.id
        return ""

    # Calls of `field`, `Field`, `ib`

    def field_call(self, value: ast.expr, scope: Scope, makers: frozenset[str]) -> dict[str, ast.expr] | None:
        """The keywords of a call that makes a field, the default among them; None where the value is something else."""
        if not isinstance(value, ast.Call):
            return None
        called = self.program.inference.infer(value.func, scope)
        if isinstance(called, External) and called.path in makers:
            keywords = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg is not None}
            if value.args:
                keywords.setdefault("default", value.args[0])
            return keywords
        if isinstance(called, Function):
            return self._own_field_call(called, value, makers)
        return None

    def _own_field_call(self, function: Function, call: ast.Call, makers: frozenset[str]) -> dict[str, ast.expr] | None:
        """The keywords of a field made by a function of the program that does nothing but hand on to a maker."""
        declaration = function.declaration
        scope = self.program.function_scope(declaration)
        for statement in declaration.body:
            if not isinstance(statement, ast.Return) or not isinstance(statement.value, ast.Call):
                continue
            inner = self.program.inference.infer(statement.value.func, scope)
            if not isinstance(inner, External) or inner.path not in makers:
                continue
            given = given_arguments(declaration.node.args, call)
            made = statement.value
            written = {keyword.arg: keyword.value for keyword in made.keywords if keyword.arg is not None}
            if made.args:
                written["default"] = made.args[0]
            found: dict[str, ast.expr] = {}
            for name, value in written.items():
                if not isinstance(value, ast.Name):
                    found[name] = value
                elif value.id in given:
                    found[name] = given[value.id]
                elif value.id not in scope.parameters and name in ("default", "default_factory"):
                    # A default that the function computes: the call is all there is to show for it.
                    found["default"] = call
            if any(keyword.arg is None for keyword in made.keywords):
                found.update({name: value for name, value in given.items() if name not in scope.parameters})
            return found
        return None

    def _default_of(self, keywords: Mapping[str, ast.expr]) -> str | None:
        """The text of a field's default, None where it has none."""
        default = keywords.get("default")
        if default is not None:
            name = default.attr if isinstance(default, ast.Attribute) else getattr(default, "id", "")
            is_required = isinstance(default, ast.Constant) and default.value is Ellipsis
            if not is_required and name not in _UNDEFINED:
                return ast.unparse(default)
        factory = keywords.get("default_factory", keywords.get("factory"))
        if factory is None or (isinstance(factory, ast.Constant) and factory.value is None):
            return None
        if isinstance(factory, ast.Name | ast.Attribute):
            return FACTORY if ast.unparse(factory) in _UNDEFINED else f"{ast.unparse(factory)}()"
        return FACTORY

    def _flag(self, node: ast.expr | None, scope: Scope) -> bool | None:
        return self.literals.flag(node, scope)


def given_arguments(arguments: ast.arguments, call: ast.Call) -> dict[str, ast.expr]:
    """What a call gives to the parameters of a function, defaults included, keywords without a parameter as well."""
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    given: dict[str, ast.expr] = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            given[node.arg] = default
    given.update(zip(positional, call.args, strict=False))
    given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
    return given


def annotated_metadata(annotation: ast.expr | None) -> list[ast.expr]:
    """What stands behind the type in `Annotated[type, …]`."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str) and "Annotated" in annotation.value:
        annotation = _parsed(annotation.value)
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        base = annotation.value
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        if name == "Annotated":
            return annotation.slice.elts[1:]
    return []


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
