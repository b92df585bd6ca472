"""The text report, as its reader sees it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftcheck.model import Certainty, Evidence, Kind, Location, Report, Severity, Skipped, Unresolved
from driftcheck.report.harmless import harmless
from driftcheck.report.layout import cells, cut_apart
from driftcheck.report.text import render_text
from tests.report.samples import (
    CLEAN,
    HOSTILE_TEXT,
    MISSING_ARGUMENT,
    PATH,
    REPORT,
    SKIPPING,
    UNKNOWN_ARGUMENT,
    UNRESOLVED_ATTRIBUTE,
    with_text,
)

WHOLE = """\
speculators/data_generation/generator.py

error[unknown-argument]: get_kv_cache_config_from_groups() has no parameter 'kv_cache_specs'
 139 | kv_cache_specs=kv_cache_spec,
     | ^^^^^^^^^^^^^^ raises TypeError: unexpected keyword argument 'kv_cache_specs'
    ::: vllm/v1/core/kv_cache_utils.py:1069 in vllm 0.16.0
     | get_kv_cache_config_from_groups(
     |     vllm_config: VllmConfig, kv_cache_groups: list[Group],
     -     kv_cache_specs: dict[str, KVCacheSpec],
     |     available_memory: int,
     | ) -> KVCacheConfig

