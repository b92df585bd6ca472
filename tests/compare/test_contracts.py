"""Each pattern of a rule and each condition: where it speaks, and where it stays silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck import rule_files
from driftcheck.audit import audit_trees
from driftcheck.model import Finding, Kind, Report, Severity
from driftcheck.tree import MemoryTree

HEAD = (
    'title = "T"\nseverity = "silent"\nwhy = "W."\nevidence = ["library a.py in 1"]\n[[detect]]\nmessage = "broken"\n'
)

TARGET = '''
class Base:
    def run(self, steps=1, mode="fast"):
        """Assertion follows."""
        assert steps, "no steps"
    def stop(self): ...

class Engine(Base):
    def run(self, steps=1, mode="fast"): ...

class Config:
    def __init__(self, size, depth=None, shared=True): ...
    @property
    def total(self):
        return self.size * 2

class Odd(make_config()): ...
def make_config(): ...
def reset(): ...
def start(engine, **options): ...
'''


def audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, *, baseline: str | None = None, **files: str
) -> Report:
    """What an audit says of a client of a made-up library that has one rule."""
    folder = tmp_path / "library"
    folder.mkdir(exist_ok=True)
    (folder / "target.toml").write_text('name = "library"\n', encoding="utf-8")
    (folder / "some-rule.toml").write_text(HEAD + rule, encoding="utf-8")
    rule_files.read_rules.cache_clear()
    monkeypatch.setattr(rule_files, "rules_folder", lambda: tmp_path)
    client = MemoryTree({f"{name}.py": text for name, text in files.items()}, "client")
    target = MemoryTree({"library/__init__.py": "", "library/a.py": TARGET}, "library")
    before = MemoryTree({"library/__init__.py": "", "library/a.py": baseline}, "library") if baseline else None
    report = audit_trees(client, target, before)
    rule_files.read_rules.cache_clear()
    return report


def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, **files: str) -> list[tuple[str, int]]:
    return [(each.location.path, each.location.line) for each in findings(tmp_path, monkeypatch, rule, **files)]


def findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, *, baseline: str | None = None, **files: str
) -> list[Finding]:
    """The broken contracts that one rule of a made-up library finds in a client."""
    report = audited(tmp_path, monkeypatch, rule, baseline=baseline, **files)
    return [each for each in report.findings if each.kind is Kind.BROKEN_CONTRACT]


PATTERNS = {
    "called": (
        'pattern = "called"\nsymbol = "library.a.Base.run"',
        "from library.a import Engine, Config\nengine = Engine()\nengine.run()\nengine.stop()\nConfig(1)\n",
        [3],
    ),
    "used": (
        'pattern = "used"\nsymbol = "library.a.Base.stop"',
        "from library.a import Base\nstop = Base().stop\nBase().run()\n",
        [2],
    ),
    "used by import": (
        'pattern = "used"\nsymbol = "library.a.reset"',
        "from library.a import reset\nfrom library.a import start\n",
        [1],
    ),
    "call-without-argument": (
        'pattern = "call-without-argument"\nsymbol = "library.a.Config"\nargument = "depth"',
        (
            "from library.a import Config\nConfig(1)\nConfig(1, 2)\nConfig(1, depth=2)\nConfig(1, None)\n"
            "def f(**given):\n    Config(1, **given)\n"
        ),
        [2, 5],
    ),
    "call-without-argument that is handed on": (
        'pattern = "call-without-argument"\nsymbol = "library.a.start"\nargument = "depth"',
        "from library.a import start\nstart(1)\nstart(1, depth=2)\n",
        [2],
    ),
    "call-with-argument": (
        'pattern = "call-with-argument"\nsymbol = "library.a.Config"\nargument = "depth"',
        "from library.a import Config\nConfig(1)\nConfig(1, 2)\nConfig(1, depth=2)\n",
        [3, 4],
    ),
    "argument-value": (
        'pattern = "argument-value"\nsymbol = "library.a.Base.run"\nargument = "mode"\nvalue = "\'fast\'"',
        (
            'from library.a import Engine\nengine = Engine()\nengine.run()\nengine.run(1, "fast")\n'
            'engine.run(mode="slow")\nengine.run(mode=engine)\n'
        ),
        [3, 4],
    ),
    "call-not-followed-by": (
        (
            'pattern = "call-not-followed-by"\nsymbol = "library.a.Base.run"\nthen = "library.a.Base.stop"\n'
            'within = "function"'
        ),
        (
            "from library.a import Engine\ndef one(engine: Engine):\n    engine.run()\n"
            "def two(engine: Engine):\n    engine.run()\n    engine.stop()\n"
            "class Mine(Engine):\n    def run(self, steps=1, mode='fast'):\n        return super().run(steps)\n"
        ),
        [3],
    ),
    "call-not-followed-by in the class": (
        (
            'pattern = "call-not-followed-by"\nsymbol = "library.a.Base.run"\nthen = "library.a.Base.stop"\n'
            'within = "class"'
        ),
        (
            "from library.a import Engine\nclass One:\n    def go(self, engine: Engine):\n        engine.run()\n"
            "class Two:\n    def go(self, engine: Engine):\n        engine.run()\n"
            "    def end(self, engine):\n        engine.stop()\n"
        ),
        [4],
    ),
    "never-called": (
        'pattern = "never-called"\nsymbol = "library.a.start"\nneeds = "library.a.reset"',
        "from library.a import start\nstart(1)\n",
        [2],
    ),
    "never-called that is called": (
        'pattern = "never-called"\nsymbol = "library.a.start"\nneeds = "library.a.reset"',
        "import library.a\nlibrary.a.reset()\nlibrary.a.start(1)\n",
        [],
    ),
    "made-by-hand": (
        'pattern = "made-by-hand"\nsymbol = "library.a.Config"\nfactory = "library.a.make_config"',
        "from library.a import Config\nclass Mine(Config): ...\nConfig(1)\nMine(1)\n",
        [3, 4],
    ),
    "made-by-hand beside the factory": (
        'pattern = "made-by-hand"\nsymbol = "library.a.Config"\nfactory = "library.a.make_config"',
        "from library.a import Config, make_config\nConfig(1) if not make_config() else None\n",
        [],
    ),
    "result-of-argument-subscripted": (
        'pattern = "result-of-argument-subscripted"\nsymbol = "library.a.Base.run"',
        (
            "from library.a import Engine\ndef one(engine: Engine):\n    rows = engine.run()\n    return rows[0]\n"
            "def two(engine: Engine):\n    for row in engine.run():\n        print(row)\n"
            "def three(engine: Engine):\n    if rows := engine.run():\n        return len(rows)\n"
            "def four(engine: Engine):\n    rows = engine.run()\n    return rows\n"
        ),
        [4, 6, 10],
    ),
    "overrides": (
        'pattern = "overrides"\nsymbol = "library.a.Base.run"\nlacks-parameter = "mode"',
        (
            "from library.a import Engine\nclass Mine(Engine):\n    def run(self, steps=1): ...\n"
            "class Other(Engine):\n    def run(self, steps=1, **kwargs): ...\nclass Third(Engine): ...\n"
        ),
        [3],
    ),
    "replaces": (
        'pattern = "replaces"\nsymbol = "library.a.Base.stop"',
        "from library.a import Engine\ndef stop(self): ...\nEngine.stop = stop\nEngine.run = stop\n",
        [3],
    ),
    "replaces by the attribute's name": (
        'pattern = "replaces"\nattribute = "forward"\nlacks-parameter = "**"\n[[detect.when]]\nof = "library.a"',
        (
            "import types\nfrom library.a import start\ndef one(self): ...\ndef two(self, **kwargs): ...\n"
            "def put(model):\n    start(model)\n    model.forward = types.MethodType(one, model)\n"
            "    model.forward = two\n"
        ),
        [3],
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rule, client, lines = PATTERNS[name]
    assert found(tmp_path, monkeypatch, rule, app=client) == [("app.py", line) for line in lines]


CALLED = 'pattern = "called"\nsymbol = "library.a.reset"\n'
CLIENT = "from library.a import reset\nreset()\n"

CONDITIONS = [
    ('of = "library.a.Config"', True),
    ('of = "library.a.Gone"', False),
    ('of = ["library.a.Gone", "library.a.Config"]', True),
    ('of = "library.a.Gone"\nabsent = true', True),
    ('of = "library.a.Config"\nabsent = true', False),
    ('of = "library.a.Config"\nhas-parameter = "depth"', True),
    ('of = "library.a.Config"\nhas-parameter = "width"', False),
    ('of = "library.a.Config"\nlacks-parameter = "width"', True),
    ('of = "library.a.Config"\nlacks-parameter = "depth"', False),
    ('of = "library.a.Config"\nrequires-parameter = "size"', True),
    ('of = "library.a.Config"\nrequires-parameter = "depth"', False),
    ('of = "library.a.Engine"\nhas-member = "stop"', True),
    ('of = "library.a.Engine"\nhas-member = "go"', False),
    ('of = "library.a.Engine"\nlacks-member = "go"', True),
    ('of = "library.a.Engine"\nderives-from = "library.a.Base"', True),
    ('of = "library.a.Config"\nderives-from = "library.a.Base"', False),
    ('of = "library.a.Config"\nnot-derives-from = "library.a.Base"', True),
    ('of = "library.a.Config"\ndefault-of = "shared"\nis = "True"', True),
    ('of = "library.a.Config"\ndefault-of = "shared"\nis = ["None", "False"]', False),
    ('of = "library.a.Config"\ndefault-of = "shared"\nis-not = "False"', True),
    ('of = "library.a.Config"\ndefault-of = "size"\nis-not = "False"', False),
    ('of = "library.a.Base.run"\nbody-mentions = "assert steps"', True),
    ('of = "library.a.Engine.run"\nbody-mentions = "assert steps"', False),
    ('of = "library.a.Engine.run"\nbody-lacks = "assert"', True),
    ('of = "library.a.Config.total"\nbody-mentions = "self.size"', True),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_a_condition_on_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, *, holds: bool
) -> None:
    rule = f"{CALLED}[[detect.when]]\n{condition}\n"
    assert found(tmp_path, monkeypatch, rule, app=CLIENT) == ([("app.py", 2)] if holds else [])


CLIENT_CONDITIONS = [
    ('gives = "shared"', "start(1, shared=True)", True),
    ('gives = "shared"\nvalue = "False"', "start(1, shared=True)", False),
    ('gives = "shared"\nvalue = "False"\nnever = true', "start(1, shared=True)", True),
    ('gives = "shared"\nvalue = "False"\nnever = true', "start(1, **{'shared': False})", False),
    ('gives = "shared"\nvalue = "False"\nnever = true', "start(1).shared = False", False),
    ('gives = "shared"\nvalue = "False"\nnever = true', "setattr(start(1), 'shared', False)", False),
    ('gives = "shared"\nvalue = "False"\nnever = true', "start(1, shared=CHOICE)", False),
    ('calls = "library.a.start"', "start(1)", True),
    ('calls = "library.a.start"', "start", False),
    ('stores = "forward"', "start(1).forward = None", True),
    ('stores = "forward"', "start(1).forward()", False),
    ('stores = "forward"\ncalls = "start"', "start(1)", True),
    ('stores = "forward"\ncalls = "backward"\nnever = true', "start(1)", True),
    ('mentions = ["forward", "backward"]', "start(1).backward()", True),
    ('mentions = "backward"', "getattr(start(1), 'backward')", True),
    ('mentions = "backward"\nnever = true', "start(1)", True),
    ('stores = "forward"\nin-class-of = "extension"', "start(1, extension='ext.worker.Extension')", True),
    ('stores = "forward"\nin-class-of = "extension"', "start(1, extension='ext.other.Extension')", False),
    ('stores = "forward"\nin-class-of = "plugin"', "start(1, extension='ext.worker.Extension')", False),
]


@pytest.mark.parametrize(("condition", "line", "holds"), CLIENT_CONDITIONS)
def test_a_condition_on_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, line: str, *, holds: bool
) -> None:
    rule = f"{CALLED}[[detect.client]]\n{condition}\n"
    files = {
        "app": f"from library.a import reset, start\nreset()\nCHOICE = bool(start)\n{line}\n",
        "ext/worker": "class Extension:\n    def load(self):\n        self.model.forward = self.load\n",
        "ext/other": "class Extension: ...\n",
        "ext/__init__": "",
    }
    assert found(tmp_path, monkeypatch, rule, **files) == ([("app.py", 2)] if holds else [])


def test_a_finding_has_evidence_drift_and_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = CALLED + '[[detect.when]]\nof = "library.a.Base.run"\nbody-mentions = "assert steps"\n'
    fix = '[[fix]]\nrecipe = "message"\ndescription = "do it"\n'
    before = TARGET.replace("assert steps", "print(steps)")
    (finding,) = findings(tmp_path, monkeypatch, rule + fix, baseline=before, app=CLIENT)
    assert (finding.severity, finding.rule, finding.drift) == (Severity.SILENT, "some-rule", True)
    assert (finding.evidence.path, finding.evidence.line) == ("library/a.py", 5)
    assert finding.evidence.source == 'assert steps, "no steps"'
    assert finding.fix is not None
    assert finding.fix.description == "do it"
    (same,) = findings(tmp_path, monkeypatch, rule, baseline=TARGET, app=CLIENT)
    assert same.drift is False
    (alone,) = findings(tmp_path, monkeypatch, rule, app=CLIENT)
    assert alone.drift is None


def test_what_depends_on_the_baseline_speaks_of_drift_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = CALLED + 'drift-only = true\n[[detect.when]]\nof = "library.a.Base.run"\nbody-mentions = "assert steps"\n'
    before = TARGET.replace("assert steps", "print(steps)")
    assert len(findings(tmp_path, monkeypatch, rule, baseline=before, app=CLIENT)) == 1
    assert findings(tmp_path, monkeypatch, rule, baseline=TARGET, app=CLIENT) == []
    assert findings(tmp_path, monkeypatch, rule, app=CLIENT) == []


def test_a_store_has_its_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = (
        "from library.a import start\nclass Mine:\n    def put(self, model):\n        model.forward = start\n"
        "Mine().put(start(1))\n"
    )
    rule = 'pattern = "replaces"\nattribute = "forward"\n[[detect.when]]\nof = "library.a.start"\n'
    (finding,) = findings(tmp_path, monkeypatch, rule, app=client)
    assert (finding.scope, finding.location.line, finding.symbol) == ("Mine.put", 4, "forward")
    assert (finding.evidence.path, finding.evidence.line) == ("library/a.py", 20)


def test_a_module_and_what_is_not_there_have_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for condition in ('of = "library.a"', 'of = "library.a.Gone"\nabsent = true'):
        (finding,) = findings(tmp_path, monkeypatch, f"{CALLED}[[detect.when]]\n{condition}\n", app=CLIENT)
        assert (finding.evidence.path, finding.evidence.line) == ("library/a.py", 1)


def test_a_demand_that_fails_otherwise_is_no_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = CALLED + '[[detect.when]]\nof = "library.a.Base.run"\nbody-mentions = "assert steps"\n'
    before = (
        f'[[detect]]\nmessage = "broken"\n{CALLED}[[detect.when]]\nof = "library.a.Base.run"\nbody-lacks = "assert"\n'
    )
    old = TARGET.replace("assert steps", "check(steps)").replace('"""Assertion follows."""', "")
    (finding,) = findings(tmp_path, monkeypatch, now + before, baseline=old, app=CLIENT)
    assert finding.drift is False
    (finding,) = findings(tmp_path, monkeypatch, now, baseline=old, app=CLIENT)
    assert finding.drift is True


def test_what_the_release_does_not_tell_is_unresolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = CALLED + '[[detect.when]]\nof = "library.a.Odd"\nderives-from = "library.a.Base"\n'
    report = audited(tmp_path, monkeypatch, rule, app=CLIENT)
    assert report.findings == ()
    assert [(each.line, each.reason) for each in report.unresolved] == [(2, "condition of the rule some-rule")]


def test_a_handler_of_what_does_not_fail_is_never_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = "from library.a import reset, start\ntry:\n    start(1)\nexcept TypeError:\n    reset()\n"
    assert findings(tmp_path, monkeypatch, CALLED, app=client) == []
    assert len(findings(tmp_path, monkeypatch, CALLED, app=client.replace("start(1)", "start()"))) == 1
