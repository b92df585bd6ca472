"""The value objects that every part of driftcheck exchanges: plain, frozen data without behaviour of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal


class Severity(str, Enum):
    """How bad a finding is; `rank` orders them, the worst highest."""

    ERROR = "error"
    SILENT = "silent"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """3 for error, 2 for silent, 1 for warning, 0 for note."""
        return {"error": 3, "silent": 2, "warning": 1, "note": 0}[self.value]


class Certainty(str, Enum):
    """How sure the audit is; only what is `certain` or `likely` may be an error."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Kind(str, Enum):
    """The closed list of kinds of finding."""

    UNRESOLVED_MODULE = "unresolved-module"
    UNRESOLVED_SYMBOL = "unresolved-symbol"
    UNRESOLVED_ATTRIBUTE = "unresolved-attribute"
    UNKNOWN_ARGUMENT = "unknown-argument"
    MISSING_ARGUMENT = "missing-argument"
    TOO_MANY_POSITIONAL_ARGUMENTS = "too-many-positional-arguments"
    PARAMETER_ALREADY_ASSIGNED = "parameter-already-assigned"
    POSITIONAL_ONLY_ARGUMENT = "positional-only-argument"
    POSITIONAL_SHIFT = "positional-shift"
    SENTINEL_NONE = "sentinel-none"
    KIND_CHANGED = "kind-changed"
    RETURN_CHANGED = "return-changed"
    INVALID_OVERRIDE = "invalid-override"
    DEAD_OVERRIDE = "dead-override"
    MISSING_ABSTRACT_METHOD = "missing-abstract-method"
    UNRESOLVED_BASE = "unresolved-base"
    NAME_COLLISION = "name-collision"
    SKIPPED_INIT = "skipped-init"
    INVALID_PATCH = "invalid-patch"
    DEAD_PATCH = "dead-patch"
    UNRESOLVED_STRING = "unresolved-string"
    UNKNOWN_ENVIRONMENT_VARIABLE = "unknown-environment-variable"
    BROKEN_CONTRACT = "broken-contract"
    SILENT_FALLBACK = "silent-fallback"
    DEPRECATED_USAGE = "deprecated-usage"
    DEFAULT_CHANGED = "default-changed"
    PRIVATE_USAGE = "private-usage"
    DEAD_GUARD = "dead-guard"


