"""What was learned of a release's sources, kept in the user's cache folder for the next audit against that release."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from driftcheck.errors import DriftcheckError
from driftcheck.kept import keep
from driftcheck.knowledge import own_digest
from driftcheck.surface.declarations import UnreadableSource, parse_source
from driftcheck.surface.outline_store import OutlineStore, source_key
from driftcheck.surface.outlines import outline_of
from driftcheck.tree import SourceTree

# Another number for another way to make or to keep what is kept.
_FORMAT = 3
_KEPT_FILES = 128
_LARGEST = 256_000_000

Answer = TypeVar("Answer")


def shelf_of(tree: SourceTree) -> Shelf | None:
    """The shelf of a release that is in the cache, or one that a tree brings; other contents have another shelf.

    None for any other tree.
    """
    brought: Shelf | None = getattr(tree, "shelf", None)
    if brought is not None:
        return brought
    folder: Path | None = getattr(tree, "cache_folder", None)
    if folder is None:
        return None
    digest = hashlib.sha256(f"{_FORMAT} {sys.version}\0".encode())
    for path in sorted(tree.paths):
        try:
            content = tree.digest(path)
        except DriftcheckError:
            # An extension module, which holds no words.
            continue
        digest.update(f"{path} {content}\0".encode("utf-8", "surrogateescape"))
    name = f"{digest.hexdigest()[:40]}.pack"
    return Shelf(folder / "shelves" / name, OutlineStore(folder / "outlines" / "outlines.sqlite"))


@dataclass(slots=True)
class Learned:
    """What sources come to: `words` with the numbers of the sources that hold each, packed.

    `answers` are what questions about the release came to, by their words, packed; as long as nothing but the release
    and driftcheck itself, by whose digest `answered_by` they were given, decides them. `outlines` are new ones, by the
    keys of their sources; they are kept elsewhere.
    """

    words: dict[bytes, bytes] | None = None
    answers: dict[str, bytes] = field(default_factory=dict)
    answered_by: str = ""
    outlines: dict[bytes, str] = field(default_factory=dict)


class Shelf:
    """What is kept of one release in one file; one that is missing or damaged counts as empty.

    The outlines of its modules are in a store that all releases share.
    """

    def __init__(self, path: Path, outlines: OutlineStore) -> None:
        self.places = path, outlines
        self._path = path
        self._outlines = outlines
        self._kept: Learned | None = None
        self.new = Learned()

    def parse(self, text: str) -> ast.Module:
        """The syntax tree of a source, some or all of its functions without bodies; raises UnreadableSource."""
        key = source_key(text)
        outline = self._outlines.find(key) or self.new.outlines.get(key)
        if outline is not None:
            try:
                return parse_source(outline)
            except UnreadableSource:
                pass
        tree = parse_source(text)
        made = outline_of(text, tree)
        if made is not None:
            self.new.outlines[key] = made
        return tree

    @property
    def words(self) -> Mapping[bytes, bytes] | None:
        """The words of the sources, None where they are not known yet."""
        return self._known.words or self.new.words

    def note_words(self, words: dict[bytes, bytes]) -> None:
        """Notes the words of the sources."""
        self.new.words = words

    def answer(self, question: str, type_: type[Answer], asked: Callable[[], Answer]) -> Answer:
        """What a question about the release comes to, asked if it was not before; the answer has that type.

        Only for what the release alone decides, and for types that msgspec can pack.
        """
        import msgspec

        packed = self._known.answers.get(question) or self.new.answers.get(question)
        if packed is not None:
            with suppress(msgspec.MsgspecError, ValueError, RecursionError):
                return msgspec.msgpack.decode(packed, type=type_)
        return self.asked_anew(question, asked)

    def asked_anew(self, question: str, asked: Callable[[], Answer]) -> Answer:
        """The same, asked whatever is known."""
        import msgspec

        found = asked()
        self.new.answers[question] = msgspec.msgpack.encode(found)
        return found

    def take(self, learned: Learned) -> None:
        """Adds what was learned elsewhere."""
        self.new.outlines.update(learned.outlines)
        self.new.words = self.new.words or learned.words
        self.new.answers.update(learned.answers)

    def store(self) -> None:
        """Keeps what is new beside what others have kept meanwhile."""
        import msgspec

        new, self.new = self.new, Learned()
        if new.outlines:
            self._outlines.add(new.outlines)
        if new.words is None and not new.answers:
            return
        kept = self._load()
        kept.words = kept.words or new.words
        kept.answers.update(new.answers)
        kept.answered_by = own_digest()
        self._kept = kept
        keep(self._path, zlib.compress(msgspec.msgpack.encode(kept), 1), most=_KEPT_FILES)

    @property
    def _known(self) -> Learned:
        if self._kept is None:
            self._kept = self._load()
        return self._kept

    def _load(self) -> Learned:
        import msgspec

        try:
            if self._path.is_symlink() or self._path.stat().st_size > _LARGEST:
                return Learned()
            unpacker = zlib.decompressobj()
            content = unpacker.decompress(self._path.read_bytes(), _LARGEST)
            found = msgspec.msgpack.decode(content, type=Learned)
            os.utime(self._path)
        except (OSError, zlib.error, msgspec.MsgspecError, ValueError, RecursionError):
            return Learned()
        if found.answers and found.answered_by != own_digest():
            found.answers = {}
        return found
