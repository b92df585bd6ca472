"""Turns verdicts on the target and on the baseline into findings: what it is, how bad, how sure, and what proves it."""

from __future__ import annotations

import ast
from dataclasses import replace

from driftcheck.compare.bind import BindingProblem
from driftcheck.compare.counterparts import counterparts
from driftcheck.compare.deprecation import ending_release
from driftcheck.compare.derived_fixes import DerivedFixes
from driftcheck.compare.descendants import Descendants
from driftcheck.compare.earlier import Earlier, Key, key_of
from driftcheck.compare.exceptions import expected_exception
from driftcheck.compare.judge import Judge, Verdict
from driftcheck.compare.kinds import KindChange, attribute_change, call_change, is_async, reference_change
from driftcheck.compare.relocation import Relocation
from driftcheck.compare.sentinel import sentinel_none
from driftcheck.compare.shift import positional_shift, swallowed_keyword
from driftcheck.model import Certainty, Evidence, Finding, Kind, Location, ParameterKind, Severity, Signature
from driftcheck.surface.classes import STORES_BY_NAME
from driftcheck.surface.program import ATTRIBUTE_ERRORS, IMPORT_ERRORS, NAME_ERRORS
from driftcheck.surface.signatures import Callee
from driftcheck.surface.types import Absent, Class, Function, Instance, Module, Super, Type, TypeVariable, members_of
from driftcheck.usage.places import location_of
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    EnvironmentUsage,
    Guard,
    ImportUsage,
    ReferenceUsage,
    ReturnUsage,
    StringUsage,
    Usage,
)

_BROAD = frozenset(("Exception", "BaseException"))
_PUT_THERE = " until the client has put its own there"


