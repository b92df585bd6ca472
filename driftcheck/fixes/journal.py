"""What a fix meant to do, written down before it is done: one folder for each transaction.

    <number>/manifest.json   the files, each with the hashes of its content before and after
    <number>/<index>         what a file held before

A transaction is there whole or not at all, since its folder gets its name when everything in it is on the disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.changes import check_path
from driftcheck.fixes.files import create, sync_folder
from driftcheck.fixes.state import UNFINISHED
from driftcheck.origins.limits import MEMBER_BYTES

_FORMAT = 1
_MANIFEST = "manifest.json"


class Entry(msgspec.Struct, frozen=True):
    """One file of a transaction, links followed: SHA-256 of its content before and after, and its mode."""

    path: str
    before: str
    after: str
    mode: int


class _Manifest(msgspec.Struct, frozen=True):
    format: int
    token: str
    files: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Transaction:
    """The files that one fix changed or meant to change."""

    folder: Path
    token: str
    entries: tuple[Entry, ...]

    def original(self, index: int) -> bytes:
        """What a file held before; raises DriftcheckError where that is lost."""
        data = _read(self.folder / str(index))
        if digest(data) != self.entries[index].before:
            raise _damaged(self.folder, f"it has no longer what {self.entries[index].path} held")
        return data

    def temporary(self, root: Path, index: int) -> Path:
        """Where new content of a file lies until it is put in place."""
        return (root / self.entries[index].path).parent / f".driftcheck-{self.token}-{index}"

    def temporaries(self, root: Path) -> Iterator[Path]:
        """Where new content of any of its files may lie after a run that was killed."""
        return (self.temporary(root, index) for index in range(len(self.entries)))


def begin(state: Path, files: Sequence[tuple[Entry, bytes]]) -> Transaction:
    """Writes down what is going to be done to these files, which hold these bytes; it is on the disk afterwards."""
    token = secrets.token_hex(8)
    entries = tuple(entry for entry, _ in files)
    making = state / f"{UNFINISHED[0]}{token}"
    folder = state / f"{max(_numbers(state), default=0) + 1:06}"
    try:
        making.mkdir(mode=0o700)
        for index, (_, original) in enumerate(files):
            create(making / str(index), original)
        create(making / _MANIFEST, msgspec.json.encode(_Manifest(_FORMAT, token, entries)))
        sync_folder(making)
        os.rename(making, folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DriftcheckError(f"cannot keep originals in {state}: {reason}; nothing has been changed") from error
    sync_folder(state)
    sync_folder(state.parent)
    return Transaction(folder, token, entries)


def transactions(state: Path) -> list[Transaction]:
    """What was done and not undone, newest first; raises DriftcheckError where the folder holds what we never wrote."""
    return [_transaction(state / f"{number:06}") for number in sorted(_numbers(state), reverse=True)]


def discard(transaction: Transaction) -> None:
    """Forgets a transaction, at once and for good."""
    gone = transaction.folder.with_name(f"{UNFINISHED[1]}{transaction.token}")
    try:
        os.rename(transaction.folder, gone)
        sync_folder(gone.parent)
        shutil.rmtree(gone)
    except OSError as error:
        raise DriftcheckError(f"cannot remove {transaction.folder}: {error.strerror or error}") from error


def digest(content: bytes) -> str:
    """The SHA-256 of a file's content in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _numbers(state: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(state) if re.fullmatch("[0-9]{6}", name)]
    except OSError:
        return []


def _transaction(folder: Path) -> Transaction:
    try:
        manifest = msgspec.json.decode(_read(folder / _MANIFEST), type=_Manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _damaged(folder, str(error)) from error
    # The folder may have come with somebody else's files: what it says is believed as little as they are.
    is_sound = manifest.format == _FORMAT and re.fullmatch("[0-9a-f]{16}", manifest.token)
    if not is_sound or len({entry.path for entry in manifest.files}) != len(manifest.files):
        raise _damaged(folder, "it is of another format")
    for entry in manifest.files:
        check_path(entry.path)
    return Transaction(folder, manifest.token, manifest.files)


def _read(file: Path) -> bytes:
    """The bytes of a file in a transaction's folder, neither of which may be a link."""
    try:
        if stat.S_ISDIR(os.lstat(file.parent).st_mode) and stat.S_ISREG(os.lstat(file).st_mode):
            with open(file, "rb") as stream:
                return stream.read(MEMBER_BYTES + 1)
    except OSError as error:
        raise _damaged(file.parent, f"{file.name}: {error.strerror or error}") from error
    raise _damaged(file.parent, f"{file.name} is no regular file")


def _damaged(folder: Path, reason: str) -> DriftcheckError:
    return DriftcheckError(f"{folder} is damaged ({reason}); remove it to go on without what it kept")
