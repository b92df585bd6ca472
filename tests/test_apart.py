"""Work in a second process: what comes back, and that an audit comes to the same with one process and with two."""

from __future__ import annotations

import os

import pytest

from driftcheck.apart import begun_apart, may_work_apart, shared_out
from driftcheck.audit import audit_trees
from driftcheck.errors import DriftcheckError
from driftcheck.report.json_report import render_json
from driftcheck.tree import MemoryTree

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be split off here")


def test_the_result_comes_from_another_process() -> None:
    process, value = begun_apart(lambda: (os.getpid(), {"a": (1, 2)}))()
    assert process != os.getpid()
    assert value == {"a": (1, 2)}


def test_a_complaint_is_raised_where_the_result_is_asked_for() -> None:
    def fail() -> None:
        raise DriftcheckError("this can't be read")

    result = begun_apart(fail)
    with pytest.raises(DriftcheckError, match="this can't be read"):
        result()


def test_where_the_process_dies_the_work_is_done_here() -> None:
    here = os.getpid()

    def work() -> int:
        if os.getpid() != here:
            os._exit(9)
        return 7

    assert begun_apart(work)() == 7


def test_a_second_process_needs_a_second_core() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert may_work_apart() in (False, cores != 1)


class Counter:
    """A step that only counts what it is told."""

    def __init__(self) -> None:
        self.done = 0

    def advance(self, amount: int = 1) -> None:
        self.done += amount


def test_what_is_shared_out_keeps_its_order() -> None:
    for number in range(6):
        task = Counter()
        found = shared_out(range(number), lambda item: (item * item, os.getpid()), task)
        assert [square for square, _ in found] == [item * item for item in range(number)]
        assert len({process for _, process in found}) == (2 if number > 1 and may_work_apart() else min(number, 1))
        assert task.done == number


BASELINE = {
    "vllm/__init__.py": "",
    "vllm/core.py": (
        "class Scheduler:\n"
        "    def __init__(self, config, size=1): ...\n"
        "    def schedule(self, budget): ...\n"
        "    def old(self): ...\n"
        "def hashed(tokens, salt): ...\n"
    ),
}
TARGET = {
    "vllm/__init__.py": "",
    "vllm/core.py": (
        "class Scheduler:\n"
        "    def __init__(self, config, block_size, size=1): ...\n"
        "    def schedule(self, budget, throttle=False): ...\n"
        "    def step(self):\n"
        "        self.schedule(1, True)\n"
        "def hashed(tokens, seed, salt): ...\n"
    ),
}
CLIENT = {
    "app/__init__.py": "",
    "app/run.py": (
        "import vllm.core\n"
        "from vllm.core import Scheduler, hashed\n"
        "class Mine(Scheduler):\n"
        "    def schedule(self, budget): return super().schedule(budget)\n"
        "def short(tokens, salt): ...\n"
        "vllm.core.hashed = short\n"
        "def run(config):\n"
        "    scheduler = Scheduler(config)\n"
        "    scheduler.old()\n"
        "    return hashed([1], 2)\n"
    ),
    "app/deep.py": "import vllm\nx = " + "(" * 150 + "1" + ")" * 150 + "\n",
    "app/deeper.py": "import vllm\nx = " + " + ".join(["vllm"] * 3000) + "\n",
}


def test_one_process_and_two_come_to_the_same() -> None:
    reports = [
        render_json(
            audit_trees(
                MemoryTree(CLIENT, "app"),
                MemoryTree(TARGET, "vllm", "2.0"),
                MemoryTree(BASELINE, "vllm", "1.0"),
                processes=processes,
            ),
            explain_unresolved=True,
        )
        for processes in (1, 2)
    ]
    assert reports[0] == reports[1]
    for kind in ("missing-argument", "unresolved-attribute", "invalid-override", "invalid-patch"):
        assert f'"{kind}"' in reports[0]
    assert "app/deeper.py" in reports[0]
