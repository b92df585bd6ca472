"""What a target's sources say is to end, besides by a `deprecated` decorator, and which usages that concerns.

A module that warns when it is imported; a function that warns when it is called, or when an argument is given; a field
whose own text says that it goes. What depends on more than that an argument is there is left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from driftcheck.compare.confirm import Judged
from driftcheck.compare.deprecation import ending_release
from driftcheck.compare.forwarding import Forwarding
from driftcheck.compare.judge import Verdict
from driftcheck.model import Arguments, Certainty, Evidence, Finding, Kind, Location, ParameterKind, Severity
from driftcheck.surface.declarations import (
    ClassDeclaration,
    FunctionDeclaration,
    ModuleDeclaration,
    UnreadableSource,
    parse_source,
)
from driftcheck.surface.program import Program
from driftcheck.surface.signatures import Callee
from driftcheck.surface.syntax import last_name, named_parameters
from driftcheck.surface.types import Class, Instance, Module, members_of
from driftcheck.usage.usages import AttributeUsage, CallUsage, ImportUsage, Usage

# So many defaults that are another class's are followed.
_DEPTH = 3
_WARN = frozenset(("warn", "warning", "warning_once", "warn_once"))
_ENDS = re.compile(r"deprecat|(?:will|to|may) be removed", re.IGNORECASE)
# A constant may hold what is said.
_ENDS_OR_CONSTANT = re.compile(rf"{_ENDS.pattern}|warn\w*\(\s*[A-Z_]+\b", re.IGNORECASE)
_FIELD_ENDS = re.compile(
    r"\A\W*deprecated\b|\b(?:this|the) (?:parameter|field|option|argument|setting|flag) (?:is|has been) deprecated\b"
    r"|\A(?:it|this) will be removed\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Announcement:
    """What is said of something's end, and where: of a callable's parameter where that alone ends."""

    text: str
    path: str
    line: int
    parameter: str | None = None


class Announcements:
    """Reads what one program's target announces, each thing once."""

    def __init__(self, program: Program, forwarding: Forwarding) -> None:
        self.program = program
        self.forwarding = forwarding
        self._modules: dict[str, Announcement | None] = {}
        self._functions: dict[FunctionDeclaration, tuple[Announcement, ...]] = {}
        self._methods: dict[FunctionDeclaration, tuple[Announcement, ...]] = {}
        self._classes: dict[ClassDeclaration, dict[str, Announcement]] = {}

    def findings(self, judged: Iterable[Judged]) -> Iterator[Finding]:
        """A note for every usage that fits and rests on what is announced to end."""
        for usage, verdict in judged:
            if verdict.status != "fits" or verdict.deprecation is not None or usage.is_typing_only:
                continue
            if isinstance(usage, ImportUsage):
                yield from self._imported(usage)
            elif isinstance(usage, CallUsage) and verdict.callee is not None and verdict.arguments is not None:
                yield from self._called(usage, verdict, verdict.callee, verdict.arguments)
            elif isinstance(usage, AttributeUsage) and not usage.is_called:
                yield from self._touched(usage, verdict)

    def _imported(self, usage: ImportUsage) -> Iterator[Finding]:
        module = usage.result.name if isinstance(usage.result, Module) and usage.name is not None else usage.module
        while module:
            found = self._of_module(module)
            if found is not None:
                yield _finding(usage, usage.location, module, module, found)
                return
            module = module.rpartition(".")[0]

    def _called(self, usage: CallUsage, verdict: Verdict, callee: Callee, arguments: Arguments) -> Iterator[Finding]:
        if isinstance(callee.declaration, FunctionDeclaration):
            for found in self._of_function(callee.declaration):
                if found.parameter is None:
                    yield _finding(usage, usage.location, verdict.symbol, f"{callee.name}()", found)
        given = _given(callee, arguments)
        yield from self._given_to(usage, verdict.symbol, callee, given)
        named = {parameter.name for parameter in callee.signature.parameters}
        for name, place in given.items():
            if name not in named and place is not None:
                for taker in self.forwarding.takers(callee, name):
                    yield from self._given_to(usage, taker.symbol, taker, {name: place})

    def _given_to(
        self, usage: CallUsage, symbol: str, callee: Callee, given: Mapping[str, Location | None]
    ) -> Iterator[Finding]:
        """What ends of the parameters and fields that a callable is given something for."""
        if isinstance(callee.declaration, FunctionDeclaration):
            for found in self._of_function(callee.declaration):
                if found.parameter is not None and given.get(found.parameter) is not None:
                    given_at = given[found.parameter] or usage.location
                    yield _finding(usage, given_at, symbol, f"argument {found.parameter!r}", found)
        if callee.called is not None:
            for found in self._of_made(callee):
                if found.parameter is not None and (place := given.get(found.parameter)) is not None:
                    yield _finding(usage, place, symbol, f"argument {found.parameter!r}", found)
            for name, place in given.items():
                field = self._of_field(Class(callee.called), name)
                if field is not None and place is not None:
                    yield _finding(usage, place, f"{callee.called.symbol}.{name}", f"argument {name!r}", field)

    def _touched(self, usage: AttributeUsage, verdict: Verdict) -> Iterator[Finding]:
        for member in members_of(usage.receiver):
            if isinstance(member, Instance) and isinstance(member.class_, Class):
                found = self._of_field(member.class_, usage.name)
                if found is not None:
                    yield _finding(usage, usage.location, verdict.symbol or usage.name, usage.name, found)
                    return

    # What the sources say

    def _of_module(self, name: str) -> Announcement | None:
        """What a module warns of whenever it is imported."""
        if name not in self._modules:
            module = self.program.module(name) if self.program.is_target(name) else None
            self._modules[name] = None
            if module is not None and _ENDS.search(module.text):
                for statement in _parsed(module.text):
                    text = _warned(statement, module)
                    if text is not None:
                        self._modules[name] = Announcement(text, module.path, statement.lineno)
                        break
        return self._modules[name]

    def _of_function(self, function: FunctionDeclaration) -> tuple[Announcement, ...]:
        """What a function warns of whenever it is called, or an argument is given."""
        if function not in self._functions:
            is_named = self.program.is_target(function.module.name) and _ENDS_OR_CONSTANT.search(function.source)
            self._functions[function] = tuple(_warnings(function, _parameters(function))) if is_named else ()
        return self._functions[function]

    def _of_made(self, callee: Callee) -> Iterator[Announcement]:
        """What the methods of a class whose constructor is made for it warn of where they find a field set."""
        if callee.called is None or not isinstance(callee.declaration, ClassDeclaration):
            return
        fields = {parameter.name for parameter in callee.signature.parameters}
        for base in self.program.classes.mro(Class(callee.called)):
            if not isinstance(base, Class) or not self.program.is_target(base.declaration.module.name):
                return
            for bindings in base.declaration.members.values():
                for function in (binding.function for binding in bindings):
                    if function is not None:
                        yield from self._of_method(function, fields)

    def _of_method(self, function: FunctionDeclaration, fields: Collection[str]) -> tuple[Announcement, ...]:
        if function not in self._methods:
            is_named = _ENDS_OR_CONSTANT.search(function.source)
            self._methods[function] = tuple(_warnings(function, fields, of_fields=True)) if is_named else ()
        return self._methods[function]

    def _of_field(self, class_: Class, name: str, depth: int = 0) -> Announcement | None:
        """What the text of a field says, of the class or of the nearest base that has the field.

        For a field whose default is another class's field, what the text of that one says.
        """
        for base in self.program.classes.mro(class_):
            if not isinstance(base, Class):
                return None
            if name in base.declaration.members:
                found = self._fields(base.declaration).get(name)
                return found if found is not None or depth > _DEPTH else self._of_default(base.declaration, name, depth)
        return None

    def _of_default(self, class_: ClassDeclaration, name: str, depth: int) -> Announcement | None:
        default = next((each.value for each in reversed(class_.members[name]) if each.value is not None), None)
        if not isinstance(default, ast.Attribute) or not isinstance(default.value, ast.Name):
            return None
        owner = self.program.inference.attribute(Module(class_.module.name), default.value.id)
        return self._of_field(owner, default.attr, depth + 1) if isinstance(owner, Class) else None

    def _fields(self, class_: ClassDeclaration) -> dict[str, Announcement]:
        """The fields of a class that are said to end."""
        if class_ not in self._classes:
            module, node = class_.module, class_.node
            self._classes[class_] = {}
            if self.program.is_target(module.name):
                text = "\n".join(module.lines[node.lineno - 1 : node.end_lineno])
                if _ENDS.search(text):
                    for name, said, line in _ending_fields(text):
                        self._classes[class_][name] = Announcement(said, module.path, node.lineno + line - 1)
        return self._classes[class_]


