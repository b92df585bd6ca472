"""The release of the target that a client was written for."""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import date
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins.baseline import baseline_specification
from driftcheck.origins.select import client_tree
from driftcheck.origins.settings import Settings
from driftcheck.tree import MemoryTree
from tests.origins.archives import wheel
from tests.origins.server import Index

RELEASES = {
    "0.9.0": "2025-01-10",
    "0.9.1": "2025-02-10",
    "0.10.0rc1": "2025-02-20",
    "0.10.0": "2025-03-10",
    "0.10.1": "2025-04-10",
    "0.11.0": "2025-05-10",
    "1.0.0": "2026-01-10",
}


@pytest.fixture
def engine(index: Index) -> Index:
    """An index with the releases of the target; 0.10.1 is yanked."""
    for version, day in RELEASES.items():
        name = f"engine-{version}-py3-none-any.whl"
        index.add("engine", name, b"", uploaded=f"{day}T12:00:00Z", yanked=version == "0.10.1")
    return index


def client(*requirements: str, uploaded: str = "", name: str = "client", version: str | None = "3.0") -> MemoryTree:
    day = date.fromisoformat(uploaded) if uploaded else None
    return MemoryTree({}, name, version, requirements=requirements, uploaded=day)


@pytest.mark.parametrize(
    ("requirements", "release", "reason"),
    [
        (["engine==0.9.1"], "0.9.1", "client 3.0 requires engine==0.9.1"),
        (["Engine == 0.9.1 ; extra == 'gen'"], "0.9.1", "client 3.0 requires Engine==0.9.1 in its extra gen"),
        (
            ["engine>=0.9", 'engine==0.10.0; extra == "a"'],
            "0.10.0",
            "client 3.0 requires engine==0.10.0 in its extra a",
        ),
        (['engine==0.9.0; extra == "a"', 'engine==0.10.0; extra == "b"'], "0.10.0", "extra b"),
        (['engine==0.11.0; extra == "a"', "engine==0.9.0"], "0.9.0", "client 3.0 requires engine==0.9.0"),
        (['engine==0.9.0; sys_platform == "darwin"', 'engine==0.10.0; sys_platform == "linux"'], "0.10.0", ""),
        (['engine==0.9.0; python_version < "3.8"', "engine==0.10.0"], "0.10.0", ""),
        (["engine==0.10.0+cpu"], "0.10.0", "engine==0.10.0+cpu"),
        (["engine[fast,small]==0.10.0"], "0.10.0", "requires engine==0.10.0"),
        (["engine===0.10.0"], "0.10.0", ""),
        (["engine @ https://example.org/engine-0.9.1-py3-none-any.whl"], "0.9.1", "requires engine"),
        (["engine @ git+https://example.org/engine.git@v0.9.1"], "0.9.1", "requires engine"),
        (["engine==0.12.0"], "0.12.0", "requires engine==0.12.0"),
        (["engine==0.10.0rc1"], "0.10.0rc1", ""),
    ],
)
def test_pins_need_no_index(settings: Settings, requirements: list[str], release: str, reason: str) -> None:
    found = baseline_specification(client(*requirements), "engine", settings=Settings(offline=True))
    assert found is not None
    assert found[0] == f"engine=={release}"
    assert reason in found[1]


