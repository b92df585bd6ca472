"""The audit: a client is read, its usages of the target are judged, and what does not fit is reported."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from driftcheck.assembly import completed, fingerprinted, quoted, without_consequences
from driftcheck.compare.confirm import Judged
from driftcheck.compare.contracts import broken_contracts, explained, reasons_of
from driftcheck.compare.duck_typing import duck_typing
from driftcheck.compare.findings import Findings
from driftcheck.compare.hidden import hidden_drift, mocked
from driftcheck.compare.relocation import Relocation
from driftcheck.compare.tally import Result, answer, counts
from driftcheck.errors import DriftcheckError
from driftcheck.model import ClientSummary, Finding, Report, TargetSummary
from driftcheck.progress import Progress
from driftcheck.readings import Readings, Shared
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.program import Program
from driftcheck.tree import SourceTree
from driftcheck.usage.usages import CallUsage

DEFAULT_TARGET = "vllm"
# So many new objects take a noticeable time to look through.
_MANY = 300_000

if TYPE_CHECKING:
    from driftcheck.remembered import Remembered

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Runtime:
    """The interpreter that has the target, and how it is asked."""

    executable: str
    timeout: float | None
    cache_folder: Path | None
    cache_key: str | None


@dataclass(frozen=True, slots=True)
class Sources:
    """What an audit is about, found and fetched: the client, and the releases that it is held against.

    `chosen` says why this baseline, where nobody named it; `cache` is where reports are kept, None where they are not.
    """

    client: SourceTree
    target: SourceTree
    baseline: SourceTree | None
    chosen: str | None
    notices: tuple[str, ...]
    model: str | None
    runtime: _Runtime | None
    cache: Path | None

    def audited(
        self,
        client: SourceTree | None = None,
        *,
        processes: int | None = None,
        shared: Shared | None = None,
    ) -> Report:
        """The report on the client, or on an edited copy of it; by 1 or 2 processes where that is not left open.

        `shared` is what audits of the same client against other releases have left, and is filled by the first.
        """
        tree = client if client is not None else self.client
        remembered = self._remembered(tree)
        report = remembered.report() if remembered is not None else None
        if report is None:
            report = self._made(tree, processes, shared)
            if remembered is not None:
                remembered.keep(report)
        return report

    def remembered(self) -> Report | None:
        """The report of an earlier audit, None where something is not as it was, or nothing was kept."""
        remembered = self._remembered(self.client)
        return remembered.report() if remembered is not None else None

    def asked(self, question: Callable[[Report, Readings], _Answer]) -> _Answer:
        """What a question about the report on the client, made anew, and about all that was read for it comes to."""
        with _uncollected():
            readings = Readings(self.client, self.target, self.baseline, self.model)
            report = _Audit(readings).report(self.model, self.chosen, list(self.notices), self.runtime)
            return question(report, readings)

    def _remembered(self, client: SourceTree) -> Remembered | None:
        """Where the report on a client is kept."""
        from driftcheck.remembered import Remembered

        if self.runtime is not None or self.cache is None:
            # What an interpreter imports depends on more than on the sources at hand.
            return None
        parts = (self.chosen, self.model, *self.notices)
        return Remembered(self.cache, (client, self.target, self.baseline), parts)

    def _made(self, client: SourceTree, processes: int | None, shared: Shared | None) -> Report:
        return audit_trees(
            client,
            self.target,
            self.baseline,
            chosen=self.chosen,
            notices=self.notices,
            runtime=self.runtime,
            model=self.model,
            processes=processes,
            shared=shared,
        )


def audit(
    client: str | SourceTree,
    *,
    against: str | None = None,
    baseline: str | None = None,
    python: str | None = None,
    static: bool = False,
    offline: bool = False,
    timeout: float | None = None,
    model: str | None = None,
    remember: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Audits a client, named as on the command line or at hand, against a target that is named so.

    Raises DriftcheckError where one of them can't be had. `timeout` bounds the target's interpreter, in seconds;
    `model` is the architecture that will be run, where only its classes count. `remember` takes the report of an
    earlier audit where nothing that went into it has changed.
    """
    return sources_of(
        client,
        against=against,
        baseline=baseline,
        python=python,
        static=static,
        offline=offline,
        timeout=timeout,
        model=model,
        remember=remember,
        progress=progress,
    ).audited()


