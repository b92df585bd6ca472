"""What a rule's recipe comes to at the place of a finding: the edits, with what stands there filled in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from driftcheck.compare.call_patterns import Call, given_text
from driftcheck.compare.conditions import Conditions
from driftcheck.model import Edit, Finding, Fix, Kind, Location
from driftcheck.rules import Recipe, Rule
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.syntax import named_parameters
from driftcheck.surface.types import Class, Instance, Type, members_of
from driftcheck.usage.usages import CallUsage

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
# Placeholders that only the edit itself can fill.
_LEFT = ("result",)
_MOVES = ("move-import", "move-attribute", "rename-string", "rename-strings")


class PrescribedFixes:
    """Makes the fixes that rules prescribe; `calls` are the client's calls by place."""

    def __init__(self, target: Conditions, calls: Mapping[Location, Call]) -> None:
        self.target = target
        self.program = target.program
        self.calls = calls

    def of(self, rule: Rule, finding: Finding) -> Fix | None:
        """The fix of a finding that a rule knows, with what was derived for it where the rule leaves it open."""
        recipe = rule.recipe_for(finding)
        derived = finding.fix
        if recipe is None:
            return derived
        edits = self._edits(recipe, finding)
        if not edits and derived is not None and _is_complete(derived):
            # The rule says no more than what a person needs, and what is derived is right as far as it goes.
            return replace(derived, applicability="unsafe") if recipe.name == "message" else derived
        portable = rule.recipe_for(finding, is_portable=True)
        return replace(recipe.fix, edits=edits, portable=self._edits(portable, finding) if portable is not None else ())

    def _edits(self, recipe: Recipe, finding: Finding) -> tuple[Edit, ...]:
        parameters = dict(recipe.parameters)
        if recipe.name in ("move-import", "rename-symbol"):
            return tuple(self._moved(finding, parameters["symbol"], parameters["to"]))
        location = self._place(recipe, finding, parameters)
        if location is None:
            return ()
        texts = self._filled(recipe, finding, parameters)
        if texts is None:
            return ()
        if recipe.helper is not None:
            texts["helper"] = recipe.helper
        texts.pop("symbol", None)
        return (Edit(recipe.name, location, tuple(sorted(texts.items()))),)

    # Names that have moved

    def _moved(self, finding: Finding, symbol: str, to: str) -> Iterator[Edit]:
        edits = [edit for edit in (finding.fix.edits if finding.fix is not None else ()) if edit.recipe in _MOVES]
        moved: list[Edit] = []
        for edit in edits:
            new = self._new_path(edit.parameter("was") or "", symbol, to) or edit.parameter("to")
            if not new:
                return
            moved.append(replace(edit, parameters=(("to", new), ("was", edit.parameter("was") or ""))))
        yield from moved

    def _new_path(self, was: str, symbol: str, to: str) -> str | None:
        """Where a rule says that a path leads now, None where the target has nothing there."""
        path = was.replace(":", ".")
        if path != symbol and not path.startswith(f"{symbol}."):
            return None
        new = to + path[len(symbol) :]
        if self.target.resolved(new) is None:
            return None
        if ":" in was:
            count = len(was.partition(":")[2].split("."))
            names = new.split(".")
            return f"{'.'.join(names[:-count])}:{'.'.join(names[-count:])}"
        return new

    # Places

    def _place(self, recipe: Recipe, finding: Finding, parameters: Mapping[str, str]) -> Location | None:
        argument = parameters.get("argument")
        if argument is not None and finding.parameter not in (argument, None):
            return None
        if recipe.name in ("remove-argument", "rename-argument"):
            is_argument = finding.kind in (Kind.UNKNOWN_ARGUMENT, Kind.BROKEN_CONTRACT, Kind.SENTINEL_NONE)
            return self._argument_place(finding, argument) if is_argument else None
        if recipe.name in ("add-argument", "insert-helper", "insert-call-after"):
            if recipe.name == "add-argument" and finding.kind not in (Kind.MISSING_ARGUMENT, Kind.BROKEN_CONTRACT):
                return None
            is_call = recipe.name != "add-argument" or _is_about(finding, parameters["symbol"])
            return (finding.call or finding.location) if is_call else None
        if recipe.name == "remove-statement":
            is_setting = finding.kind is Kind.UNKNOWN_ENVIRONMENT_VARIABLE and finding.symbol == parameters["symbol"]
            return finding.location if is_setting else None
        if recipe.name in ("rename-attribute", "replace-attribute"):
            is_name = finding.symbol.rpartition(".")[2] == parameters["attribute"]
            return finding.location if is_name and finding.kind is Kind.UNRESOLVED_ATTRIBUTE else None
        if recipe.name in ("unwrap-subscript", "add-parameter"):
            return finding.location
        return None

    def _argument_place(self, finding: Finding, argument: str | None) -> Location | None:
        """The place of an argument, also where the finding stands at what becomes of the call's result."""
        call = self.calls.get(finding.call or finding.location)
        if call is None:
            return finding.location if finding.kind is not Kind.BROKEN_CONTRACT else None
        for each in call.arguments.keywords:
            if each.keyword == argument and each.location is not None:
                return each.location
        return finding.location if finding.kind is not Kind.BROKEN_CONTRACT else None

    # Placeholders

    def _filled(self, recipe: Recipe, finding: Finding, parameters: Mapping[str, str]) -> dict[str, str] | None:
        """The recipe's texts with the placeholders filled, None where something that they name is not at hand."""
        call = self.calls.get(finding.call or finding.location)
        scope = dict(recipe.scope)
        filled: dict[str, str] = {}
        for key, text in parameters.items():
            if recipe.name == "insert-call-after" and key == "call":
                filled[key] = text
                continue
            values: dict[str, str] = {}
            for name in _PLACEHOLDER.findall(text):
                value = self._at_hand(scope[name], call) if name in scope else _given(name, call)
                if value is None or not _is_repeatable(value):
                    return None
                values[name] = value
            filled[key] = _PLACEHOLDER.sub(lambda match: values[match[1]], text)  # noqa: B023 - used at once
        return filled

    def _at_hand(self, path: str, call: Call | None) -> str | None:
        """An expression that gives a value of a class where a call stands, None where nothing is known to."""
        wanted = self.target.definition(path)
        if call is None or not isinstance(wanted, ClassDeclaration):
            return None
        module = call.usage.place.module
        for expression, type_ in self._values(module, call.usage):
            if any(self._is_of(member, wanted) for member in members_of(type_)):
                return expression
        return None

    def _values(self, module: ModuleDeclaration, usage: CallUsage) -> Iterator[tuple[str, Type]]:
        """What names can be used at a usage: parameters of the function around it, then attributes of `self`."""
        outermost, _, rest = usage.scope.partition(".")
        class_ = next((each for each in module.classes() if each.name == outermost), None)
        function = _function(module, class_, rest if class_ is not None else outermost)
        if function is not None:
            scope = self.program.function_scope(function)
            arguments = function.node.args
            for argument in named_parameters(arguments):
                if argument.annotation is not None:
                    yield argument.arg, self.program.inference.infer(ast.Name(argument.arg, ast.Load()), scope)
        if class_ is not None and function is not None and function.node.args.args:
            receiver = function.node.args.args[0].arg
            for name in sorted(self.program.classes.stored_names(class_)):
                yield f"{receiver}.{name}", self.program.classes.attribute(Instance(Class(class_)), name)

    def _is_of(self, type_: Type, wanted: ClassDeclaration) -> bool:
        return (
            isinstance(type_, Instance)
            and isinstance(type_.class_, Class)
            and self.program.classes.is_subclass(type_.class_.declaration, wanted) is True
        )


