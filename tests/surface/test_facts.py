"""Facts: what conditions come to for a target is what they come to where that target runs."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from driftcheck.surface.program import Program
from driftcheck.surface.scopes import ModuleScope
from driftcheck.tree import MemoryTree

OLD = "0.11.0"
NEW = "0.16.0"
VERSIONS = (OLD, NEW, "0.16.1.dev5+gabc", "0.17.0rc1", "0.12.0+cu129")

INIT = """
from .version import __version__, __version_tuple__
from .core import Engine
"""
CORE_OLD = """
import dataclasses

@dataclasses.dataclass
class Config:
    model: str
    task: str = ""
    levels: list = dataclasses.field(default_factory=list)

class Engine:
    is_old = True

    def __init__(self, model, slow=False):
        self.model = model

    def abort(self, request): ...
    def step(self, tags=None): ...
    async def run(self): ...

def start(model, slow=False): ...
def old_name(x): ...
def Runner(): ...
"""
CORE_NEW = """
import dataclasses

@dataclasses.dataclass
class Config:
    model: str
    levels: list = dataclasses.field(default_factory=list)

class Engine:
    def __init__(self, model, **options):
        self.model = model

    def finish(self, requests): ...
    def step(self): ...
    def run(self): ...

def start(model, *, fast=True): ...
def new_name(x): ...
class Runner: ...
"""
CLIENT = """
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import re
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version as metadata_version

import packaging.version
import vllm
import vllm.core
from packaging import version
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version, parse
from vllm import core
from vllm import __version__ as vllm_version
from vllm.core import Config, Engine, Runner, start

from app import flags
from app.flags import IS_NEW, LOWEST, is_new, LazyName

try:
    from vllm.core import old_name
except ImportError:
    old_name = None

try:
    import vllm.added as added
    HAS_ADDED = True
except ImportError:
    HAS_ADDED = False

HAS_NEW_NAME = False
try:
    from vllm.core import new_name
    HAS_NEW_NAME = True
except ImportError:
    pass

if Version(vllm.__version__) >= Version("0.12"):
    KIND = "new"
else:
    KIND = "old"

try:
    INSTALLED = metadata_version("vllm")
except PackageNotFoundError:
    INSTALLED = None

try:
    finish = vllm.core.Engine.finish
except AttributeError:
    finish = None

parameters = inspect.signature(start).parameters
field_names = {field.name for field in dataclasses.fields(Config)}
MAJOR, MINOR = (int(part) for part in vllm.__version__.split(".")[:2])
supported = []
supported.append(Engine)
_CACHED = None


def version_is(wanted):
    current = os.environ.get("PLUGIN_VLLM_VERSION") or vllm.__version__
    try:
        return Version(current) == Version(wanted)
    except InvalidVersion:
        raise ValueError(f"Invalid version {current}")


@cache
def version_is_too(wanted: str):
    if os.getenv("PLUGIN_VLLM_VERSION") is not None:
        found = os.environ["PLUGIN_VLLM_VERSION"]
    else:
        import vllm
        found = vllm.__version__
    return parse(found) == parse(wanted)


def at_least(package="vllm", minimum="0.7.3"):
    return version.parse(installed(package)) >= version.parse(minimum)


def installed(package):
    try:
        return metadata_version(package)
    except PackageNotFoundError:
        return None


def available(minimum=None):
    there, found = about("vllm", return_version=True)
    if there:
        base = Version(Version(found).base_version)
        if not (Version("0.1") <= base <= Version("0.2")):
            print("unsupported")
        if minimum is not None and Version(found) < Version(minimum):
            return False
    return there


def about(name, return_version=False):
    there = importlib.util.find_spec(name) is not None
    found = "N/A"
    if there and return_version:
        try:
            distributions = importlib.metadata.packages_distributions()[name]
            found = importlib.metadata.version(distributions[0] if name not in distributions else name)
        except (PackageNotFoundError, KeyError):
            found = getattr(importlib.import_module(name), "__version__", "N/A")
    if return_version:
        return there, found
    return there


def dev_counts_as_new(minimum):
    found = vllm.__version__
    if found is None or "dev" in found:
        return True
    return parse(found) >= parse(minimum)


@lru_cache
def has_argument(function, name):
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            if parameter.name == name:
                return True
    return False


def accepts(function, name):
    signature = inspect.signature(function)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
        return True
    return name in signature.parameters


