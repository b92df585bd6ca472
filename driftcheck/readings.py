"""The client as it is read for an audit: under the target, and under the baseline where that is another release."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from driftcheck.apart import begun_apart, may_work_apart
from driftcheck.compare.earlier import Before
from driftcheck.compare.reading import Client, Reading
from driftcheck.errors import DriftcheckError
from driftcheck.model import Skipped
from driftcheck.surface.declarations import ModuleDeclaration
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.shelf import shelf_of
from driftcheck.tree import SourceTree
from driftcheck.usage.files import ClientFiles

# A client of which so many lines have to do with the target is worth a second process.
_LARGE = 200


class Shared:
    """What audits of one client with one baseline have in common, whatever they hold it against.

    The first of them fills it; those that follow, in the same process or in one split off from it, take what is there.
    """

    def __init__(self) -> None:
        self.files: ClientFiles | None = None
        self.modules: tuple[ModuleDeclaration, ...] = ()
        self.skipped: tuple[Skipped, ...] = ()
        self.earlier: Reading | None = None
        self.before: Before | None = None


class Readings:
    """One client held against one target and its baseline.

    `files`, `modules` and `skipped` are the client's from the start, `reading` is the target, `before` and `earlier`
    what the baseline says and the baseline itself, for further questions, once `read` has been called. `earlier` is
    None where there is none or it is the target. Raises DriftcheckError where no file of the client can be read.
    """

    def __init__(
        self,
        client: SourceTree,
        target: SourceTree,
        baseline: SourceTree | None,
        model: str | None,
        *,
        processes: int | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.client = client
        self.target = target
        self.baseline = baseline
        self._processes = processes
        self._shared = shared if shared is not None else Shared()
        self._read_files()
        self._as_read = Client(
            client, self.modules, self.files.shared, self.files.replaced_modules, self.files.words, model
        )
        self.reading = Reading(target, self._as_read, shelf_of(target))
        self.before: Before | None = None
        self.earlier: Reading | None = None

    def read(self) -> None:
        """Goes through the client under both releases; a large one is read under both at once."""
        if self.baseline is None or self.is_own_baseline:
            self.reading.read()
            self._leave_out(self.reading.skipped)
            self.before = self.reading.before(is_apart=False) if self.baseline is not None else None
            return
        if self._shared.before is not None and self._shared.earlier is not None:
            before, earlier = self._shared.before, self._shared.earlier
            self._read_beside(before, earlier)
        else:
            earlier = Reading(self.baseline, self._as_read, shelf_of(self.baseline))
            before = self._read_both(self.baseline, earlier)
        self.reading.leave_out(before.skipped)
        self._leave_out([*before.skipped, *self.reading.skipped])
        self.before, self.earlier = before, earlier
        if not before.skipped:
            self._shared.before, self._shared.earlier = before, earlier

    def keep(self) -> None:
        """Keeps what was learned of the releases' sources for the next audit."""
        self.reading.keep()
        if self.earlier is not None:
            self.earlier.keep()

    @property
    def is_own_baseline(self) -> bool:
        """True where the client was written for the very release it is held against."""
        if self.baseline is None:
            return False
        same = self.baseline.version == self.target.version and self.baseline.origin == self.target.origin
        return self.baseline is self.target or (
            same and self.baseline.version is not None and self.target.origin != "memory"
        )

    def _read_files(self) -> None:
        """Parses the client's files that have to do with the target, if no audit before has."""
        shared = self._shared
        if shared.files is None or shared.files.target_names != ModuleIndex(self.target).top_level:
            skipped: list[Skipped] = []
            files = ClientFiles(self.client, self.target)
            shared.modules = tuple(files.modules(skipped))
            shared.skipped = tuple(skipped)
            shared.files, shared.before, shared.earlier = files, None, None
        self.files = shared.files
        self.modules: Sequence[ModuleDeclaration] = shared.modules
        self.skipped = list(shared.skipped)
        if self.skipped and not self.modules and len(self.skipped) >= self.files.count:
            path, reason = self.skipped[0].path, self.skipped[0].reason
            raise DriftcheckError(f"no file of the client can be read: {path} {reason}")

    def _read_both(self, baseline: SourceTree, earlier: Reading) -> Before:
        if not self._works_apart():
            earlier.read()
            before = earlier.before(is_apart=False)
            self.reading.read()
            return before
        begun = begun_apart(functools.partial(_before, earlier))
        self.reading.read(beside=earlier)
        self.reading.load_families()
        before = begun()
        if before.learned is not None and earlier.shelf is not None:
            earlier.shelf.take(before.learned)
        _take_patches(before, earlier)
        return before

    def _read_beside(self, before: Before, earlier: Reading) -> None:
        """Reads the client under the target alone, once it is known what the baseline says."""
        if before.pasts is None:
            self.reading.read()
            return
        # Another process has gone through the client, and its patches stayed there.
        self.reading.read(beside=earlier)
        _take_patches(before, earlier)

    def _works_apart(self) -> bool:
        if self._processes is not None:
            return self._processes > 1
        return sum(module.text.count("\n") + 1 for module in self.modules) >= _LARGE and may_work_apart()

    def _leave_out(self, skipped: Iterable[Skipped]) -> None:
        """Counts files that turned out to be nested too deeply among those that can't be read."""
        new = {entry.path: entry for entry in skipped}
        self.skipped += new.values()
        self.modules = [module for module in self.modules if module.path not in new]


def _before(reading: Reading) -> Before:
    reading.read()
    return reading.before(is_apart=True)


def _take_patches(before: Before, earlier: Reading) -> None:
    before.patches = {key: usage for key, usage in earlier.patches.items() if key in before.verdicts}
