"""The audit: a client is read, its usages of the target are judged, and what does not fit is reported."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from driftcheck.assembly import completed, fingerprinted, quoted, without_consequences
from driftcheck.compare.additions import Additions, Name
from driftcheck.compare.confirm import Judged
from driftcheck.compare.contracts import reasons_of, with_rules
from driftcheck.compare.duck_typing import duck_typing
from driftcheck.compare.findings import Findings, key_of
from driftcheck.compare.hidden import called_classes, hidden_drift
from driftcheck.compare.judge import Judge, Verdict
from driftcheck.compare.relocation import Relocation
from driftcheck.compare.tally import answer, counts
from driftcheck.errors import DriftcheckError
from driftcheck.model import ClientSummary, Report, Skipped, TargetSummary
from driftcheck.progress import Progress
from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.program import Program
from driftcheck.tree import SourceTree
from driftcheck.usage.collector import Collector
from driftcheck.usage.files import ClientFiles
from driftcheck.usage.reachability import Reachability
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    StringUsage,
    Usage,
)

DEFAULT_TARGET = "vllm"


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
    model: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audits a client against a target, both named as on the command line.

    Raises DriftcheckError where one of them can't be had. `timeout` bounds the target's interpreter, in seconds;
    `model` is the architecture that will be run, where only its classes count.
    """
    from driftcheck.origins.baseline import baseline_specification
    from driftcheck.origins.select import client_tree, target_tree
    from driftcheck.origins.settings import Settings

    settings = Settings(offline=offline, python=python, progress=_fetching(progress))
    target = target_tree(against or DEFAULT_TARGET, settings=settings)
    if not ModuleIndex(target).sources:
        raise DriftcheckError(
            f"{against or DEFAULT_TARGET} holds no Python package; name a checkout, or {DEFAULT_TARGET}==X"
        )
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
    return audit_trees(tree, target, earlier, chosen=chosen, notices=tuple(notices), runtime=runtime, model=model)


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
    model: str | None = None,
) -> Report:
    """Audits a client held in a tree against a target held in another, with a baseline where there is one.

    `chosen` says why this baseline, where nobody named it; `runtime` is the interpreter that confirms what is found,
    `model` the architecture that will be run.
    """
    was_enabled = gc.isenabled()
    # Syntax trees are many small objects that live to the end: collecting among them costs more than parsing.
    gc.disable()
    try:
        return _Audit(client, target, baseline, model).report(chosen, list(notices), runtime)
    finally:
        if was_enabled:
            gc.enable()


