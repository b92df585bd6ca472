"""What repairs a finding, where the target's own sources tell it: names moved or renamed, arguments gone or new."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations

from driftcheck.compare.annotations import types_differ
from driftcheck.compare.bind import BindingProblem
from driftcheck.compare.counterparts import counterparts, near_name
from driftcheck.compare.relocation import NewHome, Relocation
from driftcheck.compare.strings import Strings
from driftcheck.model import (
    Applicability,
    Edit,
    Fix,
    Kind,
    Location,
    Parameter,
    ParameterKind,
    Signature,
)
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.signatures import Callee
from driftcheck.surface.syntax import called_name, named_parameters, own_nodes
from driftcheck.surface.types import Class, Function
from driftcheck.surface.words import encoded
from driftcheck.usage.places import location_of
from driftcheck.usage.usages import AttributeUsage, CallUsage, ImportUsage, ReturnUsage, StringUsage

_FILES_READ = 24
_PLAIN = ("bool", "bytes", "float", "int", "str")
_MOST_VALUES = 12
# Stands for whatever is passed that is no literal.
_COMPUTED = "…"
# A name in a module, or a name in a class of it.
_WITHIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")
_POSITIONAL = (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)


class DerivedFixes:
    """Fixes that no rule has to say."""

    def __init__(self, program: Program, relocation: Relocation) -> None:
        self.program = program
        self.relocation = relocation
        self._own_values: dict[tuple[str, str], str | None] = {}

    # Names

    def _home(self, module: str, name: str) -> NewHome | None:
        """Where a name is now; a thing that the baseline had under that name beside the other is none of it."""
        home = self.relocation.home(module, name)
        return home if home is not None and home.likeness < 3 else None

    def of_import(self, usage: ImportUsage, *, whole_statement: bool) -> Fix | None:
        """The import from where the names are now; an edit without `to` waits for a rule that knows."""
        module, statement = usage.place.module, usage.statement
        if usage.is_starred:
            return None
        if isinstance(statement, ast.Import):
            alias = next((each for each in statement.names if each.name == usage.module), None)
            if alias is None or usage.name is not None:
                return None
            edit = Edit("move-import", location_of(module, alias), (("was", usage.module), ("to", "")))
            return Fix("manual", "", (edit,))
        aliases = [each for each in statement.names if each.name != "*"]
        if not whole_statement:
            aliases = [each for each in aliases if each.name == usage.name]
        homes = [(alias, self._home(usage.module, alias.name)) for alias in aliases]
        edits = [_moved(location_of(module, alias), usage.module, alias.name, home) for alias, home in homes]
        found = [home for _, home in homes if home is not None]
        if len(found) < len(homes) or not homes:
            return Fix("manual", "", tuple(edits))
        return Fix(_surest(found), _import_said(found), tuple(edits))

    def of_module_attribute(self, usage: AttributeUsage, module: str, location: Location) -> Fix | None:
        """The import of what was read from a module that does not have it any more."""
        if usage.is_stored or usage.is_probed or usage.is_protocol:
            return None
        home = self._home(module, usage.name)
        edit = Edit(
            "move-attribute",
            location,
            (("was", f"{module}.{usage.name}"), ("to", f"{home.module}.{home.name}" if home is not None else "")),
        )
        if home is None:
            return Fix("manual", "", (edit,))
        return Fix("safe" if _is_sure(home) else "unsafe", _import_said([home]), (edit,))

    def of_string(self, usage: StringUsage) -> Fix | None:
        """The dotted path to where a thing is now."""
        if usage.role != "path":
            return None
        named = _WITHIN.fullmatch(usage.beside)
        if named is not None and self._is_module(usage.text):
            was = f"{usage.text}:{usage.beside}"
            edit = Edit("rename-strings", usage.location, (("was", was), ("to", self.new_path(was))))
            said = edit.parameter("to") or ""
            return Fix("unsafe", f"write {said.replace(':', ' and ')}", (edit,)) if said else Fix("manual", "", (edit,))
        to = self.new_path(usage.text)
        edit = Edit("rename-string", usage.location, (("was", usage.text), ("to", to)))
        return Fix("unsafe", f"write {to}", (edit,)) if to else Fix("manual", "", (edit,))

    def _is_module(self, path: str) -> bool:
        known = self.relocation.baseline
        return self.program.has_module(path) or (known is not None and known.has_module(path))

    def new_path(self, text: str) -> str:
        """Where what a dotted path led to is now, with its `:` where it had one; "" where that can't be told.

        What moved is a thing of a module; what stands behind it, the method of a class, goes with it.
        """
        parts = text.replace(":", ".").split(".")
        split = len(text.partition(":")[0].split(".")) if ":" in text else len(parts) - 1
        while ":" not in text and split > 1 and not self._is_module(".".join(parts[:split])):
            split -= 1
        if split == 1:
            split = len(parts) - 1
        home = self._home(".".join(parts[:split]), parts[split])
        if home is None:
            return ""
        name = ".".join([home.name, *parts[split + 1 :]])
        if split + 1 < len(parts) and Strings(self.program, None).path(f"{home.module}.{name}")[0] != "fits":
            return ""
        return f"{home.module}{':' if ':' in text else '.'}{name}"

    def of_member(self, usage: AttributeUsage, symbol: str, location: Location) -> Fix | None:
        """The new name of a member that its class has under another name now."""
        if usage.is_protocol or usage.is_probed:
            return None
        owner = symbol.rpartition(".")[0]
        now, before = _class(self.program, owner), _class(self.relocation.baseline, owner)
        if now is None or before is None or usage.name not in before.members:
            return None
        old = before.members[usage.name][-1]
        new = [
            name
            for name, bindings in now.members.items()
            if name not in before.members and (bindings[-1].function is None) is (old.function is None)
        ]
        near = near_name(usage.name, new)
        if near is None:
            return None
        new_one = now.members[near][-1]
        if old.function is not None and new_one.function is not None:
            if _names(old.function.node) != _names(new_one.function.node):
                return None
        elif old.annotation is None or new_one.annotation is None or not _are_alike(old.annotation, new_one.annotation):
            # Two values may have names alike and nothing else in common.
            return None
        return Fix("unsafe", f"use {near}", (Edit("rename-attribute", location, (("to", near),)),))

    # Calls

    def of_call(
        self, usage: CallUsage, problem: BindingProblem, callee: Callee, before: Signature | None
    ) -> Fix | None:
        """What makes a call right again: its arguments renamed, left out, added, or given by keyword."""
        argument = problem.argument
        if problem.kind is Kind.UNKNOWN_ARGUMENT and argument is not None and argument.location is not None:
            if argument.keyword is None:
                return None
            return _unknown(problem, argument.keyword, argument.location, usage, callee, before)
        if problem.kind is Kind.SENTINEL_NONE and argument is not None and argument.location is not None:
            name = problem.parameter or argument.keyword
            edit = Edit("remove-argument", argument.location, (("argument", name or ""),))
            return Fix("safe", f"leave {name} out", (edit,))
        if problem.kind is Kind.MISSING_ARGUMENT and problem.parameter is not None:
            value = self.own_value(callee, problem.parameter)
            if value is None:
                return None
            edit = Edit("add-argument", usage.location, (("argument", problem.parameter), ("value", value)))
            return Fix("unsafe", f"pass {problem.parameter}={value}, as the target's own calls do", (edit,))
        if problem.kind in (Kind.TOO_MANY_POSITIONAL_ARGUMENTS, Kind.POSITIONAL_SHIFT) and before is not None:
            return _named(usage, callee.signature, before) or _without_gone(usage, callee.signature, before)
        return None

    def of_unpacking(self, usage: ReturnUsage) -> Fix | None:
        """The values that come behind those that there were, taken as well and left alone."""
        if usage.use != "unpack" or usage.has_star or not isinstance(usage.callee, Function):
            return None
        now = usage.callee.declaration
        before = _declared(self.relocation.baseline, now)
        if before is None or not _has_only_gained(before, now, usage.count):
            return None
        return Fix("unsafe", "take what comes behind as well, and leave it alone", (Edit("take-rest", usage.location),))

    def own_value(self, callee: Callee, parameter: str) -> str | None:
        """The literal that the target's own calls pass for a parameter, None where they pass different things."""
        name = callee.name.removesuffix(".__init__").rpartition(".")[2]
        key = (name, parameter)
        if key not in self._own_values:
            question = f"values of {parameter} given to {name}"
            values = self.program.kept(question, list[str], lambda: self._values(name, parameter))
            self._own_values[key] = values[0] if len(values) == 1 and values != [_COMPUTED] else None
        return self._own_values[key]

    def _values(self, name: str, parameter: str) -> list[str]:
        """The different literals that are passed, each once, and an ellipsis where something else is."""
        return list(dict.fromkeys(self._passed(name, parameter)))

    def _passed(self, name: str, parameter: str) -> Iterator[str]:
        called = re.compile(rb"\b%s\s*\(" % re.escape(encoded(name)))
        passed = re.compile(rb"\b%s\s*=" % re.escape(encoded(parameter)))
        holding = self.program.target_holding(name, parameter)
        for path in [path for path, data in holding if called.search(data) and passed.search(data)][:_FILES_READ]:
            module_name = self.program.target_index.name_of(path)
            module = self.program.module(module_name) if module_name is not None else None
            if module is None:
                continue
            try:
                tree = ast.parse(module.text)
            except (SyntaxError, ValueError, RecursionError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and called_name(node) == name:
                    for keyword in node.keywords:
                        if keyword.arg == parameter:
                            yield ast.unparse(keyword.value) if isinstance(keyword.value, ast.Constant) else _COMPUTED


def _unknown(
    problem: BindingProblem,
    name: str,
    location: Location,
    usage: CallUsage,
    callee: Callee,
    before: Signature | None,
) -> Fix | None:
    given = {keyword.arg for keyword in usage.node.keywords}
    renamed = counterparts(before, callee.signature).get(name) if before is not None else None
    if renamed is not None and renamed != name and renamed not in given:
        parameter = callee.signature.parameter(renamed)
        if (
            parameter is not None
            and parameter.kind is not ParameterKind.POSITIONAL_ONLY
            and _is_like(before, name, parameter)
        ):
            edit = Edit("rename-argument", location, (("argument", name), ("to", renamed)))
            return Fix("unsafe", f"pass it as {renamed}", (edit,))
    if before is None or (problem.raises is None and problem.certainty.value == "possible"):
        return None
    if before.parameter(name) is None and not any(each.kind is ParameterKind.VAR_KEYWORD for each in before.parameters):
        # What is declared never took it, so something else must have.
        return None
    return Fix("unsafe", f"leave {name} out", (Edit("remove-argument", location, (("argument", name),)),))


def _is_like(before: Signature | None, name: str, successor: Parameter) -> bool:
    """False where a parameter of another type stands in the place of one that is gone."""
    gone = before.parameter(name) if before is not None else None
    return gone is None or not types_differ(gone.annotation, successor.annotation)


def _named(usage: CallUsage, now: Signature, before: Signature) -> Fix | None:
    """Arguments by keyword from the first place on that means something else now."""
    old = [parameter.name for parameter in before.parameters if parameter.kind in _POSITIONAL]
    new = [parameter.name for parameter in now.parameters if parameter.kind in _POSITIONAL]
    continued = counterparts(before, now)
    by_keyword = {
        parameter.name
        for parameter in now.parameters
        if parameter.kind in (ParameterKind.POSITIONAL_OR_KEYWORD, ParameterKind.KEYWORD_ONLY)
    }
    names = [continued.get(name, "") if continued.get(name, "") in by_keyword else "" for name in old]
    first = next((place for place, name in enumerate(names) if place >= len(new) or new[place] != name), len(names))
    count = len(usage.node.args)
    if first >= count or count > len(names) or not all(names[first:count]):
        return None
    edit = Edit("positional-to-keyword", usage.location, (("names", ",".join(names)), ("first", str(first))))
    return Fix("safe", f"pass {', '.join(names[first:count])} by keyword", (edit,))


def _without_gone(usage: CallUsage, now: Signature, before: Signature) -> Fix | None:
    """The positional arguments whose parameters are gone left out, where the others are then in their right places."""
    old = [parameter.name for parameter in before.parameters if parameter.kind in _POSITIONAL]
    new = [parameter.name for parameter in now.parameters if parameter.kind in _POSITIONAL]
    given = usage.node.args
    if len(given) > len(old) or any(isinstance(each, ast.Starred) for each in given):
        return None
    continued = counterparts(before, now)
    names = [continued.get(name) for name in old[: len(given)]]
    gone = [place for place, name in enumerate(names) if name is None]
    kept = [name for name in names if name is not None]
    if not gone or kept != new[: len(kept)]:
        return None
    edits = [Edit("remove-argument", usage.locate(given[place]), (("closing", "yes"),)) for place in gone]
    return Fix("unsafe", f"leave {', '.join(old[place] for place in gone)} out", tuple(edits))


def _moved(location: Location, module: str, name: str, home: NewHome | None) -> Edit:
    to = f"{home.module}.{home.name}" if home is not None else ""
    return Edit("move-import", location, (("was", f"{module}.{name}"), ("to", to)))


def _is_sure(home: NewHome) -> bool:
    return home.likeness == 0 or (home.likeness == 1 and home.is_only)


def _surest(homes: list[NewHome]) -> Applicability:
    return "safe" if all(_is_sure(home) for home in homes) else "unsafe"


def _import_said(homes: list[NewHome]) -> str:
    by_module: dict[str, list[str]] = {}
    for home in homes:
        by_module.setdefault(home.module, []).append(home.name)
    return "import " + ", ".join(f"{', '.join(names)} from {module}" for module, names in by_module.items())


def _class(program: Program | None, symbol: str) -> ClassDeclaration | None:
    if program is None:
        return None
    module, _, name = symbol.rpartition(".")
    found = program.imported_name(module, name) if program.has_module(module) else None
    return found.declaration if isinstance(found, Class) else None


def _declared(program: Program | None, function: FunctionDeclaration) -> FunctionDeclaration | None:
    """What a program has under the name of another's function."""
    if program is None:
        return None
    if function.owner is None:
        name = (
            program.imported_name(function.module.name, function.name)
            if function.qualified_name.isidentifier()
            else None
        )
        return name.declaration if isinstance(name, Function) else None
    owner = _class(program, function.owner.symbol)
    return owner.members[function.name][-1].function if owner is not None and function.name in owner.members else None


def _has_only_gained(before: FunctionDeclaration, now: FunctionDeclaration, count: int) -> bool:
    """True where a function that gave so many values gives others behind them, as it says and as it does."""
    old, new = _tuple_said(before), _tuple_said(now)
    if len(old) != count or len(new) <= count or old != new[:count]:
        return False
    kept = [chosen for chosen in combinations(range(len(new)), count) if tuple(new[place] for place in chosen) == old]
    if len(kept) == 1:
        return True
    # What is said of them does not tell the values apart, so what is returned has to.
    was, given = _columns(before, len(old)), _columns(now, len(new))
    likeness = {chosen: sum(len(was[i] & given[place]) for i, place in enumerate(chosen)) for chosen in kept}
    first = likeness.pop(tuple(range(count)))
    return first > max(likeness.values())


def _tuple_said(function: FunctionDeclaration) -> tuple[str, ...]:
    """What a function says of each of the values that it gives."""
    said = function.node.returns
    if isinstance(said, ast.Constant) and isinstance(said.value, str):
        try:
            said = ast.parse(said.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return ()
    if (
        not isinstance(said, ast.Subscript)
        or not isinstance(said.slice, ast.Tuple)
        or len(said.slice.elts) > _MOST_VALUES
    ):
        return ()
    elements = said.slice.elts
    is_tuple = ast.unparse(said.value).rpartition(".")[2] in ("tuple", "Tuple")
    is_open = any(isinstance(each, ast.Constant) and each.value is Ellipsis for each in elements)
    return tuple(ast.unparse(each) for each in elements) if is_tuple and not is_open else ()


def _columns(function: FunctionDeclaration, count: int) -> list[set[str]]:
    """What is returned at each place of a tuple, by the function or what overrides it in its module."""
    found: list[set[str]] = [set() for _ in range(count)]
    for each in [function, *_overrides(function)]:
        for node in own_nodes(each.body):
            value = node.value if isinstance(node, ast.Return) else None
            if isinstance(value, ast.Tuple) and len(value.elts) == count:
                for column, element in zip(found, value.elts, strict=True):
                    column.add(ast.unparse(element))
    return found


def _overrides(function: FunctionDeclaration) -> Iterator[FunctionDeclaration]:
    owner = function.owner
    for other in function.module.classes() if owner is not None else ():
        bases = [each.id for each in other.node.bases if isinstance(each, ast.Name)]
        override = other.members[function.name][-1].function if function.name in other.members else None
        if owner is not None and owner.name in bases and override is not None:
            yield override


def _are_alike(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = node.args
    return [each.arg for each in named_parameters(arguments)]


def are_behind(own: Signature, base: Signature) -> bool:
    """True where what a base's method takes by position begins with what the client's version of it takes."""
    mine = [parameter.name for parameter in own.parameters if parameter.kind in _POSITIONAL]
    theirs = [parameter.name for parameter in base.parameters if parameter.kind in _POSITIONAL]
    return mine == theirs[: len(mine)]


def new_parameters(location: Location, own: Signature, base: Signature, before: Signature | None) -> Fix | None:
    """The parameters of a base's method that the client's version of it lacks, each with a default.

    A parameter that the baseline's version had already is left to a person, since leaving it out was meant; and so is
    all where one that the client's version requires is gone or has another name: nobody passes it any more.
    """
    if before is not None and any(
        parameter.is_required and before.parameter(parameter.name) and base.parameter(parameter.name) is None
        for parameter in own.parameters
    ):
        return None
    edits: list[Edit] = []
    previous = ""
    for parameter in base.parameters:
        if parameter.is_variadic:
            # Taking anything at all, and dropping it, is for a rule or a person to decide.
            continue
        if own.parameter(parameter.name) is not None:
            previous = parameter.name
        elif before is None or before.parameter(parameter.name) is None:
            edits.append(_addition(location, parameter, previous))
            previous = parameter.name
    if not edits:
        return None
    names = ", ".join(re.sub(r": \w+ = ", "=", edit.parameter("parameter") or "") for edit in edits)
    return Fix("unsafe", f"take {names}, and hand it on where the base's method is called", tuple(edits))


def _addition(location: Location, parameter: Parameter, after: str) -> Edit:
    default = parameter.default if parameter.default is not None and _is_literal(parameter.default) else "None"
    # Other annotations would need imports, and None is no value of these.
    annotation = f": {parameter.annotation} = " if parameter.annotation in _PLAIN and default != "None" else "="
    return Edit(
        "add-parameter",
        location,
        (
            ("parameter", f"{parameter.name}{annotation}{default}"),
            ("after", after),
            ("keyword-only", "yes" if parameter.kind is ParameterKind.KEYWORD_ONLY else "no"),
            # Whoever calls it without hands None on to a method that may not take it.
            ("required", "yes" if parameter.default is None else "no"),
        ),
    )


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
