"""Git repositories that tests make, with commits at known days."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


class Clone:
    """A repository in a folder; every commit is a day later than the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.days = 0
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        """What git says; nothing of this machine's own settings has a part in it."""
        day = f"2026-01-{self.days % 28 + 1:02}T12:00:00+00:00"
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        variables = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day, "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, env=os.environ | variables)
        return done.stdout.decode().strip()

    def commit(self, subject: str, files: Mapping[str, str | None]) -> str:
        """Writes the files, removes those that are None, commits, and gives the commit's name."""
        self.days += 1
        for path, text in files.items():
            place = self.folder / path
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def merge(self, branch: str, subject: str) -> str:
        """Merges a branch into the one that is checked out, always by a commit of its own."""
        self.days += 1
        self.git("merge", "-q", "--no-ff", "-m", subject, branch)
        return self.git("rev-parse", "HEAD")