class Findings:
    """Makes findings of broken usages, given what the baseline says of the same ones."""

    def __init__(self, judge: Judge, baseline: dict[Key, Earlier] | None, relocation: Relocation | None = None) -> None:
        self.judge = judge
        self.relocation = relocation or Relocation(judge.program, None)
        self.fixes = DerivedFixes(judge.program, self.relocation)
        self.program = judge.program
        self.baseline = baseline
        self.descendants = Descendants(judge)
        # (path of a client's file, module whose import fails there).
        self.failed_imports: set[tuple[str, str]] = set()
        # What the client itself puts on the target's classes and modules: (owner, name).
        self.extensions: set[tuple[str, str]] = set()
        # Those that it put there with the baseline already, where what the target had was only replaced.
        self.long_added: set[tuple[str, str]] = set()
        # What it names in strings, by canonical dotted path, and whether it puts modules under computed names in place.
        self.named: set[str] = set()
        self.puts_modules_in_place = False
        # What its tests put in the place of something: the scopes, by file, owner and name.
        self.mocked: dict[tuple[str, str, str], list[str]] = {}
        # What it stores on instances: (class, name).
        self.stores: set[tuple[str, str]] = set()
        # The environment variables that the client itself reads.
        self.variables_read: set[str] = set()

    def earlier(self, usage: Usage) -> Earlier | None:
        """What the baseline says of the same usage."""
        return self.baseline.get(key_of(usage)) if self.baseline is not None else None

    def _drift(self, usage: Usage) -> bool | None:
        if self.baseline is None:
            return None
        earlier = self.earlier(usage)
        if earlier is None or earlier.status == "unresolved":
            return None
        return earlier.status == "fits"

    # Imports

    def imported(self, usage: ImportUsage, verdict: Verdict) -> Finding | None:
        """The finding for an import that fails, None where a guard provides for it."""
        found = self._imported(usage, verdict)
        if found is None or verdict.absent is None:
            return found
        return replace(found, fix=self.fixes.of_import(usage, whole_statement=verdict.absent.is_module))

    def _imported(self, usage: ImportUsage, verdict: Verdict) -> Finding | None:
        absent = verdict.absent
        assert absent is not None
        drift = self._drift(usage)
        added = (usage.module, usage.name or "")
        is_added = added in self.extensions
        if is_added and not (drift and added in self.long_added):
            return None
        if usage.is_starred:
            return self._starred(usage, verdict, absent)
        if not drift and usage.name is not None and self.program.facts.probes.is_put_by_client(usage.name):
            # By a way that can't be followed, perhaps; and the baseline never had it either.
            return None
        guard = guard_against(usage.guards, IMPORT_ERRORS if absent.is_module else NAME_ERRORS)
        severity, certainty = Severity.ERROR, Certainty.CERTAIN
        if is_added:
            severity, certainty = Severity.WARNING, Certainty.POSSIBLE
        kind = Kind.UNRESOLVED_SYMBOL
        raises = f"ImportError: cannot import name '{usage.name}' from '{usage.module}'"
        message = f"{usage.module} has no name {usage.name}{_PUT_THERE if is_added else ''}"
        if absent.is_module:
            kind = Kind.UNRESOLVED_MODULE
            missing = f"{absent.owner}.{absent.name}" if absent.owner else absent.name
            raises = f"ModuleNotFoundError: No module named '{missing}'"
            message = f"module {usage.module} is not there"
            if missing != usage.module:
                message += f": {missing} is gone"
        symbol = usage.module if absent.is_module else verdict.symbol
        if not absent.typing_only:
            message += self._homes(usage, whole_statement=absent.is_module)
        if absent.typing_only:
            message += ", except for type checkers"
        if usage.is_typing_only:
            severity, raises_text = Severity.NOTE, None
            return self._finding(
                usage,
                kind,
                severity,
                certainty,
                verdict.symbol,
                message,
                raises_text,
                drift,
                absent,
                verdict.confirmed_by,
            )
        if guard is not None and not guard.reraises:
            if guard.falls_back:
                return None
            kind = Kind.SILENT_FALLBACK
            severity = Severity.SILENT if drift else Severity.NOTE
            certainty = Certainty.CERTAIN if drift else Certainty.POSSIBLE
            message += f"; the handler of line {guard.line} hides it"
            return self._finding(
                usage, kind, severity, certainty, symbol, message, None, drift, absent, verdict.confirmed_by
            )
        if guard is not None:
            message += f"; the handler of line {guard.line} turns it into an error of its own"
        return self._finding(
            usage, kind, severity, certainty, symbol, message, raises, drift, absent, verdict.confirmed_by
        )

    def _starred(self, usage: ImportUsage, verdict: Verdict, absent: Absent) -> Finding | None:
        """The finding for a name that a star import brought in the baseline and does not bring any more."""
        if not self._drift(usage):
            return None
        message = f"{usage.name} no longer comes with the star import of {usage.module}"
        message += self._homes(usage, whole_statement=False)
        raises = f"NameError: name '{usage.name}' is not defined"
        return self._finding(
            usage,
            Kind.UNRESOLVED_SYMBOL,
            Severity.ERROR,
            Certainty.CERTAIN,
            verdict.symbol,
            message,
            raises,
            True,
            absent,
        )

    def _homes(self, usage: ImportUsage, *, whole_statement: bool) -> str:
        """Where the names of an import stand now, in words."""
        names = [usage.name] if usage.name is not None else []
        if whole_statement and isinstance(usage.statement, ast.ImportFrom):
            names = [alias.name for alias in usage.statement.names if alias.name != "*"]
        homes = [home for name in names if (home := self.relocation.home(usage.module, name)) is not None]
        return "".join(f"; {home.name} is in {home.module}" for home in homes)

    # Attributes

    def attribute(self, usage: AttributeUsage, verdict: Verdict) -> Finding | str | None:
        """The finding for an attribute that is not there, or the reason why it can't be told."""
        found = self._attribute(usage, verdict)
        if not isinstance(found, Finding):
            return found
        module = next((member for member in members_of(usage.receiver) if isinstance(member, Module)), None)
        if module is not None:
            return replace(found, fix=self.fixes.of_module_attribute(usage, module.name, found.location))
        return replace(found, fix=self.fixes.of_member(usage, found.symbol, found.location))

    def _attribute(self, usage: AttributeUsage, verdict: Verdict) -> Finding | str | None:
        absent = verdict.absent
        assert absent is not None
        if (usage.location.path, f"{absent.owner}.{absent.name}") in self.failed_imports:
            # The import of that submodule has been reported.
            return None
        drift = self._drift(usage)
        if is_told_by_names(usage) and not drift:
            return "receiver that only names tell"
        added = self._added_at(usage.receiver, absent)
        if added is not None and not (drift and added in self.long_added):
            return "attribute that the client adds"
        symbol = verdict.symbol
        earlier = self.earlier(usage)
        if drift and earlier is not None and earlier.symbol:
            symbol = earlier.symbol
        receiver = next(member for member in members_of(usage.receiver) if self.judge.concerns(member))
        is_module = isinstance(receiver, Module)
        severity, certainty = Severity.ERROR, _surest(usage)
        if not drift and not is_module and self._is_class_replaced(absent.owner):
            return "class that the client replaces"
        if not drift and self.program.facts.probes.is_put_by_client(usage.name):
            return "attribute that the client stores on an object"
        if not drift and not is_module and not verdict.is_certain:
            doubt = self._doubt(receiver, usage.name)
            if doubt:
                return doubt
            severity, certainty = Severity.WARNING, Certainty.POSSIBLE
        elif verdict.reason.endswith(STORES_BY_NAME):
            certainty = Certainty.LIKELY
        if added is not None:
            severity, certainty = Severity.WARNING, Certainty.POSSIBLE
        if usage.is_type_ignored and not is_module:
            severity, certainty = Severity.WARNING, Certainty.POSSIBLE
        guard = guard_against(usage.guards, ATTRIBUTE_ERRORS)
        name, raises = _attribute_error(receiver, usage.name)
        if usage.is_protocol:
            raises = f"TypeError: '{name}' object does not support {usage.name}"
        message = f"{name} has no attribute {usage.name}{_PUT_THERE if added is not None else ''}"
        if absent.typing_only:
            message += ", except for type checkers"
        if usage.is_typing_only:
            return self._finding(
                usage,
                Kind.UNRESOLVED_ATTRIBUTE,
                Severity.NOTE,
                certainty,
                symbol,
                message,
                None,
                drift,
                absent,
                verdict.confirmed_by,
            )
        if guard is not None:
            if guard.falls_back or not guard.caught & _BROAD:
                return None
            if not guard.reraises and severity is Severity.ERROR:
                severity, raises = Severity.SILENT, ""
                message += f"; the handler of line {guard.line} hides it"
        return self._finding(
            usage,
            Kind.UNRESOLVED_ATTRIBUTE,
            severity,
            certainty,
            symbol,
            message,
            raises or None,
            drift,
            absent,
            verdict.confirmed_by,
        )

    def _added_at(self, receiver: Type, absent: Absent) -> tuple[str, str] | None:
        """What the client puts on the module, the class or a base, so that the attribute is there: (owner, name)."""
        owners = [absent.owner]
        for member in members_of(receiver):
            class_ = member.class_ if isinstance(member, Instance | Super) else member
            if isinstance(class_, Class):
                linear = self.program.classes.linearize(class_.declaration)
                owners += [base.declaration.symbol for base in linear if isinstance(base, Class)]
        return next(((owner, absent.name) for owner in owners if (owner, absent.name) in self.extensions), None)

    def _doubt(self, receiver: object, name: str) -> str:
        """Why an instance may have the attribute although its declared class has not."""
        if isinstance(receiver, TypeVariable):
            return "type variable"
        class_ = receiver.class_ if isinstance(receiver, Instance | Super) else receiver
        if not isinstance(class_, Class):
            return ""
        if (class_.declaration.symbol, name) in self.stores:
            return "attribute that the client stores on an instance"
        if any(path.endswith(".Protocol") for path in self.program.classes.external_bases(class_.declaration)):
            return f"{class_.declaration.name} is a protocol, which other classes fulfil"
        return f"{class_.declaration.name} may be a subclass here that has {name}" if self._elsewhere(name) else ""

    def _elsewhere(self, name: str) -> bool:
        return self.program.mentions_store(name)

    # Calls

    def was_own(self, usage: Usage, verdict: Verdict) -> bool:
        """True where the target's own class had in the baseline what now only an outside base could have."""
        earlier = self.earlier(usage)
        assert verdict.absent is not None
        if earlier is None or earlier.status != "fits" or not earlier.symbol:
            return False
        return self.program.is_target(earlier.symbol) and (verdict.absent.owner, verdict.absent.name) not in self.stores

    def is_replaced(self, usage: CallUsage, verdict: Verdict) -> bool:
        """True where the client puts something of its own in the place of what a call calls, or may do so.

        That it may, since it replaces the class or names the callable in a string, counts for what never fitted.
        """
        callee = usage.callee
        if isinstance(callee, Class) and not self.program.is_target(callee.declaration.symbol):
            # A class of the client's inherits from what stood there when it was made.
            return False
        symbol = verdict.symbol
        if not self._is_inherited(callee):
            symbol = symbol.removesuffix(".__init__")
        owner, _, name = symbol.rpartition(".")
        owners = [(owner, name)]
        if isinstance(callee, Class):
            bases = [base for base in self.program.classes.linearize(callee.declaration) if isinstance(base, Class)]
            owners += [(base.declaration.symbol, made) for base in bases for made in ("__init__", "__new__")]
        if any(place in self.extensions or self._is_mocked(usage, place) for place in owners):
            return True
        if verdict.status != "broken" or self._drift(usage):
            return False
        return symbol in self.named or verdict.symbol in self.named or self._is_class_replaced(owner)

    def _is_inherited(self, callee: Type) -> bool:
        """True for a method that a class of the client's has from a base, which is what stood there at that time."""
        if not isinstance(callee, Function):
            return False
        receiver = callee.receiver.class_ if isinstance(callee.receiver, Instance) else callee.receiver
        return isinstance(receiver, Class) and not self.program.is_target(receiver.declaration.symbol)

    def _is_mocked(self, usage: CallUsage, place: tuple[str, str]) -> bool:
        """True where a test puts something in a place for as long as it runs, and this call is of the same test.

        For what never fitted, one of the same file is enough: fixtures do that.
        """
        scopes = self.mocked.get((usage.location.path, *place), ())
        if not self._drift(usage):
            return bool(scopes)
        return any(usage.scope == scope or usage.scope.startswith(f"{scope}.") for scope in scopes)

    def _is_class_replaced(self, symbol: str) -> bool:
        """True where the client puts something of its own in the place of a class of the target."""
        owner, _, name = symbol.rpartition(".")
        return (owner, name) in self.extensions

    def is_put_in_place(self, usage: ImportUsage) -> bool:
        """True where the client names the missing module in a string and puts modules under computed names in place."""
        return self.puts_modules_in_place and usage.module in self.named and not self._drift(usage)

    def doubt_of_call(self, usage: CallUsage, verdict: Verdict) -> str:
        """Why a call that a declared class refuses may fit all the same, "" where nothing says so."""
        if verdict.status != "broken" or self._drift(usage):
            return ""
        return "receiver that only names tell" if is_told_by_names(usage) else self.descendants.taking(usage, verdict)

    def call(self, usage: CallUsage, verdict: Verdict) -> list[Finding]:
        """The findings for a call that does not bind, or that binds to something else than in the baseline."""
        callee = verdict.callee
        if callee is None:
            # What the target inherits from another library: the name is there, and that is all that can be asked.
            return []
        assert verdict.arguments is not None
        earlier = self.earlier(usage)
        before = earlier.signature if earlier is not None else None
        drift = self._drift(usage)
        guard = guard_against(usage.guards, _raised_by(callee))
        if verdict.is_partial and not drift:
            return []
        if usage.is_typing_only or (guard is not None and (guard.falls_back or not guard.caught & _BROAD)):
            return []
        problems = list(verdict.problems)
        if not problems and before is not None and earlier is not None and earlier.status == "fits":
            for question in (positional_shift, swallowed_keyword, sentinel_none):
                problems += question(before, callee.signature, verdict.arguments)
        if before is not None:
            problems = _without_consequences(problems, before, callee)
        findings: list[Finding] = []
        for problem in problems:
            findings.append(self._call_finding(usage, verdict, callee, problem, earlier, drift, guard))
        return findings

    def _call_finding(
        self,
        usage: CallUsage,
        verdict: Verdict,
        callee: Callee,
        problem: BindingProblem,
        earlier: Earlier | None,
        drift: bool | None,
        guard: Guard | None,
    ) -> Finding:
        raises = expected_exception(problem, callee)
        certainty = problem.certainty
        said = problem.message
        is_dropped = raises is None and callee.drops_keywords and problem.kind is Kind.UNKNOWN_ARGUMENT
        if is_dropped:
            said, certainty = f"{problem.message.partition(';')[0]}; {callee.name} drops it", Certainty.CERTAIN
        if drift is False and earlier is not None and earlier.status == "broken":
            # Of several things wrong with a call each may be new or old.
            had = {(old.kind, old.parameter) for old in earlier.problems}
            drift = (problem.kind, problem.parameter) not in had
        if raises is None:
            drift = True
            is_silent = is_dropped or problem.kind is Kind.POSITIONAL_SHIFT
            severity = Severity.SILENT if is_silent else Severity.WARNING
            if certainty is Certainty.POSSIBLE:
                severity = Severity.WARNING
        else:
            severity = Severity.ERROR
            if not drift and not verdict.is_certain:
                severity, certainty = Severity.WARNING, Certainty.POSSIBLE
            if verdict.is_partial:
                severity, certainty = Severity.WARNING, Certainty.POSSIBLE
            if (verdict.is_wrapped or is_told_by_names(usage)) and certainty is Certainty.CERTAIN:
                certainty = Certainty.LIKELY
        if usage.is_type_ignored and severity.rank > Severity.WARNING.rank and not drift:
            severity, certainty = Severity.WARNING, Certainty.POSSIBLE
        before = earlier.signature if earlier is not None else None
        message = f"{callee.name.removesuffix('.__init__')}(): {said}{_keyword_only(problem, before, callee)}"
        if guard is not None and not guard.reraises and severity is Severity.ERROR:
            severity, raises = Severity.SILENT, None
            message += f"; the handler of line {guard.line} hides it"
        location = problem.argument.location if problem.argument and problem.argument.location else usage.location
        evidence = Evidence(
            callee.path,
            callee.line,
            f"{callee.name}{callee.signature}",
            f"{callee.name}{before}" if before else None,
            verdict.confirmed_by,
        )
        return Finding(
            problem.kind,
            severity,
            certainty,
            location,
            callee.symbol,
            message,
            problem.parameter,
            raises,
            drift,
            evidence,
            fix=self.fixes.of_call(usage, problem, callee, before),
            scope=usage.scope,
            call=usage.location,
        )

    # Results, variables, sorts of things

    def other(
        self, usage: ReturnUsage | EnvironmentUsage | StringUsage | ReferenceUsage, verdict: Verdict
    ) -> list[Finding]:
        """The findings for a result, a variable or a class that was right for its use at the baseline and isn't now."""
        earlier = self.earlier(usage)
        if usage.is_typing_only:
            return []
        if earlier is None or earlier.status != "fits":
            return self._lasting(usage, verdict, earlier)
        if isinstance(usage, ReferenceUsage):
            change = reference_change(earlier.form, verdict.form, usage.role)
            return [self._changed(usage, verdict, change)] if change is not None else []
        if verdict.status != "broken":
            return []
        if isinstance(usage, EnvironmentUsage):
            message = f"{usage.name} is no variable of this release, which ignores it"
            return [self._plain(usage, Kind.UNKNOWN_ENVIRONMENT_VARIABLE, Severity.WARNING, verdict, message, None)]
        if isinstance(usage, StringUsage):
            return [self._string(usage, verdict)]
        return self._returned(usage, verdict)

    def _lasting(
        self,
        usage: ReturnUsage | EnvironmentUsage | StringUsage | ReferenceUsage,
        verdict: Verdict,
        earlier: Earlier | None,
    ) -> list[Finding]:
        """What is found whatever the baseline says: strings that lead nowhere, variables that are only set."""
        if verdict.status != "broken":
            return []
        drift = False if earlier is not None and earlier.status == "broken" else None
        if isinstance(usage, EnvironmentUsage) and usage.is_set and usage.name not in self.variables_read:
            message = f"{usage.name} is no variable of this release, and nothing here reads it"
            finding = self._plain(usage, Kind.UNKNOWN_ENVIRONMENT_VARIABLE, Severity.NOTE, verdict, message, None)
            return [replace(finding, drift=drift, certainty=Certainty.POSSIBLE)]
        if isinstance(usage, StringUsage) and usage.role == "path" and verdict.absent is not None:
            owner = verdict.absent.owner
            if owner.count(".") and self.program.has_module(owner):
                finding = self._string(usage, verdict)
                return [replace(finding, severity=Severity.WARNING, drift=drift, certainty=Certainty.POSSIBLE)]
        return []

    def _string(self, usage: StringUsage, verdict: Verdict) -> Finding:
        if usage.role == "method":
            message = f"no worker has a method {usage.text}"
            raises: str | None = f"AttributeError: no attribute '{usage.text}'"
        else:
            absent = verdict.absent
            missing = f"{absent.owner}.{absent.name}" if absent is not None else usage.text
            message = f"{usage.text} leads nowhere" + (f": {missing} is gone" if missing != usage.text else "")
            home = self.relocation.home(absent.owner, absent.name) if absent is not None else None
            message += f"; {home.name} is in {home.module}" if home is not None else ""
            raises = "ImportError when it is resolved"
        severity = Severity.NOTE if usage.role == "logger" else Severity.ERROR
        if severity is Severity.NOTE:
            raises = None
        finding = self._plain(usage, Kind.UNRESOLVED_STRING, severity, verdict, message, raises)
        finding = replace(finding, fix=self.fixes.of_string(usage))
        return replace(finding, certainty=Certainty.LIKELY if severity is Severity.ERROR else Certainty.CERTAIN)

    def _returned(self, usage: ReturnUsage, verdict: Verdict) -> list[Finding]:
        name = verdict.callee.name if verdict.callee is not None else "call"
        is_none = verdict.reason == "it may be None"
        raises = {
            "unpack": "ValueError: the number of values to unpack has changed",
            "subscript": "TypeError: object is not subscriptable",
            "iterate": "TypeError: object is not iterable",
            "enter": "TypeError: object does not support the context manager protocol",
            "attribute": f"AttributeError: 'NoneType' object has no attribute '{usage.name}'",
        }[usage.use]
        guard = guard_against(usage.guards, frozenset((raises.partition(":")[0], "Exception", "BaseException")))
        if guard is not None and (guard.falls_back or not guard.caught & _BROAD):
            return []
        severity = Severity.WARNING if is_none or usage.is_type_ignored else Severity.ERROR
        message = f"{name}(): {verdict.reason}"
        found = self._plain(usage, Kind.RETURN_CHANGED, severity, verdict, message, raises)
        return [replace(found, fix=self.fixes.of_unpacking(usage))]

    def changed(self, usage: AttributeUsage | CallUsage | ImportUsage, verdict: Verdict) -> list[Finding]:
        """The findings for a name that is there, but is another sort of thing than in the baseline, or deprecated."""
        earlier = self.earlier(usage)
        deprecated = self._deprecated(usage, verdict)
        if earlier is None or earlier.status != "fits" or usage.is_typing_only:
            return deprecated
        change: KindChange | None = None
        if isinstance(usage, AttributeUsage):
            if not usage.is_probed and not usage.is_protocol:
                change = attribute_change(earlier.form, verdict.form, usage.result, is_called=usage.is_called)
        elif (
            isinstance(usage, CallUsage)
            and earlier.signature is not None
            and verdict.callee is not None
            and not verdict.is_partial
        ):
            change = call_change(
                earlier.is_async,
                is_async(verdict.callee.declaration),
                is_awaited=usage.is_awaited,
                is_discarded=usage.is_discarded,
            )
        return [*deprecated, *([self._changed(usage, verdict, change)] if change is not None else [])]

    def _deprecated(self, usage: Usage, verdict: Verdict) -> list[Finding]:
        """The note on a thing that still answers, and what the target says about its end."""
        if verdict.deprecation is None:
            return []
        release = ending_release(verdict.deprecation)
        said = " ".join(verdict.deprecation.split())
        message = f"{verdict.symbol.rpartition('.')[2]} is deprecated"
        message += f" and goes in {release}" if release is not None else ""
        message += f': "{said}"' if said else ""
        earlier = self.earlier(usage)
        finding = self._plain(usage, Kind.DEPRECATED_USAGE, Severity.NOTE, verdict, message, None)
        drift = None if self.baseline is None or earlier is None else earlier.deprecation is None
        return [replace(finding, drift=drift, certainty=Certainty.CERTAIN)]

    def _changed(self, usage: Usage, verdict: Verdict, change: KindChange) -> Finding:
        name = verdict.symbol.rpartition(".")[2]
        message = f"{name} {change.message}"
        finding = self._plain(usage, Kind.KIND_CHANGED, change.severity, verdict, message, change.raises)
        return replace(finding, certainty=change.certainty)

    def _plain(
        self, usage: Usage, kind: Kind, severity: Severity, verdict: Verdict, message: str, raises: str | None
    ) -> Finding:
        """A finding that exists because the baseline answered otherwise."""
        callee = verdict.callee
        evidence = (
            Evidence(callee.path, callee.line, f"{callee.name}{callee.signature}") if callee is not None else None
        )
        if evidence is None:
            owner, _, name = verdict.symbol.rpartition(".")
            evidence = Evidence(*self._definition(owner, name))
        location = _attribute_location(usage) if isinstance(usage, AttributeUsage) else usage.location
        certainty = _surest(usage) if severity.rank > Severity.WARNING.rank else Certainty.POSSIBLE
        return Finding(
            kind,
            severity,
            certainty,
            location,
            verdict.symbol,
            message,
            None,
            raises,
            True,
            evidence,
            scope=usage.scope,
        )

    def _definition(self, owner: str, name: str) -> tuple[str | None, int | None]:
        """Where a name of a module or class is defined, else where it would have to be."""
        found = self.program.imported_name(owner, name) if self.program.has_module(owner) else None
        if isinstance(found, Class | Function):
            return found.declaration.module.path, found.declaration.line
        return self._place(Absent(owner, name))

    # Evidence

    def _finding(
        self,
        usage: Usage,
        kind: Kind,
        severity: Severity,
        certainty: Certainty,
        symbol: str,
        message: str,
        raises: str | None,
        drift: bool | None,
        absent: Absent,
        confirmed_by: str | None = None,
    ) -> Finding:
        path, line = self._place(absent)
        location = usage.location
        if isinstance(usage, AttributeUsage):
            location = _attribute_location(usage)
        elif isinstance(usage, ImportUsage) and kind is Kind.UNRESOLVED_MODULE and usage.name is not None:
            location = location_of(usage.place.module, usage.reported)
        return Finding(
            kind,
            severity,
            certainty,
            location,
            symbol,
            message,
            None,
            raises,
            drift,
            Evidence(path, line, confirmed_by=confirmed_by),
            scope=usage.scope,
        )

    def _place(self, absent: Absent) -> tuple[str | None, int | None]:
        """Where in the target's source the missing thing would have to stand."""
        if absent.is_module or self.program.has_module(absent.owner):
            name = absent.owner
            while name:
                module = self.program.module(name)
                if module is not None:
                    return module.path, 1
                name = name.rpartition(".")[0]
            return None, None
        module_name, _, rest = absent.owner.rpartition(".")
        while module_name and not self.program.has_module(module_name):
            module_name, _, first = module_name.rpartition(".")
            rest = f"{first}.{rest}"
        module = self.program.module(module_name)
        if module is None:
            return None, None
        for binding in module.names.get(rest.partition(".")[0], ()):
            if binding.class_ is not None:
                return module.path, binding.line
        return module.path, 1


