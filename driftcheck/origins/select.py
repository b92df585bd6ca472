"""From what the user writes to the sources it stands for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.origins.limits import SOURCE_SUFFIXES
from driftcheck.origins.settings import Settings
from driftcheck.tree import SourceTree

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_RELEASE = re.compile(rf"(?P<name>{_NAME})\s*(?:\[[^\]]*\])?\s*==\s*(?P<version>[A-Za-z0-9.+!_-]+)")
_INSTALLED = re.compile(_NAME)


def client_tree(specification: str, *, settings: Settings | None = None) -> SourceTree:
    """The client's sources: a path, `name` (installed), `name==version` or `name==latest` (on the index).

    A word that is both a path and a name is the path. Raises DriftcheckError where there is no such thing.
    """
    if os.path.lexists(specification) and not specification.startswith("git+"):
        from driftcheck.origins.folders import folder_tree

        return folder_tree(Path(specification))
    return target_tree(specification, settings=settings)


def client_folder(specification: str) -> Path | None:
    """The folder that the paths of a client's tree start from, where it is named by a path; None for any other.

    Raises DriftcheckError where there is no such thing.
    """
    if not os.path.lexists(specification) or specification.startswith("git+"):
        return None
    from driftcheck.origins.folders import folder_tree

    return folder_tree(Path(specification)).base


def target_tree(specification: str, *, settings: Settings | None = None) -> SourceTree:
    """The target's sources: `name` (installed), `name==version`, `name==latest`, a path, or `git+FOLDER@ref`.

    A word is a name; a path of one word is written `./word`. Raises DriftcheckError where there is no such thing.
    """
    text = specification.strip()
    if not text or "\0" in text:
        raise DriftcheckError(
            f"{specification!r} names nothing; write a path, a name or a release such as vllm==0.16.0"
        )
    release = _RELEASE.fullmatch(text)
    if release is not None:
        from driftcheck.origins.index import release_tree

        return release_tree(release["name"], release["version"], settings or Settings())
    if text.startswith("git+"):
        from driftcheck.origins.git import git_tree

        return git_tree(text)
    if _INSTALLED.fullmatch(text) and not text.endswith(SOURCE_SUFFIXES):
        from driftcheck.origins.installed import installed_tree

        return installed_tree(text, settings or Settings())
    from driftcheck.origins.folders import folder_tree

    if re.match(rf"{_NAME}\s*(?:\[[^\]]*\])?\s*[=<>~!]", text) and not os.path.exists(text):
        raise DriftcheckError(f"{text} is no single release; write name==version or name==latest")
    return folder_tree(Path(os.path.expanduser(text)))
