"""What fixes come to as lines replaced by text, one fix at a time, for tools that offer them to a person."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from driftcheck.errors import DriftcheckError
from driftcheck.fixes.recipes import Planned, edited
from driftcheck.model import Edit, Finding, Replacement

# Each fix has its file parsed and written once more, which takes some ten seconds for so many bytes.
_MOST_BYTES = 500_000


def replacements(findings: Iterable[Finding], read: Callable[[str], bytes]) -> dict[str, tuple[Replacement, ...]]:
    """What the fixes of the findings replace, by fingerprint; those that can't be made in full are left out.

    `read` gives the client's files. Where there are very many, those of the worst findings are worked out, in so far as
    their files are not too large together.
    """
    fixable = [finding for finding in findings if finding.fix is not None and finding.fix.edits]
    found = {}
    left = _MOST_BYTES
    for finding in sorted(fixable, key=lambda finding: (-finding.severity.rank, finding.location)):
        assert finding.fix is not None
        sources = _sources(finding.fix.edits, read)
        left -= sum(map(len, sources.values()))
        if left < 0:
            break
        replaced = _replaced(finding.fix.edits, sources)
        if replaced:
            found[finding.fingerprint] = replaced
    return found


def _sources(edits: Iterable[Edit], read: Callable[[str], bytes]) -> dict[str, bytes]:
    """The files that are edited; those that can't be read any more are left out."""
    found = {}
    for path in sorted({edit.location.path for edit in edits}):
        with suppress(DriftcheckError, KeyError):
            found[path] = read(path)
    return found


def _replaced(edits: Iterable[Edit], sources: Mapping[str, bytes]) -> tuple[Replacement, ...]:
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.location.path, []).append(edit)
    found: list[Replacement] = []
    for path, own in sorted(by_path.items()):
        try:
            source = sources[path]
            result = edited(source, [Planned(tuple(own))])
            if result.refused:
                return ()
            found += _differences(path, source, result.source)
        except (KeyError, SyntaxError, UnicodeError):
            return ()
    return tuple(found)


def _differences(path: str, before: bytes, after: bytes) -> Iterator[Replacement]:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
    old, new = before.decode(encoding).splitlines(keepends=True), after.decode(encoding).splitlines(keepends=True)
    # What is the same before and behind is set aside: among many equal lines the search for what changed takes forever.
    head = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), len(old))
    most = min(len(old), len(new)) - min(head, len(old), len(new))
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    before_lines, after_lines = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(None, before_lines, after_lines, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield Replacement(path, head + start + 1, head + end + 1, "".join(after_lines[new_start:new_end]))