def sources_of(
    client: str | SourceTree,
    *,
    against: str | None = None,
    baseline: str | None = None,
    python: str | None = None,
    static: bool = False,
    offline: bool = False,
    timeout: float | None = None,
    model: str | None = None,
    remember: bool = True,
    progress: Progress | None = None,
) -> Sources:
    """Finds what an audit with these arguments (see `audit`) is about; raises DriftcheckError where it can't be had."""
    from driftcheck.origins.baseline import baseline_specification
    from driftcheck.origins.select import client_tree, target_tree
    from driftcheck.origins.settings import Settings

    settings = Settings(offline=offline, python=python, progress=_fetching(progress))
    target = target_tree(against or DEFAULT_TARGET, settings=settings)
    if not ModuleIndex(target).sources:
        raise DriftcheckError(
            f"{against or DEFAULT_TARGET} holds no Python package; name a checkout, or {DEFAULT_TARGET}==X"
        )
    tree = client_tree(client, settings=settings) if isinstance(client, str) else client
    notices: list[str] = []
    chosen: str | None = None
    if baseline is None:
        try:
            found = baseline_specification(
                tree, _import_name(target, against), held_against=target.version, settings=settings
            )
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
    if earlier is not None and ModuleIndex(earlier).top_level.isdisjoint(ModuleIndex(target).top_level):
        raise DriftcheckError(f"the baseline {baseline} holds nothing of the target, {_import_name(target, against)}")
    runtime: _Runtime | None = None
    executable = getattr(target, "executable", None)
    if executable is not None and not static:
        runtime = _Runtime(str(executable), timeout, settings.cache, getattr(target, "record_digest", None))
    cache = settings.cache if remember else None
    return Sources(tree, target, earlier, chosen, tuple(notices), model, runtime, cache)


