"""What `unified` gives is taken by git and by patch, forwards and backwards, to the byte."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change, ordered
from driftcheck.fixes.diff import unified

GIT = ("git", "-c", "core.autocrlf=false", "-c", "apply.whitespace=nowarn", "apply")
PATCH = ("patch", "-p1", "--no-backup-if-mismatch", "--silent", "--force")
PROGRAMS = [GIT, *([PATCH] if shutil.which("patch") else [])]

ENCODED = "# -*- coding: {0} -*-\nname = 'Zoë'\nold = 1\n"
PAIRS = {
    "plain": (b"a\nb\nc\n", b"a\nx\nc\n"),
    "no line end before": (b"a\nb", b"a\nb\n"),
    "no line end after": (b"a\nb\n", b"a\nb"),
    "no line end at all": (b"a\nb", b"a\nc"),
    "the last line stays without its end": (b"a\nb\nc\nd", b"x\nb\nc\nd"),
    "line ends of Windows": (b"a\r\nb\r\nc\r\n", b"a\r\nx\r\ny\r\nc\r\n"),
    "line ends change": (b"a\r\nb\r\n", b"a\nb\n"),
    "mixed line ends": (b"a\r\nb\nc\rd\n", b"a\r\nb\nc\re\n"),
    "line ends of an old Mac": (b"a\rb\rc", b"a\rx\rc"),
    "other separators in lines": (
        "a\x0cb\x0bc\u2028d\x85e\x1cf\nx\n".encode(),
        "a\x0cb\x0bc\u2028d\x85e\x1cg\nx\n".encode(),
    ),
    "latin-1": (ENCODED.format("latin-1").encode("latin-1"), (ENCODED.format("latin-1") + "ë = 2\n").encode("latin-1")),
    "cp1252": (
        ENCODED.format("cp1252").encode("cp1252"),
        ENCODED.format("cp1252").replace("old = 1", "new = '€'").encode("cp1252"),
    ),
    "a byte order mark": (b"\xef\xbb\xbfa = 1\n", b"\xef\xbb\xbfa = 2\n"),
    "nothing before": (b"", b"a\n"),
    "nothing after": (b"a\n", b""),
    "nothing before, no line end": (b"", b"a"),
    "lines that look like a patch": (
        b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- x\n++ y\n",
        b"--- a/x\n+++ b/y\n@@ -1 +1 @@\n++ y\ndiff --git a/x b/x\n\\ No newline at end of file\n",
    ),
    "far apart": (
        b"".join(b"%d\n" % n for n in range(100)),
        b"".join(b"%d\n" % n for n in range(100) if n not in (3, 90)),
    ),
    "alike lines": (b"x\n" * 40, b"x\n" * 20 + b"y\n" + b"x\n" * 20),
    "long and alike": (b"x\ny\n" * 4000, b"z\n" + b"x\ny\n" * 4001),
}
NAMES = (
    "m.py",
    "package/module.py",
    "with space/my module.py",
    "naïve/模块.py",
    'quo"te/back\ttab.py',
    "-dash.py",
    " leading.py",
    "trailing .py",
)


def applied(program: tuple[str, ...], changes: Iterable[Change], *, reverse: bool = False) -> dict[str, bytes]:
    """The files after the program has applied the patch to them."""
    changes = tuple(changes)
    with tempfile.TemporaryDirectory() as folder:
        for change in changes:
            file = Path(folder, change.path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(change.after if reverse else change.before)
        patch = Path(folder, ".patch")
        patch.write_bytes(unified(changes))
        source = ("-i", ".patch") if program[0] == "patch" else (".patch",)
        done = subprocess.run(
            [*program, *(["-R"] if reverse else []), *source], cwd=folder, capture_output=True, check=False
        )
        assert done.returncode == 0, (done.stdout, done.stderr, unified(changes))
        patch.unlink()
        return {
            file.relative_to(folder).as_posix(): file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()
        }


def check(program: tuple[str, ...], changes: Iterable[Change]) -> None:
    changes = tuple(changes)
    assert applied(program, changes) == {change.path: change.after for change in changes}
    assert applied(program, changes, reverse=True) == {change.path: change.before for change in changes}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_texts_apply_and_reverse(program: tuple[str, ...], pair: tuple[bytes, bytes]) -> None:
    check(program, [Change("package/module.py", *pair)])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0])
@pytest.mark.parametrize("name", NAMES)
def test_names_apply_and_reverse(program: tuple[str, ...], name: str) -> None:
    for before, after in (PAIRS["plain"], PAIRS["nothing before"], PAIRS["nothing after"]):
        check(program, [Change(name, before, after)])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0])
def test_many_files_apply_and_reverse(program: tuple[str, ...]) -> None:
    check(program, [Change(f"{number}.py", *pair) for number, pair in enumerate(PAIRS.values())])
    check(program, [Change(name, *PAIRS["plain"]) for name in NAMES])


lines = st.sampled_from(
    [
        b"a",
        b"b",
        b"",
        b" ",
        b"\r",
        b"\x0c",
        b"-",
        b"+",
        b"--- a/m.py",
        b"+++ b/m.py",
        b"@@ -1 +1 @@",
        b"\\",
        b"\xff",
        b"\xe2\x80\xa8",
    ]
)
texts = st.one_of(
    st.builds(lambda parts, end: b"\n".join(parts) + end, st.lists(lines, max_size=14), st.sampled_from([b"", b"\n"])),
    st.text(max_size=30).map(lambda text: text.replace("\0", "").encode("utf-8", "replace")),
)


@settings(max_examples=60, deadline=None)
@given(texts, texts)
@example(b"\n", b"")
def test_any_two_texts_apply_and_reverse(before: bytes, after: bytes) -> None:
    changes = ordered([Change("m.py", before, after)])
    assert bool(unified(changes)) == (before != after)
    if changes:
        for program in PROGRAMS:
            check(program, changes)


def test_a_patch_reads_as_git_writes_it() -> None:
    changes = [
        Change("b.py", b"1\n2\n3\n4\n5\n6\n7\n8\n9", b"1\n2\n3\n4\nfive\n6\n7\n8\n9"),
        Change("a b.py", b"x\n", b"y\n"),
    ]
    assert unified(changes).decode() == (
        'diff --git "a/a b.py" "b/a b.py"\n--- "a/a b.py"\n+++ "b/a b.py"\n@@ -1 +1 @@\n-x\n+y\n'
        "diff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
    )


def test_what_stays_is_left_out() -> None:
    assert unified([Change("a.py", b"x", b"x")]) == b""
    assert unified([]) == b""


@pytest.mark.parametrize(
    "path",
    [
        "../a.py",
        "/a.py",
        "a/../../b.py",
        "",
        "a//b.py",
        ".git/config",
        "a/.git/hooks/x.py",
        ".envrc",
        "c:/a.py",
        "a\\b",
    ],
)
def test_paths_that_may_not_be_changed(path: str) -> None:
    with pytest.raises(DriftcheckError, match="no path that may be changed"):
        ordered([Change(path, b"", b"x")])


def test_one_file_has_one_change() -> None:
    with pytest.raises(ValueError, match="two changes"):
        ordered([Change("a.py", b"x", b"y"), Change("a.py", b"x", b"z")])
