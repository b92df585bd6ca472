"""The audit: a client is read, its usages of the target are judged, and what does not fit is reported."""

from __future__ import annotations

import gc
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from driftcheck.compare.confirm import Judged
from driftcheck.compare.findings import Findings, key_of
from driftcheck.compare.hidden import called_classes, hidden_drift
from driftcheck.compare.judge import Judge, Verdict
from driftcheck.compare.relocation import Relocation
from driftcheck.compare.subclasses import Answers
from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import knowledge_of
from driftcheck.model import ClientSummary, Count, Finding, Report, Skipped, TargetSummary, Unresolved, UsageCounts
from driftcheck.progress import Progress
from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration, UnreadableSource, declare_module
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.program import Program
from driftcheck.tree import SourceTree
from driftcheck.usage.collector import Collector
from driftcheck.usage.importers import with_importers
from driftcheck.usage.reachability import Reachability
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    ClassUsage,
    EnvironmentUsage,
    ImportUsage,
    PatchUsage,
    ReferenceUsage,
    ReturnUsage,
    StringUsage,
    Usage,
)

DEFAULT_TARGET = "vllm"
_MODULES_PUT_IN_PLACE = re.compile(r"""sys\.modules(?:\[|\.setdefault\(\s*)\s*["']([\w.]+)["']\s*(?:\]\s*=[^=]|,)""")
_MODULES_PUT_SOMEWHERE = re.compile(rb"sys\.modules(?:\[\s*|\.setdefault\(\s*)[A-Za-z_][\w.]*\s*(?:\]\s*=[^=]|,)")
Lines = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Runtime:
    """The interpreter that has the target, and how it is asked."""

    executable: str
    timeout: float | None
    cache_folder: Path | None
    cache_key: str | None