class _Audit:
    """One audit under way."""

    def __init__(
        self, client: SourceTree, target: SourceTree, baseline: SourceTree | None, model: str | None = None
    ) -> None:
        self.client = client
        self.model = model
        self.target = target
        self.baseline = baseline
        self.files = ClientFiles(client, target)
        self.skipped: list[Skipped] = []
        self.earlier: Program | None = None
        self.earlier_judge: Judge | None = None
        self.instantiated: set[ClassDeclaration] = set()
        self.additions = Additions()
        self.earlier_additions: set[Name] = set()
        self.named: set[str] = set()
        self.stores: set[tuple[str, str]] = set()
        self.modules = self.files.modules(self.skipped)
        if self.skipped and not self.modules and len(self.skipped) >= self.files.count:
            path, reason = self.skipped[0].path, self.skipped[0].reason
            raise DriftcheckError(f"no file of the client can be read: {path} {reason}")

    def report(self, chosen: str | None, notices: list[str], runtime: _Runtime | None) -> Report:
        """The whole audit in order."""
        verdicts = self._baseline_verdicts()
        program = Program(self.target, self.client, shared=self.files.shared)
        program.replaced_modules = self.files.replaced_modules
        if self.model is not None:
            notices += _narrowed(program, self.model)
        judge = Judge(program)
        judge.client_methods = self._client_methods()
        reachability = Reachability(program, self.modules)
        judged = list(self._judged(program, judge, reachability))
        if self._is_own_baseline():
            verdicts = {key_of(usage): verdict for usage, verdict in judged}
        if runtime is not None:
            judged = _asked(judged, runtime, notices)
        questions = Findings(judge, verdicts, Relocation(program, self.earlier))
        questions.extensions = self.additions.reached(judged)
        questions.long_added = self.earlier_additions
        questions.named = self.named
        questions.puts_modules_in_place = self.files.puts_modules_in_place
        questions.stores = self.stores
        result = answer(judged, questions)
        classes, patches = hidden_drift(
            judged,
            questions,
            self.earlier_judge,
            is_own=self._is_own_baseline(),
            client=self.modules,
            instantiated=self.instantiated,
        )
        # A class that only a string names may stand in a file that does not name the target.
        for name in program.loaded_modules():
            module = program.module(name)
            if module is not None and name in self.files.index.sources:
                self.files.lines.setdefault(module.path, module.lines)
        if not self.modules:
            packages = ", ".join(sorted(self.files.target_names)[:3])
            notices.append(f"no file of the client uses the target ({packages})")
        result.add("overrides", classes)
        result.add("patches", patches)
        result.add("attributes", duck_typing(judged, questions, self.earlier_judge, is_own=self._is_own_baseline()))
        result.findings = with_rules(
            result.findings, judged, judge, self.earlier_judge, is_own=self._is_own_baseline(), client=self.modules
        )
        running = [found for found in result.findings if reachability.is_reachable(found.location.path, found.scope)]
        findings = sorted(
            {completed(finding, self.files.lines): None for finding in without_consequences(running)},
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
            usages=counts(result),
            findings=tuple(fingerprinted(findings)),
            unresolved=tuple(sorted(set(result.unresolved))),
            notices=tuple(notices),
            sources=tuple(quoted(findings, self.files.lines)),
            reasons=reasons_of(findings, judge),
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
        if self.model is not None:
            program.families.choose(self.model)
        judge = self.earlier_judge = Judge(program)
        judge.client_methods = self._client_methods()
        reachability = Reachability(program, self.modules)
        judged = list(self._judged(program, judge, reachability))
        self.earlier_additions, self.additions = self.additions.names, Additions()
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
        """Every usage that concerns the target, with what one release says of it.

        A module with expressions nested more deeply than Python can follow is skipped, from here on, as one that
        can't be parsed is.
        """
        for module in list(self.modules):
            try:
                judged = list(self._judged_in(module, program, judge, reachability))
            except RecursionError:
                self.skipped.append(Skipped(module.path, "nested too deeply"))
                self.modules.remove(module)
                continue
            yield from judged

    def _judged_in(
        self, module: ModuleDeclaration, program: Program, judge: Judge, reachability: Reachability
    ) -> Iterator[Judged]:
        usages: list[Usage] = []
        collector = Collector(program, module, usages.append, judge.concerns)
        collector.reachability = reachability
        collector.collect()
        for usage in usages:
            if isinstance(usage, AttributeUsage) and usage.is_stored:
                self.additions.note(judge.extended(usage), usage)
                self.stores.update(judge.stored(usage))
            elif isinstance(usage, CallUsage):
                self.additions.note(judge.extended_by(usage), usage)
                self.instantiated.update(called_classes(usage))
            elif isinstance(usage, StringUsage) and usage.role == "path":
                self.named.add(judge.strings.definition(usage.text))
            verdict = judge.verdict(usage)
            if verdict is not None:
                yield usage, verdict


def _narrowed(program: Program, model: str) -> Iterator[str]:
    """Lets only the classes count that an architecture runs, and says where the sources leave open which those are.

    Raises DriftcheckError where the target has no such architecture.
    """
    from driftcheck.configuration import nearest

    families = program.families
    if not families.choose(model):
        known = families.architectures()
        if not known:
            raise DriftcheckError(f"model {model!r}: nothing is known of the target's architectures")
        raise DriftcheckError(f"the target has no architecture {model!r}{nearest(model, known)}")
    if not all(families.is_narrowed(name) for name in families.rules):
        yield f"{model}: its configuration chooses what it is made of, so the classes of all models count for that"


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
