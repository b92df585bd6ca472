"""What an upgrade of the target means for a client: what breaks, what behaves otherwise, and in which words."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from driftcheck.audit import Sources, sources_of
from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.fixing import Choice, fixed
from driftcheck.report.upgrade_json import render_upgrades_json
from driftcheck.report.upgrade_markdown import render_upgrades_markdown
from driftcheck.report.upgrade_text import render_upgrades
from driftcheck.report.upgrade_words import change_sentences
from driftcheck.selection import suppressed
from driftcheck.symbol_upgrade import ChangedSymbol, Upgrade
from driftcheck.tree import MemoryTree
from driftcheck.upgrade import upgrade_of

# What has become of a finding that is repaired.
DONE = ("proved", "unproved")
COMMAND = "driftcheck fix app --baseline vllm==1 --against vllm==2"


def upgrade(before: str, after: str, client: str) -> Upgrade:
    """What the way from one `vllm/engine.py` to another means for a client in `app.py`."""
    old, new = (
        MemoryTree({"vllm/__init__.py": "", "vllm/engine.py": text}, "vllm", version)
        for text, version in ((before, "1"), (after, "2"))
    )
    app = MemoryTree({"app.py": f"from vllm import engine\n\n{client}"}, "app", "1.0")
    return upgrade_of(Sources(app, new, old, None, (), None, None, None))


def changed(before: str, after: str, client: str) -> dict[str, ChangedSymbol]:
    """What still fits and is not what it was, by the last two parts of its path."""
    return {".".join(each.symbol.split(".")[2:]): each for each in upgrade(before, after, client).changed}


def kinds(symbol: ChangedSymbol) -> list[tuple[str, str]]:
    """The changes of a symbol, each with the parameter that it is about."""
    return [(change.kind, change.name) for change in symbol.changes]


# What breaks


def test_what_breaks_is_told_by_symbol_with_both_places() -> None:
    found = upgrade(
        "def start(size, name=None): ...\n\ndef stop(): ...\n",
        "import os\n\ndef start(size): ...\n",
        "engine.start(1, name='a')\nengine.start(2, name='b')\nengine.stop()\n",
    )
    start, stop = found.broken
    assert (start.symbol, len(start.findings)) == ("vllm.engine.start", 2)
    assert start.place_before is not None and start.place is not None
    assert (start.place_before.line, start.place.line) == (1, 3)
    assert stop.symbol == "vllm.engine.stop"
    assert stop.place_before is not None and (stop.place_before.line, stop.place) == (3, None)
    assert found.changed == ()


def test_a_symbol_that_breaks_somewhere_is_told_in_one_place() -> None:
    found = upgrade(
        "def start(size, name=None):\n    return size\n\ndef stop(now=True): ...\n",
        "def start(size):\n    return size + 1\n\ndef stop(): ...\n",
        "engine.start(\n    1,\n    name='a',\n)\nengine.start(2)\nengine.start(3)\nengine.stop(now=False)\n",
    )
    start, stop = found.broken
    assert start.beside is not None
    assert [use.location.line for use in start.beside.uses] == [7, 8]
    assert start.beside.body is not None
    assert stop.beside is None
    told = {each.symbol for each in found.changed}
    told |= {each.symbol for each in (*found.unchanged, *found.uncompared)}
    assert told.isdisjoint(each.symbol for each in found.broken)
    text = render_upgrades([(found, COMMAND)], width=100)
    assert "    breaks at 1 usage and fits at 2: called at app.py:7 and app.py:8\n" in text


def test_an_override_that_breaks_is_no_use_that_fits() -> None:
    found = upgrade(
        "class Base:\n    def run(self):\n        return 1\n",
        "class Base:\n    def run(self, deep=False):\n        return 2\n",
        "class Own(engine.Base):\n    def run(self):\n        return super().run()\n",
    )
    (run,) = found.broken
    assert run.beside is not None
    assert [use.role for use in run.beside.uses] == ["super"]
    assert run.beside.body is not None


def test_what_the_older_release_lacks_as_well_is_only_counted() -> None:
    found = upgrade("def start(): ...\n", "def start(): ...\n", "engine.start()\nengine.never()\n")
    assert found.broken == ()
    assert any(
        notice.startswith("not counted: a finding that the older release has as well") for notice in found.notices
    )


def test_without_a_baseline_there_is_no_upgrade() -> None:
    tree = MemoryTree({"vllm/__init__.py": ""}, "vllm", "2")
    app = MemoryTree({"app.py": "import vllm\n"}, "app", "1.0")
    with pytest.raises(DriftcheckError, match="name one with --from"):
        upgrade_of(Sources(app, tree, None, None, (), None, None, None))


def test_nothing_changes_where_the_client_is_there_already() -> None:
    tree = MemoryTree({"vllm/__init__.py": "def start(size=1): ...\n"}, "vllm", "2")
    app = MemoryTree({"app.py": "import vllm\n\nvllm.start()\n"}, "app", "1.0")
    found = upgrade_of(Sources(app, tree, tree, None, (), None, None, None))
    assert (found.broken, found.changed) == ((), ())
    assert "vllm.start" in {each.symbol for each in found.unchanged}


def test_files_that_could_not_be_read_are_told() -> None:
    tree = MemoryTree({"vllm/__init__.py": ""}, "vllm", "2")
    app = MemoryTree({"app.py": "import vllm\n", "bad.py": "import vllm\ndef f(:\n"}, "app", "1.0")
    found = upgrade_of(Sources(app, tree, tree, None, (), None, None, None))
    assert found.notices[0].startswith("not checked: a file that can't be read (bad.py: syntax error on line 2")


def test_going_back_is_said(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    app, old, new = folders
    for folder, version in ((old, "1.0"), (new, "2.0")):
        (Path(folder) / "pyproject.toml").write_text(f"[project]\nname = 'vllm'\nversion = '{version}'\n")
    for source, target, is_said in ((old, new, False), (new, old, True), (old, old, False)):
        main(["upgrade", app, "--from", source, "--to", target])
        assert ("note: 1.0 is older than 2.0: this is what going back means" in capsys.readouterr().out) is is_said


# What repairs it


def test_a_fix_that_the_text_does_not_allow_is_left_to_a_person() -> None:
    before, after = "def start(size, name=None): ...\n", "def start(size): ...\n"
    client = "options = {'name': 'a'}\nengine.start(1, **options)\nprint(**options)\n"
    (found,) = upgrade(before, after, client).broken
    fix = found.findings[0].fix
    assert fix is not None
    assert (fix.applicability, fix.edits) == ("manual", ())
    assert fix.description == "leave name out, by hand: options is unpacked for another call too"
    (allowed,) = upgrade(before, after, client.replace("print(**options)\n", "")).broken
    assert allowed.findings[0].fix is not None and allowed.findings[0].fix.edits


@pytest.mark.index
@pytest.mark.parametrize(
    ("client", "before", "after"),
    [("trl==0.25.0", "0.10.2", "0.12.0"), ("vllm-spyre==1.9.0", "0.16.0", "0.33.0")],
)
def test_as_many_fixes_are_counted_as_are_made(client: str, before: str, after: str) -> None:
    sources = sources_of(client, against=f"vllm=={after}", baseline=f"vllm=={before}", static=True)
    told = [finding for each in upgrade_of(sources, selected=suppressed).broken for finding in each.findings]
    repair, _ = fixed([sources], Choice(is_unsafe=True))
    done = {(each.finding.location, each.finding.kind) for each in repair.findings if each.status in DONE}
    counted = {(each.location, each.kind) for each in told if each.fix is not None and each.fix.edits}
    assert counted
    assert counted == {place for place in done if place in {(each.location, each.kind) for each in told}}


# Defaults and values


def test_a_default_counts_where_a_call_leaves_it() -> None:
    before, after = "def start(size, limit=1): ...\n", "def start(size, limit=2): ...\n"
    assert kinds(changed(before, after, "engine.start(1)\n")["start"]) == [("default-changed", "limit")]
    assert changed(before, after, "engine.start(1, 5)\nengine.start(1, limit=5)\n") == {}


def test_a_default_is_not_told_where_unpacked_arguments_may_give_it() -> None:
    before, after = "def start(size, limit=1): ...\n", "def start(size, limit=2): ...\n"
    assert changed(before, after, "def go(**options):\n    engine.start(1, **options)\n") == {}


def test_the_default_of_a_field_counts_where_it_is_read() -> None:
    head = "from dataclasses import dataclass\n\n@dataclass\nclass Config:\n"
    before, after = f"{head}    limit: int = 1\n    other: int = 1\n", f"{head}    limit: int = 2\n    other: int = 2\n"
    found = changed(before, after, "def read(config: engine.Config):\n    return config.limit\n")
    assert list(found) == ["Config.limit"]
    assert found["Config.limit"].sort_of_change == "values"


def test_a_constant_that_is_imported_is_compared_and_its_type_alone_is_not() -> None:
    assert list(changed("LIMIT = 1\n", "LIMIT = 2\n", "print(engine.LIMIT)\n")) == ["LIMIT"]
    assert changed("LIMIT = 1\n", "LIMIT: int = 1\n", "print(engine.LIMIT)\n") == {}


# Ends


def test_an_end_that_is_announced_comes_first() -> None:
    before = "def start(): return 1\n\ndef stop(): return 1\n"
    after = (
        "from typing_extensions import deprecated\n\n@deprecated('goes in v0.30')\ndef start(): return 1\n\n"
        "def stop(): return 2\n"
    )
    first, second = upgrade(before, after, "engine.stop()\nengine.start()\n").changed
    assert (first.symbol, first.sort_of_change) == ("vllm.engine.start", "ends")
    assert (second.symbol, second.sort_of_change) == ("vllm.engine.stop", "body")


def test_an_end_that_the_function_announces_itself_is_found() -> None:
    before = "def start(size=None):\n    return size\n"
    after = (
        "import warnings\n\ndef start(size=None):\n    if size is not None:\n"
        "        warnings.warn(f'size of {size} is deprecated and goes in v0.30', DeprecationWarning)\n"
        "    return size\n"
    )
    found = changed(before, after, "engine.start(1)\n")["start"]
    assert found.body is None, "a warning is no other behaviour"
    assert [(change.kind, change.after) for change in found.changes] == [
        ("deprecated", "size of … is deprecated and goes in v0.30")
    ]
    assert found.changes[0].name == "size"


ENDING = """import warnings

