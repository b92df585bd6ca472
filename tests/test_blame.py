"""Which commits of the target made the findings, in clones whose commits are known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from driftcheck.blame import blame
from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.origins.settings import Settings
from driftcheck.tree import MemoryTree
from driftcheck.upstream import Blame, BlamedFinding
from tests.clones import Clone

ENGINE = """class Engine:
    def __init__(self, size, seed): ...
    def step(self): ...
    def stop(self, now=True): ...
"""
TOOLS = "def load(path): ...\ndef save(path): ...\n"
CLIENT = """from vllm.engine import Engine
from vllm.tools import load

engine = Engine(1, seed=2)
engine.step()
load("a")
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTCHECK_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A target whose first commit is 1.0.0."""
    clone = Clone(tmp_path / "a clone")
    project = '[project]\nname = "vllm"\ndynamic = ["version"]\n'
    files = {"vllm/__init__.py": "", "vllm/engine.py": ENGINE, "vllm/tools.py": TOOLS, "pyproject.toml": project}
    clone.commit("First", files)
    clone.git("tag", "v1.0.0")
    return clone


def blamed(clone: Clone, text: str = CLIENT, *, against: str = "main", baseline: str = "v1.0.0") -> Blame:
    client = MemoryTree({"app.py": text, "other.py": "import os\n"}, "app", "1.0", requirements=("vllm==1.0.0",))
    return blame(client, str(clone.folder), against=against, baseline=baseline, settings=Settings(offline=True))


def noise(clone: Clone, number: int) -> None:
    """Commits that have nothing to do with anything."""
    for _ in range(number):
        clone.commit("Noise", {"vllm/noise.py": f"x = {clone.days}\n"})


def made(found: Blame) -> dict[tuple[str, str], str]:
    """Kind and symbol of each finding, and the commit that made it."""
    return {
        (each.finding.kind.value, each.finding.symbol): each.commit.name if each.commit else each.reason
        for each in found.findings
    }


def test_each_finding_has_its_own_commit(clone: Clone) -> None:
    noise(clone, 4)
    renamed = clone.commit("Seeds are keys", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    noise(clone, 3)
    moved = clone.commit("Tools move", {"vllm/tools.py": None, "vllm/utils/__init__.py": "", "vllm/utils/io.py": TOOLS})
    noise(clone, 5)
    engine = ENGINE.replace("seed", "key").replace("step", "advance")
    gone = clone.commit("Steps advance", {"vllm/engine.py": engine})
    noise(clone, 2)
    found = blamed(clone)
    assert made(found) == {
        ("unknown-argument", "vllm.engine.Engine.__init__"): renamed,
        ("unresolved-attribute", "vllm.engine.Engine.step"): gone,
        ("unresolved-module", "vllm.tools"): moved,
    }
    assert found.commits == 17
    assert found.asked < 12


def test_going_back_is_said_and_why_this_baseline(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone.commit("More", {"vllm/tools.py": TOOLS + "def drop(path): ...\n"})
    clone.git("tag", "v1.1.0")
    client = tmp_path / "client"
    client.mkdir()
    (client / "app.py").write_text("from vllm.tools import drop\n\ndrop('a')\n", encoding="utf-8")
    project = (
        "[project]\nname = 'app'\nversion = '1'\ndependencies = ['vllm==1.1.0']\n[tool.driftcheck]\npython = 'x'\n"
    )
    (client / "pyproject.toml").write_text(project, encoding="utf-8")
    back = ["blame", str(client), "--repository", str(clone.folder), "--against", "v1.0.0", "--offline"]
    for arguments in (back, [*back, "--format", "markdown"]):
        assert main(arguments) == 0
        said = capsys.readouterr().out.replace("\\", "")
        assert "note: v1.0.0 is older than vllm==1.1.0: this is what going back means" in said
        assert "from 1.1.0: app 1 requires vllm==1.1.0" in said
        assert "note: 'python' in the client's own pyproject.toml is not followed" in said
    assert main([*back[:-2], "main", "--offline"]) == 0
    assert "going back" not in capsys.readouterr().out


def test_what_was_moved_and_then_changed(clone: Clone) -> None:
    """The old path goes on leading there, so that only the change breaks anything."""
    there = {"vllm/tools.py": "from vllm.io import load, save\n", "vllm/io.py": TOOLS}
    clone.commit("Tools move", there)
    noise(clone, 3)
    changed = clone.commit("Another name", {"vllm/io.py": TOOLS.replace("load(path)", "load(path, how)")})
    noise(clone, 2)
    assert made(blamed(clone)) == {("missing-argument", "vllm.io.load"): changed}


def test_a_commit_that_touches_other_files_is_found(clone: Clone) -> None:
    """What breaks is handed on by a star import, and the file where it was is none that the finding names."""
    clone.commit("Handed on", {"vllm/__init__.py": "from vllm.names import *\n", "vllm/names.py": "def start(): ...\n"})
    clone.git("tag", "v1.1.0")
    noise(clone, 3)
    clone.commit("Harmless", {"vllm/__init__.py": "from vllm.names import *\nx = 1\n"})
    noise(clone, 2)
    gone = clone.commit("No start any more", {"vllm/names.py": "def stop(): ...\n"})
    noise(clone, 3)
    clone.commit("Harmless again", {"vllm/__init__.py": "from vllm.names import *\nx = 2\n"})
    found = blamed(clone, "import vllm\nvllm.start()\n", baseline="v1.1.0")
    assert made(found) == {("unresolved-attribute", "vllm.start"): gone}
    (each,) = found.findings
    assert each.finding.evidence.path == "vllm/__init__.py"


def test_a_merge_is_followed_into_its_branch(clone: Clone) -> None:
    clone.git("checkout", "-q", "-b", "topic")
    noise(clone, 2)
    renamed = clone.commit("Seeds are keys", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    clone.commit("More of the topic", {"vllm/topic.py": ""})
    clone.git("checkout", "-q", "main")
    clone.commit("Of main", {"vllm/tools.py": TOOLS + "# more\n"})
    merge = clone.merge("topic", "Merge the topic")
    noise(clone, 2)
    found = blamed(clone)
    assert {each.commit.name for each in found.findings if each.commit} == {renamed}
    assert {each.merge.name for each in found.findings if each.merge} == {merge}


def test_a_merge_that_breaks_by_itself(clone: Clone) -> None:
    """Each side is right: what the one renames, the other has not called yet."""
    clone.git("checkout", "-q", "-b", "topic")
    clone.commit("Of the topic", {"vllm/topic.py": ""})
    clone.git("checkout", "-q", "main")
    clone.commit("Of main", {"vllm/more.py": ""})
    clone.git("merge", "-q", "--no-ff", "--no-commit", "topic")
    merge = clone.commit("Merge with a change", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    found = blamed(clone)
    assert {(each.commit.name, each.merge) for each in found.findings if each.commit} == {(merge, None)}


def test_a_baseline_on_a_branch_of_its_own(clone: Clone) -> None:
    """A release branch has what main never had, and main has gone on."""
    clone.git("checkout", "-q", "-b", "release")
    only_here = clone.commit("Only for the release", {"vllm/tools.py": TOOLS + "def extra(): ...\n"})
    clone.git("tag", "v1.0.1")
    clone.git("checkout", "-q", "main")
    renamed = clone.commit("Seeds are keys", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    found = blamed(clone, CLIENT + "from vllm.tools import extra\n", baseline="v1.0.1")
    by_symbol = {each.finding.symbol: each for each in found.findings}
    assert by_symbol["vllm.tools.extra"] == BlamedFinding(
        by_symbol["vllm.tools.extra"].finding, by_symbol["vllm.tools.extra"].commit, is_lost=True
    )
    assert made(found)["unresolved-symbol", "vllm.tools.extra"] == only_here
    assert made(found)["unknown-argument", "vllm.engine.Engine.__init__"] == renamed


def test_only_some_of_a_clients_files_are_looked_at(clone: Clone) -> None:
    """Those with findings, and what they import: here the class that the finding rests on."""
    renamed = clone.commit("Steps advance", {"vllm/engine.py": ENGINE.replace("step", "advance")})
    noise(clone, 2)
    files = {
        "app/__init__.py": "",
        "app/own.py": "from vllm.engine import Engine\nclass Own(Engine): ...\n",
        "app/use.py": "from .own import Own\nOwn(1, seed=1).step()\n",
        **{f"app/more_{number}.py": "from vllm.tools import load\nload('a')\n" for number in range(9)},
    }
    found = blame(
        MemoryTree(files, "app"), str(clone.folder), baseline="v1.0.0", against="main", settings=Settings(offline=True)
    )
    assert [(each.finding.location.path, each.commit and each.commit.name) for each in found.findings] == [
        ("app/use.py", renamed)
    ]


def test_the_baseline_is_the_tag_of_the_release_that_the_client_was_written_for(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone.commit(
        "Seeds are keys\n\nFor reasons\x1b[31m that are told here.", {"vllm/engine.py": ENGINE.replace("seed", "key")}
    )
    client = tmp_path / "client"
    client.mkdir()
    (client / "app.py").write_text(CLIENT, encoding="utf-8")
    requires = '[project]\nname = "app"\nversion = "1"\ndependencies = ["vllm=={}"]\n'
    (client / "pyproject.toml").write_text(requires.format("1.0.0"), encoding="utf-8")
    arguments = ["blame", str(client), "--repository", str(clone.folder), "--offline"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"""app 1: vllm 1\.0\.0 \(git tag of vllm==1\.0\.0\) to vllm 1\.0\.1\.dev1\+g\w+ \(git ref HEAD\)

