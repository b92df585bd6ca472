"""Which files of a client have to do with the target, and what they declare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from driftcheck.errors import DriftcheckError
from driftcheck.knowledge import knowledge_of
from driftcheck.model import Skipped, Suppression
from driftcheck.surface.declarations import ModuleDeclaration, UnreadableSource, declare_module
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.words import Words
from driftcheck.tree import SourceTree
from driftcheck.usage.importers import with_importers
from driftcheck.usage.suppressions import suppressions

_MODULES_PUT_IN_PLACE = re.compile(r"""sys\.modules(?:\[|\.setdefault\()\s*["']([\w.]+)["']\s*(?:\]\s*=[^=]|,)""")
_MODULES_PUT_SOMEWHERE = re.compile(rb"sys\.modules(?:\[\s*|\.setdefault\(\s*)[A-Za-z_][\w.]*\s*(?:\]\s*=[^=]|,)")
Lines = dict[str, Sequence[str]]


class ClientFiles:
    """The files of a client that have to do with the target."""

    def __init__(self, client: SourceTree, target: SourceTree) -> None:
        self.client = client
        self.index = ModuleIndex(client)
        self.target_names = ModuleIndex(target).top_level
        self.shared: dict[str, ModuleDeclaration] = {}
        self.lines: Lines = {}
        self._read: dict[str, bytes] = {}
        self.words = Words(lambda: list(self._read), self._read.__getitem__)
        self.replaced_modules: set[str] = set()
        self.puts_modules_in_place = False
        self.count = len(self.index.sources)

    def _named_in_strings(self, wanted: set[str], sources: Mapping[str, bytes]) -> set[str]:
        """The modules that strings in the chosen ones lead to: a worker extension need not name the target."""
        tops = b"|".join(sorted(re.escape(name.encode()) for name in self.index.top_level))
        pattern = re.compile(rb"[\"']((?:" + tops + rb")(?:\.\w+)+)[.:]\w+[\"']")
        named = {found.decode(errors="replace") for name in wanted for found in pattern.findall(sources[name])}
        return {name for name in named if name in sources}

    def modules(self, skipped: list[Skipped]) -> list[ModuleDeclaration]:
        """The modules that name the target, and those that import them, in the order of their paths."""
        pattern = re.compile(
            rb"\b(" + b"|".join(sorted(re.escape(name).encode() for name in self.target_names)) + rb")\b"
        )
        chosen: list[ModuleDeclaration] = []
        knowledge = knowledge_of(self.target_names)
        if knowledge is not None and knowledge.environment is not None:
            prefix = re.escape(knowledge.environment.prefix).encode()
            pattern = re.compile(pattern.pattern + rb"|\b" + prefix)
        skipped += [Skipped(path, reason) for path, reason in getattr(self.client, "unlisted", ())]
        sources: dict[str, bytes] = {}
        for name, path in sorted(self.index.sources.items(), key=lambda item: item[1]):
            is_stub = path.endswith(".pyi")
            try:
                data = self.client.read(path)
            except DriftcheckError as error:
                if not is_stub:
                    skipped.append(Skipped(path, str(error)))
                continue
            self._read[path] = data
            if not is_stub:
                sources[name] = data
        # A helper that does so need not itself name the target.
        self.puts_modules_in_place = any(
            b"sys.modules" in data and _MODULES_PUT_SOMEWHERE.search(data) for data in sources.values()
        )
        wanted = {name for name, data in sources.items() if pattern.search(data)}
        wanted = with_importers(wanted | self._named_in_strings(wanted, sources), sources, self.index)
        for name in sorted(wanted, key=lambda name: self.index.sources[name]):
            path = self.index.sources[name]
            try:
                module = declare_module(name, path, sources[name], keep_tree=True)
            except UnreadableSource as error:
                skipped.append(Skipped(path, str(error)))
                continue
            self.shared[name] = module
            self.replaced_modules.update(match.group(1) for match in _MODULES_PUT_IN_PLACE.finditer(module.text))
            self.lines[path] = module.lines
            chosen.append(module)
        return chosen

    def suppressions(self) -> Iterator[Suppression]:
        """The comments that say which findings don't count, in the order of the paths that were read."""
        for path, data in self._read.items():
            yield from suppressions(path, data)
