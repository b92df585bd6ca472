"""Reports for services, read as the services read them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from junitparser import Failure, JUnitXml, Skipped
from markdown_it import MarkdownIt
from markdown_it.token import Token

from driftcheck.model import Accepted, Evidence, Finding, Location, Report, Severity
from driftcheck.report.github import render_github
from driftcheck.report.gitlab import render_gitlab
from driftcheck.report.harmless import harmless
from driftcheck.report.junit import render_junit
from driftcheck.report.markdown import render_markdown
from driftcheck.report.placed import Placed
from tests.report.samples import (
    CLEAN,
    HOSTILE_TEXT,
    MISSING_ARGUMENT,
    REPORT,
    SKIPPING,
    UNKNOWN_ARGUMENT,
    UNRESOLVED_ATTRIBUTE,
    with_text,
)

ACCEPTING = replace(REPORT, findings=(), accepted=(Accepted(UNKNOWN_ARGUMENT, "suppressed", "patched | by us"),))
HOSTILE_TEXTS = [
    HOSTILE_TEXT,
    "::error file=a::b%0A::stop-commands::x",
    "]]></failure><failure>",
    "`` ` ``` | <img src=x> [a](https://x) @all",
]


# GitHub


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """The annotations in a log, taken apart and unescaped as GitHub's runner does it."""
    found = []
    for line in text.splitlines():
        match = re.match(r"^::(\w+) ?(.*?)::(.*)$", line)
        if match is None:
            assert not line.lstrip().startswith("##[")
            continue
        properties = dict(part.split("=", 1) for part in match[2].split(",") if part)
        for mark, meant in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            properties = {key: value.replace(mark, meant) for key, value in properties.items()}
        data = match[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        found.append((match[1], properties, data))
    return found


def test_github_gets_an_annotation_for_each_finding_the_worst_first() -> None:
    found = commands(render_github([Placed(REPORT, folder="lib/")]))
    assert [level for level, _, _ in found] == ["error", "error", "warning"]
    _, properties, data = found[0]
    assert properties == {
        "file": "lib/speculators/data_generation/generator.py",
        "line": "139",
        "endLine": "139",
        "col": "13",
        "endColumn": "27",
        "title": "driftcheck unknown-argument",
    }
    assert data.splitlines()[:2] == [
        "get_kv_cache_config_from_groups() has no parameter 'kv_cache_specs'",
        "raises TypeError: unexpected keyword argument 'kv_cache_specs'",
    ]
    # A column is only taken where the place is on one line.
    assert "col" not in found[1][1]


def test_github_shows_ten_of_a_level_and_the_log_the_rest() -> None:
    findings = tuple(replace(UNKNOWN_ARGUMENT, location=Location("a.py", line)) for line in range(1, 16))
    text = render_github([Placed(replace(REPORT, findings=findings))])
    assert len(commands(text)) == 10
    assert " a.py:15: error[unknown-argument]: " in text
    assert text.splitlines()[-1] == " speculators, held against vllm 0.16.0: found 15 errors"


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS)
def test_github_is_given_no_command_by_a_client(hostile: str) -> None:
    report = with_text(hostile)
    report = replace(report, findings=report.findings * 12, accepted=(Accepted(report.findings[0], "known", hostile),))
    text = render_github([Placed(report)])
    assert all(line.isprintable() for line in text.splitlines())
    found = commands(text)
    assert [level for level, _, _ in found] == ["error"] * 10
    for _, properties, data in found:
        assert properties["file"] == harmless(hostile)
        assert data.splitlines()[0] == harmless(hostile)


# GitLab

CODE_QUALITY = Draft202012Validator(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "properties": {
                "description": {"type": "string", "minLength": 1},
                "check_name": {"type": "string", "minLength": 1},
                "fingerprint": {"type": "string", "minLength": 1},
                "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": {"type": "string", "pattern": "^(?!/|\\./)"},
                        "lines": {
                            "type": "object",
                            "required": ["begin"],
                            "properties": {"begin": {"type": "integer", "minimum": 1}, "end": {"type": "integer"}},
                        },
                    },
                },
            },
        },
    }
)
"""What GitLab's documentation says of its code quality reports."""


