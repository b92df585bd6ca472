"""The file of known findings: what an audit found once and is no news any more. It names no lines, and only shrinks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.model import Finding, Report, TargetSummary

_LARGEST = 32 * 1024 * 1024
_FORMAT = 1
_NOT_SAID = re.compile(r"""[\s"',()\\]+""")


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One known finding. `text` is its source line without what a formatter changes."""

    client: str
    path: str
    scope: str
    kind: str
    symbol: str
    parameter: str
    text: str


@dataclass(frozen=True, slots=True)
class KnownFindings:
    """What a file of known findings says: the findings, sorted, and the release that they were found with."""

    target: str
    version: str
    entries: tuple[Entry, ...]


def entry_of(report: Report, finding: Finding) -> Entry:
    """What a finding is known by."""
    return Entry(
        report.client.name,
        finding.location.path,
        finding.scope,
        finding.kind.value,
        finding.symbol,
        finding.parameter or "",
        _NOT_SAID.sub("", finding.snippet)[:200],
    )


def read_known(path: Path) -> KnownFindings:
    """The file's content; raises DriftcheckError, naming the file, for what is none."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except FileNotFoundError as error:
        raise DriftcheckError(f"{path}: no such file; --write-known {path} makes one") from error
    except OSError as error:
        raise DriftcheckError(f"{path} can't be read: {error.strerror}") from error
    if len(content) > _LARGEST:
        raise DriftcheckError(f"{path} is larger than 32 MiB, which no file of known findings is")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DriftcheckError(f"{path} is no file of known findings: {error}; --write-known writes one") from error
    found = _parsed(document)
    if found is None:
        raise DriftcheckError(f"{path} is no file of known findings of this version; --write-known writes one")
    return found


def _parsed(document: object) -> KnownFindings | None:
    if not isinstance(document, dict) or document.get("known-findings") != _FORMAT:
        return None
    target, version, entries = (document.get(key) for key in ("target", "version", "findings"))
    if not (isinstance(target, str) and isinstance(version, str) and isinstance(entries, list)):
        return None
    fields = Entry.__slots__
    parsed = []
    for entry in entries:
        if not isinstance(entry, dict) or any(not isinstance(entry.get(field), str) for field in fields):
            return None
        parsed.append(Entry(*(entry[field] for field in fields)))
    return KnownFindings(target, version, tuple(sorted(parsed)))


def written(known: KnownFindings) -> str:
    """The file's text, a finding a line, so that two branches that shrink it can be merged."""
    lines = [json.dumps({field: getattr(entry, field) for field in Entry.__slots__}) for entry in sorted(known.entries)]
    findings = ",\n".join(f"    {line}" for line in lines)
    head = f'{{\n  "known-findings": {_FORMAT},\n  "target": {json.dumps(known.target)},\n'
    listed = f"[\n{findings}\n  ]" if lines else "[]"
    return f'{head}  "version": {json.dumps(known.version)},\n  "findings": {listed}\n}}\n'


def is_of(known: KnownFindings, target: TargetSummary) -> bool:
    """True where the file was written with the release that is audited against."""
    return (known.target, known.version) == (target.name, target.version or "")


def matched(
    entries: Iterable[Entry], found: Sequence[Entry], exists: Callable[[str], bool]
) -> tuple[set[int], list[Entry]]:
    """Which of the found ones are known, by index, and the entries that were not found again.

    An entry stands for one finding. It is looked for where it was, then in the same function of a file that has the
    same text there, and last, where its file is gone (`exists` says which are there), in that function of any file.
    """
    left = Counter(entries)
    open_ = dict(enumerate(found))
    known: set[int] = set()
    for likeness in (_whole, _placed, _moved, _named):
        waiting: dict[tuple[str, ...], list[Entry]] = {}
        for entry in sorted(left.elements()):
            if likeness is not _named or not exists(entry.path):
                waiting.setdefault(likeness(entry), []).append(entry)
        for index in list(open_):
            same = waiting.get(likeness(open_[index]))
            if same:
                left[same.pop(0)] -= 1
                known.add(index)
                del open_[index]
    return known, sorted(left.elements())


def _named(entry: Entry) -> tuple[str, ...]:
    return entry.client, entry.scope, entry.kind, entry.symbol, entry.parameter


def _placed(entry: Entry) -> tuple[str, ...]:
    return (*_named(entry), entry.path)


def _moved(entry: Entry) -> tuple[str, ...]:
    return (*_named(entry), entry.text)


def _whole(entry: Entry) -> tuple[str, ...]:
    return (*_named(entry), entry.path, entry.text)
