"""The audits of one command line: each client with its settings, and what of its findings counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from driftcheck.configuration import Configuration
from driftcheck.display import progress_display
from driftcheck.errors import DriftcheckError
from driftcheck.known_findings import Entry, KnownFindings, entry_of, is_of, read_known, written
from driftcheck.model import Accepted, Replacement, Report, Severity
from driftcheck.origins.select import client_folder, client_tree
from driftcheck.origins.settings import Settings
from driftcheck.output import check_output, write_file
from driftcheck.progress import Progress
from driftcheck.report.placed import Placed
from driftcheck.selection import Selection, selected, suppressed, without_known
from driftcheck.tree import SourceTree

_Replacements = Mapping[str, Sequence[Replacement]]


@dataclass(slots=True)
class _Known:
    """A file of known findings in use: what it says, and what of it was not found again."""

    findings: KnownFindings
    gone: list[Entry] = field(default_factory=list)
    is_of_this_release: bool = True


@dataclass(frozen=True, slots=True)
class Manner:
    """How clients are found and read, and which of their findings count, the same for all of a command line.

    `diff_base` is a git ref, `write_known` the file to write known findings to. `with_replacements` has the text worked
    out that fixes come to.
    """

    static: bool = False
    offline: bool = False
    timeout: float | None = None
    remember: bool = True
    diff_base: str | None = None
    write_known: str | None = None
    with_replacements: bool = False

    def asked(self, settings: Configuration, progress: Progress) -> dict[str, Any]:
        """What `audit` wants to know, all but the target."""
        return {
            "baseline": settings.baseline,
            "python": settings.python,
            "static": self.static,
            "offline": self.offline,
            "timeout": self.timeout,
            "model": settings.model,
            "remember": self.remember,
            "progress": progress,
        }


class Audits:
    """The audits of several clients: run, with what counts told from what does not."""

    def __init__(self, settings: Sequence[Configuration], manner: Manner) -> None:
        self.settings = settings
        self.manner = manner
        self.placed: list[Placed] = []
        if manner.write_known is not None:
            check_output(manner.write_known, "--write-known")
            if Path(manner.write_known).is_file():
                # Only what is a file of known findings already may be replaced by one.
                read_known(Path(manner.write_known))
        names = {} if manner.write_known is not None else {each.known: None for each in settings if each.known}
        self._known = {name: _Known(read_known(Path(name))) for name in names}

    @property
    def is_failed(self) -> bool:
        """True where something was found at or above what the settings of its client say."""
        return any(placed.fails(finding) for placed in self.placed for finding in placed.report.findings)

    def run(self, clients: Sequence[str | SourceTree]) -> dict[int, DriftcheckError]:
        """Audits all clients; gives what kept some of them from being checked, by their number."""
        failures: dict[int, DriftcheckError] = {}
        with progress_display() as progress:
            for number, (client, settings) in enumerate(zip(clients, self.settings, strict=True)):
                try:
                    self.placed.append(self._audited(client, settings, progress))
                except DriftcheckError as error:
                    failures[number] = error
        if self.manner.write_known is not None and not failures:
            self.placed = list(_all_known(self.placed, self.manner.write_known))
        if not failures:
            self._shrink()
        return failures

    def _audited(self, client: str | SourceTree, settings: Configuration, progress: Progress) -> Placed:
        from driftcheck.audit import audit

        report = audit(client, against=settings.against, **self.manner.asked(settings, progress))
        folder = client_folder(client) if isinstance(client, str) else None
        report = suppressed(report)
        if settings.known in self._known:
            report = self._without_known(report, settings.known, folder)
        report = selected(report, self._selection(client, settings, folder))
        fail_on = settings.fail_on or Severity.SILENT
        return Placed(report, _from_repository(folder), fail_on, self._replacements(client, settings, report))

    def _without_known(self, report: Report, name: str | None, folder: Path | None) -> Report:
        assert name is not None
        known = self._known[name]
        known.is_of_this_release &= is_of(known.findings, report.target)
        report, gone = without_known(
            report, known.findings.entries, name, lambda path: folder is None or (folder / path).exists()
        )
        known.gone += gone
        return report

    def _selection(self, client: str | SourceTree, settings: Configuration, folder: Path | None) -> Selection:
        ref = self.manner.diff_base
        changed: frozenset[str] | None = None
        if ref is not None:
            from driftcheck.origins.git import changed_since

            if folder is None:
                raise DriftcheckError(f"--diff-base: {client} is no folder of a clone; name one by its path")
            changed = changed_since(ref, folder, _tree(client, Settings()))
        return Selection(
            select=settings.select,
            ignore=settings.ignore,
            exclude=settings.exclude or (),
            new_only=settings.new_only or False,
            changed=changed,
            notices=settings.notices,
        )

    def _replacements(
        self, client: str | SourceTree, settings: Configuration, report: Report
    ) -> Mapping[str, Sequence[Replacement]]:
        """What the fixes of a client come to, where the format has room for it."""
        entries = [*report.findings, *(entry.finding for entry in report.accepted)]
        if not self.manner.with_replacements or not any(entry.fix and entry.fix.edits for entry in entries):
            return {}
        from driftcheck.fixes.replacements import replacements

        tree = _tree(client, Settings(offline=self.manner.offline, python=settings.python))
        return replacements(entries, tree.read)

    def _shrink(self) -> None:
        """Takes out of the files of known findings what is no longer found, and says so."""
        for name, known in self._known.items():
            if not known.gone or not known.is_of_this_release:
                continue
            gone = list(known.gone)
            left = list(known.findings.entries)
            for entry in gone:
                left.remove(entry)
            number = f"{len(gone):,} known finding{'s are' if len(gone) > 1 else ' is'} gone"
            try:
                write_file(name, written(replace(known.findings, entries=tuple(left))), "--known")
                notice = f"{number}, and {name} is that much shorter: commit it"
            except DriftcheckError as error:
                notice = f"{number}, but {error}"
            self.placed = [_noticed(placed, notice) for placed in self.placed]


def _tree(client: str | SourceTree, settings: Settings) -> SourceTree:
    return client_tree(client, settings=settings) if isinstance(client, str) else client


def _noticed(placed: Placed, notice: str) -> Placed:
    return replace(placed, report=replace(placed.report, notices=(*placed.report.notices, notice)))


def _all_known(audited: Iterable[Placed], file: str) -> Iterable[Placed]:
    """The reports with all that they found accepted, once it stands in the file."""
    audited = list(audited)
    targets = {(placed.report.target.name, placed.report.target.version or "") for placed in audited}
    if len(targets) != 1:
        raise DriftcheckError("--write-known: the clients are held against different releases; write a file for each")
    [(target, version)] = targets
    entries = [entry_of(placed.report, finding) for placed in audited for finding in placed.report.findings]
    write_file(file, written(KnownFindings(target, version, tuple(sorted(entries)))), "--write-known")
    for placed in audited:
        report = placed.report
        accepted = tuple(Accepted(finding, "known", file) for finding in report.findings)
        yield replace(placed, report=replace(report, findings=(), accepted=(*report.accepted, *accepted)))


def _from_repository(folder: Path | None) -> str:
    """The way from the repository's root to a client's folder, from the working folder where it is in no clone."""
    if folder is None:
        return ""
    here = Path.cwd()
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), here)
    if folder == root or not folder.is_relative_to(root):
        return ""
    return f"{folder.relative_to(root).as_posix()}/"
