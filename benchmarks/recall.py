"""What ty and pyright find when a client meets another release, beside what the audit finds.

    python -m benchmarks.recall CLIENT==VERSION GOOD BAD [--checker ty|pyright|both] [--list all|theirs|ours]
    python -m benchmarks.recall --every [--checker ...]

The checkers run on the client twice, with the good and with the bad release on their path. Nothing else differs between
the two runs, so what they say only the second time concerns the target; a diagnostic about types of values counts as
the same one where its place and rule are the same, since its text spells out types. Lines are compared, each once a
sort: found by both, by them only (with the reason), by us only. What the checkers said is kept in the cache folder
by the content of all sources, so that a second run only audits. They find other libraries in an environment made for
the tests with a real vLLM, or in the one of `--python`; `# type: ignore` hides nothing from them.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from benchmarks.checkers import CHECKERS, CheckerFailed, Checking, Diagnostic
from benchmarks.sorts import SORTS, new_shape, sort_of, told_of_names
from driftcheck.audit import audit_trees
from driftcheck.compare.abstracts import Abstracts
from driftcheck.compare.callsites import classes_in
from driftcheck.compare.judge import Judge
from driftcheck.compare.release import Release
from driftcheck.model import Finding, Kind, Report, Severity
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.types import Class
from driftcheck.tree import SourceTree
from driftcheck.usage.collector import Collector
from driftcheck.usage.files import ClientFiles
from driftcheck.usage.reachability import Reachability
from driftcheck.usage.usages import Usage
from tests.real.environments import interpreter_of

PAIRS = (
    ("speculators==0.3.0", "0.11.0", "0.16.0"),
    ("lm-eval==0.4.11", "0.21.0", "0.22.1"),
    ("vllm-spyre==1.10.0", "0.18.0", "0.33.0"),
    ("verl==0.9.1", "0.20.2", "0.33.0"),
    ("vllm-rbln==0.12.0", "0.30.0", "0.33.0"),
    ("tpu-inference==0.32.0", "0.32.0", "0.33.0"),
    ("vllm-ascend==0.23.0.post1", "0.23.0", "0.33.0"),
    ("vllm-omni==0.30.0", "0.30.0", "0.33.0"),
)
# The sorts of the checkers for which a kind of finding is the right answer.
_ANSWERS = {
    Kind.UNRESOLVED_MODULE: ("import", "name"),
    Kind.UNRESOLVED_SYMBOL: ("import", "name"),
    Kind.SILENT_FALLBACK: ("import", "name"),
    Kind.UNRESOLVED_ATTRIBUTE: ("attribute", "store", "typing"),
    Kind.UNKNOWN_ARGUMENT: ("unknown argument", "missing argument"),
    Kind.MISSING_ARGUMENT: ("missing argument", "unknown argument"),
    Kind.TOO_MANY_POSITIONAL_ARGUMENTS: ("too many arguments", "typing"),
    Kind.MISSING_ABSTRACT_METHOD: ("abstract",),
    Kind.INVALID_OVERRIDE: ("override",),
    Kind.DEAD_OVERRIDE: ("override",),
    Kind.RETURN_CHANGED: ("unpack", "typing"),
    Kind.KIND_CHANGED: ("typing", "attribute"),
    Kind.POSITIONAL_SHIFT: ("typing", "missing argument", "too many arguments"),
    Kind.INVALID_PATCH: ("store", "typing"),
    Kind.DEAD_PATCH: ("store", "typing"),
}
# A store to a class or a module, which others read; one to an instance makes the attribute.
_STORES_FOR_OTHERS = re.compile(r"on type `<|for class \"type\[|attribute of module")


@dataclass(slots=True)
class Line:
    """One line of the client and what the checkers say there, of one sort; `reason` why we say nothing."""

    path: str
    line: int
    sort: str
    end_line: int
    checkers: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    found: Finding | None = None
    is_same_kind: bool = False
    reason: str = ""

    @property
    def place(self) -> str:
        """The path and the line."""
        return f"{self.path}:{self.line}"

    @property
    def names(self) -> set[str]:
        """The plain names that the messages quote."""
        return {name for message in self.messages for name in re.findall(r"[`\"](\w+)[`\"]", message)}


def new_lines(good: Sequence[Diagnostic], bad: Sequence[Diagnostic]) -> list[Line]:
    """The lines on which something is said only with the bad release, sorted."""
    said = {_identity(diagnostic) for diagnostic in good}
    retyped = _retyped(good, bad)
    # ty says so where only one of several types of a value lacks an attribute.
    in_union = {(d.path, d.line) for d in bad if " in union `" in d.message}
    lines: dict[tuple[str, int, str], Line] = {}
    for diagnostic in bad:
        if _identity(diagnostic) in said:
            continue
        sort = sort_of(diagnostic)
        place = (diagnostic.path, diagnostic.line)
        if (sort == "override" and place in retyped) or (sort == "attribute" and place in in_union):
            sort = "typing"
        key = (diagnostic.path, diagnostic.line, sort)
        line = lines.setdefault(key, Line(*key, diagnostic.end_line))
        line.checkers.add(diagnostic.checker)
        line.messages.append(diagnostic.message)
    return [lines[key] for key in sorted(lines)]


def _retyped(good: Iterable[Diagnostic], bad: Iterable[Diagnostic]) -> set[tuple[str, int]]:
    """The places of overrides that pyright, which says why, blames for nothing new but types."""
    before = {(d.path, d.line): d.message for d in good if d.checker == "pyright" and sort_of(d) == "override"}
    after = [d for d in bad if d.checker == "pyright" and sort_of(d) == "override"]
    reshaped = {(d.path, d.line) for d in after if new_shape(d.message, before.get((d.path, d.line)))}
    return {(d.path, d.line) for d in after} - reshaped


def _identity(diagnostic: Diagnostic) -> tuple[str, int, str, str, str]:
    text = "" if sort_of(diagnostic) == "typing" else diagnostic.message
    return (diagnostic.path, diagnostic.line, diagnostic.checker, diagnostic.rule, text)


class _Walk(Collector):
    """Notes the lines that the collector comes by, each with the function around it: what does not run is left out.

    `guarded` are those in a `try` whose handler provides something else.
    """

    def __init__(self, program: Program, name: str, judge: Judge) -> None:
        module = program.module(name)
        assert module is not None
        self.lines: dict[int, str] = {}
        self.guarded: set[int] = set()
        super().__init__(program, module, self._note, judge.concerns)

    def _note(self, usage: Usage) -> None:
        self.lines.setdefault(usage.location.line, usage.scope)
        if any(guard.falls_back for guard in usage.guards):
            self.guarded.add(usage.location.line)

    def calls_around(self, line: int) -> set[int]:
        """The lines on which the names stand that are called in calls over a line."""
        assert self.module.tree is not None
        calls = (node for node in ast.walk(self.module.tree) if isinstance(node, ast.Call))
        return {call.func.end_lineno or 0 for call in calls if call.lineno <= line <= (call.end_lineno or 0)}

    def _visit(self, node: ast.expr) -> None:
        self.lines.setdefault(node.lineno, self.scope_name)
        super()._visit(node)

    def _declared(self, node: ast.stmt) -> FunctionDeclaration | ClassDeclaration | None:
        self.lines.setdefault(node.lineno, self.scope_name)
        return super()._declared(node)


class Comparison:
    """One client held against a bad release, with the checkers' lines and our findings."""

    def __init__(self, client: SourceTree, good: SourceTree, bad: SourceTree, lines: list[Line]) -> None:
        self.client = client
        self.bad = bad
        self.lines = lines
        self.report: Report = audit_trees(client, bad, good)
        self.ours: list[Finding] = []
        self._match()
        self._explain()

    def _match(self) -> None:
        by_file: defaultdict[str, list[Finding]] = defaultdict(list)
        for finding in self.report.findings:
            by_file[finding.location.path].append(finding)
        matched: set[Finding] = set()
        unmade = [f for f in self.report.findings if f.kind is Kind.MISSING_ABSTRACT_METHOD]
        for line in self.lines:
            answers = [finding for finding in by_file[line.path] if _answers(finding, line)]
            if line.sort == "abstract":
                # They complain where the class is called, we where it is written.
                answers += [finding for finding in unmade if finding.message.partition(" ")[0] in line.names]
            fitting = [finding for finding in answers if line.sort in _ANSWERS.get(finding.kind, ())]
            matched.update(answers)
            if answers:
                line.found = (fitting or answers)[0]
                line.is_same_kind = bool(fitting)
        self.ours = [finding for finding in self.report.findings if finding not in matched and finding.drift]

    def _explain(self) -> None:
        """Gives each line that we do not have a reason."""
        missed = [line for line in self.lines if line.found is None]
        unresolved: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for entry in self.report.unresolved:
            unresolved[entry.path, entry.line].add(entry.reason)
        files = ClientFiles(self.client, self.bad)
        modules = self._modules = files.modules([])
        program = Program(self.bad, self.client, shared=files.shared)
        program.replaced_modules = files.replaced_modules
        judge, reachability = Judge(program), Reachability(program, modules)
        self._judge = judge
        self._abstracts = Abstracts(Release(judge))
        walks: dict[str, _Walk] = {}
        for module in modules:
            walk = walks[module.path] = _Walk(program, module.name, judge)
            walk.reachability = reachability
            walk.collect()
        for line in missed:
            found = walks.get(line.path)
            if found is None:
                line.reason = "a file that does not use the target"
                continue
            scopes = {found.lines[n] for n in range(line.line, line.end_line + 1) if n in found.lines}
            if not any(reachability.is_reachable(line.path, scope) for scope in scopes):
                line.reason = "a branch that does not run"
            elif line.sort not in ("typing", "override", "store") and line.line in found.guarded:
                line.reason = "a handler provides for it"
            else:
                around = found.calls_around(line.line)
                line.reason = self._reason(line, set().union(*(unresolved[line.path, n] for n in (line.line, *around))))

    def _reason(self, line: Line, unresolved: set[str]) -> str:
        if line.sort == "typing":
            return "types of values"
        if line.sort == "store" and not any(_STORES_FOR_OTHERS.search(message) for message in line.messages):
            return "a store that makes the attribute"
        names = line.names
        if line.sort == "abstract" and not any(self._abstracts.open(class_).missing for class_ in self._classes(names)):
            return "stubs of a protocol, nothing abstract"
        if line.sort == "override" and all(told_of_names(message) for message in line.messages):
            return "a parameter's name, by which no call of the target's passes it"
        cause = next((f for f in self.report.findings if _is_cause(f, line)), None)
        if cause is not None:
            return f"follows from the {cause.kind.value}: {cause.location.path}:{cause.location.line}"
        for other in self.lines:
            if other.path == line.path and other.sort == "store" and other.line < line.line and names & other.names:
                return f"what the client has stored before: line {other.line}"
        if unresolved:
            return f"unresolved: {'; '.join(sorted(unresolved))}"
        if line.sort == "override" and self._is_judged_override(line):
            return "an override that takes whatever the target's own calls pass"
        return "MISSED"

    def _is_judged_override(self, line: Line) -> bool:
        """True where a method of the client's stands on a line, of a class that derives from the target's."""
        return any(
            method.node.lineno == line.line and self._judge.target_base(Class(class_)) is not None
            for module in self._modules
            if module.path == line.path
            for class_ in classes_in(module)
            for method in class_.methods()
        )

    def _classes(self, names: set[str]) -> Iterator[ClassDeclaration]:
        """The client's classes of these names."""
        for module in self._modules:
            for name in names & module.names.keys():
                yield from (binding.class_ for binding in module.names[name] if binding.class_ is not None)

    def table(self) -> list[str]:
        """The totals for each sort, then for each reason."""
        rows = [f"{'':20} {'lines':>6} {'found':>6} {'kind':>6} {'missed':>6}"]
        for sort in SORTS:
            lines = [line for line in self.lines if line.sort == sort]
            if lines:
                found = sum(line.found is not None for line in lines)
                same = sum(line.is_same_kind for line in lines)
                rows.append(f"{sort:20} {len(lines):6} {found:6} {same:6} {len(lines) - found:6}")
        reasons = Counter(line.reason.partition(":")[0] for line in self.lines if line.found is None)
        rows += [f"by them only, {count:4}: {reason}" for reason, count in sorted(reasons.items())]
        severities = Counter(finding.severity for finding in self.ours)
        counts = ", ".join(f"{severities[severity]} {severity.value}" for severity in Severity if severities[severity])
        return [*rows, f"by us only: {len(self.ours)} ({counts})"]

    def listing(self, *, both: bool, theirs: bool, ours: bool) -> list[str]:
        """The lines of the three columns one by one."""
        rows: list[str] = []
        for line in self.lines:
            if line.found is not None and both:
                rows.append(f"both    {line.place} {line.sort}: {line.messages[0][:120]} | {line.found.message[:120]}")
            elif line.found is None and theirs:
                said = "; ".join(line.messages)[:200]
                rows.append(
                    f"theirs  {line.place} {line.sort} [{'+'.join(sorted(line.checkers))}] {line.reason} | {said}"
                )
        if ours:
            for finding in self.ours:
                place = f"{finding.location.path}:{finding.location.line}"
                rows.append(f"ours    {place} {finding.severity.value} {finding.kind.value}: {finding.message[:200]}")
        return rows


