"""What extraction uses of vLLM is there, in every release that it is made for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import driftcheck
from driftcheck.audit import audit, releases_in
from driftcheck.model import Severity

PACKAGE = Path(driftcheck.__file__).parent / "extract"


@pytest.mark.index
def test_the_first_and_the_last_release_lack_nothing_that_extraction_uses() -> None:
    assert_fits(("vllm==0.16.0", "vllm==0.33.0"))


@pytest.mark.index
@pytest.mark.wide
def test_no_release_lacks_anything_that_extraction_uses() -> None:
    releases = releases_in(">=0.16,<=0.33")
    assert {"vllm==0.16.0", "vllm==0.33.0"} <= set(releases)
    assert_fits(releases)


def assert_fits(releases: Sequence[str]) -> None:
    """Nothing of what extraction uses of vLLM would raise in these releases, or do something else."""
    for release in releases:
        report = audit(str(PACKAGE), against=release, baseline="vllm==0.16.0")
        assert report.usages.attributes.checked > 20, release
        assert [
            (release, finding.location, finding.message)
            for finding in report.findings
            if finding.severity.rank >= Severity.SILENT.rank
        ] == []
