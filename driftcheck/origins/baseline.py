"""Which release of the target a client was written for, told by what its metadata says and when it came out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from driftcheck.origins.names import normalized, parsed_version
from driftcheck.origins.offers import Offer, offers
from driftcheck.origins.releases import UnknownProject
from driftcheck.origins.settings import Settings

if TYPE_CHECKING:
    from packaging.requirements import Requirement
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


@dataclass(frozen=True, slots=True)
class _Demand:
    """What one requirement asks of the target; `extra` is "" where no extra has to be asked for."""

    text: str
    extra: str
    specifier: SpecifierSet
    pin: Version | None


def baseline_specification(
    tree: SourceTree, target_name: str, *, settings: Settings | None = None
) -> tuple[str, str] | None:
    """The release of the target that the client was written for (such as "vllm==0.11.0"), and why that one, in words.

    A pin in the requirements wins, extras included; then a range (its upper bound, else the newest release in it that
    was out when the client was uploaded); then a version that is the target's own, as plugins have it; then the
    newest release when the client was uploaded. None where none of these says anything. Raises DriftcheckError where
    the index is needed and can't be reached.
    """
    settings = settings or Settings()
    client = f"{tree.name} {tree.version}" if tree.version else tree.name
    demands = list(_demands(tree.requirements, target_name))
    pinned = [demand for demand in demands if demand.pin is not None]
    if pinned:
        plain = [demand for demand in pinned if not demand.extra] or pinned
        best = max(plain, key=lambda demand: (demand.pin, demand.text))
        return f"{target_name}=={best.pin}", f"{client} requires {best.text}"

    uploaded = tree.uploaded or _upload_day(tree, settings)
    known = _final(_offers(target_name, settings, known_on=uploaded))
    ranged = [demand for demand in demands if str(demand.specifier)]
    if ranged:
        demand = next((demand for demand in ranged if not demand.extra), ranged[0])
        return _in_range(demand, known, uploaded, client, target_name)
    return _namesake(tree, known, uploaded, client, target_name) or _contemporary(known, uploaded, client, target_name)


def _demands(requirements: Sequence[str], target_name: str) -> Iterator[_Demand]:
    """The requirements that name the target and hold on the machine that counts."""
    from packaging.requirements import InvalidRequirement, Requirement

    wanted = normalized(target_name)
    for text in requirements:
        if normalized(re.split(r"[^A-Za-z0-9._-]", text.strip(), maxsplit=1)[0]) != wanted:
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        extra = _extra(requirement)
        if extra is None:
            continue
        shown = f"{requirement.name}{requirement.specifier or ''}" if requirement.url is None else requirement.name
        if extra:
            shown += f" in its extra {extra}"
        yield _Demand(shown, extra, requirement.specifier, _pin(requirement))


def _extra(requirement: Requirement) -> str | None:
    """The extra that brings the requirement, "" where none is needed, None where it doesn't hold at all."""
    marker = requirement.marker
    if marker is None:
        return ""
    named = sorted(set(re.findall(r"""extra\s*==\s*["']([^"']+)["']""", str(marker))))
    for extra in ("", *named):
        if marker.evaluate({**_MACHINE, "extra": extra}):
            return extra
    return None


def _pin(requirement: Requirement) -> Version | None:
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
    demand: _Demand, known: Sequence[tuple[Version, Offer]], uploaded: date | None, client: str, target: str
) -> tuple[str, str] | None:
    from packaging.version import Version

    bounds = [Version(specifier.version) for specifier in demand.specifier if specifier.operator == "<="]
    asks_for_prereleases = bool(demand.specifier.prereleases)
    allowed = [
        (version, offer)
        for version, offer in known
        if demand.specifier.contains(version, prereleases=asks_for_prereleases or None)
    ]
    for version, _ in allowed:
        if version in bounds:
            return f"{target}=={version}", f"{client} requires {demand.text}, and this is the newest it allows"
    by_then = [version for version, offer in allowed if uploaded and offer.uploaded and offer.uploaded <= uploaded]
    if by_then:
        reason = f"{client} requires {demand.text}, and this is the newest that was out when it was uploaded"
        return f"{target}=={by_then[-1]}", reason
    if allowed:
        # Released before the target it asks for, the client was written for the first one that it allows.
        version = allowed[0][0] if uploaded and allowed[0][1].uploaded else allowed[-1][0]
        which = "first" if version is allowed[0][0] and len(allowed) > 1 else "newest"
        return f"{target}=={version}", f"{client} requires {demand.text}, and this is the {which} it allows"
    return None


def _namesake(
    tree: SourceTree, known: Sequence[tuple[Version, Offer]], uploaded: date | None, client: str, target: str
) -> tuple[str, str] | None:
    """The release whose number the client bears, as plugins do: the same one, or for `target-…` the nearest below.

    Equal numbers by chance are told by the days: such releases lie far apart.
    """
    own = parsed_version(tree.version or "")
    if own is None:
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
    known: Sequence[tuple[Version, Offer]], uploaded: date | None, client: str, target: str
) -> tuple[str, str] | None:
    by_then = [version for version, offer in known if uploaded and offer.uploaded and offer.uploaded <= uploaded]
    if not by_then:
        return None
    reason = f"the newest that was out when {client} was uploaded, whose metadata names no release of {target}"
    return f"{target}=={by_then[-1]}", reason


def _upload_day(tree: SourceTree, settings: Settings) -> date | None:
    """The day the client's release came to the index, for one that was found elsewhere."""
    version = parsed_version(tree.version or "")
    if version is None or version.is_devrelease or version.local is not None:
        return None
    # An answer that has the version serves; a day long past makes any earlier answer one.
    for known_on in (date.min, None):
        for offer in _offers(tree.name, settings, known_on=known_on):
            if parsed_version(offer.version) == version:
                return offer.uploaded
    return None


def _offers(name: str, settings: Settings, *, known_on: date | None) -> tuple[Offer, ...]:
    try:
        return offers(name, settings, known_on=known_on)
    except UnknownProject:
        return ()


def _final(known: Sequence[Offer]) -> list[tuple[Version, Offer]]:
    """The versions that can be chosen, oldest first: not yanked."""
    pairs = [(version, offer) for offer in known if not offer.yanked and (version := parsed_version(offer.version))]
    return sorted(pairs, key=lambda pair: pair[0])