class Engine:
    def __init__(self, size=None, name=None):
        self._name = name
        {}
            warnings.warn('this is deprecated', DeprecationWarning)
"""


@pytest.mark.parametrize(
    ("test", "call", "said"),
    [
        ("if size is not None:", "engine.Engine(1)", "size is deprecated: this is deprecated"),
        ("if size:", "engine.Engine(size=1)", "size is deprecated: this is deprecated"),
        ("if size is not None:", "engine.Engine(name='a')", ""),
        ("if self._name is None:", "engine.Engine(1)", "leaving name out is deprecated: this is deprecated"),
        ("if not self._name:", "engine.Engine(name='a')", ""),
        ("if size == 3:", "engine.Engine(1)", "warns in some cases: this is deprecated"),
        ("with other():", "engine.Engine(1)", "deprecated: this is deprecated"),
        ("for other in size:", "engine.Engine(1)", "warns in some cases: this is deprecated"),
        ("if size is not None:", "engine.Engine(**dict(other))", "size is deprecated: this is deprecated"),
    ],
)
def test_what_ends_is_the_argument_where_the_function_asks_for_it(test: str, call: str, said: str) -> None:
    before = ENDING.format("if False:").replace("deprecated", "well")
    found = upgrade(before, ENDING.format(test), f"other = {{}}\n{call}\n")
    ends = [each for each in found.changed if each.sort_of_change == "ends"]
    assert [sentence for each in ends for sentence in change_sentences(each)] == ([said] if said else [])


def test_an_end_that_is_put_off_names_both_releases() -> None:
    text = "import warnings\n\ndef start():\n    warnings.warn('deprecated, goes in v{}', DeprecationWarning)\n"
    found = changed(text.format("0.30"), text.format("0.31"), "engine.start()\n")["start"]
    (change,) = found.changes
    assert (change.kind, change.before, change.after) == ("deprecation-changed", "0.30", "0.31")


# Signatures


def test_a_new_parameter_of_a_base_method_is_told_and_of_a_callee_it_is_not() -> None:
    before, after = "class Base:\n    def run(self): ...\n", "class Base:\n    def run(self, *, deep=False): ...\n"
    found = upgrade(before, after, "class Own(engine.Base):\n    def run(self, **options): ...\n")
    assert [(each.symbol, kinds(each)) for each in found.changed] == [
        ("vllm.engine.Base.run", [("parameter-added", "deep")])
    ]
    assert changed(before, after, "engine.Base().run()\n") == {}


def test_a_new_part_of_what_the_client_makes_is_told() -> None:
    text = "from dataclasses import dataclass\n\n@dataclass\nclass Output:\n    ids: list\n"
    (found,) = upgrade(text, f"{text}    events: list | None = None\n", "engine.Output([])\n").changed
    assert (found.symbol, kinds(found)) == ("vllm.engine.Output.__init__", [("parameter-added", "events")])


def test_what_a_finding_says_of_a_base_method_is_not_said_twice() -> None:
    before, after = "class Base:\n    def run(self): ...\n", "class Base:\n    def run(self, deep=False): ...\n"
    found = upgrade(before, after, "class Own(engine.Base):\n    def run(self): ...\n")
    assert [each.symbol for each in found.broken] == ["vllm.engine.Base.run"]
    assert found.changed == ()


def test_other_bases_count_for_who_derives_from_a_class() -> None:
    before, after = "class Base: ...\n", "class Root: ...\n\nclass Base(Root): ...\n"
    (found,) = upgrade(before, after, "class Own(engine.Base): ...\n").changed
    assert (found.symbol, kinds(found)) == ("vllm.engine.Base", [("bases-changed", "")])
    assert changed(before, after, "engine.Base()\n") == {}


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        ("-> int", "-> int | None", True),
        ("-> int | None", "-> int", False),
        ("", "-> int", False),
        ("-> Optional[int]", "-> int | None", False),
    ],
)
def test_a_result_is_told_where_it_can_be_something_new(before: str, after: str, is_told: bool) -> None:
    head = "from typing import Optional\n\n"
    found = changed(f"{head}def start() {before}: ...\n", f"{head}def start() {after}: ...\n", "engine.start()\n")
    assert bool(found) is is_told


# Bodies

BODY = '''def start(size):
    """Starts."""
    logger.info("starting %s", size)
    total: int = size + 1
    if size > 3:
        raise ValueError(f"{size} is too much")
    assert total, "nothing"
    return total
'''


def body_is_told(before: str, after: str) -> bool:
    return "start" in changed(before, after, "engine.start(1)\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Starts."""', '"""Begins, of late."""\n    # with a comment'),
        ('logger.info("starting %s", size)', 'logger.warning("now")'),
        ('    logger.info("starting %s", size)\n', ""),
        ('logger.info("starting %s", size)', 'if size:\n        self.logger.info("starting")'),
        ("total: int = size + 1", "total = (size\n             + 1)"),
        ('f"{size} is too much"', 'f"at most 3, not {size}"'),
        ('assert total, "nothing"', "assert total"),
        ("return total", "from vllm import other\n    return total"),
        ("size + 1", "cast(int, size) + 1"),
        ("def start(size):", "def start(size: int) -> int:"),
    ],
)
def test_what_changes_nothing_is_no_other_body(old: str, new: str) -> None:
    assert old in BODY
    assert not body_is_told(BODY, BODY.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size + 1", "size + 2"),
        ("size > 3", "size >= 3"),
        ("ValueError", "TypeError"),
        ("    assert total", "        assert total"),
        ("def start", "import functools\n\n@functools.lru_cache\ndef start"),
        ("    return total\n", ""),
        ('assert total, "nothing"', "assert size"),
    ],
)
def test_what_runs_otherwise_is_another_body(old: str, new: str) -> None:
    assert old in BODY
    assert body_is_told(BODY, BODY.replace(old, new))


