"""Does the client keep the contracts that no signature shows: runs the rules' detections, and explains findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from driftcheck.compare.call_patterns import CALL_PATTERNS, Call, CallPatterns, Spot, call_of
from driftcheck.compare.client_code import ClientCode
from driftcheck.compare.conditions import Answer, Conditions
from driftcheck.compare.confirm import Judged
from driftcheck.compare.judge import Judge
from driftcheck.compare.prescribed_fixes import PrescribedFixes, settled
from driftcheck.compare.replacement_patterns import overridden, replaced, replaced_by_name, used
from driftcheck.compare.subclasses import Answers
from driftcheck.compare.tally import fitting_guards
from driftcheck.model import Evidence, Finding, Kind, Location
from driftcheck.rule_files import rules_of
from driftcheck.rules import Detect, Match, Rule
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.types import Class
from driftcheck.usage.usages import CallUsage


def broken_contracts(
    judged: Sequence[Judged],
    judge: Judge,
    baseline: Judge | None,
    *,
    is_own: bool,
    client: Sequence[ModuleDeclaration],
) -> Answers:
    """The broken contracts that the target's rules detect.

    `baseline` is the judge of the release that the client was written for, None where there is none or where the target
    is that very release (`is_own`).
    """
    contracts = Contracts(judge, baseline, judged, client, is_own=is_own)
    answers = Answers()
    for rule in rules_of(judge.program.target_index.top_level):
        for detect in rule.detects:
            for found in contracts.broken(rule, detect):
                if isinstance(found, Finding):
                    answers.findings.append(found)
                else:
                    answers.unresolved.append((found.path, found.line, f"condition of the rule {rule.id}"))
    return answers


def explained(findings: Sequence[Finding], judge: Judge, judged: Sequence[Judged]) -> list[Finding]:
    """The findings, with the rule and the fix where one of the target's rules knows them."""
    rules = rules_of(judge.program.target_index.top_level)
    target = Conditions(judge)
    places = {finding.call or finding.location for finding in findings}
    calls: dict[Location, Call] = {}
    for usage, verdict in judged:
        if isinstance(usage, CallUsage) and usage.location in places:
            call = call_of(usage, verdict)
            if call is not None:
                calls[usage.location] = call
    fixes = PrescribedFixes(target, calls)
    return [settled(_explained(finding, rules, fixes)) for finding in findings]


def reasons_of(findings: Sequence[Finding], judge: Judge) -> tuple[tuple[str, str], ...]:
    """What the rules that findings name say of why, by rule."""
    named = {finding.rule for finding in findings}
    return tuple((rule.id, rule.why) for rule in rules_of(judge.program.target_index.top_level) if rule.id in named)