def _without_consequences(problems: list[BindingProblem], before: Signature, callee: Callee) -> list[BindingProblem]:
    """The problems without the missing argument that an unknown one has merely been renamed to."""
    renamed = counterparts(before, callee.signature)
    unknown = [problem.parameter for problem in problems if problem.kind is Kind.UNKNOWN_ARGUMENT]
    successors = {renamed[name] for name in unknown if name is not None and name in renamed}
    return [
        problem
        for problem in problems
        if not (problem.kind is Kind.MISSING_ARGUMENT and problem.parameter in successors)
    ]


def _keyword_only(problem: BindingProblem, before: Signature | None, callee: Callee) -> str:
    """Which parameters take no position any more, in words, for a call with too many positional arguments."""
    if problem.kind is not Kind.TOO_MANY_POSITIONAL_ARGUMENTS or before is None:
        return ""
    names = [
        f"'{parameter.name}'"
        for parameter in callee.signature.parameters
        if parameter.kind is ParameterKind.KEYWORD_ONLY
        and (old := before.parameter(parameter.name)) is not None
        and old.kind is ParameterKind.POSITIONAL_OR_KEYWORD
    ]
    return f"; {', '.join(names)} can only be given by keyword" if names else ""


def is_told_by_names(usage: Usage) -> bool:
    """True where nothing but the names of attributes tells of which class a receiver is."""
    receivers: tuple[Type | None, ...] = ()
    if isinstance(usage, AttributeUsage):
        receivers = members_of(usage.receiver)
    elif isinstance(usage, CallUsage | ReturnUsage):
        receivers = tuple(member.receiver for member in members_of(usage.callee) if isinstance(member, Function))
    return any(isinstance(receiver, Instance) and receiver.by_names for receiver in receivers)


