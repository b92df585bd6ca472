"""An explicit None where None stopped meaning "not given"."""

from __future__ import annotations

import re

from driftcheck.compare.annotations import admits_none
from driftcheck.compare.bind import BindingProblem, assignment
from driftcheck.compare.counterparts import counterparts
from driftcheck.model import Arguments, Certainty, Kind, Parameter, Signature

_SENTINEL = re.compile(
    r"_(no_?default|no_?value|un_?set|not_?set|not_?given|not_?provided|not_?specified|unspecified|undefined|missing|"
    r"sentinel|omit|omitted|deprecated|default_?placeholder|use_(\w+_)?default)_"
)
_NOTHING = (["empty"], ["void"])
_ANONYMOUS = re.compile(r"<object object( at 0x[0-9a-fA-F]+)?>|object\(\)|\.\.\.|Ellipsis")
_DOTTED = re.compile(r"[\w.]+(\(\))?|<[^<>]*>")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 200


def sentinel_none(baseline: Signature, target: Signature, arguments: Arguments) -> tuple[BindingProblem, ...]:
    """Each None that is passed to a parameter whose default was None and no longer is.

    While None was the default, passing it was the same as not passing it. Two changes end that:

    - The default became a sentinel, an object that stands for "not given" (`lib.no_default`, `_UNSET`, `...`). The
      target then tells None from not given, and may refuse it or take it for a wish: `likely`; `possible` where its
      annotation lists None, which says that None is still welcome, though not what it means.
    - The default became a plain value, and the annotation rules None out: `possible`, for Python checks no annotation.
      Without an annotation a plain default says nothing about None, since the target may still replace it.

    `parameter` is the target's. `suggestion` stays empty, as the remedy is to leave the argument out.
    """
    if baseline.parameters == target.parameters or not any(
        argument.is_none for argument in arguments.positional + arguments.keywords
    ):
        return ()
    continued = counterparts(baseline, target)
    problems: list[BindingProblem] = []
    before_and_after = zip(assignment(baseline, arguments), assignment(target, arguments), strict=True)
    for before, after in before_and_after:
        if before.parameter is None or after.parameter is None or not before.argument.is_none:
            continue
        if before.parameter.default != "None" or continued.get(before.parameter.name) != after.parameter.name:
            # A None that lands on another parameter than it was meant for is a shift.
            continue
        certainty = _certainty(after.parameter)
        if certainty is not None:
            problems.append(
                BindingProblem(
                    Kind.SENTINEL_NONE,
                    f"None for '{after.parameter.name}' was its default, which is now {_shown(after.parameter)}",
                    parameter=after.parameter.name,
                    argument=after.argument,
                    certainty=certainty,
                )
            )
    return tuple(problems)


def is_sentinel(default: str) -> bool:
    """True for a default, as source or repr, that stands for "not given" and is no value: `<no_default>`, `UNSET`.

    It is known by its name, or by having none (`object()`); which class a name belongs to no source text shows.
    """
    if len(default) > _LONGEST:
        return False
    if _ANONYMOUS.fullmatch(default):
        return True
    if not _DOTTED.fullmatch(default):
        return False
    # An enumeration's member may have an unspeaking name of its own: Unset.TOKEN.
    last_two = default.strip("<>()").split(".")[-2:]
    words = [[word.lower() for word in _WORD.findall(part)] for part in last_two]
    return words[-1] in _NOTHING or any(_SENTINEL.search(f"_{'_'.join(each)}_") for each in words)


def _certainty(parameter: Parameter) -> Certainty | None:
    if parameter.default is None or parameter.default == "None":
        return None
    welcome = admits_none(parameter.annotation)
    if is_sentinel(parameter.default):
        return Certainty.POSSIBLE if welcome else Certainty.LIKELY
    return Certainty.POSSIBLE if welcome is False else None


def _shown(parameter: Parameter) -> str:
    default = parameter.default or ""
    return default if len(default) <= 40 else "another value"