def test_how_much_of_a_body_is_different_is_counted() -> None:
    before = "def start(size):\n    first(size)\n    second(size)\n    return size\n"
    after = "def start(size):\n    first(size)\n    third(size)\n    if size:\n        fourth(size)\n    return size\n"
    body = changed(before, after, "engine.start(1)\n")["start"].body
    assert body is not None
    assert (body.statements_before, body.statements_after, body.gone, body.come) == (3, 5, 1, 3)
    assert (body.place_before.line, body.place_after.line) == (3, 3)
    assert (body.source_before, body.source_after) == ("second(size)", "third(size)")


def sources(before: str, after: str) -> tuple[str, str]:
    """What is shown of the first statement that is different, of functions with nothing else."""
    body = changed(f"def start():\n    {before}\n", f"def start():\n    {after}\n", "engine.start()\n")["start"].body
    assert body is not None
    return body.source_before, body.source_after


GIVEN = ", ".join(f"argument_{number}={number}" for number in range(12))


@pytest.mark.parametrize(
    ("before", "after", "shown_before", "shown_after"),
    [
        (f"return make({GIVEN}, last=1)", f"return make({GIVEN}, last=2)", "last=1)", "last=2)"),
        (f"return make({GIVEN})", f"return make({GIVEN}) or None", "argument_11=11)", "argument_11=11) or None"),
        (f"return make({GIVEN}, last=1)", f"return make({GIVEN})", "last=1)", "argument_11=11)"),
        (f"return make({GIVEN}, last=1)", f"return make(\n        {GIVEN}, last=2,\n    )", "last=1)", "last=2, )"),
        (f"return make({GIVEN}, a='b')", f'return make({GIVEN}, a="c")', "a='b')", 'a="c")'),
    ],
)
def test_what_is_left_out_of_a_long_statement_is_not_its_difference(
    before: str, after: str, shown_before: str, shown_after: str
) -> None:
    old, new = sources(before, after)
    assert old.startswith("return make(") and " … " in old
    assert (old[-len(shown_before) :], new[-len(shown_after) :]) == (shown_before, shown_after)


