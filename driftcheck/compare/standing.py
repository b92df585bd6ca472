"""What stands under a dotted path in one release, with what the release says of its end."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import replace

from driftcheck.compare.deprecation import deprecation_of
from driftcheck.compare.environment import Variables
from driftcheck.knowledge import Environment
from driftcheck.model import Parameter, Signature
from driftcheck.surface.declarations import Binding, FunctionDeclaration
from driftcheck.surface.description import Description, Descriptions
from driftcheck.surface.libraries import has_member
from driftcheck.surface.program import Program
from driftcheck.surface.signatures import Callee, Signatures
from driftcheck.surface.syntax import last_name
from driftcheck.surface.types import Absent, Class, External, Function, Instance, Module, Type, Unknown, members_of
from driftcheck.symbol_history import Standing

# Classes of other libraries whose heirs have the fields that they declare.
_DECLARING = re.compile(r"^(msgspec\.Struct|pydantic\.(main\.)?BaseModel)$")
_CALLED = ("function", "method", "class method", "static method")
_NEAR = 0.6


class Standings:
    """Says what symbols are in one release."""

    def __init__(self, program: Program, environment: Environment | None) -> None:
        self.program = program
        self.environment = environment
        self.descriptions = Descriptions(program)
        self.signatures = Signatures(program)
        self.variables = Variables(program, environment)

    def of(self, symbol: str) -> Standing:
        """What a dotted path, or an environment variable by its name, is in the release."""
        variable = self.variable(symbol)
        if variable is not None:
            return self._variable(variable)
        owner, _, name = symbol.rpartition(".")
        if name == "__init__" and owner:
            class_ = self._type_of(owner)
            if isinstance(class_, Class):
                return self._constructor(class_)
        return self._described(symbol, self.descriptions.describe(symbol))

    def variable(self, symbol: str) -> str | None:
        """The name of the environment variable that a symbol is, None where it is none."""
        if self.environment is None:
            return None
        name = symbol.removeprefix(f"{self.environment.module}.")
        return name if "." not in name and name.startswith(self.environment.prefix) else None

    def function(self, symbol: str) -> FunctionDeclaration | None:
        """The function that a dotted path leads to, None where it is none or nobody wrote it.

        For a constructor that is made for its class, it is what the class does after it.
        """
        owner, _, name = symbol.rpartition(".")
        holder = self._type_of(owner) if owner else None
        if name == "__init__" and isinstance(holder, Class):
            callee = self.signatures.callee(holder)
            written = callee.declaration if isinstance(callee, Callee) else None
            if isinstance(written, FunctionDeclaration):
                return written
            name = "__post_init__"
        found = self._declaration(holder, name, f"{owner}.{name}")
        return _implementation(found) if isinstance(found, FunctionDeclaration) else None

    # Names, attributes and what is called

    def _described(self, symbol: str, found: Description) -> Standing:
        if found.sort == "missing":
            return Standing("absent", reason=found.text, near=self._near(symbol))
        owner, _, name = symbol.rpartition(".")
        holder = self._type_of(owner) if owner else None
        shim = self._shim(holder, name)
        type_ = self._type_of(symbol)
        if isinstance(type_, External) and isinstance(holder, Module):
            return Standing("there", type_.path, "name of another library", deprecation=shim)
        if found.path is None and not isinstance(type_, Module):
            if shim is None and not self._answers(holder, name):
                if isinstance(holder, Class) and self._is_undeclared(holder, name):
                    return Standing(
                        "absent", reason=f"{holder.declaration.symbol} has no {name}", near=self._near(symbol)
                    )
                return Standing("unknown", sort=found.sort, reason=found.text or "nothing can be told of it")
            return Standing("there", sort=found.sort, deprecation=shim, reason=found.text)
        declaration = self._declaration(holder, name, symbol)
        standing = Standing(
            "there",
            found.symbol,
            found.sort,
            found.path,
            found.line,
            self._valued(found.signature, declaration if isinstance(declaration, Class) else holder, found),
            value=found.text if found.sort in ("attribute", "property") else "",
            bases=found.bases if found.sort == "class" else (),
            deprecation=shim if shim is not None else self._ends(declaration, found),
            reason=found.text if found.sort not in ("attribute", "property") else "",
        )
        if found.sort in _CALLED and isinstance(declaration, FunctionDeclaration) and declaration.is_async:
            standing = replace(standing, sort=f"async {found.sort}")
        if found.sort == "attribute" and isinstance(holder, Class):
            field = self._field(holder, name)
            if field is not None:
                return replace(standing, sort="field", field=field, value="")
        return standing

    def _is_undeclared(self, class_: Class, name: str) -> bool:
        """True for a name that a class of declared fields has not, though its outermost base is another library's.

        Such bases have names of their own that are known, and take no field that nobody declared.
        """
        if name.startswith("_"):
            return False
        for base in self.program.classes.mro(class_):
            if isinstance(base, External) and _DECLARING.match(base.path) and not has_member(base.path, name):
                continue
            if not isinstance(base, Class) or "__getattr__" in base.declaration.members:
                return False
        return not any(getattr(each, "bindings", ()) for each in self.program.classes.members(class_, name))

    def _constructor(self, class_: Class) -> Standing:
        callee = self.signatures.callee(class_)
        declaration = class_.declaration
        path, line = declaration.module.path, declaration.line
        if isinstance(callee, Callee):
            return Standing(
                "there",
                f"{declaration.symbol}.__init__",
                "constructor",
                callee.path,
                callee.line,
                self._valued(callee.signature, class_, None),
                deprecation=deprecation_of(callee.declaration) or deprecation_of(declaration),
            )
        symbol = f"{declaration.symbol}.__init__"
        return Standing("there", symbol, "constructor", path, line, reason=callee.reason)

    def _field(self, class_: Class, name: str) -> Parameter | None:
        """The parameter of the constructor nobody wrote that sets a field."""
        for member in self.program.classes.members(class_, "__init__"):
            if getattr(member, "bindings", ()):
                return None
        callee = self.signatures.callee(class_)
        signature = self._valued(callee.signature, class_, None) if isinstance(callee, Callee) else None
        return signature.parameter(name) if signature is not None else None

    # Defaults that are named

    def _valued(self, signature: Signature | None, holder: Type | None, found: Description | None) -> Signature | None:
        """The signature with the values of constants in the place of their names: these are what a call gets."""
        if signature is None:
            return None
        modules: list[str] = []
        members: list[dict[str, list[Binding]]] = []
        if isinstance(holder, Class):
            for base in self.program.classes.linearize(holder.declaration):
                if isinstance(base, Class):
                    modules.append(base.declaration.module.name)
                    members.append(base.declaration.members)
        elif found is not None:
            modules.append(found.symbol.rpartition(".")[0])
        parameters = tuple(
            replace(each, default=self._value_of(each.default, modules, members)) if each.default is not None else each
            for each in signature.parameters
        )
        return replace(signature, parameters=parameters)

    def _value_of(self, default: str, modules: list[str], members: list[dict[str, list[Binding]]]) -> str:
        """What a default is: the literal that its name stands for, where that is one and the same."""
        if not default.isidentifier() or default in ("None", "True", "False"):
            return default
        values: set[str | None] = set()
        for names in members:
            if default in names:
                values.add(_literal(names[default]))
        for module in dict.fromkeys(modules):
            definition = self.program.annotations.module_definition(module, default)
            declaration = definition[1].module if definition is not None else None
            if definition is not None and declaration is not None:
                values.add(_literal(declaration.names.get(definition[0].name, [])))
        value = values.pop() if len(values) == 1 else None
        return default if value is None else value

    # Types on the way

    def _type_of(self, symbol: str) -> Type:
        type_: Type = Unknown("no path")
        for module, parts in self.descriptions.starts(symbol):
            type_ = self._followed(self.program.module_type(module), parts)
            if not isinstance(type_, Absent):
                break
        return type_

    def _followed(self, type_: Type, parts: list[str]) -> Type:
        for part in parts:
            if isinstance(type_, Class):
                found = self.program.classes.attribute(type_, part)
                if not isinstance(found, Class):
                    found = self.program.classes.attribute(Instance(type_, exact=True), part)
                type_ = found
            elif isinstance(type_, Unknown | Absent):
                return type_
            else:
                type_ = self._attribute(type_, part)
            type_ = next((each for each in members_of(type_) if isinstance(each, Class | Function)), type_)
        return type_

    def _attribute(self, owner: Type, name: str) -> Type:
        found = self.program.inference.attribute(owner, name)
        if isinstance(found, Unknown) and isinstance(owner, Module) and self.program.has_module(f"{owner.name}.{name}"):
            # A package that answers for names of its own has its modules all the same.
            return Module(f"{owner.name}.{name}")
        return found

    def _shim(self, holder: Type | None, name: str) -> str | None:
        """What a module says when it answers for a deprecated name; None where it says nothing."""
        module = self.program.module(holder.name) if isinstance(holder, Module) else None
        if module is None or name in module.names:
            return None
        exports = self.program.module_getattr(module)
        found = exports.deprecated.get(name) if exports is not None else None
        return found.message if found is not None else None

    def _answers(self, holder: Type | None, name: str) -> bool:
        """True where a module surely has a name, whatever it is."""
        module = self.program.module(holder.name) if isinstance(holder, Module) else None
        if module is None:
            return False
        exports = self.program.module_getattr(module)
        return self.program.defines(module.name, name) or (exports is not None and name in exports.names)

    def _declaration(self, holder: Type | None, name: str, symbol: str) -> FunctionDeclaration | Class | None:
        if isinstance(holder, Class):
            for member in self.program.classes.members(holder, name):
                for binding in getattr(member, "bindings", ()):
                    if binding.function is not None:
                        function: FunctionDeclaration = binding.function
                        return function
        found = self._type_of(symbol)
        if isinstance(found, Function):
            return found.declaration
        return found if isinstance(found, Class) else None

    def _ends(self, declaration: FunctionDeclaration | Class | None, found: Description) -> str | None:
        if isinstance(declaration, Class):
            return deprecation_of(declaration.declaration)
        return deprecation_of(declaration) if declaration is not None else None

    def _near(self, symbol: str) -> tuple[str, ...]:
        """Paths like one that is absent: the first part of it that is not there, spelled as the release has it."""
        parts = symbol.split(".")
        for count in range(len(parts) - 1, 0, -1):
            path = ".".join(parts[:count])
            type_ = self._type_of(path)
            names = self._names(type_)
            if names:
                close = difflib.get_close_matches(parts[count], sorted(names), 1, _NEAR)
                return tuple(f"{path}.{each}" for each in close)
        return ()

    def _names(self, type_: Type) -> set[str]:
        if isinstance(type_, Module):
            module = self.program.module(type_.name)
            names = set(module.names) if module is not None else set()
            exports = self.program.module_getattr(module) if module is not None else None
            if exports is not None:
                names |= set(exports.names)
            inside = f"{type_.name}."
            for name in (*self.program.target_index.sources, *self.program.target_index.namespaces):
                if name.startswith(inside):
                    names.add(name[len(inside) :].partition(".")[0])
            return names
        if isinstance(type_, Class):
            found: set[str] = set()
            for base in self.program.classes.linearize(type_.declaration):
                if isinstance(base, Class):
                    found.update(base.declaration.members)
                    found.update(self.program.classes.stored_names(base.declaration))
            return found
        return set()

    # Environment variables

    def _variable(self, name: str) -> Standing:
        assert self.environment is not None
        symbol = self.variables.symbol(name)
        module = self.program.module(self.environment.module)
        exports = self.program.module_getattr(module) if module is not None else None
        table = exports.names if exports is not None else {}
        declared = module.names.get(name, []) if module is not None else []
        if module is not None and (name in table or declared):
            return self._read(name, symbol, module.path, table.get(name))
        holding = self._reading(name)
        if holding is not None:
            path, line = holding
            # Its table does not have it, so it has no path; where it is read may change from release to release.
            return Standing("there", name, "environment variable", path, line)
        if module is not None and exports is None and not any(each.startswith(name[:5]) for each in module.names):
            return Standing("unknown", sort="environment variable", reason="the table of variables can't be read")
        close = difflib.get_close_matches(name, sorted({*table, *(module.names if module else ())}), 1, _NEAR)
        return Standing("absent", reason=f"{self.environment.module} has no {name}", near=tuple(close))

    def _read(self, name: str, symbol: str, path: str, reader: ast.expr | None) -> Standing:
        """What the table says of a variable: its declared type and default, and the expression that reads it."""
        assert self.environment is not None
        module = self.program.module(self.environment.module)
        assert module is not None
        declared = next((each for each in module.names.get(name, ()) if each.annotation is not None), None)
        field: Parameter | None = None
        line = reader.lineno if reader is not None else None
        if declared is not None and declared.annotation is not None:
            default = ast.unparse(declared.value) if declared.value is not None else None
            field = Parameter(name, default=default, annotation=ast.unparse(declared.annotation))
            line = line or declared.line
        elif module.names.get(name):
            binding = module.names[name][-1]
            line = line or binding.line
            reader = reader or binding.value
        body = reader.body if isinstance(reader, ast.Lambda) else reader
        value = ast.unparse(body) if body is not None else ""
        return Standing("there", symbol, "environment variable", path, line, field=field, value=value)

    def _reading(self, name: str) -> tuple[str, int] | None:
        """The first place where a source names the variable in quotes."""
        for path, data in self.program.target_holding(name):
            for quote in ('"', "'"):
                at = data.find(f"{quote}{name}{quote}".encode())
                if at >= 0:
                    return path, data.count(b"\n", 0, at) + 1
        return None


def _implementation(function: FunctionDeclaration) -> FunctionDeclaration:
    """The function that answers, where what was found tells only an overload, or sets or deletes a property."""
    if not _is_aside(function):
        return function
    names = function.module.names if function.owner is None else function.owner.members
    others = [each.function for each in reversed(names.get(function.name, [])) if each.function]
    return next((other for other in others if not _is_aside(other)), function)


def _is_aside(function: FunctionDeclaration) -> bool:
    return any(last_name(node) in ("overload", "setter", "deleter") for node in function.node.decorator_list)


def _literal(bindings: list[Binding]) -> str | None:
    """The constant that a name is bound to, where it is bound once."""
    if len(bindings) != 1 or bindings[0].path or bindings[0].element:
        return None
    value = bindings[0].value
    if isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant):
        return ast.unparse(value)
    return ast.unparse(value) if isinstance(value, ast.Constant) else None
