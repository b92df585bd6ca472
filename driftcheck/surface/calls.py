"""What calls give: constructors, functions with type variables, and the built-in functions that hand things through."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from driftcheck.surface.classes import substitute
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.libraries import OUTSIDE, gives_receiver, is_torch_module, result_of
from driftcheck.surface.made import MAKERS, made_class
from driftcheck.surface.types import (
    NONE,
    Absent,
    Class,
    Dictionary,
    External,
    Function,
    Instance,
    Lambda,
    Literal,
    Partial,
    Super,
    Tuple,
    Type,
    TypeVariable,
    Union,
    Unknown,
    builtin,
    members_of,
    told_by_names,
    union,
)

if TYPE_CHECKING:
    from driftcheck.surface.inference import Inference
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

_SAME = frozenset(
    ("copy.copy", "copy.deepcopy", "dataclasses.replace", "typing.cast", "builtins.sorted", "builtins.reversed")
)
_MODULE_CONTAINERS = frozenset(("torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential"))
_CONTAINERS = frozenset(("list", "set", "frozenset", "tuple"))
_PLAIN = frozenset(("str", "int", "float", "bool", "bytes", "len", "isinstance", "issubclass", "hasattr", "repr", "id"))


class Calls:
    """Infers what calls return."""

    def __init__(self, program: Program, inference: Inference) -> None:
        self.program = program
        self.inference = inference
        self._made: dict[ast.Call, ClassDeclaration | None] = {}
        self._keeping: dict[tuple[FunctionDeclaration, bool], bool] = {}

    def result(self, node: ast.Call, scope: Scope) -> Type:
        """The type of a call."""
        callee = self.inference.infer(node.func, scope)
        results = [self._result(member, node, scope) for member in members_of(callee) if member != NONE]
        return union(results) if results else Unknown("call of None")

    def _result(self, callee: Type, node: ast.Call, scope: Scope) -> Type:
        if isinstance(callee, Class):
            return self._constructed(callee, node, scope)
        if isinstance(callee, Function):
            return self._function_result(callee, node, scope)
        if isinstance(callee, External):
            return self._external_result(callee.path, node, scope)
        if isinstance(callee, Instance):
            return self._instance_result(callee, node, scope)
        if isinstance(callee, Partial):
            return self._result(callee.function, node, scope)
        if isinstance(callee, Lambda):
            return Unknown("lambda")
        if isinstance(callee, TypeVariable):
            return Unknown("type variable")
        if isinstance(callee, Unknown):
            return callee
        return Unknown("call")

    def _instance_result(self, callee: Instance, node: ast.Call, scope: Scope) -> Type:
        if isinstance(callee.class_, External):
            if callee.class_.path == "typing.Callable" and callee.arguments:
                return callee.arguments[0]
            if callee.class_.path == "builtins.type" and callee.arguments:
                return callee.arguments[0]
            return (
                OUTSIDE
                if is_torch_module(callee.class_.path)
                else Unknown(f"call of an instance of {callee.class_.path}")
            )
        method = self.called(callee)
        if isinstance(method, Function):
            return self._function_result(method, node, scope)
        return Unknown("call of an instance")

    def called(self, instance: Instance) -> Type:
        """What a call of an instance calls: `__call__`, to which a module of torch answers by way of `forward`."""
        method = self.inference.attribute(instance, "__call__")
        if not isinstance(method, Function) and isinstance(instance.class_, Class):
            if any(is_torch_module(path) for path in self.program.classes.external_bases(instance.class_.declaration)):
                return self.inference.attribute(instance, "forward")
        return method

    def _constructed(self, callee: Class, node: ast.Call, scope: Scope) -> Type:
        classes = self.program.classes
        if classes.is_enum(callee.declaration):
            return Instance(callee)
        parameters = classes.type_parameters(callee.declaration)
        if parameters and not callee.arguments:
            arguments = self._constructor_arguments(callee, node, scope)
            if arguments:
                callee = Class(
                    callee.declaration, tuple(arguments.get(p, p.bound or Unknown("type variable")) for p in parameters)
                )
        return Instance(callee, exact=not callee.is_open and not classes.is_stand_in(callee.declaration))

    def _constructor_arguments(self, callee: Class, node: ast.Call, scope: Scope) -> dict[TypeVariable, Type]:
        own = self.program.self_type(callee.declaration)
        init = self.program.classes.attribute(Instance(own), "__init__")
        return self.unify(init, node, scope) if isinstance(init, Function) else {}

    def _function_result(self, callee: Function, node: ast.Call, scope: Scope) -> Type:
        result = self.inference.returned(callee)
        if isinstance(callee.receiver, Instance) and callee.receiver.by_names:
            result = told_by_names(result)
        if callee.declaration.name == "__new__" and node.args and callee.receiver is None:
            made = self.inference.infer(node.args[0], scope)
            return Instance(made) if isinstance(made, Class) else Unknown("__new__")
        if _has_variables(result):
            result = substitute(result, self.unify(callee, node, scope))
            result = _settled(result, self._class_variables(callee))
        return result

    def _class_variables(self, callee: Function) -> frozenset[TypeVariable]:
        """The variables that belong to the class of a method, and stay as they are in its subclasses."""
        owner = callee.declaration.owner
        found: set[TypeVariable] = set(self.program.classes.type_parameters(owner)) if owner is not None else set()
        for _, type_ in callee.substitution:
            if isinstance(type_, TypeVariable):
                found.add(type_)
        return frozenset(found)

    def unify(self, function: Function, node: ast.Call, scope: Scope) -> dict[TypeVariable, Type]:
        """What the type variables of a function are, from the arguments of a call."""
        mapping: dict[TypeVariable, Type] = {}
        inner = self.program.function_scope(function.declaration)
        names = list(inner.parameters)
        arguments = function.declaration.node.args
        positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
        if function.skips_first:
            positional = positional[1:]
        pairs: list[tuple[str, ast.expr]] = []
        for name, argument in zip(positional, node.args, strict=False):
            if isinstance(argument, ast.Starred):
                break
            pairs.append((name, argument))
        pairs += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg in names and keyword.arg]
        for name, argument in pairs:
            declared = inner.parameter_type(name)
            if _has_variables(declared):
                given = self.inference.infer(argument, scope)
                if isinstance(given, Function):
                    given = Instance(External("typing.Callable"), (self.inference.returned(given),))
                _unify(declared, given, mapping)
        return mapping

    def _external_result(self, path: str, node: ast.Call, scope: Scope) -> Type:
        name = path.rpartition(".")[2]
        if path == "builtins.super":
            return self._super(node, scope)
        if path == "builtins.type" and len(node.args) == 1:
            found = self.inference.infer(node.args[0], scope)
            if isinstance(found, Instance) and isinstance(found.class_, Class):
                return (
                    found.class_
                    if found.exact
                    else Class(found.class_.declaration, found.class_.arguments, is_open=True)
                )
            return Unknown("type()")
        if path == "builtins.getattr" and len(node.args) >= 2:
            return self._getattr(node, scope)
        if path == "itertools.islice" and node.args:
            return Instance(
                External("typing.Iterator"), (self.inference.element(self.inference.infer(node.args[0], scope)),)
            )
        if path == "itertools.chain" and not any(isinstance(argument, ast.Starred) for argument in node.args):
            parts = [self.inference.element(self.inference.infer(argument, scope)) for argument in node.args]
            return Instance(External("typing.Iterator"), (union(parts),)) if parts else Unknown("empty container")
        if path in _SAME and node.args:
            if path == "typing.cast" and len(node.args) == 2:
                return self.program.annotations.instance(node.args[0], scope)
            if name in ("sorted", "reversed"):
                return builtin("list", self.inference.element(self.inference.infer(node.args[0], scope)))
            return self.inference.infer(node.args[0], scope)
        if path in ("functools.partial", "functools.partialmethod") and node.args:
            return Partial(self.inference.infer(node.args[0], scope), node)
        if path in ("functools.wraps", "functools.update_wrapper"):
            return External(path)
        if path in ("functools.lru_cache", "functools.cache"):
            cached = self.inference.infer(node.args[0], scope) if node.args else NONE
            # `lru_cache(maxsize=8)` waits for the function that `lru_cache(function)` has.
            return cached if isinstance(cached, Function) else External(path)
        if path in MAKERS:
            class_ = self._made_class(path, node, scope)
            if class_ is not None:
                return class_
        if "()." in path and path.startswith(("builtins.", "typing.", "collections.", *_MODULE_CONTAINERS)):
            return self._container_method(path, node, scope)
        if path.endswith(".__new__") and node.args:
            made = self.inference.infer(node.args[0], scope)
            return Instance(made) if isinstance(made, Class) else Unknown("__new__")
        if path.startswith("builtins."):
            return self._builtin_result(name, node, scope)
        if path in ("typing.TypeVar", "typing_extensions.TypeVar") and node.args:
            return self._type_variable(node, scope)
        if path == "importlib.import_module" and node.args:
            module = self.inference.infer(node.args[0], scope)
            if isinstance(module, Literal) and isinstance(module.value, str) and not module.value.startswith("."):
                return self.program.module_type(module.value)
        if path == "collections.defaultdict":
            return self._default_dict(node, scope)
        if path in ("asyncio.run", "asyncio.create_task", "asyncio.ensure_future") and node.args:
            awaited = self.inference.infer(node.args[0], scope)
            return self.inference.awaited(awaited) if name == "run" else awaited
        if path == "contextlib.nullcontext":
            inner = self.inference.infer(node.args[0], scope) if node.args else NONE
            return Instance(External("contextlib.AbstractContextManager"), (inner,))
        if path == "collections.deque":
            first = (
                self.inference.element(self.inference.infer(node.args[0], scope))
                if node.args
                else Unknown("empty container")
            )
            return Instance(External(path), (first,))
        if path in _MODULE_CONTAINERS:
            return Instance(External(path), self._held(name, node, scope))
        if name[:1].isupper() and "()" not in path:
            return Instance(External(path), exact=True)
        if gives_receiver(path) and isinstance(node.func, ast.Attribute):
            receiver = self.inference.infer(node.func.value, scope)
            return receiver.receiver if isinstance(receiver, Super) else receiver
        return result_of(path)

    def _held(self, name: str, node: ast.Call, scope: Scope) -> tuple[Type, ...]:
        """What a container of torch modules made by a call holds."""
        if not node.args:
            return ()
        given = [
            self.inference.infer(argument, scope) for argument in node.args if not isinstance(argument, ast.Starred)
        ]
        if name == "Sequential":
            return (union(given),) if len(given) == len(node.args) and not isinstance(given[0], Dictionary) else ()
        first = given[0] if given else Unknown("unpacked value")
        if name == "ModuleList":
            return (self.inference.element(first),)
        if isinstance(first, Dictionary):
            return (
                builtin("str"),
                union([value for _, value in first.items]) if first.items else Unknown("empty container"),
            )
        return first.arguments if isinstance(first, Instance) and len(first.arguments) == 2 else ()

    def _made_class(self, path: str, node: ast.Call, scope: Scope) -> Class | None:
        if node not in self._made:
            self._made[node] = made_class(path, node, scope)
        declaration = self._made[node]
        return Class(declaration) if declaration is not None else None

    def _builtin_result(self, name: str, node: ast.Call, scope: Scope) -> Type:
        first = self.inference.infer(node.args[0], scope) if node.args and name not in _PLAIN else NONE
        if name in ("len", "id"):
            return builtin("int")
        if name in ("isinstance", "issubclass", "hasattr"):
            return builtin("bool")
        if name == "repr":
            return builtin("str")
        if name in ("staticmethod", "classmethod") and node.args:
            return first
        if name in _PLAIN:
            return builtin(name)
        if name in _CONTAINERS:
            return (
                builtin(name, self.inference.element(first)) if node.args else builtin(name, Unknown("empty container"))
            )
        if name == "dict":
            return self._dict(node, scope)
        if name in ("next", "min", "max"):
            if name != "next" and len(node.args) > 1:
                return first
            element = self.inference.element(first)
            return (
                union([element, self.inference.infer(node.args[1], scope)])
                if name == "next" and len(node.args) > 1
                else element
            )
        if name in ("iter", "filter"):
            source = first if name == "iter" or len(node.args) < 2 else self.inference.infer(node.args[1], scope)
            return Instance(External("typing.Iterator"), (self.inference.element(source),))
        if name == "enumerate":
            return Instance(External("typing.Iterator"), (Tuple((builtin("int"), self.inference.element(first))),))
        if name == "zip":
            if any(isinstance(argument, ast.Starred) for argument in node.args):
                return Unknown("zip")
            elements = tuple(self.inference.element(self.inference.infer(argument, scope)) for argument in node.args)
            return Instance(External("typing.Iterator"), (Tuple(elements),))
        if name == "range":
            return builtin("list", builtin("int"))
        if name == "vars":
            return builtin("dict", builtin("str"), Unknown("vars()"))
        if name == "open":
            return Instance(External("io.TextIOWrapper"))
        if name[:1].isupper():
            return Instance(External(f"builtins.{name}"), exact=True)
        return Unknown(f"result of {name}()")

    def _dict(self, node: ast.Call, scope: Scope) -> Type:
        items: dict[str, Type] = {}
        is_open = False
        if node.args:
            first = self.inference.infer(node.args[0], scope)
            if isinstance(first, Dictionary):
                items.update(first.items)
                is_open = first.is_open
            elif isinstance(first, Instance):
                return builtin("dict", *first.arguments[:2]) if not node.keywords else builtin("dict")
            else:
                is_open = True
        for keyword in node.keywords:
            if keyword.arg is None:
                inner = self.inference.infer(keyword.value, scope)
                if isinstance(inner, Dictionary):
                    items.update(inner.items)
                    is_open = is_open or inner.is_open
                else:
                    is_open = True
            else:
                items[keyword.arg] = self.inference.infer(keyword.value, scope)
        return Dictionary(tuple(items.items()), is_open)

    def _default_dict(self, node: ast.Call, scope: Scope) -> Type:
        if not node.args:
            return builtin("dict")
        made = self._result(self.inference.infer(node.args[0], scope), ast.Call(node.args[0], [], []), scope)
        return builtin("dict", Unknown("key"), made)

    def _container_method(self, path: str, node: ast.Call, scope: Scope) -> Type:
        """`values()`, `items()`, `get()` and their like on a container whose content is known."""
        if not isinstance(node.func, ast.Attribute):
            return Unknown("method of a container")
        method = node.func.attr
        results: list[Type] = []
        for receiver in members_of(self.inference.infer(node.func.value, scope)):
            results.append(self._method_of_container(receiver, method, node, scope))
        return union(results)

    def _method_of_container(self, receiver: Type, method: str, node: ast.Call, scope: Scope) -> Type:
        if isinstance(receiver, Dictionary):
            values = union([value for _, value in receiver.items]) if receiver.items else Unknown("item of a dict")
            receiver = builtin("dict", builtin("str"), values)
        if not isinstance(receiver, Instance) or not receiver.arguments:
            return Unknown("method of a container")
        key, value = receiver.arguments[0], receiver.arguments[-1]
        if len(receiver.arguments) > 1:
            if method == "values":
                return Instance(External("typing.Iterable"), (value,))
            if method == "keys":
                return Instance(External("typing.Iterable"), (key,))
            if method == "items":
                return Instance(External("typing.Iterable"), (Tuple((key, value)),))
            if method in ("get", "pop", "setdefault"):
                other = self.inference.infer(node.args[1], scope) if len(node.args) > 1 else NONE
                return union([value, other]) if method != "pop" else value
            if method == "popitem":
                return Tuple((key, value))
        elif method in ("pop", "popleft"):
            return value
        if method == "copy":
            return receiver
        return Unknown("method of a container")

    def _super(self, node: ast.Call, scope: Scope) -> Type:
        function = scope.function
        while function is not None and function.owner is None:
            function = function.outer
        if function is None or function.owner is None:
            return Unknown("super() outside a method")
        owner = self.program.self_type(function.owner)
        if node.args:
            named = self.inference.infer(node.args[0], scope)
            if not isinstance(named, Class):
                return Unknown("super()")
            owner = named
        role = self.program.classes.role(function)
        own = self.program.self_type(function.owner)
        return Super(owner, own if role in ("classmethod", "staticmethod") else Instance(own))

    def _getattr(self, node: ast.Call, scope: Scope) -> Type:
        name = self.inference.infer(node.args[1], scope)
        if not isinstance(name, Literal) or not isinstance(name.value, str):
            return Unknown("getattr with a computed name")
        found = self.inference.attribute(self.inference.infer(node.args[0], scope), name.value)
        if len(node.args) == 3:
            # The object may well not have the attribute, which is why there is a default.
            default = self.inference.infer(node.args[2], scope)
            if isinstance(found, Absent):
                found = Unknown("getattr with a default")
            return union([found, default, Unknown("getattr with a default")])
        return found

    def _type_variable(self, node: ast.Call, scope: Scope) -> Type:
        name = str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else "?"
        bound: Type | None = None
        default: Type | None = None
        for keyword in node.keywords:
            if keyword.arg == "bound":
                bound = self.program.annotations.instance(keyword.value, scope)
            elif keyword.arg == "default":
                default = self.program.annotations.instance(keyword.value, scope)
        if len(node.args) > 1:
            bound = union([self.program.annotations.instance(constraint, scope) for constraint in node.args[1:]])
        return TypeVariable(f"{scope.module.name}.{name}", bound, default)

    def keeps_signature(self, decorator: FunctionDeclaration, is_called: bool) -> bool:
        """True for a decorator whose result takes what the decorated function takes.

        It returns its own parameter, or a function inside that carries `functools.wraps`; a maker of decorators returns
        such a decorator.
        """
        key = (decorator, is_called)
        found = self._keeping.get(key)
        if found is None:
            self._keeping[key] = False
            found = self._keeping[key] = self._keeps_signature(decorator, is_called)
        return found

    def _keeps_signature(self, decorator: FunctionDeclaration, is_called: bool) -> bool:
        from driftcheck.surface.syntax import own_nodes

        arguments = decorator.node.args
        names = {argument.arg for argument in [*arguments.posonlyargs, *arguments.args]}
        scope = self.program.function_scope(decorator)
        returned = [node.value for node in own_nodes(decorator.body) if isinstance(node, ast.Return)]
        if not returned:
            return False
        values = [part for value in returned for part in _alternatives(value)]
        if is_called and any(_binds_itself(value, decorator) for value in values):
            # `return partial(decorator, option=option)`: called without a function, it waits for one.
            return self.keeps_signature(decorator, False)
        is_kept = False
        for value in values:
            if _binds_itself(value, decorator) or _is_handed(value, names):
                # What another function makes of the decorated one says nothing, unless it is all there is.
                continue
            is_kept = True
            if not isinstance(value, ast.Name):
                return False
            if value.id in names and not is_called:
                continue
            inner = [b.function for b in scope.locals.get(value.id, []) if b.function is not None]
            if not inner:
                return False
            for function in inner:
                if self._wraps(function):
                    continue
                if not self.keeps_signature(function, False):
                    return False
        return is_kept

    def replacement(self, decorator: FunctionDeclaration, is_called: bool) -> FunctionDeclaration | None:
        """The function inside a decorator that takes the place of what is decorated, with a signature of its own."""
        inner = self._returned_function(decorator)
        if inner is not None and is_called:
            inner = self._returned_function(inner)
        if inner is None or (inner.node.args.vararg is not None and inner.node.args.kwarg is not None):
            return None
        decorators = [node.func if isinstance(node, ast.Call) else node for node in inner.node.decorator_list]
        names = [node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in decorators]
        return inner if all(name == "wraps" for name in names) else None

    def passes_on(self, decorator: FunctionDeclaration, is_called: bool) -> bool:
        """True where what replaces the decorated function takes anything and calls that with all it got."""
        holder = decorator
        inner = self._returned_function(decorator)
        if inner is not None and is_called:
            holder, inner = inner, self._returned_function(inner)
        if inner is None or inner.node.decorator_list:
            return False
        arguments, outer = inner.node.args, holder.node.args
        if arguments.vararg is None or arguments.kwarg is None or arguments.args or arguments.kwonlyargs:
            return False
        wrapped = {argument.arg for argument in [*outer.posonlyargs, *outer.args][:1]}
        rest, keywords = arguments.vararg.arg, arguments.kwarg.arg
        if _changes(inner.body, {rest, keywords}):
            return False
        return any(_hands_everything(node, wrapped, rest, keywords) for part in inner.body for node in ast.walk(part))

    def _returned_function(self, function: FunctionDeclaration) -> FunctionDeclaration | None:
        from driftcheck.surface.syntax import own_nodes

        returns = [node for node in own_nodes(function.body) if isinstance(node, ast.Return)]
        if len(returns) != 1 or not isinstance(returns[0].value, ast.Name):
            return None
        bindings = self.program.function_scope(function).locals.get(returns[0].value.id, [])
        return bindings[0].function if len(bindings) == 1 else None

    def _wraps(self, function: FunctionDeclaration) -> bool:
        for node in function.node.decorator_list:
            called = node.func if isinstance(node, ast.Call) else node
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name == "wraps":
                variadic = function.node.args
                return variadic.vararg is not None and variadic.kwarg is not None
        return False


def _alternatives(value: ast.expr | None) -> list[ast.expr | None]:
    """The values that an expression gives in one case or another."""
    if isinstance(value, ast.IfExp):
        return [*_alternatives(value.body), *_alternatives(value.orelse)]
    return [value]


def _hands_everything(node: ast.AST, wrapped: set[str], rest: str, keywords: str) -> bool:
    """True for `wrapped(*rest, **keywords)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in wrapped:
        return False
    if len(node.args) != 1 or len(node.keywords) != 1 or not isinstance(node.args[0], ast.Starred):
        return False
    starred, double = node.args[0].value, node.keywords[0]
    return (
        isinstance(starred, ast.Name)
        and starred.id == rest
        and double.arg is None
        and isinstance(double.value, ast.Name)
        and double.value.id == keywords
    )


def _changes(body: list[ast.stmt], names: set[str]) -> bool:
    """True where one of the names is bound again, or a method of it called that may change it."""
    for part in body:
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id in names and not isinstance(node.ctx, ast.Load):
                return True
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
                if node.attr not in ("get", "keys", "values", "items", "copy"):
                    return True
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names:
                if not isinstance(node.ctx, ast.Load):
                    return True
    return False


def _binds_itself(value: ast.expr | None, decorator: FunctionDeclaration) -> bool:
    """True for `partial(decorator, …)` in the decorator's own body."""
    if not isinstance(value, ast.Call) or not value.args:
        return False
    called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return called == "partial" and isinstance(value.args[0], ast.Name) and value.args[0].id == decorator.name


def _is_handed(value: ast.expr | None, names: set[str]) -> bool:
    """True for a call that gets one of the parameters."""
    if not isinstance(value, ast.Call):
        return False
    given = [*value.args, *(keyword.value for keyword in value.keywords)]
    return any(isinstance(argument, ast.Name) and argument.id in names for argument in given)


def _returned_by(given: Type) -> Type | None:
    """What a callable gives, for what is passed where a callable is declared."""
    if isinstance(given, Class):
        return Instance(given, exact=not given.is_open)
    if isinstance(given, Instance) and isinstance(given.class_, External) and given.class_.path == "typing.Callable":
        return given.arguments[-1] if given.arguments else None
    return None


def _has_variables(type_: Type) -> bool:
    if isinstance(type_, TypeVariable):
        return True
    if isinstance(type_, Instance):
        inner = type_.class_.arguments if isinstance(type_.class_, Class) else ()
        return any(_has_variables(argument) for argument in (*type_.arguments, *inner))
    if isinstance(type_, Class):
        return any(_has_variables(argument) for argument in type_.arguments)
    if isinstance(type_, Union):
        return any(_has_variables(member) for member in type_.members)
    if isinstance(type_, Tuple):
        return any(_has_variables(item) for item in type_.items)
    return False


def _settled(type_: Type, kept: frozenset[TypeVariable]) -> Type:
    """The type with the variables that no argument has settled made what they are by default, else unknown."""
    found: set[TypeVariable] = set()
    _collect_variables(type_, found)
    return substitute(type_, {variable: variable.default or Unknown("type variable") for variable in found - kept})


def _collect_variables(type_: Type, found: set[TypeVariable]) -> None:
    if isinstance(type_, TypeVariable):
        found.add(type_)
    elif isinstance(type_, Instance):
        for argument in (*type_.arguments, *(type_.class_.arguments if isinstance(type_.class_, Class) else ())):
            _collect_variables(argument, found)
    elif isinstance(type_, Class):
        for argument in type_.arguments:
            _collect_variables(argument, found)
    elif isinstance(type_, Union):
        for member in type_.members:
            _collect_variables(member, found)
    elif isinstance(type_, Tuple):
        for item in type_.items:
            _collect_variables(item, found)


def _unify(declared: Type, given: Type, mapping: dict[TypeVariable, Type]) -> None:
    """Notes what the type variables in a declared type are, where a given type shows it."""
    if isinstance(declared, TypeVariable):
        if not isinstance(given, Unknown | Absent):
            mapping.setdefault(declared, given)
        return
    if isinstance(declared, Union):
        given_members = [member for member in members_of(given) if member != NONE]
        for member in declared.members:
            if member != NONE and given_members:
                _unify(member, union(given_members), mapping)
        return
    if isinstance(declared, Tuple) and isinstance(given, Tuple):
        for one, other in zip(declared.items, given.items, strict=False):
            _unify(one, other, mapping)
        return
    if not isinstance(declared, Instance):
        return
    if isinstance(declared.class_, External) and declared.class_.path == "builtins.type" and declared.arguments:
        if isinstance(given, Class):
            _unify(declared.arguments[0], Instance(given), mapping)
        elif isinstance(given, Tuple):
            for item in given.items:
                _unify(declared, item, mapping)
        elif isinstance(given, Union):
            classes = [Instance(member) for member in given.members if isinstance(member, Class)]
            if classes:
                _unify(declared.arguments[0], union(list(classes)), mapping)
        return
    if isinstance(given, Dictionary):
        given = builtin(
            "dict", builtin("str"), union([value for _, value in given.items]) if given.items else Unknown("empty")
        )
    if isinstance(declared.class_, External) and declared.class_.path == "typing.Callable":
        returns = _returned_by(given)
        if returns is not None and declared.arguments:
            _unify(declared.arguments[-1], returns, mapping)
        return
    if isinstance(given, Tuple) and declared.arguments:
        _unify(declared.arguments[0], union(list(given.items)) if given.items else Unknown("empty"), mapping)
        return
    if isinstance(given, Instance):
        ours = declared.class_.arguments if isinstance(declared.class_, Class) else declared.arguments
        theirs = given.class_.arguments if isinstance(given.class_, Class) else given.arguments
        for one, other in zip(ours, theirs, strict=False):
            _unify(one, other, mapping)