def test_several_differences_of_a_long_statement_are_shown() -> None:
    other = GIVEN.replace("argument_4=4", "argument_4=None")
    old, new = sources(f"return make({GIVEN}, last=1)", f"return make({other}, last=2)")
    assert "argument_4=4," in old and old.endswith("last=1)")
    assert "argument_4=None," in new and new.endswith("last=2)")


def test_a_long_statement_that_is_new_is_shown_by_its_beginning() -> None:
    old, new = sources("return 1", f"make({GIVEN}, last=1)\n    return 1")
    assert old == ""
    assert new.startswith("make(argument_0=0, argument_1=1, argument_2=2,") and new.endswith(" …")


def test_the_command_that_repairs_is_wrapped_as_a_shell_reads_on() -> None:
    command = "driftcheck fix 'my app' --baseline vllm==1 --against git+../vllm@main"
    found = upgrade("def start(size): ...\n", "def start(): ...\n", "engine.start(size=1)\n")
    lines = render_upgrades([(found, command)], width=44).splitlines()
    at = lines.index("  driftcheck fix 'my app' \\")
    assert lines[at + 1 : at + 3] == ["    --baseline vllm==1 \\", "    --against git+../vllm@main --unsafe"]
    assert all(len(line) <= 44 for line in lines[at:])