def fields_of(class_):
    return [field.name for field in dataclasses.fields(class_)]


def can_import():
    try:
        from vllm.core import old_name
    except ImportError:
        return False
    return True


def numbers(text):
    found = re.match(r"(\\d+)\\.(\\d+)(?:\\.(\\d+))?", text)
    return int(found.group(1)), int(found.group(2))


def own_version(value):
    if isinstance(value, Version):
        return value
    found = re.match(r"[0-9]+(?:\\.[0-9]+)*", value)
    text = found.group(0).rstrip(".")
    if text != value:
        text += ".1"
    return Version(text)


def cached():
    global _CACHED
    if _CACHED is None:
        _CACHED = Version(vllm.__version__) >= Version("0.12")
    return _CACHED


def first_of(names):
    for name in names:
        if hasattr(core, name):
            return name
    return None


def collected():
    found = []
    for name in ("old_name", "new_name"):
        if hasattr(vllm.core, name):
            found.append(name)
    return found


class Runtime:
    limit = Version(vllm.__version__) >= Version("0.12")

    def __init__(self):
        self.is_new = IS_NEW
        self.kind = "unknown"
        if Version(vllm.__version__) < Version("0.12"):
            self.slow = True
        else:
            self.slow = False
        self.flag = False
        if is_new():
            self.flag = True

    @property
    def is_old(self):
        return not self.is_new

    def at_least(self, minimum):
        return parse(vllm.__version__) >= parse(minimum)

    @staticmethod
    def newer(minimum):
        return parse(vllm.__version__) >= parse(minimum)


runtime = Runtime()
"""
FLAGS = """
import sys
from typing import TYPE_CHECKING

import vllm
from packaging.version import Version

from .more import *

LOWEST = "0.12"
IS_NEW = Version(vllm.__version__) >= Version(LOWEST)
LazyName = None


def is_new():
    return not IS_OLD


IS_OLD = not IS_NEW
"""
MORE = """
import vllm

