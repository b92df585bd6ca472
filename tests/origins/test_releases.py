"""Releases of an index: by ranges, whole, from the cache, with and without trouble."""

from __future__ import annotations

import functools
import io
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins import cache
from driftcheck.origins.index import available_versions, latest_version
from driftcheck.origins.index_settings import read_index_settings
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import Settings
from driftcheck.tree import SourceTree, import_path
from tests.origins.archives import noise, record_line, sdist, wheel
from tests.origins.server import Index

SOURCES = {
    "engine/__init__.py": "A = 1\n",
    "engine/core.py": "def run(x): ...\n",
    "engine/core.pyi": "def run(x): ...\n",
}


def everything(tree: SourceTree) -> dict[str, bytes]:
    return {path: tree.read(path) for path in tree.paths if path.endswith((".py", ".pyi"))}


@functools.cache
def big_wheel(version: str = "1.0", core: str = "def run(x): ...\n", requirements: tuple[str, ...] = ()) -> bytes:
    """A wheel of 6 MB, most of it an extension module, which nobody reads."""
    files: dict[str, str | bytes] = {
        "engine/__init__.py": "A = 1\n",
        "engine/_native.abi3.so": noise(4_000_000),
        "engine/core.py": core,
        "engine/weights.bin": noise(2_000_000, 1),
        "engine/last.py": "B = 2\n",
    }
    return wheel("engine", version, files, requirements=requirements)


@pytest.mark.parametrize("as_json", [True, False])
def test_small_wheel_is_read_whole(index: Index, settings: Settings, as_json: bool) -> None:
    index.as_json = as_json
    data = wheel("engine", "1.0", SOURCES, requirements=("numpy>=1", 'rich; extra == "cli"'))
    index.add("engine", "engine-1.0-py3-none-any.whl", data)
    tree = client_tree("engine==1.0", settings=settings)
    assert everything(tree) == {path: text.encode() for path, text in SOURCES.items()}
    assert (tree.name, tree.version, tree.origin) == ("engine", "1.0", "release on the index")
    assert tree.requirements == ("numpy>=1", 'rich; extra == "cli"')
    assert tree.uploaded == (date(2025, 1, 1) if as_json else None)
    assert "engine-1.0.dist-info/METADATA" in tree.paths
    with pytest.raises(KeyError):
        tree.read("engine/absent.py")


