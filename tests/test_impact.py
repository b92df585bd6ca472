"""What a change of the target breaks in clients."""

from __future__ import annotations

import json
import re
import venv
from pathlib import Path

import pytest

from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.impact import change_of
from driftcheck.origins.settings import Settings
from tests.clones import Clone

CLIENTS = {
    "engine": "from vllm.engine import Engine\n\nEngine(1, seed=0).step()\nEngine(2, seed=1)\n",
    "other": "from vllm import start\nfrom vllm.engine import Engine\n\nstart(size=1)\nEngine(1, seed=2)\n",
    "aside": "from vllm import start\n\nstart(size=1)\n",
    "none": "import os\n",
}
START = "def start(size): ...\n"
ENGINE = "class Engine:\n    def __init__(self, size, seed): ...\n    def step(self): ...\n"


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A target with tests beside its package: what they hold is nothing that clients use."""
    clone = Clone(tmp_path / "a clone")
    beside = {"tests/__init__.py": "", "tests/helpers.py": "def help(): ...\n"}
    clone.commit("First", {"vllm/__init__.py": START, "vllm/engine.py": ENGINE, **beside})
    clone.git("tag", "v1.0.0")
    return clone


@pytest.fixture
def clients(tmp_path: Path) -> list[str]:
    for name, text in CLIENTS.items():
        folder = tmp_path / "clients" / name
        folder.mkdir(parents=True)
        (folder / "app.py").write_text(text, encoding="utf-8")
    return [str(tmp_path / "clients" / name) for name in CLIENTS]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path / "cache"))


def impact(clone: Clone, difference: str, *arguments: str) -> int:
    return main(["impact", "--target-diff", difference, "--repository", str(clone.folder), *arguments])


def test_what_most_clients_use_comes_first(
    clone: Clone, clients: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {"vllm/engine.py": ENGINE.replace("seed", "key"), "vllm/__init__.py": START.replace("size", "length")}
    clone.commit("Other names", changed)
    assert impact(clone, "v1.0.0..main", *clients) == 1
    said = re.sub(r"\+g\w+", "", capsys.readouterr().out)
    assert (
        said
        == """vllm 1.0.0 (git ref v1.0.0) to vllm 1.0.1.dev1 (git ref main), 2 source files changed
5 usages of 2 symbols break in 3 of 4 clients

  clients  usages  symbol
        2       3  vllm.engine.Engine.__init__
                   Engine(): unknown argument 'seed', 3 times (vllm/engine.py:2)
                   in engine, other
        2       2  vllm.start
                   start(): unknown argument 'size', 2 times (vllm/__init__.py:1)
                   in other, aside

  fit   none
  note  none: no file of the client uses the target (vllm)
