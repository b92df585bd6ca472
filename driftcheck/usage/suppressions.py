"""Comments of the client's that say which findings don't count there: `# driftcheck: ignore[kind] reason`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from driftcheck.model import Suppression

_MARK = re.compile(rb"#[ \t]*driftcheck:")
_COMMENT = re.compile(r"#[ \t]*driftcheck:[ \t]*(?P<verb>\w*)[ \t]*(?P<names>\[[^\]#]*\]?)?(?P<reason>[^#]*)")
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class _Comment:
    line: int
    text: str


def suppressions(path: str, source: bytes) -> Iterator[Suppression]:
    """The suppressions of one file, those that can't be followed with what is wrong about them.

    A comment belongs to the statement that it stands beside or in, which for a compound one is its head; on lines of
    its own it belongs to the statement below. So it stays with its statement however the lines are broken.
    """
    if _MARK.search(source) is None:
        return
    waiting: list[_Comment] = []
    inside: list[_Comment] = []
    first: int | None = None
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type == tokenize.COMMENT:
                (waiting if first is None else inside).append(_Comment(token.start[0], token.string))
            elif token.type == tokenize.NEWLINE and first is not None:
                for comment in (*waiting, *inside):
                    yield from _suppression(path, comment, first, token.start[0])
                waiting, inside, first = [], [], None
            elif first is None and token.type not in _BETWEEN:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        # The audit says of the file that it can't be read.
        return
    for comment in (*waiting, *inside):
        yield from _suppression(path, comment, comment.line, comment.line)


_BETWEEN = (
    *(tokenize.ENCODING, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENDMARKER, tokenize.COMMENT),
)


def _suppression(path: str, comment: _Comment, first: int, last: int) -> Iterator[Suppression]:
    match = _COMMENT.search(comment.text)
    if match is None:
        return
    written = (match["names"] or "").strip()
    names = tuple(name for name in (part.strip() for part in written.strip("[]").split(",")) if name)
    reason = match["reason"].strip(" \t-:")[:_LONGEST]
    yield Suppression(path, comment.line, first, last, names, reason, _fault(match["verb"], written, names, reason))


def _fault(verb: str, written: str, names: tuple[str, ...], reason: str) -> str | None:
    if verb != "ignore":
        return f"{verb or 'nothing'!r} after 'driftcheck:' is not known; write ignore[kind] and a reason"
    if not names or not written.endswith("]"):
        return "it names no kind of finding; write ignore[kind] and a reason"
    return None if reason else f"it gives no reason; write one after ignore[{', '.join(names)}]"