def audit(
    client: str,
    *,
    against: str | None = None,
    baseline: str | None = None,
    python: str | None = None,
    static: bool = False,
    offline: bool = False,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audits a client against a target, both named as on the command line.

    Raises DriftcheckError where one of them can't be had. `timeout` bounds the target's interpreter, in seconds.
    """
    from driftcheck.origins.baseline import baseline_specification
    from driftcheck.origins.select import client_tree, target_tree
    from driftcheck.origins.settings import Settings

    settings = Settings(offline=offline, python=python, progress=_fetching(progress))
    target = target_tree(against or DEFAULT_TARGET, settings=settings)
    tree = client_tree(client, settings=settings)
    notices: list[str] = []
    chosen: str | None = None
    if baseline is None:
        try:
            found = baseline_specification(tree, _import_name(target, against), settings=settings)
        except DriftcheckError as error:
            found = None
            notices.append(f"no baseline: {error}")
        if found is not None:
            baseline, chosen = found
    earlier: SourceTree | None = None
    if baseline is not None:
        try:
            earlier = target_tree(baseline, settings=settings)
        except DriftcheckError as error:
            if chosen is None:
                raise
            notices.append(f"no baseline: {error}")
            chosen = None
    runtime: _Runtime | None = None
    executable = getattr(target, "executable", None)
    if executable is not None and not static:
        runtime = _Runtime(str(executable), timeout, settings.cache, getattr(target, "record_digest", None))
    return audit_trees(tree, target, earlier, chosen=chosen, notices=tuple(notices), runtime=runtime)


def _import_name(target: SourceTree, against: str | None) -> str:
    """The name under which clients require the target: the one asked for, else the top-level package's."""
    name = (against or DEFAULT_TARGET).partition("==")[0]
    if name.isidentifier():
        return name
    packages = sorted(ModuleIndex(target).top_level)
    return DEFAULT_TARGET if DEFAULT_TARGET in packages else packages[0] if packages else target.name


def _fetching(progress: Progress | None) -> Callable[[str, int, int | None], None] | None:
    """What origins tell of bytes fetched, passed on to the display as tasks."""
    if progress is None:
        return None
    from driftcheck.fetching import Fetching

    return Fetching(progress)


def audit_trees(
    client: SourceTree,
    target: SourceTree,
    baseline: SourceTree | None = None,
    *,
    chosen: str | None = None,
    notices: tuple[str, ...] = (),
    runtime: _Runtime | None = None,
) -> Report:
    """Audits a client held in a tree against a target held in another, with a baseline where there is one.

    `chosen` says why this baseline, where nobody named it; `runtime` is the interpreter that confirms what is found.
    """
    was_enabled = gc.isenabled()
    # Syntax trees are many small objects that live to the end: collecting among them costs more than parsing.
    gc.disable()
    try:
        return _Audit(client, target, baseline).report(chosen, list(notices), runtime)
    finally:
        if was_enabled:
            gc.enable()


class _Audit:
    """One audit under way."""

    def __init__(self, client: SourceTree, target: SourceTree, baseline: SourceTree | None) -> None:
        self.client = client
        self.target = target
        self.baseline = baseline
        self.files = ClientFiles(client, target)
        self.skipped: list[Skipped] = []
        self.earlier: Program | None = None
        self.earlier_judge: Judge | None = None
        self.instantiated: set[ClassDeclaration] = set()
        self.extensions: set[tuple[str, str]] = set()
        self.named: set[str] = set()
        self.stores: set[tuple[str, str]] = set()
        self.modules = self.files.modules(self.skipped)

    def report(self, chosen: str | None, notices: list[str], runtime: _Runtime | None) -> Report:
        """The whole audit in order."""
        verdicts = self._baseline_verdicts()
        program = Program(self.target, self.client, shared=self.files.shared)
        program.replaced_modules = self.files.replaced_modules
        judge = Judge(program)
        judge.client_methods = self._client_methods()
        reachability = Reachability(program, self.modules)
        judged = list(self._judged(program, judge, reachability))
        if self._is_own_baseline():
            verdicts = {key_of(usage): verdict for usage, verdict in judged}
        if runtime is not None:
            judged = _asked(judged, runtime, notices)
        questions = Findings(judge, verdicts, Relocation(program, self.earlier))
        questions.extensions = self.extensions
        questions.named = self.named
        questions.puts_modules_in_place = self.files.puts_modules_in_place
        questions.stores = self.stores
        result = _found(judged, questions)
        classes, patches = hidden_drift(
            judged,
            questions,
            self.earlier_judge,
            is_own=self._is_own_baseline(),
            client=self.modules,
            instantiated=self.instantiated,
        )
        result.add("overrides", classes)
        result.add("patches", patches)
        running = [found for found in result.findings if reachability.is_reachable(found.location.path, found.scope)]
        findings = sorted(
            {_completed(finding, self.files.lines): None for finding in running},
            key=lambda f: (f.location, f.kind.value, f.symbol, f.parameter or "", f.message),
        )
        client, target, baseline = self.client, self.target, self.baseline
        return Report(
            client=ClientSummary(
                client.name,
                client.version,
                client.origin,
                self.files.count,
                len(self.modules),
                tuple(sorted(self.skipped)),
            ),
            target=TargetSummary(target.name, target.version, target.origin),
            baseline=TargetSummary(baseline.name, baseline.version, baseline.origin, chosen) if baseline else None,
            usages=_counts(result),
            findings=tuple(_unique_fingerprints(findings)),
            unresolved=tuple(sorted(set(result.unresolved))),
            notices=tuple(notices),
            sources=tuple(_quoted(findings, self.files.lines)),
        )

    def _is_own_baseline(self) -> bool:
        """True where the client was written for the very release it is held against."""
        if self.baseline is None:
            return False
        same = self.baseline.version == self.target.version and self.baseline.origin == self.target.origin
        return self.baseline is self.target or (
            same and self.baseline.version is not None and self.target.origin != "memory"
        )

    def _baseline_verdicts(self) -> dict[tuple[object, ...], Verdict] | None:
        if self.baseline is None or self._is_own_baseline():
            return None
        program = self.earlier = Program(self.baseline, self.client, shared=self.files.shared)
        program.replaced_modules = self.files.replaced_modules
        judge = self.earlier_judge = Judge(program)
        judge.client_methods = self._client_methods()
        reachability = Reachability(program, self.modules)
        judged = list(self._judged(program, judge, reachability))
        return {
            key_of(usage): verdict
            for usage, verdict in judged
            if verdict.status != "broken" or reachability.is_reachable(usage.location.path, usage.scope)
        }

    def _client_methods(self) -> set[str]:
        """The names of the methods of the client's module-level classes."""
        return {
            function.name
            for module in self.modules
            for bindings in module.names.values()
            for binding in bindings
            if binding.class_ is not None
            for function in binding.class_.methods()
        }

    def _judged(self, program: Program, judge: Judge, reachability: Reachability) -> Iterator[Judged]:
        """Every usage that concerns the target, with what one release says of it."""
        for module in self.modules:
            usages: list[Usage] = []
            collector = Collector(program, module, usages.append, judge.concerns)
            collector.reachability = reachability
            collector.collect()
            for usage in usages:
                if isinstance(usage, AttributeUsage) and usage.is_stored:
                    self.extensions.update(judge.extended(usage))
                    self.stores.update(judge.stored(usage))
                elif isinstance(usage, CallUsage):
                    self.extensions.update(judge.extended_by(usage))
                    self.instantiated.update(called_classes(usage))
                elif isinstance(usage, StringUsage) and usage.role == "path":
                    self.named.add(judge.strings.definition(usage.text))
                verdict = judge.verdict(usage)
                if verdict is not None:
                    yield usage, verdict


def _asked(judged: list[Judged], runtime: _Runtime, notices: list[str]) -> list[Judged]:
    """The verdicts once the target's interpreter was asked about each."""
    from driftcheck.compare.confirm import confirmed, runtime_name
    from driftcheck.surface.runtime import TIMEOUT, probe

    names = {name for usage, verdict in judged if (name := runtime_name(usage, verdict)) is not None}
    surface = probe(
        runtime.executable,
        sorted(names),
        timeout=TIMEOUT if runtime.timeout is None else runtime.timeout,
        cache_folder=runtime.cache_folder,
        cache_key=runtime.cache_key,
    )
    if surface.notice is not None:
        notices.append(surface.notice)
    return confirmed(judged, surface.symbols)


@dataclass(slots=True)
class _Result:
    """What the verdicts come to."""

    findings: list[Finding] = field(default_factory=list)
    unresolved: list[Unresolved] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)

    def leave(self, usage: Usage, sort: str, reason: str) -> None:
        """Counts a usage that could not be judged."""
        self.unresolved.append(Unresolved(usage.location.path, usage.location.line, reason, sort))
        self.checked[f"{sort} unresolved"] += 1

    def add(self, sort: str, answers: Answers) -> None:
        """Takes over what was asked of many usages at once."""
        self.findings += answers.findings
        self.checked[sort] += answers.checked
        self.checked[f"{sort} unresolved"] += len(answers.unresolved)
        self.unresolved += [Unresolved(path, line, reason, sort) for path, line, reason in answers.unresolved]


