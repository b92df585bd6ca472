"""What is ahead of a client: what breaks, and what the target announces to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driftcheck.audit import Sources
from driftcheck.cli import main
from driftcheck.forecast import forecast_of
from driftcheck.report.forecast_text import render_forecasts, render_forecasts_json, render_forecasts_markdown
from driftcheck.tree import MemoryTree
from driftcheck.upstream import Forecast
from tests.clones import Clone

TARGET = {
    "vllm/__init__.py": """from typing_extensions import deprecated

def start(size): ...

@deprecated("Will be removed in v1.4. Use start.")
def begin(size): ...
""",
    "vllm/engine.py": """import warnings
from vllm.logger import logger

class Engine:
    def __init__(self, size, old=None, odd=None, kind=None):
        if old is not None:
            warnings.warn(f"The {old} argument is deprecated and will be removed in v1.3.0.", DeprecationWarning)
        if odd:
            logger.warning_once("`odd` is deprecated and will be removed in a future release")
        if isinstance(kind, str):
            warnings.warn("Passing strings is deprecated and will be removed in v1.3")

    def step(self):
        '''Goes on; nothing here is deprecated.'''

    def advance(self):
        warnings.warn("advance() is deprecated, use step()", DeprecationWarning, stacklevel=2)
""",
    "vllm/config.py": """from dataclasses import dataclass, field

@dataclass
class Base:
    cascade: bool = True
    '''Deprecated: has no effect.
    It will be removed in v1.2.0.'''

@dataclass
class Config(Base):
    backend: str = "a"
    '''Which backend. The "b" backend is deprecated and will be removed in v1.3.'''
    plain: int = 0
""",
    "vllm/protocol.py": """from pydantic import BaseModel, Field

class Request(BaseModel):
    max_tokens: int | None = Field(default=None, deprecated="max_tokens is deprecated, use max_completion_tokens")
    other: int | None = Field(default=None, deprecated=False)
""",
    "vllm/moved/__init__.py": "import warnings\nwarnings.warn('vllm.moved is deprecated and goes in v1.5')\n",
    "vllm/moved/inner.py": "def f(): ...\n",
    "vllm/arguments.py": """from dataclasses import dataclass
import warnings
from vllm.config import Config

ENDS = ("--cascade is deprecated. "
        "It will be removed in v1.6.")

@dataclass
class Arguments:
    limit: int = 1
    odd: int | None = None
    depth: int = 1
    cascade: bool = Config.cascade

    def config(self):
        if self.odd is not None:
            warnings.warn(ENDS)
        if self.depth > 1:
            warnings.warn("a depth of 2 is deprecated")

class LLM:
    def __init__(self, model, **kwargs):
        self.arguments = Arguments(limit=2, **kwargs)

class Own(LLM):
    def __init__(self, model, odd=None, **kwargs):
        super().__init__(model, **kwargs)
