"""Methods of the client's that override nothing any more: whoever called the base's no longer calls them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from driftcheck.compare.counterparts import near_name
from driftcheck.compare.members import Definition, Members
from driftcheck.compare.release import Release
from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration
from driftcheck.surface.types import Class
from driftcheck.surface.words import encoded


@dataclass(frozen=True, slots=True)
class DeadOverride:
    """A method that the base had at the baseline and has not with the target.

    `class_` is the base as the target has it. `successor` is a method of a like name that only the target has.
    `is_early` where the target is the older release: what is not there may have come later, and not be missed.
    """

    own: Definition
    base: Definition
    class_: ClassDeclaration
    successor: str | None
    is_early: bool

    @property
    def message(self) -> str:
        """What is wrong, in words."""
        if self.is_early:
            found = f"{self.own.shown}() overrides nothing yet, and nobody calls it: {self.base.shown} came later"
            return found + (f"; {self.successor} is there instead" if self.successor is not None else "")
        found = f"{self.own.shown}() overrides nothing any more, and nobody calls it: {self.base.shown} is gone"
        return found + (f"; {self.successor} is new" if self.successor is not None else "")


class DeadOverrides:
    """Looks for methods that only the baseline's bases had."""

    def __init__(self, target: Release, baseline: Release, client: list[ModuleDeclaration]) -> None:
        self.target = target
        self.members = Members(target)
        self.members_before = Members(baseline)
        self.client = client
        self.is_early = target.is_older_than(baseline)
        self._uses: dict[str, bool] = {}

    def find(self, class_: ClassDeclaration, owner: ClassDeclaration, name: str) -> DeadOverride | None:
        """The dead override by that name in the body of `owner`, seen from a class that derives from it."""
        bases = self.members.target_classes(class_)
        if name.startswith("__") or not bases:
            return None
        before = self.members_before.override(class_, owner, name)
        if before is None or before.base is None or before.own.function is None:
            return None
        now = self.members.override(class_, owner, name)
        if now is None or now.base is not None or now.hidden_by:
            return None
        if self._has_another_way(class_, name) or self._is_used(name):
            return None
        symbol = before.base.owner.symbol
        base = next((each for each in bases if each.symbol == symbol), bases[0])
        return DeadOverride(before.own, before.base, base, self._successor(class_, name), self.is_early)

    def _has_another_way(self, class_: ClassDeclaration, name: str) -> bool:
        """True where the target may still reach the method: it stores the name, asks for it by string, or calls it."""
        for base in self.members.target_classes(class_):
            if self.target.program.classes.stored_names(base).get(name):
                return True
        word = re.escape(encoded(name))
        return self.target.sites.mentions(re.compile(rb"\.%s\b|[\"']%s[\"']" % (word, word)), name)

    def _is_used(self, name: str) -> bool:
        """True where the client itself calls it, or names it in a string."""
        found = self._uses.get(name)
        if found is None:
            word = re.escape(name)
            pattern = re.compile(
                rf"(?<!super\(\))\.{word}\b|[\"'](?:[\w.]+\.)?{word}[\"']|\b{word}\s*=[^=]|=\s*{word}\b"
            )
            found = any(name in module.text and pattern.search(module.text) for module in self.client)
            self._uses[name] = found
        return found

    def _successor(self, class_: ClassDeclaration, name: str) -> str | None:
        """A method that the bases have now and had not, of a like name, that the client's classes don't define."""
        old = set(self._names(self.members_before, class_))
        own = {n for entry in self.members.client_classes(class_) for n in entry.members}
        new = [candidate for candidate in self._names(self.members, class_) if candidate not in old | own]
        return near_name(name, new)

    def _names(self, members: Members, class_: ClassDeclaration) -> dict[str, None]:
        names: dict[str, None] = {}
        for entry in members.program.classes.linearize(class_):
            if isinstance(entry, Class) and members.release.is_target(entry.declaration):
                for name, bindings in entry.declaration.members.items():
                    if any(binding.function is not None for binding in bindings):
                        names[name] = None
        return names
