"""One run over the client under one release: what touches the target, and what that release says of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from driftcheck.compare.additions import Additions
from driftcheck.compare.confirm import Judged
from driftcheck.compare.duck_typing import Asked
from driftcheck.compare.earlier import Before, Key, earlier_verdicts, key_of
from driftcheck.compare.hidden import called_classes
from driftcheck.compare.judge import Judge
from driftcheck.model import Skipped
from driftcheck.surface.declarations import ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.shelf import Shelf
from driftcheck.surface.words import Words
from driftcheck.tree import SourceTree
from driftcheck.usage.collector import Collector
from driftcheck.usage.reachability import Reachability
from driftcheck.usage.usages import AttributeUsage, CallUsage, PatchUsage, StringUsage, Usage


@dataclass(frozen=True, slots=True)
class Client:
    """The client as every run over it sees it.

    `modules` are those that have to do with the target, `declared` all that are read so far, by name, `replaced` those
    that the client itself puts into `sys.modules`, `model` the architecture that alone will run, None for any.
    """

    tree: SourceTree
    modules: Sequence[ModuleDeclaration]
    declared: dict[str, ModuleDeclaration]
    replaced: Collection[str]
    words: Words
    model: str | None = None


class Reading:
    """A release of the target with the client beside it.

    `judged` is filled by `read`, `patches` by `note_patches`. `skipped` are the client's files that turned out to be
    nested too deeply to follow.
    """

    def __init__(self, target: SourceTree, client: Client, shelf: Shelf | None = None) -> None:
        self.client = client
        self.shelf = shelf
        self.program = Program(target, client.tree, shared=client.declared, client_words=client.words, shelf=shelf)
        self.program.replaced_modules = set(client.replaced)
        if client.model is not None:
            self.program.families.choose(client.model)
        self.judge = Judge(self.program)
        self.judge.client_methods = _methods_of(client.modules)
        self.asked = Asked(self.judge)
        self.reachability = Reachability(self.program, client.modules)
        self.judged: list[Judged] = []
        self.patches: dict[Key, PatchUsage] = {}
        self.skipped: list[Skipped] = []
        self.additions = Additions()
        self.instantiated: set[str] = set()
        self.named: set[str] = set()
        self.stores: set[tuple[str, str]] = set()

    def read(self, *, beside: Reading | None = None) -> None:
        """Goes through all modules of the client.

        One with expressions nested more deeply than Python can follow is skipped, as one that can't be parsed is. What
        `beside`, a release that is read elsewhere, says of the patches in a module is noted at once.
        """
        for module in self.client.modules:
            try:
                judged = list(self.judged_in(module))
            except RecursionError:
                self.skipped.append(Skipped(module.path, "nested too deeply"))
                continue
            self.judged += judged
            if beside is not None:
                patched = {usage.scope for usage, _ in judged if isinstance(usage, PatchUsage)}
                if patched:
                    beside.note_patches(module, patched)

    def judged_in(self, module: ModuleDeclaration) -> Iterator[Judged]:
        """Every usage of a module that concerns the target, with what the release says of it."""
        for usage in self._usages(module):
            self._note(usage)
            verdict = self.judge.verdict(usage)
            if verdict is not None:
                yield usage, verdict

    def load_families(self) -> None:
        """Reads the classes of the families that the client touches, while another release is read elsewhere."""
        self.asked.pasts(self.judged)

    def keep(self) -> None:
        """Keeps what was learned of the release's sources for the next audit."""
        if self.shelf is not None:
            self.shelf.store()

    def leave_out(self, skipped: Collection[Skipped]) -> None:
        """Forgets what was found in files that could not be followed under another release."""
        paths = {entry.path for entry in skipped}
        if paths:
            self.judged = [(usage, verdict) for usage, verdict in self.judged if usage.location.path not in paths]

    def before(self, *, is_apart: bool) -> Before:
        """What it comes to for a comparison with another release.

        To another process (`is_apart`) no patches can be handed, and all that may be asked has to be answered first.
        """
        running = [
            (usage, verdict)
            for usage, verdict in self.judged
            if verdict.status != "broken" or self.reachability.is_reachable(usage.location.path, usage.scope)
        ]
        patches = {key_of(usage): usage for usage, _ in running if isinstance(usage, PatchUsage)}
        return Before(
            earlier_verdicts(running),
            self.additions.names,
            self.instantiated,
            self.named,
            self.stores,
            tuple(self.skipped),
            None if is_apart else patches,
            self.asked.pasts(running) if is_apart else None,
            self.shelf.new if is_apart and self.shelf is not None else None,
        )

    def note_patches(self, module: ModuleDeclaration, scopes: Collection[str]) -> None:
        """Reads the functions of a module that patch something, in these scopes, as this release sees them."""
        with suppress(RecursionError):
            for usage in self._usages(module, scopes):
                if isinstance(usage, PatchUsage) and self.judge.verdict(usage) is not None:
                    self.patches[key_of(usage)] = usage

    def _usages(self, module: ModuleDeclaration, scopes: Collection[str] | None = None) -> list[Usage]:
        """Every usage of a module; only those of its own statements and of some scopes where these are given."""
        usages: list[Usage] = []
        collector = Collector(self.program, module, usages.append, self.judge.concerns)
        collector.reachability = self.reachability
        collector.collect(scopes)
        return usages

    def _note(self, usage: Usage) -> None:
        """Remembers what a usage tells of the client as a whole."""
        if isinstance(usage, AttributeUsage) and usage.is_stored:
            self.additions.note(self.judge.extended(usage), usage)
            self.stores.update(self.judge.stored(usage))
        elif isinstance(usage, CallUsage):
            self.additions.note(self.judge.extended_by(usage), usage)
            self.instantiated.update(class_.symbol for class_ in called_classes(usage))
        elif isinstance(usage, StringUsage) and usage.role == "path":
            self.named.add(self.judge.strings.definition(usage.text))


def _methods_of(modules: Sequence[ModuleDeclaration]) -> set[str]:
    """The names of the methods of the modules' own classes."""
    return {function.name for module in modules for class_ in module.classes() for function in class_.methods()}
