"""The SARIF log is what the standard's schema says, is within GitHub's limits, and its fixes can be made."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from pydantic_sarif.model import (  # type: ignore[import-untyped]
    StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log,
)

from driftcheck.audit import audit_trees
from driftcheck.audit_cli import meanings
from driftcheck.fixes.recipes import Planned, edited
from driftcheck.fixes.replacements import replacements
from driftcheck.model import Accepted, Finding, Kind, Location, Report, Severity
from driftcheck.report.harmless import harmless
from driftcheck.report.placed import Placed
from driftcheck.report.sarif import render_sarif
from driftcheck.tree import MemoryTree
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

ACCEPTING = replace(
    REPORT,
    findings=(UNKNOWN_ARGUMENT,),
    accepted=(Accepted(MISSING_ARGUMENT, "known", "known.json"), Accepted(UNRESOLVED_ATTRIBUTE, "suppressed", "shim")),
)


def log(*placed: Placed | Report) -> dict[str, Any]:
    """The log of the reports, once it has passed the schema."""
    reports = [each if isinstance(each, Placed) else Placed(each) for each in placed]
    text = render_sarif(reports, meanings(), "1.2.3")
    Log.model_validate_json(text)
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.mark.parametrize("report", [REPORT, CLEAN, SKIPPING, ACCEPTING, replace(REPORT, baseline=None)])
def test_reports_fit_the_standard_s_schema(report: Report) -> None:
    [run] = log(report)["runs"]
    assert len(run["results"]) == len(report.findings) + len(report.accepted)


def test_what_the_schema_refuses_is_seen() -> None:
    document = log(REPORT)
    document["runs"][0]["results"][0]["severity"] = "error"
    with pytest.raises(ValueError, match="severity"):
        Log.model_validate_json(json.dumps(document))


def test_a_finding_is_told_whole() -> None:
    [result] = log(Placed(replace(REPORT, findings=(MISSING_ARGUMENT,)), folder="lib/a b/"))["runs"][0]["results"]
    assert result["ruleId"] == "missing-argument"
    assert result["level"] == "error"
    assert result["message"]["text"].splitlines() == [
        "Scheduler() needs an argument 'block_size'.",
        "raises TypeError: missing 1 required positional argument: 'block_size'",
        "vllm/v1/core/sched/scheduler.py:64 in vllm 0.16.0, confirmed by inspect.signature",
        "scheduler-block-size: The scheduler needs the block size since 0.11.1. The platform may change it.",
        "fix (unsafe): pass block_size=vllm_config.cache_config.block_size",
    ]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "lib/a%20b/speculators/data_generation/generator.py"
    assert place["region"] == {"startLine": 148, "startColumn": 26, "endLine": 152, "endColumn": 10}
    assert result["partialFingerprints"] == {"driftcheck/v1": "a0c3"}
    assert "baselineState" not in result


def test_rules_explain_themselves() -> None:
    [run] = log(REPORT)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["unresolved-attribute", "unknown-argument", "missing-argument"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for rule in rules:
        assert "## What to do" in rule["help"]["markdown"]
        assert rule["shortDescription"]["text"].endswith(".")


def test_what_does_not_count_is_marked_and_not_dropped() -> None:
    by_kind = {result["ruleId"]: result for result in log(ACCEPTING)["runs"][0]["results"]}
    assert by_kind["unknown-argument"]["suppressions"] == []
    assert by_kind["unknown-argument"]["baselineState"] == "new"
    assert by_kind["missing-argument"]["baselineState"] == "unchanged"
    assert by_kind["missing-argument"]["suppressions"][0]["kind"] == "external"
    assert by_kind["unresolved-attribute"]["suppressions"] == [{"kind": "inSource", "justification": "shim"}]


def test_every_client_has_a_run_and_a_category_of_its_own() -> None:
    runs = log(REPORT, CLEAN)["runs"]
    assert [len(run["results"]) for run in runs] == [3, 0]
    assert len({run["automationDetails"]["id"] for run in runs}) == 2


def test_github_s_limits_are_kept_and_the_worst_are_shown() -> None:
    def numbered(number: int) -> Finding:
        severity = Severity.ERROR if number == 5999 else Severity.WARNING
        return replace(
            UNKNOWN_ARGUMENT, location=Location("a.py", number + 1), severity=severity, fingerprint=str(number)
        )

    [run] = log(replace(REPORT, findings=tuple(map(numbered, range(6000)))))["runs"]
    assert len(run["results"]) == 5000
    assert run["results"][-1]["level"] == "error"
    assert len(gzip.compress(json.dumps(run).encode())) < 10_000_000
    [notice] = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"].startswith("1,000 more findings")
    for rule in log(REPORT)["runs"][0]["tool"]["driver"]["rules"]:
        assert len(rule["id"]) <= 255
        assert max(len(rule["shortDescription"]["text"]), len(rule["fullDescription"]["text"])) <= 1024


def test_every_kind_has_a_rule_that_github_takes() -> None:
    findings = tuple(replace(UNKNOWN_ARGUMENT, kind=kind, fingerprint=kind.value) for kind in Kind)
    [run] = log(replace(REPORT, findings=findings))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [kind.value for kind in Kind]
    for rule in rules:
        assert max(len(rule["shortDescription"]["text"]), len(rule["fullDescription"]["text"])) <= 1024


def test_nothing_in_it_is_obeyed_by_a_terminal() -> None:
    text = render_sarif([Placed(with_text(HOSTILE_TEXT), folder="\x1b[2J/")], meanings(), "1")
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    document = json.loads(text)
    Log.model_validate_json(text)
    results = document["runs"][0]["results"]
    assert results[0]["message"]["text"].startswith(harmless(HOSTILE_TEXT))
    assert "\x1b" not in json.dumps(document, ensure_ascii=False)
    assert re.fullmatch(r"[\w.~/%-]*", results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


BASELINE = {"vllm/__init__.py": "", "vllm/core.py": "class Engine:\n    def __init__(self, model, block=1): ...\n"}
TARGET = {"vllm/__init__.py": "", "vllm/core.py": "class Engine:\n    def __init__(self, model): ...\n"}
CLIENT = """\
# coding: utf-8
from vllm.core import Engine

