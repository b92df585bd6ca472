"""The JSON is what the published schema says, and the schema is strict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from driftcheck.model import Certainty, Evidence, Kind, Location, Report, Severity
from driftcheck.report.json_report import render_json, render_json_list
from tests.report.samples import CLEAN, HOSTILE_TEXT, REPORT, SKIPPING, UNKNOWN_ARGUMENT, with_text

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("report", [REPORT, CLEAN, SKIPPING, replace(REPORT, baseline=None)])
@pytest.mark.parametrize("explain_unresolved", [True, False])
def test_reports_fit_the_schema(report: Report, *, explain_unresolved: bool) -> None:
    document = json.loads(render_json(report, explain_unresolved=explain_unresolved))
    VALIDATOR.validate(document)
    assert ("unresolved" in document) is explain_unresolved
    assert len(document["findings"]) == len(report.findings)


def test_several_clients() -> None:
    document = json.loads(render_json_list([REPORT, CLEAN]))
    VALIDATOR.validate(document)
    assert [report["client"]["name"] for report in document["reports"]] == ["speculators", "speculators"]
    assert document["reports"][0] == json.loads(render_json(REPORT))


def test_a_finding_is_told_whole() -> None:
    [finding] = json.loads(render_json(replace(REPORT, findings=(UNKNOWN_ARGUMENT,))))["findings"]
    assert finding == {
        "kind": "unknown-argument",
        "severity": "error",
        "certainty": "certain",
        "drift": True,
        "path": "speculators/data_generation/generator.py",
        "line": 139,
        "column": 13,
        "end_line": 139,
        "end_column": 27,
        "symbol": "vllm.v1.core.kv_cache_utils.get_kv_cache_config_from_groups",
        "parameter": "kv_cache_specs",
        "message": "get_kv_cache_config_from_groups() has no parameter 'kv_cache_specs'",
        "raises": "TypeError: unexpected keyword argument 'kv_cache_specs'",
        "evidence": {
            "path": "vllm/v1/core/kv_cache_utils.py",
            "line": 1069,
            "signature": UNKNOWN_ARGUMENT.evidence.signature,
            "baseline_signature": UNKNOWN_ARGUMENT.evidence.baseline_signature,
            "source": None,
            "confirmed_by": None,
        },
        "rule": None,
        "fix": None,
        "fingerprint": "5e1f",
    }


def test_a_place_without_an_end_ends_where_it_starts() -> None:
    report = replace(REPORT, findings=(replace(UNKNOWN_ARGUMENT, location=Location("a.py", 7, 3)),))
    document = json.loads(render_json(report))
    VALIDATOR.validate(document)
    assert (document["findings"][0]["end_line"], document["findings"][0]["end_column"]) == (7, 3)


def test_the_order_of_findings_does_not_matter() -> None:
    turned = replace(REPORT, findings=REPORT.findings[::-1], unresolved=REPORT.unresolved[::-1])
    assert render_json(turned, explain_unresolved=True) == render_json(REPORT, explain_unresolved=True)


def test_nothing_in_it_is_obeyed_by_a_terminal_and_nothing_is_lost() -> None:
    text = render_json(with_text(HOSTILE_TEXT), explain_unresolved=True)
    assert text.endswith("}\n")
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["findings"][0]["message"] == HOSTILE_TEXT


def test_the_schema_knows_the_closed_lists() -> None:
    finding = SCHEMA["$defs"]["finding"]["properties"]
    assert finding["kind"]["enum"] == [kind.value for kind in Kind]
    assert finding["severity"]["enum"] == [severity.value for severity in Severity]
    assert finding["certainty"]["enum"] == [certainty.value for certainty in Certainty]


def objects(document: Any) -> Iterator[dict[str, Any]]:
    """Every object within the document, outermost first."""
    if isinstance(document, dict):
        yield document
    for value in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from objects(value)


def test_no_key_may_be_missing_or_added_anywhere() -> None:
    text = render_json(
        replace(SKIPPING, findings=REPORT.findings, unresolved=REPORT.unresolved), explain_unresolved=True
    )
    optional = {"unresolved"}
    broken = 0
    for number, sound in enumerate(objects(json.loads(text))):
        for key in [*sound.keys() - (optional if number == 0 else set()), None]:
            document = json.loads(text)
            changed = list(objects(document))[number]
            if key is None:
                changed["surprise"] = 1
            else:
                del changed[key]
            assert not VALIDATOR.is_valid(document), (number, key)
            broken += 1
    assert broken > 100


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "bad-argument"),
        ("severity", "fatal"),
        ("certainty", 1),
        ("drift", "yes"),
        ("path", "/etc/passwd"),
        ("path", ""),
        ("line", 0),
        ("column", "13"),
        ("message", ""),
        ("symbol", None),
        ("raises", 3),
        ("fix", {"applicability": "perhaps", "description": "x"}),
        ("evidence", None),
        ("fingerprint", None),
    ],
)
def test_wrong_values_are_refused(key: str, value: object) -> None:
    document = json.loads(render_json(REPORT))
    document["findings"][0][key] = value
    assert not VALIDATOR.is_valid(document)


def test_evidence_may_be_empty() -> None:
    report = replace(REPORT, findings=(replace(UNKNOWN_ARGUMENT, evidence=Evidence()),))
    VALIDATOR.validate(json.loads(render_json(report)))