\w{12} 2026-01-03 Seeds are keys
  app\.py:4: Engine\(\): unknown argument 'seed'
""",
        said,
    )
    assert main([*arguments, "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["blames"]
    assert told["findings"][0]["commit"]["subject"] == "Seeds are keys"
    assert told["baseline"]["chosen"] == "app 1 requires vllm==1.0.0"
    assert main([*arguments, "--format", "markdown"]) == 0
    assert "2026-01-03 Seeds are keys | `app.py:4` |" in capsys.readouterr().out
    (client / "pyproject.toml").write_text(requires.format("0.9.0"), encoding="utf-8")
    assert main(arguments) == 2
    assert "has no tag of vllm==0.9.0; fetch its tags, or name a ref instead" in capsys.readouterr().err


def test_nothing_found(clone: Clone) -> None:
    noise(clone, 1)
    found = blamed(clone)
    assert (found.findings, found.commits) == ((), 1)


def test_a_client_that_cannot_be_checked_leaves_the_others(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app.py").write_text("import vllm\n", encoding="utf-8")
    ends = ["--repository", str(clone.folder), "--baseline", "v1.0.0"]
    assert main(["blame", str(tmp_path / "gone.py"), str(tmp_path / "app.py"), *ends]) == 2
    said = capsys.readouterr()
    assert "Nothing to blame on a commit" in said.out
    assert said.err.count("\n") == 1
    assert "gone.py" in said.err


def test_files_that_could_not_be_read_are_told(clone: Clone) -> None:
    (notice,) = blamed(clone, "import vllm\ndef f(:\n").notices[-1:]
    assert notice.startswith("not checked: a file that can't be read (app.py: syntax error on line 2")


def test_what_the_baseline_has_too_is_blamed_on_nobody(clone: Clone) -> None:
    clone.commit("Seeds are keys", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    found = blamed(clone, CLIENT + "engine.never()\n")
    symbols = {each.finding.symbol for each in found.findings}
    assert (symbols, found.others) == ({"vllm.engine.Engine.__init__"}, 1)


def test_a_shallow_clone_says_so(clone: Clone, tmp_path: Path) -> None:
    noise(clone, 3)
    clone.commit("Seeds are keys", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    shallow = tmp_path / "shallow"
    clone.git("clone", "-q", "--depth", "2", clone.folder.as_uri(), str(shallow))
    clone.git("-C", str(shallow), "fetch", "-q", "--depth", "1", "origin", "tag", "v1.0.0")
    client = MemoryTree({"app.py": CLIENT}, "app")
    with pytest.raises(DriftcheckError, match=r"is shallow and ends between .* git fetch --unshallow first"):
        blame(client, str(shallow), baseline="v1.0.0", settings=Settings(offline=True))
    found = blame(client, str(shallow), baseline="HEAD~1", settings=Settings(offline=True))
    assert [each.commit.subject for each in found.findings if each.commit][:1] == ["Seeds are keys"]


def test_a_package_in_a_subfolder_and_a_bare_clone(clone: Clone, tmp_path: Path) -> None:
    clone.git("mv", "vllm", "moved")
    clone.commit("Into a folder", {"python/vllm/more.py": ""})
    clone.git("mv", *(f"moved/{name}.py" for name in ("__init__", "engine", "tools")), "python/vllm")
    clone.commit("The rest", {})
    clone.git("tag", "v1.1.0")
    noise(clone, 2)
    renamed = clone.commit("Seeds are keys", {"python/vllm/engine.py": ENGINE.replace("seed", "key")})
    bare = tmp_path / "bare"
    clone.git("clone", "-q", "--bare", clone.folder.as_uri(), str(bare))
    client = MemoryTree({"app.py": CLIENT}, "app")
    for folder in (clone.folder, clone.folder / "python", bare):
        found = blame(client, str(folder), baseline="v1.1.0", settings=Settings(offline=True))
        assert [(each.commit.name, str(each.commit.day)) for each in found.findings if each.commit] == [
            (renamed, "2026-01-07")
        ]


def test_what_has_no_common_history(clone: Clone) -> None:
    clone.git("checkout", "-q", "--orphan", "elsewhere")
    clone.commit("Begun anew", {"vllm/engine.py": ENGINE.replace("seed", "key")})
    with pytest.raises(DriftcheckError, match="have no common history in the clone"):
        blamed(clone, against="elsewhere")


@pytest.mark.parametrize("ref", ["never", "--all", "-n1", "v1.0.0:vllm", "a b", "vllm==3.0"])
def test_refs_that_are_none(clone: Clone, ref: str) -> None:
    with pytest.raises(DriftcheckError, match=r"no ref .* in the clone|has no tag of"):
        blamed(clone, against=ref)


def test_programs_that_a_clone_names_are_not_run(clone: Clone, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    for key in ("core.fsmonitor", "diff.external", "core.pager", "gpg.program", "core.sshCommand"):
        clone.git("config", key, f"touch {proof}")
    clone.git("config", "log.showSignature", "true")
    (clone.folder / ".gitattributes").write_text("*.py diff=odd\n", encoding="utf-8")
    clone.git("config", "diff.odd.textconv", f"touch {proof}")
    (clone.folder / "vllm" / "engine.py").write_text(ENGINE.replace("seed", "key"), encoding="utf-8")
    clone.git("-c", "core.fsmonitor=false", "commit", "-q", "-a", "-m", "Seeds are keys")
    proof.unlink(missing_ok=True)
    assert {each.commit.subject for each in blamed(clone).findings if each.commit} == {"Seeds are keys"}
    assert not proof.exists()


@pytest.mark.index
@pytest.mark.wide
def test_releases_as_commits(tmp_path: Path) -> None:
    """A clone whose commits are releases: each finding's commit is the release with which the matrix has it first."""
    from driftcheck.matrix import matrix
    from driftcheck.origins.select import target_tree

    releases = ["0.11.0", "0.12.0", "0.14.0", "0.15.0", "0.16.0", "0.17.0"]
    clone = Clone(tmp_path / "vllm")
    before: set[str] = set()
    for version in releases:
        tree = target_tree(f"vllm=={version}")
        files = {path: tree.read(path).decode() for path in tree.paths if path.endswith((".py", ".pyi"))}
        clone.commit(version, {**dict.fromkeys(before.difference(files)), **files})
        clone.git("tag", f"v{version}")
        before = set(files)
    found = blame("speculators==0.3.0", str(clone.folder), against="vllm==0.17.0")
    verdicts = matrix("speculators==0.3.0", releases).releases
    by_identity = {each.finding.identity: each for each in found.findings}
    compared = 0
    for finding in verdicts[-1].breaks:
        first = next(
            verdict.version for verdict in verdicts if finding.identity in {f.identity for f in verdict.breaks}
        )
        commit = by_identity[finding.identity].commit
        assert commit is not None
        assert (finding.message, commit.subject) == (finding.message, first)
        compared += 1
    assert compared >= 9
