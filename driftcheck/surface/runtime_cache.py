"""What interpreters said before, kept in the user's cache folder so that a second audit need not ask."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from driftcheck.kept import keep
from driftcheck.surface.interpreter import PROBE, Record, Session

_CACHED_FILES = 64


class RuntimeCache:
    """Answers kept in a file; one that is damaged or was made in another environment counts as empty."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.python: str | None = None
        self.answers = self._load()

    @classmethod
    def open(cls, folder: Path | None, key: str | None, kind: str, session: Session) -> RuntimeCache:
        if folder is None or key is None:
            return cls(None)
        digest = hashlib.sha256()
        for part in (key, kind, *_identity(session)):
            digest.update(part.encode("utf-8", "surrogateescape") + b"\0")
        return cls(folder / "runtime" / f"{digest.hexdigest()[:40]}.json")

    def _load(self) -> dict[str, Record]:
        if self._path is None:
            return {}
        try:
            content = json.loads(self._path.read_bytes())
            answers, folders = content["answers"], content["folders"]
            if folders != _stamps(folders) or not all(isinstance(answer, dict) for answer in answers.values()):
                return {}
            self.python = str(content["python"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}
        return dict(answers)

    def store(self, answers: Mapping[str, Record], session: Session) -> None:
        """Add what is worth keeping: failures are not, since they may be gone the next time."""
        kept = {
            name: answer
            for name, answer in answers.items()
            if "failure" not in answer or answer.get("status") == "missing"
        }
        if self._path is None or not kept:
            return
        # Another audit may have stored meanwhile; one that does so at this very moment loses nothing but time.
        merged = {**self._load(), **kept}
        content = {"python": session.python, "folders": _stamps(session.folders), "answers": merged}
        keep(self._path, json.dumps(content, sort_keys=True).encode("ascii"), most=_CACHED_FILES)


def _identity(session: Session) -> list[str]:
    """What makes an answer of this interpreter another's: its build, its environment, the probe itself."""
    parts = [hashlib.sha256(PROBE.read_bytes()).hexdigest(), session.executable]
    status = os.stat(session.executable)
    parts.append(f"{status.st_size} {status.st_mtime_ns}")
    for folder in Path(session.executable).parents[:2]:
        with suppress(OSError):
            parts.append(Path(folder, "pyvenv.cfg").read_text("utf-8", "replace"))
    changed = {name: value for name, value in session.variables.items() if os.environ.get(name) != value}
    names = sorted({*changed, *(name for name in session.variables if name.startswith("PYTHON"))})
    return parts + [f"{name}={session.variables[name]}" for name in names]


def _stamps(folders: Iterable[str]) -> dict[str, int]:
    """When something was last installed into, or removed from, each of the folders."""
    stamps = {}
    for folder in folders:
        try:
            stamps[folder] = os.stat(folder).st_mtime_ns
        except OSError:
            stamps[folder] = 0
    return stamps