def _found(judged: Sequence[Judged], findings: Findings) -> _Result:
    result = _Result()
    findings.failed_imports = {
        (usage.location.path, module)
        for usage, verdict in judged
        if isinstance(usage, ImportUsage) and verdict.status == "broken"
        for module in _with_parents(usage.module)
    }
    failing = {guard for usage, verdict in judged if verdict.status == "broken" for guard in usage.guards}
    fitting = {guard for usage, verdict in judged if verdict.status == "fits" for guard in usage.guards} - failing
    findings.variables_read = {u.name for u, _ in judged if isinstance(u, EnvironmentUsage) and not u.is_set}
    # Callees that were settled as attributes: that they can't be called as well says nothing new.
    settled: set[int] = set()
    for usage, verdict in judged:
        if verdict.is_own:
            continue
        sort = _SORTS[type(usage)]
        if verdict.status == "unresolved" and verdict.absent is not None and findings.was_own(usage, verdict):
            verdict = replace(verdict, status="broken")
        if isinstance(usage, AttributeUsage) and usage.is_called and verdict.status != "broken":
            # What is called counts once, as a call.
            result.findings += findings.changed(usage, verdict)
            continue
        if verdict.status == "unresolved":
            if sort and not (isinstance(usage, CallUsage) and id(usage.node.func) in settled):
                result.leave(usage, sort, verdict.reason)
            continue
        if sort and verdict.status == "broken" and any(guard.handles in fitting for guard in usage.guards):
            result.leave(usage, sort, "handler of what does not fail")
            continue
        if isinstance(usage, CallUsage) and findings.is_replaced(usage, verdict):
            result.leave(usage, sort, "replaced by the client")
            continue
        if isinstance(usage, AttributeUsage) and verdict.status == "broken":
            answer = findings.attribute(usage, verdict)
            settled.add(id(usage.node))
            if isinstance(answer, str):
                result.leave(usage, sort, answer)
                continue
            result.findings += [answer] if answer is not None else []
        elif isinstance(usage, ImportUsage) and verdict.status == "broken":
            if findings.is_put_in_place(usage):
                result.leave(usage, sort, "module that the client may put in place")
                continue
            found = findings.imported(usage, verdict)
            result.findings += [found] if found is not None else []
        elif isinstance(usage, CallUsage):
            doubt = findings.doubt_of_call(usage, verdict)
            if doubt:
                result.leave(usage, sort, doubt)
                continue
            result.findings += findings.call(usage, verdict)
        elif isinstance(usage, ReturnUsage | EnvironmentUsage | StringUsage | ReferenceUsage):
            result.findings += findings.other(usage, verdict)
        if isinstance(usage, AttributeUsage | CallUsage | ImportUsage) and verdict.status == "fits":
            result.findings += findings.changed(usage, verdict)
        if sort:
            result.checked[sort] += 1
    return result


