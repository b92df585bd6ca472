"""One client on many releases: what fits, what breaks first, and what the metadata should say."""

from __future__ import annotations

import json
import re
import textwrap
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


def found(
    *versions: str, requirement: str = "vllm>=2,<5", client: str = CLIENT, others: dict[str, str] | None = None
) -> Matrix:
    """The matrix of a client that was written for 2, of one file and maybe `others`."""
    files = {"app.py": client} if others is None else others
    tree = MemoryTree(files, "app", "1.0", requirements=(requirement,) if requirement else ())
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


def test_what_all_of_them_have_fits_none() -> None:
    matrix = found("1", "2", "3", "4", client=CLIENT + "vllm.never\n")
    assert [len(release.everywhere) for release in matrix.releases] == [1, 1, 1, 1]
    assert [len(release.breaks) for release in matrix.releases] == [1, 0, 0, 1]
    assert (matrix.fitting, matrix.bound, matrix.notices) == ((), None, ())
    assert (matrix.best, matrix.best_bound) == ((("2", "3"),), "vllm>=2,<4")
    assert (
        render_matrix([matrix], width=100)
        == """app 1.0 on 4 releases of vllm, written for 2

  1       1 error, 1 error everywhere
          app.py:4: module vllm has no attribute stop
  2 to 3  1 error everywhere
          in all of these releases: app.py:5: module vllm has no attribute never
  4       1 error, 1 error everywhere
          app.py:3: start(): unknown argument 'size'

  fits      none of these releases: all have app.py:5: module vllm has no attribute never
  best      2 to 3, where nothing else breaks (vllm>=2,<4)
  breaks    first with 4: vllm.start
  requires  vllm<5,>=2: too wide, it breaks with all 3 of these that it allows
"""
    )


def test_each_format_says_what_all_of_them_have() -> None:
    matrix = found("1", "2", client=CLIENT + "vllm.never\n")
    (told,) = json.loads(render_matrix_json([matrix]))["matrices"]
    assert [entry["verdict"] for entry in told["releases"]] == ["breaks", "everywhere"]
    assert [entry["everywhere"][0]["line"] for entry in told["releases"]] == [5, 5]
    assert (told["fitting"], told["bound"], told["best"]) == ([], None, [["2", "2"]])
    assert (told["best_bound"], told["is_promise_kept"]) == ("vllm>=2", False)
    markdown = render_matrix_markdown([matrix, found("2")])
    assert "| app 1.0 | none, best 2 |" in markdown
    assert "| 2 | 1 error everywhere | in all of these releases: app.py:5: " in markdown
    page = Page(render_matrix_page([matrix]))
    words = "".join(page.words)
    assert "1 error everywhere" in words
    assert "module vllm has no attribute never everywhere" in words
    *_, row = render_matrix([found("2"), matrix], width=100).splitlines()
    assert row == "  app 1.0  x~  none, best 2"


def test_of_releases_that_are_all_as_bad_none_is_best() -> None:
    matrix = found("2", "3", client=CLIENT + "vllm.never\n")
    assert (matrix.fitting, matrix.bound, matrix.best, matrix.best_bound) == ((), None, (), None)
    *_, head, _, row, _ = render_matrix([matrix, found("2", "3")], width=100).splitlines()
    assert head.endswith("2 to 3: + fits, ~ is no worse than any, x breaks, ? not read")
    assert row == "  app 1.0  ~~  none"


def test_a_single_release_is_judged_by_itself() -> None:
    matrix = found("2", client=CLIENT + "vllm.never\n")
    assert [finding.line for finding in (each.location for each in matrix.releases[0].breaks)] == [5]
    assert (matrix.fitting, matrix.best, matrix.bound) == ((), (), None)
    assert "fits      none of these releases\n" in render_matrix([matrix], width=100)


PACKAGE = """import vllm

vllm.stop()
try:
    from app import extra
except ImportError:
    extra = None
"""


@pytest.mark.parametrize(
    "package",
    [
        PACKAGE,
        "import contextlib\nimport vllm\n\nvllm.stop()\nwith contextlib.suppress(ImportError):\n    import app.extra\n",
        f"def start():\n{textwrap.indent(PACKAGE, '    ')}",
    ],
)
def test_what_the_client_provides_for_is_no_hindrance(package: str) -> None:
    matrix = found("2", "3", others={"app/__init__.py": package, "app/extra.py": "from vllm import never\n"})
    assert matrix.fitting == (("2", "3"),)
    (notice,) = matrix.notices
    assert notice == (
        "not counted: a failing import that all of these releases have, in modules that it does without "
        "(app/extra.py:1: vllm has no name never)"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"app/other.py": "from app.extra import never\nimport vllm\n"},
        {"app/extra.py": "import vllm\nvllm.never\n"},
        {"app/__init__.py": PACKAGE.replace("extra = None", "raise RuntimeError('install more')")},
        {"app/__init__.py": PACKAGE.replace("ImportError", "ModuleNotFoundError")},
        {"app/__init__.py": "import vllm\n\nvllm.stop()\n"},
    ],
)
def test_what_it_does_not_provide_for_is_one(more: dict[str, str]) -> None:
    files = {"app/__init__.py": PACKAGE, "app/extra.py": "from vllm import never\n", **more}
    matrix = found("2", "3", others=files)
    assert (matrix.fitting, matrix.bound) == ((), None)
    assert {finding.location.path for finding in matrix.releases[1].everywhere} == {"app/extra.py"}