def test_large_wheel_is_read_by_ranges(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-cp39-abi3-manylinux_2_17_x86_64.whl", data := big_wheel())
    tree = target_tree("engine==1.0", settings=settings)
    assert everything(tree) == {
        "engine/__init__.py": b"A = 1\n",
        "engine/core.py": b"def run(x): ...\n",
        "engine/last.py": b"B = 2\n",
    }
    assert "engine/_native.abi3.so" in tree.paths
    assert "engine/weights.bin" not in tree.paths
    with pytest.raises(DriftcheckError, match="extension module"):
        tree.read("engine/_native.abi3.so")
    assert all("bytes=" in line for line in index.file_requests())
    assert index.sent < len(data) / 2


def test_size_is_not_needed_for_ranges(index: Index, settings: Settings) -> None:
    index.as_json = False
    index.add("engine", "engine-1.0-cp39-abi3-manylinux_2_17_x86_64.whl", data := big_wheel())
    assert "engine/core.py" in target_tree("engine==1.0", settings=settings).paths
    assert index.sent < len(data) / 2


def test_server_without_ranges_is_read_whole_with_progress(index: Index, tmp_path: Path) -> None:
    index.ranges = False
    index.add("engine", "engine-1.0-cp39-abi3-manylinux_2_17_x86_64.whl", data := big_wheel())
    told: list[tuple[str, int, int | None]] = []
    settings = Settings(cache_folder=tmp_path / "cache", progress=lambda *step: told.append(step))
    assert target_tree("engine==1.0", settings=settings).read("engine/core.py") == b"def run(x): ...\n"
    assert told[-1] == ("engine 1.0", len(data), len(data))
    assert [done for _, done, _ in told] == sorted({done for _, done, _ in told})


def test_cached_release_asks_nobody(index: Index, settings: Settings, offline: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    fetched = target_tree("engine==1.0", settings=settings)
    first = everything(fetched)
    assert list(fetched.paths) == list(target_tree("engine==1.0", settings=offline).paths) == sorted(fetched.paths)
    asked = len(index.log)
    for specification in ("engine==1.0", "Engine == 1.0", "engine==1.0.0"):
        assert everything(target_tree(specification, settings=settings)) == first
    assert len(index.log) == asked
    index.status = 500
    assert everything(target_tree("engine==1.0", settings=offline)) == first


def test_cached_release_needs_no_heavy_import(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    target_tree("engine==1.0", settings=settings)
    script = (
        "import sys\n"
        "from driftcheck.origins.select import target_tree\n"
        "tree = target_tree('engine==1.0')\n"
        "assert tree.read('engine/core.py') and tree.digest('engine/core.py') and tree.requirements == ()\n"
        "heavy = {'requests', 'pypi_simple', 'packaging', 'email', 'zipfile', 'filelock'} & sys.modules.keys()\n"
        "sys.exit(f'{heavy} imported' if heavy else 0)\n"
    )
    variables = os.environ | {"DRIFTCHECK_CACHE_DIR": str(settings.cache_folder)}
    assert subprocess.run([sys.executable, "-c", script], check=False, env=variables).returncode == 0


def test_unchanged_files_are_neither_fetched_nor_stored_again(index: Index, settings: Settings) -> None:
    filler = {f"engine/part{number}.py": noise(600_000, number).hex() for number in range(8)}
    for version in ("1.0", "1.1"):
        data = wheel("engine", version, filler | {"engine/__init__.py": f"V = '{version}'\n"})
        index.add("engine", f"engine-{version}-py3-none-any.whl", data)
    target_tree("engine==1.0", settings=settings)
    sent, stored = index.sent, stored_bytes(settings)
    tree = target_tree("engine==1.1", settings=settings)
    assert index.sent - sent < sent / 2
    assert stored_bytes(settings) - stored < stored / 50
    assert tree.read("engine/__init__.py") == b"V = '1.1'\n"
    assert tree.read("engine/part3.py") == filler["engine/part3.py"].encode()


def stored_bytes(settings: Settings) -> int:
    return sum(file.stat().st_size for file in settings.cache.rglob("*") if file.is_file())


def test_damaged_cache_heals_and_offline_says_so(index: Index, settings: Settings, offline: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    target_tree("engine==1.0", settings=settings)
    for damage in (damage_middle, truncate, remove):
        packs = list(settings.cache.glob("packs/*.pack"))
        assert packs
        for pack in packs:
            damage(pack)
        with pytest.raises(DriftcheckError, match="lost files of engine 1\\.0, and --offline"):
            everything(target_tree("engine==1.0", settings=offline))
        healed = target_tree("engine==1.0", settings=settings)
        assert healed.read("engine/core.py") == b"def run(x): ...\n"
        assert everything(target_tree("engine==1.0", settings=offline)) == everything(healed)


def damage_middle(pack: Path) -> None:
    data = bytearray(pack.read_bytes())
    for position in range(0, len(data), 7):
        data[position] ^= 0x55
    pack.write_bytes(data)


def truncate(pack: Path) -> None:
    pack.write_bytes(pack.read_bytes()[:10])


def remove(pack: Path) -> None:
    pack.unlink()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0\xff", b'{"format": 1}\n', b"[]\n"])
def test_damaged_manifest_is_fetched_again(index: Index, settings: Settings, offline: Settings, damage: bytes) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    target_tree("engine==1.0", settings=settings)
    (manifest,) = settings.cache.glob("releases/*/*/*.manifest")
    manifest.write_bytes(damage)
    with pytest.raises(DriftcheckError, match="engine 1\\.0 is not in the cache"):
        target_tree("engine==1.0", settings=offline)
    assert target_tree("engine==1.0", settings=settings).read("engine/core.py")


def test_truncated_manifest_is_noticed(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    paths = set(target_tree("engine==1.0", settings=settings).paths)
    (manifest,) = settings.cache.glob("releases/*/*/*.manifest")
    manifest.write_bytes(manifest.read_bytes()[:-20])
    assert set(target_tree("engine==1.0", settings=settings).paths) == paths


def test_two_processes_fetch_once(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-cp39-abi3-manylinux_2_17_x86_64.whl", big_wheel())
    script = (
        "from driftcheck.origins.select import target_tree\n"
        "tree = target_tree('engine==1.0')\n"
        "print(sum(len(tree.read(path)) for path in tree.paths if path.endswith('.py')))\n"
    )
    variables = os.environ | {"DRIFTCHECK_CACHE_DIR": str(settings.cache_folder)}
    processes = [
        subprocess.Popen([sys.executable, "-c", script], env=variables, stdout=subprocess.PIPE) for _ in range(3)
    ]
    outputs = {process.communicate()[0] for process in processes}
    assert outputs == {b"28\n"}
    tails = [line for line in index.file_requests() if line.endswith(f"-{len(big_wheel()) - 1}")]
    assert len(tails) == 1


def test_interrupted_fetch_leaves_a_sound_cache(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-cp39-abi3-manylinux_2_17_x86_64.whl", big_wheel())
    script = (
        "import os\n"
        "from driftcheck.origins import cache\n"
        "from driftcheck.origins.select import target_tree\n"
        "real = os.replace\n"
        "os.replace = lambda old, new: os._exit(9) if new.endswith('.manifest') else real(old, new)\n"
        "target_tree('engine==1.0')\n"
    )
    variables = os.environ | {"DRIFTCHECK_CACHE_DIR": str(settings.cache_folder)}
    assert subprocess.run([sys.executable, "-c", script], check=False, env=variables).returncode == 9
    assert list(settings.cache.rglob(".writing-*"))
    assert target_tree("engine==1.0", settings=settings).read("engine/core.py") == b"def run(x): ...\n"


def test_answer_that_breaks_off(index: Index, settings: Settings) -> None:
    index.ranges = False
    index.cut_after = 1000
    index.add("engine", "engine-1.0-py3-none-any.whl", big_wheel())
    with pytest.raises(DriftcheckError, match="broke off"):
        target_tree("engine==1.0", settings=settings)
    index.cut_after = None
    assert target_tree("engine==1.0", settings=settings).read("engine/core.py")


def test_lock_that_nobody_lets_go_of(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    monkeypatch.setattr(cache, "_LOCK_SECONDS", 0.2)
    holder = cache.Cache(settings.cache)
    with (
        holder.locked(read_index_settings().key, "engine", "1.0"),
        pytest.raises(DriftcheckError, match="another process has been fetching engine"),
    ):
        target_tree("engine==1.0", settings=settings)
    assert target_tree("engine==1.0", settings=settings).read("engine/core.py")


def test_server_that_says_nothing(index: Index, settings: Settings) -> None:
    index.delay = 5.0
    with pytest.raises(DriftcheckError, match="timed out"):
        target_tree("engine==1.0", settings=replace(settings, timeout=0.2))


def test_traffic_is_counted(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    target_tree("engine==1.0", settings=settings)
    assert (settings.traffic.requests, settings.traffic.received) == (len(index.log), index.sent)


def test_odd_names_on_the_index_are_passed_over(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-\x1b[31many.whl", b"")
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    assert target_tree("engine==1.0", settings=settings).read("engine/core.py")


def test_answer_with_other_bytes_is_refused(index: Index, settings: Settings) -> None:
    index.lying_ranges = True
    index.add("engine", "engine-1.0-cp39-abi3-manylinux_2_17_x86_64.whl", big_wheel())
    with pytest.raises(DriftcheckError, match="answered a range of its bytes with other ones"):
        target_tree("engine==1.0", settings=settings)


def test_whole_file_must_match_the_index(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES), sha256="0" * 64)
    with pytest.raises(DriftcheckError, match="does not match the hash that the index gives"):
        target_tree("engine==1.0", settings=settings)


def test_latest_asks_the_index_every_time(index: Index, settings: Settings, offline: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    index.add("engine", "engine-1.2rc1-py3-none-any.whl", wheel("engine", "1.2rc1", SOURCES))
    index.add("engine", "engine-1.1-py3-none-any.whl", wheel("engine", "1.1", SOURCES), yanked=True)
    assert target_tree("engine==latest", settings=settings).version == "1.0"
    index.add("engine", "engine-1.0.5-py3-none-any.whl", wheel("engine", "1.0.5", SOURCES))
    assert target_tree("engine==latest", settings=settings).version == "1.0.5"
    assert available_versions("engine", settings) == ["1.0", "1.0.5", "1.2rc1"]
    assert latest_version("engine", offline) == "1.0.5"
    assert target_tree("engine==1.1", settings=settings).version == "1.1"


def test_what_is_offered_need_not_be_kept(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    target_tree("engine==1.0", settings=settings)
    (manifest,) = settings.cache.rglob("1.0.manifest")
    # A folder in its place can't be replaced by a file.
    (manifest.parent / "releases.json").mkdir()
    assert available_versions("engine", settings) == ["1.0"]
    assert target_tree("engine==latest", settings=settings).version == "1.0"


def test_only_prereleases_have_a_latest(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0a1-py3-none-any.whl", wheel("engine", "1.0a1", SOURCES))
    assert target_tree("engine==latest", settings=settings).version == "1.0a1"


def test_the_most_general_wheel_is_read(index: Index, settings: Settings) -> None:
    names = (
        "engine-1.0.tar.gz",
        "engine-1.0-cp310-cp310-macosx_11_0_arm64.whl",
        "engine-1.0-cp38-abi3-manylinux_2_17_aarch64.whl",
        "engine-1.0-cp310-cp310-manylinux_2_17_x86_64.whl",
        "engine-1.0-cp312-cp312-manylinux_2_17_x86_64.whl",
        "engine-1.0-cp38-abi3-manylinux_2_17_x86_64.whl",
        "engine-1.0-2-cp38-abi3-manylinux_2_17_x86_64.whl",
        "engine-1.0-py3-none-any.whl",
    )
    chosen = []
    for count in range(1, len(names) + 1):
        index.projects.clear()
        for name in names[:count]:
            is_wheel = name.endswith(".whl")
            files = {"engine/__init__.py": f"FILE = {name!r}\n"}
            index.add("engine", name, (wheel if is_wheel else sdist)("engine", "1.0", files))
        fresh = Settings(cache_folder=settings.cache / str(count))
        chosen.append(target_tree("engine==1.0", settings=fresh).read("engine/__init__.py").decode()[8:-2])
    assert chosen == list(names)


def test_local_version_stands_for_its_public_one(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0+cpu-py3-none-any.whl", wheel("engine", "1.0+cpu", SOURCES))
    assert target_tree("engine==1.0", settings=settings).version == "1.0+cpu"
    asked = len(index.log)
    assert target_tree("engine==1.0", settings=settings).version == "1.0+cpu"
    assert len(index.log) == asked


def test_purelib_members_keep_their_paths(index: Index, settings: Settings) -> None:
    path = "engine-1.0.data/purelib/engine/core.py"
    files = {path: "A = 1\n", "engine-1.0.data/scripts/tool.py": "B = 2\n"}
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", files))
    tree = client_tree("engine==1.0", settings=settings)
    assert [found for found in tree.paths if found.endswith(".py")] == [path]
    assert import_path(path, tree.roots) == "engine/core.py"


def test_source_distribution_shows_what_it_would_install(index: Index, settings: Settings) -> None:
    files = {
        "setup.py": "raise SystemExit('never run')\n",
        "src/plugin/__init__.py": "A = 1\n",
        "src/plugin/worker.py": "B = 2\n",
        "src/plugin.egg-info/top_level.txt": "plugin\n",
        "tests/test_plugin.py": "C = 3\n",
    }
    index.add("plugin", "plugin-1.0.tar.gz", sdist("plugin", "1.0", files, requirements=("engine==0.9",)))
    tree = client_tree("plugin==1.0", settings=settings)
    assert everything(tree) == {"plugin/__init__.py": b"A = 1\n", "plugin/worker.py": b"B = 2\n"}
    assert tree.requirements == ("engine==0.9",)


def test_zipped_source_distribution(index: Index, settings: Settings) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("plugin-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
        archive.writestr("plugin-1.0/plugin/__init__.py", "A = 1\n")
        archive.writestr("plugin-1.0/setup.py", "")
    index.add("plugin", "plugin-1.0.zip", stream.getvalue())
    assert everything(client_tree("plugin==1.0", settings=settings)) == {"plugin/__init__.py": b"A = 1\n"}


def test_tree_survives_pickling(index: Index, settings: Settings) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    tree = target_tree("engine==1.0", settings=settings)
    copy = pickle.loads(pickle.dumps(tree))
    assert everything(copy) == everything(tree)
    assert [copy.digest(path) for path in SOURCES] == [tree.digest(path) for path in SOURCES]


def test_cache_folder_that_cannot_be_made(index: Index, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    with pytest.raises(DriftcheckError, match="name another one with DRIFTCHECK_CACHE_DIR"):
        target_tree("engine==1.0", settings=Settings(cache_folder=tmp_path / "file" / "cache"))


def test_metadata_cannot_choose_where_it_is_cached(index: Index, settings: Settings) -> None:
    stream = io.BytesIO()
    about = b"Metadata-Version: 2.1\nName: ../../../evil\nVersion: ../../9\n"
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("engine/__init__.py", b"")
        archive.writestr("engine-1.0.dist-info/METADATA", about)
        lines = [record_line("engine/__init__.py", b""), record_line("engine-1.0.dist-info/METADATA", about)]
        archive.writestr("engine-1.0.dist-info/RECORD", "\n".join(lines))
    index.add("engine", "engine-1.0-py3-none-any.whl", stream.getvalue())
    tree = target_tree("engine==1.0", settings=settings)
    assert (tree.name, tree.version) == ("engine", "1.0")
    assert {file.parent.parent.parent for file in settings.cache.rglob("*.manifest")} == {settings.cache / "releases"}
