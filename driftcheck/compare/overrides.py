"""Whether a method of the client's still takes what the target's own calls of it pass, and does what they expect."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from driftcheck.compare.acceptance import gained_parameters, takes_all
from driftcheck.compare.annotations import admits_none
from driftcheck.compare.bind import assignment
from driftcheck.compare.callsites import CallSite
from driftcheck.compare.declared_results import changed_result
from driftcheck.compare.members import Definition, Members, Override
from driftcheck.compare.reach import Reach
from driftcheck.compare.refusals import Complaint, Refused, new_ones, refused_of, worst_of
from driftcheck.compare.release import Release
from driftcheck.compare.shifted_overrides import shifted_override
from driftcheck.model import Certainty, Kind, Severity, Signature
from driftcheck.surface.declarations import FunctionDeclaration
from driftcheck.surface.inference import is_generator
from driftcheck.surface.syntax import own_nodes
from driftcheck.surface.types import Function, Tuple


@dataclass(eq=False, slots=True)
class Overrides:
    """Holds overrides against two releases: only what the later one made worse is complained of."""

    target: Release
    baseline: Release | None
    members: Members = field(init=False)
    members_before: Members | None = field(init=False)
    reach: Reach = field(init=False)
    reach_before: Reach | None = field(init=False)

    def __post_init__(self) -> None:
        self.members = Members(self.target)
        self.members_before = Members(self.baseline) if self.baseline is not None else None
        self.reach = Reach(self.target, self.members)
        self.reach_before = (
            Reach(self.baseline, self.members_before)
            if self.baseline is not None and self.members_before is not None
            else None
        )

    def complaint(self, override: Override) -> Complaint | None:
        """What is wrong with an override that has a base in the target, None where nothing is."""
        own, base = override.own, override.base
        assert base is not None
        before = self.before(override)
        if self.members_before is not None and before is None:
            return self._collision(override)
        changed = self._changed_form(own, base, before.base if before is not None else None, override)
        if changed is not None:
            return changed
        if own.signature is None or base.signature is None or own.name == "__init__":
            return None
        if own.function is not None and _only_raises(own.function):
            # A call that it does not take raises all the same.
            return None
        before_base = before.base if before is not None else None
        found = (
            self._refused_call(override, before)
            or shifted_override(own, base, before_base, self.reach.sites(override))
            or self._result(override, before_base)
        )
        return found or self._gained(own, base, before_base)

    def before(self, override: Override) -> Override | None:
        """The same override at the baseline, None where the base had no such method there."""
        if self.members_before is None:
            return None
        found = self.members_before.override(override.class_, override.own.owner, override.own.name)
        return found if found is not None and found.base is not None else None

    # Calls that the override refuses

    def _refused_call(self, override: Override, before: Override | None) -> Complaint | None:
        own, base = override.own, override.base
        assert base is not None
        refused = self.refused(override)
        if refused and before is not None:
            refused = new_ones(refused, self.refused(before, is_baseline=True))
        if not refused:
            return None
        worst = worst_of(refused, base.owner.module.path)
        is_sure = before is not None and not worst.needs_variadic
        # A call whose receiver has a type proves more than one whose name merely agrees.
        certainty = Certainty.CERTAIN if worst.is_typed else Certainty.LIKELY
        return Complaint(
            Kind.INVALID_OVERRIDE,
            Severity.ERROR if is_sure else Severity.WARNING,
            certainty if is_sure else Certainty.POSSIBLE,
            f"{own.shown}() does not take what {worst.site.path} passes: {worst.said}",
            worst.problems[0].parameter,
            worst.problems[0].raises,
            worst.site,
        )

    def refused(self, override: Override, *, is_baseline: bool = False) -> list[Refused]:
        """The target's calls that can reach an override, that its base takes and that it does not."""
        own, base = override.own, override.base
        if base is None or own.signature is None or base.signature is None:
            return []
        if takes_all(own.signature, base.signature):
            return []
        reach = self.reach_before if is_baseline else self.reach
        assert reach is not None
        return refused_of(
            own.signature,
            base.signature,
            list(reach.sites(override)),
            name=own.shown,
            has_receiver=own.form != "static method",
        )

    # Parameters that the base gained

    def _gained(self, own: Definition, base: Definition, before: Definition | None) -> Complaint | None:
        """A new parameter of the base's that the override lacks, though no call shows that it is passed."""
        if before is None or before.signature is None or own.signature is None or base.signature is None:
            return None
        new = gained_parameters(own.signature, base.signature, before.signature)
        if not new:
            return None
        names = ", ".join(f"'{parameter.name}'" for parameter in new)
        return Complaint(
            Kind.INVALID_OVERRIDE,
            Severity.WARNING,
            Certainty.LIKELY,
            f"{own.shown}() lacks {names}, new in {base.shown}()",
            new[0].name,
            None,
        )

    # Results

    def _result(self, override: Override, before: Definition | None) -> Complaint | None:
        """A result that the base's callers have come to use, and that the override does not give."""
        own, base = override.own, override.base
        assert base is not None
        if before is None or own.function is None or base.function is None or before.function is None:
            return None
        if gives_nothing(own.function) and not gives_nothing(base.function) and gives_nothing(before.function):
            for site, is_typed in self.reach.sites(override):
                if is_typed and site.use != "discarded" and not isinstance(site.node.func, ast.Name):
                    fails = site.use in ("iterated", "unpacked", "subscripted", "attribute")
                    returns = base.signature.returns if base.signature is not None else None
                    wanted = f"{base.shown}() gives {returns or 'a value'} now, and {site.path} uses it"
                    return Complaint(
                        Kind.INVALID_OVERRIDE,
                        Severity.ERROR if fails else Severity.SILENT,
                        Certainty.LIKELY,
                        f"{own.shown}() gives None: {wanted}",
                        None,
                        "TypeError: 'NoneType' object" if fails else None,
                        site,
                    )
        return self._arity(override, before) or self._none_passed(override, before) or self._declared(override, before)

    def _arity(self, override: Override, before: Definition) -> Complaint | None:
        """A tuple of another length than the base gives now."""
        own, base = override.own, override.base
        assert base is not None and own.function is not None and base.function is not None
        assert before.function is not None and self.baseline is not None
        now = self._tuple_length(self.target, base.function)
        old = self._tuple_length(self.baseline, before.function)
        if now is None or old is None or now == old:
            return None
        given = self.target.judge.returns.returned_arities(Function(own.function))
        if given != frozenset((old,)):
            return None
        for site, is_typed in self.reach.sites(override):
            if is_typed and site.use == "unpacked" and site.count == now:
                return Complaint(
                    Kind.INVALID_OVERRIDE,
                    Severity.ERROR,
                    Certainty.CERTAIN,
                    f"{own.shown}() gives {old} values, and {site.path} unpacks {now}",
                    None,
                    f"ValueError: not enough values to unpack (expected {now}, got {old})"
                    if now > old
                    else f"ValueError: too many values to unpack (expected {now})",
                    site,
                )
        return None

    def _declared(self, override: Override, before: Definition) -> Complaint | None:
        """A result that is still declared as the base's was, which is declared as something else now."""
        own, base = override.own, override.base
        assert base is not None and self.baseline is not None
        now = changed_result(self.target, self.baseline, own, base, before)
        if not now:
            return None
        message = f"{own.shown}() still gives what {base.shown}() gave, which gives {now} now"
        return Complaint(Kind.INVALID_OVERRIDE, Severity.WARNING, Certainty.LIKELY, message, None, None)

    def _tuple_length(self, release: Release, function: FunctionDeclaration) -> int | None:
        returned = release.program.inference.returned(Function(function))
        return len(returned.items) if isinstance(returned, Tuple) else None

    def _none_passed(self, override: Override, before: Definition) -> Complaint | None:
        """A None that the target passes now to a parameter which is declared without."""
        own, base = override.own, override.base
        assert base is not None
        if own.signature is None or base.signature is None or before.signature is None:
            return None
        for parameter in own.signature.parameters:
            now, old = base.signature.parameter(parameter.name), before.signature.parameter(parameter.name)
            if now is None or old is None or admits_none(now.annotation) is not True or admits_none(old.annotation):
                continue
            if admits_none(parameter.annotation) is not False and parameter.annotation != old.annotation:
                continue
            site = self._passing_none(override, own.signature, parameter.name)
            if site is not None:
                return Complaint(
                    Kind.INVALID_OVERRIDE,
                    Severity.WARNING,
                    Certainty.LIKELY,
                    f"{own.shown}() takes no None for '{parameter.name}', and {site.path} passes one",
                    parameter.name,
                    None,
                    site,
                )
        return None

    def _passing_none(self, override: Override, signature: Signature, name: str) -> CallSite | None:
        for site, is_typed in self.reach.sites(override):
            for landing in assignment(signature, site.arguments) if is_typed else ():
                if landing.argument.is_none and landing.parameter is not None and landing.parameter.name == name:
                    return site
        return None

    # Sort of member

    def _changed_form(
        self, own: Definition, base: Definition, before: Definition | None, override: Override
    ) -> Complaint | None:
        """A base's member that became another sort of thing, while the override stayed what it was."""
        if before is None or before.form == base.form or own.form != before.form:
            return None
        now, old = base.form, before.form
        message = f"{own.shown} is a{_n(old)} {old}, and {base.shown} is a{_n(now)} {now} now"
        site = next((site for site, is_typed in self.reach.sites(override) if is_typed), None)
        severity, certainty, raises = Severity.WARNING, Certainty.LIKELY, None
        called = {"method", "async method", "class method", "static method", "async generator"}
        if site is not None:
            if old == "property" and now in called:
                severity, raises = Severity.ERROR, "TypeError: object is not callable"
            elif now == "async method" and old == "method" and site.is_awaited:
                severity, raises = Severity.ERROR, "TypeError: object can't be used in 'await' expression"
            elif old == "async method" and now == "method" and not site.is_awaited:
                severity = Severity.SILENT
        elif old in called and now == "property":
            severity = Severity.SILENT
        evidence = site if severity is not Severity.WARNING else None
        return Complaint(Kind.INVALID_OVERRIDE, severity, certainty, message, None, raises, evidence)

    # Names that the base has taken

    def _collision(self, override: Override) -> Complaint | None:
        """A method of the client's whose name the base took, and which its callers reach instead of their own."""
        own, base = override.own, override.base
        assert base is not None
        if own.name.startswith("__") or own.signature is None:
            return None
        message = f"{own.shown} now stands in the way of {base.shown}, which is new"
        if base.signature is None:
            if own.form == base.form:
                return None
            return Complaint(Kind.NAME_COLLISION, Severity.WARNING, Certainty.LIKELY, message)
        refused = self.refused(override)
        typed = [each for each in refused if each.is_typed and not each.needs_variadic]
        if typed:
            first = worst_of(typed, base.owner.module.path)
            return Complaint(
                Kind.NAME_COLLISION,
                Severity.ERROR,
                Certainty.LIKELY,
                f"{message}: it does not take what {first.site.path} passes: {first.said}",
                first.problems[0].parameter,
                first.problems[0].raises,
                first.site,
            )
        if takes_all(own.signature, base.signature) and own.form == base.form:
            # Most likely the same method, which the target has taken over.
            return None
        return Complaint(Kind.NAME_COLLISION, Severity.WARNING, Certainty.LIKELY, message)


def gives_nothing(function: FunctionDeclaration) -> bool:
    """True for a function that surely gives None: by its annotation, or by its body where it has none."""
    returns = function.node.returns
    if returns is not None:
        return isinstance(returns, ast.Constant) and returns.value is None
    if is_generator(function) or _is_stub(function):
        return False
    return not any(isinstance(node, ast.Return) and node.value is not None for node in own_nodes(function.body))


def _is_stub(function: FunctionDeclaration) -> bool:
    """True for a body that only stands for one: `...`, `pass`, or an exception."""
    return all(isinstance(statement, ast.Pass | ast.Raise) for statement in _statements(function))


def _only_raises(function: FunctionDeclaration) -> bool:
    """True for a body that refuses every call."""
    statements = _statements(function)
    return bool(statements) and all(isinstance(statement, ast.Raise) for statement in statements)


def _statements(function: FunctionDeclaration) -> list[ast.stmt]:
    """The statements of a function, without its docstring and `...`."""
    return [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def _n(word: str) -> str:
    return "n" if word[0] in "aeiou" else ""
