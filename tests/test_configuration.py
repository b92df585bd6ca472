"""`[tool.driftcheck]` is read from the right file, and what is wrong in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftcheck.configuration import Configuration, load_configuration, parse_kinds
from driftcheck.errors import DriftcheckError
from driftcheck.model import Kind, Severity

EVERYTHING = """
[tool.driftcheck]
against = "vllm==0.16.0"
baseline = "vllm==0.11.0"
python = ".venv/bin/python"
model = "LlamaForCausalLM"
select = ["unknown-argument", "missing-argument"]
ignore = ["private-usage"]
fail-on = "warning"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path, text: str | bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_bytes(text if isinstance(text, bytes) else text.encode())


def test_every_key(here: Path) -> None:
    write(here, EVERYTHING)
    assert load_configuration(".") == Configuration(
        against="vllm==0.16.0",
        baseline="vllm==0.11.0",
        python=".venv/bin/python",
        model="LlamaForCausalLM",
        select=frozenset({Kind.UNKNOWN_ARGUMENT, Kind.MISSING_ARGUMENT}),
        ignore=frozenset({Kind.PRIVATE_USAGE}),
        fail_on=Severity.WARNING,
    )


@pytest.mark.parametrize("client", [".", "speculators==0.3.0", "speculators", "missing/folder", "file.py"])
def test_without_a_table_nothing_is_set(client: str, here: Path) -> None:
    write(here, "[project]\nname = 'driftcheck-user'\n")
    (here / "file.py").touch()
    assert load_configuration(client) == Configuration()


def test_the_client_s_own_folder_comes_first(here: Path) -> None:
    write(here, '[tool.driftcheck]\nagainst = "vllm==0.16.0"')
    write(here / "client", '[tool.driftcheck]\nbaseline = "vllm==0.11.0"')
    assert load_configuration("client") == Configuration(baseline="vllm==0.11.0")


def test_else_the_working_folder_counts(here: Path) -> None:
    write(here, '[tool.driftcheck]\nagainst = "vllm==0.16.0"')
    write(here / "client", "[project]\nname = 'client'")
    assert load_configuration("client").against == "vllm==0.16.0"
    assert load_configuration("speculators==0.3.0").against == "vllm==0.16.0"


def test_a_client_elsewhere_does_not_choose_the_program_to_run(here: Path) -> None:
    write(here / "client", '[tool.driftcheck]\npython = "./evil"\nagainst = "vllm"')
    settings = load_configuration("client")
    assert settings.python is None
    assert settings.against == "vllm"
    assert "'python'" in settings.notices[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "tool.driftcheck.againts = 'vllm'",
            "pyproject.toml: [tool.driftcheck] has no key 'againts': did you mean 'against'?",
        ),
        (
            "tool.driftcheck.x = 1",
            "has no key 'x': choose from against, baseline, select, ignore, fail-on, python, model",
        ),
        ("tool.driftcheck.against = ' '", "against in [tool.driftcheck] is empty; leave it out, or say what it is"),
        ("tool.driftcheck.against = 16", "against in [tool.driftcheck] must be a string, not an integer"),
        ("tool.driftcheck.python = true", "python in [tool.driftcheck] must be a string, not a boolean"),
        ("tool.driftcheck.select = 'a'", "select in [tool.driftcheck] must be a list of kinds, not a string"),
        ("tool.driftcheck.ignore = [1.5]", "ignore in [tool.driftcheck] must hold strings, not a float"),
        ("tool.driftcheck.ignore = [2020-01-01]", "must hold strings, not a date or time"),
        (
            "tool.driftcheck.ignore = ['mising-argument']",
            "kind of finding 'mising-argument': did you mean 'missing-argument'?",
        ),
        ("tool.driftcheck.fail-on = 'eror'", "fail-on in [tool.driftcheck] can't be 'eror': did you mean 'error'?"),
        ("tool.driftcheck = 'on'", "tool.driftcheck must be a table"),
        ("tool.driftcheck =", "pyproject.toml is no valid TOML"),
        ("x = " + "[" * 100_000 + "\ntool.driftcheck.x=1", "pyproject.toml is no valid TOML"),
        (b"tool.driftcheck.against = '\xff'", "pyproject.toml is no valid TOML"),
        ("tool.driftcheck.against = 'vllm'\n#" + "x" * 2**20, "pyproject.toml is larger than 1 MiB"),
    ],
)
def test_what_is_wrong_is_named(text: str | bytes, message: str, here: Path) -> None:
    write(here, text)
    with pytest.raises(DriftcheckError) as caught:
        load_configuration(".")
    assert message in str(caught.value)


def test_a_folder_in_the_file_s_place_is_passed_over(here: Path) -> None:
    (here / "pyproject.toml").mkdir()
    assert load_configuration(".") == Configuration()


def test_a_kind_unlike_any_other_is_refused_without_a_guess() -> None:
    with pytest.raises(DriftcheckError, match=r"^unknown kind of finding 'zzz'$"):
        parse_kinds(["missing-argument", "zzz"])
