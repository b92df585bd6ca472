"""Audits of one client against several releases share what they read, and say what each alone says."""

from __future__ import annotations

from driftcheck.audit import audit_trees
from driftcheck.readings import Shared
from driftcheck.tree import MemoryTree

BASELINE = MemoryTree({"vllm/__init__.py": "def start(size): ...\nclass Base:\n    def run(self): ...\n"}, "vllm", "1")
NEWER = [
    MemoryTree({"vllm/__init__.py": "def start(count): ...\nclass Base:\n    def run(self): ...\n"}, "vllm", "2"),
    MemoryTree({"vllm/__init__.py": "def start(size): ...\nclass Base:\n    def go(self): ...\n"}, "vllm", "3"),
    MemoryTree({"vllm/__init__.py": "def start(size, *, fast): ...\nclass Base: ...\n"}, "vllm", "4"),
]
SOURCE = """import vllm

class Own(vllm.Base):
    def run(self): ...

def replaced(self): ...

vllm.Base.run = replaced
vllm.start(size=1)
"""
CLIENT = MemoryTree({"app.py": SOURCE, "broken.py": "import vllm\ndef"}, "app")


def test_what_is_shared_changes_no_report() -> None:
    for processes in (1, 2):
        shared = Shared()
        reports = [audit_trees(CLIENT, target, BASELINE, processes=processes, shared=shared) for target in NEWER]
        assert reports == [audit_trees(CLIENT, target, BASELINE, processes=1) for target in NEWER]
        assert len({report.findings for report in reports}) == 3


def test_the_first_may_have_been_read_by_two_processes_and_the_next_by_one() -> None:
    shared = Shared()
    reports = [
        audit_trees(CLIENT, t, BASELINE, processes=n, shared=shared) for t, n in zip(NEWER, (2, 1, 1), strict=True)
    ]
    assert reports == [audit_trees(CLIENT, target, BASELINE, processes=1) for target in NEWER]
    assert shared.before is not None
    assert len(shared.before.verdicts) > 2


def test_a_target_with_other_packages_is_read_anew() -> None:
    shared = Shared()
    other = MemoryTree({"vllm/__init__.py": "def start(): ...\nclass Base: ...\n", "more/__init__.py": ""}, "vllm", "5")
    client = MemoryTree({"app.py": SOURCE, "extra.py": "import more\nmore.missing\n"}, "app")
    first = audit_trees(client, NEWER[0], BASELINE, shared=shared)
    assert first.client.files_using_target == 1
    second = audit_trees(client, other, BASELINE, shared=shared)
    assert second == audit_trees(client, other, BASELINE)
    assert second.client.files_using_target == 2


def test_the_baseline_itself_may_stand_between() -> None:
    shared = Shared()
    targets = [NEWER[0], BASELINE, NEWER[1]]
    reports = [audit_trees(CLIENT, target, BASELINE, shared=shared) for target in targets]
    assert reports == [audit_trees(CLIENT, target, BASELINE) for target in targets]
    assert not reports[1].findings