def _is_cause(finding: Finding, line: Line) -> bool:
    """True where a line only says again what a finding elsewhere has said."""
    is_same_file, is_before = finding.location.path == line.path, finding.location.line <= line.line
    method = finding.message.partition("()")[0].rpartition(".")[2]
    if finding.kind is Kind.INVALID_OVERRIDE:
        # The classes below one with such a method are blamed, too.
        return line.messages[0].startswith("Base classes for class") and method in line.names
    if finding.kind is Kind.DEAD_OVERRIDE:
        return is_same_file and is_before and line.sort == "attribute" and method in line.names
    if finding.kind is Kind.UNRESOLVED_MODULE:
        return is_same_file and line.sort == "attribute" and bool(line.names & set(finding.symbol.split(".")))
    if finding.kind is Kind.UNRESOLVED_ATTRIBUTE:
        return is_same_file and is_before and line.sort == "store" and finding.symbol.rpartition(".")[2] in line.names
    return False


def _answers(finding: Finding, line: Line) -> bool:
    """True where a finding speaks of a line: it stands there, or is of that sort and stands within."""
    place = finding.location
    if place.line <= line.line <= max(place.end_line, place.line):
        return True
    return line.line <= place.line <= line.end_line and line.sort in _ANSWERS.get(finding.kind, ())


