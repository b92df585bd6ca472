"""Holds this package against the vLLM that will run it, before anything is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.extract.environment import release_of
from driftcheck.model import Finding


def drift() -> Iterator[Finding]:
    """What the installed vLLM no longer offers of what `internals.py` lists, as an audit finds it.

    Raises DriftcheckError where there is no vLLM to audit.
    """
    from driftcheck.audit import audit

    if release_of("vllm") is None:
        raise DriftcheckError("this Python has no vllm: install driftcheck beside it, or it beside driftcheck")
    package = Path(__file__).parent
    # Sources alone: asking the interpreter would take longer than the rest, and the smoke run asks it everything.
    report = audit(str(package), against="vllm", python=sys.executable, static=True, offline=True)
    for finding in report.findings:
        if finding.is_severe:
            yield finding
