"""What extraction uses of vLLM is there, in every release that it is made for."""

from __future__ import annotations

from pathlib import Path

import pytest

import driftcheck
from driftcheck.audit import audit, releases_in
from driftcheck.model import Severity

PACKAGE = Path(driftcheck.__file__).parent / "extract"


@pytest.mark.index
def test_no_release_lacks_anything_that_extraction_uses() -> None:
    releases = releases_in(">=0.16,<=0.33")
    assert {"vllm==0.16.0", "vllm==0.33.0"} <= set(releases)
    for release in releases:
        report = audit(str(PACKAGE), against=release, baseline="vllm==0.16.0")
        assert report.usages.attributes.checked > 20, release
        assert [
            (release, finding.location, finding.message)
            for finding in report.findings
            if finding.severity.rank >= Severity.SILENT.rank
        ] == []
