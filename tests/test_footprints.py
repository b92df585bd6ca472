"""What of a target the audit of a client rests on: no more is looked at, and nothing is overlooked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftcheck.audit import Sources
from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.footprints import footprint_of
from driftcheck.origins.parts import PartialTree
from driftcheck.tree import MemoryTree
from tests.clones import Clone

TARGET = {
    "vllm/__init__.py": "from vllm.engine import Engine\n",
    "vllm/engine.py": "from vllm.base import Base\n\nclass Engine(Base):\n    def __init__(self, size): ...\n",
    "vllm/base.py": "class Base:\n    def step(self): ...\n",
    "vllm/aside.py": "from vllm.deep import low\n\ndef other(): ...\n",
    "vllm/deep.py": "def low(): ...\n",
    "vllm/sub/__init__.py": "",
}
CLIENT = """from vllm import Engine

engine = Engine(1)
engine.step()
try:
    from vllm.newer import start
except ImportError:
    start = None
"""


def target(changes: dict[str, str | None], folder: Path, version: str = "1.0.0") -> PartialTree:
    files = {path: text for path, text in {**TARGET, **changes}.items() if text is not None}
    tree = MemoryTree(files, "vllm", version)
    return PartialTree(tree, set(tree.paths), folder)


def is_untouched(folder: Path, changes: dict[str, str | None], *, client: str = CLIENT, version: str = "1.0.0") -> bool:
    before = target({}, folder)
    sources = Sources(MemoryTree({"app.py": client}, "app"), before, before, None, (), None, None, folder)
    return footprint_of(sources, folder).is_untouched(target(changes, folder, version))


@pytest.mark.parametrize(
    "changes",
    [
        {"vllm/aside.py": "def other(more): ...\n"},
        {"vllm/deep.py": None, "vllm/aside.py": "def other(): ...\n"},
        {"vllm/unheard_of.py": "def f(): ...\n"},
        {},
    ],
)
def test_what_nothing_rests_on(tmp_path: Path, changes: dict[str, str | None]) -> None:
    assert is_untouched(tmp_path, changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"vllm/engine.py": TARGET["vllm/engine.py"].replace("size", "length")},
        {"vllm/base.py": "class Base: ...\n"},
        {"vllm/__init__.py": "\nfrom vllm.engine import Engine\n"},
        {"vllm/base.py": None},
        {"vllm/newer.py": "def start(): ...\n"},
        {"vllm/newer/__init__.py": "def start(): ...\n"},
    ],
)
def test_what_it_rests_on(tmp_path: Path, changes: dict[str, str | None]) -> None:
    assert not is_untouched(tmp_path, changes)


def test_another_release_may_be_asked_for(tmp_path: Path) -> None:
    assert not is_untouched(tmp_path, {}, version="1.1.0")
    assert is_untouched(tmp_path, {}, version="1.0.0.post1")


def test_a_new_file_is_found_by_the_words_that_were_looked_for(tmp_path: Path) -> None:
    """Classes that derive from the declared one may have the attribute, so all files that name it were asked for."""
    client = "from vllm import Engine\n\ndef use(engine: Engine) -> None:\n    engine.never_there\n"
    more = "class More(Engine):\n    def never_there(self): ...\n"
    assert not is_untouched(tmp_path, {"vllm/more.py": more}, client=client)
    assert is_untouched(tmp_path, {"vllm/more.py": more.replace("never", "rarely")}, client=client)


class ReleaseTree(MemoryTree):
    """A tree that has its extension modules by their names only, as that of a release."""

    def read(self, path: str) -> bytes:
        if path.endswith(".so"):
            raise DriftcheckError(f"{path} is an extension module, which is not read")
        return super().read(path)

    def digest(self, path: str) -> str:
        self.read(path)
        return super().digest(path)


def test_a_new_extension_module_is_looked_at(tmp_path: Path) -> None:
    before = target({}, tmp_path)
    sources = Sources(MemoryTree({"app.py": CLIENT}, "app"), before, before, None, (), None, None, tmp_path)
    after = ReleaseTree({**TARGET, "vllm/_C.abi3.so": b""}, "vllm", "1.0.0")
    assert not footprint_of(sources, tmp_path).is_untouched(after)


def test_what_was_kept_is_taken_where_it_holds(tmp_path: Path) -> None:
    before = target({}, tmp_path)
    client = MemoryTree({"app.py": CLIENT}, "app")
    first = footprint_of(Sources(client, before, before, None, (), None, None, tmp_path), tmp_path)
    (kept,) = (tmp_path / "footprints").iterdir()
    written = kept.stat().st_mtime_ns
    later = target({"vllm/aside.py": "x = 1\n"}, tmp_path)
    assert footprint_of(Sources(client, later, later, None, (), None, None, tmp_path), tmp_path) == first
    assert kept.stat().st_mtime_ns == written
    other = target({"vllm/base.py": "class Base:\n    def step(self, more=1): ...\n"}, tmp_path)
    assert footprint_of(Sources(client, other, other, None, (), None, None, tmp_path), tmp_path) != first
    for damage in (b"", b"nonsense", kept.read_bytes()[:-9]):
        kept.write_bytes(damage)
        made = footprint_of(Sources(client, before, before, None, (), None, None, tmp_path), tmp_path)
        assert made.read == first.read


def test_clients_that_a_change_does_not_touch_are_not_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path / "cache"))
    clone = Clone(tmp_path / "clone")
    clone.commit("First", {**TARGET})
    clone.commit("Second", {"vllm/deep.py": "def low(more): ...\n"})
    clone.commit("Third", {"README.md": "More.\n"})
    uses = {"app": CLIENT, "deep": "from vllm.deep import low\n\nlow()\n"}
    for name, text in uses.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "use.py").write_text(text, encoding="utf-8")
    clients = [str(tmp_path / name) for name in uses]
    arguments = ["--repository", str(clone.folder), *clients, "--format", "json"]
    for _ in range(2):
        assert main(["impact", "--target-diff", "HEAD~2..HEAD", *arguments]) == 1
        told = json.loads(capsys.readouterr().out)["clients"]
        assert [(each["verdict"], each["untouched"]) for each in told] == [("fits", True), ("breaks", False)]
    assert main(["impact", "--target-diff", "HEAD~1..HEAD", *arguments]) == 0
    assert all(each["untouched"] for each in json.loads(capsys.readouterr().out)["clients"])
    assert main(["impact", "--target-diff", "HEAD~2..HEAD", *arguments, "--no-cache"]) == 1
    assert not any(each["untouched"] for each in json.loads(capsys.readouterr().out)["clients"])
    assert main(["impact", "--target-diff", "HEAD~1..HEAD", "--repository", str(clone.folder), *clients]) == 0
    assert "fit  app, deep (2 of them rest on nothing that has changed)" in capsys.readouterr().out
