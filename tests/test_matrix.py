"""One client on many releases: what fits, what breaks first, and what the metadata should say."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from driftcheck.audit import Sources
from driftcheck.cli import main
from driftcheck.errors import DriftcheckError
from driftcheck.matrix import matrix_of, releases_of
from driftcheck.model import Matrix
from driftcheck.report.matrix_page import render_matrix_page
from driftcheck.report.matrix_text import render_matrix, render_matrix_json, render_matrix_markdown
from driftcheck.tree import MemoryTree

CLIENT = """import vllm

vllm.start(size=1)
vllm.stop()
"""
START, STOP = "def start(size): ...\n", "def stop(): ...\n"
# `stop` is new in 2, `start` takes another name in 4, and in 6 both again.
SOURCES = {
    "1": START,
    "2": START + STOP,
    "3": START + STOP,
    "4": "def start(length): ...\n" + STOP,
    "5": "def start(length): ...\n",
    "6": START + STOP,
}


def release(version: str) -> MemoryTree:
    """One release of the target; 7 can't be had."""
    if version not in SOURCES:
        raise DriftcheckError(f"vllm {version} <can't> be had")
    return MemoryTree({"vllm/__init__.py": SOURCES[version]}, "vllm", version)


def found(*versions: str, requirement: str = "vllm>=2,<5", client: str = CLIENT) -> Matrix:
    """The matrix of a client that was written for 2."""
    tree = MemoryTree({"app.py": client}, "app", "1.0", requirements=(requirement,) if requirement else ())
    sources = Sources(tree, release("2"), release("2"), None, (), None, None, None)
    return matrix_of(sources, versions, release)


def test_what_fits_and_what_breaks() -> None:
    matrix = found("1", "2", "3", "4", "5", "6")
    assert [release.fits for release in matrix.releases] == [False, True, True, False, False, True]
    assert matrix.fitting == (("2", "3"), ("6", "6"))
    assert matrix.bound == "vllm>=2,<4"
    assert [release.version for release in matrix.too_wide] == ["4"]
    assert [release.version for release in matrix.too_narrow] == ["6"]
    assert [finding.message for finding in matrix.releases[0].breaks] == ["module vllm has no attribute stop"]


def test_what_all_of_them_have_is_no_break() -> None:
    matrix = found("2", "3", client=CLIENT + "vllm.never\n")
    assert [(release.breaks, release.others) for release in matrix.releases] == [((), 1), ((), 1)]
    assert matrix.notices == (
        "not counted: a finding that all of these releases have (app.py:5: module vllm has no attribute never)",
    )


def test_what_only_the_baseline_and_some_have_is_a_break() -> None:
    matrix = found("1", "2", "3", "6", client="import vllm\nvllm.start(length=1)\n")
    assert [release.fits for release in matrix.releases] == [True, True, True, True]
    assert matrix.notices
    matrix = found("2", "4", "6", client="import vllm\nvllm.start(length=1)\n")
    assert [release.fits for release in matrix.releases] == [False, True, False]
    assert (matrix.fitting, matrix.notices) == ((("4", "4"),), ())


def test_a_client_that_does_not_use_the_target() -> None:
    matrix = found("1", "2", client="import os\n")
    assert (matrix.bound, matrix.notices) == (None, ("no file of the client uses vllm",))


def test_files_that_could_not_be_read_are_told() -> None:
    app = MemoryTree({"app.py": "import vllm\n", "bad.py": "import vllm\ndef f(:\n"}, "app", "1.0")
    told = matrix_of(Sources(app, release("2"), release("2"), None, (), None, None, None), ["1", "2"], release)
    assert told.notices[-1].startswith("not checked: a file that can't be read (bad.py: syntax error on line 2")


def test_a_right_requirement_and_none() -> None:
    matrix = found("1", "2", "3", "4", requirement="vllm>=2,<4")
    assert (matrix.too_wide, matrix.too_narrow, matrix.bound) == ((), (), "vllm>=2,<4")
    assert "vllm<4,>=2: which is right for these releases" in render_matrix([matrix], width=100)
    without = found("2", "3", "4", requirement="")
    assert (without.requirement, without.too_wide, without.bound) == (None, (), "vllm>=2,<4")


def test_nothing_fits() -> None:
    matrix = found("4", "5")
    assert (matrix.fitting, matrix.bound) == ((), None)
    assert "fits      none of these releases" in render_matrix([matrix], width=100)


def test_a_release_that_cannot_be_read_is_told_and_ends_no_range() -> None:
    matrix = found("2", "7", "3", "4")
    assert matrix.releases[1].fault == "vllm 7 <can't> be had"
    assert matrix.fitting == (("2", "3"),)
    text = render_matrix([matrix], width=100)
    assert "7  not read\n     vllm 7 <can't> be had" in text
    with pytest.raises(DriftcheckError, match="no release can be read: vllm 7"):
        found("7", "8")


