"""What class decorators do to a constructor, told from what they are or, for the program's own, from their bodies."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.literals import Literals, Written
from driftcheck.surface.syntax import called_name, named_parameters, own_nodes
from driftcheck.surface.types import Class, External, Function, Instance, Partial

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

Kind = Literal["nothing", "dataclass", "pydantic dataclass", "attrs", "replaced", "unknown"]

_DEPTH = 6
_MAKERS: dict[str, Kind] = {
    "dataclasses.dataclass": "dataclass",
    "pydantic.dataclasses.dataclass": "pydantic dataclass",
    **dict.fromkeys(
        ("attr.s", "attr.attrs", "attr.attributes", "attr.dataclass", "attr.define", "attr.mutable", "attr.frozen",
         "attrs.define", "attrs.mutable", "attrs.frozen"),
        "attrs",
    ),
}  # fmt: skip
_MODERN_ATTRS = ("define", "mutable", "frozen")
_TRANSFORMS = frozenset(("typing.dataclass_transform", "typing_extensions.dataclass_transform"))
_HARMLESS = ("typing.", "typing_extensions.", "functools.", "abc.", "enum.", "warnings.", "builtins.", "atexit.",
             "copyreg.", "unittest.")  # fmt: skip
_DEPRECATIONS = frozenset(("warnings.deprecated", "typing_extensions.deprecated"))


@dataclass(frozen=True, eq=False, slots=True)
class Transformation:
    """What one decorator does.

    "replaced" puts another `__init__` in place of the class's own: `replacement` is it, `hands_on` says which of its
    variadic parameters reach the old one. `options` are the keywords that a dataclass or attrs decorator was given.
    """

    kind: Kind
    options: Mapping[str, Written] = field(default_factory=dict)
    literals: Literals | None = None
    is_modern: bool = False
    by_annotation: bool = False
    replacement: FunctionDeclaration | None = None
    hands_on: tuple[bool, bool] = (False, False)
    wraps: bool = False
    hides_signature: bool = False
    reason: str = ""
    added: Mapping[str, FunctionDeclaration] = field(default_factory=dict)

    def flag(self, name: str, *, default: bool) -> bool:
        """A true-or-false option."""
        value = self.option_value(name)
        return default if value is None else value

    def option_value(self, name: str) -> bool | None:
        """A true-or-false option, None where it was not given."""
        written = self.options.get(name)
        if written is None or self.literals is None:
            return None
        return self.literals.flag(*written)

    @property
    def extra(self) -> str:
        """What pydantic does with unknown keywords: "ignore" unless the configuration says otherwise."""
        written = self.options.get("config")
        if written is None or self.literals is None:
            return "ignore"
        return self.literals.text(self.literals.entries(*written).get("extra")) or "ignore"


NOTHING = Transformation("nothing")


@dataclass(eq=False, slots=True)
class _Reading:
    """What the body of a decorator function was seen to do to the class it gets."""

    made: tuple[Kind, ast.Call, FunctionDeclaration, bool] | None = None
    replacement: FunctionDeclaration | None = None
    old_names: set[str] = field(default_factory=set)
    added: dict[str, FunctionDeclaration] = field(default_factory=dict)
    reason: str = ""
    seen: set[FunctionDeclaration] = field(default_factory=set)


class ClassDecorators:
    """Reads the decorators of classes, each class once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.literals = Literals(program)
        self._memo: dict[ClassDeclaration, tuple[Transformation, ...]] = {}
        self._readings: dict[FunctionDeclaration, _Reading] = {}

    def transformations(self, class_: ClassDeclaration) -> tuple[Transformation, ...]:
        """What is done to a class when it is made, in order: by its bases and metaclass, then by its decorators."""
        found = self._memo.get(class_)
        if found is None:
            self._memo[class_] = ()
            scope = self.program.scope_of_class(class_)
            decorators = [self._decorator(node, scope) for node in reversed(class_.node.decorator_list)]
            found = self._memo[class_] = (*self._inherited(class_), *decorators)
        return found

    def _inherited(self, class_: ClassDeclaration) -> list[Transformation]:
        """What a base's `__init_subclass__` does, and what `dataclass_transform` promises of a base or metaclass."""
        if not class_.node.bases and not class_.node.keywords:
            return []
        for base in self.program.classes.linearize(class_):
            if not isinstance(base, Class):
                continue
            declaration = base.declaration
            if declaration is not class_:
                for binding in declaration.members.get("__init_subclass__", ()):
                    if binding.function is None:
                        continue
                    hook = Function(binding.function, skips_first=True)
                    made = self._function(hook, _class_line(class_), self.program.scope_of_class(class_))
                    if made.kind in ("dataclass", "pydantic dataclass", "attrs", "replaced"):
                        return [made]
                if promised := self._promised(declaration, class_):
                    return [promised]
            for keyword in declaration.node.keywords:
                if keyword.arg == "metaclass":
                    metaclass = self.program.inference.infer(keyword.value, self.program.scope_of_class(declaration))
                    if isinstance(metaclass, Class) and (promised := self._promised(metaclass.declaration, class_)):
                        return [promised]
        return []

    def _promised(self, maker: ClassDeclaration, class_: ClassDeclaration) -> Transformation | None:
        if not any(called_name(node) == "dataclass_transform" for node in maker.node.decorator_list):
            return None
        made = self._transform(maker.node.decorator_list, self.program.scope_of_class(maker))
        return self._with_options(made, _class_line(class_), self.program.scope_of_class(class_)) if made else None

    def added(self, class_: ClassDeclaration) -> Mapping[str, FunctionDeclaration]:
        """The methods that the decorators of a class set on it, by name."""
        if not class_.node.decorator_list:
            return {}
        found: dict[str, FunctionDeclaration] = {}
        for transformation in self.transformations(class_):
            found.update(transformation.added)
        return found

    def dataclass_transformation(self, class_: ClassDeclaration) -> Transformation | None:
        """The decorator that makes a class a dataclass, None where there is none."""
        for transformation in reversed(self.transformations(class_)):
            if transformation.kind in ("dataclass", "pydantic dataclass"):
                return transformation
        return None

    def attrs_transformation(self, class_: ClassDeclaration) -> Transformation | None:
        """The decorator by which attrs makes a class, None where there is none."""
        return next((made for made in self.transformations(class_) if made.kind == "attrs"), None)

    def _decorator(self, node: ast.expr, scope: Scope, depth: int = 0) -> Transformation:
        if depth > _DEPTH:
            return Transformation("unknown", reason="class decorator")
        called, call = (node.func, node) if isinstance(node, ast.Call) else (node, None)
        type_ = self.program.inference.infer(called, scope)
        if isinstance(type_, External):
            return self._external(type_.path, call, scope)
        if isinstance(type_, Function):
            return self._function(type_, call, scope)
        if isinstance(type_, Partial) and isinstance(type_.function, External):
            made = self._external(type_.function.path, type_.call, self._home(called, scope))
            return self._with_options(made, call, scope)
        if call is None:
            # `frozen = dataclass(frozen=True)`, then `@frozen`.
            definition = self.program.annotations.definition(called, scope)
            if definition is not None and isinstance(definition[0].value, ast.Call) and not definition[0].path:
                return self._decorator(definition[0].value, definition[1], depth + 1)
        if isinstance(type_, Class | Instance):
            return NOTHING if self._returns_class(type_) else self._unknown(called)
        return self._unknown(called)

    def _unknown(self, node: ast.expr) -> Transformation:
        return Transformation("unknown", reason=f"class decorator {ast.unparse(node)}")

    def _home(self, node: ast.expr, scope: Scope) -> Scope:
        definition = self.program.annotations.definition(node, scope)
        return definition[1] if definition is not None else scope

    def _returns_class(self, type_: Class | Instance) -> bool:
        method = self.program.inference.attribute(type_, "__call__") if isinstance(type_, Instance) else None
        return isinstance(method, Function) and self._reading(method.declaration).reason == ""

    def _external(self, path: str, call: ast.Call | None, scope: Scope) -> Transformation:
        kind = _MAKERS.get(path)
        if kind is not None:
            name = path.rpartition(".")[2]
            made = Transformation(
                kind, literals=self.literals, is_modern=name in _MODERN_ATTRS, by_annotation=name == "dataclass"
            )
            return self._with_options(made, call, scope)
        if path in _DEPRECATIONS:
            return Transformation("nothing", hides_signature=True)
        if path.startswith(_HARMLESS):
            return NOTHING
        return Transformation("unknown", reason=f"class decorator {path}")

    def _with_options(self, made: Transformation, call: ast.Call | None, scope: Scope) -> Transformation:
        if call is None:
            return made
        options = dict(made.options)
        for keyword in call.keywords:
            if keyword.arg is not None:
                options[keyword.arg] = (keyword.value, scope)
            else:
                options.update(self.literals.entries(keyword.value, scope))
        return replace(made, options=options)

    # The program's own decorators

    def _function(self, function: Function, call: ast.Call | None, scope: Scope) -> Transformation:
        made = self._judged(function, call, scope)
        added = self._reading(function.declaration).added
        return replace(made, added=added) if added else made

    def _judged(self, function: Function, call: ast.Call | None, scope: Scope) -> Transformation:
        declaration = function.declaration
        reading = self._reading(declaration)
        if reading.made is not None:
            return self._forwarded(reading.made, declaration, call, scope, skips_first=function.skips_first)
        if reading.replacement is not None:
            replacement = reading.replacement
            wraps = any(called_name(node) == "wraps" for node in replacement.node.decorator_list)
            return Transformation(
                "replaced",
                replacement=replacement,
                hands_on=_handed_on(replacement, reading.old_names),
                wraps=wraps,
            )
        if reading.reason:
            transform = self._declared_transform(declaration)
            if transform is not None:
                return self._with_options(transform, call, scope)
            return Transformation("unknown", reason=f"class decorator {declaration.name}")
        return NOTHING

    def _declared_transform(self, declaration: FunctionDeclaration) -> Transformation | None:
        """The dataclass that `dataclass_transform` promises where the body shows nothing."""
        return self._transform(declaration.node.decorator_list, self.program.scope_of_function(declaration))

    def _transform(self, decorators: list[ast.expr], scope: Scope) -> Transformation | None:
        for node in decorators:
            if isinstance(node, ast.Call):
                type_ = self.program.inference.infer(node.func, scope)
                if isinstance(type_, External) and type_.path in _TRANSFORMS:
                    options: dict[str, Written] = {}
                    for keyword in node.keywords:
                        if keyword.arg == "kw_only_default":
                            options["kw_only"] = (keyword.value, scope)
                    return Transformation("dataclass", options, self.literals)
        return None

    def _forwarded(
        self,
        made: tuple[Kind, ast.Call, FunctionDeclaration, bool],
        decorator: FunctionDeclaration,
        call: ast.Call | None,
        scope: Scope,
        *,
        skips_first: bool,
    ) -> Transformation:
        """A dataclass made inside a decorator: its options there, with those that the decorator was called with."""
        kind, inner, holder, is_modern = made
        inside = self.program.function_scope(holder)
        arguments = decorator.node.args
        named = [argument.arg for argument in named_parameters(arguments)]
        given: dict[str, Written] = {}
        rest: dict[str, Written] = {}
        for keyword in call.keywords if call is not None else ():
            if keyword.arg is not None:
                (given if keyword.arg in named else rest)[keyword.arg] = (keyword.value, scope)
        positional = named[1:] if skips_first else named
        for name, argument in zip(positional, call.args if call is not None else (), strict=False):
            given[name] = (argument, scope)
        for name, default in _defaults(arguments):
            given.setdefault(name, (default, self.program.scope_of_function(decorator)))
        options: dict[str, Written] = {}
        for keyword in inner.keywords:
            value = keyword.value
            if keyword.arg is None:
                is_rest = (
                    isinstance(value, ast.Name) and arguments.kwarg is not None and value.id == arguments.kwarg.arg
                )
                options.update(rest if is_rest else self.literals.entries(value, inside))
            elif isinstance(value, ast.Name) and value.id in named:
                if value.id in given:
                    options[keyword.arg] = given[value.id]
            else:
                options[keyword.arg] = (value, inside)
        if "config" in given and "extra" in self.literals.entries(*given["config"]):
            # A decorator's own configuration wins over the one it starts from, however it merges them.
            options["config"] = given["config"]
        return Transformation(kind, options, self.literals, is_modern)

    def _reading(self, declaration: FunctionDeclaration) -> _Reading:
        found = self._readings.get(declaration)
        if found is None:
            found = self._readings[declaration] = _Reading()
            arguments = declaration.node.args
            names = {argument.arg for argument in [*arguments.posonlyargs, *arguments.args]}
            self._read(declaration, names, found, 0)
        return found

    def _read(
        self,
        declaration: FunctionDeclaration,
        names: set[str],
        reading: _Reading,
        depth: int,
        *,
        is_helper: bool = False,
    ) -> None:
        """Notes what a function does to the classes that its parameters may be; `names` are those parameters.

        What a helper returns is nobody's concern, unless the decorator returns it.
        """
        if depth > _DEPTH or declaration in reading.seen:
            return
        reading.seen.add(declaration)
        scope = self.program.function_scope(declaration)
        inner: dict[str, FunctionDeclaration] = {}
        for name, bindings in scope.locals.items():
            for binding in bindings:
                if binding.function is not None:
                    inner[name] = binding.function
        if not is_helper and all(isinstance(statement, ast.Expr | ast.Pass) for statement in declaration.body):
            reading.reason = reading.reason or "body that says nothing"
        for node in own_nodes(declaration.body):
            if isinstance(node, ast.Call):
                self._read_call(node, declaration, scope, names, reading, depth)
            elif isinstance(node, ast.Assign):
                self._read_assignment(node, names, inner, reading)
            elif isinstance(node, ast.Return) and node.value is not None and not is_helper:
                self._read_return(node.value, scope, names, inner, reading, depth)

    def _read_call(
        self,
        node: ast.Call,
        declaration: FunctionDeclaration,
        scope: Scope,
        names: set[str],
        reading: _Reading,
        depth: int,
    ) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(node.args) == 3:
            self._read_setattr(node, scope, names, reading)
            return
        passed = [i for i, argument in enumerate(node.args) if isinstance(argument, ast.Name) and argument.id in names]
        if not passed and node.args:
            return
        type_ = self.program.inference.infer(node.func, scope)
        if isinstance(type_, External):
            kind = _MAKERS.get(type_.path)
            if kind is not None:
                reading.made = (kind, node, declaration, type_.path.rpartition(".")[2] in _MODERN_ATTRS)
            elif type_.path == "functools.partial":
                return
        elif isinstance(type_, Function) and passed:
            parameters = [*type_.declaration.node.args.posonlyargs, *type_.declaration.node.args.args]
            if type_.skips_first:
                parameters = parameters[1:]
            helped = {parameters[index].arg for index in passed if index < len(parameters)}
            if helped:
                self._read(type_.declaration, helped, reading, depth + 1, is_helper=True)

    def _read_setattr(self, node: ast.Call, scope: Scope, names: set[str], reading: _Reading) -> None:
        target, name, value = node.args
        if isinstance(target, ast.Name) and target.id in names and isinstance(name, ast.Constant):
            found = self.program.inference.infer(value, scope) if isinstance(value, ast.Name) else None
            if name.value == "__init__":
                if isinstance(found, Function):
                    reading.replacement = found.declaration
                else:
                    reading.reason = "another __init__"
            elif isinstance(found, Function) and isinstance(name.value, str):
                reading.added[name.value] = found.declaration

    def _read_assignment(
        self, node: ast.Assign, names: set[str], inner: Mapping[str, FunctionDeclaration], reading: _Reading
    ) -> None:
        value = node.value
        if isinstance(value, ast.Attribute) and value.attr == "__init__" and _is_one_of(value.value, names):
            reading.old_names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        for target in node.targets:
            if not isinstance(target, ast.Attribute) or not _is_one_of(target.value, names):
                continue
            function = inner.get(value.id) if isinstance(value, ast.Name) else None
            if target.attr == "__init__":
                reading.replacement = function
                reading.reason = reading.reason if function is not None else "another __init__"
            elif function is not None:
                reading.added[target.attr] = function

    def _read_return(
        self,
        value: ast.expr,
        scope: Scope,
        names: set[str],
        inner: Mapping[str, FunctionDeclaration],
        reading: _Reading,
        depth: int,
    ) -> None:
        if isinstance(value, ast.Name) and value.id in names:
            return
        if isinstance(value, ast.Name) and value.id in inner:
            # A maker of decorators: the function it returns is the one that gets the class.
            arguments = [*inner[value.id].node.args.posonlyargs, *inner[value.id].node.args.args]
            if arguments:
                self._read(inner[value.id], names | {arguments[0].arg}, reading, depth + 1)
            return
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name) and value.func.id in inner:
                return
            type_ = self.program.inference.infer(value.func, scope)
            if isinstance(type_, Function) or (isinstance(type_, External) and type_.path in _MAKERS):
                return
        if isinstance(value, ast.IfExp):
            self._read_return(value.body, scope, names, inner, reading, depth)
            self._read_return(value.orelse, scope, names, inner, reading, depth)
            return
        if isinstance(value, ast.Constant) and value.value is None:
            return
        reading.reason = reading.reason or "something else than the class"


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    for node, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield node.arg, default
    for node, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is not None:
            yield node.arg, keyword_default


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _class_line(class_: ClassDeclaration) -> ast.Call:
    """The keywords of a class statement as the call that they are."""
    keywords = [keyword for keyword in class_.node.keywords if keyword.arg != "metaclass"]
    return ast.Call(ast.Name(class_.name, ast.Load()), [], keywords)


def _handed_on(function: FunctionDeclaration, old_names: set[str]) -> tuple[bool, bool]:
    """Whether a replaced `__init__` passes its `*args` and its `**kwargs` on to the old one."""
    arguments = function.node.args
    positional = keywords = False
    for node in own_nodes(function.body):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in old_names:
            continue
        for argument in node.args:
            if (
                isinstance(argument, ast.Starred)
                and isinstance(argument.value, ast.Name)
                and arguments.vararg is not None
            ):
                positional = positional or argument.value.id == arguments.vararg.arg
        for keyword in node.keywords:
            if keyword.arg is None and isinstance(keyword.value, ast.Name) and arguments.kwarg is not None:
                keywords = keywords or keyword.value.id == arguments.kwarg.arg
    return positional, keywords
