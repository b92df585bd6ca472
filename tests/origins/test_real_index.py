"""Real releases on the user's index."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins.baseline import baseline_specification
from driftcheck.origins.index import ReleaseTree, available_versions
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import Settings
from driftcheck.tree import import_path

pytestmark = pytest.mark.index


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(cache_folder=tmp_path_factory.mktemp("cache"))


def test_speculators(shared: Settings) -> None:
    tree = client_tree("speculators==0.3.0", settings=shared)
    assert (tree.name, tree.version, tree.uploaded) == ("speculators", "0.3.0", date(2025, 12, 10))
    source = tree.read("speculators/data_generation/vllm_hidden_states_generator.py").decode()
    assert "class VllmHiddenStatesGenerator" in source
    assert baseline_specification(tree, "vllm", settings=shared) == (
        "vllm==0.11.0",
        "speculators 0.3.0 requires vllm==0.11.0 in its extra datagen",
    )


def test_vllm_by_ranges(shared: Settings, tmp_path: Path) -> None:
    told: list[int] = []
    settings = Settings(cache_folder=shared.cache, progress=lambda what, done, total: told.append(done))
    tree = target_tree("vllm==0.16.0", settings=settings)
    sources = [path for path in tree.paths if path.endswith(".py")]
    assert len(sources) > 1300
    assert max(told) < 20_000_000
    assert any(path.endswith(".so") for path in tree.paths)
    assert sum(len(tree.read(path)) for path in sources) > 15_000_000
    assert b"class Scheduler" in tree.read("vllm/v1/core/sched/scheduler.py")
    again = target_tree("vllm==0.16.0", settings=Settings(offline=True, cache_folder=shared.cache))
    assert list(again.paths) == list(tree.paths)


@pytest.mark.parametrize(
    ("specification", "baseline"),
    [
        ("speculators==0.4.0.1", "0.16.0"),
        ("trl==0.25.0", "0.10.2"),
        ("lm-eval==0.4.9.2", "0.11.2"),
        ("ai-dynamo==0.7.1", "0.11.0"),
        ("openrlhf==0.9.4", "0.16.0"),
        ("vllm-ascend==0.11.0rc3", "0.11.0"),
    ],
)
def test_baselines_of_real_clients(shared: Settings, specification: str, baseline: str) -> None:
    found = baseline_specification(client_tree(specification, settings=shared), "vllm", settings=shared)
    assert found is not None
    assert found[0] == f"vllm=={baseline}"


def test_wheel_with_purelib(shared: Settings) -> None:
    tree = client_tree("openrlhf==0.9.4", settings=shared)
    assert "openrlhf-0.9.4.data/purelib/openrlhf/__init__.py" in tree.paths
    assert "openrlhf/__init__.py" in {import_path(path, tree.roots) for path in tree.paths}


def test_source_distribution(shared: Settings) -> None:
    tree = client_tree("kvcached==0.1.6", settings=shared)
    assert isinstance(tree, ReleaseTree)
    assert tree.file.endswith(".tar.gz")
    assert {path.partition("/")[0] for path in tree.paths if path.endswith(".py")} == {"kvcached"}


def test_versions(shared: Settings) -> None:
    versions = available_versions("vllm", shared)
    assert {"0.11.0", "0.16.0"} <= set(versions)
    with pytest.raises(DriftcheckError, match=r"no release 0\.16\.9 of vllm on the index; nearest are .*0\.16\.0"):
        target_tree("vllm==0.16.9", settings=shared)
