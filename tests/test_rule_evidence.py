"""What the rules for vLLM say of its releases: the files they name are there, and so is what they lead to."""

from __future__ import annotations

import functools
import re

import pytest

from driftcheck.compare.conditions import Conditions
from driftcheck.compare.judge import Judge
from driftcheck.origins.select import target_tree
from driftcheck.rule_files import rules_of
from driftcheck.rules import Condition, Rule
from driftcheck.surface.program import Program
from driftcheck.surface.types import Absent
from driftcheck.tree import SourceTree

RULES = {rule.id: rule for rule in rules_of({"vllm"})}
FACT = re.compile(r"vllm (?P<path>vllm/\S+\.py) in (?P<release>\d+\.\d+\.\d+)")
LINK = re.compile(r"https://\S+")
# Where a fix leads has to be there still; a later release may move it on, and then the rule has to follow. A callable
# that the recent release has no more is looked at in the one before.
RECENT = "0.33.0"
BEFORE = "0.16.0"


@functools.cache
def sources(release: str) -> SourceTree:
    """The sources of one release of vLLM."""
    return target_tree(f"vllm=={release}")


@functools.cache
def program(release: str) -> Program:
    """The same, with its names to be looked up."""
    return Program(sources(release))


def is_there(path: str, release: str) -> bool:
    """Whether a module of that dotted path exists, or a name in one."""
    module, _, name = path.rpartition(".")
    found = program(release)
    return found.has_module(path) or (
        found.has_module(module) and not isinstance(found.imported_name(module, name), Absent)
    )


def moves(rule: Rule) -> list[tuple[str, str]]:
    """From where to where its fixes lead imports."""
    recipes = [dict(recipe.parameters) for recipe in rule.recipes if recipe.name in ("move-import", "rename-symbol")]
    return [(each["symbol"], each["to"]) for each in recipes]


@functools.cache
def conditions(release: str) -> Conditions:
    """Answers about one release."""
    return Conditions(Judge(program(release)))


def takes(symbol: str, argument: str) -> bool | None:
    """Whether the callable has the parameter, None where that can't be told."""
    release = RECENT if is_there(symbol, RECENT) else BEFORE
    assert conditions(release).answer(Condition("exists", (symbol,))).holds
    return conditions(release).answer(Condition("has-parameter", (symbol,), argument)).holds


@pytest.mark.parametrize("rule", RULES)
def test_evidence_is_a_link_or_a_file_of_a_release(rule: str) -> None:
    assert [text for text in RULES[rule].evidence if not FACT.fullmatch(text) and not LINK.fullmatch(text)] == []


@pytest.mark.index
@pytest.mark.parametrize("rule", RULES)
def test_the_files_named_as_evidence_are_there(rule: str) -> None:
    facts = [fact for fact in map(FACT.fullmatch, RULES[rule].evidence) if fact]
    assert [fact[0] for fact in facts if fact["path"] not in sources(fact["release"]).paths] == []


@pytest.mark.index
@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if moves(rule)])
def test_imports_are_moved_to_what_is_there(rule: str) -> None:
    for old, new in moves(RULES[rule]):
        assert is_there(new, RECENT)
        # A module may be there still, without the names that moved.
        assert not is_there(old, RECENT) or program(RECENT).has_module(old)


@pytest.mark.index
@pytest.mark.parametrize("rule", RULES)
def test_arguments_are_given_to_parameters(rule: str) -> None:
    for recipe in RULES[rule].recipes:
        given = dict(recipe.parameters)
        if recipe.name in ("rename-argument", "remove-argument"):
            # For several releases at once an argument can be left out that all take, and that does not mean the same.
            assert takes(given["symbol"], given["argument"]) is recipe.is_portable
        if recipe.name == "rename-argument":
            assert takes(given["symbol"], given["to"]) is True
        if recipe.name == "add-argument":
            assert takes(given["symbol"], given["argument"]) is True


@pytest.mark.index
@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if any(m.successors for m in rule.matches)])
def test_what_took_a_place_is_there(rule: str) -> None:
    for match in RULES[rule].matches:
        assert not match.successors or any(is_there(path, RECENT) for path in match.successors)