def _function(module: ModuleDeclaration, class_: ClassDeclaration | None, name: str) -> FunctionDeclaration | None:
    names: Mapping[str, Sequence[object]] = class_.members if class_ is not None else module.names
    for binding in reversed(list(names.get(name.partition(".")[0], ()))):
        function = getattr(binding, "function", None)
        if isinstance(function, FunctionDeclaration):
            return function
    return None


def _given(name: str, call: Call | None) -> str | None:
    """What a call gives the parameter of that name, or what it is called on, as the client writes it."""
    if call is None:
        return None
    if name == "receiver":
        callee = call.usage.node.func
        return ast.unparse(callee.value) if isinstance(callee, ast.Attribute) else None
    return given_text(call, name)


def _is_repeatable(text: str) -> bool:
    """True where an expression can be written a second time, before a dot too: a name, or what is read from one."""
    try:
        node: ast.expr = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return False
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return isinstance(node, ast.Name)


def _is_about(finding: Finding, symbol: str) -> bool:
    """True where a finding is about a call of what a recipe names."""
    called = finding.symbol.removesuffix(".__init__").rpartition(".")[2]
    return called == symbol.removesuffix(".__init__").rpartition(".")[2]


def _is_complete(fix: Fix) -> bool:
    return bool(fix.edits) and all(edit.parameter("to") != "" for edit in fix.edits)


def settled(finding: Finding) -> Finding:
    """The finding without a fix of which nobody knows how it goes."""
    fix = finding.fix
    if fix is not None and (not fix.description or any(edit.parameter("to") == "" for edit in fix.edits)):
        return replace(finding, fix=None)
    return finding
