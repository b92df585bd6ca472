"""Holds what an upgrade is said to mean for a client against what the client's next version did to its own lines.

    python -m benchmarks.upgrades [CLIENT ...] [--read]

A CLIENT is a part of a name in the table below. Each row is a client's version made for one release of the target and
the next one, made for a later release. A place that is said to break is *changed* where the next version has another
statement there, or none; *mended* where the same statement still stands and nothing is found about it any more, since
what it rests on was changed; and *left* where all is as it was. Of the uses that the next version has otherwise, or no
more, though they are not said to break, some are of symbols of which something is *told* as behaviour, some of symbols
that are different in some way that is *untold*, and the rest of symbols that are what they were. Of the symbols that
behave otherwise, and of those that don't, it is counted with how many the client's lines were changed.
`--read` lists what has to be read.
"""

from __future__ import annotations

import argparse
import ast
import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from driftcheck.audit import sources_of
from driftcheck.compare.couplings import Coupling, couplings
from driftcheck.compare.standing import Standings
from driftcheck.compare.standing_changes import standing_changes
from driftcheck.knowledge import knowledge_of
from driftcheck.model import Finding, Report, Severity
from driftcheck.origins.select import client_tree
from driftcheck.origins.settings import Settings
from driftcheck.readings import Readings
from driftcheck.symbol_history import Standing
from driftcheck.symbol_upgrade import ChangedSymbol, Role, Upgrade, Use
from driftcheck.tree import SourceTree
from driftcheck.upgrade import upgrade_of

_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
# What a person changes because of the target's API: how it is called, named, overridden or derived from.
_TOLD: frozenset[Role] = frozenset(("import", "call", "super", "attribute", "override", "patch", "base", "variable"))

_COLUMNS = (
    "from",
    "to",
    "breaks",
    "changed",
    "mended",
    "left",
    "warnings",
    "changed or mended",
    "otherwise used",
    "told",
    "untold",
    "behavioural",
    "with changed lines",
    "unchanged",
    "with changed lines",
)


@dataclass(frozen=True, slots=True)
class Step:
    """Two versions of a client, one after the other, and the releases of the target that they were made for."""

    client: str
    older: str
    before: str
    newer: str
    after: str


STEPS = (
    Step("vllm-spyre", "1.7.0", "0.14.1", "1.8.0", "0.15.1"),
    Step("vllm-spyre", "1.8.0", "0.15.1", "1.9.0", "0.16.0"),
    Step("vllm-spyre", "1.9.1", "0.16.0", "1.10.0", "0.18.0"),
    Step("vllm-rbln", "0.10.4", "0.18.0", "0.11.0", "0.22.0"),
    Step("vllm-rbln", "0.11.1.post1", "0.22.0", "0.11.2", "0.24.0"),
    Step("vllm-rbln", "0.11.2.post1", "0.24.0", "0.12.0", "0.30.0"),
    Step("tpu-inference", "0.30.0", "0.30.0", "0.31.0", "0.31.0"),
    Step("tpu-inference", "0.31.0", "0.31.0", "0.32.0", "0.32.0"),
)


