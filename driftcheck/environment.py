"""What is installed beside the target: which distributions use it, what they require, and whether they fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from driftcheck.audits import Audits, Manner
from driftcheck.configuration import Configuration
from driftcheck.model import EnvironmentEntry
from driftcheck.origins.distributions import users_of
from driftcheck.origins.folders import FolderTree
from driftcheck.origins.names import normalized
from driftcheck.origins.select import client_tree, target_tree
from driftcheck.origins.settings import Settings
from driftcheck.report.placed import Placed
from driftcheck.surface.modules import ModuleIndex
from driftcheck.tree import SourceTree


class Environment:
    """The distributions of an interpreter that use the target, audited against it.

    `clients` are those to look at instead of all, `skipped` those not to look at. Raises DriftcheckError where there is
    no interpreter or target.
    """

    def __init__(
        self,
        settings_of: Callable[[str], Configuration],
        manner: Manner,
        *,
        target: str,
        python: str | None,
        clients: Sequence[str] = (),
        skipped: Sequence[str] = (),
    ) -> None:
        settings = Settings(offline=manner.offline, python=python, timeout=manner.timeout)
        self.target = target_tree(target, settings=settings)
        packages = sorted(ModuleIndex(self.target).top_level)
        name = target.partition("==")[0].strip()
        package = name if name in packages or not packages else packages[0]
        self._specified: list[str | SourceTree] = [*clients]
        if not clients:
            without = {normalized(each) for each in skipped}
            self._specified += [tree for tree in users_of(package, settings) if normalized(tree.name) not in without]
        self._names = {normalized(self.target.name), normalized(package)}
        self._settings = [settings_of(each if isinstance(each, str) else each.name) for each in self._specified]
        self._manner = manner
        self._python = python

    def audited(self) -> tuple[list[EnvironmentEntry], list[Placed]]:
        """The verdict on each distribution, and the reports on those that could be checked."""
        audits = Audits(self._settings, self._manner)
        failures = audits.run(self._specified)
        placed = iter(audits.placed)
        entries = []
        for number, client in enumerate(self._specified):
            if number in failures:
                name, version = (client, None) if isinstance(client, str) else (client.name, client.version)
                entries.append(self._entry(client, name, version, fault=str(failures[number])))
            else:
                entries.append(self._checked(client, next(placed)))
        return entries, audits.placed

    def trees(self) -> list[FolderTree]:
        """All that the verdict rests on: the target's files, and the clients'."""
        settings = Settings(offline=self._manner.offline, python=self._python)
        found = [client_tree(each, settings=settings) if isinstance(each, str) else each for each in self._specified]
        return [tree for tree in (self.target, *found) if isinstance(tree, FolderTree)]

    def _checked(self, client: str | SourceTree, placed: Placed) -> EnvironmentEntry:
        about = placed.report.client
        failed = any(placed.fails(finding) for finding in placed.report.findings)
        return self._entry(client, about.name, about.version, placed=placed, is_failed=failed)

    def _entry(
        self,
        client: str | SourceTree,
        name: str,
        version: str | None,
        *,
        placed: Placed | None = None,
        is_failed: bool = False,
        fault: str | None = None,
    ) -> EnvironmentEntry:
        requirements = () if isinstance(client, str) else client.requirements
        requires, is_met = self._required(requirements)
        return EnvironmentEntry(
            name,
            version,
            requires,
            is_met,
            report=None if placed is None else placed.report,
            is_failed=is_failed,
            fault=fault,
        )

    def _required(self, requirements: Sequence[str]) -> tuple[tuple[str, ...], bool | None]:
        """What a distribution requires of the target, extras in brackets, and whether the target is that.

        What only an extra requires is not asked of an environment in which nobody asked for the extra.
        """
        from packaging.requirements import InvalidRequirement, Requirement

        found: list[str] = []
        is_met: bool | None = None
        for text in requirements:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            if normalized(requirement.name) not in self._names:
                continue
            extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", str(requirement.marker or ""))
            pin = f"{requirement.name}{requirement.specifier}"
            found.append(f"{pin} [{extra[1]}]" if extra else pin)
            version = self.target.version
            if version is not None and (not extra or is_met is None):
                is_met = requirement.specifier.contains(version, prereleases=True)
        return tuple(dict.fromkeys(found)), is_met
