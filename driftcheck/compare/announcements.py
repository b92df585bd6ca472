"""What a target's sources say is to end, besides by a `deprecated` decorator, and which usages that concerns.

A module that warns when it is imported; a function that warns when it is called, or when an argument is given; a field
whose own text says that it goes. What depends on more than that an argument is there is left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from driftcheck.compare.confirm import Judged
from driftcheck.compare.deprecation import ending_release
from driftcheck.compare.judge import Verdict
from driftcheck.model import Arguments, Certainty, Evidence, Finding, Kind, Location, ParameterKind, Severity
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, UnreadableSource, parse_source
from driftcheck.surface.program import Program
from driftcheck.surface.signatures import Callee
from driftcheck.surface.syntax import last_name
from driftcheck.surface.types import Class, Instance, Module, members_of
from driftcheck.usage.usages import AttributeUsage, CallUsage, ImportUsage, Usage

_WARN = frozenset(("warn", "warning", "warning_once", "warn_once"))
_ENDS = re.compile(r"deprecat|(?:will|to|may) be removed", re.IGNORECASE)
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

    def __init__(self, program: Program) -> None:
        self.program = program
        self._modules: dict[str, Announcement | None] = {}
        self._functions: dict[FunctionDeclaration, tuple[Announcement, ...]] = {}
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
        given = _given(callee, arguments)
        if isinstance(callee.declaration, FunctionDeclaration):
            for found in self._of_function(callee.declaration):
                if found.parameter is None:
                    yield _finding(usage, usage.location, verdict.symbol, f"{callee.name}()", found)
                elif given.get(found.parameter) is not None:
                    given_at = given[found.parameter] or usage.location
                    yield _finding(usage, given_at, verdict.symbol, f"argument {found.parameter!r}", found)
        if callee.called is not None:
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
                    text = _warned(statement)
                    if text is not None:
                        self._modules[name] = Announcement(text, module.path, statement.lineno)
                        break
        return self._modules[name]

    def _of_function(self, function: FunctionDeclaration) -> tuple[Announcement, ...]:
        """What a function warns of whenever it is called, or an argument is given."""
        if function not in self._functions:
            is_named = self.program.is_target(function.module.name) and _ENDS.search(function.source)
            self._functions[function] = tuple(_warnings(function)) if is_named else ()
        return self._functions[function]

    def _of_field(self, class_: Class, name: str) -> Announcement | None:
        """What the text of a field says, of the class or of the nearest base that has the field."""
        for base in self.program.classes.mro(class_):
            if not isinstance(base, Class):
                return None
            if name in base.declaration.members:
                return self._fields(base.declaration).get(name)
        return None

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


def _warned(statement: ast.stmt) -> str | None:
    """The text of a statement that warns of an end; None for any other."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    if last_name(call.func) not in _WARN or not call.args:
        return None
    text = _text(call.args[0])
    return text if _ENDS.search(text) else None


def _text(node: ast.expr) -> str:
    """A text as it is written, with an ellipsis for what is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


def _warnings(function: FunctionDeclaration) -> Iterator[Announcement]:
    arguments = function.node.args
    names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    for statement in function.body:
        text = _warned(statement)
        if text is not None:
            yield Announcement(text, function.module.path, statement.lineno)
        elif isinstance(statement, ast.If):
            name = _given_by(statement.test)
            found = next(((each, text) for each in statement.body if (text := _warned(each)) is not None), None)
            if name in names and found is not None:
                yield Announcement(found[1], function.module.path, found[0].lineno, name)


def _given_by(test: ast.expr) -> str | None:
    """The name of which a test asks whether it is there (`x`, `x is not None`), None for any other test."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        compared = test.comparators[0]
        test = test.left if isinstance(compared, ast.Constant) and compared.value is None else compared
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