def main() -> None:
    """Prints a row for each step, and with --read what has to be read."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.upgrades", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="parts of names, or of names and versions")
    parser.add_argument("--read", action="store_true", help="list what has to be read")
    options = parser.parse_args()
    print(f"| {' | '.join(_COLUMNS)} |")
    print("| --- " * len(_COLUMNS) + "|")
    for step in STEPS:
        name = f"{step.client}=={step.older}"
        if options.clients and not any(part in name for part in options.clients):
            continue
        outcome = _outcome(step)
        print(outcome.row())
        if options.read:
            outcome.show()


@dataclass(slots=True)
class _Outcome:
    """What came of one step."""

    step: Step
    breaking: list[tuple[Finding, str]] = field(default_factory=list)
    others: list[tuple[Coupling, str]] = field(default_factory=list)
    behavioural: list[tuple[ChangedSymbol, bool]] = field(default_factory=list)
    unchanged: dict[str, bool] = field(default_factory=dict)

    def row(self) -> str:
        step = self.step
        serious = [answer for finding, answer in self.breaking if finding.severity is not Severity.WARNING]
        warnings = [answer for finding, answer in self.breaking if finding.severity is Severity.WARNING]
        told: list[str | int] = [
            f"{step.client} {step.older}, {step.before}",
            f"{step.newer}, {step.after}",
            len(serious),
            *(serious.count(answer) for answer in ("changed", "mended", "left")),
            len(warnings),
            len(warnings) - warnings.count("left"),
            len(self.others),
            *(sum(answer == one for _, answer in self.others) for one in ("told", "untold")),
            len(self.behavioural),
            sum(is_changed for _, is_changed in self.behavioural),
            len(self.unchanged),
            sum(self.unchanged.values()),
        ]
        return f"| {' | '.join(map(str, told))} |"

    def show(self) -> None:
        for finding, answer in self.breaking:
            place = f"{finding.location.path}:{finding.location.line}"
            print(f"  {answer:8} {finding.severity.value:8} {finding.kind.value}  {place}  {finding.message}")
        for coupling, answer in self.others:
            place = f"{coupling.use.location.path}:{coupling.use.location.line}"
            if answer:
                print(f"  {answer:8} {coupling.use.role:9} {place}  {coupling.symbol}")
        for symbol, is_changed in self.behavioural:
            roles = ",".join(sorted({use.role for use in symbol.uses}))
            print(f"  {'touched' if is_changed else 'as it was':9} {symbol.sort_of_change:9} {roles}  {symbol.symbol}")


def _outcome(step: Step) -> _Outcome:
    settings = Settings()
    older = client_tree(f"{step.client}=={step.older}", settings=settings)
    newer = client_tree(f"{step.client}=={step.newer}", settings=settings)
    upgrade = upgrade_of(sources_of(older, against=f"vllm=={step.after}", baseline=f"vllm=={step.before}", static=True))
    old, new = _Code(older), _Code(newer)
    outcome = _Outcome(step)
    later = sources_of(newer, against=f"vllm=={step.after}", baseline=f"vllm=={step.before}", static=True).audited()
    left = {_identity(finding) for finding in later.findings}
    for symbol in upgrade.broken:
        for finding in symbol.findings:
            is_same = old.stands_in(new, finding.location.path, finding.location.line)
            answer = "changed" if not is_same else "left" if _identity(finding) in left else "mended"
            outcome.breaking.append((finding, answer))
    used, before = _used(older, step.before)
    used_later, after = _used(newer, step.after)
    # What breaks somewhere may behave otherwise, or be the same, for the uses that go on to fit.
    besides = [each.beside for each in upgrade.broken if each.beside is not None]
    differing = [*upgrade.changed, *(each for each in besides if each.is_different)]
    behaving = {(use.location.path, use.location.line) for each in differing for use in each.uses}
    for coupling in _others(used, used_later, old, new, upgrade):
        is_told = (coupling.use.location.path, coupling.use.location.line) in behaving
        is_same = is_told or _is_same(before.of(coupling.symbol), after.of(coupling.symbol))
        outcome.others.append((coupling, "told" if is_told else "" if is_same else "untold"))
    for changed in differing:
        outcome.behavioural.append((changed, any(_is_touched(use, old, new) for use in changed.uses)))
    same = {symbol.symbol for symbol in upgrade.unchanged}
    same |= {symbol.symbol for symbol in besides if not symbol.is_different}
    for coupling in used:
        if coupling.symbol in same:
            touched = outcome.unchanged.get(coupling.symbol, False)
            outcome.unchanged[coupling.symbol] = touched or _is_touched(coupling.use, old, new)
    return outcome


def _identity(finding: Finding) -> tuple[str, ...]:
    """What makes it the same finding in another version of the client, wherever its line is now."""
    return finding.kind.value, finding.location.path, finding.scope, _last(finding.symbol), finding.parameter or ""


def _is_same(before: Standing, after: Standing) -> bool:
    """True where nothing at all is different about a symbol but its body."""
    return after.status == "there" and not any(standing_changes(before, after))


def _used(client: SourceTree, release: str) -> tuple[list[Coupling], Standings]:
    """All that a client couples to on the release that it was made for, and that release."""
    name = f"vllm=={release}"

    def asked(report: Report, readings: Readings) -> tuple[list[Coupling], Standings]:
        assert readings.before is not None
        assert report.baseline is not None
        knowledge = knowledge_of([report.target.name])
        standings = Standings(readings.reading.program, knowledge.environment if knowledge is not None else None)
        return couplings(readings.reading, readings.reading, readings.before), standings

    return sources_of(client, against=name, baseline=name, static=True).asked(asked)


def _others(
    used: Sequence[Coupling], later: Sequence[Coupling], old: _Code, new: _Code, upgrade: Upgrade
) -> Iterator[Coupling]:
    """The uses that the next version has no more, or has with other arguments, and that are not said to break.

    Only in functions and classes that both versions have: what the client dropped whole is its own affair.
    """
    said = {(finding.location.path, finding.location.line) for each in upgrade.broken for finding in each.findings}
    said |= {
        (finding.call.path, finding.call.line) for each in upgrade.broken for finding in each.findings if finding.call
    }
    broken = {_last(each.symbol) for each in upgrade.broken}
    after = Counter(_way(coupling, new) for coupling in later)
    seen: set[tuple[str, int, str]] = set()
    for coupling in used:
        use = coupling.use
        place = (use.location.path, use.location.line, _last(coupling.symbol))
        if use.role not in _TOLD or place in seen or place[:2] in said or place[2] in broken:
            continue
        if use.location.path not in new.paths or (use.scope and use.scope not in new.scopes(use.location.path)):
            continue
        way = _way(coupling, old)
        if after[way]:
            after[way] -= 1
            continue
        if old.stands_in(new, use.location.path, use.location.line):
            continue
        seen.add(place)
        yield coupling


def _way(coupling: Coupling, code: _Code) -> tuple[str, str, str, str]:
    """How a use looks, wherever in its function it stands: file, scope, name, and the arguments or parameters."""
    use = coupling.use
    detail = ",".join(sorted(coupling.given)) if coupling.given is not None else ""
    if use.role == "override":
        detail = code.statement(use.location.path, use.location.line)
    return use.location.path, use.scope, _last(coupling.symbol), detail


def _last(symbol: str) -> str:
    return symbol.removesuffix(".__init__").rpartition(".")[2]


def _is_touched(use: Use, old: _Code, new: _Code) -> bool:
    """True where the next version has another statement at a use; of an override, where anything of it is different."""
    path, line = use.location.path, use.location.line
    if use.role == "override":
        return old.function(path, line) not in new.functions(path)
    return not old.stands_in(new, path, line)


class _Code:
    """The statements of a client's files."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.paths = frozenset(tree.paths)
        self._files: dict[str, _File] = {}

    def stands_in(self, other: _Code, path: str, line: int) -> bool:
        """True where another version has the statement on a line in the same function or class."""
        found = self._file(path).at.get(line)
        return found is not None and path in other.paths and (found[0], _head(found[1])) in other._file(path).heads

    def statement(self, path: str, line: int) -> str:
        """The innermost statement on a line, blocks inside it left out."""
        found = self._file(path).at.get(line)
        return _head(found[1]) if found is not None else ""

    def function(self, path: str, line: int) -> str:
        """The whole definition that begins on a line."""
        found = self._file(path).at.get(line)
        return ast.unparse(found[1]) if found is not None else ""

    def functions(self, path: str) -> frozenset[str]:
        """All definitions of a file."""
        return self._file(path).functions if path in self.paths else frozenset()

    def scopes(self, path: str) -> frozenset[str]:
        """The qualified names of all functions and classes of a file."""
        return self._file(path).scopes

    def _file(self, path: str) -> _File:
        if path not in self._files:
            self._files[path] = _File(self.tree.read(path))
        return self._files[path]