def test_a_long_line_is_wrapped_and_not_cut_at_a_terminals_edge() -> None:
    found = upgrade(
        f"def start():\n    return make({GIVEN}, last=1)\n",
        f"def start():\n    return make({GIVEN}, last=2)\n",
        "engine.start()\n",
    )
    for width in (40, 60, 100):
        text = render_upgrades([(found, COMMAND)], width=width)
        assert "last=1)" in text and "last=2)" in text


def test_statements_that_are_nested_otherwise_are_told_so() -> None:
    before = "def start(size):\n    if size:\n        first()\n        second()\n    return size\n"
    after = "def start(size):\n    if size:\n        first()\n    second()\n    return size\n"
    found = upgrade(before, after, "engine.start(1)\n")
    assert "its 4 statements are nested otherwise" in render_upgrades([(found, COMMAND)], width=100)


def test_the_body_of_a_base_method_counts_for_overrides_and_super_and_of_a_patched_function_too() -> None:
    before = "class Base:\n    def run(self):\n        return 1\n\ndef start():\n    return 1\n"
    after = "class Base:\n    def run(self):\n        return 2\n\ndef start():\n    return 2\n"
    client = "class Own(engine.Base):\n    def run(self):\n        return super().run()\n\nengine.start = lambda: 3\n"
    found = changed(before, after, client)
    assert sorted({use.role for use in found["Base.run"].uses}) == ["override", "super"]
    assert [use.role for use in found["start"].uses] == ["patch"]


