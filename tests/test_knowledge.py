"""What the rules say of a target as a whole is read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck import knowledge
from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import knowledge_of

FAMILY = """
name = "library"

[registry]
module = "library.registry"
package = "library.models"
tables = ["MODELS"]
maker = "make_parts"
chooser = "choose"

[[family]]
name = "model"
members = "registered"
attributes = { part = "part" }

[[family]]
name = "part"
members = "part"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a target named `library`."""
    monkeypatch.setattr(knowledge, "rules_folder", lambda: tmp_path)
    (tmp_path / "library").mkdir()
    return tmp_path / "library" / "target.toml"


def test_families_are_read(file: Path) -> None:
    file.write_text(FAMILY, encoding="utf-8")
    found = knowledge_of(["library"])
    assert found is not None
    assert found.registry == knowledge.Registry(
        "library.registry", "library.models", ("MODELS",), "make_parts", "choose"
    )
    assert found.families == (
        knowledge.Family("model", "registered", (("part", "part"),), (), ()),
        knowledge.Family("part", "part", (), (), ()),
    )


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (FAMILY.replace('{ part = "part" }', '{ part = "parts[]" }'), "no family is named 'parts'"),
        (FAMILY.replace('members = "part"', 'members = "parts"'), "a family's members can't be 'parts'"),
        (FAMILY.replace('chooser = "choose"', ""), "chooser"),
        ("name = ", "can't be read"),
    ],
)
def test_a_slip_is_told_with_the_file(wrong: str, complaint: str, file: Path) -> None:
    file.write_text(wrong, encoding="utf-8")
    with pytest.raises(DriftcheckError, match=complaint) as raised:
        knowledge_of(["library"])
    assert "library/target.toml" in str(raised.value)


def test_of_a_target_without_rules_nothing_is_known(file: Path) -> None:
    assert not file.exists()
    assert knowledge_of(["library"]) is None
