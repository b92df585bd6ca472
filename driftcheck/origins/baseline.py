"""Which release of the target a client was written for, told by what its metadata says and when it came out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from driftcheck.origins.folders import FolderTree
from driftcheck.origins.git import GitTree
from driftcheck.origins.installed import InstalledTree
from driftcheck.origins.names import normalized, parsed_version
from driftcheck.origins.offers import Offer, offers
from driftcheck.origins.releases import UnknownProject
from driftcheck.origins.settings import Settings

if TYPE_CHECKING:
    from packaging.requirements import Requirement as _Parsed
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    from driftcheck.tree import SourceTree

_MACHINE = {
    "implementation_name": "cpython",
    "implementation_version": "3.12.0",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.12.0",
    "python_version": "3.12",
    "sys_platform": "linux",
}
"""Markers are judged for this machine whatever machine runs: the same client has the same baseline everywhere."""

_NAMESAKE_DAYS = 120
# Python refuses to read numbers of thousands of digits, and packaging reads them only when they are compared.
_LONGEST_VERSION = 100


@dataclass(frozen=True, slots=True)
class _Demand:
    """What one requirement asks of the target; `extra` is "" where no extra has to be asked for."""

    text: str
    extra: str
    specifier: SpecifierSet
    pin: Version | None


@dataclass(frozen=True, slots=True)
class _Day:
    """When the client was written, None where nothing tells, and what happened to it then."""

    day: date | None
    words: str


def baseline_specification(
    tree: SourceTree, target_name: str, *, held_against: str | None = None, settings: Settings | None = None
) -> tuple[str, str] | None:
    """The release of the target that the client was written for (such as "vllm==0.11.0"), and why that one, in words.

    A pin in the requirements wins, extras included; then a range (its upper bound, else the newest release in it that
    was out when the client was uploaded); then a version that is the target's own, as plugins have it; then the
    newest release when the client was uploaded. None where none of these says anything. Of the range of a client that
    was never uploaded the oldest release is taken where the one it is held against is older than what would be taken
    else. Raises DriftcheckError where the index is needed and can't be reached.
    """
    settings = settings or Settings()
    client = f"{tree.name} {tree.version}" if tree.version else tree.name
    demands = list(_demands(tree.requirements, target_name))
    pinned = [demand for demand in demands if demand.pin is not None]
    if pinned:
        plain = [demand for demand in pinned if not demand.extra] or pinned
        best = max(plain, key=lambda demand: (demand.pin, demand.text))
        return f"{target_name}=={best.pin}", f"{client} requires {best.text}"

    day = _day(tree, settings)
    known = _offered(_offers(target_name, settings, known_on=min(day.day or _yesterday(), _yesterday())))
    ranged = [demand for demand in demands if str(demand.specifier)]
    if ranged:
        demand = next((demand for demand in ranged if not demand.extra), ranged[0])
        found = _in_range(demand, known, day, client, target_name)
        # What has been released is known to have worked then; a working copy promises what its metadata say.
        held = parsed_version(held_against or "") if tree.uploaded is None else None
        return found if found is None or held is None else _within(found, demand, known, held, client, target_name)
    return _namesake(tree, known, day.day, client, target_name) or _contemporary(known, day, client, target_name)


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a client's metadata ask of the target, in words, and which releases that allows."""

    text: str
    specifier: SpecifierSet

    def allows(self, version: str) -> bool:
        """True for a release that an installer would take."""
        return self.specifier.contains(version, prereleases=True)

    @property
    def has_lower_bound(self) -> bool:
        """True where old releases are ruled out."""
        return any(each.operator in ("==", "===", "~=", ">", ">=") for each in self.specifier)


def requirement_of(tree: SourceTree, target_name: str) -> Requirement | None:
    """The requirement that names the target, one without an extra first; None where none says which releases."""
    demands = [demand for demand in _demands(tree.requirements, target_name) if str(demand.specifier)]
    demand = next((demand for demand in demands if not demand.extra), demands[0] if demands else None)
    return Requirement(demand.text, demand.specifier) if demand is not None else None


def _demands(requirements: Sequence[str], target_name: str) -> Iterator[_Demand]:
    """The requirements that name the target and hold on the machine that counts."""
    from packaging.requirements import Requirement as Parsed

    wanted = normalized(target_name)
    for text in requirements:
        if normalized(re.split(r"[^A-Za-z0-9._-]", text.strip(), maxsplit=1)[0]) != wanted:
            continue
        try:
            requirement = Parsed(text)
            extra = _extra(requirement)
        except (ValueError, RecursionError):
            # No requirement, or a marker that compares what can't be compared.
            continue
        if extra is None or any(len(specifier.version) > _LONGEST_VERSION for specifier in requirement.specifier):
            continue
        shown = f"{requirement.name}{requirement.specifier or ''}" if requirement.url is None else requirement.name
        if extra:
            shown += f" in its extra {extra}"
        yield _Demand(shown, extra, requirement.specifier, _pin(requirement))


def _extra(requirement: _Parsed) -> str | None:
    """The extra that brings the requirement, "" where none is needed, None where it doesn't hold at all."""
    marker = requirement.marker
    if marker is None:
        return ""
    named: list[str] = sorted(set(re.findall(r"""extra\s*==\s*["']([A-Za-z0-9._-]+)["']""", str(marker))))
    for extra in ("", *named):
        if marker.evaluate({**_MACHINE, "extra": extra}):
            return extra
    return None


