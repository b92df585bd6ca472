"""Input that is not what it seems: an audit of it ends with an answer, or with one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.audit import audit, audit_trees
from driftcheck.errors import DriftcheckError
from driftcheck.report.json_report import render_json
from driftcheck.tree import MemoryTree


def test_strings_that_no_file_can_hold() -> None:
    source = "import os, vllm\nx = getattr(vllm, '\\ud800')\nos.environ['VLLM_\\ud800'] = '1'\nvllm.gone\n"
    target = {"vllm/__init__.py": "", "vllm/envs.py": "environment_variables = {'VLLM_A': lambda: 1}\n"}
    report = audit_trees(MemoryTree({"app.py": source}, "app"), MemoryTree(target, "vllm", "1.0"))
    assert "gone" in render_json(report)


def test_a_baseline_of_another_package_is_refused(tmp_path: Path) -> None:
    for folder, package in (("client", "app"), ("target", "vllm"), ("other", "torch")):
        (tmp_path / folder / package).mkdir(parents=True)
        (tmp_path / folder / package / "__init__.py").write_text("import vllm\n" if folder == "client" else "")
    with pytest.raises(DriftcheckError, match="holds nothing of the target"):
        audit(
            str(tmp_path / "client"), against=str(tmp_path / "target"), baseline=str(tmp_path / "other"), offline=True
        )
