"""What expressions give: names, attributes, calls, containers, and what functions return."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from driftcheck.surface.calls import Calls
from driftcheck.surface.classes import external_attribute, is_well_known, known_class, substitute
from driftcheck.surface.declarations import Binding, FunctionDeclaration, target_names
from driftcheck.surface.libraries import OUTSIDE, part_of
from driftcheck.surface.scopes import LocalScope
from driftcheck.surface.slim_trees import for_slim_nodes
from driftcheck.surface.syntax import own_nodes, own_statements
from driftcheck.surface.transparent import is_transparent
from driftcheck.surface.types import (
    ANY,
    NONE,
    Absent,
    Class,
    Dictionary,
    External,
    Family,
    Function,
    Instance,
    Lambda,
    Literal,
    Module,
    Super,
    Transformed,
    Tuple,
    Type,
    TypeVariable,
    Union,
    Unknown,
    bounded,
    builtin,
    members_of,
    told_by_names,
    union,
)

if TYPE_CHECKING:
    from driftcheck.surface.program import Program
    from driftcheck.surface.scopes import Scope

_DEPTH = 60
# Of longer lists and sets only so many elements are looked at.
_LONGEST_DISPLAY = 24
SELF = Unknown("Self")
_TRANSFORMATIONS: dict[str, Transformed] = {
    "contextlib.contextmanager": "context manager",
    "contextlib.asynccontextmanager": "async context manager",
    "triton.jit": "kernel",
    "triton.autotune": "tuned kernel",
    "triton.heuristics": "tuned kernel",
}
_ITERABLES = frozenset(
    ("list", "set", "frozenset", "Sequence", "Iterable", "Iterator", "Collection", "MutableSequence", "deque",
     "Generator", "Set", "AbstractSet", "MutableSet", "KeysView", "ValuesView", "Reversible", "tuple", "AsyncIterator",
     "AsyncIterable", "AsyncGenerator", "Container", "UserList", "ModuleList", "Sequential", "ParameterList")
)  # fmt: skip
MAPPINGS = frozenset(
    (
        "dict",
        "Mapping",
        "MutableMapping",
        "defaultdict",
        "OrderedDict",
        "WeakValueDictionary",
        "UserDict",
        "ChainMap",
        "ModuleDict",
    )
)


class Inference:
    """Infers the types of expressions in a program; the same expression in the same scope is always the same type."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.calls = Calls(program, self)
        self._depth = 0
        self._returns: dict[FunctionDeclaration, Type] = {}
        self._returning: set[FunctionDeclaration] = set()
        self._decorations: dict[FunctionDeclaration, Type] = {}
        self._decorating: set[FunctionDeclaration] = set()

    def infer(self, node: ast.expr, scope: Scope) -> Type:
        """The type of an expression."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return Unknown("expression")
        memo = scope.memo
        if memo is not None and (found := memo.get(id(node))) is not None:
            return found
        if self._depth > _DEPTH:
            return Unknown("expression nested too deeply")
        self._depth += 1
        try:
            found = handler(self, node, scope)
        finally:
            self._depth -= 1
        if memo is not None:
            memo[id(node)] = found
        return found

    # Expressions

    def _name(self, node: ast.Name, scope: Scope) -> Type:
        return self.program.families.reached(node, scope.lookup(node.id), scope.module.name)

    def _constant(self, node: ast.Constant, scope: Scope) -> Type:
        return ANY if node.value is Ellipsis else Literal(node.value)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Type:
        if scope.memo is not None and (narrowed := scope.narrowed(node)) is not None:
            return narrowed
        base = self.infer(node.value, scope)
        if isinstance(base, Unknown):
            told = self.program.name_chains.attribute(node, scope)
            if told is not None:
                return told
        found = self.attribute(base, node.attr)
        if isinstance(base, Instance) and base.by_names:
            found = told_by_names(found)
        return self.program.families.reached_on(node, base, found, scope.module.name)

    def _call(self, node: ast.Call, scope: Scope) -> Type:
        found = self.calls.result(node, scope)
        return self.program.families.reached(node, found, scope.module.name)

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Type:
        if any(isinstance(element, ast.Starred) for element in node.elts):
            return builtin("tuple")
        return bounded(Tuple(tuple(self.infer(element, scope) for element in node.elts)))

    def _list(self, node: ast.List | ast.Set, scope: Scope) -> Type:
        name = "list" if isinstance(node, ast.List) else "set"
        if not node.elts:
            return builtin(name, Unknown("empty container"))
        elements = [
            self.element(self.infer(element.value, scope))
            if isinstance(element, ast.Starred)
            else self.infer(element, scope)
            for element in node.elts[:_LONGEST_DISPLAY]
        ]
        if len(node.elts) > _LONGEST_DISPLAY:
            elements.append(Unknown("container of many elements"))
        return bounded(builtin(name, union([_widened(element) for element in elements])))

    def _dict(self, node: ast.Dict, scope: Scope) -> Type:
        items: dict[str, Type] = {}
        keys: list[Type] = []
        values: list[Type] = []
        is_open = False
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.infer(value, scope)
                if isinstance(inner, Dictionary):
                    items.update(inner.items)
                    is_open = is_open or inner.is_open
                else:
                    is_open = True
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                items[key.value] = self.infer(value, scope)
            else:
                if len(keys) == _LONGEST_DISPLAY:
                    values.append(Unknown("container of many elements"))
                    break
                keys.append(self.infer(key, scope))
                values.append(self.infer(value, scope))
        if keys:
            keys += [builtin("str")] if items else []
            values += items.values()
            return builtin("dict", union([_widened(key) for key in keys]), union([_widened(value) for value in values]))
        return Dictionary(tuple(items.items()), is_open)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Type:
        inner = self.comprehension_scope(node.generators, scope)
        element = _widened(self.infer(node.elt, inner))
        if isinstance(node, ast.GeneratorExp):
            return Instance(External("typing.Generator"), (element,))
        return builtin("list" if isinstance(node, ast.ListComp) else "set", element)

    def _dict_comprehension(self, node: ast.DictComp, scope: Scope) -> Type:
        inner = self.comprehension_scope(node.generators, scope)
        return builtin("dict", _widened(self.infer(node.key, inner)), _widened(self.infer(node.value, inner)))

    def comprehension_scope(self, generators: Iterable[ast.comprehension], scope: Scope) -> Scope:
        """The scope of a comprehension's element, its variables bound."""
        names: dict[str, Type] = {}
        inner = LocalScope(scope, names)
        for generator in generators:
            element = self.element(self.infer(generator.iter, inner))
            for name, path in target_names(generator.target):
                names[name] = self.at_path(element, path)
        return inner

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Type:
        base = self.infer(node.value, scope)
        if isinstance(base, Class):
            if self.program.classes.is_enum(base.declaration):
                return Instance(base, exact=True)
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return Class(base.declaration, tuple(self.program.annotations.instance(part, scope) for part in parts))
        if isinstance(base, External):
            return base
        return union([self._item(member, node, scope) for member in members_of(base)])

    def _item(self, base: Type, node: ast.Subscript, scope: Scope) -> Type:
        if isinstance(base, Function) and base.transformed in ("kernel", "tuned kernel"):
            launched: Transformed = "launched kernel" if base.transformed == "kernel" else "launched tuned kernel"
            return replace(base, transformed=launched)
        if isinstance(base, Tuple) and isinstance(node.slice, ast.Constant | ast.UnaryOp):
            index = _integer(node.slice)
            if index is not None and -len(base.items) <= index < len(base.items):
                return base.items[index]
            return Unknown("item of a tuple")
        if isinstance(base, Tuple) and base.items and not isinstance(node.slice, ast.Slice):
            return union(list(base.items))
        if isinstance(base, Dictionary):
            if isinstance(node.slice, ast.Constant):
                for key, value in base.items:
                    if key == node.slice.value:
                        return value
            elif base.items and not base.is_open:
                return union([value for _, value in base.items])
            return Unknown("item of a dict")
        if isinstance(base, Instance):
            if isinstance(base.class_, External):
                if isinstance(node.slice, ast.Slice):
                    return base
                name = base.class_.path.rpartition(".")[2]
                if name in MAPPINGS and len(base.arguments) > 1:
                    return base.arguments[1]
                if name in _ITERABLES and base.arguments:
                    return base.arguments[0]
                return part_of(base.class_.path) or Unknown(f"item of {base.class_.path}")
            fields = self.tuple_fields(base)
            if fields is not None:
                return self._item(fields, node, scope)
            method = self.attribute(base, "__getitem__")
            if isinstance(method, Function):
                return self.returned(method)
            container = self._container(base)
            return self._item(container, node, scope) if container is not None else Unknown("item")
        return base if isinstance(base, Unknown) else Unknown("item")

    def _boolean(self, node: ast.BoolOp, scope: Scope) -> Type:
        types = [self.infer(value, scope) for value in node.values]
        if isinstance(node.op, ast.Or):
            types = [*(without_none(type_) for type_ in types[:-1]), types[-1]]
        return union(types)

    def _conditional(self, node: ast.IfExp, scope: Scope) -> Type:
        truth = self.program.facts.truth(node.test, scope)
        if truth is not None:
            return self.infer(node.body if truth else node.orelse, scope)
        return union([self.infer(node.body, scope), self.infer(node.orelse, scope)])

    def _await(self, node: ast.Await, scope: Scope) -> Type:
        return self.awaited(self.infer(node.value, scope))

    def awaited(self, type_: Type) -> Type:
        """What awaiting a value gives."""
        results = []
        for member in members_of(type_):
            if isinstance(member, Instance) and isinstance(member.class_, External) and member.arguments:
                name = member.class_.path.rpartition(".")[2]
                if name in ("Coroutine", "Awaitable", "Future", "Task"):
                    results.append(member.arguments[-1])
                    continue
            results.append(member if isinstance(member, Unknown) else Unknown("awaited value"))
        return union(results)

    def _named(self, node: ast.NamedExpr, scope: Scope) -> Type:
        return self.infer(node.value, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Type:
        return Lambda(node, scope.module)

    def _text(self, node: ast.JoinedStr, scope: Scope) -> Type:
        return builtin("str")

    def _truth(self, node: ast.expr, scope: Scope) -> Type:
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            value = _integer(node)
            return Literal(value) if value is not None else Unknown("arithmetic")
        return builtin("bool") if not isinstance(node, ast.Compare) or _is_plain(node) else Unknown("comparison")

    def _arithmetic(self, node: ast.BinOp, scope: Scope) -> Type:
        left = self.infer(node.left, scope)
        if isinstance(left, Literal) and isinstance(left.value, str):
            return builtin("str")
        if isinstance(node.op, ast.BitOr) and isinstance(left, Dictionary):
            right = self.infer(node.right, scope)
            if isinstance(right, Dictionary):
                return Dictionary(
                    tuple({**dict(left.items), **dict(right.items)}.items()), left.is_open or right.is_open
                )
        if isinstance(left, Instance) and isinstance(left.class_, External) and left.class_.path in (
            "builtins.list", "builtins.str", "builtins.int", "builtins.float",
        ):  # fmt: skip
            return left
        if (
            left == OUTSIDE
            or self.infer(node.right, scope) == OUTSIDE
            or (
                isinstance(left, Instance)
                and isinstance(left.class_, External)
                and part_of(left.class_.path) is not None
            )
        ):
            return OUTSIDE
        return Unknown("arithmetic")

    # Attributes

    def attribute(self, base: Type, name: str) -> Type:
        """What `base.name` is; Absent where it surely is not there."""
        if isinstance(base, Module):
            return self.program.module_attribute(base.name, name)
        if isinstance(base, Class):
            return self.program.classes.attribute(base, name)
        if isinstance(base, Instance):
            if name == "__class__" and isinstance(base.class_, Class):
                return base.class_ if base.exact else replace(base.class_, is_open=True)
            if isinstance(base.class_, Class):
                return self.program.classes.attribute(base, name)
            return self.external_member(base, name)
        if isinstance(base, External):
            return External(f"{base.path}.{name}")
        if isinstance(base, Union):
            return self._union_attribute(base, name)
        if isinstance(base, TypeVariable):
            return self.attribute(base.bound, name) if base.bound is not None else Unknown("type variable")
        if isinstance(base, Super):
            return self._super_attribute(base, name)
        if isinstance(base, Family):
            return self.program.families.attribute(base, name)
        if isinstance(base, Literal):
            return External(f"builtins.{type(base.value).__name__}.{name}")
        if isinstance(base, Dictionary):
            return self.external_member(builtin("dict"), name)
        if isinstance(base, Unknown):
            return base
        if isinstance(base, Absent):
            return Unknown("attribute of something that is not there")
        return Unknown(f"attribute of a {type(base).__name__.lower()}")

    def external_member(self, base: Instance, name: str) -> Type:
        """An attribute of an instance of an outside class; containers know what they hold."""
        assert isinstance(base.class_, External)
        known = known_class(base.class_.path)
        if known is not None and known is not object and not any(name in vars(entry) for entry in known.__mro__):
            return Absent(base.class_.path, name)
        return External(f"{base.class_.path}().{name}")

    def _union_attribute(self, base: Union, name: str) -> Type:
        found: list[Type] = []
        absent: list[Absent] = []
        is_open = False
        for member in base.members:
            if member == NONE:
                continue
            type_ = self.attribute(member, name)
            if isinstance(type_, Absent):
                absent.append(type_)
                is_open = is_open or (
                    isinstance(member, Instance) and isinstance(member.class_, Class) and not member.exact
                )
            else:
                found.append(type_)
        if found:
            # The others may be of a class below that has it.
            return union([*found, Unknown("attribute of some of several types")] if is_open else found)
        return absent[0] if absent else Unknown("attribute of None")

    def _super_attribute(self, base: Super, name: str) -> Type:
        receiver_class = base.receiver.class_ if isinstance(base.receiver, Instance) else base.receiver
        if not isinstance(receiver_class, Class):
            return Unknown("super()")
        classes = self.program.classes
        order = classes.mro(receiver_class)
        places = [i for i, c in enumerate(order) if isinstance(c, Class) and c.declaration is base.class_.declaration]
        mro = order[places[0] + 1 :] if places else classes.mro(base.class_)[1:]
        hidden: Type | None = None
        for entry in mro:
            if isinstance(entry, Unknown):
                return hidden or entry
            if isinstance(entry, External):
                found = external_attribute(entry.path, name)
                if isinstance(found, Unknown) and hasattr(object, name):
                    return hidden or External(f"{entry.path}.{name}")
                if isinstance(found, Unknown) and is_well_known(entry.path):
                    hidden = hidden or found
                elif found is not None:
                    return hidden or found
                continue
            bindings = entry.declaration.members.get(name)
            if not bindings:
                continue
            live = classes.live_bindings(bindings, self.program.class_scope(entry.declaration))
            if not live:
                continue
            from driftcheck.surface.classes import Member

            receiver = base.receiver
            assert isinstance(receiver, Instance | Class)
            return classes._member_type(Member(entry, tuple(live)), receiver)
        if hidden is not None:
            return hidden
        if hasattr(object, name):
            return External(f"builtins.object.{name}")
        reason = classes.openness(base.class_.declaration)
        if reason:
            return Unknown(reason)
        for store_class in mro:
            if isinstance(store_class, Class) and next(classes.stores(store_class.declaration, name), None) is not None:
                return Unknown("attribute stored on the instance")
        return Absent(base.class_.declaration.symbol, name)

    # Containers

    def element(self, type_: Type) -> Type:
        """What iterating over a value gives."""
        results: list[Type] = []
        for member in members_of(type_):
            if isinstance(member, Tuple):
                results.append(union(list(member.items)) if member.items else Unknown("empty tuple"))
            elif isinstance(member, Instance):
                results.append(self._instance_element(member))
            elif isinstance(member, Dictionary):
                results.append(builtin("str"))
            elif isinstance(member, Class) and self.program.classes.is_enum(member.declaration):
                results.append(Instance(member))
            elif member != NONE:
                results.append(member if isinstance(member, Unknown) else Unknown("element"))
        return union(results) if results else Unknown("element of None")

    def _instance_element(self, type_: Instance) -> Type:
        if isinstance(type_.class_, External):
            name = type_.class_.path.rpartition(".")[2]
            if (name in _ITERABLES or name in MAPPINGS) and type_.arguments:
                return type_.arguments[0]
            return part_of(type_.class_.path) or Unknown(f"element of {type_.class_.path}")
        method = self.attribute(type_, "__iter__")
        if not isinstance(method, Function):
            container = self._container(type_)
            return self._instance_element(container) if container is not None else Unknown("element")
        iterator = self.returned(method)
        if isinstance(iterator, Instance) and isinstance(iterator.class_, Class):
            # An iterator is its own iterable: what it gives is what `__next__` returns.
            following = self.attribute(iterator, "__next__")
            return self.returned(following) if isinstance(following, Function) else Unknown("element")
        return self.element(iterator)

    def _container(self, type_: Instance) -> Instance | None:
        """The outside container that a class of the program derives from, `dict[str, Request]`, with what it holds."""
        if not isinstance(type_.class_, Class):
            return None
        for base in self.program.classes.mro(type_.class_):
            if not isinstance(base, Class):
                continue
            scope = self.program.scope_of_class(base.declaration)
            for node in base.declaration.node.bases:
                if isinstance(node, ast.Subscript):
                    found = self.program.annotations.instance(node, scope)
                    if isinstance(found, Instance) and isinstance(found.class_, External):
                        if found.class_.path.rpartition(".")[2] in _ITERABLES | MAPPINGS:
                            settled = substitute(found, self.program.classes.mapping(base))
                            return settled if isinstance(settled, Instance) else None
        return None

    def tuple_fields(self, type_: Instance) -> Tuple | None:
        """The items of an instance of a named tuple of the program."""
        if not isinstance(type_.class_, Class):
            return None
        declaration = type_.class_.declaration
        if not any(path.endswith(".NamedTuple") for path in self.program.classes.external_bases(declaration)):
            return None
        fields = [
            name
            for base in reversed(self.program.classes.linearize(declaration))
            if isinstance(base, Class)
            for name, bindings in base.declaration.members.items()
            if bindings[0].annotation is not None
        ]
        return Tuple(tuple(self.attribute(type_, name) for name in fields))

    def at_path(self, type_: Type, path: tuple[int | None, ...]) -> Type:
        """What an unpacked target gets of a value."""
        for index in path:
            results: list[Type] = []
            for member in members_of(type_):
                if isinstance(member, Instance):
                    member = self.tuple_fields(member) or member
                if isinstance(member, Tuple) and index is not None and index < len(member.items):
                    results.append(member.items[index])
                elif isinstance(member, Tuple):
                    results.append(Unknown("unpacked value"))
                elif index is None:
                    results.append(builtin("list", self.element(member)))
                else:
                    results.append(self.element(member))
            type_ = union(results)
        return type_

    def bound(self, binding: Binding, scope: Scope) -> Type:
        """What a binding without a declared type gives its name."""
        assert binding.value is not None
        value = self.infer(binding.value, scope)
        if binding.element in ("for", "async for"):
            value = self.element(value)
        elif binding.element == "with":
            value = self.entered(value, "__enter__")
        elif binding.element == "async with":
            value = self.awaited(self.entered(value, "__aenter__"))
        return self.at_path(value, binding.path) if binding.path else value

    def entered(self, type_: Type, method: str) -> Type:
        """What `with value as name` binds."""
        results: list[Type] = []
        for member in members_of(type_):
            if isinstance(member, Instance) and isinstance(member.class_, Class):
                found = self.attribute(member, method)
                if isinstance(found, Function):
                    results.append(self.returned(found))
                    continue
                if isinstance(found, External):
                    results.append(member)
                    continue
            if isinstance(member, Instance) and isinstance(member.class_, External):
                name = member.class_.path.rpartition(".")[2]
                if (
                    name in ("AbstractContextManager", "ContextManager", "_GeneratorContextManager")
                    and member.arguments
                ):
                    results.append(member.arguments[0])
                    continue
                if name in ("AbstractAsyncContextManager", "AsyncContextManager") and member.arguments:
                    results.append(Instance(External("typing.Awaitable"), (member.arguments[0],)))
                    continue
            results.append(member if isinstance(member, Unknown) else Unknown("context manager"))
        return union(results)

    def caught(self, node: ast.expr, scope: Scope) -> Type:
        """What `except node as name` binds."""
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        types = [self.infer(part, scope) for part in nodes]
        return union(
            [Instance(type_) if isinstance(type_, Class | External) else Unknown("exception") for type_ in types]
        )

    # Functions

    def decorated(self, function: FunctionDeclaration, scope: Scope) -> Type:
        """What the name of a function holds once its decorators have run."""
        found = self._decorations.get(function)
        if found is not None:
            return found
        if function in self._decorating:
            return Function(function)
        self._decorating.add(function)
        try:
            found = self._decorate(function, scope)
        finally:
            self._decorating.discard(function)
        self._decorations[function] = found
        return found

    def _decorate(self, function: FunctionDeclaration, scope: Scope) -> Type:
        transformed: Transformed = ""
        for node in reversed(function.node.decorator_list):
            called = node.func if isinstance(node, ast.Call) else node
            if isinstance(called, ast.Attribute) and called.attr in ("setter", "getter", "deleter", "register"):
                continue
            type_ = self.infer(called, scope)
            if isinstance(type_, Union):
                # A stand-in for a library that may not be there decorates as the library does.
                outside = [member for member in type_.members if isinstance(member, External)]
                if (outside and all(is_transparent(member.path) for member in outside)) or (
                    len(outside) == 1 and outside[0].path in _TRANSFORMATIONS
                ):
                    type_ = outside[0]
            if isinstance(type_, External):
                if type_.path in _TRANSFORMATIONS:
                    transformed = _TRANSFORMATIONS[type_.path]
                    continue
                if is_transparent(type_.path):
                    continue
                return Unknown(f"decorator {type_.path}")
            if isinstance(type_, Function):
                if self.calls.keeps_signature(type_.declaration, isinstance(node, ast.Call)):
                    continue
                replacement = self.calls.replacement(type_.declaration, isinstance(node, ast.Call))
                if replacement is not None:
                    function = replacement
                    continue
                if self.calls.passes_on(type_.declaration, isinstance(node, ast.Call)):
                    transformed = "wrapped"
                    continue
            if isinstance(type_, Class) and function.owner is not None and type_.declaration.name.endswith("property"):
                continue
            return Unknown(f"decorator {ast.unparse(called)}")
        return Function(function, transformed=transformed)

    def returned(self, function: Function) -> Type:
        """What calling a function gives, its type variables of the class put in."""
        result = _with_receiver(self._returned(function.declaration), function.receiver)
        if function.substitution:
            result = substitute(result, dict(function.substitution))
        if function.transformed.endswith("kernel"):
            return NONE
        if function.transformed == "wrapped":
            return Unknown("result of a wrapper")
        if function.transformed:
            element = self.element(result)
            name = (
                "AbstractContextManager" if function.transformed == "context manager" else "AbstractAsyncContextManager"
            )
            return Instance(External(f"contextlib.{name}"), (element,))
        return result

    def _returned(self, declaration: FunctionDeclaration) -> Type:
        found = self._returns.get(declaration)
        if found is not None:
            return found
        if declaration in self._returning:
            return Unknown("recursive function")
        self._returning.add(declaration)
        try:
            found = self._infer_return(declaration)
        finally:
            self._returning.discard(declaration)
        self._returns[declaration] = found
        return found

    def _infer_return(self, declaration: FunctionDeclaration) -> Type:
        if declaration.node.returns is not None:
            scope = self.program.scope_of_function(declaration)
            result = self.program.annotations.instance(declaration.node.returns, scope)
            return self._coroutine(result) if declaration.is_async and not is_generator(declaration) else result
        if is_generator(declaration):
            return Unknown("generator without an annotation")
        scope = self.program.function_scope(declaration)
        types: list[Type] = []
        for node in own_statements(declaration.body):
            if isinstance(node, ast.Return):
                types.append(NONE if node.value is None else _own_kind(declaration, node.value, scope, self))
                if len(types) > 12:
                    return Unknown("many returns")
        if not types:
            types.append(NONE)
        types = [Unknown("returned value") if isinstance(type_, Absent) else type_ for type_ in types]
        result = union([_widened(type_) for type_ in types])
        return self._coroutine(result) if declaration.is_async else result

    def _coroutine(self, result: Type) -> Type:
        return Instance(External("typing.Coroutine"), (result,))


def _own_kind(declaration: FunctionDeclaration, value: ast.expr, scope: Scope, inference: Inference) -> Type:
    """What a method gives back; what it makes of its own class, or the receiver itself, is "Self"."""
    found = inference.infer(value, scope)
    if not isinstance(found, Instance) or not isinstance(found.class_, Class):
        return found
    if declaration.owner is None or found.class_.declaration is not declaration.owner:
        return found
    arguments = declaration.node.args
    first = next((argument.arg for argument in [*arguments.posonlyargs, *arguments.args]), None)
    is_receiver = isinstance(value, ast.Name) and value.id == first
    return SELF if found.class_.is_open or (is_receiver and not found.exact) else found


def _with_receiver(type_: Type, receiver: Type | None) -> Type:
    """A type with "Self" replaced by what it is for a receiver."""
    if receiver is None:
        return type_
    own = Instance(receiver) if isinstance(receiver, Class) else receiver
    if isinstance(type_, Union):
        return union([_with_receiver(member, receiver) for member in type_.members])
    if isinstance(type_, Instance) and type_.class_ == External("typing.Coroutine"):
        return replace(type_, arguments=tuple(_with_receiver(argument, receiver) for argument in type_.arguments))
    return own if type_ == SELF else type_


def is_generator(declaration: FunctionDeclaration) -> bool:
    """True where the body yields."""
    if "yield" not in declaration.source:
        return False
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(declaration.body))