def _pin(requirement: _Parsed) -> Version | None:
    """The one version that the requirement allows, without a local part, which the index doesn't have."""
    texts = [
        specifier.version
        for specifier in requirement.specifier
        if specifier.operator in ("==", "===") and not specifier.version.endswith(".*")
    ]
    if requirement.url is not None:
        texts = re.findall(rf"{re.escape(requirement.name)}-(\d[A-Za-z0-9.+!]*)-", requirement.url)
        texts += re.findall(r"@v?(\d[0-9a-z.]*)", requirement.url)
    versions = [version for text in texts if (version := parsed_version(text)) is not None]
    return parsed_version(versions[0].public) if versions else None


def _in_range(
    demand: _Demand, known: Sequence[tuple[Version, Offer]], written: _Day, client: str, target: str
) -> tuple[str, str] | None:
    from packaging.version import Version

    bounds = [Version(specifier.version) for specifier in demand.specifier if specifier.operator == "<="]
    # Said outright, since packaging's releases differ in what they do with prereleases when nothing is said.
    prereleases = bool(demand.specifier.prereleases)
    allowed = [pair for pair in known if demand.specifier.contains(pair[0], prereleases=prereleases)]
    for version, _ in allowed:
        if version in bounds:
            return f"{target}=={version}", f"{client} requires {demand.text}, and this is the newest it allows"
    by_then = _by_then(allowed, written)
    if by_then:
        reason = f"{client} requires {demand.text}, and this is the newest that was out when it was {written.words}"
        return f"{target}=={by_then[-1]}", reason
    if allowed:
        # Written before the target that it asks for, the client means the first one that it allows.
        version = allowed[0][0] if written.day and allowed[0][1].uploaded else allowed[-1][0]
        which = "first" if version is allowed[0][0] and len(allowed) > 1 else "newest"
        return f"{target}=={version}", f"{client} requires {demand.text}, and this is the {which} it allows"
    return None


def _within(
    found: tuple[str, str],
    demand: _Demand,
    known: Sequence[tuple[Version, Offer]],
    held: Version,
    client: str,
    target: str,
) -> tuple[str, str]:
    """The release found, or the oldest that is allowed where the one found is newer than what is held against."""
    chosen = parsed_version(found[0].partition("==")[2])
    prereleases = bool(demand.specifier.prereleases)
    allowed = [version for version, _ in known if demand.specifier.contains(version, prereleases=prereleases)]
    if chosen is None or chosen <= held or not allowed or allowed[0] > held:
        return found
    return f"{target}=={allowed[0]}", f"{client} requires {demand.text}, and this is the oldest it allows"


def _namesake(
    tree: SourceTree, known: Sequence[tuple[Version, Offer]], uploaded: date | None, client: str, target: str
) -> tuple[str, str] | None:
    """The release whose number the client bears, as plugins do: the same one, or for `target-…` the nearest below.

    Equal numbers by chance are told by the days: such releases lie far apart.
    """
    own = parsed_version(tree.version or "")
    if own is None or normalized(target) not in normalized(tree.name).split("-"):
        # A library that serves many others bears no one's number but its own.
        return None
    is_plugin = normalized(tree.name).startswith(f"{normalized(target)}-")
    series = [(version, offer) for version, offer in known if version.release[:2] == own.release[:2]]
    below = [(version, offer) for version, offer in series if version.release <= own.release]
    if not below or (not is_plugin and below[-1][0].release != own.release):
        return None
    version, offer = below[-1]
    if uploaded is None or offer.uploaded is None:
        is_near = is_plugin
    else:
        is_near = abs(uploaded - offer.uploaded) <= timedelta(_NAMESAKE_DAYS * (3 if is_plugin else 1))
    if not is_near:
        return None
    return f"{target}=={version}", f"{client} bears its number, and its metadata names no release of {target}"


def _contemporary(
    known: Sequence[tuple[Version, Offer]], written: _Day, client: str, target: str
) -> tuple[str, str] | None:
    by_then = _by_then([(version, offer) for version, offer in known if not version.is_prerelease], written)
    if not by_then:
        return None
    reason = f"the newest that was out when {client} was {written.words}, whose metadata names no release of {target}"
    return f"{target}=={by_then[-1]}", reason


def _by_then(known: Sequence[tuple[Version, Offer]], written: _Day) -> list[Version]:
    day = written.day
    return [version for version, offer in known if day and offer.uploaded and offer.uploaded <= day]


def _day(tree: SourceTree, settings: Settings) -> _Day:
    """When the client was written, as far as anything tells: its upload, else its last commit."""
    if tree.uploaded is not None:
        return _Day(tree.uploaded, "uploaded")
    if isinstance(tree, FolderTree | GitTree) and tree.committed is not None:
        return _Day(tree.committed, "last committed")
    # A folder's name need not be the index's business; what is installed came from there as a rule.
    return _Day(_upload_day(tree, settings) if isinstance(tree, InstalledTree) else None, "uploaded")


def _upload_day(tree: SourceTree, settings: Settings) -> date | None:
    """The day the client's release came to the index, for one that was found elsewhere."""
    version = parsed_version(tree.version or "")
    if version is None or version.is_devrelease or version.local is not None:
        return None
    # An answer that has the version serves however old it is; else one of today is needed.
    for known_on in (date.min, _yesterday()):
        for offer in _offers(tree.name, settings, known_on=known_on):
            if parsed_version(offer.version) == version:
                return offer.uploaded
    return None


def _yesterday() -> date:
    return datetime.now(timezone.utc).date() - timedelta(1)


def _offers(name: str, settings: Settings, *, known_on: date | None) -> tuple[Offer, ...]:
    try:
        return offers(name, settings, known_on=known_on)
    except UnknownProject:
        return ()


def _offered(known: Sequence[Offer]) -> list[tuple[Version, Offer]]:
    """The versions that can be chosen, oldest first: not yanked."""
    pairs = [(version, offer) for offer in known if not offer.yanked and (version := parsed_version(offer.version))]
    return sorted(pairs, key=lambda pair: pair[0])
