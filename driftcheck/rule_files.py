"""Reads the rules of a target from `rules/<target>/<id>.toml`, strictly: a slip is told with its file and key.

`docs/contributing-rules.md` says how to write one.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import read_toml, rules_folder
from driftcheck.model import Applicability, Certainty, Fix, Kind, Severity
from driftcheck.rules import (
    BODY_QUESTIONS,
    CLIENT_QUESTIONS,
    DEFAULT_QUESTIONS,
    NAMED_QUESTIONS,
    PATTERNS,
    RECIPES,
    WITH_HELPER,
    WITHIN,
    ClientCondition,
    Condition,
    Detect,
    Match,
    Recipe,
    Rule,
)

_PLACEHOLDER = re.compile(r"\{(receiver|result)\}")


def rules_of(names: Collection[str]) -> tuple[Rule, ...]:
    """The rules for the target with one of these top-level packages, by id; raises DriftcheckError for a broken one."""
    for name in sorted(names):
        folder = rules_folder() / name
        if name.isidentifier() and (folder / "target.toml").is_file():
            return read_rules(folder)
    return ()


def all_rules() -> tuple[Rule, ...]:
    """The rules of every target there are rules for, by target and id."""
    folders = sorted(file.parent for file in rules_folder().glob("*/target.toml"))
    return tuple(rule for folder in folders for rule in read_rules(folder))


@functools.cache
def read_rules(folder: Path) -> tuple[Rule, ...]:
    """The rules of one folder, by id."""
    files = sorted(file for file in folder.glob("*.toml") if file.stem != "target")
    return tuple(_rule(file.stem, _Table(f"rules/{folder.name}/{file.name}", "", read_toml(file))) for file in files)


class _Table:
    """A table of a rule file that tells the file and the key of whatever is wrong with it."""

    def __init__(self, file: str, name: str, table: object) -> None:
        self.file = file
        self.name = name
        if not isinstance(table, dict):
            raise self.error(name, "must be a table")
        self.table: dict[str, Any] = table
        self.read: set[str] = set()

    def error(self, key: str, message: str) -> DriftcheckError:
        """The error to raise about a key."""
        where = f" in [[{self.name}]]" if self.name and self.name != key else ""
        return DriftcheckError(f"{self.file}: {key}{where} {message}")

    def text(self, key: str) -> str | None:
        """A text that is not empty, None where the key is not there."""
        self.read.add(key)
        value = self.table.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.error(key, "must be a text that says something")
        return " ".join(value.split()) if isinstance(value, str) else None

    def lines(self, key: str) -> str:
        """A text of several lines as it stands, which is Python; it has to be there."""
        self.read.add(key)
        value = self.table.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, "must be a text that says something")
        text = value.strip("\n").replace("'''", '"""') + "\n"
        try:
            ast.parse(_PLACEHOLDER.sub(r"\1", text))
        except (SyntaxError, ValueError, RecursionError) as error:
            raise self.error(key, f"is no Python: {error}") from error
        return text

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """A table of names and dotted paths; empty where the key is not there."""
        self.read.add(key)
        value = self.table.get(key, {})
        if not isinstance(value, dict) or not all(
            name.isidentifier() and isinstance(path, str) and all(part.isidentifier() for part in path.split("."))
            for name, path in value.items()
        ):
            raise self.error(key, "must be a table of names and dotted paths")
        return tuple(value.items())

    def needed(self, key: str) -> str:
        """A text that has to be there."""
        found = self.text(key)
        if found is None:
            raise self.error(key, "is missing")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or a list of them; empty where the key is not there."""
        self.read.add(key)
        value = self.table.get(key, [])
        values = [value] if isinstance(value, str) else value
        is_list = isinstance(values, list) and all(isinstance(item, str) and item.strip() for item in values)
        if not is_list or (key in self.table and not values):
            raise self.error(key, "must be a text or a list of texts")
        return tuple(values)

    def paths(self, key: str) -> tuple[str, ...]:
        """One dotted path or a list of them."""
        found = self.texts(key)
        for path in found:
            if not all(part.isidentifier() for part in path.split(".")):
                raise self.error(key, f"holds {path!r}, which is no dotted path")
        return found

    def flag(self, key: str) -> bool:
        """A boolean, false where the key is not there."""
        self.read.add(key)
        value = self.table.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def choice(self, key: str, choices: Collection[str], otherwise: str | None = None) -> str:
        """One of a closed list of words."""
        found = self.text(key) or otherwise
        if found is None:
            raise self.error(key, "is missing")
        if found not in choices:
            raise self.error(key, f"can't be {found!r}: it is one of {', '.join(choices)}")
        return found

    def tables(self, key: str) -> list[_Table]:
        """The tables of an array of tables."""
        self.read.add(key)
        value = self.table.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, f"must be written [[{key}]]")
        name = f"{self.name}.{key}" if self.name else key
        return [_Table(self.file, name, table) for table in value]

    def close(self) -> None:
        """Refuses the keys that nobody has read."""
        for key in self.table:
            if key not in self.read:
                raise self.error(key, "is no key that is known here")


def _rule(name: str, table: _Table) -> Rule:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise DriftcheckError(f"{table.file}: the file's name must be words in lower case with hyphens between them")
    severity = Severity(table.choice("severity", [each.value for each in Severity]))
    rule = Rule(
        name,
        table.needed("title"),
        severity,
        table.needed("why"),
        table.texts("evidence"),
        table.text("since"),
        table.text("until"),
        tuple(_match(each) for each in table.tables("match")),
        tuple(_detect(each, severity) for each in table.tables("detect")),
        tuple(_recipe(each) for each in table.tables("fix")),
    )
    table.close()
    if not rule.evidence:
        raise table.error("evidence", "is missing")
    if not rule.matches and not rule.detects:
        raise table.error("match", "is missing, and so is detect: the rule would never speak")
    return rule


def _match(table: _Table) -> Match:
    kinds = table.texts("kind")
    known = {kind.value: kind for kind in Kind}
    unknown = next((kind for kind in kinds if kind not in known), None)
    if unknown is not None:
        raise table.error("kind", f"can't be {unknown!r}, which is no kind of finding")
    symbols = table.texts("symbol")
    if not kinds or not symbols:
        raise table.error("symbol" if kinds else "kind", "is missing")
    match = Match(tuple(known[kind] for kind in kinds), symbols, table.texts("parameter"), table.paths("successor"))
    table.close()
    return match


def _detect(table: _Table, severity: Severity) -> Detect:
    pattern = table.choice("pattern", PATTERNS)
    needed, optional = PATTERNS[pattern]
    for key in ("symbol", "argument", "value", "then", "needs", "factory", "within", "attribute", "in-class-of",
                "lacks-parameter"):  # fmt: skip
        if key in table.table and key not in (*needed, *optional):
            raise table.error(key, f"says nothing to the pattern {pattern}")
        if key not in table.table and key in needed:
            raise table.error(key, f"is missing: the pattern {pattern} needs it")
    if pattern == "replaces" and ("symbol" in table.table) == ("attribute" in table.table):
        raise table.error("symbol", "or attribute has to be there, and not both: the pattern replaces needs one")
    detect = Detect(
        pattern,
        table.paths("symbol"),
        table.needed("message"),
        Severity(table.choice("severity", [each.value for each in Severity], severity.value)),
        Certainty(table.choice("certainty", [each.value for each in Certainty], Certainty.LIKELY.value)),
        table.text("argument"),
        table.texts("value"),
        table.paths("then") + table.paths("needs") + table.paths("factory"),
        table.choice("within", WITHIN, "module"),
        table.text("attribute"),
        table.text("in-class-of"),
        table.text("lacks-parameter"),
        table.text("raises"),
        table.flag("drift-only"),
        tuple(_condition(each) for each in table.tables("when")),
        tuple(_client_condition(each) for each in table.tables("client")),
    )
    table.close()
    if detect.attribute is not None and not detect.when:
        raise table.error("when", "is missing: without a symbol nothing else is there to show as evidence")
    if detect.certainty is Certainty.POSSIBLE and detect.severity.rank > Severity.WARNING.rank:
        raise table.error("severity", "is a warning at most where the certainty is possible")
    return detect


def _condition(table: _Table) -> Condition:
    of = table.paths("of")
    if not of:
        raise table.error("of", "is missing")
    questions = [key for key in (*NAMED_QUESTIONS, *BODY_QUESTIONS, "default-of", "absent") if key in table.table]
    if len(questions) > 1:
        raise table.error(questions[1], f"is a second question beside {questions[0]}: ask it in a table of its own")
    question = questions[0] if questions else "exists"
    name = ""
    values: tuple[str, ...] = ()
    expression: re.Pattern[str] | None = None
    if question == "default-of":
        name = table.needed("default-of")
        question = next((key for key in DEFAULT_QUESTIONS if key in table.table), "")
        values = table.texts(question)
        if not values:
            raise table.error("default-of", "says nothing without `is` or `is-not`")
    elif question in NAMED_QUESTIONS:
        name = table.needed(question)
    elif question in BODY_QUESTIONS:
        expression = _expression(table, question)
    elif question == "absent" and not table.flag("absent"):
        raise table.error("absent", "can only be true")
    table.close()
    return Condition(question, of, name, values, expression)


def _expression(table: _Table, key: str) -> re.Pattern[str]:
    text = table.needed(key)
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise table.error(key, f"is no regular expression: {error}") from error


def _client_condition(table: _Table) -> ClientCondition:
    questions = tuple((key, table.paths(key)) for key in CLIENT_QUESTIONS if key in table.table)
    if not questions:
        raise table.error("client", f"must ask one of {', '.join(CLIENT_QUESTIONS)}")
    condition = ClientCondition(questions, table.texts("value"), table.flag("never"), table.text("in-class-of"))
    table.close()
    if condition.values and "gives" not in table.table:
        raise table.error("value", "says nothing without gives")
    return condition


def _recipe(table: _Table) -> Recipe:
    name = table.choice("recipe", RECIPES)
    applicabilities: tuple[Applicability, ...] = ("safe", "unsafe", "manual")
    chosen = table.choice("applicability", applicabilities, "manual" if name == "message" else None)
    applicability = next(each for each in applicabilities if each == chosen)
    kind = table.text("kind")
    if kind is not None and kind not in {each.value for each in Kind}:
        raise table.error("kind", f"can't be {kind!r}, which is no kind of finding")
    parameters = tuple((key, table.needed(key) if key != "call" else table.lines(key)) for key in RECIPES[name])
    helper = table.lines("helper") if "helper" in table.table else None
    if helper is not None and name not in WITH_HELPER:
        raise table.error("helper", f"says nothing to the recipe {name}")
    if helper is None and name == "insert-helper":
        raise table.error("helper", "is missing: the recipe insert-helper needs it")
    recipe = Recipe(
        name,
        parameters,
        Fix(applicability, table.needed("description")),
        Kind(kind) if kind else None,
        helper,
        table.pairs("in-scope"),
        table.flag("portable"),
    )
    table.close()
    return recipe
