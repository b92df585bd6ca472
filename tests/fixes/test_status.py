"""What a fix is said to be: a parameter that has to be given, and that nobody may give, is not proved."""

from __future__ import annotations

from driftcheck.audit import Sources
from driftcheck.fixing import Choice, fixed
from driftcheck.tree import MemoryTree

BASE = """\
class Proposer:
    def propose(self, states{}): ...


def run(proposer: Proposer):
    proposer.propose(1{})
"""
CLIENT = """\
from vllm.propose import Proposer


class Own(Proposer):
    def propose(self, states):
        return super().propose(states=states)
"""


def _statuses(parameter: str, argument: str) -> list[tuple[str, str]]:
    files = [BASE.format("", ""), BASE.format(parameter, argument)]
    baseline, target = (
        MemoryTree({"vllm/__init__.py": "", "vllm/propose.py": text}, "vllm", f"{number}.0")
        for number, text in enumerate(files, 1)
    )
    sources = Sources(MemoryTree({"app.py": CLIENT}, "app"), target, baseline, None, (), None, None, None)
    repair, changes = fixed([sources], Choice(is_unsafe=True))
    assert b"propose(states=states, count=count)" in changes[0].after
    return [(each.finding.kind.value, each.status) for each in repair.findings]


def test_a_parameter_that_has_to_be_given_is_not_proved() -> None:
    assert _statuses(", count", ", count=2") == [("invalid-override", "unproved"), ("missing-argument", "unproved")]


def test_one_with_a_default_is() -> None:
    assert _statuses(", count=1", ", count=2") == [("invalid-override", "proved")]