STARRED = vllm.__version__.startswith("0.11.")
"""

DECIDED = (
    'Version(vllm.__version__) >= Version("0.12")',
    'version.parse(vllm.__version__) < version.parse("0.16.1")',
    'packaging.version.parse(vllm_version) <= packaging.version.Version("0.16.0")',
    'Version(importlib.metadata.version("vllm")) > Version("0.16.0")',
    'Version(importlib.metadata.distribution("vllm").version) > Version("0.16.0")',
    "Version(vllm.version.__version__).release >= (0, 12)",
    "Version(vllm_version).minor >= 12",
    "(Version(vllm_version).major, Version(vllm_version).minor) < (0, 12)",
    'Version(Version(vllm_version).base_version) == Version("0.12.0")',
    "Version(vllm_version).is_prerelease",
    "Version(vllm_version).is_devrelease",
    'Version(vllm_version).local == "cu129"',
    'Version("0.10") <= Version(vllm_version) < Version("0.12")',
    'not Version(vllm_version) >= Version("0.12")',
    'tuple(int(part) for part in vllm.__version__.split(".")[:2]) >= (0, 12)',
    'tuple(map(int, vllm.__version__.split(".")[:2])) >= (0, 12)',
    'list(map(int, vllm.__version__.split(".")[:2])) >= [0, 12]',
    'int(vllm.__version__.split(".")[1]) >= 12',
    "vllm.__version_tuple__ >= (0, 12)",
    "vllm.__version_tuple__[1] >= 12",
    'vllm.__version__ == "0.11.0"',
    'vllm.__version__ in ("0.10.2", "0.11.0")',
    'vllm.__version__.startswith(("0.10.", "0.11."))',
    '"dev" in vllm.__version__',
    '"+" in vllm_version',
    'vllm.__version__.partition("+")[0] == "0.12.0"',
    'f"v{vllm.__version__}" == "v0.11.0"',
    'SpecifierSet(">=0.10,<0.12").contains(vllm.__version__, prereleases=True)',
    'SpecifierSet(">=0.12").contains(Version(vllm.__version__), prereleases=True)',
    'getattr(vllm, "__version__", "0.0.0") == "0.11.0"',
    'bool(re.match(r"0\\.11\\.", vllm.__version__))',
    "MINOR >= 12",
    "IS_NEW",
    "flags.IS_NEW",
    "flags.IS_OLD",
    "flags.STARRED",
    "is_new()",
    "flags.is_new()",
    "Version(vllm.__version__) >= Version(LOWEST)",
    'KIND == "new"',
    "runtime.is_new",
    "runtime.is_old",
    "runtime.slow",
    "runtime.flag",
    "runtime.limit",
    "Runtime.limit",
    'runtime.at_least("0.12")',
    'Runtime.newer("0.12")',
    'version_is("0.11.0")',
    'version_is_too("0.11.0")',
    'at_least(minimum="0.12")',
    'at_least("vllm", "0.16.0")',
    "available()",
    'available(minimum="0.12")',
    'about("vllm")',
    'dev_counts_as_new("0.12")',
    "numbers(vllm.__version__) >= (0, 12)",
    'own_version(vllm.__version__) > own_version("0.16.0")',
    "cached()",
    "can_import()",
    "INSTALLED is None",
    "old_name is None",
    "old_name is not None",
    "HAS_ADDED",
    "HAS_NEW_NAME",
    "finish is None",
    'hasattr(core, "old_name")',
    'hasattr(vllm.core, "new_name")',
    'hasattr(Engine, "abort")',
    'hasattr(Engine, "is_old")',
    'hasattr(Config, "task")',
    'hasattr(Config, "levels")',
    'getattr(core, "old_name", None) is not None',
    'getattr(Engine, "abort", None) is None',
    'callable(getattr(core, "old_name", None))',
    '"old_name" in dir(core)',
    '"abort" in dir(Engine)',
    '"abort" in Engine.__dict__',
    '"abort" in vars(Engine)',
    '"old_name" in vars(core)',
    '"slow" in inspect.signature(start).parameters',
    '"slow" in parameters',
    '"slow" not in inspect.signature(Engine).parameters',
    '"slow" in inspect.signature(Engine.__init__).parameters',
    '"tags" in inspect.signature(Engine.step).parameters.keys()',
    'inspect.signature(start).parameters.get("slow") is not None',
    '{"model", "slow"} <= set(inspect.signature(start).parameters)',
    '{"model", "slow"}.issubset(inspect.signature(start).parameters)',
    'tuple(inspect.signature(start).parameters) == ("model", "slow")',
    "len(inspect.signature(Engine.step).parameters) == 2",
    'inspect.signature(start).parameters["model"].default is inspect.Parameter.empty',
    '"fast" in inspect.getfullargspec(start).kwonlyargs',
    '"slow" in inspect.getfullargspec(start).args',
    '"slow" in start.__code__.co_varnames',
    'has_argument(start, "slow")',
    'accepts(Engine, "slow")',
    'accepts(start, "slow")',
    '"task" in field_names',
    '"task" in {field.name for field in dataclasses.fields(Config)}',
    'any(field.name == "task" for field in dataclasses.fields(Config))',
    '"task" in Config.__dataclass_fields__',
    '"task" in Config.__annotations__',
    '"task" in fields_of(Config)',
    'importlib.util.find_spec("vllm.added") is not None',
    'importlib.util.find_spec("vllm.added")',
    'importlib.util.find_spec("vllm") is None',
    "inspect.iscoroutinefunction(Engine.run)",
    "isinstance(Runner, type)",
    "inspect.isclass(Runner)",
    'first_of(["old_name", "new_name"]) == "old_name"',
    'collected() == ["old_name"]',
    'all(hasattr(Engine, name) for name in ("step", "abort"))',
    "True if IS_NEW else False",
    '(lambda minimum: Version(vllm.__version__) >= Version(minimum))("0.12")',
)

UNDECIDED = (
    'Version(packaging.__version__) >= Version("0.12")',
    'Version(importlib.metadata.version("packaging")) >= Version("0.12")',
    'os.environ.get("X") is None',
    'os.getenv("X") == "1"',
    "LazyName is None",
    "_CACHED is None",
    "flags.LazyName",
    "runtime.kind == 'unknown'",
    'importlib.util.find_spec("numpy") is None',
    'hasattr(os, "fork")',
    "LOWEST == '0.12'",
    "len(LOWEST) > 3",
    "os.getpid() and vllm.__version__ != ''",
    "Runtime is None",
    "is_new is None",
    "'numpy' in globals()",
    "len(supported) == 1",
)


def _files(version: str) -> dict[str, str]:
    is_old = Version(version) < Version("0.12")
    parts = version.replace("+", ".").split(".")
    numbers = tuple(int(part) if part.isdigit() else part for part in parts)
    files = {
        "vllm/__init__.py": INIT,
        "vllm/version.py": f"__version__ = {version!r}\n__version_tuple__ = {numbers!r}\n",
        "vllm/core.py": CORE_OLD if is_old else CORE_NEW,
    }
    if not is_old:
        files["vllm/added.py"] = ""
    return files


def _client() -> dict[str, str]:
    return {"app/__init__.py": "", "app/main.py": CLIENT, "app/flags.py": FLAGS, "app/more.py": MORE}


def _program(version: str, client: dict[str, str]) -> Program:
    return Program(MemoryTree(_files(version), "vllm", version), MemoryTree(client, "app", "1.0"))


def _truth(program: Program, expression: str, module: str = "app.main") -> bool | None:
    declaration = program.module(module)
    assert declaration is not None
    return program.facts.truth(ast.parse(expression, mode="eval").body, ModuleScope(program, declaration))


RUN = """
import json, sys
import app.main
answers = {}
for expression in json.load(sys.stdin):
    answers[expression] = bool(eval(expression, vars(app.main)))
