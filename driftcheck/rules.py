"""Rules: data that explains findings, detects what no signature shows, and says how to fix it.

Here is what a rule consists of, and the closed lists of what it may say. How a condition is answered and a pattern
looked for is the affair of `compare`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from driftcheck.model import Certainty, Finding, Fix, Kind, Severity


@dataclass(frozen=True, slots=True)
class Match:
    """Which findings a rule explains: their kind, their symbol (`*` stands for anything) and their parameter.

    `successors` are dotted paths of what took the symbol's place; where a release has none of them, it is gone, or not
    there yet, for another reason.
    """

    kinds: tuple[Kind, ...]
    symbols: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """A question that a release's own sources answer, about the first of the dotted paths `of` that is there.

    `name` is the parameter, member or base that is asked for, `values` the source texts that a default may have,
    `expression` what the source of the definition is searched for.
    """

    question: str
    of: tuple[str, ...]
    name: str = ""
    values: tuple[str, ...] = ()
    expression: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class ClientCondition:
    """Questions about the client's own code, one of which has to be answered with yes.

    Each asks whether the client gives, calls, stores or mentions one of some names. `values` are the source texts of
    what it gives; `is_never` where the answers all have to be no. `in_class_of` names a parameter: then only the module
    of the class is asked that the client names in a string for that parameter.
    """

    questions: tuple[tuple[str, tuple[str, ...]], ...]
    values: tuple[str, ...] = ()
    is_never: bool = False
    in_class_of: str | None = None


@dataclass(frozen=True, slots=True)
class Detect:
    """A pattern in the client's code that is a broken contract where all the conditions hold.

    `symbols` are dotted paths of the target; a method's stands for those that override it. `others` are the ones that
    the pattern wants called too, `values` source texts of an argument, `attribute` the name of what is replaced on an
    object whose class nobody can tell, `lacks_parameter` what a replacement or an override must take ("**" for any
    keyword). `drift_only` where what is seen is right or wrong only by what the client was written for: then the
    baseline has to answer otherwise.
    """

    pattern: str
    symbols: tuple[str, ...]
    message: str
    severity: Severity
    certainty: Certainty
    argument: str | None = None
    values: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    within: str = "module"
    attribute: str | None = None
    in_class_of: str | None = None
    lacks_parameter: str | None = None
    raises: str | None = None
    drift_only: bool = False
    when: tuple[Condition, ...] = ()
    client: tuple[ClientCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named kind of edit with its parameters, for findings of one kind or of any; `fix` is what a report says.

    `helper` is the source of a function that the edit calls, `scope` names the classes of which a value has to be at
    hand where the edit is made, by placeholder. `is_portable` where it is for clients that older releases run too.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    fix: Fix
    kind: Kind | None = None
    helper: str | None = None
    scope: tuple[tuple[str, str], ...] = ()
    is_portable: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `since` and `until` only tell readers in which releases it was seen."""

    id: str
    title: str
    severity: Severity
    why: str
    evidence: tuple[str, ...]
    since: str | None = None
    until: str | None = None
    matches: tuple[Match, ...] = ()
    detects: tuple[Detect, ...] = ()
    recipes: tuple[Recipe, ...] = ()

    def recipe_for(self, finding: Finding, *, is_portable: bool = False) -> Recipe | None:
        """What the rule advises for a finding: the first recipe for its kind, else the first for any."""
        fitting = [recipe for recipe in self.recipes if recipe.is_portable is is_portable]
        chosen = [recipe for recipe in fitting if recipe.kind is finding.kind]
        chosen += [recipe for recipe in fitting if recipe.kind is None]
        return chosen[0] if chosen else None


# What each pattern needs, and what it may have beside the keys that all patterns share.
PATTERNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "called": (("symbol",), ()),
    "used": (("symbol",), ()),
    "call-without-argument": (("symbol", "argument"), ()),
    "call-with-argument": (("symbol", "argument"), ()),
    "argument-value": (("symbol", "argument", "value"), ()),
    "call-not-followed-by": (("symbol", "then"), ("within",)),
    "never-called": (("symbol", "needs"), ()),
    "made-by-hand": (("symbol", "factory"), ()),
    "result-of-argument-subscripted": (("symbol",), ("argument",)),
    "replaces": ((), ("symbol", "attribute", "in-class-of", "lacks-parameter")),
    "overrides": (("symbol",), ("lacks-parameter",)),
}
WITHIN = ("function", "class", "module", "client")

# The questions of `[[detect.when]]` whose value is a name; "exists" is what is asked where no other question is.
NAMED_QUESTIONS = (
    "has-parameter",
    "lacks-parameter",
    "requires-parameter",
    "has-member",
    "lacks-member",
    "derives-from",
    "not-derives-from",
)
BODY_QUESTIONS = ("body-mentions", "body-lacks")
DEFAULT_QUESTIONS = ("is", "is-not")
CLIENT_QUESTIONS = ("gives", "calls", "stores", "mentions")

# The parameters that each recipe needs.
RECIPES: Mapping[str, tuple[str, ...]] = {
    "rename-symbol": ("symbol", "to"),
    "move-import": ("symbol", "to"),
    "rename-argument": ("symbol", "argument", "to"),
    "remove-argument": ("symbol", "argument"),
    "add-argument": ("symbol", "argument", "value"),
    "rename-attribute": ("attribute", "to"),
    "replace-attribute": ("attribute", "value"),
    "remove-statement": ("symbol",),
    "insert-call-after": ("symbol", "call"),
    "unwrap-subscript": ("symbol",),
    "insert-helper": ("symbol",),
    "add-parameter": ("symbol", "parameter"),
    "message": (),
}
# Those that a helper function can come with.
WITH_HELPER = ("add-argument", "insert-helper")