class ParameterKind(str, Enum):
    """The five kinds of parameter, named as in `inspect`."""

    POSITIONAL_ONLY = "positional-only"
    POSITIONAL_OR_KEYWORD = "positional-or-keyword"
    VAR_POSITIONAL = "var-positional"
    KEYWORD_ONLY = "keyword-only"
    VAR_KEYWORD = "var-keyword"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `default` is source text (or a repr at run time) and None where there is no default."""

    name: str
    kind: ParameterKind = ParameterKind.POSITIONAL_OR_KEYWORD
    default: str | None = None
    annotation: str | None = None

    @property
    def is_variadic(self) -> bool:
        """True for `*args` and `**kwargs`."""
        return self.kind in (ParameterKind.VAR_POSITIONAL, ParameterKind.VAR_KEYWORD)

    @property
    def is_required(self) -> bool:
        """True where a call must supply the parameter."""
        return self.default is None and not self.is_variadic

    def __str__(self) -> str:
        star = {ParameterKind.VAR_POSITIONAL: "*", ParameterKind.VAR_KEYWORD: "**"}.get(self.kind, "")
        text = star + self.name
        if self.annotation is not None:
            text += f": {self.annotation}"
        if self.default is not None:
            text += f" = {self.default}" if self.annotation is not None else f"={self.default}"
        return text


@dataclass(frozen=True, slots=True)
class Signature:
    """What a callable accepts, without the receiver (`self`, `cls`) of a bound one."""

    parameters: tuple[Parameter, ...] = ()
    returns: str | None = None

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def __str__(self) -> str:
        parts: list[str] = []
        kinds = [parameter.kind for parameter in self.parameters]
        for index, parameter in enumerate(self.parameters):
            before = kinds[index - 1] if index else None
            if before is ParameterKind.POSITIONAL_ONLY and parameter.kind is not before:
                parts.append("/")
            if parameter.kind is ParameterKind.KEYWORD_ONLY and before not in (
                ParameterKind.KEYWORD_ONLY,
                ParameterKind.VAR_POSITIONAL,
            ):
                parts.append("*")
            parts.append(str(parameter))
        if kinds and kinds[-1] is ParameterKind.POSITIONAL_ONLY:
            parts.append("/")
        returns = f" -> {self.returns}" if self.returns is not None else ""
        return f"({', '.join(parts)}){returns}"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A stretch of a file: lines and columns count from 1, columns in characters, the end column is exclusive.

    `path` is POSIX and relative to the root of the tree that holds the file, never absolute.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0

    @property
    def place(self) -> str:
        """The file and the line, as editors take them."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, as written.

    `keyword` is None for a positional one; `unpacked` marks `*values` and `**values`, which stand for any number.
    `value` is source text.
    """

    value: str
    keyword: str | None = None
    unpacked: bool = False
    is_none: bool = False
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call: positional ones in order, then keywords in order."""

    positional: tuple[Argument, ...] = ()
    keywords: tuple[Argument, ...] = ()

    @property
    def is_open(self) -> bool:
        """True where an unpacked argument hides how many or which arguments there are."""
        return any(argument.unpacked for argument in self.positional + self.keywords)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What proves a finding: a place in the target's own sources, and the signatures that disagree or the line itself.

    `source` is the line as it stands there, where it proves more than a signature.
    `confirmed_by` is "inspect.signature" where the target's interpreter said the same, else None.
    """

    path: str | None = None
    line: int | None = None
    signature: str | None = None
    baseline_signature: str | None = None
    confirmed_by: str | None = None
    source: str | None = None


Applicability = Literal["safe", "unsafe", "manual"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """One step of a fix: the recipe of that name at a place in the client's code, with the recipe's parameters."""

    recipe: str
    location: Location
    parameters: tuple[tuple[str, str], ...] = ()

    def parameter(self, name: str) -> str | None:
        """What the recipe is given under that name, None where it is not given it."""
        return dict(self.parameters).get(name)


@dataclass(frozen=True, slots=True)
class Fix:
    """What would repair a finding, in a sentence, how far it can be trusted, and the edits that it comes to.

    Without edits it is for a person to do. `portable` are the edits to make instead where older releases have to go on
    working; where there are none, those of `edits` are guarded.
    """

    applicability: Applicability
    description: str
    edits: tuple[Edit, ...] = ()
    portable: tuple[Edit, ...] = ()


Identity = tuple[str, str, int, str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One incompatibility of the client with the target.

    `symbol` is the canonical dotted path in the target; `raises` the exception to expect, None for what stays silent.
    `drift` is True where the baseline answers well, False where it is as broken, None without a baseline.
    `scope` is the qualified name of the function or class that holds the place ("" at module level), `snippet` the
    source line without its indentation: together with kind, path and symbol they make the fingerprint. `call` is the
    place of the call at fault, where `location` is one of its arguments.
    """

    kind: Kind
    severity: Severity
    certainty: Certainty
    location: Location
    symbol: str
    message: str
    parameter: str | None = None
    raises: str | None = None
    drift: bool | None = None
    evidence: Evidence = field(default_factory=Evidence)
    rule: str | None = None
    fix: Fix | None = None
    scope: str = ""
    snippet: str = ""
    fingerprint: str = ""
    call: Location | None = None

    @property
    def identity(self) -> Identity:
        """What makes it the same finding with another release: the place in the client and what it is about there."""
        name = self.symbol.rpartition(".")[2]
        return self.kind.value, self.location.path, self.location.line, name, self.parameter or ""

    @property
    def is_severe(self) -> bool:
        """True where it is silent or worse: what fails an audit where nothing else is asked for."""
        return self.severity.rank >= Severity.SILENT.rank

    def is_break(self, least: Severity = Severity.SILENT) -> bool:
        """True where it is this bad or worse, and not the same with the baseline."""
        return self.severity.rank >= least.rank and self.drift is not False


@dataclass(frozen=True, slots=True, order=True)
class Unresolved:
    """A usage that could not be judged, and why."""

    path: str
    line: int
    reason: str
    usage: str = "call"