print(json.dumps(answers))
"""


@pytest.fixture(scope="module", params=VERSIONS)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bool]]:
    """A release of the target, and what every condition comes to where it is installed."""
    version: str = request.param
    folder = tmp_path_factory.mktemp("site")
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n"
    record = {f"vllm-{version}.dist-info/METADATA": metadata, f"vllm-{version}.dist-info/top_level.txt": "vllm\n"}
    for path, text in {**_files(version), **_client(), **record}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    answers: dict[str, bool] = json.loads(_run(folder, list(DECIDED)))
    return version, answers


def _run(folder: Path, expressions: list[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(expressions),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()[-1]


@pytest.mark.parametrize("expression", DECIDED)
def test_a_condition_is_decided_as_it_runs(expression: str, release: tuple[str, dict[str, bool]]) -> None:
    version, answers = release
    assert _truth(_program(version, _client()), expression) is answers[expression]


@pytest.mark.parametrize("expression", UNDECIDED)
def test_what_the_target_has_no_part_in_stays_open(expression: str) -> None:
    assert _truth(_program(NEW, _client()), expression) is None


VERSION = st.builds(
    lambda release, suffix: ".".join(map(str, release)) + suffix,
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
    st.sampled_from(("", "rc1", ".dev3", ".post1", "+cpu", "a2", ".dev4+gabc")),
)


@settings(max_examples=60, deadline=None)
@given(installed=VERSION, bound=VERSION, operator=st.sampled_from(("<", "<=", ">", ">=", "==", "!=")))
def test_versions_compare_as_they_do_for_pip(installed: str, bound: str, operator: str) -> None:
    client = {"app/main.py": "import vllm\nfrom packaging.version import Version\n"}
    program = Program(MemoryTree({"vllm/__init__.py": ""}, "vllm", installed), MemoryTree(client, "app"))
    expected = eval(f"one {operator} other", {"one": Version(installed), "other": Version(bound)})
    assert _truth(program, f"Version(vllm.__version__) {operator} Version({bound!r})") is expected


def _program_of(client: str, *, version: str = NEW, others: dict[str, str] | None = None) -> Program:
    return _program(version, {"app/__init__.py": "", "app/main.py": client, **(others or {})})


def test_a_flag_that_a_function_sets_is_not_known() -> None:
    program = _program_of(
        """
import vllm
from packaging.version import Version
IS_NEW = Version(vllm.__version__) >= Version("0.12")
def forget():
    global IS_NEW
    IS_NEW = False
"""
    )
    assert _truth(program, "IS_NEW") is None


def test_a_flag_that_an_unknown_branch_sets_is_not_known() -> None:
    program = _program_of(
        """
import os
import vllm
from packaging.version import Version
IS_NEW = Version(vllm.__version__) >= Version("0.12")
if os.getenv("FORCE"):
    IS_NEW = False
"""
    )
    assert _truth(program, "IS_NEW") is None


def test_an_override_by_the_environment_leaves_the_target_s_version_standing() -> None:
    program = _program_of(
        """
