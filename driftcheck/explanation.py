"""What a kind of finding or a rule means, in words: for the terminal, and as the pages below `docs/`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import read_toml, rules_folder
from driftcheck.model import Kind, Severity
from driftcheck.rule_files import read_rules
from driftcheck.rules import ClientCondition, Condition, Detect, Match, Rule

_WIDTH = 100
_NARROWEST = 40
_KEYS = ("title", "severities", "why", "found", "example", "fix")
_CLIENT_BLOCK = re.compile(r"^`(?!baseline/|target/|both/)[^`]+`:?\n```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASSERTION = re.compile(r"[ \t]*# (finding|unresolved): .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an explanation: paragraphs, or the lines of a list, or code."""

    heading: str
    text: tuple[str, ...]
    form: Literal["paragraphs", "list", "code"] = "paragraphs"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one name means; `note` says what sort of thing it is."""

    name: str
    title: str
    note: str
    sections: tuple[Section, ...]


def explained(name: str) -> Explanation:
    """The explanation of a kind or rule; raises DriftcheckError, with the nearest names, where there is none."""
    kinds = kind_explanations()
    if name in kinds:
        return kinds[name]
    rules = _rules()
    if name in rules:
        return _of_rule(*rules[name])
    from difflib import get_close_matches

    close = get_close_matches(name, [*kinds, *rules], n=3)
    advice = f": did you mean {' or '.join(close)}?" if close else ": `driftcheck explain` lists all"
    raise DriftcheckError(f"there is no kind of finding and no rule {name!r}{advice}")


def kind_explanations() -> Mapping[str, Explanation]:
    """The explanations of all kinds, in the order of the kinds; raises DriftcheckError where one is incomplete."""
    table = read_toml(rules_folder() / "kinds.toml")
    return {kind.value: _of_kind(kind, table.get(kind.value)) for kind in Kind}


def rule_explanations() -> Mapping[str, Explanation]:
    """The explanations of all rules of all targets, by id."""
    return {name: _of_rule(*found) for name, found in _rules().items()}


def overview(*, width: int = _WIDTH) -> Iterator[str]:
    """The lines that list all kinds and all rules."""
    for heading, entries in (("Kinds of finding", kind_explanations()), ("Rules", rule_explanations())):
        yield heading
        column = max((len(name) for name in entries), default=0) + 4
        for entry in entries.values():
            yield from _wrapped(entry.title, f"  {entry.name}".ljust(column), " " * column, max(width, column + 30))
        yield ""
    yield "`driftcheck explain NAME` says more of one."


def as_text(entry: Explanation, *, width: int = _WIDTH) -> Iterator[str]:
    """The lines of an explanation for a terminal."""
    yield f"{entry.name} ({entry.note})"
    yield from _wrapped(entry.title, "  ", "  ", width)
    for section in entry.sections:
        yield ""
        yield section.heading
        for text in section.text:
            if section.form == "code":
                yield from (f"      {line}".rstrip() for line in text.splitlines())
            elif section.form == "list":
                yield from _wrapped(text, "  - ", "    ", width)
            else:
                yield from _wrapped(text, "  ", "  ", width)


def as_page(entry: Explanation) -> str:
    """An explanation as a page of Markdown."""
    lines = [f"# {entry.name}", "", *_wrapped(f"**{entry.title}** ({entry.note})")]
    for section in entry.sections:
        lines += ["", f"## {section.heading}", ""]
        if section.form == "code":
            lines += ["```python", *"\n".join(section.text).splitlines(), "```"]
        elif section.form == "list":
            lines += [line for text in section.text for line in _wrapped(text, "- ", "  ")]
        else:
            lines += [line for text in section.text for line in _wrapped(text)]
    return "\n".join(lines) + "\n"


def as_index(title: str, entries: Mapping[str, Explanation]) -> str:
    """A page of Markdown that leads to the pages of these explanations."""
    rows = [f"| [{entry.name}]({entry.name}.md) | {entry.title} |" for entry in entries.values()]
    return "\n".join([f"# {title}", "", "| name | what it means |", "| --- | --- |", *rows]) + "\n"


def _wrapped(text: str, first: str = "", others: str = "", width: int = _WIDTH) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, _NARROWEST),
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


# Kinds


def _of_kind(kind: Kind, table: object) -> Explanation:
    if not isinstance(table, dict) or sorted(table) != sorted(_KEYS):
        raise DriftcheckError(f"rules/kinds.toml: [{kind.value}] must say {', '.join(_KEYS)}")
    severities = [Severity(name).value for name in table["severities"]]
    return Explanation(
        kind.value,
        table["title"],
        f"kind of finding: {', '.join(severities)}",
        (
            Section("Why it breaks", (table["why"],)),
            Section("How it is found", (table["found"],)),
            Section("Example", (table["example"].strip("\n"),), "code"),
            Section("What to do", (table["fix"],)),
        ),
    )


# Rules


def _rules() -> dict[str, tuple[str, Rule]]:
    """Every rule with its target, by id."""
    folders = sorted(file.parent for file in rules_folder().glob("*/target.toml"))
    return {rule.id: (folder.name, rule) for folder in folders for rule in read_rules(folder)}


def _of_rule(target: str, rule: Rule) -> Explanation:
    notes = [f"rule for {target}", rule.severity.value]
    notes += [f"seen from {rule.since} on"] if rule.since else []
    notes += [f"seen until {rule.until}"] if rule.until else []
    sections = [Section("Why it breaks", (rule.why,))]
    if rule.matches:
        sections.append(Section("What it explains", tuple(map(_match, rule.matches)), "list"))
    if rule.detects:
        sections.append(Section("How it is found", tuple(map(_detect, rule.detects)), "list"))
    example = _example(target, rule)
    if example:
        sections.append(Section("Example", (example,), "code"))
    if rule.recipes:
        fixes = (f"{recipe.fix.description} ({recipe.fix.applicability})" for recipe in rule.recipes)
        sections.append(Section("What to do", tuple(fixes), "list"))
    sections.append(Section("Evidence", rule.evidence, "list"))
    return Explanation(rule.id, rule.title, ", ".join(notes), tuple(sections))


def _match(match: Match) -> str:
    kinds = " or ".join(kind.value for kind in match.kinds)
    parameters = f", parameter {_either(match.parameters)}" if match.parameters else ""
    successors = f", where {_either(match.successors)} is there" if match.successors else ""
    return f"{kinds} of {_either(match.symbols)}{parameters}{successors}"


def _detect(detect: Detect) -> str:
    """The pattern, and what has to hold of the release, in words."""
    parts = [f"{detect.pattern}: {_either(detect.symbols) or f'attribute `{detect.attribute}`'}"]
    parts += [f"argument `{detect.argument}`"] if detect.argument else []
    parts += [f"value {_either(detect.values)}"] if detect.values else []
    parts += [f"and {_either(detect.others)}"] if detect.others else []
    parts += [f"that takes no `{detect.lacks_parameter}`"] if detect.lacks_parameter else []
    conditions = " and ".join(map(_condition, detect.when))
    text = ", ".join(parts) + (f"; in a release where {conditions}" if conditions else "")
    text += ", and the baseline answers otherwise" if detect.drift_only else ""
    client = ", and ".join(map(_client_condition, detect.client))
    return text + (f"; in a client that {client}" if client else "")


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _condition(condition: Condition) -> str:
    of = _either(condition.of)
    if condition.expression is not None:
        says = "matches" if condition.question == "body-mentions" else "nowhere matches"
        return f"the source of {of} {says} `{condition.expression.pattern}`"
    if condition.values:
        says = "is" if condition.question == "is" else "is not"
        return f"the default of `{condition.name}` of {of} {says} {_either(condition.values)}"
    says = {
        "exists": "is there",
        "absent": "is not there",
        "has-parameter": "has the parameter",
        "lacks-parameter": "lacks the parameter",
        "requires-parameter": "requires",
        "has-member": "has the member",
        "lacks-member": "lacks the member",
        "derives-from": "derives from",
        "not-derives-from": "does not derive from",
    }[condition.question]
    return f"{of} {says} `{condition.name}`" if condition.name else f"{of} {says}"


def _client_condition(condition: ClientCondition) -> str:
    asked = " or ".join(f"{question} {_either(names)}" for question, names in condition.questions)
    values = f" as {_either(condition.values)}" if condition.values else ""
    where = f" in the module of its `{condition.in_class_of}`" if condition.in_class_of else ""
    return ("never " if condition.is_never else "") + asked + values + where


def _example(target: str, rule: Rule) -> str:
    """The client of the rule's first case, without its assertions."""
    file = rules_folder() / target / f"{rule.id}.md"
    cases = file.read_text(encoding="utf-8").partition("\n## ")[2] if file.is_file() else ""
    match = _CLIENT_BLOCK.search(cases)
    return _ASSERTION.sub("", match.group(1)).strip("\n") if match is not None else ""
