"""Whatever is in a client's or a target's file, an audit ends with a report or with one line.

DRIFTCHECK_FUZZ_SECONDS in the environment has this tried for so long, with new input each time.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftcheck.audit import audit_trees
from driftcheck.audit_cli import meanings
from driftcheck.errors import DriftcheckError
from driftcheck.model import Severity
from driftcheck.report.github import render_github
from driftcheck.report.gitlab import render_gitlab
from driftcheck.report.json_report import render_json
from driftcheck.report.junit import render_junit
from driftcheck.report.markdown import render_markdown
from driftcheck.report.placed import Placed
from driftcheck.report.sarif import render_sarif
from driftcheck.report.text import render_text
from driftcheck.selection import suppressed
from driftcheck.tree import MemoryTree

ROOT = Path(__file__).parents[1]
SECONDS = float(os.environ.get("DRIFTCHECK_FUZZ_SECONDS", "0"))


def snippets() -> list[str]:
    """The code of all cases: small, and full of what the audit looks at."""
    files = sorted([*(ROOT / "tests/cases").glob("*.md"), *(ROOT / "rules").glob("*/*.md")])
    blocks = [
        block
        for file in files
        for block in re.findall(r"^```py\n(.*?)^```", file.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]
    return [block for block in blocks if len(block) < 3000]


SNIPPETS = snippets()
TOKENS = sorted({token for block in SNIPPETS for token in re.findall(r"\w+|[^\w\s]+|\s+", block)})
ODD = ["\0", "\x1b[2J", "\ufeff", "\\\n", "\t", "\r", "\x0c", "'''", '"""', "\ud800", "é", "変", "f'{", "}"]
ODD += ["# driftcheck: ignore[", "class ", "def ", "async ", "await ", "yield ", "lambda: ", "match ", "case ", "type "]
ODD += ["global ", "*", "**", ":=", "@"]


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """Code that was whole once: parts gone, doubled, moved, and with what does not belong there."""
    parts = draw(st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=3))
    tokens = re.findall(r"\w+|[^\w\s]+|\n[ \t]*|[ \t]+", "\n".join(parts))
    for _ in range(draw(st.integers(0, 8))):
        place = draw(st.integers(0, max(len(tokens) - 1, 0)))
        action = draw(st.sampled_from(("drop", "double", "swap", "token", "odd", "cut", "nest")))
        if action == "drop":
            del tokens[place : place + draw(st.integers(1, 5))]
        elif action == "double":
            tokens[place:place] = tokens[place : place + draw(st.integers(1, 40))]
        elif action == "swap":
            other = draw(st.integers(0, max(len(tokens) - 1, 0)))
            if tokens:
                tokens[place], tokens[other] = tokens[other], tokens[place]
        elif action == "token":
            tokens.insert(place, draw(st.sampled_from(TOKENS)))
        elif action == "odd":
            tokens.insert(place, draw(st.sampled_from(ODD)))
        elif action == "cut":
            del tokens[draw(st.integers(0, len(tokens))) :]
        else:
            tokens.insert(place, draw(st.sampled_from("([{")) * draw(st.integers(1, 300)))
    return "".join(tokens).encode("utf-8", "surrogatepass")


def tried(client: dict[str, bytes], target: dict[str, bytes], baseline: dict[str, bytes]) -> None:
    """One audit and all its reports; only what a user could mend may keep it from ending with one."""
    trees = [MemoryTree(files, name, "1.0") for files, name in ((client, "app"), (target, "vllm"), (baseline, "vllm"))]
    try:
        report = suppressed(audit_trees(*trees, processes=1))
    except DriftcheckError:
        return
    placed = [Placed(report, "lib/", Severity.NOTE)]
    texts = [render_json(report, explain_unresolved=True), render_text(report, explain_unresolved=True)]
    texts += [render(placed) for render in (render_github, render_gitlab, render_junit, render_markdown)]
    texts.append(render_sarif(placed, meanings(), "1"))
    for text in texts:
        assert all(line.isprintable() for line in text.split("\n"))


files = st.dictionaries(st.sampled_from(["vllm/__init__.py", "vllm/core.py", "vllm/envs.py", "vllm/a/b.py"]), sources())


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(sources(), min_size=1, max_size=2), files, files)
def test_whatever_is_read_ends_with_a_report(
    client: list[bytes], target: dict[str, bytes], baseline: dict[str, bytes]
) -> None:
    whole = {"vllm/__init__.py": b"", **target}
    named = {f"app{number}.py": b"import vllm\n" + source for number, source in enumerate(client)}
    tried(named, whole, {"vllm/__init__.py": b"", **baseline})


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_bytes_that_are_no_python(client: bytes, target: bytes) -> None:
    tried({"app.py": b"import vllm\n" + client}, {"vllm/__init__.py": target}, {"vllm/__init__.py": b""})


@pytest.mark.skipif(not SECONDS, reason="DRIFTCHECK_FUZZ_SECONDS says for how long")
def test_for_as_long_as_is_asked() -> None:
    end = time.monotonic() + SECONDS
    count = 0

    @settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(sources(), min_size=1, max_size=2), files, files)
    def more(client: list[bytes], target: dict[str, bytes], baseline: dict[str, bytes]) -> None:
        nonlocal count
        if time.monotonic() < end:
            count += 1
            test_whatever_is_read_ends_with_a_report.hypothesis.inner_test(client, target, baseline)  # type: ignore[attr-defined]

    while time.monotonic() < end:
        more()
    assert count
    print(f"{count} audits in {SECONDS:.0f} s")  # noqa: T201 - what the run came to