def test_the_text_puts_releases_together() -> None:
    text = render_matrix([found("1", "2", "3", "4", "5", "6")], width=100)
    assert (
        text
        == """app 1.0 on 6 releases of vllm, written for 2

  1       1 error
          app.py:4: module vllm has no attribute stop
  2 to 3  fits
  4       1 error
          app.py:3: start(): unknown argument 'size'
  5       2 errors
          app.py:4: module vllm has no attribute stop
  6       fits

  fits      2 to 3, 6
  breaks    first with 4: vllm.start
  requires  vllm<5,>=2: too wide, it breaks with 4 (app.py:3: start(): unknown argument 'size'); too
            narrow, 6 would do as well
  write     vllm>=2,<4
"""
    )


def test_several_clients_have_a_row_each() -> None:
    matrices = [found("1", "2", "7", "4"), found("2", "3", "10", client="import vllm\nvllm.start(1)\n")]
    *_, head, empty, first, second = render_matrix(matrices, width=100).splitlines()
    assert head == "2 clients on 6 releases of vllm, 1 to 10: + fits, x breaks, ? not read"
    assert not empty
    assert first == "  app 1.0  x+ x?   2"
    assert second == "  app 1.0   ++  ?  2 to 3"
    narrow = render_matrix(matrices, width=20).splitlines()
    assert narrow[-1] == "  app 1.0  2 to 3"
    markdown = render_matrix_markdown(matrices).splitlines()
    assert markdown[2] == "| app 1.0 | 2 | vllm\\<5,\\>=2 | vllm\\>=2,\\<4 |"


def test_json_and_markdown_say_the_same() -> None:
    matrix = found("1", "2", "3", "4")
    (told,) = json.loads(render_matrix_json([matrix]))["matrices"]
    assert (told["bound"], told["fitting"], told["too_wide"]) == ("vllm>=2,<4", [["2", "3"]], ["4"])
    assert [entry["verdict"] for entry in told["releases"]] == ["breaks", "fits", "fits", "breaks"]
    assert told["releases"][3]["breaks"][0]["line"] == 3
    markdown = render_matrix_markdown([matrix])
    assert "| 2 to 3 | **fits** |  |" in markdown
    assert "- write: vllm\\>=2,\\<4" in markdown


def test_what_was_not_looked_at_is_said() -> None:
    assert "  write     vllm>=2 (nothing older than 2 or newer than 3 was looked at)\n" in render_matrix(
        [found("2", "3")], width=100
    )
    assert "  write     vllm>=2 (nothing newer than 3 was looked at)\n" in render_matrix(
        [found("1", "2", "3")], width=100
    )
    assert "vllm>=2,<4 (nothing older than 2 was looked at)\n" in render_matrix([found("2", "3", "4")], width=100)


def test_metadata_that_allow_nothing_of_it() -> None:
    text = render_matrix([found("2", "3", requirement="vllm==1")], width=100)
    assert "requires  vllm==1: too narrow, 2, 3 would do as well" in text
    assert "vllm==1: which allows none of these releases" in render_matrix(
        [found("4", "5", requirement="vllm==1")], width=100
    )


class Page(HTMLParser):
    """What a page consists of, and whether all that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        for name, value in attrs:
            assert not (name in ("src", "href") and not (value or "").startswith("#")), "the page loads nothing"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_stands_alone_and_lets_nothing_in() -> None:
    client = CLIENT.replace("vllm.stop()", 'vllm.stop("<script>alert(1)</script>")')
    matrices = [found("1", "2", "7", "4", client=client), found("2", "3")]
    text = render_matrix_page(matrices)
    page = Page(text)
    assert page.open == []
    assert page.tags.count("script") == 1
    assert page.tags.count("table") == 3
    assert "<script>alert(1)" in "".join(page.words)
    assert re.search(r"\bvllm 7 <can't> be had\b", "".join(page.words))
    assert text == render_matrix_page(matrices)


def test_each_finding_has_a_page_of_its_own() -> None:
    text = render_matrix_page([found("1", "2", "3", "4", "5")])
    sections = re.findall(r'<section id="(finding-0-\d)">.*?<h2>(.*?)</h2>.*?</section>', text, re.DOTALL)
    assert sections == [
        ("finding-0-0", "start(): unknown argument &#x27;size&#x27;"),
        ("finding-0-1", "module vllm has no attribute stop"),
    ]
    assert text.count('href="#finding-0-0"') == 2
    assert "<dd><code>2 of 5 releases: 4, 5</code></dd>" in text
    assert "<dd><code>2 of 5 releases: 1, 5</code></dd>" in text


@pytest.mark.index
def test_a_real_client(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "speculators==0.3.0", "--releases", ">=0.10.2,<0.13", "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["matrices"]
    assert told["fitting"] == [["0.11.0", "0.11.0"]]
    assert told["requirement"] == "vllm==0.11.0 in its extra datagen"
    assert [release["version"] for release in told["releases"]] == ["0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0"]


@pytest.mark.index
def test_releases() -> None:
    assert releases_of(">=0.11,<0.13") == ["0.11.0", "0.11.1", "0.11.2", "0.12.0"]
    known = releases_of(None)
    assert known.index("0.9.0") < known.index("0.11.0") < known.index("0.33.0")
    with pytest.raises(DriftcheckError, match="is no range of releases"):
        releases_of("new ones")
