"""What extraction uses of vLLM is there, in every release that it is made for."""

from __future__ import annotations

from pathlib import Path

import pytest

import driftcheck
from driftcheck.audit import audit
from driftcheck.matrix import matrix, releases_of
from driftcheck.model import Severity

PACKAGE = Path(driftcheck.__file__).parent / "extract"


@pytest.mark.index
def test_no_release_lacks_anything_that_extraction_uses() -> None:
    releases = releases_of(">=0.16,<=0.33")
    assert {"0.16.0", "0.33.0"} <= set(releases)
    found = matrix(str(PACKAGE), releases, baseline="vllm==0.16.0")
    assert [(release.version, release.breaks, release.fault) for release in found.releases if not release.fits] == []
    assert found.notices == ()


@pytest.mark.index
def test_what_it_uses_is_seen() -> None:
    report = audit(str(PACKAGE), against="vllm==0.33.0", baseline="vllm==0.16.0")
    assert report.usages.attributes.checked > 20
    assert [finding for finding in report.findings if finding.severity.rank >= Severity.SILENT.rank] == []
