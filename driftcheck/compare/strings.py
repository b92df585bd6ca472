"""Strings that name things of the target: dotted paths, and methods called by name."""

from __future__ import annotations

import re
from typing import Literal

from driftcheck.knowledge import Rpc
from driftcheck.surface.program import Program
from driftcheck.surface.types import Absent, Class, Function, Module, Type, Unknown, members_of

Answer = Literal["fits", "broken", "unresolved"]
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)?")


def is_path(text: str) -> bool:
    """True for `package.module.name` and `package.module:name`."""
    return len(text) < 300 and _PATH.fullmatch(text) is not None


class Strings:
    """Judges strings against one release."""

    def __init__(self, program: Program, rpc: Rpc | None) -> None:
        self.program = program
        self.rpc = rpc

    def path(self, text: str) -> tuple[Answer, Absent | None]:
        """Whether a dotted path leads to something, and what is not there where it does not."""
        parts = text.replace(":", ".").split(".")
        split = len(parts)
        while split > 1 and not self.program.has_module(".".join(parts[:split])):
            split -= 1
        found: Type = Module(".".join(parts[:split]))
        for name in parts[split:]:
            found = self.program.inference.attribute(found, name)
            if isinstance(found, Absent):
                if isinstance(self.program.module_type(f"{found.owner}.{name}"), Unknown):
                    return "unresolved", None
                return "broken", found
            if any(isinstance(member, Unknown) for member in members_of(found)):
                return ("fits", None) if name == parts[-1] else ("unresolved", None)
        return "fits", None

    def definition(self, text: str) -> str:
        """The canonical dotted path of the function or class that a path leads to, else the path itself."""
        parts = text.replace(":", ".").split(".")
        split = len(parts)
        while split > 1 and not self.program.has_module(".".join(parts[:split])):
            split -= 1
        found: Type = Module(".".join(parts[:split]))
        for name in parts[split:]:
            found = self.program.inference.attribute(found, name)
        return found.declaration.symbol if isinstance(found, Class | Function) else ".".join(parts)

    def is_rpc(self, method: str) -> bool:
        """True for a method whose first argument names a method of a worker."""
        return self.rpc is not None and method in self.rpc.methods

    def worker_method(self, name: str) -> Answer:
        """Whether some class that answers such calls has the method."""
        if self.rpc is None:
            return "unresolved"
        seen = False
        for path in self.rpc.classes:
            module, _, class_name = path.rpartition(".")
            if not self.program.has_module(module):
                continue
            class_ = self.program.imported_name(module, class_name)
            if not isinstance(class_, Class):
                continue
            seen = True
            if not isinstance(self.program.classes.attribute(class_, name), Absent):
                return "fits"
        return "broken" if seen else "unresolved"
