"""The grammar of a Markdown file of cases: headings, named blocks, settings, and what a section inherits."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePosixPath

from driftcheck.tree import MemoryTree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BASELINE = "baseline/"
TARGET = "target/"
BOTH = "both/"

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*(.*?)\s*$")
_PATH = re.compile(r"`([^`\s]+)`(,\s*fixed)?\s*:?$")
_ASSERTION = re.compile(r"#\s*(?:finding|unresolved):")


class CaseSyntaxError(Exception):
    """A file of cases that does not follow the grammar; `line` counts from 1."""

    def __init__(self, line: int, message: str):
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Block:
    """The content of a fenced block; `line` is where its first line stands in the Markdown file."""

    text: str
    line: int

    @property
    def line_count(self) -> int:
        """How many lines of the Markdown file the content takes."""
        return self.text.count("\n")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an unnamed `toml` block may say; a sub-section inherits it key by key."""

    target_name: str = "vllm"
    target_version: str = "0.16.0"
    baseline_version: str = "0.11.0"
    client_name: str = "client"
    model: str = ""
    baseline: bool = True
    broken_at_baseline: bool = False
    unresolved: bool = False
    portable: bool = False
    unparsable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One section that is checked, with everything it inherited.

    `name` is unique in its file; `report` is the expected text report, where the section has one, and `fixed` are the
    client's files as they are to be once they are fixed.
    """

    name: str
    title: str
    line: int
    files: Mapping[str, Block]
    settings: Settings
    report: Block | None = None
    fixed: Mapping[str, Block] = field(default_factory=dict)

    def client_blocks(self) -> dict[str, Block]:
        """The client's files as written, with their assertions."""
        return {path: block for path, block in self.files.items() if not path.startswith((BASELINE, TARGET, BOTH))}

    def target_tree(self, *, backwards: bool = False) -> MemoryTree:
        """The target's stubs; `backwards` adds the files in the opposite order, which must change nothing."""
        return self._stub_tree(TARGET, self.settings.target_version, backwards=backwards)

    def baseline_tree(self, *, backwards: bool = False) -> MemoryTree | None:
        """The baseline's stubs, None where the case has none."""
        if not self.settings.baseline or not any(path.startswith((BASELINE, BOTH)) for path in self.files):
            return None
        return self._stub_tree(BASELINE, self.settings.baseline_version, backwards=backwards)

    def _stub_tree(self, prefix: str, version: str, *, backwards: bool) -> MemoryTree:
        stubs: dict[str, str] = {}
        for wanted in (BOTH, prefix):
            stubs |= {path[len(wanted) :]: block.text for path, block in self.files.items() if path.startswith(wanted)}
        for path in list(stubs):
            for folder in PurePosixPath(path).parents:
                if path.endswith(".py") and folder.name and not folder.name.endswith(".dist-info"):
                    stubs.setdefault(f"{folder}/__init__.py", "")
        order = reversed(stubs.items()) if backwards else stubs.items()
        return MemoryTree(dict(order), self.settings.target_name, version)


@dataclass(slots=True)
class _Section:
    """A section while it is read."""

    title: str
    level: int
    line: int
    parent: _Section | None = None
    files: dict[str, Block] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    report: Block | None = None
    fixed: dict[str, Block] = field(default_factory=dict)
    has_subsections: bool = False

    @property
    def is_case(self) -> bool:
        own_client = any(not path.startswith((BASELINE, TARGET, BOTH)) for path in self.files)
        changed = bool(self.files or self.settings or self.report)
        return own_client or (changed and not self.has_subsections)


@dataclass(frozen=True, slots=True)
class _Fence:
    """A fenced block as it stands: its info string, and the path that the paragraph before it names."""

    info: str
    block: Block
    path: str | None
    is_fixed: bool


def read_cases(text: str) -> tuple[Case, ...]:
    """The cases of a Markdown file, in order; raises CaseSyntaxError."""
    sections: list[_Section] = []
    current: _Section | None = None
    for element in _elements(text.splitlines()):
        if isinstance(element, _Section):
            while current is not None and current.level >= element.level:
                current = current.parent
            if current is not None:
                current.has_subsections = True
            element.parent = current
            current = element
            sections.append(element)
        else:
            if current is None:
                raise CaseSyntaxError(element.block.line - 1, "a block before the first heading belongs to no section")
            _add(current, element)
    cases: list[Case] = []
    for section in sections:
        if section.is_case:
            case = _case(section)
            if any(other.name == case.name for other in cases):
                raise CaseSyntaxError(section.line, f"a second section is named {case.name}: give it another heading")
            cases.append(case)
    return tuple(cases)


