"""Calls that bind to two releases of a signature and mean different things by it."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

from driftcheck.compare.annotations import types_differ
from driftcheck.compare.bind import BindingProblem, Landing, assignment, bind
from driftcheck.compare.counterparts import counterparts, near_name
from driftcheck.model import Argument, Arguments, Certainty, Kind, Parameter, ParameterKind, Signature

_RANK = {Certainty.CERTAIN: 2, Certainty.LIKELY: 1, Certainty.POSSIBLE: 0}
_LONGEST_EXPRESSION_COMPARED = 200


def positional_shift(baseline: Signature, target: Signature, arguments: Arguments) -> tuple[BindingProblem, ...]:
    """The shift of a call's positional arguments, () where there is none: one problem, since the cause is one.

    The call binds to both signatures. An argument is shifted where it lands on another parameter than in the baseline.
    Whether parameters of two names are one parameter or two, Python doesn't say: to a positional caller names are
    nothing. So:

    - The old parameter still exists, elsewhere or by keyword only: shifted, `certain`.
    - It is gone, and the new one is an old acquaintance (it existed in the baseline, or is another parameter's
      continuation, see `counterparts`): something was removed and its successors moved up. Shifted, `likely`; an alias
      that was merged into its successor looks the same.
    - It is gone, and the new one continues it: a mere rename, which positional callers never notice. Not shifted. Only
      where both are annotated, with types that have nothing in common, and the names have nothing in common either,
      the place was given to something else: `possible`.
    - It is gone, the new one is new, and the number of parameters around them changed as well: a rename if default and
      type are the same, else a reordered signature, `possible`.
    - `*args` gave up its first value to a parameter put before it: `likely` where that one is optional, `possible`
      where it is required, since then it may only have got a name. Where `*args` itself is gone, or what was named is
      now gathered in a new `*args`, the order is the same and callers that were content still are: not shifted.

    A value that equals the default of where it lands, and is not missed where it belongs, does no harm: `possible`.
    `suggestion` is the keyword by which the first shifted argument would reach its parameter.
    """
    if baseline.parameters == target.parameters or bind(baseline, arguments) or bind(target, arguments):
        return ()
    pairs = [
        (place, before, after)
        for place, (before, after) in enumerate(
            zip(assignment(baseline, arguments), assignment(target, arguments), strict=True), 1
        )
        if place <= len(arguments.positional) and not _is_same(before, after)
    ]
    if not pairs:
        return ()
    change = _Change(baseline, target, counterparts(baseline, target), _filled(target, arguments))
    shifts = [
        (certainty, place, before, after)
        for place, before, after in pairs
        if (certainty := change.certainty(before, after)) is not None
    ]
    if not shifts:
        return ()
    certainty, place, before, after = max(shifts, key=lambda shift: (_RANK[shift[0]], -shift[1]))
    more = f", and {len(shifts) - 1} more of the call" if len(shifts) > 1 else ""
    return (
        BindingProblem(
            Kind.POSITIONAL_SHIFT,
            f"argument {place} was for {_shown(before)} and now lands on {_shown(after)}{more}",
            parameter=after.parameter.name if after.parameter is not None else None,
            argument=after.argument,
            suggestion=change.keyword_for(before),
            certainty=certainty,
        ),
    )


def swallowed_keyword(baseline: Signature, target: Signature, arguments: Arguments) -> tuple[BindingProblem, ...]:
    """Each keyword that had a parameter of its own in the baseline and now goes into `**kwargs`.

    It binds. What happens then no signature tells: `**kwargs` hands it on to something that knows it, refuses it, or
    drops it without a word. So this is `possible`, and an unknown argument rather than a shift: the target may know it.
    """
    if baseline.parameters == target.parameters or bind(baseline, arguments) or bind(target, arguments):
        return ()
    problems: list[BindingProblem] = []
    before_and_after = zip(assignment(baseline, arguments), assignment(target, arguments), strict=True)
    for before, after in before_and_after:
        if before.parameter is None or after.parameter is None or before.argument.keyword is None:
            continue
        if after.parameter.kind is ParameterKind.VAR_KEYWORD and not before.parameter.is_variadic:
            name = before.argument.keyword
            filled = _filled(target, arguments)
            free = [candidate for candidate in _keyword_names(target) if candidate not in filled]
            suggestion = counterparts(baseline, target).get(name) or near_name(name, free)
            problems.append(
                BindingProblem(
                    Kind.UNKNOWN_ARGUMENT,
                    f"'{name}' is no parameter any more; **{after.parameter.name} takes it and may refuse or ignore it",
                    parameter=name,
                    argument=before.argument,
                    suggestion=suggestion if suggestion in free else None,
                    certainty=Certainty.POSSIBLE,
                )
            )
    return tuple(problems)


@dataclass(frozen=True, slots=True)
class _Change:
    """What became of a signature, seen from one call; `filled` names the target's parameters that the call fills."""

    baseline: Signature
    target: Signature
    counterparts: dict[str, str]
    filled: frozenset[str]

    def certainty(self, before: Landing, after: Landing) -> Certainty | None:
        """How sure it is that an argument is shifted, None where it isn't."""
        old, new = before.parameter, after.parameter
        if old is None or new is None:
            # An unpacked argument before this one hides where it lands.
            return None
        if old.is_variadic:
            return self._out_of_gathered(old, new)
        certainty = self._into_gathered(old) if new.is_variadic else self._between(old, new)
        if certainty is not None and self._is_harmless(old, new, after.argument):
            return Certainty.POSSIBLE
        return certainty

    def _between(self, old: Parameter, new: Parameter) -> Certainty | None:
        counterpart = self.counterparts.get(old.name)
        if counterpart == new.name:
            replaced = near_name(old.name, [new.name]) is None and types_differ(old.annotation, new.annotation)
            return Certainty.POSSIBLE if replaced else None
        if counterpart is not None:
            return Certainty.CERTAIN if counterpart == old.name else Certainty.LIKELY
        if new.name in self.counterparts.values():
            return Certainty.LIKELY
        is_alike = old.default == new.default and not types_differ(old.annotation, new.annotation)
        return None if is_alike else Certainty.POSSIBLE

    def _into_gathered(self, old: Parameter) -> Certainty | None:
        counterpart = self.counterparts.get(old.name)
        if counterpart is not None:
            return Certainty.CERTAIN if counterpart == old.name else Certainty.LIKELY
        return Certainty.POSSIBLE if _var_positional(self.baseline) is not None else None

    def _out_of_gathered(self, old: Parameter, new: Parameter) -> Certainty | None:
        if new.is_variadic:
            # A change of place within *args follows from another argument's shift, which is reported.
            return None
        if new.name in self.counterparts.values():
            return Certainty.CERTAIN if new.name in self.counterparts else Certainty.LIKELY
        if _var_positional(self.target) != old.name:
            return None
        return Certainty.POSSIBLE if new.is_required else Certainty.LIKELY

    def _is_harmless(self, old: Parameter, new: Parameter, argument: Argument) -> bool:
        if not _is_same_expression(argument.value, new.default):
            return False
        counterpart = self.counterparts.get(old.name)
        if counterpart is None:
            return True
        missed = self.target.parameter(counterpart)
        return (
            missed is not None
            and counterpart not in self.filled
            and _is_same_expression(argument.value, missed.default)
        )

    def keyword_for(self, before: Landing) -> str | None:
        """The keyword that takes an argument to the parameter it was meant for, where there is one."""
        if before.parameter is None or before.parameter.is_variadic:
            return None
        counterpart = self.counterparts.get(before.parameter.name)
        return counterpart if counterpart in _keyword_names(self.target) else None


