"""What fixes come to as lines replaced by text, one fix at a time, for tools that offer them to a person."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Callable, Iterable, Iterator

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.recipes import Planned, edited
from driftcheck.model import Edit, Finding, Replacement

# Each has its file parsed and written once more.
_MOST = 200


def replacements(findings: Iterable[Finding], read: Callable[[str], bytes]) -> dict[str, tuple[Replacement, ...]]:
    """What the fixes of the findings replace, by fingerprint; those that can't be made in full are left out.

    `read` gives the client's files. Of very many fixes only those of the worst findings are worked out.
    """
    fixable = [finding for finding in findings if finding.fix is not None and finding.fix.edits]
    worst = sorted(fixable, key=lambda finding: (-finding.severity.rank, finding.location))[:_MOST]
    found = {}
    for finding in worst:
        assert finding.fix is not None
        replaced = _replaced(finding.fix.edits, read)
        if replaced:
            found[finding.fingerprint] = replaced
    return found


def _replaced(edits: Iterable[Edit], read: Callable[[str], bytes]) -> tuple[Replacement, ...]:
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.location.path, []).append(edit)
    found: list[Replacement] = []
    for path, own in sorted(by_path.items()):
        try:
            source = read(path)
            result = edited(source, [Planned(tuple(own))])
            if result.refused:
                return ()
            found += _differences(path, source, result.source)
        except (DriftcheckError, KeyError, SyntaxError, UnicodeError):
            return ()
    return tuple(found)


def _differences(path: str, before: bytes, after: bytes) -> Iterator[Replacement]:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
    old, new = before.decode(encoding).splitlines(keepends=True), after.decode(encoding).splitlines(keepends=True)
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Replacement(path, start + 1, end + 1, "".join(new[new_start:new_end]))
