"""Comments in the client's code take findings out of the verdict, for a reason, where they stand and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.audit import audit_trees
from driftcheck.cli import main
from driftcheck.model import Report
from driftcheck.selection import suppressed
from driftcheck.tree import MemoryTree
from driftcheck.usage.suppressions import suppressions

TARGET = MemoryTree({"vllm/__init__.py": "def run(a): ...\ndef stop(): ...\n"}, "vllm", "2.0")


def audited(source: str) -> Report:
    return suppressed(audit_trees(MemoryTree({"app.py": source}, "app"), TARGET))


def lines(report: Report) -> tuple[list[int], list[int]]:
    """The lines of what counts, and of what is accepted."""
    return (
        [finding.location.line for finding in report.findings],
        [entry.finding.location.line for entry in report.accepted],
    )


REASON = "# driftcheck: ignore[unknown-argument] patched at start"


@pytest.mark.parametrize(
    "source",
    [
        f"import vllm\nvllm.run(1, b=2)  {REASON}\n",
        f"import vllm\nvllm.run(\n    1,\n    b=2,\n)  {REASON}\n",
        f"import vllm\nvllm.run(\n    1,\n    b=2,  {REASON}\n)\n",
        f"import vllm\nvllm.run(  {REASON}\n    1,\n    b=2,\n)\n",
        f"import vllm\n{REASON}\nvllm.run(1, b=2)\n",
        f"import vllm\nif vllm:\n    {REASON}\n    # and another\n\n    vllm.run(\n        1, b=2)\n",
        f"import vllm\nif vllm.run(1, b=2):  {REASON}\n    pass\n",
        f"import vllm\ndef f(a=vllm.run(1, b=2)):  {REASON}\n    pass\n",
        f"import vllm\nx = 1; vllm.run(1, b=2)  # noqa: E702 {REASON}\n",
        "import vllm\nvllm.run(1, b=2)  # driftcheck: ignore[missing-argument, unknown-argument] patched\n",
        "import vllm\nvllm.run(1, b=2)  #driftcheck:ignore[unknown-argument]: patched\n",
    ],
)
def test_a_finding_is_accepted_in_its_statement(source: str) -> None:
    report = audited(source)
    counting, accepted = lines(report)
    assert (counting, len(accepted)) == ([], 1)
    assert "patched" in report.accepted[0].reason
    assert report.accepted[0].how == "suppressed"


@pytest.mark.parametrize(
    "source",
    [
        f"import vllm\nvllm.run(1)  {REASON}\nvllm.run(1, b=2)\n",
        f"import vllm\nif vllm:  {REASON}\n    vllm.run(1, b=2)\n",
        f"import vllm\nvllm.run(1, b=2)\n{REASON}\n",
        f'import vllm\nvllm.run(1, b="""\n{REASON}\n""")\n',
    ],
)
def test_no_other_statement_is_touched(source: str) -> None:
    counting, accepted = lines(audited(source))
    assert (len(counting), accepted) == (1, [])


@pytest.mark.parametrize(
    ("comment", "complaint"),
    [
        ("ignore[unknown-argument]", "app.py:2 is not followed: it gives no reason"),
        ("ignore patched", "app.py:2 is not followed: it names no kind of finding"),
        ("ignore[] patched", "app.py:2 is not followed: it names no kind of finding"),
        ("ignore[unknown-argument patched", "app.py:2 is not followed: it names no kind of finding"),
        ("ingore[unknown-argument] patched", "app.py:2 is not followed: 'ingore' after 'driftcheck:' is not known"),
        ("off", "app.py:2 is not followed: 'off' after 'driftcheck:' is not known"),
        (
            "ignore[unknown-arguments] patched",
            "the comment at app.py:2: unknown kind of finding 'unknown-arguments': did you mean 'unknown-argument'?",
        ),
        ("ignore[missing-argument] patched", "unused: ignore[missing-argument] at app.py:2 suppresses nothing with"),
        ("ignore[get-input-embeddings] x", "unused: ignore[get-input-embeddings] at app.py:2 suppresses nothing"),
        ("ignore[unknown-argument, invalid-patch] x", "unused: ignore[invalid-patch] at app.py:2 suppresses nothing"),
    ],
)
def test_what_is_not_followed_or_not_needed_is_said(comment: str, complaint: str) -> None:
    report = audited(f"import vllm\nvllm.run(1, b=2)  # driftcheck: {comment}\n")
    [notice] = report.notices
    assert complaint in notice
    assert len(report.findings) == ("invalid-patch" not in comment)


def test_an_unused_one_is_said_in_a_file_that_does_not_use_the_target() -> None:
    files = {"app.py": "import vllm\nvllm.stop()\n", "other.py": f"x = 1  {REASON}\n"}
    report = suppressed(audit_trees(MemoryTree(files, "app"), TARGET))
    assert report.notices == (
        "unused: ignore[unknown-argument] at other.py:1 suppresses nothing with vllm 2.0; take it out",
    )


def test_a_rule_may_be_named() -> None:
    found = list(suppressions("app.py", b"x()  # driftcheck: ignore[decoder-layer-call] all of ours take it\n"))
    assert [(each.names, each.reason, each.fault) for each in found] == [
        (("decoder-layer-call",), "all of ours take it", None)
    ]


@pytest.mark.parametrize(
    "source",
    [
        b"x = (  # driftcheck: ignore[unknown-argument] x\n",
        b"\xff# driftcheck: ignore[unknown-argument] x\n",
        b"# coding: no-such\n# driftcheck: ignore[unknown-argument] x\n",
        b"  x = 1\n y = 2  # driftcheck: ignore[unknown-argument] x\n",
        b"'''# driftcheck: ignore[unknown-argument] x",
        b"x = " + b"(" * 10_000 + b")" * 10_000 + b"# driftcheck: ignore[unknown-argument] x",
    ],
)
def test_what_is_no_python_has_none_or_an_end(source: bytes) -> None:
    assert len(list(suppressions("app.py", source))) <= 1


def test_a_fix_leaves_what_is_suppressed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    comment = "# driftcheck: ignore[unresolved-symbol] ours has both"
    files = {
        "old/vllm/__init__.py": "",
        "old/vllm/before.py": "def helper(first, second): ...\n",
        "new/vllm/__init__.py": "",
        "new/vllm/after.py": "def helper(first, second): ...\n",
        "new/vllm/before.py": "",
        "client/app.py": f"from vllm.before import helper  {comment}\n",
        "client/more.py": "from vllm.before import helper\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["fix", "client", "--against", "./new", "--baseline", "./old", "--unsafe"]) == 0
    patch = capsys.readouterr().out
    assert "+++ b/more.py" in patch
    assert "app.py" not in patch
