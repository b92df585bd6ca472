"""The use case of `driftcheck fix`: audit, edit, audit again, and say of each finding what became of it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from driftcheck.audit import Sources
from driftcheck.fixes.changes import Change, Changes, ordered
from driftcheck.model import (
    Certainty,
    Edit,
    Finding,
    FixedFinding,
    Kind,
    LeftFinding,
    Location,
    Repair,
    Report,
    Severity,
)
from driftcheck.selection import suppressed
from driftcheck.tree import SourceTree

if TYPE_CHECKING:
    from driftcheck.fixes.recipes import Planned

Key = tuple[str, ...]

# A fix can uncover what the fault before it hid; what has not settled by then is left to a person.
_ROUNDS = 4


class EditedTree:
    """A client's tree in which some files say something else."""

    def __init__(self, tree: SourceTree, files: Mapping[str, bytes]) -> None:
        self.tree = tree
        self.files = dict(files)

        self.name = tree.name
        self.version = tree.version
        self.origin = tree.origin
        self.roots = tree.roots
        self.requirements = tree.requirements
        self.uploaded = tree.uploaded

    def __getattr__(self, name: str) -> object:
        """What some trees have and others do not."""
        return getattr(self.tree, name)

    @property
    def paths(self) -> Collection[str]:
        """The paths of the tree: no edit makes or removes a file."""
        return self.tree.paths

    def read(self, path: str) -> bytes:
        """The bytes of one file, edited or not."""
        return self.files[path] if path in self.files else self.tree.read(path)

    def digest(self, path: str) -> str:
        """A hash of the file's bytes in hexadecimal."""
        import hashlib

        return hashlib.sha256(self.files[path]).hexdigest() if path in self.files else self.tree.digest(path)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which findings are to be repaired, and how daringly: `names` are kinds and rules, empty for all."""

    is_unsafe: bool = False
    names: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()

    def takes(self, finding: Finding) -> bool:
        """True where a finding is one of those to be repaired."""
        own = {finding.kind.value, finding.rule or ""}
        return (not self.names or bool(own & self.names)) and not own & self.left_out


@dataclass(slots=True)
class _State:
    """The client as it is edited so far, what was asked for, and what could not be done, by finding."""

    original: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    refused: dict[Key, str] = field(default_factory=dict)
    excluded: set[Key] = field(default_factory=set)
    applied: dict[Key, Planned] = field(default_factory=dict)


def fixed(
    sources: Sequence[Sources], choice: Choice, tell: Callable[[str], None] | None = None
) -> tuple[Repair, Changes]:
    """Repairs a client for one release, or for several that it then has to run with, and says what came of it.

    `sources` are the client with each of the releases, the one that matters most first; of several the edits are
    guarded. `tell` is told what is being done. Raises DriftcheckError where a file can't be read.
    """
    return _Fixing(list(sources), choice, tell or (lambda _: None)).repaired()


class _Fixing:
    def __init__(self, sources: list[Sources], choice: Choice, tell: Callable[[str], None]) -> None:
        self.sources = sources
        self.client = sources[0].client
        self.choice = choice
        self.tell = tell
        self.is_guarded = len(sources) > 1
        self._known: list[tuple[Sources, dict[str, bytes], Report]] = []

    def repaired(self) -> tuple[Repair, Changes]:
        before = [self._audited(each, {}) for each in self.sources]
        state = self._edited()
        after = [self._audited(each, state.files) for each in self.sources]
        spoiled = self._spoiled(state, before, after)
        if spoiled:
            # What made things worse is not made; the rest is tried again without it.
            state = self._edited(spoiled)
            after = [self._audited(each, state.files) for each in self.sources]
        return self._told(state, before, after), _changes(state)

    def _audited(self, sources: Sources, files: Mapping[str, bytes]) -> Report:
        """What is found in the client with these files; the same question is not asked twice."""
        for asked, edited, report in self._known:
            if asked is sources and edited == files:
                return report
        self.tell(f"auditing against {sources.target.name} {sources.target.version or ''}".rstrip())
        # What a comment in the code takes out for a reason is none of what is to be repaired.
        report = suppressed(sources.audited(EditedTree(self.client, files) if files else None))
        self._known.append((sources, dict(files), report))
        return report

    # Edits

    def _edited(self, excluded: Collection[Key] = ()) -> _State:
        state = _State(excluded=set(excluded))
        for _ in range(2 if self.is_guarded else 1):
            was = dict(state.files)
            for sources in self.sources:
                self._settle(sources, state)
            if state.files == was:
                break
        return state

    def _settle(self, sources: Sources, state: _State) -> None:
        """Edits until nothing more can be."""
        for _ in range(_ROUNDS):
            if not self._round(self._audited(sources, state.files), state):
                return

    def _round(self, report: Report, state: _State) -> bool:
        """Makes the edits of one report; True where a file has changed."""
        from driftcheck.fixes.recipes import edited_files
        from driftcheck.fixes.sharing import is_taken_from

        due = list(self._due(report, state))
        tree = EditedTree(self.client, state.files)
        result = edited_files(
            lambda path: self._source(path, state),
            [planned for _, planned in due],
            lambda path, name: is_taken_from(tree, path, name),
        )
        for index, (key, planned) in enumerate(due):
            if index in result.refused:
                state.refused[key] = result.refused[index]
            else:
                state.applied[key] = planned
        state.files.update(result.files)
        return bool(result.files)

    def _due(self, report: Report, state: _State) -> Iterator[tuple[Key, Planned]]:
        """The fixes whose turn it is.

        A safe one may cure what stands beside it, and the same thing elsewhere in the file, so unsafe ones wait there;
        and whether a contract is kept is a matter of the whole client.
        """
        open_ = [
            (finding, planned)
            for finding in report.findings
            if (planned := self._planned(finding)) is not None
            and not {_spot(finding)} & (state.excluded | state.refused.keys())
        ]
        safe = [finding for finding, _ in open_ if _is_safe(finding)]
        scopes = {(finding.location.path, finding.scope) for finding in safe if finding.scope}
        symbols = {(finding.location.path, finding.symbol) for finding in safe}
        kept = any(finding.kind is Kind.BROKEN_CONTRACT for finding in safe)
        for finding, planned in open_:
            path = finding.location.path
            if kept and finding.kind is Kind.BROKEN_CONTRACT and not _is_safe(finding):
                continue
            if _is_safe(finding) or ((path, finding.scope) not in scopes and (path, finding.symbol) not in symbols):
                yield _spot(finding), planned

    def _source(self, path: str, state: _State) -> bytes:
        if path not in state.original:
            state.original[path] = self.client.read(path)
        return state.files.get(path, state.original[path])

    def _planned(self, finding: Finding) -> Planned | None:
        from driftcheck.fixes.recipes import Planned

        fix = finding.fix
        if not self.choice.takes(finding):
            return None
        if fix is None:
            return self._asked_for(finding)
        if not _is_safe(finding) and not (self.choice.is_unsafe and fix.applicability == "unsafe"):
            return None
        if self.is_guarded and fix.portable:
            return Planned(fix.portable)
        # What an older release lacks, and what a newer one does, is asked for where the code runs. What is missing in
        # one release is given to all, and where another does not take it, that is found and guarded in its turn.
        is_guarded = self.is_guarded and all(edit.recipe in _GUARDED for edit in fix.edits)
        return Planned(fix.edits, is_guarded) if fix.edits else None

    def _asked_for(self, finding: Finding) -> Planned | None:
        """The guard of an argument that one of several releases does not take, whatever it took before."""
        from driftcheck.fixes.recipes import Planned

        if not self.is_guarded or not self.choice.is_unsafe or finding.kind is not Kind.UNKNOWN_ARGUMENT:
            return None
        if finding.certainty is not Certainty.CERTAIN or finding.parameter is None:
            return None
        argument = (("argument", finding.parameter),)
        return Planned((Edit("remove-argument", finding.location, argument),), is_guarded=True)

    # What came of it

    def _spoiled(self, state: _State, before: Sequence[Report], after: Sequence[Report]) -> set[Key]:
        """The fixes that are to blame for what is found now, on a line that was edited, and was not found before.

        Those of the same function are, and for what stands at the head of a file those that put it there.
        """
        spoiled: set[Key] = set()
        edited = {path: frozenset(moved.edited()) for path, moved in _line_maps(state).items()}
        for old, new in zip(before, after, strict=True):
            known = {_key(finding) for finding in old.findings}
            for finding in new.findings:
                path = finding.location.path
                if finding.severity.rank < Severity.WARNING.rank or _key(finding) in known:
                    continue
                if finding.location.line in edited.get(path, ()):
                    spoiled |= {
                        key
                        for key, planned in state.applied.items()
                        if key[1] == path and (key[3] == finding.scope or _imports(planned, finding.symbol))
                    }
        return spoiled

    def _told(self, state: _State, before: Sequence[Report], after: Sequence[Report]) -> Repair:
        lines = _line_maps(state)
        told: dict[tuple[object, ...], FixedFinding] = {}
        for old, new, sources in zip(before, after, self.sources, strict=True):
            for finding in old.findings:
                if not self.choice.takes(finding) or finding.severity is Severity.NOTE:
                    continue
                found = self._treated(finding, new, state, lines, sources)
                identity = (_key(finding), finding.location)
                known = told.get(identity)
                if known is None or _RANK[found.status] > _RANK[known.status]:
                    told[identity] = found
        first = after[0]
        left = [
            LeftFinding(sources.target.version or sources.target.name, finding, _line_before(lines, finding.location))
            for report, sources in zip(after, self.sources, strict=True)
            for finding in report.findings
            if finding.is_severe
        ]
        entries = sorted(told.values(), key=lambda each: (each.finding.location, each.finding.kind.value))
        releases = tuple(sources.target.version or sources.target.name for sources in self.sources)
        notices = (*first.notices, *(f"{each.path} was left out: it {each.reason}" for each in first.client.skipped))
        if any(entry.status == "person" and entry.finding.fix is None for entry in entries):
            notices += _without_past(before[0])
        return Repair(first.client, first.target, tuple(entries), releases, tuple(left), notices)

    def _treated(
        self, finding: Finding, after: Report, state: _State, lines: Mapping[str, _LineMap], sources: Sources
    ) -> FixedFinding:
        key = _key(finding)
        now = _now(lines, finding.location)
        is_left = any(_key(each) == key and each.location.line in now for each in after.findings)
        fix, spot = finding.fix, _spot(finding)
        if not is_left and spot not in state.applied:
            beside = (
                planned
                for own, planned in state.applied.items()
                if own[1] == key[1] and own[3] and f"{key[3]}.".startswith(f"{own[3]}.")
            )
            if any(_may_hand_on_none(planned.edits) for planned in beside):
                return FixedFinding(replace(finding, fix=None), "unproved", f"another fix takes care of it: {_NONE}")
            return FixedFinding(replace(finding, fix=None), "proved", "another fix takes care of it")
        if not is_left:
            return self._repaired(finding, after, now, _now(lines, finding.call or finding.location), sources)
        if spot in state.excluded:
            return FixedFinding(finding, "person", "the edit would break something else")
        if spot in state.refused:
            return FixedFinding(finding, "person", state.refused[spot])
        if spot in state.applied:
            return FixedFinding(finding, "person", "the edit was made, and it is found all the same")
        if fix is not None and fix.edits and fix.applicability == "unsafe" and not self.choice.is_unsafe:
            return FixedFinding(finding, "unsafe", fix.description)
        return FixedFinding(finding, "person", fix.description if fix is not None else "no fix is known")

    def _repaired(self, finding: Finding, after: Report, now: range, calls: range, sources: Sources) -> FixedFinding:
        path = finding.location.path
        if finding.fix is not None and any(edit.recipe == "insert-helper" for edit in finding.fix.edits):
            return FixedFinding(finding, "unproved", "a helper decides as it runs, and no audit looks through it")
        if finding.fix is not None and any(
            edit.recipe == "add-parameter" and (edit.parameter("parameter") or "").startswith("**")
            for edit in finding.fix.edits
        ):
            return FixedFinding(finding, "unproved", "what is passed is taken now, and nobody looks at it")
        if finding.fix is not None and _may_hand_on_none(finding.fix.edits):
            return FixedFinding(finding, "unproved", _NONE)
        unresolved = [each for each in after.unresolved if each.path == path and each.line in now]
        if unresolved:
            return FixedFinding(finding, "unproved", unresolved[0].reason)
        if any(skipped.path == path for skipped in after.client.skipped):
            return FixedFinding(finding, "unproved", "the file can't be read any more")
        if sources.runtime is not None and finding.call is not None:
            is_bound = any(bound == path and line in calls for bound, line in after.bound)
            if not is_bound and finding.kind in _BINDING:
                return FixedFinding(finding, "unproved", "the interpreter could not be asked about the call")
            if is_bound:
                return FixedFinding(finding, "proved", "inspect.signature binds the call")
        return FixedFinding(finding, "proved", "the audit finds nothing there any more")


def _without_past(report: Report) -> tuple[str, ...]:
    """Says that no fix can be told from what was before, where the release is held against itself or nothing."""
    target, baseline = report.target, report.baseline
    if baseline is None:
        return ("without a baseline what an argument or name has become can't be told; --baseline names one",)
    if target.version is None or target.version != baseline.version:
        return ()
    itself = f"the client is taken to be written for {target.name} {target.version} itself"
    unknown = "so what an argument or name has become can't be told"
    return (f"{itself}, {unknown}; --baseline names the release that it worked with",)


_RANK = {"proved": 0, "unproved": 1, "unsafe": 2, "person": 3}
_BINDING = (
    Kind.UNKNOWN_ARGUMENT,
    Kind.MISSING_ARGUMENT,
    Kind.TOO_MANY_POSITIONAL_ARGUMENTS,
    Kind.POSITIONAL_SHIFT,
)
# Recipes of which an older or newer release may want the opposite at the very place.
_GUARDED = (
    "move-import",
    "move-attribute",
    "remove-argument",
    "rename-argument",
    "rename-attribute",
    "rename-string",
    "rename-strings",
    "remove-statement",
    "replace-attribute",
    "unwrap-subscript",
)


_NONE = "None is what it gets from calls of the client's own that don't pass it"


def _may_hand_on_none(edits: Iterable[Edit]) -> bool:
    """True where a parameter that has to be given is taken with None for a default."""
    return any(edit.recipe == "add-parameter" and edit.parameter("required") == "yes" for edit in edits)


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability == "safe"


def _key(finding: Finding) -> Key:
    """What identifies a finding in an edited file, whose lines may have moved."""
    return (
        f"{finding.kind.value} {finding.parameter or ''} {finding.rule or ''}",
        finding.location.path,
        finding.symbol,
        finding.scope,
    )


def _spot(finding: Finding) -> Key:
    """What identifies a finding among others of the same function."""
    return (*_key(finding), finding.snippet)


def _imports(planned: Planned, symbol: str) -> bool:
    """True where a fix puts an import of a symbol at the head of a file."""
    name = symbol.rpartition(".")[2]
    return any(
        edit.parameter("to") == symbol or f"import {name}" in (edit.parameter("helper") or "") for edit in planned.edits
    )


def _changes(state: _State) -> Changes:
    return ordered(Change(path, state.original[path], after) for path, after in state.files.items())


class _LineMap:
    """Where the lines of a file are after its edits."""

    def __init__(self, before: bytes, after: bytes) -> None:
        matcher = difflib.SequenceMatcher(None, before.split(b"\n"), after.split(b"\n"), autojunk=False)
        self.blocks = matcher.get_opcodes()

    def lines(self, line: int) -> range:
        """The lines that a line has become, counted from 1."""
        for tag, start, end, new_start, new_end in self.blocks:
            if start < line <= end:
                if tag == "equal":
                    return range(line - start + new_start, line - start + new_start + 1)
                return range(new_start + 1, max(new_end, new_start + 1) + 1)
        return range(line, line + 1)

    def line_before(self, line: int) -> int:
        """The line that has become a line, the nearest one where it is new."""
        for tag, start, end, new_start, new_end in self.blocks:
            if new_start < line <= new_end:
                return line - new_start + start if tag == "equal" else max(1, min(line - new_start + start, end))
        return line

    def edited(self) -> Iterable[int]:
        """The lines that are new or changed, counted from 1."""
        for tag, _, _, start, end in self.blocks:
            if tag != "equal":
                yield from range(start + 1, end + 1)


def _line_maps(state: _State) -> dict[str, _LineMap]:
    """Where the lines of each edited file are now."""
    return {path: _LineMap(state.original[path], edited) for path, edited in state.files.items()}


def _line_before(lines: Mapping[str, _LineMap], place: Location) -> int:
    """The line of a place in an edited file as it was before the edits."""
    return lines[place.path].line_before(place.line) if place.path in lines else place.line


def _now(lines: Mapping[str, _LineMap], place: Location) -> range:
    """The lines that the line of a place has become."""
    return lines[place.path].lines(place.line) if place.path in lines else range(place.line, place.line + 1)