@pytest.mark.parametrize(
    ("requirements", "uploaded", "release", "reason"),
    [
        # An inclusive upper bound is the release that its author had in hand.
        (["engine>=0.9,<=0.10.0"], "2025-01-20", "0.10.0", "the newest it allows"),
        (
            ["engine>=0.9"],
            "2025-02-25",
            "0.9.1",
            "requires engine>=0.9, and this is the newest that was out when it was uploaded",
        ),
        (["engine>=0.9,<0.11"], "2025-12-31", "0.10.0", "the newest that was out"),
        (["engine~=0.9.0"], "2025-12-31", "0.9.1", "the newest that was out"),
        (["engine==0.9.*"], "", "0.9.1", "the newest it allows"),
        (["engine!=1.0.0"], "2026-06-01", "0.11.0", "the newest that was out"),
        (["engine>=0.10.0rc1"], "2025-02-25", "0.10.0rc1", "the newest that was out"),
        (["engine>=0.11"], "2025-02-25", "0.11.0", "the first it allows"),
        (["engine>=0.9"], "", "1.0.0", "the newest it allows"),
        (['engine>=0.9; extra == "a"', "engine<0.10"], "2026-06-01", "0.9.1", "requires engine<0.10, and"),
        (['engine<0.10; extra == "a"'], "2026-06-01", "0.9.1", "requires engine<0.10 in its extra a"),
        # Nothing but the name, or nothing at all: the day decides.
        (["engine"], "2025-03-20", "0.10.0", "the newest that was out when client 3.0 was uploaded"),
        ([], "2025-03-10", "0.10.0", "whose metadata names no release of engine"),
        (["engine-extra==0.9.0"], "2025-06-01", "0.11.0", "the newest that was out"),
    ],
)
def test_ranges_and_days(
    engine: Index, settings: Settings, requirements: list[str], uploaded: str, release: str, reason: str
) -> None:
    found = baseline_specification(client(*requirements, uploaded=uploaded), "engine", settings=settings)
    assert found is not None
    assert found[0] == f"engine=={release}"
    assert reason in found[1]
    assert "2025" not in found[1]


@pytest.mark.parametrize(
    ("name", "version", "uploaded", "release"),
    [
        ("engine-ascend", "0.10.0", "", "0.10.0"),
        ("engine_ascend", "0.10.0rc3", "2025-05-20", "0.10.0"),
        ("engine-ascend", "0.10.0.post2", "2025-05-20", "0.10.0"),
        ("engine-omni", "0.9.5", "2025-05-20", "0.9.1"),
        ("accelerator", "0.10.0", "2025-04-01", "0.10.0"),
        # The same number by chance: nothing to do with the target of years ago.
        ("accelerator", "0.10.0", "2026-02-01", "1.0.0"),
        ("engine-spyre", "1.10.0", "2025-04-01", "0.10.0"),
        ("engine-spyre", "0.8.0", "2025-04-01", "0.10.0"),
    ],
)
def test_namesakes(engine: Index, settings: Settings, name: str, version: str, uploaded: str, release: str) -> None:
    tree = client(name=name, version=version, uploaded=uploaded)
    found = baseline_specification(tree, "engine", settings=settings)
    assert found is not None
    assert found[0] == f"engine=={release}"


def test_nothing_to_go_by(engine: Index, settings: Settings) -> None:
    assert baseline_specification(client(), "engine", settings=settings) is None
    assert baseline_specification(client(version=None), "engine", settings=settings) is None
    assert baseline_specification(client("engine>=7"), "engine", settings=settings) is None
    assert (
        baseline_specification(client("not a requirement", uploaded="2025-03-20"), "unknown", settings=settings) is None
    )


@pytest.mark.parametrize(
    "requirement",
    [
        "engine==0.9.0; platform_machine ~= 'x86_64'",
        f"engine=={'1' * 5000}",
        f"engine>={'1' * 5000}",
        f"engine<={'1' * 5000}",
        f"engine @ git+https://example.org/engine.git@v{'1' * 5000}",
        f"engine==0.9.0; {'(' * 5000}os_name == 'posix'{')' * 5000}",
    ],
)
def test_requirements_that_cannot_be_evaluated_are_passed_over(
    engine: Index, settings: Settings, requirement: str
) -> None:
    assert baseline_specification(client(requirement, "engine==0.10.0"), "engine", settings=settings) == (
        "engine==0.10.0",
        "client 3.0 requires engine==0.10.0",
    )
    assert baseline_specification(client(requirement, version="1" * 5000), "engine", settings=settings) is None


def test_answer_of_the_index_serves_for_what_was_before_it(
    engine: Index, settings: Settings, offline: Settings
) -> None:
    tree = client("engine>=0.9", uploaded="2025-02-25")
    first = baseline_specification(tree, "engine", settings=settings)
    asked = len(engine.log)
    assert asked == 1
    assert baseline_specification(tree, "engine", settings=settings) == first
    assert baseline_specification(tree, "engine", settings=offline) == first
    assert len(engine.log) == asked
    (kept,) = settings.cache.rglob("releases.json")
    answer = json.loads(kept.read_text())
    kept.write_text(json.dumps(answer | {"asked": time.mktime((2025, 2, 1, 0, 0, 0, 0, 0, 0))}))
    assert baseline_specification(tree, "engine", settings=settings) == first
    assert len(engine.log) == asked + 1