def _surest(usage: Usage) -> Certainty:
    """How sure a finding for a usage can be at most."""
    return Certainty.LIKELY if is_told_by_names(usage) else Certainty.CERTAIN


def guard_against(guards: tuple[Guard, ...], errors: frozenset[str]) -> Guard | None:
    """The innermost guard that catches one of these errors."""
    for guard in reversed(guards):
        if guard.caught & errors:
            return guard
    return None


def _raised_by(callee: Callee) -> frozenset[str]:
    """What catches a call that does not bind."""
    # pydantic's own exception is a ValueError.
    names = ("ValidationError", "ValueError") if callee.raises == "ValidationError" else ("TypeError",)
    return _BROAD.union(names)


def _attribute_error(receiver: object, name: str) -> tuple[str, str]:
    if isinstance(receiver, Module):
        return f"module {receiver.name}", f"AttributeError: module '{receiver.name}' has no attribute '{name}'"
    if isinstance(receiver, Instance) and isinstance(receiver.class_, Class):
        class_ = receiver.class_.declaration.name
        return class_, f"AttributeError: '{class_}' object has no attribute '{name}'"
    if isinstance(receiver, Class):
        class_ = receiver.declaration.name
        return f"class {class_}", f"AttributeError: type object '{class_}' has no attribute '{name}'"
    if isinstance(receiver, Super):
        class_ = receiver.class_.declaration.name
        return f"super() of {class_}", f"AttributeError: 'super' object has no attribute '{name}'"
    return "object", f"AttributeError: no attribute '{name}'"


def _attribute_location(usage: AttributeUsage) -> Location:
    """The place of the attribute's name alone, which is on the last line of a chain."""
    place = usage.location
    if usage.is_probed or usage.is_protocol:
        return place
    return Location(
        place.path, place.end_line, max(1, place.end_column - len(usage.name)), place.end_line, place.end_column
    )