def releases_in(text: str, *, offline: bool = False, pre: bool = False) -> list[str]:
    """The releases of the default target in a range such as '>=0.11,<0.18', the newest first; `pre` with prereleases.

    Raises DriftcheckError where the text is no range, or no release is in it.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from driftcheck.origins.offers import offers
    from driftcheck.origins.settings import Settings

    try:
        wanted = SpecifierSet(text)
    except InvalidSpecifier as error:
        raise DriftcheckError(f"{text!r} is no range of releases; write '>=0.11,<0.18' for example") from error
    if not text.strip():
        raise DriftcheckError("an empty range holds every release; write '>=0.11,<0.18' for example")
    known = offers(DEFAULT_TARGET, Settings(offline=offline))
    found = [each.version for each in known if wanted.contains(each.version, prereleases=pre or None)]
    if not found:
        raise DriftcheckError(f"no release of {DEFAULT_TARGET} is in {text}")
    return [f"{DEFAULT_TARGET}=={version}" for version in reversed(found)]


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
    processes: int | None = None,
    shared: Shared | None = None,
) -> Report:
    """Audits a client held in a tree against a target held in another, with a baseline where there is one.

    `chosen` says why this baseline, where nobody named it; `runtime` is the interpreter that confirms what is found,
    `model` the architecture that will be run. `processes` is 1 or 2, where not left to the client's size; `shared` is
    what an audit before has left for those of the same client and baseline.
    """
    with _uncollected():
        readings = Readings(client, target, baseline, model, processes=processes, shared=shared)
        return _Audit(readings).report(model, chosen, list(notices), runtime)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps the garbage collector off: syntax trees are many small objects that live to the end.

    Collecting among them costs more than parsing. Where they are many, they stay until the next audit begins, since
    mostly there is none and the process ends.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > _MANY:
                gc.freeze()
            gc.enable()


class _Audit:
    """One audit under way, of a client as it is read."""

    def __init__(self, readings: Readings) -> None:
        self.readings = readings
        self.files = readings.files

    def report(self, model: str | None, chosen: str | None, notices: list[str], runtime: _Runtime | None) -> Report:
        """The whole audit in order."""
        readings = self.readings
        if model is not None:
            notices += _narrowed(readings.reading.program, model)
        readings.read()
        judged = readings.reading.judged
        if runtime is not None:
            judged = _asked(judged, runtime, notices)
        result = self._answered(judged, self._questions(judged))
        findings = self._reachable(result.findings)
        readings.keep()
        if not readings.modules:
            packages = ", ".join(sorted(self.files.target_names)[:3])
            notices.append(f"no file of the client uses the target ({packages})")
        client, target, baseline = readings.client, readings.target, readings.baseline
        return Report(
            client=ClientSummary(
                client.name,
                client.version,
                client.origin,
                self.files.count,
                len(readings.modules),
                tuple(sorted(readings.skipped)),
            ),
            target=TargetSummary(target.name, target.version, target.origin),
            baseline=TargetSummary(baseline.name, baseline.version, baseline.origin, chosen) if baseline else None,
            usages=counts(result),
            findings=tuple(fingerprinted(findings)),
            unresolved=tuple(sorted(set(result.unresolved))),
            notices=tuple(notices),
            sources=tuple(quoted(findings, self.files.lines)),
            reasons=reasons_of(findings, readings.reading.judge),
            bound=_bound(judged) if runtime is not None else (),
            suppressions=tuple(self.files.suppressions()),
        )

    def _questions(self, judged: list[Judged]) -> Findings:
        """What makes findings of verdicts, told all that both releases say of the client as a whole."""
        reading, before, earlier = self.readings.reading, self.readings.before, self.readings.earlier
        questions = Findings(
            reading.judge,
            before.verdicts if before is not None else None,
            Relocation(reading.program, earlier.program if earlier is not None else None),
        )
        questions.extensions = reading.additions.reached(judged)
        if before is not None and not self.readings.is_own_baseline:
            questions.long_added = before.additions
        questions.named = reading.named | (before.named if before is not None else set())
        questions.stores = reading.stores | (before.stores if before is not None else set())
        questions.puts_modules_in_place = self.files.puts_modules_in_place
        questions.mocked = mocked(judged)
        return questions

    def _answered(self, judged: list[Judged], questions: Findings) -> Result:
        """All questions asked: of the usages, of classes and patches, of families, and the rules' own."""
        readings, before = self.readings, self.readings.before
        reading, is_own = readings.reading, readings.is_own_baseline
        earlier_judge = readings.earlier.judge if readings.earlier is not None else None
        result = answer(judged, questions)
        classes, patches = hidden_drift(
            judged,
            questions,
            earlier_judge,
            is_own=is_own,
            client=readings.modules,
            instantiated=reading.instantiated | (before.instantiated if before is not None else set()),
            patches_before=before.patches or {} if before is not None else {},
        )
        # A class that only a string names may stand in a file that does not name the target.
        for name in reading.program.loaded_modules():
            module = reading.program.module(name)
            if module is not None and name in self.files.index.sources:
                self.files.lines.setdefault(module.path, module.lines)
        result.add("overrides", classes)
        result.add("patches", patches)
        pasts = before.pasts if before is not None else None
        duck_typed = duck_typing(judged, questions, reading.asked, earlier_judge, pasts, is_own=is_own)
        result.add("attributes", duck_typed)
        contracts = broken_contracts(judged, reading.judge, earlier_judge, is_own=is_own, client=readings.modules)
        result.add("calls", contracts)
        result.findings = explained(result.findings, reading.judge, judged)
        return result

    def _reachable(self, found: list[Finding]) -> list[Finding]:
        """The findings in what can run, with the lines that they stand on, sorted."""
        reachability = self.readings.reading.reachability
        running = [finding for finding in found if reachability.is_reachable(finding.location.path, finding.scope)]
        return sorted(
            {completed(finding, self.files.lines): None for finding in without_consequences(running)},
            key=lambda f: (f.location, f.kind.value, f.symbol, f.parameter or "", f.message),
        )


def _bound(judged: Sequence[Judged]) -> tuple[tuple[str, int], ...]:
    """Where the calls stand that the target's interpreter has bound."""
    places = {
        (usage.location.path, usage.location.line)
        for usage, verdict in judged
        if isinstance(usage, CallUsage) and verdict.status == "fits" and verdict.confirmed_by is not None
    }
    return tuple(sorted(places))


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
        others = [name for name in known if name != model]
        raise DriftcheckError(f"the target has no architecture {model!r}{nearest(model, others)}")
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