import os
import vllm
from packaging.version import Version
if os.getenv("PLUGIN_VLLM_VERSION"):
    VERSION = os.environ["PLUGIN_VLLM_VERSION"]
else:
    VERSION = vllm.__version__
"""
    )
    assert _truth(program, 'Version(VERSION) >= Version("0.12")') is True


def test_a_helper_that_may_answer_otherwise_decides_nothing() -> None:
    program = _program_of(
        """
import os
import vllm
from packaging.version import Version
def forced():
    if os.path.exists("force"):
        return True
    return Version(vllm.__version__) < Version("0.12")
def guarded():
    try:
        return probe(vllm)
    except ValueError:
        return True
    except Exception:
        return False
def counted():
    found = []
    for name in os.listdir("."):
        if hasattr(vllm, name):
            found.append(name)
    return len(found) == 0
def endless():
    return endless() or Version(vllm.__version__) < Version("0.12")
def growing():
    text = vllm.__version__
    while True:
        text += text
    return text
"""
    )
    for helper in ("forced()", "guarded()", "counted()", "endless()", "growing()"):
        assert _truth(program, helper) is None, helper


def test_a_helper_that_agrees_with_itself_on_every_way_is_decided() -> None:
    program = _program_of(
        """
import os
import vllm
from packaging.version import Version
def old():
    if os.path.exists("force"):
        return False
    return Version(vllm.__version__) < Version("0.12")
"""
    )
    assert _truth(program, "old()") is False


def test_what_the_client_itself_stores_is_not_missing() -> None:
    program = _program_of("from vllm.core import Engine\nEngine.patched = True\nsetattr(Engine, 'marked', 1)\n")
    assert _truth(program, "hasattr(Engine, 'patched')") is None
    assert _truth(program, "hasattr(Engine, 'marked')") is None
    assert _truth(program, "hasattr(Engine, 'gone')") is False


def test_a_flag_of_a_module_that_replaces_itself_by_a_lazy_one() -> None:
    package = """
import sys
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from .flags import is_new
else:
    sys.modules[__name__] = Lazy(__name__, {"flags": ["is_new"]})
"""
    flags = """
import vllm
from packaging.version import Version
def is_new():
    return Version(vllm.__version__) >= Version("0.12")
"""
    others = {"app/lazy/__init__.py": package, "app/lazy/flags.py": flags}
    assert _truth(_program_of("from app.lazy import is_new\n", others=others), "is_new()") is True


def test_a_version_that_the_only_calls_give_to_a_parameter() -> None:
    client = """
import vllm
from packaging.version import Version, parse
def choose(version):
    return version
choose(parse(vllm.__version__))
def pick(version):
    return version
pick(parse(vllm.__version__))
pick(parse("0.1"))
"""
    program = _program_of(client)
    for name, expected in (("choose", True), ("pick", None)):
        function = program.module("app.main").names[name][0].function  # type: ignore[union-attr]
        assert function is not None
        test = ast.parse('version >= parse("0.12")', mode="eval").body
        assert program.facts.truth(test, program.function_scope(function)) is expected


def test_patterns_that_may_run_away_are_left_alone() -> None:
    program = _program_of("import re\nimport vllm\n")
    assert _truth(program, 're.match(r"(\\d+)*$", vllm.__version__) is None') is None
    assert _truth(program, 're.match(r"(", vllm.__version__) is None') is None
    assert _truth(program, 're.match(r"' + r"\d*" * 9 + 'x", vllm.__version__) is None') is None
    assert _truth(program, 're.match(r"\\d+\\.16\\.", vllm.__version__) is not None') is True


def test_a_target_without_a_version_decides_no_comparison() -> None:
    client = {"app/main.py": "import vllm\nfrom packaging.version import Version\n"}
    program = Program(MemoryTree({"vllm/__init__.py": ""}, "vllm"), MemoryTree(client, "app"))
    assert _truth(program, 'Version(vllm.__version__) >= Version("0.12")') is None


def test_another_target_is_asked_by_its_own_name() -> None:
    client = {
        "app/main.py": "from importlib.metadata import version\nfrom packaging.version import Version\nimport other\n"
    }
    program = Program(MemoryTree({"other/__init__.py": ""}, "other", "2.0"), MemoryTree(client, "app"))
    assert _truth(program, 'Version(version("other")) >= Version("1.9")') is True
    assert _truth(program, 'Version(version("vllm")) >= Version("1.9")') is None
