"""What a target offers under a dotted path, as a value: the thing's kind, place, signature and members."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from driftcheck.model import Signature
from driftcheck.surface.declarations import Binding, ClassDeclaration, ModuleDeclaration
from driftcheck.surface.signatures import Callee, Signatures
from driftcheck.surface.types import Absent, Class, External, Function, Instance, Module, Type, Unknown, members_of

if TYPE_CHECKING:
    from driftcheck.surface.program import Program

Sort = Literal[
    "module", "class", "function", "method", "class method", "static method", "property", "attribute", "name", "missing"
]


@dataclass(frozen=True, slots=True)
class Description:
    """One symbol: `symbol` is its canonical path, `asked` the one it was reached by.

    `text` is what the sources say of a value ("int = 16") or why nothing can be said of a call; `members` are the
    public ones, inherited ones included. `near` are names like one that is missing.
    """

    asked: str
    sort: Sort
    symbol: str
    path: str | None = None
    line: int | None = None
    signature: Signature | None = None
    text: str = ""
    bases: tuple[str, ...] = ()
    members: tuple[Description, ...] = ()
    near: tuple[str, ...] = ()


class Descriptions:
    """Describes the symbols of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.signatures = Signatures(program)

    def describe(self, symbol: str) -> Description:
        """What stands under a dotted path; the sort is "missing" where nothing does."""
        type_: Type = Unknown("no path")
        owner: Type | None = None
        for module, parts in self.starts(symbol):
            owner, type_ = None, self.program.module_type(module)
            for part in parts:
                if isinstance(type_, Absent | Unknown):
                    break
                owner, type_ = type_, self._attribute(type_, part)
            if not isinstance(type_, Absent):
                break
        name = symbol.rpartition(".")[2]
        if isinstance(type_, Absent):
            return Description(
                symbol, "missing", symbol, text=f"{type_.owner} has no {type_.name}", near=self._near(type_)
            )
        if isinstance(type_, Module):
            return self._module(symbol, type_.name)
        if isinstance(owner, Class):
            return self._member(symbol, owner, name)
        return self._named(symbol, type_, owner, name)

    def starts(self, symbol: str) -> Iterator[tuple[str, list[str]]]:
        """Where the way to a symbol may begin, each with the names on the way.

        That is its first package, from which Python goes attribute by attribute; and where a name hides a module of the
        same name (`from .Kernel import Kernel` in the package), the module, from which it can be imported all the same.
        """
        parts = symbol.split(".")
        yield parts[0], parts[1:]
        for count in range(len(parts) - 1, 1, -1):
            module = ".".join(parts[:count])
            if self.program.has_module(module):
                yield module, parts[count:]
                return

    def _attribute(self, owner: Type, name: str) -> Type:
        if isinstance(owner, Class):
            found = self.program.classes.attribute(owner, name)
            if isinstance(found, Class):
                return found
            return self.program.classes.attribute(Instance(owner, exact=True), name)
        found = self.program.inference.attribute(owner, name)
        if isinstance(found, Unknown) and isinstance(owner, Module) and self.program.has_module(f"{owner.name}.{name}"):
            # A package that answers for names of its own has its modules all the same.
            return Module(f"{owner.name}.{name}")
        return found

    def _near(self, absent: Absent) -> tuple[str, ...]:
        import difflib

        module = self.program.module(absent.owner)
        names = list(module.names) if module is not None else []
        if module is None:
            holder, _, name = absent.owner.rpartition(".")
            found = self.program.imported_name(holder, name) if holder else Unknown("")
            if isinstance(found, Class):
                names = sorted({name for name, _ in self._member_names(found)})
        return tuple(difflib.get_close_matches(absent.name, sorted(names), 3, 0.75))

    # Modules

    def _module(self, asked: str, name: str) -> Description:
        declaration = self.program.module(name)
        if declaration is None:
            return Description(asked, "module", name, text="no source that can be read")
        members = [
            self._named(f"{name}.{key}", self.program.lookup(declaration, key), Module(name), key)
            for key in self._public_names(declaration)
        ]
        shown = tuple(member for member in members if member.sort != "missing")
        return Description(asked, "module", name, declaration.path, 1, members=shown)

    def _public_names(self, module: ModuleDeclaration) -> list[str]:
        """The names that a module offers: `__all__`, else what it defines and does not import."""
        exported = self.program.exported_names(module)
        if exported is not None:
            return sorted(exported)
        return [
            name
            for name, bindings in module.names.items()
            if not name.startswith("_") and not all(isinstance(b.node, ast.Import | ast.ImportFrom) for b in bindings)
        ]

    # Names of modules

    def _named(self, asked: str, type_: Type, owner: Type | None, name: str) -> Description:
        for member in members_of(type_):
            if isinstance(member, Class):
                return self._class(asked, member)
            if isinstance(member, Function):
                return self._callable(asked, "function", member)
        if isinstance(type_, Module):
            return Description(asked, "module", type_.name)
        if isinstance(type_, Absent):
            return Description(asked, "missing", asked)
        if isinstance(type_, External):
            return Description(asked, "name", type_.path, text="outside the target")
        if isinstance(owner, Module):
            found = self.program.annotations.module_definition(owner.name, name)
            if found is not None:
                binding, scope = found
                return _value(asked, f"{scope.module.name}.{binding.name}", binding, scope.module)
        return Description(asked, "name", asked, text=type_.reason if isinstance(type_, Unknown) else "")

    def _callable(self, asked: str, sort: Sort, type_: Type) -> Description:
        callee = self.signatures.callee(type_)
        if isinstance(callee, Callee):
            return Description(asked, sort, callee.symbol, callee.path, callee.line, callee.signature)
        if isinstance(type_, Function):
            declaration = type_.declaration
            place = declaration.module.path, declaration.line
            return Description(asked, sort, declaration.symbol, *place, text=callee.reason)
        return Description(asked, sort, asked, text=callee.reason)

    # Classes

    def _class(self, asked: str, class_: Class) -> Description:
        declaration = class_.declaration
        callee = self.signatures.callee(class_)
        signature = callee.signature if isinstance(callee, Callee) else None
        bases = tuple(
            base.declaration.symbol
            if isinstance(base, Class)
            else base.path
            if isinstance(base, External)
            else base.reason
            for base in self.program.classes.linearize(declaration)[1:]
        )
        members = tuple(self._member(f"{declaration.symbol}.{name}", class_, name) for name in self._shown(class_))
        return Description(
            asked,
            "class",
            declaration.symbol,
            declaration.module.path,
            declaration.line,
            signature,
            "" if isinstance(callee, Callee) else callee.reason,
            bases,
            members,
        )

    def _shown(self, class_: Class) -> list[str]:
        return sorted({name for name, _ in self._member_names(class_) if not name.startswith("_")})

    def _member_names(self, class_: Class) -> Iterator[tuple[str, ClassDeclaration]]:
        for base in self.program.classes.linearize(class_.declaration):
            if isinstance(base, Class):
                names = [*base.declaration.members, *self.program.classes.stored_names(base.declaration)]
                yield from ((name, base.declaration) for name in names)

    def _member(self, asked: str, class_: Class, name: str) -> Description:
        receiver = Instance(class_, exact=True)
        for member in self.program.classes.members(class_, name):
            if isinstance(member, External | Unknown):
                continue
            owner = member.owner.declaration
            symbol = f"{owner.symbol}.{name}"
            for binding in member.bindings:
                if binding.function is not None:
                    role = self.program.classes.role(binding.function)
                    if role == "property":
                        returns = binding.function.node.returns
                        text = f"-> {ast.unparse(returns)}" if returns is not None else ""
                        return Description(asked, "property", symbol, owner.module.path, binding.line, text=text)
                    sort = _METHODS.get(role, "method")
                    found = self._callable(asked, sort, self.program.classes.attribute(receiver, name))
                    return (
                        found
                        if found.path is not None
                        else Description(asked, sort, symbol, owner.module.path, binding.line, text=found.text)
                    )
                if binding.class_ is not None:
                    return self._class(asked, Class(binding.class_))
                return _value(asked, symbol, binding, owner.module)
            for store in member.stores:
                return _value(asked, symbol, store.binding, store.function.module)
        type_ = self.program.classes.attribute(receiver, name)
        if isinstance(type_, Function):
            return self._callable(asked, "method", type_)
        text = type_.reason if isinstance(type_, Unknown) else "outside the target"
        return Description(asked, "attribute", f"{class_.declaration.symbol}.{name}", text=text)


_METHODS: dict[str, Sort] = {"method": "method", "classmethod": "class method", "staticmethod": "static method"}
_LONGEST_VALUE = 60


def _value(asked: str, symbol: str, binding: Binding, module: ModuleDeclaration) -> Description:
    """A name that holds a value: its annotation and what it is set to, as written."""
    parts: list[str] = []
    if binding.annotation is not None:
        parts.append(ast.unparse(binding.annotation))
    if binding.value is not None and not binding.path and not binding.element:
        value = ast.unparse(binding.value)
        parts.append(f"= {value}" if len(value) <= _LONGEST_VALUE else "= …")
    return Description(asked, "attribute", symbol, module.path, binding.line or None, text=" ".join(parts))