"""
    )
    assert impact(clone, "v1.0.0..main", *clients, "--places", "--exit-zero") == 0
    assert "other\n                     app.py:5  unknown-argument\n" in capsys.readouterr().out


def test_json_and_markdown_say_the_same(
    clone: Clone, clients: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    clone.commit("Another name", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    file = tmp_path / "impact.json"
    assert impact(clone, "v1.0.0..", *clients, "--format", "json", "--output", str(file)) == 1
    told = json.loads(file.read_text())
    assert told["changed"] == ["vllm/engine.py"]
    assert [(each["name"], each["verdict"], each["breaks"]) for each in told["clients"]] == [
        ("engine", "breaks", 2),
        ("other", "breaks", 1),
        ("aside", "fits", 0),
        ("none", "fits", 0),
    ]
    (broken,) = told["symbols"]
    assert broken["symbol"] == "vllm.engine.Engine.__init__"
    places = [[entry["line"] for entry in each["breaks"]] for each in broken["clients"]]
    assert places == [[3, 4], [5]]
    assert impact(clone, "v1.0.0..", *clients, "--format", "markdown", "--places") == 1
    page = capsys.readouterr().out
    assert "| `vllm.engine.Engine.__init__` | 2: engine, other | 3 |" in page
    assert "- `vllm.engine.Engine.__init__` in engine: `app.py:3`, `app.py:4`" in page


def test_what_was_broken_before_is_not_the_changes_doing(clone: Clone, tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.mkdir()
    (client / "app.py").write_text("from vllm import start\nstart(never=1)\n", encoding="utf-8")
    clone.commit("More", {"vllm/__init__.py": START.replace("size", "size=0, more=0")})
    assert impact(clone, "v1.0.0..main", str(client)) == 0


def test_three_dots_leave_out_what_the_other_branch_did(
    clone: Clone, clients: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    clone.git("checkout", "-q", "-b", "topic")
    clone.commit("Of the topic", {"vllm/__init__.py": START.replace("size", "length")})
    clone.git("checkout", "-q", "main")
    clone.commit("Of main", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    assert impact(clone, "main...topic", *clients, "--format", "json") == 1
    assert [each["symbol"] for each in json.loads(capsys.readouterr().out)["symbols"]] == ["vllm.start"]


def test_a_clone_is_named_with_its_refs_however_its_path_is_written(
    clone: Clone, clients: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clone.commit("Another name", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    beside = clone.folder.parent / "beside"
    beside.mkdir()
    monkeypatch.chdir(beside)
    for difference in ("v1.0.0..main", "v1.0.0...main", "HEAD@{1}..", "v1.0.0..git+../a clone@main"):
        assert main(["impact", "--target-diff", f"git+../a clone@{difference}", *clients]) == 1
        assert "3 usages of 1 symbol break in 2 of 4 clients" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_going_back_is_said(clone: Clone, clients: list[str], form: str, capsys: pytest.CaptureFixture[str]) -> None:
    clone.commit("More", {"vllm/engine.py": ENGINE + "def go(): ...\n"})
    said = "1.0.0 is older than 1.0.1"
    assert impact(clone, "main..v1.0.0", clients[0], "--format", form) == 0
    assert said in capsys.readouterr().out.replace("\\", "")
    assert impact(clone, "v1.0.0..main", clients[0], "--format", form) == 0
    assert said not in capsys.readouterr().out.replace("\\", "")
    clone.git("tag", "-d", "v1.0.0")
    assert impact(clone, "main..main~1", clients[0], "--format", form) == 0
    assert "main~1 is older than main: this is what going back means" in capsys.readouterr().out.replace("\\", "")


def test_without_a_client_what_is_installed_is_looked_at(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True, with_pip=False)
    clone.commit("Another name", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    assert impact(clone, "v1.0.0..main", "--python", str(folder)) == 2
    assert "no installed distribution uses the target; name a CLIENT" in capsys.readouterr().err
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "own.py").write_text(CLIENTS["engine"], encoding="utf-8")
    (packages / "own-1.0.dist-info").mkdir()
    (packages / "own-1.0.dist-info" / "METADATA").write_text("Name: own\nVersion: 1.0\n", encoding="utf-8")
    (packages / "own-1.0.dist-info" / "RECORD").write_text("own.py,,\n", encoding="utf-8")
    assert impact(clone, "v1.0.0..main", "--python", str(folder)) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "in own 1.0" in said
    assert "note no CLIENT was named, so what the interpreter has installed that uses the target was looked at" in said


def test_comments_and_options_say_what_counts(clone: Clone, tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.mkdir()
    text = "from vllm import start\nstart(size=1)  # driftcheck: ignore[unknown-argument] we patch it\n"
    (client / "app.py").write_text(text, encoding="utf-8")
    clone.commit("Another name", {"vllm/__init__.py": START.replace("size", "length")})
    assert impact(clone, "v1.0.0..main", str(client)) == 0
    (client / "app.py").write_text(text.partition("  #")[0] + "\n", encoding="utf-8")
    assert impact(clone, "v1.0.0..main", str(client)) == 1
    assert impact(clone, "v1.0.0..main", str(client), "--ignore", "unknown-argument,missing-argument") == 0


def test_tests_beside_the_package_are_no_part_of_it(clone: Clone, tmp_path: Path) -> None:
    client = tmp_path / "client"
    (client / "tests").mkdir(parents=True)
    (client / "tests" / "__init__.py").write_text("", encoding="utf-8")
    (client / "tests" / "test_app.py").write_text(
        "import vllm\nfrom tests.helpers import help\nhelp()\n", encoding="utf-8"
    )
    clone.commit("Tests", {"tests/helpers.py": "def help(more): ...\n"})
    assert change_of("v1.0.0..main", str(clone.folder), Settings()).changed == ()
    assert impact(clone, "v1.0.0..main", str(client)) == 0


def test_package_in_a_subfolder(tmp_path: Path, clients: list[str]) -> None:
    clone = Clone(tmp_path / "repository")
    clone.commit("First", {"python/vllm/__init__.py": START, "python/vllm/engine.py": ENGINE, "setup.py": ""})
    clone.commit("Second", {"python/vllm/__init__.py": START.replace("size", "length")})
    assert impact(clone, "HEAD~1..HEAD", *clients) == 1
    change = change_of("HEAD~..HEAD", str(clone.folder / "python"), Settings())
    assert change.changed == ("vllm/__init__.py",)


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        ("main", "'main' names no change; write A..B"),
        ("..", "names no change"),
        ("main..never", "no ref never in the clone"),
        ("--output=x..main", "no ref --output=x in the clone"),
        ("1.0.0..2.0.0", "no ref 1.0.0 in the clone"),
        ("1.0.0..2.0.0", "two releases are written vllm==1.0.0..vllm==2.0.0"),
        ("git+never@main..topic", "never is no folder; name a local clone"),
        ("vllm==1...main", "releases have left no common commit; write two dots"),
        ("v1.0.0..empty", "git ref empty holds no Python package"),
    ],
)
def test_what_is_no_change(clone: Clone, difference: str, said: str) -> None:
    clone.git("checkout", "-q", "--orphan", "empty")
    clone.git("rm", "-rfq", ".")
    clone.commit("Nothing", {"README.md": "nothing\n"})
    with pytest.raises(DriftcheckError, match=re.escape(said)):
        change_of(difference, str(clone.folder), Settings(offline=True))


def test_what_cannot_be_read(
    clone: Clone, clients: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone.commit("Another name", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    assert impact(clone, "v1.0.0..", clients[0], str(tmp_path / "never"), "--offline") == 2
    done = capsys.readouterr()
    assert "1 symbol" in done.out
    assert "not read  " in done.out
    assert done.err.startswith("driftcheck: ") and done.err.count("\n") == 1
    with pytest.raises(DriftcheckError, match="is no folder; name a local clone"):
        change_of("a..b", str(tmp_path / "never"), Settings())
    with pytest.raises(DriftcheckError, match="is not a git repository"):
        change_of("a..b", str(tmp_path), Settings())


@pytest.mark.index
def test_real_releases_and_clients(capsys: pytest.CaptureFixture[str]) -> None:
    clients = ["speculators==0.4.0.1", "trl==0.24.0", "lmcache==0.3.9"]
    assert main(["impact", "--target-diff", "vllm==0.16.0..vllm==0.17.0", *clients, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["verdict"] for each in told["clients"]] == ["breaks", "breaks", "fits"]
    assert [(each["symbol"], each["usages"]) for each in told["symbols"]] == [
        ("vllm.sampling_params.SamplingParams.__init__", 3),
        ("vllm.v1.request.Request.__init__", 1),
    ]


def test_files_that_could_not_be_read_are_told_though_nothing_else_is_touched(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "app.py").write_text("from vllm import start\n\nstart(size=1)\n", encoding="utf-8")
    (folder / "bad.py").write_text("import vllm\ndef f(:\n", encoding="utf-8")
    clone.git("tag", "-d", "v1.0.0")
    clone.commit("A module aside", {"vllm/aside.py": "def begin(): ...\n"})
    for arguments, is_untouched in ((), True), ((), True), (("--no-cache",), False):
        assert impact(clone, "main~1..main", str(folder), *arguments, "--format", "json") == 0
        (told,) = json.loads(capsys.readouterr().out)["clients"]
        assert told["untouched"] is is_untouched
        assert told["notices"][-1].startswith("not checked: a file that can't be read (bad.py: syntax error on line 2")
