"""Archives that mean harm or are damaged: one clear line each, nothing written outside the cache, no long wait."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins import archives, cache, limits, sdists, wheels
from driftcheck.origins.select import target_tree
from driftcheck.origins.settings import Settings
from tests.origins.archives import metadata, sdist, wheel
from tests.origins.server import Index

SOURCES = {"engine/__init__.py": "A = 1\n"}


def refused(index: Index, settings: Settings, data: bytes, name: str = "engine-1.0-py3-none-any.whl") -> str:
    """The one line that reading the archive ends with; nothing of it counts as cached."""
    index.add("engine", name, data)
    with pytest.raises(DriftcheckError) as caught:
        target_tree("engine==1.0", settings=settings)
    message = str(caught.value)
    assert "\n" not in message
    assert name in message
    assert not list(settings.cache.rglob("*.manifest"))
    assert not list(settings.cache.rglob("*.pack"))
    return message


@pytest.mark.parametrize(
    "name",
    [
        "../evil.py",
        "engine/../../evil.py",
        "/etc/evil.py",
        "C:/evil.py",
        "engine/\x1b[31m.py",
        "a\nb.py",
        "a" * 2000 + ".py",
    ],
)
def test_member_that_leaves_the_folder(index: Index, settings: Settings, name: str) -> None:
    data = wheel("engine", "1.0", SOURCES, tamper=lambda archive: archive.writestr(name, "evil"))
    assert "leaves its folder" in refused(index, settings, data)
    assert "\x1b" not in refused(index, settings, data)


def test_backslashes_lead_out_on_other_systems(index: Index, settings: Settings) -> None:
    data = wheel("engine", "1.0", SOURCES, tamper=lambda archive: archive.writestr("..\\evil.py", "evil"))
    assert "leaves its folder" in refused(index, settings, data)


def test_null_byte_in_a_name(index: Index, settings: Settings) -> None:
    data = wheel("engine", "1.0", SOURCES | {"engine/xx.py": "B = 2\n"})
    assert "leaves its folder" in refused(index, settings, data.replace(b"engine/xx.py", b"engine/x\0.py"))


def test_link_in_a_wheel(index: Index, settings: Settings) -> None:
    def add_link(archive: zipfile.ZipFile) -> None:
        info = zipfile.ZipInfo("engine/link.py")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")

    assert "link" in refused(index, settings, wheel("engine", "1.0", SOURCES, tamper=add_link))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_member_twice(index: Index, settings: Settings) -> None:
    def add_again(archive: zipfile.ZipFile) -> None:
        archive.writestr("engine/__init__.py", "A = 2\n")

    assert "twice" in refused(index, settings, wheel("engine", "1.0", SOURCES, tamper=add_again))


def test_too_many_members(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MEMBERS", 50)
    data = wheel("engine", "1.0", {f"engine/m{number}.py": "" for number in range(60)})
    assert "more than 50 members" in refused(index, settings, data)


def test_oversized_member(index: Index, settings: Settings) -> None:
    data = wheel("engine", "1.0", SOURCES | {"engine/bomb.py": b"#" * (limits.MEMBER_BYTES + 1)})
    assert len(data) < 100_000
    assert "20,000,001 bytes" in refused(index, settings, data)


def test_oversized_whole(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "KEPT_BYTES", 1000)
    data = wheel("engine", "1.0", {f"engine/m{number}.py": "#" * 200 for number in range(6)})
    assert "more than the 1,000 that are read" in refused(index, settings, data)


def test_member_that_understates_its_size(index: Index, settings: Settings) -> None:
    data = wheel("engine", "1.0", {"engine/bomb.py": b"#" * 5_000_000})
    true, false = struct.pack("<L", 5_000_000), struct.pack("<L", 10)
    assert data.count(true) == 2
    message = refused(index, settings, data.replace(true, false))
    assert "damaged" in message


def zeros(size: int) -> bytes:
    """So many zeros as a deflate stream, which is a thousandth of that."""
    part = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = part.compress(bytes(1_000_000)) + part.flush(zlib.Z_FULL_FLUSH)
    return block * (size // 1_000_000) + zlib.compressobj(9, zlib.DEFLATED, -15).flush(zlib.Z_FINISH)


@pytest.mark.parametrize(
    ("claimed", "complaint"), [(4_000_000_000, "4,000,000,000 bytes"), (100, "damaged"), (19_999_999, "damaged")]
)
def test_four_gigabytes_of_zeros_fill_no_memory(claimed: int, complaint: str, index: Index, settings: Settings) -> None:
    def add(archive: zipfile.ZipFile) -> None:
        assert archive.fp is not None
        info = zipfile.ZipInfo("engine/bomb.py")
        stream = zeros(4_000_000_000)
        info.compress_type, info.compress_size, info.file_size = zipfile.ZIP_DEFLATED, len(stream), claimed
        info.CRC, info.header_offset = 0, archive.fp.tell()
        archive.fp.write(info.FileHeader() + stream)
        archive.filelist.append(info)
        archive.start_dir = archive.fp.tell()

    def listed(record: str) -> str:
        return f"engine/bomb.py,sha256={'A' * 43},{claimed}\n{record}"

    data = wheel("engine", "1.0", SOURCES, record=listed, tamper=add)
    assert len(data) < 10_000_000
    tracemalloc.start()
    try:
        assert complaint in refused(index, settings, data)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("falsify", "complaint"),
    [
        (lambda text: text.replace("sha256=", "sha256=x"), "does not match the hash in its RECORD"),
        (lambda text: text.replace("engine/__init__.py", "engine/other.py"), "RECORD has no hash"),
        (lambda text: text.replace("sha256=", "md5="), "RECORD has no hash"),
        (lambda text: '"', "RECORD has no hash"),
    ],
)
def test_lying_record(index: Index, settings: Settings, falsify: Callable[[str], str], complaint: str) -> None:
    assert complaint in refused(index, settings, wheel("engine", "1.0", SOURCES, record=falsify))


def test_record_that_names_what_another_release_has(index: Index, settings: Settings) -> None:
    """A member whose hash the cache knows is not read: what the tree gives is what the hash says."""
    index.add("engine", "engine-0.9-py3-none-any.whl", wheel("engine", "0.9", {"engine/__init__.py": "OLD = 1\n"}))
    old = target_tree("engine==0.9", settings=settings)
    honest = wheel("engine", "1.0", {"engine/__init__.py": "OLD = 1\n"})
    index.add("engine", "engine-1.0-py3-none-any.whl", honest.replace(b"OLD", b"NEW"))
    tree = target_tree("engine==1.0", settings=settings)
    assert tree.read("engine/__init__.py") == old.read("engine/__init__.py") == b"OLD = 1\n"


@pytest.mark.parametrize("information", [(), ("engine-1.0.dist-info", "other-1.0.dist-info")])
def test_not_one_metadata_folder(index: Index, settings: Settings, information: tuple[str, ...]) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("engine/__init__.py", "A = 1\n")
        for folder in information:
            archive.writestr(f"{folder}/METADATA", metadata("engine", "1.0"))
    assert "it is no wheel" in refused(index, settings, stream.getvalue())


def test_no_record(index: Index, settings: Settings) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("engine-1.0.dist-info/METADATA", metadata("engine", "1.0"))
    assert "has no RECORD" in refused(index, settings, stream.getvalue())


def test_encrypted_member(index: Index, settings: Settings) -> None:
    data = bytearray(wheel("engine", "1.0", SOURCES))
    central = data.rindex(b"PK\x01\x02", 0, data.index(b"PK\x01\x02") + 4)
    data[central + 8] |= 1
    assert "encrypted" in refused(index, settings, bytes(data))


def test_other_compression(index: Index, settings: Settings) -> None:
    def add(archive: zipfile.ZipFile) -> None:
        archive.writestr("engine/slow.py", "B = 2\n", compress_type=zipfile.ZIP_LZMA)

    assert "compression" in refused(index, settings, wheel("engine", "1.0", SOURCES, tamper=add))


@pytest.mark.parametrize("data", [b"", b"PK", b"<html>sign in first</html>", b"PK\x05\x06" + b"\xff" * 18])
def test_no_archive_at_all(index: Index, settings: Settings, data: bytes) -> None:
    assert "damaged or no wheel" in refused(index, settings, data)


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.99])
def test_truncated_wheel(index: Index, settings: Settings, keep: float) -> None:
    data = wheel("engine", "1.0", SOURCES | {f"engine/m{number}.py": "#" * 200 for number in range(20)})
    assert "damaged" in refused(index, settings, data[: int(len(data) * keep)])


def test_every_single_damaged_byte_is_survived() -> None:
    """Whatever byte is wrong, the archive is refused, or gives the true contents, or a member has lost its name."""
    data = wheel("engine", "1.0", SOURCES)
    true = hashlib.sha256(b"A = 1\n").hexdigest()
    outcomes = set()
    for position in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        contents = cache.Contents({})
        try:
            listing = wheels.read_wheel(io.BytesIO(bytes(damaged)), "engine.whl", contents, "engine 1.0")
        except DriftcheckError:
            outcomes.add("refused")
        else:
            outcomes.add("read")
            assert listing.digests.get("engine/__init__.py", true) == true
    assert outcomes == {"refused", "read"}


SDIST = "engine-1.0.tar.gz"


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


@pytest.mark.parametrize(
    ("info", "complaint"),
    [
        (member("engine-1.0/../../evil.py"), "leaves its folder"),
        (member("/etc/evil.py"), "leaves its folder"),
        (member("engine-1.0/a\udcff.py"), "leaves its folder"),
        (member("engine-1.0/link.py", tarfile.SYMTYPE, "../../etc/passwd"), "link"),
        (member("engine-1.0/link.py", tarfile.SYMTYPE, "/etc/passwd"), "link"),
        (member("engine-1.0/hard.py", tarfile.LNKTYPE, "../etc/passwd"), "link"),
        (member("engine-1.0/pipe.py", tarfile.FIFOTYPE), "neither a file nor a folder"),
        (member("engine-1.0/zero.py", tarfile.CHRTYPE), "neither a file nor a folder"),
        (member("engine-1.0/engine/__init__.py"), "twice"),
        (member("engine-1.0/bomb.py", size=limits.MEMBER_BYTES + 1), "20,000,001 bytes"),
    ],
)
def test_hostile_source_distribution(index: Index, settings: Settings, info: tarfile.TarInfo, complaint: str) -> None:
    data = sdist("engine", "1.0", SOURCES, members=(info,))
    assert complaint in refused(index, settings, data, SDIST)


def test_links_within_a_source_distribution_are_passed_over(index: Index, settings: Settings) -> None:
    link = member("engine-1.0/engine/alias.py", tarfile.SYMTYPE, "__init__.py")
    index.add("engine", SDIST, sdist("engine", "1.0", SOURCES, members=(link,)))
    assert [path for path in target_tree("engine==1.0", settings=settings).paths if path.endswith(".py")] == list(
        SOURCES
    )


def test_source_distribution_bounds(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdists, "STREAM_BYTES", 10_000)
    data = sdist("engine", "1.0", SOURCES | {"engine/data.bin": b"\0" * 20_000})
    assert "unpacks to more than 10,000 bytes" in refused(index, settings, data, SDIST)


def test_source_distribution_with_many_members(
    index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdists, "MEMBERS", 50)
    data = sdist("engine", "1.0", {f"engine/m{number}.txt": "" for number in range(60)})
    assert "more than 50 members" in refused(index, settings, data, SDIST)


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b", b"no archive", zlib.compress(b"x")])
def test_no_source_distribution_at_all(index: Index, settings: Settings, data: bytes) -> None:
    assert "damaged or no archive" in refused(index, settings, data, SDIST)


def test_truncated_source_distribution(index: Index, settings: Settings) -> None:
    data = sdist("engine", "1.0", SOURCES | {f"engine/m{number}.py": str(number) * 999 for number in range(99)})
    assert "damaged" in refused(index, settings, data[: len(data) // 2], SDIST)


def test_nothing_leaves_the_cache_folder(index: Index, settings: Settings, tmp_path: Path) -> None:
    before = {path for path in tmp_path.rglob("*") if settings.cache not in (path, *path.parents)}
    refused(index, settings, sdist("engine", "1.0", SOURCES, members=(member("engine-1.0/../../evil.py"),)), SDIST)
    assert {path for path in tmp_path.rglob("*") if settings.cache not in (path, *path.parents)} == before


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_tar_header_that_claims_gigabytes(index: Index, settings: Settings, kind: bytes) -> None:
    header = member("x", kind, size=6_000_000_000).tobuf(tarfile.GNU_FORMAT)
    data = gzip.compress(header) + gzip.compress(b"\0" * 30_000_000)
    assert "has a header of more than" in refused(index, settings, data, SDIST)


def test_chain_of_tar_headers(index: Index, settings: Settings) -> None:
    link = member("x", tarfile.GNUTYPE_LONGNAME, size=512).tobuf(tarfile.GNU_FORMAT) + b"a" * 511 + b"\0"
    assert "damaged" in refused(index, settings, gzip.compress(link * 5000), SDIST)


def test_tar_that_unpacks_to_more_than_it_says(
    index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdists, "STREAM_BYTES", 1_000_000)
    skipped = member("engine-1.0/data.bin", size=50_000_000).tobuf()
    data = gzip.compress(skipped + b"\0" * 50_000_000)
    assert "unpacks to more than 1,000,000 bytes" in refused(index, settings, data, SDIST)


def test_huge_zip_directory(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "DIRECTORY_BYTES", 100_000)
    data = wheel("engine", "1.0", {f"engine/m{number}.py": "" for number in range(2000)})
    assert "has a header of more than 100,000 bytes" in refused(index, settings, data)


def test_random_damage() -> None:
    """Whatever is done to an archive, it is read or refused, never anything else."""
    files = {"engine/__init__.py": "A = 1\n", "engine/core.py": "B = 2\n" * 50, f"engine/{'x' * 150}.py": ""}
    archive, source = wheel("engine", "1.0", files), gzip.decompress(sdist("engine", "1.0", files))
    dice = random.Random(1)
    outcomes: Counter[str] = Counter()
    for _ in range(400):
        damaged = mutilated(archive, dice)
        outcomes[outcome("engine.whl", damaged)] += 1
        outcomes[outcome("engine.zip", damaged)] += 1
        outcomes[outcome("engine.tar.gz", gzip.compress(mutilated(source, dice), 1))] += 1
    assert set(outcomes) == {"read", "refused"}
    assert min(outcomes.values()) > 100


def outcome(name: str, data: bytes) -> str:
    """What becomes of an archive of that name; any exception but the one for the user fails the test."""
    stream, contents = io.BytesIO(data), cache.Contents({})
    try:
        if name.endswith(".whl"):
            wheels.read_wheel(stream, name, contents, "engine 1.0")
        else:
            sdists.read_sdist(stream, name, contents)
    except DriftcheckError as error:
        return "two lines" if "\n" in str(error) else "refused"
    return "read"


def mutilated(data: bytes, dice: random.Random) -> bytes:
    """The bytes with some changed, left out, repeated or cut off."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 5, 20))):
        place, other = dice.randrange(len(changed)), dice.randrange(len(changed))
        what = dice.randrange(5)
        if what <= 1:
            changed[place] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif what == 2:
            changed[place : place + 4] = b"\xff\xff\xff\xff"
        elif what == 3:
            changed[place:place] = changed[other : other + dice.randrange(1, 200)]
        elif len(changed) > 100:
            del changed[place : place + dice.randrange(1, 40)]
    return bytes(changed)