def test_modules_that_only_optional_ones_import_are_optional() -> None:
    files = {
        "app/__init__.py": PACKAGE.replace("app import extra", "app.extra import go"),
        "app/extra/__init__.py": "from .one import go\n",
        "app/extra/one.py": "from .two import never\nimport vllm\n\ndef go(): ...\n",
        "app/extra/two.py": "from vllm import never\n",
        "app/main.py": "import typing\nif typing.TYPE_CHECKING:\n    import app.extra.two\n",
        "tests/test_two.py": "import app.extra.two\n",
    }
    assert found("2", "3", others=files).fitting == (("2", "3"),)
    files["app/main.py"] = "import app.extra.two\n"
    assert found("2", "3", others=files).fitting == ()


def test_what_never_runs_is_no_hindrance() -> None:
    client = "import vllm\n\n\ndef _old():\n    from vllm import never\n\n\nif hasattr(vllm, 'gone'):\n    _old()\n"
    assert found("2", "3", client=client).fitting == (("2", "3"),)
    guarded = "try:\n    from vllm import never\nexcept ImportError:\n    from vllm import stop as never\n"
    assert found("2", "3", client=guarded).fitting == (("2", "3"),)


def test_what_only_the_baseline_and_some_have_is_a_break() -> None:
    matrix = found("2", "4", "6", client="import vllm\nvllm.start(length=1)\n")
    assert [release.fits for release in matrix.releases] == [False, True, False]
    assert (matrix.fitting, matrix.notices) == ((("4", "4"),), ())


WORKER = "class Worker:\n    def run(self): ...\n"
WARMED = "LATE = 1\n\n\n" + WORKER + "    def warm(self, n): ...\n\n\ndef start(worker: Worker):\n    worker.warm(1)\n"


@pytest.mark.parametrize(
    ("sources", "fits", "others"), [((WORKER, WARMED), [True, True], [1, 0]), ((WARMED, WORKER), [True, False], [0, 0])]
)
def test_an_override_is_dead_where_its_method_is_gone_and_not_where_it_comes_later(
    sources: tuple[str, str], fits: list[bool], others: list[int]
) -> None:
    trees = {
        version: MemoryTree({"vllm/__init__.py": text}, "vllm", version)
        for version, text in zip("12", sources, strict=True)
    }
    baseline = trees["12"[sources.index(WARMED)]]
    client = MemoryTree({"app.py": "import vllm\n\nclass Mine(vllm.Worker):\n    def warm(self, n): ...\n"}, "app", "1")
    matrix = matrix_of(Sources(client, baseline, baseline, None, (), None, None, None), list("12"), trees.__getitem__)
    assert [release.fits for release in matrix.releases] == fits
    assert [release.others for release in matrix.releases] == others
    # The proof is what the release itself has in that place.
    proofs = [finding.evidence for release in matrix.releases for finding in release.breaks]
    assert [(proof.line, proof.signature, proof.baseline_signature) for proof in proofs] == [
        (1, None, "Worker.warm(n)") for is_fit in fits if not is_fit
    ]


def test_the_baseline_is_told_with_its_reason() -> None:
    client = MemoryTree({"app.py": CLIENT}, "app", "1.0")
    chosen = Sources(client, release("2"), release("2"), "named by a file", (), None, None, None)
    assert "  baseline  2, named by a file\n" in render_matrix([matrix_of(chosen, ["2"], release)], width=100)
    none = matrix_of(Sources(client, release("2"), None, None, (), None, None, None), ["2"], release)
    assert "  baseline  none: all that is wrong counts, whether or not it was ever right\n" in render_matrix(
        [none], width=100
    )


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
    assert "requires  vllm==1: which allows none of these releases; 2, 3 would do\n" in text
    assert "vllm==1: which allows none of these releases" in render_matrix(
        [found("4", "5", requirement="vllm==1")], width=100
    )


@pytest.mark.parametrize(
    ("versions", "requirement", "is_kept"),
    [
        ("23", "vllm>=2,<4", True),
        ("234", "vllm>=2,<4", True),
        ("234", "vllm>=2", False),
        ("45", "", False),
        ("24", "", True),
        ("45", "vllm<4", False),
        ("23", "vllm>=4", False),
        ("27", "vllm>=2", True),
    ],
)
def test_whether_the_promise_is_kept(versions: str, requirement: str, is_kept: bool) -> None:
    assert found(*versions, requirement=requirement).is_promise_kept is is_kept


def test_what_still_breaks_is_named() -> None:
    text = render_matrix([found("5", "1", "4")], width=100)
    assert (
        "  1  1 error\n     some of that is right again, and still app.py:4: module vllm has no attribute stop\n"
        in text
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


def test_the_page_of_a_finding_says_what_to_do_and_what_it_means() -> None:
    explanations = {"unknown-argument": "why <it>\n  fails", "dead-guard": "not met here"}
    text = render_matrix_page([found("2", "4")], explanations)
    page = Page(text)
    said = re.search(r'<section id="finding-0-0">.*?</section>', text, re.DOTALL)
    assert said is not None
    assert "<dt>fix</dt><dd><code>pass it as length (unsafe)</code></dd>" in said[0]
    assert "<dt>vllm 4</dt><dd><code>vllm/__init__.py:1 start(length)</code></dd>" in said[0]
    assert "<dt>vllm 2</dt><dd><code>start(size)</code></dd>" in said[0]
    assert '<dd>what <a href="#about-unknown-argument">unknown-argument</a> means</dd>' in said[0]
    assert "<pre>why &lt;it&gt;\n  fails</pre></section>" in text
    assert "not met here" not in "".join(page.words)


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