def test_a_property_and_what_a_dataclass_does_after_its_constructor_have_bodies() -> None:
    text = """from dataclasses import dataclass

@dataclass
class Config:
    size: int = 1

    def __post_init__(self):
        self.total = self.size + {0}

    @property
    def limit(self):
        return {0}

    @limit.setter
    def limit(self, value):
        return None
"""
    found = changed(text.format(1), text.format(2), "print(engine.Config().limit)\n")
    assert set(found) == {"Config.__init__", "Config.limit"}
    body = found["Config.__init__"].body
    assert body is not None and body.name == "__post_init__"


def test_an_overload_is_not_taken_for_the_function() -> None:
    head = "from typing import overload\n\n@overload\ndef start(size: int) -> int: ...\n@overload\n"
    text = head + "def start(size: str) -> str: ...\ndef start(size):\n    return {}\n"
    assert list(changed(text.format(1), text.format(2), "engine.start(1)\n")) == ["start"]


def test_a_function_that_moved_is_compared_where_it_is_now() -> None:
    old = MemoryTree(
        {"vllm/__init__.py": "from vllm.a import start\n", "vllm/a.py": "def start():\n    return 1\n"}, "vllm", "1"
    )
    new = MemoryTree(
        {"vllm/__init__.py": "from vllm.b import start\n", "vllm/b.py": "def start():\n    return 2\n"}, "vllm", "2"
    )
    app = MemoryTree({"app.py": "import vllm\n\nvllm.start()\n"}, "app", "1.0")
    (found,) = upgrade_of(Sources(app, new, old, None, (), None, None, None)).changed
    assert (found.symbol_before, found.symbol) == ("vllm.a.start", "vllm.b.start")
    assert found.place_before is not None and found.place_before.path == "vllm/a.py"


def test_a_move_is_told_where_the_client_names_what_was_the_home() -> None:
    old = MemoryTree({"vllm/__init__.py": "", "vllm/a.py": "class Engine: ...\n"}, "vllm", "1")
    moved = {"vllm/__init__.py": "", "vllm/a.py": "from vllm.b import Engine\n", "vllm/b.py": "class Engine: ...\n"}
    app = MemoryTree({"app.py": "from vllm.a import Engine\n\nEngine()\n"}, "app", "1.0")
    found = upgrade_of(Sources(app, MemoryTree(moved, "vllm", "2"), old, None, (), None, None, None))
    (engine,) = found.changed
    assert (engine.symbol, engine.sort_of_change, kinds(engine)) == (
        "vllm.b.Engine",
        "moved",
        [("defined-elsewhere", "")],
    )
    text = render_upgrades([(found, COMMAND)], width=100)
    assert "defined as vllm.b.Engine now; vllm.a.Engine is no more than a way to it" in text


def test_code_for_type_checkers_and_dead_code_couple_to_nothing() -> None:
    before, after = "def start():\n    return 1\n", "def start():\n    return 2\n"
    assert changed(before, after, "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    engine.start()\n") == {}
    assert changed(before, after, "if hasattr(engine, 'begin'):\n    engine.start()\n") == {}


def test_bodies_are_ordered_by_how_much_is_different_and_how_often_it_is_used() -> None:
    before = "def one():\n    a()\n    b()\n\ndef two():\n    a()\n    b()\n\ndef three():\n    a()\n    b()\n"
    after = "def one():\n    a()\n    c()\n\ndef two():\n    d()\n    c()\n\ndef three():\n    a()\n    c()\n"
    client = "engine.one()\nengine.two()\n" + "engine.three()\n" * 3
    names = [each.symbol.rpartition(".")[2] for each in upgrade(before, after, client).changed]
    assert names == ["three", "two", "one"]


