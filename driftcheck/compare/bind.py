"""Binding: what Python itself would object to when a call meets a signature, and where each argument lands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from driftcheck.compare.counterparts import near_name
from driftcheck.model import Argument, Arguments, Certainty, Kind, Parameter, ParameterKind, Signature


@dataclass(frozen=True, slots=True)
class BindingProblem:
    """One thing that is wrong, or may be, with where the arguments of a call go.

    `argument` is the one at fault, None where one is missing. `raises` is the exception to expect in CPython's words,
    None for what binds. `suggestion` names a parameter of the target that was probably meant.
    """

    kind: Kind
    message: str
    parameter: str | None = None
    argument: Argument | None = None
    raises: str | None = None
    suggestion: str | None = None
    certainty: Certainty = Certainty.CERTAIN


@dataclass(frozen=True, slots=True)
class Landing:
    """Where one argument ends up: the parameter that receives it, and its place where that is `*args`.

    `parameter` is None for an argument that no parameter takes, and for one whose parameter depends on what an
    unpacked argument holds; unpacked arguments themselves have none either.
    """

    argument: Argument
    parameter: Parameter | None
    index: int | None = None


def bind(
    signature: Signature, arguments: Arguments, *, callee: str = "f", has_receiver: bool = False
) -> tuple[BindingProblem, ...]:
    """Everything that keeps the call from binding, () where it binds or where some unpacked value could make it bind.

    Python stops at the first problem; here each has its own entry, once: a positional-only parameter passed by keyword
    is not missing as well. With unpacked arguments a problem is reported only if there is one whatever they hold, and
    if there is, then one is reported. `inspect.Signature.bind` is not asked, since before Python 3.13 it refuses
    `f(a=1)` for `def f(a=0, /, **rest)`, which Python accepts.

    `callee` is the qualified name for `raises` ("Scheduler.__init__"). With `has_receiver` the callable is a bound
    method, whose receiver is no parameter of `signature` and which CPython counts among the arguments.
    """
    call = _Call(_Slots.of(signature), arguments, callee=callee, has_receiver=has_receiver)
    fewest = call.least_positional
    if not call.has_open_positional:
        return tuple(call.problems(fewest))
    # The unpacked values can fill any number of places. Filling up to the first parameter that is also named causes no
    # duplicate; filling all leaves no positional parameter missing. If neither binds, no number does: see the tests.
    slots = call.slots
    named = {argument.keyword for argument in call.explicit_keywords}
    before_named = next(
        (place for place in range(fewest, len(slots.positional)) if slots.positional_name(place) in named),
        len(slots.positional),
    )
    cautious = tuple(call.problems(max(fewest, before_named)))
    if not cautious:
        return ()
    filled = tuple(call.problems(max(fewest, len(slots.positional))))
    return filled if len(filled) <= len(cautious) else cautious


def assignment(signature: Signature, arguments: Arguments) -> tuple[Landing, ...]:
    """Where each argument lands, positional ones first, then keywords, in the order of the call.

    This holds for calls that bind; of two arguments for one parameter the first has it.
    """
    slots = _Slots.of(signature)
    landings: list[Landing] = []
    taken: set[str | None] = set()
    place, is_exact = 0, True
    for argument in arguments.positional:
        if argument.unpacked:
            landings.append(Landing(argument, None))
            is_exact = False
            continue
        if place >= len(slots.positional):
            index = place - len(slots.positional) if is_exact and slots.var_positional is not None else None
            landings.append(Landing(argument, slots.var_positional, index))
        elif is_exact:
            landings.append(Landing(argument, slots.positional[place]))
            taken.add(slots.positional_name(place))
        else:
            landings.append(Landing(argument, None))
        place += 1
    for argument in arguments.keywords:
        if argument.keyword is None or argument.keyword in taken:
            landings.append(Landing(argument, None))
            continue
        landings.append(Landing(argument, slots.by_keyword.get(argument.keyword, slots.var_keyword)))
        taken.add(argument.keyword)
    return tuple(landings)


@dataclass(frozen=True, slots=True)
class _Slots:
    """A signature sorted by the way its parameters are reached."""

    positional: tuple[Parameter, ...]
    var_positional: Parameter | None
    keyword_only: tuple[Parameter, ...]
    var_keyword: Parameter | None
    by_keyword: dict[str, Parameter]

    @classmethod
    def of(cls, signature: Signature) -> _Slots:
        of_kind: dict[ParameterKind, list[Parameter]] = {kind: [] for kind in ParameterKind}
        for parameter in signature.parameters:
            of_kind[parameter.kind].append(parameter)
        either = of_kind[ParameterKind.POSITIONAL_OR_KEYWORD]
        keyword_only = of_kind[ParameterKind.KEYWORD_ONLY]
        return cls(
            positional=(*of_kind[ParameterKind.POSITIONAL_ONLY], *either),
            var_positional=next(iter(of_kind[ParameterKind.VAR_POSITIONAL]), None),
            keyword_only=tuple(keyword_only),
            var_keyword=next(iter(of_kind[ParameterKind.VAR_KEYWORD]), None),
            by_keyword={parameter.name: parameter for parameter in (*either, *keyword_only)},
        )

    def positional_name(self, place: int) -> str | None:
        """What a keyword has to be called to collide with that place; None for a positional-only parameter."""
        parameter = self.positional[place]
        return None if parameter.kind is ParameterKind.POSITIONAL_ONLY else parameter.name


class _Call:
    """One call held against one signature."""

    def __init__(self, slots: _Slots, arguments: Arguments, *, callee: str, has_receiver: bool):
        self.slots = slots
        self.plain = tuple(argument for argument in arguments.positional if not argument.unpacked)
        self.explicit_keywords = tuple(argument for argument in arguments.keywords if not argument.unpacked)
        self.has_open_positional = len(self.plain) < len(arguments.positional)
        self.has_open_keywords = len(self.explicit_keywords) < len(arguments.keywords)
        self.least_positional = len(self.plain)
        self._callee = callee
        self._receivers = 1 if has_receiver else 0

    def problems(self, count: int) -> Iterator[BindingProblem]:
        """The problems if `count` positional values arrive, and open keywords bring whatever helps."""
        filled = {self.slots.positional_name(place) for place in range(min(count, len(self.slots.positional)))}
        positional_only = {
            parameter.name
            for parameter in self.slots.positional
            if parameter.kind is ParameterKind.POSITIONAL_ONLY and self.slots.var_keyword is None
        }
        misplaced = [argument for argument in self.explicit_keywords if argument.keyword in positional_only]
        seen: set[str] = set()
        unknown: list[Argument] = []
        for argument in self.explicit_keywords:
            name = argument.keyword or ""
            if name in seen or name in filled:
                yield self._already_assigned(argument, name, is_keyword_twice=name in seen)
            elif name in positional_only:
                yield self._positional_only(argument, name, misplaced)
            elif name not in self.slots.by_keyword and self.slots.var_keyword is None:
                unknown.append(argument)
            seen.add(name)
        free = [name for name in self.slots.by_keyword if name not in filled and name not in seen]
        for argument in unknown:
            yield self._unknown(argument, free)
        if count > len(self.slots.positional) and self.slots.var_positional is None:
            yield self._too_many(count, seen)
        yield from self._missing(count, seen, {argument.keyword for argument in misplaced})

    def _already_assigned(self, argument: Argument, name: str, *, is_keyword_twice: bool) -> BindingProblem:
        what = "keyword argument" if is_keyword_twice else "argument"
        how = "by two keywords" if is_keyword_twice else "by position and by keyword"
        return BindingProblem(
            Kind.PARAMETER_ALREADY_ASSIGNED,
            f"argument '{name}' is given twice, {how}",
            parameter=name,
            argument=argument,
            raises=f"TypeError: {self._callee}() got multiple values for {what} '{name}'",
        )

    def _positional_only(self, argument: Argument, name: str, misplaced: Sequence[Argument]) -> BindingProblem:
        # CPython names all of them, in the order of the signature.
        given = {other.keyword for other in misplaced}
        names = [parameter.name for parameter in self.slots.positional if parameter.name in given]
        return BindingProblem(
            Kind.POSITIONAL_ONLY_ARGUMENT,
            f"argument '{name}' can only be given by position",
            parameter=name,
            argument=argument,
            raises=f"TypeError: {self._callee}() got some positional-only arguments passed as keyword arguments: "
            f"'{', '.join(names)}'",
        )

    def _unknown(self, argument: Argument, free: list[str]) -> BindingProblem:
        name = argument.keyword or ""
        suggestion = near_name(name, free)
        if suggestion is not None:
            free.remove(suggestion)
        hint = f"; did you mean '{suggestion}'?" if suggestion is not None else ""
        return BindingProblem(
            Kind.UNKNOWN_ARGUMENT,
            f"unknown argument '{name}'{hint}",
            parameter=name,
            argument=argument,
            raises=f"TypeError: {self._callee}() got an unexpected keyword argument '{name}'",
            suggestion=suggestion,
        )

    def _too_many(self, count: int, keywords: Collection[str]) -> BindingProblem:
        most = len(self.slots.positional)
        raises = "TypeError"
        if not self.has_open_positional:
            keyword_only = sum(parameter.name in keywords for parameter in self.slots.keyword_only)
            raises = f"TypeError: {self._callee}() {self._counts(count, keyword_only)}"
        given = f"at least {count}" if self.has_open_positional else str(count)
        at_most = str(most) if all(parameter.is_required for parameter in self.slots.positional) else f"at most {most}"
        return BindingProblem(
            Kind.TOO_MANY_POSITIONAL_ARGUMENTS,
            f"{given} positional argument{'' if count == 1 else 's'} given where {at_most} can be",
            argument=self.plain[most] if most < len(self.plain) else None,
            raises=raises,
        )

    def _counts(self, count: int, keyword_only: int) -> str:
        """CPython's sentence about how many arguments there may be and are."""
        most = len(self.slots.positional) + self._receivers
        given = count + self._receivers
        optional = sum(not parameter.is_required for parameter in self.slots.positional)
        takes = f"from {most - optional} to {most}" if optional else str(most)
        plural = "s" if optional or most != 1 else ""
        extra = ""
        if keyword_only:
            extra = (
                f" positional argument{'' if given == 1 else 's'}"
                f" (and {keyword_only} keyword-only argument{'' if keyword_only == 1 else 's'})"
            )
        verb = "was" if given == 1 and not keyword_only else "were"
        return f"takes {takes} positional argument{plural} but {given}{extra} {verb} given"

    def _missing(
        self, count: int, keywords: Collection[str], misplaced: Collection[str | None]
    ) -> Iterator[BindingProblem]:
        positional = [
            parameter
            for parameter in self.slots.positional[count:]
            if parameter.is_required and parameter.name not in misplaced and not self._is_named(parameter, keywords)
        ]
        keyword_only = [
            parameter
            for parameter in self.slots.keyword_only
            if parameter.is_required and not self._is_named(parameter, keywords)
        ]
        for parameters, sort in ((positional, "positional"), (keyword_only, "keyword-only")):
            names = [f"'{parameter.name}'" for parameter in parameters]
            raises = "TypeError"
            if not (self.has_open_positional or self.has_open_keywords):
                raises = (
                    f"TypeError: {self._callee}() missing {len(names)} required {sort} "
                    f"argument{'' if len(names) == 1 else 's'}: {_enumeration(names)}"
                )
            for parameter in parameters:
                yield BindingProblem(
                    Kind.MISSING_ARGUMENT,
                    f"missing argument '{parameter.name}'",
                    parameter=parameter.name,
                    raises=raises,
                )

    def _is_named(self, parameter: Parameter, keywords: Collection[str]) -> bool:
        if parameter.kind is ParameterKind.POSITIONAL_ONLY:
            return False
        return parameter.name in keywords or self.has_open_keywords


def _enumeration(names: Sequence[str]) -> str:
    """Names in CPython's manner: 'a', 'a' and 'b', 'a', 'b', and 'c'."""
    if len(names) <= 2:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"
