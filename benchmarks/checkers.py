"""Runs ty and pyright on a client with one release of the target on their path, and keeps what they said.

What a checker says depends on the client's files, the target's, its own version and the environment with the other
libraries: a hash of these names the kept output, so that a second run only reads it. ty checks the whole client,
pyright only the files that name the target, since it needs minutes for what takes ty seconds.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from driftcheck.surface.modules import ModuleIndex
from driftcheck.tree import SourceTree

CHECKERS = ("ty", "pyright")
SOURCES = (".py", ".pyi")
_LIMIT = 20 * 60
"""Seconds for one run of a checker."""
MEMORY = "--max-old-space-size=6000"
"""The heap that pyright gets, in megabytes."""


class CheckerFailed(Exception):
    """A checker came to no end; the text says which and how."""


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """What a checker says of one place of the client; `path` as in the client's tree, lines count from 1."""

    path: str
    line: int
    end_line: int
    column: int
    checker: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Checking:
    """Where checkers work: the interpreter with the libraries, the folder of kept output, a folder for sources."""

    python: Path
    cache: Path
    work: Path

    def diagnostics(self, checker: str, client: SourceTree, target: SourceTree) -> list[Diagnostic]:
        """What a checker says of the client's files with that release of the target on its path, sorted."""
        what = f"{checker} of what names it" if checker == "pyright" else checker
        kept = self.cache / f"{checker}-{self.key(what, checker, client, target)}.json.gz"
        if not kept.is_file():
            folders = self.folder(client), self.folder(target)
            if checker == "ty":
                output = _run_ty(*folders, client.roots, self.python)
            else:
                files = list(_naming(client, sorted(ModuleIndex(target).top_level)))
                output = _run_pyright(*folders, client.roots, self.python, files)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(gzip.compress(output.encode(), mtime=0))
        return sorted(set(_READERS[checker](gzip.decompress(kept.read_bytes()).decode())))

    def key(self, what: str, checker: str, client: SourceTree, target: SourceTree) -> str:
        """A hash of what is asked, of whom, and of everything that the answer depends on."""
        installed = sorted(path.name for path in self.python.parents[1].glob("lib/python3.*/site-packages/*.dist-info"))
        parts = [what, version(checker), *installed, "", *_digests(client), "", *_digests(target)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]

    def folder(self, tree: SourceTree) -> Path:
        """A folder with the tree's sources."""
        folder = self.work / f"{tree.name}-{tree.version}"
        if not folder.is_dir():
            for path in tree.paths:
                if path.endswith(SOURCES):
                    place = folder / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(tree.read(path))
        return folder


def _digests(tree: SourceTree) -> list[str]:
    return [f"{path} {tree.digest(path)}" for path in sorted(tree.paths) if path.endswith(SOURCES)]


def _naming(tree: SourceTree, names: list[str]) -> Iterator[str]:
    """The files of a tree in which one of these words stands."""
    pattern = re.compile(rb"\b(" + b"|".join(re.escape(name.encode()) for name in names) + rb")\b")
    for path in sorted(tree.paths):
        if path.endswith(SOURCES) and pattern.search(tree.read(path)):
            yield path


def _run_ty(client: Path, target: Path, roots: tuple[str, ...], python: Path) -> str:
    search = [str(target), *(str(client / root) for root in roots if root)]
    command = [str(_program("ty")), "check", "--no-progress", "--exit-zero", "--output-format", "gitlab"]
    command += ["--config", "analysis.respect-type-ignore-comments=false", "--python", str(python)]
    for folder in search:
        command += ["--extra-search-path", folder]
    return _output([*command, "--project", str(client), str(client)], client)


def write_configuration(client: Path, target: Path, roots: tuple[str, ...], files: list[str]) -> None:
    """Tells pyright, in the client's folder, which files it is about and where the target is."""
    settings = {
        "include": files,
        "extraPaths": [str(target), *(root for root in roots if root)],
        "enableTypeIgnoreComments": False,
        "reportMissingModuleSource": "none",
    }
    (client / "pyrightconfig.json").write_text(json.dumps(settings))


def _run_pyright(client: Path, target: Path, roots: tuple[str, ...], python: Path, files: list[str]) -> str:
    write_configuration(client, target, roots, files)
    command = [str(_program("pyright")), "--outputjson", "--pythonpath", str(python), "--project", str(client)]
    output = json.loads(_output(command, client))
    if not output["summary"]["filesAnalyzed"]:
        raise CheckerFailed("pyright found no files to check")
    for found in output["generalDiagnostics"]:
        found["file"] = Path(found["file"]).resolve().relative_to(client.resolve()).as_posix()
    return json.dumps(output["generalDiagnostics"])


def _output(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "NODE_OPTIONS": MEMORY}
    checker = Path(command[0]).name
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        raise CheckerFailed(f"{checker} did not end within {_LIMIT} s") from None
    # Both end with 1 where they have something to say.
    if done.returncode not in (0, 1) or not done.stdout:
        raise CheckerFailed(f"{checker} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _program(name: str) -> Path:
    beside = Path(sys.executable).with_name(name)
    found = beside if beside.is_file() else shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is needed to compare with: pip install {name}")
    return Path(found)


def _read_ty(output: str) -> Iterator[Diagnostic]:
    for found in json.loads(output):
        place = found["location"]["positions"]
        message = found["description"].partition(": ")[2]
        begin, end = place["begin"], place["end"]
        yield Diagnostic(
            found["location"]["path"], begin["line"], end["line"], begin["column"], "ty", found["check_name"], message
        )


def _read_pyright(output: str) -> Iterator[Diagnostic]:
    for found in json.loads(output):
        place: dict[str, Any] = found["range"]
        begin, end = place["start"], place["end"]
        message = re.sub(r"\s+", " ", found["message"])
        rule = found.get("rule", "syntax")
        yield Diagnostic(
            found["file"], begin["line"] + 1, end["line"] + 1, begin["character"] + 1, "pyright", rule, message
        )


_READERS: dict[str, Callable[[str], Iterator[Diagnostic]]] = {"ty": _read_ty, "pyright": _read_pyright}
