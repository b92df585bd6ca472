"""The patterns of a rule that are seen in what stands for the target's things: overrides, replacements, mere use."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from driftcheck.compare.call_patterns import Spot
from driftcheck.compare.client_code import ClientCode, scope_name
from driftcheck.compare.conditions import Conditions
from driftcheck.compare.judge import Verdict
from driftcheck.compare.release import name_place
from driftcheck.rules import Detect
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.syntax import named_parameters, nodes_of
from driftcheck.surface.types import Class, Function, Instance, Module
from driftcheck.usage.places import location_of
from driftcheck.usage.usages import AttributeUsage, ClassUsage, ImportUsage, PatchUsage, Usage

ANY_KEYWORD = "**"


def overridden(detect: Detect, usage: Usage, conditions: Conditions) -> Iterator[Spot]:
    """The definitions of a client's class that stand before the method a rule names."""
    if not isinstance(usage, ClassUsage):
        return
    for symbol in detect.symbols:
        owner, _, name = symbol.rpartition(".")
        base = conditions.definition(owner)
        function = next((each for each in usage.declaration.methods() if each.name == name), None)
        if base is None or function is None or base not in _bases(conditions.program, usage.declaration):
            continue
        if not _takes(function, detect.lacks_parameter):
            scope = f"{usage.declaration.qualified_name}.{name}"
            yield Spot(name_place(function), scope, f"{base.symbol}.{name}")


def replaced(detect: Detect, usage: Usage, conditions: Conditions) -> Iterator[Spot]:
    """The patches that put something in the place of what a rule names."""
    if not isinstance(usage, PatchUsage) or usage.is_typing_only:
        return
    owner = usage.owner.class_ if isinstance(usage.owner, Instance) else usage.owner
    for symbol in detect.symbols:
        path, _, name = symbol.rpartition(".")
        if name != usage.name or not _is_owner(owner, path, conditions):
            continue
        function = usage.type.declaration if isinstance(usage.type, Function) else None
        if detect.lacks_parameter is None or (function is not None and not _takes(function, detect.lacks_parameter)):
            yield Spot(usage.location, usage.scope, symbol)


def replaced_by_name(detect: Detect, client: ClientCode) -> Iterator[Spot]:
    """The functions of a client's that it puts on some object under the name that a rule gives."""
    modules = client.modules_of_class(detect.in_class_of) if detect.in_class_of is not None else client.modules
    for module in modules:
        for statement in nodes_of(module.tree) if module.has_tree else ():
            if not isinstance(statement, ast.Assign) or not _stores(statement, detect.attribute):
                continue
            function = _function(module, statement.value)
            if detect.lacks_parameter is None:
                scope = scope_name(module.tree, statement.lineno)
                yield Spot(location_of(module, statement.targets[0]), scope, detect.attribute or "")
            elif function is not None and not _takes(function, detect.lacks_parameter):
                yield Spot(name_place(function), function.qualified_name, detect.attribute or "")


def used(detect: Detect, usage: Usage, verdict: Verdict, conditions: Conditions) -> Iterator[Spot]:
    """An import, or a use as an attribute, of what a rule names."""
    if usage.is_typing_only or not isinstance(usage, ImportUsage | AttributeUsage) or verdict.status != "fits":
        return
    for symbol in detect.symbols:
        definition = conditions.definition(symbol)
        if verdict.symbol in (symbol, definition.symbol if definition is not None else symbol):
            yield Spot(usage.location, usage.scope, symbol)


def _is_owner(owner: object, path: str, conditions: Conditions) -> bool:
    found = conditions.resolved(path)
    if isinstance(owner, Module):
        return isinstance(found, Module) and found.name == owner.name
    if not isinstance(owner, Class) or not isinstance(found, Class):
        return False
    return found.declaration in _bases(conditions.program, owner.declaration)


def _bases(program: Program, class_: ClassDeclaration) -> list[ClassDeclaration]:
    return [entry.declaration for entry in program.classes.linearize(class_) if isinstance(entry, Class)]


def _takes(function: FunctionDeclaration, parameter: str | None) -> bool:
    """True where a function takes a parameter, or "**", any keyword; nothing is taken where nothing is asked for."""
    if parameter is None:
        return False
    arguments = function.node.args
    named = named_parameters(arguments)
    return arguments.kwarg is not None or any(argument.arg == parameter for argument in named)


def _stores(statement: ast.Assign, attribute: str | None) -> bool:
    return any(isinstance(target, ast.Attribute) and target.attr == attribute for target in statement.targets)


def _function(module: ModuleDeclaration, value: ast.expr) -> FunctionDeclaration | None:
    """The module's own function that is stored, as it is or bound by `types.MethodType`."""
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    if not isinstance(value, ast.Name):
        return None
    return next((binding.function for binding in module.names.get(value.id, ()) if binding.function is not None), None)