def issues(*placed: Placed) -> list[dict[str, Any]]:
    text = render_gitlab(placed)
    assert text.isascii()
    assert not text.startswith("\ufeff")
    document: list[dict[str, Any]] = json.loads(text)
    CODE_QUALITY.validate(document)
    assert len({issue["fingerprint"] for issue in document}) == len(document)
    return document


def test_gitlab_gets_an_issue_for_each_finding() -> None:
    found = issues(Placed(REPORT, folder="lib/"))
    assert [issue["severity"] for issue in found] == ["critical", "critical", "minor"]
    assert found[1]["location"] == {
        "path": "lib/speculators/data_generation/generator.py",
        "lines": {"begin": 148, "end": 152},
    }
    assert found[1]["check_name"] == "driftcheck/missing-argument"
    assert "fix (unsafe): pass block_size" in found[1]["description"]


def test_gitlab_s_fingerprints_are_as_stable_as_ours_and_never_the_same_twice() -> None:
    moved = replace(UNKNOWN_ARGUMENT, location=Location("a.py", 900, 1, 900, 2))
    [before], [after] = (issues(Placed(replace(REPORT, findings=(each,)))) for each in (UNKNOWN_ARGUMENT, moved))
    assert before["fingerprint"] == after["fingerprint"]
    assert len(issues(Placed(replace(REPORT, findings=(moved, moved))), Placed(REPORT))) == 5


def test_gitlab_is_not_told_what_does_not_count() -> None:
    assert issues(Placed(ACCEPTING), Placed(CLEAN)) == []


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS)
def test_gitlab_shows_nothing_that_misleads(hostile: str) -> None:
    for issue in issues(Placed(with_text(hostile))):
        assert issue["description"].isprintable()
        assert issue["location"]["path"].isprintable()


# JUnit


def suites(*placed: Placed) -> JUnitXml:
    text = render_junit(placed)
    document = JUnitXml.fromstring(text)
    for element in ET.fromstring(text).iter("testsuite"):
        cases = element.findall("testcase")
        assert element.get("tests") == str(len(cases))
        assert element.get("failures") == str(len(element.findall("testcase/failure")))
        assert element.get("skipped") == str(len(element.findall("testcase/skipped")))
    return document


def test_junit_fails_for_what_fails_the_audit() -> None:
    [suite] = suites(Placed(REPORT, folder="lib/"))
    assert suite.name == "speculators 0.3.0 with vllm 0.16.0"
    cases = list(suite)
    assert [[type(result) for result in case.result] for case in cases] == [[Failure], [Failure], []]
    assert cases[0].classname == "lib/speculators/data_generation/generator.py"
    assert cases[0].result[0].type == "error[unknown-argument]"
    assert "LlamaModel has no attribute" in cases[2].system_out
    [strict] = suites(Placed(REPORT, fail_on=Severity.WARNING))
    assert strict.failures == 3


def test_junit_passes_what_fits_and_skips_what_does_not_count() -> None:
    clean, accepting, skipping = suites(Placed(CLEAN), Placed(ACCEPTING), Placed(SKIPPING))
    assert (clean.tests, clean.failures, clean.skipped) == (1, 0, 0)
    assert [case.name for case in clean] == ["fits vllm 0.16.0"]
    assert [type(result) for case in accepting for result in case.result] == [Skipped]
    assert "patched | by us" in render_junit([Placed(ACCEPTING)])
    assert (skipping.tests, skipping.skipped) == (2, 1)


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS)
def test_junit_is_xml_whatever_is_in_it(hostile: str) -> None:
    report = with_text(hostile)
    report = replace(report, accepted=(Accepted(report.findings[0], "known", hostile),))
    text = render_junit([Placed(report)])
    assert all(line.isprintable() for line in text.splitlines())
    failures = ET.fromstring(text).findall("testsuite/testcase/failure")
    assert [failure.get("message") for failure in failures] == [harmless(hostile)] * 2


# Markdown

MARKDOWN = MarkdownIt("commonmark").enable("table")


def tokens(text: str) -> list[Token]:
    """All that a reader of Markdown makes of the text, what is within lines included."""
    found = []
    for token in MARKDOWN.parse(text):
        found += [token, *(token.children or ())]
    return found


def shown(text: str) -> str:
    """The text that a reader sees, code included."""
    kinds = ("text", "code_inline", "text_special")
    return "\n".join(
        "".join(child.content for child in token.children if child.type in kinds)
        for token in MARKDOWN.parse(text)
        if token.children
    )


