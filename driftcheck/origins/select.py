"""From what the user writes to the sources it stands for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.origins.settings import Settings
from driftcheck.tree import SourceTree

_RELEASE = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*==\s*(?P<version>[A-Za-z0-9.+!_-]+)"
)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def client_tree(specification: str, *, settings: Settings | None = None) -> SourceTree:
    """The client's sources: a path, `name` (installed), `name==version` or `name==latest` (on the index).

    A word that is both a path and a name is the path. Raises DriftcheckError where there is no such thing.
    """
    if os.path.exists(specification) and not _RELEASE.fullmatch(specification):
        from driftcheck.origins.folders import FolderTree

        return FolderTree(Path(specification))
    return _tree(specification, settings or Settings())


def target_tree(specification: str, *, settings: Settings | None = None) -> SourceTree:
    """The target's sources: `name` (installed), `name==version`, `name==latest`, a path, or `git+FOLDER@ref`.

    A word is a name; a path of one word is written `./word`. Raises DriftcheckError where there is no such thing.
    """
    return _tree(specification, settings or Settings())


def _tree(specification: str, settings: Settings) -> SourceTree:
    release = _RELEASE.fullmatch(specification.strip())
    if release is not None:
        from driftcheck.origins.index import release_tree

        return release_tree(release["name"], release["version"], settings)
    if specification.startswith("git+"):
        raise DriftcheckError(f"{specification}: only paths and releases can be read so far")
    if _NAME.fullmatch(specification):
        raise DriftcheckError(f"{specification}: only paths and releases can be read so far")
    from driftcheck.origins.folders import FolderTree

    return FolderTree(Path(specification))
