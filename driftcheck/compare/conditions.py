"""Do the conditions of a rule hold in a release: questions that the release's own sources answer, with the place."""

from __future__ import annotations

from dataclasses import dataclass

from driftcheck.compare.judge import Judge
from driftcheck.rules import Condition
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.signatures import Callee
from driftcheck.surface.types import Absent, Class, Function, Instance, Module, Type, Unknown, members_of

Definition = ClassDeclaration | FunctionDeclaration


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a condition holds, None where that can't be told, and the place and signature or source that show it."""

    holds: bool | None
    path: str | None = None
    line: int | None = None
    signature: str | None = None
    source: str | None = None


class Conditions:
    """Answers conditions about one release."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.program = judge.program
        self._found: dict[str, Type | None] = {}
        self._answers: dict[Condition, Answer] = {}

    def answer(self, condition: Condition) -> Answer:
        """The answer to a condition, remembered."""
        found = self._answers.get(condition)
        if found is None:
            found = self._answers[condition] = self._answer(condition)
        return found

    def resolved(self, path: str) -> Type | None:
        """What a dotted path of the target leads to, None where it leads nowhere."""
        if path not in self._found:
            self._found[path] = self._resolve(path)
        return self._found[path]

    def definition(self, path: str) -> Definition | None:
        """The class, function, method or property that a dotted path leads to."""
        type_ = self.resolved(path)
        if isinstance(type_, Class | Function):
            return type_.declaration
        owner, _, name = path.rpartition(".")
        class_ = self.resolved(owner) if type_ is not None and owner else None
        if not isinstance(class_, Class):
            return None
        for base in self.program.classes.linearize(class_.declaration):
            bindings = base.declaration.members.get(name, []) if isinstance(base, Class) else []
            for binding in reversed(bindings):
                if binding.function is not None:
                    return binding.function
        return None

    def _resolve(self, path: str) -> Type | None:
        parts = path.split(".")
        split = len(parts)
        while split and not self.program.has_module(".".join(parts[:split])):
            split -= 1
        if not split or not self.program.is_target(parts[0]):
            return None
        found: Type = Module(".".join(parts[:split]))
        for part in parts[split:]:
            found = _one_of(self.program.inference.attribute(found, part))
            if isinstance(found, Absent):
                return None
        return found

    def _answer(self, condition: Condition) -> Answer:
        path = next((path for path in condition.of if self.resolved(path) is not None), None)
        if condition.question == "absent":
            return Answer(path is None, *self._nearest(condition.of[0]))
        if path is None:
            return Answer(False)
        type_ = self.resolved(path)
        definition = self.definition(path)
        if condition.question == "exists":
            is_known = definition is not None or not isinstance(type_, Unknown)
            return Answer(True if is_known else None, *(_place(definition) if definition else self._nearest(path)))
        if condition.question in ("body-mentions", "body-lacks"):
            return self._body(condition, definition)
        if condition.question in ("derives-from", "not-derives-from"):
            return self._derived(condition, definition)
        if condition.question in ("has-member", "lacks-member"):
            return self._member(condition, definition)
        return self._parameter(condition, type_)

    def _nearest(self, path: str) -> tuple[str | None, int | None]:
        """The place of the nearest thing around a path that is there."""
        while path:
            definition = self.definition(path)
            if definition is not None:
                return _place(definition)
            module = self.program.module(path)
            if module is not None:
                return module.path, 1
            path = path.rpartition(".")[0]
        return None, None

    def _body(self, condition: Condition, definition: Definition | None) -> Answer:
        if definition is None or condition.expression is None:
            return Answer(None)
        node, lines = definition.node, definition.module.lines
        source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        match = condition.expression.search(source)
        if condition.question == "body-lacks":
            return Answer(match is None, *_place(definition))
        if match is None:
            return Answer(False, *_place(definition))
        line = node.lineno + source.count("\n", 0, match.start())
        return Answer(True, definition.module.path, line, source=lines[line - 1].strip())

    def _derived(self, condition: Condition, definition: Definition | None) -> Answer:
        base = self.definition(condition.name)
        if not isinstance(definition, ClassDeclaration):
            return Answer(None)
        entries = self.program.classes.linearize(definition)
        derives = any(isinstance(entry, Class) and entry.declaration is base for entry in entries)
        if not derives and any(isinstance(entry, Unknown) for entry in entries):
            return Answer(None)
        return Answer(derives is (condition.question == "derives-from"), *_place(definition))

    def _member(self, condition: Condition, definition: Definition | None) -> Answer:
        if not isinstance(definition, ClassDeclaration):
            return Answer(None)
        found = self.program.classes.attribute(Instance(Class(definition)), condition.name)
        member = self.definition(f"{definition.symbol}.{condition.name}")
        if member is None and isinstance(found, Unknown):
            return Answer(None)
        has = not isinstance(found, Absent)
        return Answer(has is (condition.question == "has-member"), *_place(member or definition))

    def _parameter(self, condition: Condition, type_: Type | None) -> Answer:
        callee = self.judge.signatures.callee(type_) if type_ is not None else None
        if not isinstance(callee, Callee):
            return Answer(None)
        parameter = callee.signature.parameter(condition.name)
        place = callee.path, callee.line, str(callee.signature)
        if condition.question == "lacks-parameter":
            return Answer(parameter is None, *place)
        if condition.question == "has-parameter" or parameter is None:
            return Answer(parameter is not None, *place)
        if condition.question == "requires-parameter":
            return Answer(parameter.is_required, *place)
        if parameter.default is None:
            return Answer(False, *place)
        return Answer((parameter.default in condition.values) is (condition.question == "is"), *place)


def _one_of(type_: Type) -> Type:
    """The class or function among several things that a name may stand for, else the type as it is."""
    members = members_of(type_)
    return next((member for member in members if isinstance(member, Class | Function)), type_)


def _place(definition: Definition | None) -> tuple[str | None, int | None]:
    return (definition.module.path, definition.line) if definition is not None else (None, None)
