"""What of a target the audit of a client rests on, so that a change of anything else need not be looked at.

An audit asks three things of a target's sources: what a file says, which files hold a word, and whether there is a
module. What the first two came to is noted; for the third the names of modules count that stand anywhere in what was
read. As long as the answers are the same, so is the report.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from driftcheck.assembly import unread
from driftcheck.audit import Sources
from driftcheck.errors import DriftcheckError
from driftcheck.kept import keep
from driftcheck.knowledge import own_digest
from driftcheck.origins.names import parsed_version
from driftcheck.origins.parts import PartialTree
from driftcheck.remembered import content_digest
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.shelf import Shelf, shelf_of
from driftcheck.surface.words import Words
from driftcheck.tree import SourceTree

_FORMAT = 2
_KEPT_FILES = 256
_LARGEST = 64_000_000
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Footprint:
    """What an audit rested on, in one state of the target: `files` are all there were, with their digests.

    `read` are those that were read, `words` the words that were looked for, `names` all words of what was read and of
    the client's own files. `release` is the target's version without what counts commits, `notices` is what the audit
    said besides.
    """

    files: dict[str, str]
    read: set[str]
    words: set[bytes]
    names: set[bytes]
    release: tuple[int, ...] | None
    notices: tuple[str, ...]

    def is_untouched(self, target: SourceTree) -> bool:
        """True where the audit would come to the same with another state of the target."""
        now = _digests(target)
        differ = {path for path in {*self.files, *now} if self.files.get(path) != now.get(path)}
        if not self.read.isdisjoint(differ) or self.release != _release(target):
            return False
        come_and_gone = {path for path in differ if path not in self.files or path not in now}
        if any(_module_name(path).encode() in self.names for path in come_and_gone):
            return False
        new = [path for path in differ if path in now]
        # Of a new extension module, or a file that can't be read, nobody knows what it holds.
        return all(now[path] for path in new) and not any(self._holds_word(target.read(path)) for path in new)

    def _holds_word(self, source: bytes) -> bool:
        return not self.words.isdisjoint(_WORD.findall(source))


def footprint_of(sources: Sources, folder: Path) -> Footprint:
    """What the audit of a client with its baseline as the target rests on; `folder` is where such things are kept.

    One that was kept is taken where it holds for that baseline. Raises DriftcheckError as the audit does.
    """
    assert sources.baseline is not None
    path = folder / "footprints" / f"{_key(sources)}.pack"
    kept = _kept(path)
    if kept is not None and kept.is_untouched(sources.baseline):
        return kept
    made = _made(sources, sources.baseline)
    _keep(path, made)
    return made


def _made(sources: Sources, target: SourceTree) -> Footprint:
    inner = shelf_of(target)
    assert inner is not None
    index = ModuleIndex(target)
    # The words of all sources are read for the shelf, and not because anything rests on every source.
    Words(lambda: sorted(index.sources.values()), target.read, inner).holding("word")
    inner.store()
    watched = _WatchedTree(target, _WatchedShelf.beside(inner))
    report = Sources(sources.client, watched, watched, None, (), sources.model, None, None).audited(processes=1)
    notices = (*report.notices, *unread(report.client))
    names: set[bytes] = set()
    for path in watched.was_read:
        names.update(_WORD.findall(target.read(path)))
    for path in sources.client.paths:
        try:
            names.update(_WORD.findall(sources.client.read(path)))
        except (DriftcheckError, KeyError):
            # An extension module, or a file that can't be read, which the audit has not read either.
            continue
    return Footprint(_digests(target), watched.was_read, watched.shelf.looked_for, names, _release(target), notices)


class _WatchedShelf(Shelf):
    """A shelf that notes which words are looked for, and has every question asked, so that what it takes is seen."""

    looked_for: set[bytes]

    @classmethod
    def beside(cls, shelf: Shelf) -> _WatchedShelf:
        """One that keeps what the other one keeps."""
        made = cls(*shelf.places)
        made.looked_for = set()
        return made

    @property
    def words(self) -> Mapping[bytes, bytes] | None:
        found = super().words
        return _WatchedWords(found, self.looked_for) if found is not None else None

    def answer(self, question: str, type_: type[Answer], asked: Callable[[], Answer]) -> Answer:
        return self.asked_anew(question, asked)


class _WatchedWords(Mapping[bytes, bytes]):
    """Words, of which is noted which ones are looked for."""

    def __init__(self, words: Mapping[bytes, bytes], looked_for: set[bytes]) -> None:
        self._words = words
        self._looked_for = looked_for

    def __getitem__(self, word: bytes) -> bytes:
        self._looked_for.add(word)
        return self._words[word]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._words)

    def __len__(self) -> int:
        return len(self._words)


class _WatchedTree(PartialTree):
    """A whole tree of which is noted which files are read."""

    def __init__(self, tree: SourceTree, shelf: _WatchedShelf) -> None:
        super().__init__(tree, set(tree.paths))
        self.shelf = shelf
        self.was_read: set[str] = set()

    def read(self, path: str) -> bytes:
        self.was_read.add(path)
        return super().read(path)


def _digests(tree: SourceTree) -> dict[str, str]:
    """Every file with a hash, "" for an extension module."""
    found: dict[str, str] = {}
    for path in tree.paths:
        try:
            found[path] = tree.digest(path)
        except (DriftcheckError, KeyError):
            found[path] = ""
    return found


def _release(target: SourceTree) -> tuple[int, ...] | None:
    version = parsed_version(target.version or "")
    return version.release if version is not None else None


def _module_name(path: str) -> str:
    """The last part of the dotted name of a file's module."""
    folder, _, file = path.rpartition("/")
    stem = file.partition(".")[0]
    return folder.rpartition("/")[2] if stem == "__init__" else stem


def _key(sources: Sources) -> str:
    parts = (str(_FORMAT), sys.version, own_digest(), repr(sources.model), content_digest(sources.client))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:40]


def _kept(path: Path) -> Footprint | None:
    import msgspec

    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return None
        content = zlib.decompressobj().decompress(path.read_bytes(), _LARGEST)
        return msgspec.msgpack.decode(content, type=Footprint)
    except (OSError, zlib.error, msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _keep(path: Path, footprint: Footprint) -> None:
    import msgspec

    try:
        content = msgspec.msgpack.encode(footprint)
    except UnicodeEncodeError:
        # A name that no text can hold.
        return
    keep(path, zlib.compress(content, 1), most=_KEPT_FILES)
