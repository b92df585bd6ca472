"""Whether a release knows the environment variables that a client reads or sets."""

from __future__ import annotations

from driftcheck.knowledge import Environment
from driftcheck.surface.program import Program
from driftcheck.surface.words import encoded


class Variables:
    """The environment variables of one release of the target."""

    def __init__(self, program: Program, environment: Environment | None) -> None:
        self.program = program
        self.environment = environment
        self._mentioned: dict[str, bool] = {}

    def concerns(self, name: str) -> bool:
        """True for a variable that looks like one of the target's."""
        return self.environment is not None and name.startswith(self.environment.prefix)

    def symbol(self, name: str) -> str:
        """The dotted path under which the target would know it."""
        return f"{self.environment.module}.{name}" if self.environment is not None else name

    def knows(self, name: str) -> bool | None:
        """Whether the release knows the variable; None where the table of its variables can't be read."""
        if self.environment is None:
            return None
        module = self.program.module(self.environment.module)
        if module is None:
            return None
        exports = self.program.module_getattr(module)
        if exports is None or not exports.names:
            return None
        # A variable that some other file reads by its own name is known as well.
        return name in exports.names or name in module.names or self._is_mentioned(name)

    def _is_mentioned(self, name: str) -> bool:
        found = self._mentioned.get(name)
        if found is None:
            quoted = [encoded(f"{mark}{name}{mark}") for mark in ('"', "'")]
            found = any(quoted[0] in data or quoted[1] in data for _, data in self.program.target_holding(name))
            self._mentioned[name] = found
        return found