def without_none(type_: Type) -> Type:
    """The type with None taken out of a union."""
    if isinstance(type_, Union):
        rest = [member for member in type_.members if member != NONE]
        return union(rest) if rest else type_
    return type_


def _widened(type_: Type) -> Type:
    """A literal's class, so that unions of many constants stay small."""
    if isinstance(type_, Literal) and type_.value is not None:
        return builtin(type(type_.value).__name__)
    return type_


def _integer(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _integer(node.operand)
        return None if inner is None else -inner
    return None


def _is_plain(node: ast.Compare) -> bool:
    return all(isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in node.ops)


_HANDLERS: dict[type[ast.expr], Callable[[Inference, Any, Scope], Type]] = {
    ast.Name: Inference._name,
    ast.Constant: Inference._constant,
    ast.Attribute: Inference._attribute,
    ast.Call: Inference._call,
    ast.Tuple: Inference._tuple,
    ast.List: Inference._list,
    ast.Set: Inference._list,
    ast.Dict: Inference._dict,
    ast.ListComp: Inference._comprehension,
    ast.SetComp: Inference._comprehension,
    ast.GeneratorExp: Inference._comprehension,
    ast.DictComp: Inference._dict_comprehension,
    ast.Subscript: Inference._subscript,
    ast.BoolOp: Inference._boolean,
    ast.IfExp: Inference._conditional,
    ast.Await: Inference._await,
    ast.NamedExpr: Inference._named,
    ast.Lambda: Inference._lambda,
    ast.JoinedStr: Inference._text,
    ast.Compare: Inference._truth,
    ast.UnaryOp: Inference._truth,
    ast.BinOp: Inference._arithmetic,
}
_HANDLERS = for_slim_nodes(_HANDLERS)
