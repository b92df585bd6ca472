"""RECORD says the truth of installed files that were fixed, and of those that were taken back."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import Change
from driftcheck.fixes.records import with_record
from driftcheck.fixes.restoring import restore
from driftcheck.fixes.writing import write
from tests.fixes.environments import environment, install

pytestmark = pytest.mark.skipif(os.name != "posix", reason="environments lie elsewhere")

FILES = {"client/__init__.py": "value = 1\n", "client/a.py": "a = 1\n", "client/odd name.py": "b = 1\n"}
RECORD = "client-1.0.dist-info/RECORD"


def untrue(site: Path) -> list[str]:
    """The files of which RECORD gives another hash or size than they have."""
    found = []
    for file in PathDistribution(site / "client-1.0.dist-info").files or []:
        if file.hash is not None:
            data = Path(str(file.locate())).read_bytes()
            text = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, data).digest()).decode().rstrip("=")
            if (file.hash.value, file.size) != (text, len(data)):
                found.append(str(file))
    return found


def test_record_stays_true(tmp_path: Path) -> None:
    site = environment(tmp_path / "one")
    install(site, "client", FILES, "--compile-bytecode")
    install(site, "other", {"other/__init__.py": "x = 1\n"})
    other = (site / "other-1.0.dist-info" / "RECORD").read_bytes()
    record = (site / RECORD).read_bytes()
    changes = [Change(path, text.encode(), text.replace("1", "1 + 1").encode()) for path, text in FILES.items()]

    assert untrue(site) == []
    whole = with_record(changes, site)
    assert [change.path for change in whole] == sorted([*FILES, RECORD])
    write(whole, site, tmp_path / "state")
    assert untrue(site) == []
    assert (site / RECORD).read_bytes() != record
    assert len((site / RECORD).read_bytes().splitlines()) == len(record.splitlines())
    assert (site / "other-1.0.dist-info" / "RECORD").read_bytes() == other

    restore(site, tmp_path / "state")
    assert untrue(site) == []
    assert (site / RECORD).read_bytes() == record
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "uv-cache"]


def test_the_installer_s_cache_stays_as_it_is(tmp_path: Path) -> None:
    one, two = environment(tmp_path / "one"), environment(tmp_path / "two")
    install(one, "client", FILES)
    if os.stat(one / "client" / "a.py").st_nlink == 1:
        pytest.skip("the installer makes no links here")
    write(with_record([Change("client/a.py", b"a = 1\n", b"a = 2\n")], one), one, tmp_path / "state")
    install(two, "client", FILES)
    assert (one / "client" / "a.py").read_bytes() == b"a = 2\n"
    assert (two / "client" / "a.py").read_bytes() == b"a = 1\n"


def test_an_editable_installation_has_nothing_to_keep_true(tmp_path: Path) -> None:
    site = environment(tmp_path / "one")
    project = tmp_path / "project"
    (project / "client").mkdir(parents=True)
    (project / "client" / "__init__.py").write_text("value = 1\n")
    information = site / "client-1.0.dist-info"
    information.mkdir()
    (site / "client.pth").write_text(f"{project}\n")
    (information / "RECORD").write_text("client.pth,,\nclient-1.0.dist-info/RECORD,,\n")
    changes = (Change("client/__init__.py", b"value = 1\n", b"value = 2\n"),)
    assert with_record(changes, project) == changes


def test_a_distribution_without_record_has_nothing_to_keep_true(tmp_path: Path) -> None:
    site = environment(tmp_path / "one")
    install(site, "client", FILES)
    (site / RECORD).unlink()
    changes = (Change("client/a.py", b"a = 1\n", b"a = 2\n"),)
    assert with_record(changes, site) == changes
    assert with_record([], tmp_path / "missing") == ()


def test_other_lines_stay_to_the_byte(tmp_path: Path) -> None:
    (tmp_path / "x-1.dist-info").mkdir()
    lines = [
        b'"quoted, as it need be.py",sha256=x,1',
        b'"client/a.py",sha256=false,1',
        b"client/b.py,,",
        b"client/c.py,sha512=false,",
        b"\xff.py,sha256=x,1",
        b"",
        b'"never closed',
        b'"client/odd, ""e"".py",sha256=false,1',
        b"x-1.dist-info/RECORD,,",
    ]
    (tmp_path / "x-1.dist-info" / "RECORD").write_bytes(b"\r\n".join(lines))
    changes = [Change(f"client/{name}.py", b"1", b"22") for name in ("a", "b", "c", "d", 'odd, "e"')]
    (record,) = (change for change in with_record(changes, tmp_path) if change.path.endswith("RECORD"))
    found = record.after.split(b"\r\n")
    sha256 = base64.urlsafe_b64encode(hashlib.sha256(b"22").digest()).rstrip(b"=")
    sha512 = base64.urlsafe_b64encode(hashlib.sha512(b"22").digest()).rstrip(b"=")
    assert found == [
        lines[0],
        b"client/a.py,sha256=%b,2" % sha256,
        lines[2],
        b"client/c.py,sha512=%b," % sha512,
        *lines[4:7],
        b'"client/odd, ""e"".py",sha256=%b,2' % sha256,
        lines[8],
    ]


def test_a_record_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(DriftcheckError, match="cannot list"):
        with_record([Change("a.py", b"1", b"2")], tmp_path / "missing")