""",
    "vllm/logger.py": "import logging\nlogger = logging.getLogger()\n",
}


def forecast(client: str, *, version: str = "1.2.0", baseline: dict[str, str] | None = None) -> Forecast:
    tree = MemoryTree({"app.py": client}, "app", "1.0")
    earlier = MemoryTree(baseline or TARGET, "vllm", "1.0.0")
    return forecast_of(Sources(tree, MemoryTree(TARGET, "vllm", version), earlier, None, (), None, None, None))


def ends(client: str) -> list[tuple[str | None, int, str]]:
    """Release, line and symbol of what ends."""
    return [
        (end.release, finding.location.line, finding.symbol)
        for end in forecast(client).ends
        for finding in end.findings
    ]


def test_what_a_decorator_says() -> None:
    assert ends("import vllm\nvllm.begin(1)\nvllm.start(1)\n") == [("1.4", 2, "vllm.begin")]


def test_a_module_that_warns_when_it_is_imported() -> None:
    text = "import vllm.moved\nfrom vllm.moved.inner import f\nfrom vllm import moved\nfrom vllm import engine\n"
    assert ends(text) == [("1.5", line, "vllm.moved") for line in (1, 2, 3)]


def test_arguments_that_are_warned_of_where_they_are_given() -> None:
    calls = ("1", "1, old=2", "1, 2", "1, old=None", "1, odd=3")
    text = "from vllm.engine import Engine\n" + "".join(f"Engine({arguments})\n" for arguments in calls)
    init = "vllm.engine.Engine.__init__"
    assert ends(text) == [("1.3", 3, init), ("1.3", 4, init), (None, 6, init)]


def test_what_depends_on_more_than_an_argument_is_left_out() -> None:
    assert ends("from vllm.engine import Engine\nEngine(1, kind='a')\n") == []
    assert ends("from vllm.config import Config\nConfig(backend='b', plain=1)\n") == []


def test_a_function_that_warns_whenever_it_is_called() -> None:
    text = "from vllm.engine import Engine\nengine = Engine(1)\nengine.step()\nengine.advance()\n"
    assert ends(text) == [(None, 4, "vllm.engine.Engine.advance")]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("Arguments(odd=1)", [("1.6", "vllm.arguments.Arguments.__init__")]),
        ("Arguments(odd=None, depth=2)", []),
        ("Arguments(cascade=False)", [("1.2", "vllm.arguments.Arguments.cascade")]),
        ("LLM('m', odd=1)", [("1.6", "vllm.arguments.Arguments.__init__")]),
        ("LLM('m', **{'cascade': False})", [("1.2", "vllm.arguments.Arguments.cascade")]),
        ("LLM('m', **options)", [("1.6", "vllm.arguments.Arguments.__init__")]),
        ("LLM('m', limit=3)", []),
        ("Own('m', cascade=False)", [("1.2", "vllm.arguments.Arguments.cascade")]),
        ("Own('m', odd=1)", []),
    ],
)
def test_arguments_are_followed_to_the_fields_that_they_become(call: str, found: list[tuple[str, str]]) -> None:
    text = f"from vllm.arguments import LLM, Arguments, Own\n\noptions = {{'odd': 1}}\n{call}\n"
    assert [(release, symbol) for release, _, symbol in ends(text)] == found


def test_fields_whose_text_says_so() -> None:
    text = "from vllm.config import Config\nconfig = Config(cascade=False)\nconfig.cascade\nconfig.plain\n"
    assert [(release, line) for release, line, _ in ends(text)] == [("1.2", 2), ("1.2", 3)]
    text = "from vllm.protocol import Request\nRequest(max_tokens=1)\nRequest(other=1)\n"
    assert ends(text) == [(None, 2, "vllm.protocol.Request.max_tokens")]


def test_the_nearest_end_comes_first_and_what_breaks_before_it() -> None:
    client = """import vllm
from vllm.config import Config
from vllm.engine import Engine

vllm.begin(1)
Engine(1, old=1, odd=2)
Config(cascade=True)
vllm.start(length=1)
"""
    before = {**TARGET, "vllm/__init__.py": TARGET["vllm/__init__.py"].replace("def start(size)", "def start(length)")}
    found = forecast(client, baseline=before)
    assert (
        render_forecasts([found], width=100)
        == """app 1.0, written for 1.0.0: vllm 1.2.0 (memory)

now: 1 usage breaks with vllm 1.2.0
  app.py:8: start(): unknown argument 'length'

1.2: 1 usage goes (announced, and still there in vllm 1.2.0)
  app.py:7: argument 'cascade' is deprecated and goes in 1.2.0: "Deprecated: has no effect. It
    will be removed in v1.2.0." (likely)

1.3: 1 usage goes
  app.py:6: argument 'old' is deprecated and goes in 1.3.0: "The … argument is deprecated and will
    be removed in v1.3.0." (likely)

1.4: 1 usage goes
  app.py:5: begin is deprecated and goes in 1.4: "Will be removed in v1.4. Use start."

some time: 1 usage goes
  app.py:6: argument 'odd' is deprecated: "`odd` is deprecated and will be removed in a future
    release" (likely)

