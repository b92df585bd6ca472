"""The rule files: what the loader refuses, and what holds of every rule of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import rules_folder
from driftcheck.model import Kind
from driftcheck.rule_files import read_rules, rules_of
from driftcheck.rules import Rule

CATALOGUE = rules_folder() / "vllm"
RULES = read_rules(CATALOGUE)

HEAD = 'title = "T"\nseverity = "error"\nwhy = "W."\nevidence = ["vllm a.py in 1"]\n'
MATCH = '[[match]]\nkind = "unknown-argument"\nsymbol = "a.b"\n'
DETECT = '[[detect]]\npattern = "called"\nsymbol = "a.b"\nmessage = "m"\n'


def read(tmp_path: Path, text: str, name: str = "some-rule") -> Rule:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    (rule,) = read_rules(folder)
    return rule


def test_a_rule_is_read(tmp_path: Path) -> None:
    fix = '[[fix]]\nrecipe = "message"\ndescription = "do it"\n'
    rule = read(tmp_path, HEAD + MATCH + DETECT + '[[detect.when]]\nof = "a"\n' + fix)
    assert (rule.id, rule.title, rule.why) == ("some-rule", "T", "W.")
    assert rule.matches[0].kinds == (Kind.UNKNOWN_ARGUMENT,)
    assert rule.detects[0].when[0].question == "exists"
    assert (rule.recipes[0].name, rule.recipes[0].fix.applicability) == ("message", "manual")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD, "match is missing, and so is detect"),
        (HEAD.replace("why", "because") + MATCH, "why is missing"),
        (HEAD.replace('"T"', '" "') + MATCH, "title must be a text"),
        (HEAD.replace('"error"', '"fatal"') + MATCH, "severity can't be 'fatal'"),
        (HEAD.replace('["vllm a.py in 1"]', "[]") + MATCH, "evidence must be"),
        (HEAD + "color = 1\n" + MATCH, "color is no key"),
        (HEAD + MATCH.replace("unknown-argument", "oops"), "kind in [[match]] can't be 'oops'"),
        (HEAD + MATCH + 'successor = "a-b"\n', "successor in [[match]] holds 'a-b', which is no dotted path"),
        (HEAD + MATCH + 'colour = "red"\n', "colour in [[match]] is no key"),
        (HEAD + '[[match]]\nkind = "unknown-argument"\n', "symbol in [[match]] is missing"),
        (HEAD + "match = 1\n", "match must be written [[match]]"),
        (HEAD + DETECT.replace("called", "seen"), "pattern in [[detect]] can't be 'seen'"),
        (HEAD + DETECT.replace('symbol = "a.b"\n', ""), "symbol in [[detect]] is missing: the pattern called needs it"),
        (HEAD + DETECT.replace("a.b", "a-b"), "'a-b', which is no dotted path"),
        (HEAD + DETECT + 'argument = "x"\n', "argument in [[detect]] says nothing to the pattern called"),
        (
            HEAD + DETECT.replace("called", "replaces") + 'attribute = "x"\n',
            "or attribute has to be there, and not both",
        ),
        (HEAD + '[[detect]]\npattern = "replaces"\nattribute = "x"\nmessage = "m"\n', "when in [[detect]] is missing"),
        (HEAD + DETECT + 'certainty = "possible"\n', "severity in [[detect]] is a warning at most"),
        (HEAD + DETECT + "drift-only = 1\n", "drift-only in [[detect]] must be true or false"),
        (HEAD + DETECT + "[[detect.when]]\nabsent = true\n", "of in [[detect.when]] is missing"),
        (HEAD + DETECT + '[[detect.when]]\nof = "a"\nabsent = false\n', "absent in [[detect.when]] can only be true"),
        (HEAD + DETECT + '[[detect.when]]\nof = "a"\nbody-mentions = "("\n', "is no regular expression"),
        (HEAD + DETECT + '[[detect.when]]\nof = "a"\ndefault-of = "b"\n', "says nothing without `is`"),
        (HEAD + DETECT + '[[detect.when]]\nof = "a"\nhas-member = "b"\nhas-parameter = "c"\n', "a second question"),
        (HEAD + DETECT + '[[detect.client]]\nknows = "a"\n', "must ask one of gives, calls, stores, mentions"),
        (
            HEAD + DETECT + '[[detect.client]]\ncalls = "a"\nvalue = "1"\n',
            "value in [[detect.client]] says nothing",
        ),
        (HEAD + MATCH + '[[fix]]\nrecipe = "wish"\ndescription = "d"\n', "recipe in [[fix]] can't be 'wish'"),
        (HEAD + MATCH + '[[fix]]\nrecipe = "add-argument"\napplicability = "safe"\n', "symbol in [[fix]] is missing"),
        (HEAD + MATCH + '[[fix]]\nrecipe = "message"\nkind = "x"\n', "kind in [[fix]] can't be 'x'"),
        ("title = ", "library/some-rule.toml can't be read"),
    ],
)
def test_a_slip_is_told_with_its_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DriftcheckError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert "library/some-rule.toml" in str(caught.value)


def test_a_rule_s_name_is_words_with_hyphens(tmp_path: Path) -> None:
    with pytest.raises(DriftcheckError, match="the file's name must be words"):
        read(tmp_path, HEAD + MATCH, "Some_Rule")


def test_a_target_without_a_folder_has_no_rules() -> None:
    assert rules_of(["library"]) == ()
    assert rules_of(["vllm"]) == RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_speaks_in_its_own_cases(rule: Rule) -> None:
    cases = CATALOGUE / f"{rule.id}.md"
    assert cases.is_file(), f"write {cases.name}: it is the rule's documentation and test"
    text = cases.read_text(encoding="utf-8")
    assert f"rule={rule.id}" in text
    assert text.count("\n## ") > 1, "a break and a near miss at least"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_rests_on_public_facts(rule: Rule) -> None:
    assert rule.why.endswith(".")
    for fact in rule.evidence:
        words = fact.split()
        is_fact = len(words) == 4 and words[0] == CATALOGUE.name and words[2] == "in"
        assert is_fact or fact.startswith("https://github.com/"), fact


def test_cases_stand_beside_their_rules() -> None:
    assert {file.stem for file in CATALOGUE.glob("*.md")} == {rule.id for rule in RULES}


def test_titles_differ() -> None:
    assert len({rule.title for rule in RULES}) == len(RULES)
