"""The way from one commit of a local clone to another: the commits on it, what they touch, and what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from driftcheck.errors import DriftcheckError
from driftcheck.origins.git import commit_named, day_of, git_output
from driftcheck.upstream import Commit

_MOST_COMMITS = 200_000
_LONGEST_SUBJECT = 300
_LARGEST_COMMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Way:
    """Commits from one to another, both included: back to what both have in common, at `turn`, and on from there.

    Of a merge only the line that it continues is on the way; what it brought in came with it.
    """

    commits: tuple[str, ...]
    turn: int

    def maker(self, place: int) -> str:
        """The commit that makes the difference between a place and the one before it."""
        return self.commits[place - 1] if place <= self.turn else self.commits[place]

    def is_lost(self, place: int) -> bool:
        """True where that commit stands on the way back, so that the end of the way does not have it."""
        return place <= self.turn


def clone_folder(repository: str, option: str = "--repository") -> Path:
    """The folder of a local clone, as the user wrote it; raises DriftcheckError where there is none."""
    folder = Path(repository).expanduser()
    if not folder.is_dir():
        raise DriftcheckError(f"{option} {repository} is no folder; name a local clone of the target")
    return folder.resolve()


def way_between(folder: Path, older: str, newer: str) -> Way:
    """The way between two commits named whole; raises DriftcheckError where the clone holds none."""
    common = _common(folder, older, newer)
    if common is None:
        shallow = git_output(folder, "rev-parse", "--is-shallow-repository", check=False).strip() == b"true"
        raise DriftcheckError(
            f"the clone {folder} is shallow and ends between {older[:12]} and {newer[:12]}: git fetch --unshallow first"
            if shallow
            else f"{older[:12]} and {newer[:12]} have no common history in the clone {folder}"
        )
    back = _line(folder, newer=older, older=common)
    ahead = _line(folder, newer=newer, older=common)
    return Way((*back, common, *reversed(ahead)), len(back))


def _common(folder: Path, one: str, other: str) -> str | None:
    """The newest commit that both go back to; of several git's first choice."""
    found = git_output(folder, "merge-base", one, other, check=False).decode().split()
    return found[0] if found else None


def common_commit(folder: Path, older: str, newer: str) -> str:
    """Where two commits have left each other; raises DriftcheckError where they have nothing in common."""
    way = way_between(folder, older, newer)
    return way.commits[way.turn]


def leads_back(folder: Path, before: str, after: str) -> bool:
    """True where the way from one commit to another, both named whole, ends before it began."""
    return before != after and _common(folder, before, after) == after


def _line(folder: Path, *, newer: str, older: str, paths: Sequence[str] = ()) -> list[str]:
    """The commits after `older` up to `newer`, the newest first, of merges the line that they continue."""
    limited = ("--", *paths) if paths else ("--",)
    arguments = ("rev-list", "--first-parent", f"--max-count={_MOST_COMMITS + 1}", newer, f"^{older}", *limited)
    # A path is a path, whatever it looks like.
    found = git_output(folder, *arguments, options=("--literal-pathspecs",)).decode().split()
    if len(found) > _MOST_COMMITS:
        raise DriftcheckError(f"more than {_MOST_COMMITS:,} commits lie between {older[:12]} and {newer[:12]}")
    return found


def places_touching(folder: Path, way: Way, paths: Sequence[str]) -> list[int]:
    """The places on the way that differ from the one before in one of these paths, which are relative to the folder."""
    if not paths:
        return []
    common = way.commits[way.turn]
    touching = {*_line(folder, newer=way.commits[0], older=common, paths=paths)}
    touching |= {*_line(folder, newer=way.commits[-1], older=common, paths=paths)}
    return [place for place in range(1, len(way.commits)) if way.maker(place) in touching]


def commit_at(folder: Path, name: str) -> Commit:
    """What a commit says of itself; raises DriftcheckError where the clone does not hold it."""
    size = int(git_output(folder, "cat-file", "-s", name))
    if size > _LARGEST_COMMIT:
        raise DriftcheckError(
            f"the commit {name[:12]} has {size:,} bytes, more than the {_LARGEST_COMMIT:,} that are read"
        )
    text = git_output(folder, "cat-file", "commit", name)
    head, _, message = text.partition(b"\n\n")
    parents = re.findall(rb"^parent ([0-9a-f]{40,64})$", head, re.MULTILINE)
    encoding = re.search(rb"^encoding (\S+)$", head, re.MULTILINE)
    first = message.strip().split(b"\n\n")[0]
    subject = " ".join(_decoded(first, encoding[1].decode("ascii", "replace") if encoding else "utf-8").split())
    kept = tuple(each for parent in parents if (each := _held(folder, parent.decode())) is not None)
    return Commit(name, day_of(head), subject[:_LONGEST_SUBJECT], kept)


def _held(folder: Path, name: str) -> str | None:
    """The commit, None where the clone does not hold it: a shallow one names parents that it lacks."""
    return name if git_output(folder, "cat-file", "-t", name, check=False).strip() == b"commit" else None


def _decoded(text: bytes, encoding: str) -> str:
    try:
        return text.decode(encoding, "replace")
    except LookupError:
        return text.decode("utf-8", "replace")


def release_ref(folder: Path, name: str, version: str) -> str | None:
    """The tag of a release in a clone (`v0.16.0`, `0.16.0` or `vllm-0.16.0`), None where there is none."""
    for tag in (f"v{version}", version, f"{name}-{version}", f"{name}-v{version}"):
        try:
            return commit_named(folder, f"refs/tags/{tag}")
        except DriftcheckError:
            continue
    return None