def _is_same(before: Landing, after: Landing) -> bool:
    if before.parameter is None or after.parameter is None:
        return before.parameter is after.parameter
    is_same_kind = before.parameter.is_variadic == after.parameter.is_variadic
    return is_same_kind and (before.parameter.is_variadic or before.parameter.name == after.parameter.name)


def _shown(landing: Landing) -> str:
    parameter = landing.parameter
    if parameter is None:
        return "nothing"
    return f"'*{parameter.name}'" if parameter.is_variadic else f"'{parameter.name}'"


def _filled(signature: Signature, arguments: Arguments) -> frozenset[str]:
    return frozenset(
        landing.parameter.name
        for landing in assignment(signature, arguments)
        if landing.parameter is not None and not landing.parameter.is_variadic
    )


def _keyword_names(signature: Signature) -> list[str]:
    kinds = (ParameterKind.KEYWORD_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in signature.parameters if parameter.kind in kinds]


def _var_positional(signature: Signature) -> str | None:
    return next((each.name for each in signature.parameters if each.kind is ParameterKind.VAR_POSITIONAL), None)


def _is_same_expression(one: str, other: str | None) -> bool:
    if other is None or max(len(one), len(other)) > _LONGEST_EXPRESSION_COMPARED:
        return False
    if one == other:
        return True
    try:
        # 'a' and "a" are one value; True and 1 are not, so it is their own spelling that is compared.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(ast.literal_eval(one)) == repr(ast.literal_eval(other))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
