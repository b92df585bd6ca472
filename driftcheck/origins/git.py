"""A ref of a local clone, read from git's own store: nothing is checked out and nothing is fetched."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import weakref
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

from driftcheck.errors import DriftcheckError
from driftcheck.origins.layout import import_roots, installed_root, packages_of
from driftcheck.origins.limits import EXTENSION_SUFFIXES, MEMBER_BYTES, MEMBERS, SOURCE_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date

    from driftcheck.origins.metadata import Metadata
    from driftcheck.tree import SourceTree

_SECONDS = 60.0
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "PKG-INFO", "requirements.txt")
_FILE_MODES = ("100644", "100755", "100664")


class GitTree:
    """The Python files of one commit, relative to the folder that was named."""

    uploaded: date | None = None

    def __init__(self, folder: Path, ref: str):
        self._folder = folder
        self._commit = commit_named(folder, ref)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self.origin = f"git ref {ref}"
        self._sources, self._others = _listed(folder, self._commit)

    def __reduce__(self) -> tuple[object, ...]:
        return GitTree, (self._folder, self._commit)

    @property
    def name(self) -> str:
        """The project's name, that of its one package where it states none, or the clone's folder's."""
        if self.metadata.name:
            return self.metadata.name
        _, heads = installed_root(self.paths)
        return heads[0].removesuffix(".py") if len(heads) == 1 else self._folder.name

    @cached_property
    def version(self) -> str | None:
        """The version that the project's files state, else the nearest tag's as setuptools-scm counts on from it."""
        from driftcheck.origins.project import stated_version

        packages = packages_of(self.paths, self.roots)
        described = described_version(self._folder, self._commit)
        return self.metadata.version or described or stated_version(self._read_any, packages)

    @cached_property
    def committed(self) -> date | None:
        """The day of the commit."""
        return commit_day(self._folder, self._commit)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The project's dependencies, those of its extras with the marker."""
        return self.metadata.requirements

    @property
    def paths(self) -> Collection[str]:
        return self._sources.keys()

    @cached_property
    def roots(self) -> tuple[str, ...]:
        return import_roots(self.paths)

    @cached_property
    def metadata(self) -> Metadata:
        """What the project's files say at that commit."""
        from driftcheck.origins.project import read_project

        return read_project(self._read_any)

    def read(self, path: str) -> bytes:
        return self._object(self._sources[path], path)

    def digest(self, path: str) -> str:
        return self._sources[path]

    def _read_any(self, path: str) -> bytes | None:
        blob = self._sources.get(path) or self._others.get(path)
        try:
            return self._object(blob, path) if blob else None
        except DriftcheckError:
            return None

    def _object(self, blob: str, path: str) -> bytes:
        with self._lock:
            process = self._running()
            stdin, stdout = process.stdin, process.stdout
            if stdin is None or stdout is None:
                raise DriftcheckError(f"cannot read {path}: git does not answer")
            try:
                stdin.write(f"{blob}\n".encode())
                stdin.flush()
                header = stdout.readline().split()
                if len(header) != 3:
                    raise DriftcheckError(f"{path} is missing from the clone {self._folder}; fetch its objects first")
                size = int(header[2])
                if size > MEMBER_BYTES:
                    self._stop()
                    raise DriftcheckError(f"{path} has {size:,} bytes, more than the {MEMBER_BYTES:,} that are read")
                data = stdout.read(size)
                stdout.read(1)
            except (OSError, ValueError) as error:
                self._stop()
                raise DriftcheckError(f"cannot read {path} from the clone {self._folder}: {error}") from error
        if len(data) != size:
            raise DriftcheckError(f"cannot read {path} from the clone {self._folder}: git broke off")
        return data

    def _running(self) -> subprocess.Popen[bytes]:
        """The process that hands out objects; a forked child starts its own: two readers would mix their answers."""
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self._process = subprocess.Popen(
                _command(self._folder, "cat-file", "--batch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
            self._owner = os.getpid()
            weakref.finalize(self, _finish, self._process, self._owner)
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            _finish(self._process, self._owner)
            self._process = None


def git_tree(specification: str) -> GitTree:
    """The tree of `git+FOLDER@ref` (`HEAD` where no ref is given).

    Raises DriftcheckError where there is no such clone or ref, or no git.
    """
    place = specification.removeprefix("git+").removeprefix("file://")
    if re.match(r"(?:[a-z+]+://|[^/@]+@[^/:]+:)", place) and not os.path.exists(place.partition("@")[0]):
        raise DriftcheckError(f"{specification} names a remote repository; clone it and name the clone's folder")
    cuts = [match.start() for match in re.finditer("@", place)]
    for cut in cuts:
        if os.path.isdir(place[:cut]) and place[cut + 1 :]:
            return GitTree(Path(os.path.realpath(place[:cut])), place[cut + 1 :])
    if os.path.isdir(place):
        return GitTree(Path(os.path.realpath(place)), "HEAD")
    folder = place[: cuts[-1]] if cuts else place
    raise DriftcheckError(f"{folder} in {specification} is no folder; name a local clone as git+FOLDER@ref")


def changed_since(ref: str, folder: Path, sources: SourceTree) -> frozenset[str]:
    """The paths of a tree below `folder` that hold something else than at a ref, or rather where HEAD left its history.

    The contents are compared by their hashes here: `git diff` would run what a clone's settings name. Raises
    DriftcheckError where there is no such clone or ref.
    """
    commit = commit_named(folder, ref)
    common = git_output(folder, "merge-base", "--end-of-options", commit, "HEAD", check=False).decode().split()
    earlier = GitTree(folder, common[0] if common else commit)
    return frozenset(
        path for path in sources.paths if path not in earlier.paths or _is_other(earlier.digest(path), sources, path)
    )


def _is_other(blob: str, sources: SourceTree, path: str) -> bool:
    import hashlib

    try:
        data = sources.read(path)
    except DriftcheckError:
        return True
    content = f"blob {len(data)}\0".encode() + data
    # The name that git has for a content; in some clones it is made by the longer hash.
    hashed = hashlib.sha256(content) if len(blob) == 64 else hashlib.sha1(content, usedforsecurity=False)
    return hashed.hexdigest() != blob


def described_version(folder: Path, commit: str = "HEAD") -> str | None:
    """The version by the nearest tag: the tag's own, or the next one's development version as setuptools-scm counts.

    None where there is no git, no repository or no tag that names a version.
    """
    if not _is_in_clone(folder):
        return None
    try:
        output = git_output(folder, "describe", "--tags", "--long", "--match", "*[0-9]*", "--end-of-options", commit)
    except DriftcheckError:
        return None
    match = re.fullmatch(
        r"(?:.*?[^0-9.])?(\d+(?:\.\d+)+(?:[-_.]?(?:a|b|rc|post|dev)\d+)*)-(\d+)-(g[0-9a-f]+)", output.decode().strip()
    )
    if match is None:
        return None
    version, distance, node = match.groups()
    if distance == "0":
        return version
    stem, last = re.fullmatch(r"(.*?)(\d+)", version).groups()  # type: ignore[union-attr]
    return f"{stem}{int(last) + 1}.dev{distance}+{node}"


def commit_day(folder: Path, commit: str = "HEAD") -> date | None:
    """The day of a commit in its own time zone, None where there is no git or no repository."""
    try:
        # Not `git log`: a clone's settings can have that run a program.
        return day_of(git_output(folder, "cat-file", "commit", commit) if _is_in_clone(folder) else b"")
    except DriftcheckError:
        return None


def day_of(text: bytes) -> date | None:
    """The day that the text of a commit says it was committed on, in its own time zone; None where it says none."""
    from datetime import datetime, timedelta, timezone

    match = re.search(rb"^committer .*> (\d{1,11}) ([+-]\d\d)(\d\d)$", text, re.MULTILINE)
    if match is None:
        return None
    hours, minutes = int(match[2]), int(match[3])
    try:
        zone = timezone(timedelta(hours=hours, minutes=minutes if hours >= 0 else -minutes))
        return datetime.fromtimestamp(int(match[1]), zone).date()
    except (ValueError, OverflowError, OSError):
        return None


def _is_in_clone(folder: Path) -> bool:
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def commit_named(folder: Path, ref: str) -> str:
    """The whole name of the commit that a ref stands for; raises DriftcheckError where there is no clone or ref."""
    inside = git_output(folder, "rev-parse", "--git-dir", check=False)
    if not inside:
        raise DriftcheckError(f"{folder} is not a git repository; name the folder of a local clone")
    found = git_output(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", check=False)
    lines = [line for line in found.decode().split() if re.fullmatch(r"[0-9a-f]{40,64}", line)]
    if not lines:
        raise DriftcheckError(f"no ref {ref} in the clone {folder}; check its name, or fetch it first")
    return lines[-1]


def _listed(folder: Path, commit: str) -> tuple[dict[str, str], dict[str, str]]:
    """Path to object of the Python files below the folder at that commit, and of the project's own files."""
    sources: dict[str, str] = {}
    others: dict[str, str] = {}
    for line in git_output(folder, "ls-tree", "-r", "-z", commit).split(b"\0"):
        about, _, name = line.partition(b"\t")
        path = os.fsdecode(name)
        if not about or about[:6].decode() not in _FILE_MODES:
            continue
        blob = about.split()[2].decode()
        if path.endswith((*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)):
            if path.isprintable():
                sources[path] = blob
            if len(sources) > MEMBERS:
                raise DriftcheckError(f"more than {MEMBERS:,} Python files in {folder}; name a smaller folder")
        elif path in _PROJECT_FILES or path.endswith(".txt"):
            others[path] = blob
    return dict(sorted(sources.items())), others


def git_output(folder: Path, *arguments: str, options: tuple[str, ...] = (), check: bool = True) -> bytes:
    """What git prints; b"" where it fails and `check` is False.

    Raises DriftcheckError where there is no git or it takes too long, and where it fails and `check` is True.
    """
    try:
        done = subprocess.run(
            _command(folder, *options, *arguments),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            env=_environment(),
        )
    except FileNotFoundError as error:
        raise DriftcheckError("git is not installed, or not on the PATH; install it to read a git ref") from error
    except subprocess.TimeoutExpired as error:
        raise DriftcheckError(f"git gave no answer in {_SECONDS:.0f} s for {folder}") from error
    if done.returncode != 0:
        message = done.stderr.decode("utf-8", "replace").strip().splitlines()[:1] or ["it failed"]
        if check or "dubious ownership" in message[0]:
            raise DriftcheckError(f"git cannot read {folder}: {message[0][:200]}")
        return b""
    return done.stdout


def _command(folder: Path, *arguments: str) -> list[str]:
    # A clone's own settings may name programs to run: hooks and the file-system monitor are switched off.
    return ["git", "-C", str(folder), "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # A partial clone would fetch what it lacks: no protocol is allowed for it.
    return kept | {
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _finish(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process that hands out objects, in the process that started it."""
    if owner != os.getpid():
        return
    pipes: tuple[IO[bytes] | None, ...] = (process.stdin, process.stdout)
    for pipe in pipes:
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue
    process.kill()
    process.wait()
