"""Published clients, fixed for a release that breaks them: the edits hold, and nothing else has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fixes import faults, repaired
from driftcheck.fixes.overlay import overlay

pytestmark = pytest.mark.index

# The client, the release, how many findings safe edits repair at least, and how many all edits do.
CLIENTS = [
    ("lm-format-enforcer==0.11.3", "vllm==0.12.0", 1, 1),
    ("trl==0.25.0", "vllm==0.12.0", 0, 10),
    ("speculators==0.3.0", "vllm==0.16.0", 0, 9),
]


@pytest.mark.parametrize(("client", "target", "safe", "every"), CLIENTS)
def test_edits_of_a_published_client_hold(client: str, target: str, safe: int, every: int, tmp_path: Path) -> None:
    for is_unsafe, least in ((False, safe), (True, every)):
        sources, repair, changes = repaired(client, target, is_unsafe=is_unsafe)
        done = [each for each in repair.findings if each.status in ("proved", "unproved")]
        assert len(done) >= least
        assert list(faults(sources, changes, is_unsafe=is_unsafe)) == []
        folder = tmp_path / str(is_unsafe)
        overlay(sources.client, changes, folder)
        for change in changes:
            assert (folder / change.path).read_bytes() == change.after


def test_a_patch_printed_by_the_command_is_that_of_the_edits(tmp_path: Path) -> None:
    client, target = "lm-format-enforcer==0.11.3", "vllm==0.12.0"
    command = [sys.executable, "-m", "driftcheck", "fix", client, "--against", target]
    patch = subprocess.run(command, capture_output=True, check=True).stdout
    _, _, changes = repaired(client, target, is_unsafe=False)
    for change in changes:
        file = tmp_path / change.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(change.before)
    subprocess.run(["git", "apply", "-"], input=patch, cwd=tmp_path, check=True)
    assert changes
    for change in changes:
        assert (tmp_path / change.path).read_bytes() == change.after