class _File:
    """One file: the innermost statement on each line, and what there is of statements and definitions."""

    def __init__(self, source: bytes) -> None:
        found = list(_statements(ast.parse(source).body, ""))
        self.at: dict[int, tuple[str, ast.stmt]] = {}
        for scope, node in found:
            # What stands inside comes later.
            for line in range(_first_line(node), (node.end_lineno or node.lineno) + 1):
                self.at[line] = scope, node
        definitions = [(scope, node) for scope, node in found if isinstance(node, _DEFINITIONS)]
        self.heads = frozenset((scope, _head(node)) for scope, node in found)
        self.functions = frozenset(ast.unparse(node) for _, node in definitions)
        self.scopes = frozenset(f"{scope}.{node.name}".lstrip(".") for scope, node in definitions)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _statements(body: Iterable[ast.AST], scope: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.stmt):
            yield scope, node
        inside = f"{scope}.{node.name}".lstrip(".") if isinstance(node, _DEFINITIONS) else scope
        for name in _BLOCKS:
            yield from _statements(getattr(node, name, None) or (), inside)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _head(node: ast.stmt) -> str:
    """A statement as text, without what stands in its blocks."""
    head = copy.copy(node)
    for block in _BLOCKS:
        if hasattr(head, block):
            setattr(head, block, [])
    return ast.dump(head)


if __name__ == "__main__":
    main()