@pytest.mark.parametrize(
    "damage", ["", "{}", '{"format": 1, "asked": "x"}', '{"format": 1, "asked": 1e300, "offers": []}']
)
def test_damaged_answer_is_asked_for_again(engine: Index, settings: Settings, damage: str) -> None:
    tree = client("engine>=0.9", uploaded="2025-02-25")
    first = baseline_specification(tree, "engine", settings=settings)
    (kept,) = settings.cache.rglob("releases.json")
    kept.write_text(damage)
    assert baseline_specification(tree, "engine", settings=settings) == first


def test_offline_only_what_is_cached_is_offered(engine: Index, settings: Settings, offline: Settings) -> None:
    tree = client("engine>=0.9", uploaded="2025-12-31")
    assert baseline_specification(tree, "engine", settings=offline) is None
    engine.projects["engine"][0].data = wheel("engine", "0.9.0", {"engine/__init__.py": ""})
    client_tree("engine==0.9.0", settings=settings)
    found = baseline_specification(tree, "engine", settings=offline)
    assert found is not None
    assert found[0] == "engine==0.9.0"


def test_unreachable_index_is_said(engine: Index, settings: Settings) -> None:
    engine.status = 500
    with pytest.raises(DriftcheckError, match="answered 500"):
        baseline_specification(client("engine>=0.9"), "engine", settings=settings)


def test_folder_is_dated_by_its_last_commit(engine: Index, settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "client"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "client"\ndependencies = ["engine>=0.9"]\n')
    newest = baseline_specification(client_tree(str(folder)), "engine", settings=settings)
    assert newest == ("engine==1.0.0", "client requires engine>=0.9, and this is the newest it allows")
    day = "2025-03-11T00:00:00+00:00"
    variables = os.environ | {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day, "GIT_CONFIG_GLOBAL": os.devnull}
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, env=variables)
    for tree in (client_tree(str(folder)), client_tree(f"git+{folder}@HEAD")):
        found = baseline_specification(tree, "engine", settings=settings)
        assert found is not None
        assert found[0] == "engine==0.10.0"
        assert found[1].endswith("when it was last committed")
    assert not any("/client/" in line for line in engine.log)


def test_installed_client_is_dated_by_the_index(
    engine: Index, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.add("client", "client-3.0.tar.gz", b"", uploaded="2025-02-11T00:00:00Z")
    information = tmp_path / "client-3.0.dist-info"
    information.mkdir()
    (tmp_path / "client.py").write_text("")
    (information / "METADATA").write_text("Name: client\nVersion: 3.0\nRequires-Dist: engine>=0.9\n")
    (information / "RECORD").write_text("client.py,,\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for _ in range(2):
        found = baseline_specification(client_tree("client", settings=settings), "engine", settings=settings)
        assert found is not None
        assert found[0] == "engine==0.9.1"
    assert sum("/client/" in line for line in engine.log) == 1


@pytest.mark.parametrize(
    ("requirement", "held_against", "uploaded", "version"),
    [
        ("engine>=0.9", "0.10.0", None, "0.9.0"),
        ("engine>=0.9", None, None, None),
        ("engine>=0.11", "0.10.0", None, None),
        ("engine>=0.9", "0.10.0", "2025-03-20", None),
    ],
)
def test_a_working_copy_is_not_held_to_be_newer_than_what_it_is_held_against(
    engine: Index,
    settings: Settings,
    requirement: str,
    held_against: str | None,
    uploaded: str | None,
    version: str | None,
) -> None:
    tree = client(requirement, uploaded=uploaded or "")
    plain = baseline_specification(tree, "engine", settings=settings)
    found = baseline_specification(tree, "engine", held_against=held_against, settings=settings)
    assert plain is not None and found is not None
    if version is None:
        assert found == plain
    else:
        assert found[0] == f"engine=={version}" and found != plain and "oldest" in found[1]