error[missing-argument]: Scheduler() needs an argument 'block_size'
 148 | self.scheduler = Scheduler(
     |                  ^^^^^^^^^^
     = raises TypeError: missing 1 required positional argument: 'block_size'
    ::: vllm/v1/core/sched/scheduler.py:64 in vllm 0.16.0, confirmed by inspect.signature
     | Scheduler(
     |     vllm_config: VllmConfig,
     +     block_size: int,
     |     log_stats: bool = False,
     | ) -> None
     = scheduler-block-size: The scheduler needs the block size since 0.11.1.
     = fix (unsafe): pass block_size=vllm_config.cache_config.block_size

speculators/data_generation/worker.py

warning[unresolved-attribute, likely]: LlamaModel has no attribute 'get_input_embeddings'
  30 | hidden_states = self.get_input_embeddings(input_ids)
     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^ raises AttributeError
    ::: vllm/model_executor/models/llama.py:340 in vllm 0.16.0
     = the same with vllm 0.11.0

Unresolved: 3 usages

2 calls: the receiver has no known type
  speculators/data_generation/generator.py: 150 (2x)

1 attribute: the name is bound at run time
  speculators/data_generation/worker.py: 9

Found 2 errors and 1 warning in 2 files, 1 of them there with vllm 0.11.0 too.
  client      speculators 0.3.0, release on the index: 94 files, 2 of them using vllm
  target      vllm 0.16.0, release on the index
  baseline    vllm 0.11.0, release on the index (required by the client's extra datagen)
  checked     14 imports, 21 calls, 1,063 attributes
  unresolved  2 calls, 1 attribute
"""

NOTHING = """\
Nothing found.
  client      speculators 0.3.0, release on the index: 94 files, 2 of them using vllm
  target      vllm 0.16.0, release on the index
  baseline    vllm 0.11.0, release on the index (required by the client's extra datagen)
  checked     3 imports
  unresolved  nothing
  skipped     1 file
              speculators/bad.py: line 3: invalid syntax
  note        vllm could not be imported: judged from its sources alone
"""


def test_a_whole_report() -> None:
    assert render_text(REPORT, explain_unresolved=True) == WHOLE


def test_a_report_without_findings() -> None:
    assert render_text(SKIPPING) == NOTHING


def test_unresolved_usages_are_counted_and_listed_only_on_request() -> None:
    text = render_text(REPORT)
    assert "unresolved  2 calls, 1 attribute (--explain-unresolved lists them)\n" in text
    assert "run time" not in text


def test_the_order_of_findings_does_not_matter() -> None:
    assert render_text(replace(REPORT, findings=REPORT.findings[::-1])) == render_text(REPORT)


@pytest.mark.parametrize(
    ("drifts", "sentence"),
    [
        ((True,), "Found 1 error in 1 file, not there with vllm 0.11.0."),
        ((False,), "Found 1 error in 1 file, there with vllm 0.11.0 too."),
        ((True, True), "Found 2 errors in 1 file, none of them there with vllm 0.11.0."),
        ((False, False), "Found 2 errors in 1 file, all of them there with vllm 0.11.0 too."),
        ((True, False), "Found 2 errors in 1 file, 1 of them there with vllm 0.11.0 too."),
        ((True, None), "Found 2 errors in 1 file."),
    ],
)
def test_the_verdict_says_what_is_drift(drifts: tuple[bool | None, ...], sentence: str) -> None:
    findings = tuple(replace(MISSING_ARGUMENT, drift=drift, message=f"{i}") for i, drift in enumerate(drifts))
    assert f"\n{sentence}\n" in render_text(replace(REPORT, findings=findings))


def test_without_a_baseline_nothing_is_said_of_drift() -> None:
    alone = replace(MISSING_ARGUMENT, drift=None, evidence=replace(MISSING_ARGUMENT.evidence, baseline_signature=None))
    text = render_text(replace(REPORT, baseline=None, findings=(alone,)))
    assert "\nFound 1 error in 1 file.\n" in text
    assert "  baseline    none: drift can't be told from what was broken before\n" in text
    assert "     >     block_size: int,\n" in text


def test_a_client_that_does_not_use_the_target() -> None:
    report = replace(CLEAN, client=replace(CLEAN.client, files=1, files_using_target=0))
    assert "release on the index: 1 file, none of them using vllm\n" in render_text(report, width=120)


def test_the_same_cause_is_told_once() -> None:
    places = [replace(UNKNOWN_ARGUMENT, location=Location(PATH, line, 5, line, 9)) for line in (10, 20, 30, 40, 50)]
    sources = tuple((PATH, line, f"    f(a={line})") for line in (10, 20, 30, 40, 50))
    text = render_text(replace(REPORT, findings=tuple(places), sources=sources))
    assert text.startswith("""\
speculators/data_generation/generator.py

error[unknown-argument]: get_kv_cache_config_from_groups() has no parameter 'kv_cache_specs'
 10 | f(a=10)
    | ^^^^ raises TypeError: unexpected keyword argument 'kv_cache_specs'
 20 | f(a=20)
    | ^^^^
 30 | f(a=30)
    | ^^^^
    = also at lines 40, 50
   ::: vllm/v1/core/kv_cache_utils.py:1069 in vllm 0.16.0
""")
    assert text.count("get_kv_cache_config_from_groups(\n") == 1


def test_two_findings_on_one_signature_show_it_once() -> None:
    other = replace(MISSING_ARGUMENT, parameter="vllm_config", message="Scheduler() needs an argument 'vllm_config'")
    text = render_text(replace(REPORT, findings=(MISSING_ARGUMENT, other)))
    assert text.count("error[missing-argument]") == 2
    assert text.count(" | Scheduler(\n") == 1


def test_what_the_message_says_is_not_said_again() -> None:
    finding = replace(MISSING_ARGUMENT, message="no 'x': raises TypeError: no x", raises="TypeError: no x")
    assert render_text(replace(REPORT, findings=(finding,))).count("TypeError") == 1


def test_much_changed_signatures_are_told_in_outline_save_the_parameter_at_fault() -> None:
    evidence = Evidence(
        path="vllm/config.py",
        line=1,
        signature="(block_size: int, a: int = 1, b: int = 1, c: int = 1, d: int = 1, e: int, same: int = 0)",
        baseline_signature="(a: str = 0, b: str = 0, c: str = 0, gone: int, d: str = 0, same: int = 0)",
    )
    assert """\
     | Scheduler(
     +     block_size: int,
     ~     a=…, b=…, c=…,
     -     gone,
     ~     d=…,
     +     e,
     |     same: int = 0,
     | )
""" in render_text(replace(REPORT, findings=(replace(MISSING_ARGUMENT, evidence=evidence),)))


def test_changed_parameters_and_results_show_both_forms() -> None:
    evidence = Evidence(signature="(a: int, b: int) -> list[int]", baseline_signature="(a: str, b: int) -> int")
    assert """\
    ::: vllm 0.16.0
     | Scheduler(
     -     a: str,
     +     a: int,
     |     b: int,
     - ) -> int
     + ) -> list[int]
""" in render_text(replace(REPORT, findings=(replace(MISSING_ARGUMENT, evidence=evidence),)))


MANY = ", ".join(f"option_number_{number}: dict[str, int] | None = None" for number in range(80))
LONG = "Literal[" + ", ".join(f"'choice_{number}'" for number in range(30))


def test_what_differs_is_never_what_is_cut_off() -> None:
    evidence = Evidence(
        signature=f"(a: {LONG}, 'new']) -> {LONG}]", baseline_signature=f"(a: {LONG}, 'old']) -> {LONG}] | None"
    )
    text = render_text(replace(REPORT, findings=(replace(MISSING_ARGUMENT, evidence=evidence),)), width=80)
    assert (
        """\
     | Scheduler(
     -     a: Literal['choi…, 'choice_29', 'old'],
     +     a: Literal['choi…, 'choice_29', 'new'],
     - ) -> Literal['cho…28', 'choice_29'] | None
     + ) -> Literal['cho…28', 'choice_29']
"""
        in text
    )
    evidence = Evidence(signature=f"class New({LONG}, 1)", baseline_signature=f"class New({LONG}, 2)")
    text = render_text(replace(REPORT, findings=(replace(MISSING_ARGUMENT, evidence=evidence),)), width=80)
    assert "     - class New(Literal…8', 'choice_29', 2)\n     + class New(Literal…8', 'choice_29', 1)\n" in text


def test_a_signature_of_thousands_of_characters_is_taken_apart() -> None:
    evidence = Evidence(signature=f"({MANY}, new: int)", baseline_signature=f"({MANY}, old: int)")
    text = render_text(replace(REPORT, findings=(replace(MISSING_ARGUMENT, evidence=evidence),)))
    assert "\n     +     new: int,\n     -     old: int,\n     | )\n" in text


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(st.text(), st.text(), st.text(), st.integers(min_value=20, max_value=60))
def test_texts_cut_apart_keep_to_the_width_and_stay_different(start: str, one: str, other: str, width: int) -> None:
    start, one, other = harmless(start * 20), harmless(one), harmless(other)
    left, right = cut_apart(start + one, start + other, width)
    assert max(cells(left), cells(right)) <= width
    assert (left == right) == (one == other)


def test_an_unchanged_signature_is_one_line() -> None:
    evidence = Evidence(signature="(a: int) -> None", baseline_signature="(a: int) -> None")
    finding = replace(MISSING_ARGUMENT, symbol="vllm.Engine.step", parameter=None, evidence=evidence)
    assert "     | Engine.step(a: int) -> None\n" in render_text(replace(REPORT, findings=(finding,)))


def test_evidence_that_is_no_signature_is_quoted() -> None:
    evidence = Evidence(path="vllm/a.py", line=2, signature="class New", baseline_signature="class Old")
    assert "     - class Old\n     + class New\n" in render_text(
        replace(REPORT, findings=(replace(MISSING_ARGUMENT, evidence=evidence),))
    )


@pytest.mark.parametrize(
    ("source", "location", "excerpt"),
    [
        ("    call(a)", Location(PATH, 148, 5, 148, 9), " 148 | call(a)\n     | ^^^^ raises"),
        ("\tx = call(a)", Location(PATH, 148, 6, 148, 10), " 148 | x = call(a)\n     |     ^^^^ raises"),
        ("x =\tcall(a)", Location(PATH, 148, 5, 148, 9), " 148 | x =    call(a)\n     |        ^^^^ raises"),
        ("名前 = call(a)", Location(PATH, 148, 6, 148, 10), " 148 | 名前 = call(a)\n     |        ^^^^ raises"),
        ("'\x1b' + call(a)", Location(PATH, 148, 7, 148, 11), " 148 | '\\x1b' + call(a)\n     |          ^^^^ raises"),
        ("call(", Location(PATH, 148, 1, 150, 4), " 148 | call(\n     | ^^^^^ raises"),
        ("call()", Location(PATH, 148, 90, 148, 95), " 148 | call()\n     |      ^ raises"),
        ("call()", Location(PATH, 148), " 148 | call()\n     | ^ raises"),
    ],
)
def test_carets_stand_under_the_place(source: str, location: Location, excerpt: str) -> None:
    finding = replace(MISSING_ARGUMENT, location=location, raises="E")
    assert excerpt in render_text(replace(REPORT, findings=(finding,), sources=((PATH, 148, source),)))


def test_endless_lines_are_cut_around_the_place() -> None:
    source = "x = [" + "0, " * 100_000 + "call(a)" + ", 1" * 100_000
    column = source.index("call") + 1
    finding = replace(MISSING_ARGUMENT, location=Location(PATH, 1, column, 1, column + 4))
    excerpt = render_text(replace(REPORT, findings=(finding,), sources=((PATH, 1, source),))).splitlines()[3:5]
    assert excerpt[0].startswith(" 1 | …")
    assert excerpt[0].endswith("…")
    assert excerpt[0].index("call") == excerpt[1].index("^^^^")
    assert cells(excerpt[0]) <= 100


def test_a_place_whose_source_is_not_at_hand_is_named_all_the_same() -> None:
    nowhere = replace(REPORT, findings=(MISSING_ARGUMENT,), sources=())
    assert "\n 148 |\n     = raises TypeError" in render_text(nowhere)
    snippet = replace(MISSING_ARGUMENT, snippet="self.scheduler = Scheduler(")
    assert "\n 148 | self.scheduler = Scheduler(\n     = raises" in render_text(replace(nowhere, findings=(snippet,)))


def test_very_many_findings_are_counted_by_kind_and_symbol() -> None:
    findings = [
        replace(UNRESOLVED_ATTRIBUTE, location=Location(f"{n % 7}.py", n + 1), drift=True, symbol=f"vllm.s{n % 11}")
        for n in range(300)
    ]
    findings[0] = replace(MISSING_ARGUMENT, symbol="vllm.once")
    text = render_text(replace(REPORT, findings=tuple(findings)))
    assert "\nFound 1 error and 299 warnings in 8 files, none of them there with vllm 0.11.0.\n" in text
    assert "  kinds       299 unresolved-attribute, 1 missing-argument\n  most often  28 vllm.s1\n" in text
    assert "vllm.once" not in text


def test_unresolved_usages_come_most_frequent_reason_first() -> None:
    usages = [Unresolved(PATH, line, "often", "call") for line in range(1, 60)]
    usages += [Unresolved(PATH, 7, "often", "attribute"), Unresolved("a.py", 1, "rarely", "import")]
    text = render_text(replace(CLEAN, unresolved=tuple(usages)), explain_unresolved=True)
    assert text.startswith(
        f"Unresolved: 61 usages\n\n1 attribute and 59 calls: often\n  {PATH}:\n    1, 2, 3, 4, 5, 6, 7 (2x), 8, 9,"
    )
    assert "\n1 import: rarely\n  a.py: 1\n\nNothing found.\n" in text


def test_many_skipped_files_are_counted_not_all_named() -> None:
    skipped = tuple(Skipped(f"{n:02}.py", "no UTF-8") for n in range(12))
    text = render_text(replace(CLEAN, client=replace(CLEAN.client, skipped=skipped)))
    assert "  skipped     12 files\n              00.py: no UTF-8\n" in text
    assert "              09.py: no UTF-8\n              and 2 more, all listed by --format json\n" in text


def test_severities_and_certainties_are_named() -> None:
    findings = [
        replace(MISSING_ARGUMENT, severity=severity, kind=Kind.BROKEN_CONTRACT, certainty=Certainty.POSSIBLE)
        for severity in Severity
    ]
    text = render_text(replace(REPORT, findings=tuple(findings)))
    assert re.findall(r"^\w+(?=\[broken-contract, possible\]: )", text, re.MULTILINE) == [
        "error",
        "silent",
        "warning",
        "note",
    ]
    assert "Found 1 error, 1 silent failure, 1 warning and 1 note in 1 file" in text


def test_colours_change_nothing_but_the_colour() -> None:
    coloured = render_text(REPORT, colour=True)
    assert "\x1b[1;31merror[unknown-argument]: \x1b[0m" in coloured
    assert "\x1b[1;32m    block_size: int,\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_text(REPORT)


@pytest.mark.parametrize("colour", [True, False])
def test_nothing_of_client_or_target_is_obeyed(*, colour: bool) -> None:
    text = render_text(with_text(HOSTILE_TEXT), colour=colour, explain_unresolved=True)
    shown = re.sub(r"\x1b\[[0-9;]+m", "", text) if colour else text
    assert shown.replace("\n", "").isprintable()
    assert "[bold]x[/bold] :smile:" in shown
    assert "\\x1b[31mred" in shown


reports = st.builds(with_text, st.text(max_size=60))


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(reports, st.integers(min_value=0, max_value=160))
def test_any_text_gives_a_report_without_controls(report: Report, width: int) -> None:
    text = render_text(report, width=width, explain_unresolved=True)
    assert text.replace("\n", "").isprintable()
    assert not any(line.endswith(" ") for line in text.splitlines())


@settings(deadline=None)  # how long it takes is a matter of the machine
@given(st.integers(min_value=60, max_value=160))
def test_lines_keep_to_the_width(width: int) -> None:
    assert all(cells(line) <= width for line in render_text(REPORT, width=width, explain_unresolved=True).splitlines())


def test_plain_text_needs_no_rich() -> None:
    code = (
        "import sys; from driftcheck.report.text import render_text; from tests.report.samples import REPORT; "
        "render_text(REPORT); print('rich' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