def _with_parents(module: str) -> Iterator[str]:
    """A module's dotted name, and those of the packages around it."""
    while module:
        yield module
        module = module.rpartition(".")[0]


# What is done with a result, and how a class is named, count with the call and the name themselves.
_SORTS: dict[type[Usage], str] = {
    ImportUsage: "imports",
    AttributeUsage: "attributes",
    CallUsage: "calls",
    # Answered together, once everything is read.
    ClassUsage: "",
    PatchUsage: "",
    EnvironmentUsage: "strings",
    StringUsage: "strings",
    ReturnUsage: "",
    ReferenceUsage: "",
}


class ClientFiles:
    """The files of a client that have to do with the target."""

    def __init__(self, client: SourceTree, target: SourceTree) -> None:
        self.client = client
        self.index = ModuleIndex(client)
        self.target_names = ModuleIndex(target).top_level
        self.shared: dict[str, ModuleDeclaration] = {}
        self.lines: Lines = {}
        self.replaced_modules: set[str] = set()
        self.puts_modules_in_place = False
        self.count = len(self.index.sources)

    def modules(self, skipped: list[Skipped]) -> list[ModuleDeclaration]:
        """The modules that name the target, and those that import them, in the order of their paths."""
        pattern = re.compile(
            rb"\b(" + b"|".join(sorted(re.escape(name).encode() for name in self.target_names)) + rb")\b"
        )
        chosen: list[ModuleDeclaration] = []
        knowledge = knowledge_of(self.target_names)
        if knowledge is not None and knowledge.environment is not None:
            prefix = re.escape(knowledge.environment.prefix).encode()
            pattern = re.compile(pattern.pattern + rb"|\b" + prefix)
        sources: dict[str, bytes] = {}
        for name, path in sorted(self.index.sources.items(), key=lambda item: item[1]):
            if path.endswith(".pyi"):
                continue
            try:
                sources[name] = self.client.read(path)
            except DriftcheckError as error:
                skipped.append(Skipped(path, str(error)))
        # A helper that does so need not itself name the target.
        self.puts_modules_in_place = any(
            b"sys.modules" in data and _MODULES_PUT_SOMEWHERE.search(data) for data in sources.values()
        )
        wanted = {name for name, data in sources.items() if pattern.search(data)}
        wanted = with_importers(wanted, sources, self.index)
        for name in sorted(wanted, key=lambda name: self.index.sources[name]):
            path = self.index.sources[name]
            try:
                module = declare_module(name, path, sources[name], keep_tree=True)
            except UnreadableSource as error:
                skipped.append(Skipped(path, str(error)))
                continue
            self.shared[name] = module
            self.replaced_modules.update(match.group(1) for match in _MODULES_PUT_IN_PLACE.finditer(module.text))

            self.lines[path] = module.lines
            chosen.append(module)
        return chosen


def _counts(result: _Result) -> UsageCounts:
    def count(sort: str) -> Count:
        return Count(result.checked[sort], result.checked[f"{sort} unresolved"])

    return UsageCounts(
        count("imports"), count("calls"), count("attributes"), count("overrides"), count("patches"), count("strings")
    )


def _completed(finding: Finding, lines: Lines) -> Finding:
    """The finding with the source line it stands on."""
    line = _line(finding.location.path, finding.location.line, lines)
    return replace(finding, snippet=line.strip())


def _unique_fingerprints(findings: list[Finding]) -> list[Finding]:
    """The findings with fingerprints that don't depend on line numbers; equal ones are numbered."""
    seen: Counter[str] = Counter()
    numbered: list[Finding] = []
    for finding in findings:
        parts = (
            finding.kind.value,
            finding.location.path,
            finding.scope,
            finding.symbol,
            finding.parameter or "",
            finding.snippet,
        )
        base = "\0".join(parts)
        seen[base] += 1
        text = base if seen[base] == 1 else f"{base}\0{seen[base]}"
        numbered.append(replace(finding, fingerprint=hashlib.sha256(text.encode()).hexdigest()[:16]))
    return numbered


def _line(path: str, line: int, lines: Lines) -> str:
    known = lines.get(path, [])
    return known[line - 1] if 0 < line <= len(known) else ""


def _quoted(findings: list[Finding], lines: Lines) -> list[tuple[str, int, str]]:
    places = {(finding.location.path, line) for finding in findings for line in _shown_lines(finding)}
    return sorted((path, line, _line(path, line, lines)) for path, line in places)


def _shown_lines(finding: Finding) -> range:
    place = finding.location
    return range(place.line, min(max(place.end_line, place.line), place.line + 5) + 1)