def _parsed(text: str) -> list[ast.stmt]:
    try:
        return parse_source(text).body
    except UnreadableSource:
        return []


def _warned(statement: ast.stmt, module: ModuleDeclaration) -> str | None:
    """The text of a statement that warns of an end; None for any other. A constant of the module may hold the text."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    if last_name(call.func) not in _WARN or not call.args:
        return None
    said = call.args[0]
    if isinstance(said, ast.Name):
        values = [each.value for each in module.names.get(said.id, ()) if each.value is not None]
        said = values[0] if len(values) == 1 else said
    text = _text(said)
    return text if _ENDS.search(text) else None


def _text(node: ast.expr) -> str:
    """A text as it is written, with an ellipsis for what is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


def _parameters(function: FunctionDeclaration) -> set[str]:
    arguments = function.node.args
    return {each.arg for each in named_parameters(arguments)}


def _warnings(
    function: FunctionDeclaration, names: Collection[str], *, of_fields: bool = False
) -> Iterator[Announcement]:
    """What a function warns of: of itself, or of what it (with `of_fields` its object) has under one of these names."""
    module = function.module
    for statement in function.body:
        text = _warned(statement, module)
        if text is not None:
            yield Announcement(text, function.module.path, statement.lineno)
        elif isinstance(statement, ast.If):
            name = _given_by(statement.test, of_fields=of_fields)
            found = next(((each, text) for each in statement.body if (text := _warned(each, module)) is not None), None)
            if name in names and found is not None:
                yield Announcement(found[1], function.module.path, found[0].lineno, name)