def compare(client: str, good: str, bad: str, checkers: Sequence[str], checking: Checking) -> Comparison:
    """Holds what the checkers say of a client against what the audit finds; releases without the target's name.

    A checker that comes to no end is left out, and said to be.
    """
    tree, earlier, later = client_tree(client), target_tree(f"vllm=={good}"), target_tree(f"vllm=={bad}")
    before: list[Diagnostic] = []
    after: list[Diagnostic] = []
    for checker in checkers:
        try:
            found = [checking.diagnostics(checker, tree, target) for target in (earlier, later)]
        except CheckerFailed as error:
            print(f"{client}, left out: {error}")
            continue
        before += found[0]
        after += found[1]
    return Comparison(tree, earlier, later, new_lines(before, after))


def main() -> None:
    """Parses the options and prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "pair", nargs="*", metavar="CLIENT GOOD BAD", help="a client and two releases, any number of times"
    )
    parser.add_argument("--every", action="store_true", help="all the pairs of the documented tables")
    parser.add_argument("--checker", choices=(*CHECKERS, "both"), default="both")
    parser.add_argument(
        "--list", choices=("all", "theirs", "ours", "none"), default="all", help="which columns to print"
    )
    parser.add_argument("--python", type=Path, help="the interpreter that has the other libraries")
    parser.add_argument("--cache", type=Path, default=platformdirs.user_cache_path("driftcheck") / "recall")
    options = parser.parse_args()
    if len(options.pair) % 3 or bool(options.pair) == options.every:
        parser.error("name a client, its release and another one, or --every")
    pairs = PAIRS if options.every else tuple(zip(*[iter(options.pair)] * 3, strict=True))
    checkers = CHECKERS if options.checker == "both" else (options.checker,)
    python = options.python or interpreter_of("vllm-0.30.0")
    for client, good, bad in pairs:
        with tempfile.TemporaryDirectory(prefix="driftcheck-recall-") as folder:
            found = compare(client, good, bad, checkers, Checking(python, options.cache, Path(folder)))
        print(f"\n{client}: {good} to {bad}, {' and '.join(checkers)}", *found.table(), sep="\n")
        which = options.list
        print(
            *found.listing(both=which == "all", theirs=which in ("all", "theirs"), ours=which in ("all", "ours")),
            sep="\n",
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