def _elements(lines: list[str]) -> Iterator[_Section | _Fence]:
    """Headings, and fenced blocks with the path named before them."""
    named: tuple[str, int, bool] | None = None
    starts_paragraph = True
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        fence = _FENCE.match(line)
        if named is not None and line.strip() and fence is None:
            raise CaseSyntaxError(named[1], f"`{named[0]}` names a file, but no block follows")
        if fence is not None:
            mark, info = fence.group(1), fence.group(2)
            first = index
            while index < len(lines) and not re.fullmatch(f"{mark[0]}{{{len(mark)},}}\\s*", lines[index]):
                index += 1
            if index == len(lines):
                raise CaseSyntaxError(first, "this block is never closed")
            block = Block("".join(f"{content}\n" for content in lines[first:index]), first + 1)
            index += 1
            yield _Fence(info, block, named[0] if named else None, named is not None and named[2])
            named = None
            starts_paragraph = True
            continue
        heading = _HEADING.match(line)
        path = _PATH.match(line.strip()) if starts_paragraph else None
        if heading is not None:
            yield _Section(heading.group(2), len(heading.group(1)), index)
        elif path is not None:
            named = path.group(1), index, path.group(2) is not None
        starts_paragraph = heading is not None or not line.strip()
    if named is not None:
        raise CaseSyntaxError(named[1], f"`{named[0]}` names a file, but no block follows")


def _add(section: _Section, fence: _Fence) -> None:
    """Gives a block to its section; an unnamed block that means nothing here is prose."""
    line = fence.block.line - 1
    if fence.is_fixed:
        assert fence.path is not None
        if fence.path in section.fixed:
            raise CaseSyntaxError(line, f"`{fence.path}` is given twice as it is once it is fixed")
        section.fixed[fence.path] = fence.block
    elif fence.path is not None:
        pure = PurePosixPath(fence.path)
        if pure.is_absolute() or ".." in pure.parts or "\\" in fence.path or str(pure) != fence.path:
            raise CaseSyntaxError(line, f"`{fence.path}` is not a plain path below the case's folder")
        if fence.path in section.files:
            raise CaseSyntaxError(line, f"`{fence.path}` is given twice in this section")
        section.files[fence.path] = fence.block
    elif fence.info == "toml":
        section.settings.update(_settings(fence.block))
    elif fence.info == "text report":
        if section.report is not None:
            raise CaseSyntaxError(line, "a section has one report at most")
        section.report = fence.block
    elif _ASSERTION.search(fence.block.text):
        raise CaseSyntaxError(line, "this block asserts findings, but no path in backticks stands before it")


def _settings(block: Block) -> dict[str, object]:
    """The settings of a `toml` block, by field name."""
    try:
        table = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        raise CaseSyntaxError(block.line, f"this is no TOML: {error}") from error
    defaults = {known.name.replace("_", "-"): known.default for known in fields(Settings)}
    settings: dict[str, object] = {}
    for key, value in table.items():
        if key not in defaults:
            raise CaseSyntaxError(block.line, f"no setting is named {key}; there are {', '.join(sorted(defaults))}")
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = tuple(value)
        if type(value) is not type(defaults[key]):
            raise CaseSyntaxError(block.line, f"{key} is a {type(defaults[key]).__name__}, not {value!r}")
        settings[key.replace("-", "_")] = value
    return settings


def _case(section: _Section) -> Case:
    """A section with what the sections above it share."""
    line_of_descent = [section]
    while (parent := line_of_descent[0].parent) is not None:
        line_of_descent.insert(0, parent)
    files: dict[str, Block] = {}
    settings: dict[str, object] = {}
    for ancestor in line_of_descent:
        for path in ancestor.files:
            if path.startswith(BOTH):  # what a section says of both releases replaces what it inherits for either
                files.pop(TARGET + path[len(BOTH) :], None)
                files.pop(BASELINE + path[len(BOTH) :], None)
        files |= ancestor.files
        settings |= ancestor.settings
    titles = [ancestor.title for ancestor in line_of_descent]
    case = Case(
        name="/".join(_slug(title) for title in (titles[1:] or titles)),
        title=section.title,
        line=section.line,
        files=files,
        settings=replace(Settings(), **settings),  # type: ignore[arg-type]
        report=section.report,
        fixed=section.fixed,
    )
    unknown = next((path for path in section.fixed if path not in case.client_blocks()), None)
    if unknown is not None:
        raise CaseSyntaxError(section.fixed[unknown].line, f"`{unknown}` is fixed, and no file of the client's")
    if not case.client_blocks():
        raise CaseSyntaxError(section.line, f'"{section.title}" has no client file')
    if not any(path.startswith((TARGET, BOTH)) for path in files):
        raise CaseSyntaxError(section.line, f'"{section.title}" has no stub of the target')
    return case


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9_.]+", "-", title.lower()).strip("-.")