class Contracts:
    """Looks for the patterns of rules in what has been judged of a client."""

    def __init__(
        self,
        judge: Judge,
        baseline: Judge | None,
        judged: Sequence[Judged],
        client: Sequence[ModuleDeclaration],
        *,
        is_own: bool,
    ) -> None:
        self.target = Conditions(judge)
        self.baseline = self.target if is_own else Conditions(baseline) if baseline is not None else None
        fitting = fitting_guards(judged)
        # What stands in a handler of what does not fail is never reached.
        self.judged = [each for each in judged if not any(guard.handles in fitting for guard in each[0].guards)]
        self.client = ClientCode(judge.program, client)
        self.patterns = CallPatterns(judge, self.client)
        self._calls: dict[str, list[Call]] | None = None

    def broken(self, rule: Rule, detect: Detect) -> Iterator[Finding | Location]:
        """The places where the client breaks what one detection of a rule is about.

        A place alone is one where that can't be told, since the release does not tell whether it asks for it.
        """
        spots = list(dict.fromkeys(self._spots(detect)))
        if not spots or not all(self.client.holds(condition) for condition in detect.client):
            return
        answers = [self.target.answer(condition) for condition in detect.when]
        if any(answer.holds is False for answer in answers):
            return
        if not all(answer.holds for answer in answers):
            yield from (spot.location for spot in spots)
            return
        drift = self._is_drift(rule, detect)
        if detect.drift_only and drift is not True:
            return
        for spot in spots:
            yield Finding(
                Kind.BROKEN_CONTRACT,
                detect.severity,
                detect.certainty,
                spot.location,
                spot.symbol,
                detect.message,
                detect.argument,
                detect.raises,
                drift,
                self._evidence(detect, answers, spot),
                rule=rule.id,
                scope=spot.scope,
                call=spot.call,
            )

    def _is_drift(self, rule: Rule, detect: Detect) -> bool | None:
        """True where the baseline answers otherwise, False where it makes the same demand, None without one.

        What the baseline had not at all never worked, and is no drift; nor is a demand that only fails otherwise.
        """
        baseline = self.baseline
        if baseline is None:
            return None
        if detect.symbols and not any(baseline.resolved(symbol) for symbol in detect.symbols):
            return False
        same = [each for each in rule.detects if _subject(each) == _subject(detect)]
        return all(any(baseline.answer(condition).holds is False for condition in each.when) for each in same)

    def _evidence(self, detect: Detect, answers: Sequence[Answer], spot: Spot) -> Evidence:
        """The place that proves it: of the last condition that has one, else of what is called."""
        for condition, answer in reversed(list(zip(detect.when, answers, strict=True))):
            if answer.path is not None:
                before = self.baseline.answer(condition).signature if self.baseline is not None else None
                return Evidence(answer.path, answer.line, answer.signature, before, source=answer.source)
        if spot.callee is not None:
            return Evidence(spot.callee.path, spot.callee.line, str(spot.callee.signature))
        for symbol in detect.symbols:
            definition = self.target.definition(symbol)
            if definition is not None:
                return Evidence(definition.module.path, definition.line)
        return Evidence()

    # Where a pattern fits

    def _spots(self, detect: Detect) -> Iterator[Spot]:
        if detect.pattern in CALL_PATTERNS:
            for call in self._calls_of(detect):
                spot = self.patterns.spot(detect, call)
                if spot is not None:
                    yield spot
        elif detect.attribute is not None:
            yield from replaced_by_name(detect, self.client)
        else:
            for usage, verdict in self.judged:
                if detect.pattern == "used":
                    yield from used(detect, usage, verdict, self.target)
                elif detect.pattern == "overrides":
                    yield from overridden(detect, usage, self.target)
                else:
                    yield from replaced(detect, usage, self.target)

    def _calls_of(self, detect: Detect) -> Iterator[Call]:
        """The client's calls of what a rule names, or of what overrides or inherits it."""
        for symbol in detect.symbols:
            for call in self._calls_by_name().get(symbol.rpartition(".")[2], ()):
                definition = self.target.definition(symbol)
                if definition is not None and self._is_call_of(call, definition):
                    yield call

    def _calls_by_name(self) -> dict[str, list[Call]]:
        if self._calls is None:
            self._calls = {}
            for usage, verdict in self.judged:
                call = call_of(usage, verdict) if isinstance(usage, CallUsage) else None
                if call is not None:
                    for name in self._names(call):
                        self._calls.setdefault(name, []).append(call)
        return self._calls

    def _names(self, call: Call) -> Iterator[str]:
        """The names under which a rule may name what is called: of a class, its own and those of its bases."""
        if call.callee.called is None:
            yield call.callee.declaration.name.rpartition(".")[2]
            return
        for entry in self.target.program.classes.linearize(call.callee.called):
            if isinstance(entry, Class):
                yield entry.declaration.name

    def _is_call_of(self, call: Call, definition: ClassDeclaration | FunctionDeclaration) -> bool:
        callee = call.callee
        if isinstance(definition, ClassDeclaration):
            return callee.called is not None and self._derives(callee.called, definition)
        found = callee.declaration
        if found is definition:
            return True
        if not isinstance(found, FunctionDeclaration) or found.owner is None or definition.owner is None:
            return False
        return self._derives(found.owner, definition.owner)

    def _derives(self, class_: ClassDeclaration, base: ClassDeclaration) -> bool:
        entries = self.target.program.classes.linearize(class_)
        return any(isinstance(entry, Class) and entry.declaration is base for entry in entries)


def _subject(detect: Detect) -> tuple[object, ...]:
    """What of the client's code a detection is about."""
    return detect.pattern, detect.symbols, detect.argument, detect.values, detect.others, detect.attribute


def _explained(finding: Finding, rules: Sequence[Rule], fixes: PrescribedFixes) -> Finding:
    """The finding with the rule that knows it best: one that names its parameter, or its symbol in full, goes first."""
    if finding.rule is not None:
        rule = next(each for each in rules if each.id == finding.rule)
    else:
        known = [(match, rule) for rule in rules for match in rule.matches if _matches(match, finding, fixes.target)]
        if not known:
            return finding
        _, rule = min(known, key=lambda each: (not each[0].parameters, "*" in "".join(each[0].symbols), each[1].id))
    return replace(finding, rule=rule.id, fix=fixes.of(rule, finding))


def _matches(match: Match, finding: Finding, target: Conditions) -> bool:
    return (
        finding.kind in match.kinds
        and (not match.parameters or finding.parameter in match.parameters)
        and any(
            symbol == finding.symbol or ("*" in symbol and fnmatchcase(finding.symbol, symbol))
            for symbol in match.symbols
        )
        and (not match.successors or any(target.resolved(path) is not None for path in match.successors))
    )
