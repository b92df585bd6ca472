"""`driftcheck explain` says something of every kind and rule, and the pages below docs/ say the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from driftcheck.cli import main
from driftcheck.explanation import as_index, as_page, kind_explanations, rule_explanations
from driftcheck.knowledge import rules_folder
from driftcheck.model import Kind
from driftcheck.rule_files import read_rules

DOCS = Path(__file__).parents[1] / "docs"
RULES = [rule.id for rule in read_rules(rules_folder() / "vllm")]


def pages() -> dict[Path, str]:
    """Every page as it should be."""
    found: dict[Path, str] = {}
    for folder, title, entries in (
        ("kinds", "Kinds of finding", kind_explanations()),
        ("rules", "Rules", rule_explanations()),
    ):
        found[DOCS / folder / "README.md"] = as_index(title, entries)
        found |= {DOCS / folder / f"{name}.md": as_page(entry) for name, entry in entries.items()}
    return found


def test_pages_are_current(pytestconfig: pytest.Config) -> None:
    wanted = pages()
    there = {file for folder in ("kinds", "rules") for file in (DOCS / folder).glob("*.md")}
    if pytestconfig.getoption("--update-reports"):
        for file, text in wanted.items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for file in there - set(wanted):
            file.unlink()
        return
    stale = [file for file in wanted if file not in there or file.read_text(encoding="utf-8") != wanted[file]]
    assert (stale, there - set(wanted)) == ([], set()), "pytest --update-reports makes the pages anew"


@pytest.mark.parametrize("name", [kind.value for kind in Kind])
def test_every_kind_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name} (kind of finding: ")
    for heading in ("Why it breaks", "How it is found", "Example", "What to do"):
        assert f"\n{heading}\n  " in text


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name} (rule for vllm, ")
    assert "\nExample\n      " in text
    assert "# finding" not in text


def test_kinds_that_no_audit_looks_for_say_so() -> None:
    used = {
        node.attr
        for path in sorted((DOCS.parent / "driftcheck" / "compare").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Kind"
    }
    silent = {name for name, entry in kind_explanations().items() if "no audit looks for it yet" in as_page(entry)}
    assert silent == {kind.value for kind in Kind if kind.name not in used}


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert named == [kind.value for kind in Kind] + RULES


def test_an_unknown_name_gets_suggestions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "unknown-argumnt"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "driftcheck: there is no kind of finding and no rule 'unknown-argumnt': did you mean unknown-"
    )
    assert said.count("\n") == 1
    assert main(["explain", "zzz"]) == 2
    assert "`driftcheck explain` lists all" in capsys.readouterr().err


def test_a_page_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--format", "markdown", "dead-patch"]) == 0
    assert capsys.readouterr().out == (DOCS / "kinds" / "dead-patch.md").read_text(encoding="utf-8")
