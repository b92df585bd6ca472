"""Names of the client's that the target has taken: in classes that are mixed into the target's, and behind them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from driftcheck.compare.members import Definition, Members
from driftcheck.compare.release import Release
from driftcheck.knowledge import Mixin, knowledge_of
from driftcheck.surface.declarations import ClassDeclaration, ModuleDeclaration
from driftcheck.surface.syntax import nodes_around
from driftcheck.surface.types import Class, Module


@dataclass(frozen=True, slots=True)
class Collision:
    """A name that both have, `own` and `other`; `raises` is None where one only hides the other."""

    own: Definition
    other: Definition
    message: str
    raises: str | None


class Collisions:
    """Looks for names that only the later release has in common with the client's classes."""

    def __init__(self, target: Release, baseline: Release) -> None:
        self.members = Members(target)
        self.members_before = Members(baseline)
        knowledge = knowledge_of(target.program.target_index.top_level)
        self.mixins = knowledge.mixins if knowledge is not None else ()

    def hidden(self, class_: ClassDeclaration) -> Iterator[Collision]:
        """The methods of the client's further bases that a target's base before them hides now."""
        for owner in self.members.client_classes(class_):
            if owner is class_ or self.members.target_classes(owner):
                continue
            for name in owner.members:
                now, before = self.members.first(class_, name), self.members_before.first(class_, name)
                if not isinstance(now, Definition) or not isinstance(before, Definition) or name.startswith("__"):
                    continue
                if before.owner is owner and before.function is not None and self.members.release.is_target(now.owner):
                    message = f"{now.shown} is new and hides {before.shown} in {class_.name}"
                    yield Collision(before, now, message, None)

    def mixed_in(self, client: Sequence[ModuleDeclaration]) -> Iterator[Collision]:
        """The methods of classes that the target mixes into its own, under names that those have as well."""
        for mixin in self.mixins:
            for extension in self._named_by(mixin, client):
                for path in mixin.classes:
                    found = next(self._clashes(extension, path), None)
                    if found is not None:
                        yield found
                        break

    def _clashes(self, extension: ClassDeclaration, path: str) -> Iterator[Collision]:
        now, before = _class_at(self.members.release, path), _class_at(self.members_before.release, path)
        if now is None or before is None:
            return
        for entry in self.members.program.classes.linearize(extension):
            if not isinstance(entry, Class):
                continue
            for name in entry.declaration.members:
                own, other = self.members.definition(entry.declaration, name), self.members.first(now, name)
                if own is None or not isinstance(other, Definition) or name.startswith("__"):
                    continue
                if self.members_before.first(before, name) is None:
                    message = f"{extension.name}.{name} clashes with {other.shown}, which is new"
                    yield Collision(own, other, message, f"AssertionError: {now.name} already has an attribute {name}")

    def _named_by(self, mixin: Mixin, client: Sequence[ModuleDeclaration]) -> Iterator[ClassDeclaration]:
        """The client's classes whose dotted paths are given to a parameter, or under a key, of that name."""
        seen: dict[str, None] = {}
        for module in client:
            if not module.has_tree or mixin.parameter not in module.text:
                continue
            for node in nodes_around(module.tree, module.text, mixin.parameter):
                values: list[ast.expr] = []
                if isinstance(node, ast.keyword) and node.arg == mixin.parameter:
                    values = [node.value]
                elif isinstance(node, ast.Dict):
                    keys = zip(node.keys, node.values, strict=True)
                    values = [v for key, v in keys if isinstance(key, ast.Constant) and key.value == mixin.parameter]
                elif isinstance(node, ast.Assign):
                    values = [node.value for target in node.targets if _is_item(target, mixin.parameter)]
                seen.update((v.value, None) for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str))
        for path in seen:
            found = _class_at(self.members.release, path.replace(":", "."))
            if found is not None and not self.members.release.is_target(found):
                yield found


def _class_at(release: Release, path: str) -> ClassDeclaration | None:
    module, _, name = path.rpartition(".")
    if not isinstance(release.program.module_type(module), Module):
        return None
    found = release.program.imported_name(module, name)
    return found.declaration if isinstance(found, Class) else None


def _is_item(node: ast.expr, name: str) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == name
    return isinstance(node, ast.Attribute) and node.attr == name