5 usages to see to: 1 broken, 4 announced to end.
"""
    )
    (told,) = json.loads(render_forecasts_json([found]))["forecasts"]
    assert [(end["release"], end["overdue"], len(end["usages"])) for end in told["ends"]] == [
        ("1.2", True, 1),
        ("1.3", False, 1),
        ("1.4", False, 1),
        (None, False, 1),
    ]
    assert [entry["line"] for entry in told["breaks"]] == [8]
    page = render_forecasts_markdown([found])
    assert [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ") and "app" in line] == [
        "| now",
        r"| 1.2, overdue",
        "| 1.3",
        "| 1.4",
        "| some time",
    ]


def test_nothing_is_ahead() -> None:
    found = forecast("import vllm\nvllm.start(1)\n")
    assert (found.breaks, found.ends) == ((), ())
    assert "Nothing is ahead, as far as vllm 1.2.0 tells." in render_forecasts([found], width=100)


def test_files_that_could_not_be_read_are_told() -> None:
    app = MemoryTree({"app.py": "import vllm\n", "bad.py": "import vllm\ndef f(:\n"}, "app", "1.0")
    found = forecast_of(Sources(app, MemoryTree(TARGET, "vllm", "1.2.0"), None, None, (), None, None, None))
    assert found.notices[-1].startswith("not checked: a file that can't be read (bad.py: syntax error on line 2")


def test_a_branch_of_a_clone_is_tomorrow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clone = Clone(tmp_path / "vllm")
    clone.commit("First", {**TARGET})
    clone.commit("Second", {"vllm/engine.py": TARGET["vllm/engine.py"].replace("def step", "def go")})
    client = tmp_path / "client"
    client.mkdir()
    text = (
        "from vllm.engine import Engine\nEngine(1, odd=1).step()  # driftcheck: ignore[deprecated-usage] until summer\n"
    )
    (client / "app.py").write_text(text, encoding="utf-8")
    arguments = ["forecast", str(client), "--baseline", f"git+{clone.folder}@main~1", "--offline", "--format", "json"]
    assert main([*arguments, "--against", f"git+{clone.folder}@main"]) == 1
    (told,) = json.loads(capsys.readouterr().out)["forecasts"]
    assert ([entry["symbol"] for entry in told["breaks"]], told["ends"]) == (["vllm.engine.Engine.step"], [])
    assert main([*arguments, "--against", f"git+{clone.folder}@main~1"]) == 0
    assert main([*arguments, "--against", f"git+{clone.folder}@never"]) == 2
    assert "no ref never in the clone" in capsys.readouterr().err


def test_why_this_baseline_and_what_the_configuration_has_to_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = forecast("import vllm\nvllm.start(1)\n")
    assert found.baseline is not None
    chosen = replace(
        found, baseline=replace(found.baseline, chosen="app 1.0 requires vllm==1.0"), notices=("so be it",)
    )
    for text in (render_forecasts([chosen], width=100), render_forecasts_markdown([chosen])):
        assert "from 1.0.0: app 1.0 requires vllm==1.0" in text
        assert "note: so be it" in text
    client, target = tmp_path / "client", tmp_path / "vllm"
    for path, content in ((client / "app.py", "import vllm\n"), (target / "__init__.py", "")):
        path.parent.mkdir()
        path.write_text(content, encoding="utf-8")
    (client / "pyproject.toml").write_text("[tool.driftcheck]\npython = 'python3'\n", encoding="utf-8")
    arguments = [str(client), "--against", str(tmp_path), "--baseline", str(tmp_path), "--offline"]
    assert main(["forecast", *arguments]) == 0
    assert "note: 'python' in the client's own pyproject.toml is not followed" in capsys.readouterr().out


@pytest.mark.index
def test_a_real_client(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that moved in 0.13 answers until 0.16, by its module's own `__getattr__`."""
    assert main(["forecast", "lm-eval==0.4.11", "--against", "vllm==0.16.0", "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["forecasts"]
    (end,) = told["ends"]
    assert (end["release"], end["overdue"]) == ("0.16", True)
    assert [usage["symbol"] for usage in end["usages"]] == ["vllm.entrypoints.chat_utils.resolve_hf_chat_template"]
    assert main(["forecast", "vllm-rbln==0.12.0", "--against", "vllm==0.33.0", "--exit-zero", "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["forecasts"]
    assert [(end["release"], len(end["usages"])) for end in told["ends"]][:1] == [("0.33", 2)]