naïve = Engine(
    "m",
    block=2,  # two
)
other = Engine("m", block=3)
"""


def test_fixes_are_what_the_recipes_make() -> None:
    client = MemoryTree({"app.py": CLIENT}, "app")
    report = audit_trees(client, MemoryTree(TARGET, "vllm", "2"), MemoryTree(BASELINE, "vllm", "1"))
    assert [finding.location.line for finding in report.findings] == [6, 8]
    made = replacements(report.findings, client.read)
    results = log(Placed(report, replacements=made))["runs"][0]["results"]
    for finding, result in zip(report.findings, results, strict=True):
        assert finding.fix is not None
        [fix] = result["fixes"]
        [change] = fix["artifactChanges"]
        assert change["artifactLocation"]["uri"] == "app.py"
        lines = CLIENT.splitlines(keepends=True)
        for replacement in reversed(change["replacements"]):
            region = replacement["deletedRegion"]
            assert region["startColumn"] == region["endColumn"] == 1
            lines[region["startLine"] - 1 : region["endLine"] - 1] = [replacement["insertedContent"]["text"]]
        wanted = edited(CLIENT.encode(), [Planned(finding.fix.edits)]).source
        assert "".join(lines).encode() == wanted != CLIENT.encode()


def test_of_very_many_fixes_the_worst_are_worked_out() -> None:
    client = MemoryTree({"app.py": CLIENT + "# more\n" * 40_000}, "app")
    report = audit_trees(client, MemoryTree(TARGET, "vllm", "2"), MemoryTree(BASELINE, "vllm", "1"))
    slight, worst = report.findings
    findings = [replace(slight, severity=Severity.WARNING), worst]
    assert set(replacements(findings, client.read)) == {worst.fingerprint}
