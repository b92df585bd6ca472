"""The trailing comments that say what an audit must find on their line."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from driftcheck.model import Certainty, Finding, Kind, Severity, Unresolved
from tests.literate.document import Block, CaseSyntaxError

_MARK = re.compile(r"#\s*(finding|unresolved):")
_FINDING = re.compile(r'\s*\[([a-z-]+)\]\s*"((?:[^"\\]|\\.)+)"((?:\s+[a-z]+=\S+)*)\s*$')
_QUALIFIERS: dict[str, frozenset[str] | None] = {
    "severity": frozenset(severity.value for severity in Severity),
    "certainty": frozenset(certainty.value for certainty in Certainty),
    "drift": frozenset({"true", "false", "none"}),
    "symbol": None,
    "parameter": None,
    "raises": None,
    "scope": None,
    "rule": None,
}


@dataclass(frozen=True, slots=True)
class ExpectedFinding:
    """`# finding: [kind] "text"`: a finding of this kind on this line, with the text in its message."""

    path: str
    line: int
    kind: str
    text: str
    qualifiers: tuple[tuple[str, str], ...] = ()

    def matches(self, finding: Finding) -> bool:
        """True where the finding is the expected one."""
        return (
            (finding.location.path, finding.location.line, finding.kind.value) == (self.path, self.line, self.kind)
            and self.text in finding.message
            and all(qualifier(finding, name) == value for name, value in self.qualifiers)
        )

    def __str__(self) -> str:
        return " ".join([f'[{self.kind}] "{self.text}"', *(f"{name}={value}" for name, value in self.qualifiers)])


@dataclass(frozen=True, slots=True)
class ExpectedUnresolved:
    """`# unresolved: text`: a usage on this line that could not be judged, with the text in its reason."""

    path: str
    line: int
    text: str

    def matches(self, unresolved: Unresolved) -> bool:
        """True where the usage is the expected one."""
        return (unresolved.path, unresolved.line) == (self.path, self.line) and self.text in unresolved.reason

    def __str__(self) -> str:
        return f"unresolved: {self.text}"


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's file with its assertions taken out, line for line."""

    text: str
    findings: tuple[ExpectedFinding, ...] = ()
    unresolved: tuple[ExpectedUnresolved, ...] = ()


def qualifier(finding: Finding, name: str) -> str:
    """The text that an assertion compares for one of its qualifiers."""
    if name == "drift":
        return {True: "true", False: "false", None: "none"}[finding.drift]
    if name == "raises" and finding.raises is not None:
        # What the exception says is in the report's tests; here its name is enough.
        return finding.raises.partition(":")[0]
    value: object = getattr(finding, name)
    if isinstance(value, (Severity, Certainty)):
        return str(value.value)
    return "none" if value is None else str(value)


def read_client_file(path: str, block: Block) -> ClientFile:
    """Takes the assertions out of a file; raises CaseSyntaxError where one can't be read."""
    if not path.endswith(".py"):
        return ClientFile(block.text)
    lines = block.text.split("\n")
    expected: list[ExpectedFinding | ExpectedUnresolved] = []
    asserting = dict(_assertions(block.text))
    for number in sorted(asserting):
        column = asserting[number]
        comment = lines[number - 1][column:]
        lines[number - 1] = lines[number - 1][:column].rstrip()
        about = number
        if not lines[number - 1]:  # a comment alone on its line speaks for the next line that says anything else
            about += 1
            while about in asserting and not lines[about - 1][: asserting[about]].strip():
                about += 1
            if about > len(lines) or not lines[about - 1].strip():
                raise CaseSyntaxError(block.line + number - 1, "this assertion stands before no line of code")
        for name, text in _split(comment):
            expected.append(_read(path, about, name, text, block.line + number - 1))
    return ClientFile(
        text="\n".join(lines),
        findings=tuple(each for each in expected if isinstance(each, ExpectedFinding)),
        unresolved=tuple(each for each in expected if isinstance(each, ExpectedUnresolved)),
    )


def _assertions(text: str) -> Iterator[tuple[int, int]]:
    """(line, column) of the first assertion on each line that has one."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (mark := _MARK.search(token.string)):
                yield token.start[0], token.start[1] + mark.start()
    except (tokenize.TokenError, SyntaxError):  # a case about code that can't be parsed
        for number, line in enumerate(text.split("\n"), start=1):
            if mark := _MARK.search(line):
                yield number, mark.start()


def _split(comment: str) -> Iterator[tuple[str, str]]:
    marks = list(_MARK.finditer(comment))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        yield mark.group(1), comment[mark.end() : following.start() if following else None]


def _read(path: str, about: int, name: str, text: str, markdown_line: int) -> ExpectedFinding | ExpectedUnresolved:
    if name == "unresolved":
        if not text.strip():
            raise CaseSyntaxError(markdown_line, "# unresolved: says no reason")
        return ExpectedUnresolved(path, about, text.strip())
    parts = _FINDING.match(text)
    if parts is None:
        raise CaseSyntaxError(markdown_line, f'"# finding:{text}" does not read `# finding: [kind] "text" name=value`')
    kind, message, rest = parts.groups()
    if kind not in {known.value for known in Kind}:
        raise CaseSyntaxError(markdown_line, f"no kind of finding is named {kind}")
    qualifiers = tuple((key, value) for key, _, value in (word.partition("=") for word in rest.split()))
    for key, value in qualifiers:
        if key not in _QUALIFIERS:
            raise CaseSyntaxError(markdown_line, f"no qualifier is named {key}; there are {', '.join(_QUALIFIERS)}")
        allowed = _QUALIFIERS[key]
        if allowed is not None and value not in allowed:
            raise CaseSyntaxError(markdown_line, f"{key} is one of {', '.join(sorted(allowed))}, not {value}")
    return ExpectedFinding(path, about, kind, re.sub(r"\\(.)", r"\1", message), qualifiers)