@dataclass(frozen=True, slots=True, order=True)
class Skipped:
    """A client file that could not be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Count:
    """How many usages of one sort were judged, and how many could not be."""

    checked: int = 0
    unresolved: int = 0


@dataclass(frozen=True, slots=True)
class UsageCounts:
    """The counts by sort of usage."""

    imports: Count = Count()
    calls: Count = Count()
    attributes: Count = Count()
    overrides: Count = Count()
    patches: Count = Count()
    strings: Count = Count()


@dataclass(frozen=True, slots=True)
class ClientSummary:
    """Which client was audited; `origin` says in words where it came from, without an absolute path."""

    name: str
    version: str | None
    origin: str
    files: int
    files_using_target: int
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """Which target or baseline was held against the client; `chosen` says why this one, where nobody named it."""

    name: str
    version: str | None
    origin: str
    chosen: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class Suppression:
    """A comment in the client's code that says which findings don't count: `# driftcheck: ignore[kind] reason`.

    `line` is the comment's own; it holds for the lines from `first` to `last`, those of the statement beside or below
    it. `names` are kinds or rules. `fault` says why it can't be followed, None for one that can.
    """

    path: str
    line: int
    first: int
    last: int
    names: tuple[str, ...]
    reason: str
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that is reported and doesn't count: known from before, or suppressed in the source for a reason."""

    finding: Finding
    how: Literal["known", "suppressed"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Lines of a file that a fix replaces by a text: from `first` up to `end`, which is no longer one of them."""

    path: str
    first: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an audit, sorted: the same input gives the same report.

    `sources` holds the client lines that reports quote, keyed by (path, line), `reasons` what each rule that a finding
    names says of why, keyed by the rule. `bound` are the places, as (path, line), of calls that the target's
    interpreter has bound to what they call. `suppressions` are the client's comments on findings; `accepted` are the
    findings that were taken out of `findings` since they don't count.
    """

    client: ClientSummary
    target: TargetSummary
    baseline: TargetSummary | None
    usages: UsageCounts
    findings: tuple[Finding, ...]
    unresolved: tuple[Unresolved, ...] = ()
    notices: tuple[str, ...] = ()
    sources: tuple[tuple[str, int, str], ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()
    bound: tuple[tuple[str, int], ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    accepted: tuple[Accepted, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvironmentEntry:
    """One installed distribution that uses the target: what it requires of it, and whether it fits.

    `is_met` is None where it requires nothing of it; `fault` says why it could not be checked, `report` is then None.
    """

    name: str
    version: str | None
    requires: tuple[str, ...]
    is_met: bool | None
    report: Report | None
    is_failed: bool
    fault: str | None = None


FixStatus = Literal["proved", "unproved", "unsafe", "person"]


@dataclass(frozen=True, slots=True)
class FixedFinding:
    """What `fix` made of one finding: repaired and proved so, repaired without proof, left out, or left to a person.

    `note` says how it is proved, why it is not, or what has to be decided. `fix` is what was done, or could be.
    """

    finding: Finding
    status: FixStatus
    note: str


@dataclass(frozen=True, slots=True)
class LeftFinding:
    """What is found after a repair, with which release, and on which line the file had it before its edits."""

    release: str
    finding: Finding
    line_before: int


@dataclass(frozen=True, slots=True)
class Repair:
    """What `fix` comes to: the findings and what became of them, and what is found afterwards.

    `releases` are the ones that the edited client was held against; `left` what is then still found.
    """

    client: ClientSummary
    target: TargetSummary
    findings: tuple[FixedFinding, ...]
    releases: tuple[str, ...]
    left: tuple[LeftFinding, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseVerdict:
    """What one release says of a client.

    `breaks` are the findings that are silent or worse and that the baseline, or another of the releases, is without.
    `everywhere` are the errors that the baseline and all of the releases have, `others` is how many findings there are
    besides. `is_allowed` says whether the client's metadata allow the release, None where they name none. `fault` says
    why the release could not be read.
    """

    version: str
    breaks: tuple[Finding, ...] = ()
    everywhere: tuple[Finding, ...] = ()
    others: int = 0
    is_allowed: bool | None = None
    fault: str | None = None

    @property
    def fits(self) -> bool:
        """True where the release was read and nothing is wrong with it."""
        return self.is_unbroken and not self.everywhere

    @property
    def is_unbroken(self) -> bool:
        """True where the release was read and nothing is wrong with it but what is wrong with all of them."""
        return self.fault is None and not self.breaks

    @property
    def is_misfit(self) -> bool:
        """True where the release was read and something is wrong with it."""
        return self.fault is None and not self.fits


@dataclass(frozen=True, slots=True)
class Matrix:
    """One client on many releases of the target, the oldest first.

    `requirement` is what the client's metadata ask for. `fitting` are the ranges that fit, each by its first and last
    release; `bound` is the requirement that says the one around the baseline, None where nothing fits. Where that is
    for nothing but what all releases have, `best` and `best_bound` are the same of those with which nothing else
    breaks, if others are worse.
    """

    client: ClientSummary
    target: str
    baseline: TargetSummary | None
    requirement: str | None
    releases: tuple[ReleaseVerdict, ...]
    fitting: tuple[tuple[str, str], ...]
    bound: str | None
    best: tuple[tuple[str, str], ...] = ()
    best_bound: str | None = None
    notices: tuple[str, ...] = ()

    @property
    def too_wide(self) -> tuple[ReleaseVerdict, ...]:
        """The releases that the metadata allow and that do not fit."""
        return tuple(release for release in self.releases if release.is_allowed and release.is_misfit)

    @property
    def too_narrow(self) -> tuple[ReleaseVerdict, ...]:
        """The releases that fit and the metadata do not allow."""
        return tuple(release for release in self.releases if release.is_allowed is False and release.fits)

    @property
    def is_promise_kept(self) -> bool:
        """True where a release fits that the metadata allow, and none that they allow is a misfit.

        Metadata that ask for no release allow all of them, and promise that one of them fits.
        """
        if self.requirement is None:
            return bool(self.fitting)
        return any(release.is_allowed and release.fits for release in self.releases) and not self.too_wide