def _given_by(test: ast.expr, *, of_fields: bool) -> str | None:
    """The name of which a test asks whether it is there (`x`, `x is not None`, or `self.x`), None for any other."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        compared = test.comparators[0]
        test = test.left if isinstance(compared, ast.Constant) and compared.value is None else compared
    if of_fields:
        is_own = isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == "self"
        return last_name(test) if is_own else None
    return test.id if isinstance(test, ast.Name) else None


def _ending_fields(text: str) -> Iterator[tuple[str, str, int]]:
    """The fields in the text of a class that end, with what is said and the line of it."""
    classes = [each for each in _parsed(textwrap.dedent(text)) if isinstance(each, ast.ClassDef)]
    body = classes[0].body if classes else []
    for statement, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        said = _stated(statement.value)
        if not said and isinstance(following, ast.Expr):
            documented = _text(following.value)
            said = documented if any(_FIELD_ENDS.search(each) for each in _sentences(documented)) else ""
        if said:
            yield statement.target.id, said, statement.lineno


def _stated(value: ast.expr | None) -> str:
    """What `Field(deprecated="…")` states."""
    if not isinstance(value, ast.Call):
        return ""
    given = next((each.value for each in value.keywords if each.arg == "deprecated"), None)
    if given is None or (isinstance(given, ast.Constant) and not given.value):
        return ""
    return _text(given) or "deprecated"


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!:])\s+", " ".join(text.split()))


def _given(callee: Callee, arguments: Arguments) -> dict[str, Location | None]:
    """The parameters that a call gives something to, with the place of it; None for one that is given None."""
    found: dict[str, Location | None] = {}
    taking = [
        each
        for each in callee.signature.parameters
        if each.kind in (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)
    ]
    for parameter, argument in zip(taking, arguments.positional, strict=False):
        if argument.unpacked:
            break
        found[parameter.name] = None if argument.is_none else argument.location
    for argument in arguments.keywords:
        if argument.keyword is not None and not argument.unpacked:
            found[argument.keyword] = None if argument.is_none else argument.location
    return found


def _finding(usage: Usage, place: Location, symbol: str, what: str, found: Announcement) -> Finding:
    text = " ".join(found.text.split())
    release = ending_release(text)
    goes = f" and goes in {release}" if release is not None else ""
    return Finding(
        Kind.DEPRECATED_USAGE,
        Severity.NOTE,
        Certainty.LIKELY,
        place,
        symbol,
        f'{what} is deprecated{goes}: "{text}"',
        found.parameter,
        evidence=Evidence(found.path, found.line),
        scope=usage.scope,
    )
