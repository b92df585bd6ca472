"""The patterns of a rule that are seen in calls: an argument given or left out, a call that another has to go with."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from driftcheck.compare.client_code import ClientCode
from driftcheck.compare.judge import Judge, Verdict
from driftcheck.compare.results import taken_apart
from driftcheck.model import Argument, Arguments, Location, ParameterKind, Signature
from driftcheck.rules import Detect
from driftcheck.surface.signatures import Callee
from driftcheck.surface.types import Class, Function, Super, members_of
from driftcheck.usage.places import location_of
from driftcheck.usage.usages import CallUsage

_POSITIONAL = (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the client that a pattern fits: `callee` is what is called or replaced, `call` the place of it."""

    location: Location
    scope: str
    symbol: str
    callee: Callee | None = None
    call: Location | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the client's that the target binds or refuses, and what it meets."""

    usage: CallUsage
    callee: Callee
    arguments: Arguments

    def spot(self, place: Location | None = None) -> Spot:
        """The place of the call, or of a part of what becomes of it."""
        location = self.usage.location
        return Spot(place or location, self.usage.scope, self.callee.symbol, self.callee, location)


def call_of(usage: CallUsage, verdict: Verdict) -> Call | None:
    """The call as patterns see it, None where nobody knows what is called."""
    if verdict.callee is None or verdict.arguments is None or verdict.is_handed_on or usage.is_typing_only:
        return None
    return Call(usage, verdict.callee, verdict.arguments)


class CallPatterns:
    """Looks for the patterns in calls, given the client's code around them."""

    def __init__(self, judge: Judge, client: ClientCode) -> None:
        self.judge = judge
        self.client = client

    def spot(self, detect: Detect, call: Call) -> Spot | None:
        """The place that the pattern of a rule finds in a call of its symbol."""
        return _PATTERNS[detect.pattern](self, detect, call)

    def _called(self, detect: Detect, call: Call) -> Spot | None:
        return call.spot()

    def _without_argument(self, detect: Detect, call: Call) -> Spot | None:
        parameters = call.callee.signature.parameters
        parameter = next((each for each in parameters if each.name == detect.argument), None)
        if parameter is None:
            # It may be among those that are handed on.
            parameter = next((each for each in parameters if each.kind is ParameterKind.VAR_KEYWORD), None)
        if parameter is None or parameter.is_required:
            # An argument that has to be there is missed by binding already.
            return None
        given = _given(call, detect.argument)
        is_none = isinstance(given, Argument) and given.is_none and parameter.default in (None, "None")
        return call.spot() if given is None or is_none else None

    def _with_argument(self, detect: Detect, call: Call) -> Spot | None:
        given = _given(call, detect.argument)
        return call.spot(given.location) if isinstance(given, Argument) else None

    def _argument_value(self, detect: Detect, call: Call) -> Spot | None:
        given = _given(call, detect.argument)
        if isinstance(given, Argument):
            return call.spot(given.location) if _plain(given.value) in map(_plain, detect.values) else None
        parameter = call.callee.signature.parameter(detect.argument or "")
        default = parameter.default if given is None and parameter is not None else None
        return call.spot() if default is not None and default in detect.values else None

    def _not_followed(self, detect: Detect, call: Call) -> Spot | None:
        return None if _hands_on(call) or self._mentions_others(detect, call, detect.within) else call.spot()

    def _never_called(self, detect: Detect, call: Call) -> Spot | None:
        if _hands_on(call) or self._is_driven(call) or self._mentions_others(detect, call, "client"):
            return None
        return call.spot()

    def _is_driven(self, call: Call) -> bool:
        """True in a class that derives from one of the target's: the target makes it run, and has done the rest."""
        outermost = call.usage.scope.partition(".")[0]
        return any(
            class_.name == outermost and self.judge.target_base(Class(class_)) is not None
            for class_ in call.usage.place.module.classes()
        )

    def _made_by_hand(self, detect: Detect, call: Call) -> Spot | None:
        return self._not_followed(detect, call) if call.callee.called is not None else None

    def _taken_apart(self, detect: Detect, call: Call) -> Spot | None:
        if detect.argument is not None:
            given = _given(call, detect.argument)
            if not isinstance(given, Argument) or given.is_none:
                return None
        module = call.usage.place.module
        place = taken_apart(self.client.program, module, call.usage.node)
        return call.spot(location_of(module, place)) if place is not None else None

    def _mentions_others(self, detect: Detect, call: Call, within: str) -> bool:
        """True where the client names what has to go with the call; by which way it is called can't always be told."""
        names = {path.rpartition(".")[2] for path in detect.others}
        return self.client.mentions(names, call.usage.place.module, call.usage.location.line, within)


_PATTERNS = {
    "called": CallPatterns._called,
    "call-without-argument": CallPatterns._without_argument,
    "call-with-argument": CallPatterns._with_argument,
    "argument-value": CallPatterns._argument_value,
    "call-not-followed-by": CallPatterns._not_followed,
    "never-called": CallPatterns._never_called,
    "made-by-hand": CallPatterns._made_by_hand,
    "result-of-argument-subscripted": CallPatterns._taken_apart,
}
CALL_PATTERNS = frozenset(_PATTERNS)


def _hands_on(call: Call) -> bool:
    """True in a definition that stands for what it calls: whoever calls that has to do the rest."""
    is_super = any(
        isinstance(member, Function) and isinstance(member.receiver, Super) for member in members_of(call.usage.callee)
    )
    return is_super or call.usage.scope.rpartition(".")[2] == call.callee.name.rpartition(".")[2]


def _given(call: Call, name: str | None) -> Argument | bool | None:
    """The argument that a call gives a parameter, None where it gives none, True where that can't be told."""
    for argument in call.arguments.keywords:
        if argument.keyword == name:
            return argument
    place = _position(call.callee.signature, name)
    positional = call.arguments.positional
    if place is not None and place < len(positional) and not any(each.unpacked for each in positional[: place + 1]):
        return positional[place]
    return True if call.arguments.is_open else None


def given_text(call: Call, name: str) -> str | None:
    """What a call gives the parameter of that name, as source text; None where it gives nothing, or nobody can tell."""
    given = _given(call, name)
    return given.value if isinstance(given, Argument) and not given.unpacked else None


def _position(signature: Signature, name: str | None) -> int | None:
    names = [parameter.name for parameter in signature.parameters if parameter.kind in _POSITIONAL]
    return names.index(name) if name in names else None


def _plain(text: str) -> str:
    """A value as text, literals in one spelling."""
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
