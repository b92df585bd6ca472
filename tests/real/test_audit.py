"""The audit of an installed client beside a real vLLM, each finding confirmed by its interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.audit import audit
from driftcheck.model import Kind

pytestmark = pytest.mark.vllm
GENERATOR = "speculators/data_generation/vllm_hidden_states_generator.py"


def test_an_installed_client_is_confirmed_by_the_interpreter(vllm_0_16_0: Path) -> None:
    report = audit("speculators", python=str(vllm_0_16_0), baseline="vllm==0.11.0")
    assert [
        (found.kind, found.location.path, found.location.line, found.parameter, found.evidence.confirmed_by)
        for found in report.findings
        if found.evidence.confirmed_by is not None
    ] == [
        (Kind.UNKNOWN_ARGUMENT, GENERATOR, 139, "kv_cache_specs", "inspect.signature"),
        (Kind.MISSING_ARGUMENT, GENERATOR, 148, "block_size", "inspect.signature"),
        (Kind.MISSING_ARGUMENT, GENERATOR, 194, "is_encoder_decoder", "inspect.signature"),
    ]
    assert report.usages.calls.unresolved == 0
    # What no signature shows is told by rules, and of whatever model is loaded: no interpreter can say so.
    others = {found.kind for found in report.findings if found.evidence.confirmed_by is None}
    assert others == {
        Kind.BROKEN_CONTRACT,
        Kind.INVALID_PATCH,
        Kind.UNKNOWN_ARGUMENT,
        Kind.UNRESOLVED_ATTRIBUTE,
    }


def test_a_base_method_that_is_given_its_receiver(vllm_0_16_0: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from vllm.v1.core.sched.scheduler import Scheduler\n"
        "class Mine(Scheduler):\n"
        "    def finish_requests(self, request_ids, finished_status):\n"
        "        return Scheduler.finish_requests(self, request_ids, finished_status)\n"
        "    def wrong(self):\n"
        "        return Scheduler.finish_requests(self, 1, 2, 3)\n"
    )
    report = audit(str(tmp_path), python=str(vllm_0_16_0))
    assert [(found.kind, found.location.line) for found in report.findings] == [(Kind.TOO_MANY_POSITIONAL_ARGUMENTS, 6)]