def test_markdown_says_what_what_changed_and_what_to_do() -> None:
    text = render_markdown([Placed(REPORT, folder="lib/")])
    assert text.startswith("## speculators 0.3.0 does not fit vllm 0.16.0\n\n2 errors and 1 warning in 2 files. ")
    rows = [row for row in text.splitlines() if row.startswith("| **")]
    assert len(rows) == 3
    visible = shown(text)
    assert "lib/speculators/data_generation/generator.py:148" in visible
    assert "fix (unsafe): pass block_size=vllm_config.cache_config.block_size" in visible
    assert "-     kv_cache_specs: dict[str, KVCacheSpec],\n" in text
    assert "+     block_size: int,\n" in text
    assert [token.info for token in tokens(text) if token.type == "fence"] == ["diff", "diff"]


def test_markdown_leaves_out_what_long_signatures_have_in_common() -> None:
    many = ", ".join(f"option_number_{number}: dict[str, int] | None = None" for number in range(80))
    proofs = (
        Evidence(signature=f"({many}, new: int) -> None", baseline_signature=f"({many}, old: int) -> None"),
        Evidence(signature=f"class New({many}, 1", baseline_signature=f"class New({many}, 2"),
    )
    findings = tuple(replace(MISSING_ARGUMENT, evidence=proof) for proof in proofs)
    text = render_markdown([Placed(replace(REPORT, findings=findings))])
    assert "```diff\n  (\n      …\n+     new: int,\n-     old: int,\n  ) -> None\n```" in text
    before, now = re.findall(r"^[-+] class.*$", text, re.MULTILINE)
    assert (before[-3:], now[-3:]) == (", 2", ", 1")


def test_markdown_of_what_fits() -> None:
    text = render_markdown([Placed(CLEAN), Placed(ACCEPTING)])
    assert "## speculators 0.3.0 fits vllm 0.16.0\n\nNothing found.\n" in text
    assert "(suppressed: patched | by us)" in shown(text)


def test_markdown_is_cut_at_a_line_where_it_is_far_too_long() -> None:
    findings = tuple(
        replace(UNRESOLVED_ATTRIBUTE, location=Location("a.py", line), message="x" * 500) for line in range(1, 4000)
    )
    text = render_markdown([Placed(replace(REPORT, findings=findings))])
    assert len(text.encode()) < 2**20
    assert text.endswith("\n\nThe rest is left out: the report is too long to be shown here.\n")


def rows(text: str) -> list[int]:
    """How many cells each row of the first table has."""
    found: list[int] = []
    for token in MARKDOWN.parse(text):
        if token.type == "tr_open":
            found.append(0)
        elif token.type in ("td_open", "th_open"):
            found[-1] += 1
        elif token.type == "table_close":
            break
    return found


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(alphabet="`|<>[]()!*_~#&\\:/@$-+ ax\n", min_size=1)))
def test_markdown_has_no_markup_but_ours(hostile: str) -> None:
    report = with_text(hostile)
    report = replace(report, accepted=(Accepted(report.findings[0], "known", hostile),))
    text = render_markdown([Placed(report)])
    assert all(line.isprintable() for line in text.splitlines())
    found = tokens(text)
    kinds = {token.type for token in found}
    assert not kinds & {"link_open", "image", "html_inline", "em_open", "s_open", "blockquote_open", "code_block"}
    blocks = {token.content.strip().split("\n")[0][:9] for token in found if token.type == "html_block"}
    assert blocks <= {"<details>", "</details"}
    assert rows(text) == [4, 4, 4]


def test_every_format_is_the_same_for_the_same_input() -> None:
    turned = replace(REPORT, findings=REPORT.findings[::-1])
    for render in (render_github, render_gitlab, render_junit, render_markdown):
        assert render([Placed(turned)]) == render([Placed(REPORT)])


def test_paths_lead_from_the_repository_s_root() -> None:
    finding: Finding = replace(MISSING_ARGUMENT, location=Location("app.py", 3))
    report: Report = replace(REPORT, findings=(finding,))
    for render in (render_github, render_gitlab, render_junit, render_markdown):
        assert "services/worker/app.py" in render([Placed(report, folder="services/worker/")])