# Reports

BEFORE = """class Base:
    def run(self, size):
        return size

def start(size, name=None, limit=1):
    return size

def stop():
    return 1

def same():
    return 1
"""
AFTER = BEFORE.replace("name=None, limit=1", "limit=2").replace("return 1\n\ndef same", "return 2\n\ndef same")
CLIENT = """engine.start(1, name="a|b")
engine.start(1)
engine.stop()
engine.same()
"""


def test_the_text_says_what_breaks_what_is_otherwise_and_how_to_repair() -> None:
    found = upgrade(BEFORE, AFTER, CLIENT)
    text = render_upgrades([(found, COMMAND)], width=100)
    assert text.startswith("app 1.0: vllm 1 to 2\n\nBreaking: 1 symbol, 1 place: 1 error\n")
    assert "    vllm/engine.py:5 in 1, line 5 in 2\n    error   app.py:3\n" in text
    assert "    breaks at 1 usage and fits at 1: called at app.py:4\n" in text
    assert "    it is not the same besides:\n      the default of limit is 2 instead of 1\n" in text
    assert "Behavioural: 1 symbol that still fits, but is not the same\n" in text
    assert "      1 of its 1 statement is another now (first at line 9, now line 9)\n        - return 1\n" in text
    assert "Unchanged: " in text and "vllm.engine.same" not in text
    assert f"  {COMMAND} --unsafe\n" in text
    assert "  vllm.engine.same\n" in render_upgrades([(found, COMMAND)], width=100, shows_all=True)


def test_markdown_lists_what_breaks_to_be_ticked_off() -> None:
    text = render_upgrades_markdown([(upgrade(BEFORE, AFTER, CLIENT), COMMAND)])
    assert "- [ ] `vllm.engine.start`: `vllm/engine.py:5` in 1, line 5 in 2\n  - **error** `app.py:3`: start()" in text
    assert f"```sh\n{COMMAND} --unsafe\n```\n" in text
    assert "#### Other bodies, to be read (1)" in text
    assert "`- return 1`; `+ return 2`" in text


def test_markdown_says_why_this_older_release() -> None:
    found = upgrade(BEFORE, AFTER, CLIENT)
    chosen = replace(found, before=replace(found.before, chosen="app 1.0 requires vllm<2"))
    for text in (render_upgrades([(chosen, COMMAND)], width=100), render_upgrades_markdown([(chosen, COMMAND)])):
        assert "from 1: app 1.0 requires vllm" in text


def test_markdown_that_is_too_long_says_what_is_left_out() -> None:
    names = [f"a_function_with_a_long_name_{number}" for number in range(300)]
    before = "".join(f"def {name}():\n    return 1\n\n" for name in names)
    after = before.replace("return 1", "return 2")
    text = render_upgrades_markdown(
        [(upgrade(before, after, "".join(f"engine.{name}()\n" for name in names)), COMMAND)]
    )
    assert len(text) < 65_536
    assert "more entries, which `--format text` has." in text


def test_json_holds_both_places_and_is_the_same_each_time() -> None:
    text = render_upgrades_json([(upgrade(BEFORE, AFTER, CLIENT), COMMAND)], shows_all=True)
    assert text == render_upgrades_json([(upgrade(BEFORE, AFTER, CLIENT), COMMAND)], shows_all=True)
    (found,) = json.loads(text)["upgrades"]
    assert (found["from"]["version"], found["to"]["version"]) == ("1", "2")
    (broken,) = found["breaking"]
    assert broken["before"] == {"path": "vllm/engine.py", "line": 5}
    assert broken["findings"][0]["kind"] == "unknown-argument"
    assert [use["line"] for use in broken["fitting"]] == [4]
    assert [change["kind"] for change in broken["besides"]["changes"]] == ["default-changed"]
    assert [each["change"] for each in found["behavioural"]] == ["body"]
    assert found["behavioural"][0]["body"]["text"].startswith("1 of its 1 statement is another now")
    assert "vllm.engine.same" in [each["symbol"] for each in found["unchanged_symbols"]]


# The command


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str, str]:
    """A client and two releases in folders."""
    for folder, text in (("old", BEFORE), ("new", AFTER)):
        package = tmp_path / folder / "vllm"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "engine.py").write_text(text)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "app.py").write_text(f"from vllm import engine\n\n{CLIENT}")
    (tmp_path / "app" / "pyproject.toml").write_text("[project]\nname = 'app'\nversion = '1.0'\n")
    return str(tmp_path / "app"), str(tmp_path / "old"), str(tmp_path / "new")


def test_the_command_fails_for_what_breaks(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    app, old, new = folders
    assert main(["upgrade", app, "--from", old, "--to", new]) == 1
    text = capsys.readouterr().out
    assert "Breaking: 1 symbol" in text
    told = text.partition("To repair: 1 with --unsafe, to be looked at\n")[2]
    command = f"driftcheck fix {app} --baseline {old} --against {new} --unsafe"
    assert shlex.split(told.replace("\\\n", "")) == command.split()
    assert main(["upgrade", app, "--from", old, "--to", new, "--exit-zero"]) == 0
    assert main(["upgrade", app, "--from", old, "--to", new, "--ignore", "unknown-argument"]) == 0
    assert main(["upgrade", app, "--from", old, "--to", old]) == 0


def test_excluded_files_couple_to_nothing(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    app, old, new = folders
    assert main(["upgrade", app, "--from", old, "--to", new, "--exclude", "app.py", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["upgrades"]
    assert (found["breaking"], found["behavioural"], found["unchanged"]) == ([], [], 0)


def test_a_suppressed_finding_breaks_nothing(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    app, old, new = folders
    path = Path(app) / "app.py"
    path.write_text(path.read_text().replace('"a|b")', '"a|b")  # driftcheck: ignore[unknown-argument] patched'))
    assert main(["upgrade", app, "--from", old, "--to", new]) == 0
    assert "note: not counted: a finding is accepted by comments or as known" in capsys.readouterr().out


def test_the_report_goes_to_a_file(folders: tuple[str, str, str], tmp_path: Path) -> None:
    app, old, new = folders
    output = tmp_path / "description.md"
    assert main(["upgrade", app, "--from", old, "--to", new, "--format", "markdown", "--output", str(output)]) == 1
    assert output.read_text().startswith("## app 1\\.0") or output.read_text().startswith("## app 1.0")


def test_what_can_not_be_had_is_one_line(folders: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    app, old, _ = folders
    assert main(["upgrade", app, "--from", old, "--to", f"{old}-gone"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.index
def test_a_real_plugin_s_bump(capsys: pytest.CaptureFixture[str]) -> None:
    """vllm-spyre 1.10.0 changed, for vLLM 0.18.0, the three things that break in 1.9.1, and the warning's."""
    arguments = ["upgrade", "vllm-spyre==1.9.1", "--from", "0.16.0", "--to", "0.18.0", "--format", "json"]
    assert main(arguments) == 1
    (found,) = json.loads(capsys.readouterr().out)["upgrades"]
    said = {
        (finding["kind"], finding["severity"], each["symbol"])
        for each in found["breaking"]
        for finding in each["findings"]
    }
    assert said == {
        ("unknown-argument", "error", "vllm.v1.request.Request.__init__"),
        ("invalid-override", "silent", "vllm.v1.core.sched.scheduler.Scheduler.finish_requests"),
        ("invalid-override", "silent", "vllm.platforms.interface.Platform.validate_request"),
        ("invalid-override", "warning", "vllm.v1.worker.worker_base.WorkerBase.compile_or_warm_up_model"),
    }
    behaving = {each["symbol"]: each for each in found["behavioural"]}
    scheduled = behaving["vllm.v1.core.sched.scheduler.Scheduler.schedule"]
    assert {use["role"] for use in scheduled["uses"]} == {"override", "super"}
    assert (scheduled["before"]["line"], scheduled["after"]["line"]) == (321, 338)
    assert "vllm.platforms.interface.Platform.validate_request" not in behaving
