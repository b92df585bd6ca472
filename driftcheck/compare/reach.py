"""Which of the target's calls of a method can arrive at a definition of the client's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from driftcheck.compare.callsites import CallSite, classes_in
from driftcheck.compare.makers import Makers
from driftcheck.compare.members import Definition, Members, Override
from driftcheck.compare.release import Release
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration
from driftcheck.surface.libraries import is_torch_module
from driftcheck.surface.types import Class, Instance, Type, TypeVariable, Unknown, members_of

_MODULES_READ = 40
# Whose methods are called on objects of unknown type more often than anybody else's.
_BUILT_IN = (str, bytes, list, dict, set, tuple, memoryview)


class Reach:
    """Follows calls in one release of the target to the classes of the client's."""

    def __init__(self, release: Release, members: Members) -> None:
        self.release = release
        self.program = release.program
        self.members = members
        self.makers = Makers(release)
        self._specific: dict[tuple[str, ClassDeclaration], bool] = {}
        self._specific_calls: dict[tuple[str, frozenset[str], ClassDeclaration], bool] = {}

    def sites(self, override: Override) -> Iterator[tuple[CallSite, bool]]:
        """The calls that can reach an override, and whether the type of the receiver says so.

        An untyped receiver counts where the name says enough: no other family of classes has a method of that name, or
        none has one that takes these very keywords.
        """
        base = override.base
        assert base is not None
        name = override.own.name
        for site in self._calls(name, base.owner):
            if site.is_super:
                continue
            answer = self.arrives(site, override.class_)
            if answer and not self._is_bypassed(site, override.class_):
                yield site, True
            elif answer is None:
                if self._is_specific(name, base.owner) or self._is_specific_call(site, name, base.owner):
                    yield site, False

    def sites_of_member(self, class_: ClassDeclaration, definition: Definition) -> Iterator[tuple[CallSite, bool]]:
        """The calls that can reach what is put on a class of the target's, and whether the receiver's type says so."""
        name = definition.name
        for site in self._calls(name, class_):
            if site.is_super:
                continue
            answer = self._shares(site, class_, definition)
            if answer:
                yield site, True
            elif answer is None:
                owner = definition.owner
                if self._is_specific(name, owner) or self._is_specific_call(site, name, owner):
                    yield site, False

    def _calls(self, name: str, class_: ClassDeclaration) -> Iterator[CallSite]:
        """The target's calls of a method; a torch module's `forward` is what a call of the module itself runs."""
        yield from self.release.sites.of_method(name, class_.module.path)
        if name == "forward" and any(is_torch_module(path) for path in self.program.classes.external_bases(class_)):
            for site in self.release.sites.of_attributes_holding(class_.name):
                # Where nothing tells what an attribute holds, its name alone says too little.
                receiver = self.release.sites.receiver(site)
                if receiver is not None and not all(isinstance(each, Unknown) for each in members_of(receiver)):
                    yield site

    def _shares(self, site: CallSite, class_: ClassDeclaration, definition: Definition) -> bool | None:
        receiver = self.release.sites.receiver(site)
        if receiver is None:
            return False
        answers: list[bool | None] = []
        for member in members_of(receiver):
            if isinstance(member, TypeVariable) and member.bound is not None:
                member = member.bound
            if isinstance(member, Unknown | TypeVariable):
                answers.append(None)
                continue
            found = member.class_ if isinstance(member, Instance) else member
            if not isinstance(found, Class):
                continue
            # A declared base may be the class; a class below it has what is put on it unless it defines its own.
            if self._derives(class_, found.declaration):
                is_value = isinstance(member, Instance) or found.declaration is class_ or found.is_open
                answers.append(
                    is_value and not (isinstance(member, Instance) and member.exact and found.declaration is not class_)
                )
            elif self._derives(found.declaration, class_):
                first = self.members.first(found.declaration, definition.name)
                answers.append(isinstance(first, Definition) and first.owner is definition.owner)
        if True in answers:
            return True
        return None if None in answers else False

    def callers(self, class_: ClassDeclaration, function: FunctionDeclaration) -> Iterator[CallSite]:
        """The target's calls that may reach an inherited method of a class."""
        for site in self.release.sites.of_method(function.name, function.module.path):
            if site.is_super:
                continue
            answer = self.arrives(site, class_)
            if answer is None or (answer and not self._is_bypassed(site, class_)):
                yield site

    def arrives(self, site: CallSite, class_: ClassDeclaration) -> bool | None:
        """Whether the receiver of a call can be of a class, by its type; None where it has none."""
        receiver = self.release.sites.receiver(site)
        if receiver is None:
            return False
        answers = [self._may_be(member, class_, site) for member in members_of(receiver)]
        if True in answers:
            assert site.receiver is not None
            made = self.makers.classes(site.receiver, site.function)
            return made is None or class_ in made
        return None if None in answers else False

    def _may_be(self, receiver: Type, class_: ClassDeclaration, site: CallSite) -> bool | None:
        if isinstance(receiver, Unknown):
            return None
        if isinstance(receiver, TypeVariable):
            return None if receiver.bound is None else self._may_be(receiver.bound, class_, site)
        if isinstance(receiver, Instance) and isinstance(receiver.class_, Class):
            return not receiver.exact and self._derives(class_, receiver.class_.declaration)
        if isinstance(receiver, Class):
            # `Base.method(...)` means that very class, unless the class came as a value.
            is_value = receiver.is_open or self._is_receiver_parameter(site)
            return is_value and self._derives(class_, receiver.declaration)
        return False

    def _derives(self, class_: ClassDeclaration, base: ClassDeclaration) -> bool:
        linear = self.program.classes.linearize(class_)
        return any(isinstance(entry, Class) and entry.declaration is base for entry in linear)

    def _is_receiver_parameter(self, site: CallSite) -> bool:
        """True for a call on the first parameter of a class method."""
        function = site.function
        if not isinstance(site.receiver, ast.Name) or function.owner is None:
            return False
        first = next(iter([*function.node.args.posonlyargs, *function.node.args.args]), None)
        is_class_method = self.program.classes.role(function) == "classmethod"
        return is_class_method and first is not None and first.arg == site.receiver.id

    def _is_bypassed(self, site: CallSite, class_: ClassDeclaration) -> bool:
        """True where the method that holds a call on its own receiver is itself overridden by the client."""
        function: FunctionDeclaration | None = site.function
        while function is not None and function.outer is not None:
            function = function.outer
        if function is None or function.owner is None or not _is_on_self(site, function):
            return False
        found = self.members.first(class_, function.name)
        if found is None or isinstance(found, str) or found.function is function:
            return False
        # An override that calls on to its base still runs the base's body.
        inner = found.function
        return inner is None or f".{function.name}(" not in inner.source

    def _is_specific(self, name: str, base: ClassDeclaration) -> bool:
        """True where every class of the target that has a method of that name is of the base's family."""
        key = (name, base)
        found = self._specific.get(key)
        if found is None:
            found = self._specific[key] = self._find_specific(name, base)
        return found

    def _find_specific(self, name: str, base: ClassDeclaration) -> bool:
        definers = self.release.sites.definers(name) if "_" in name.strip("_") else None
        if definers is None:
            # A single word is a method of many a library's objects.
            return False
        root = self._root(name, base)
        return all(self._derives(definer, root) for definer in definers)

    def _root(self, name: str, base: ClassDeclaration) -> ClassDeclaration:
        """The topmost class of a base's order that has a method of that name."""
        linear = self.program.classes.linearize(base)
        roots = [e.declaration for e in linear if isinstance(e, Class) and name in e.declaration.members]
        return roots[-1] if roots else base

    def _is_specific_call(self, site: CallSite, name: str, base: ClassDeclaration) -> bool:
        """True where every method of that name which declares the keywords of a call is of the base's family."""
        keywords = frozenset(a.keyword for a in site.arguments.keywords if a.keyword is not None and not a.unpacked)
        if not keywords or any(hasattr(kind, name) for kind in _BUILT_IN):
            return False
        key = (name, keywords, base)
        found = self._specific_calls.get(key)
        if found is None:
            found = self._specific_calls[key] = self._find_specific_call(name, keywords, base)
        return found

    def _find_specific_call(self, name: str, keywords: frozenset[str], base: ClassDeclaration) -> bool:
        modules = self.release.sites.modules_defining(name, keywords)
        if len(modules) > _MODULES_READ:
            return False
        root = self._root(name, base)
        is_taken = False
        for module in modules:
            for class_ in classes_in(module):
                definition = self.members.definition(class_, name)
                signature = definition.signature if definition is not None else None
                if signature is None or not keywords <= {parameter.name for parameter in signature.parameters}:
                    continue
                if not self._derives(class_, root):
                    return False
                is_taken = True
        return is_taken


def _is_on_self(site: CallSite, function: FunctionDeclaration) -> bool:
    first = next(iter([*function.node.args.posonlyargs, *function.node.args.args]), None)
    return isinstance(site.receiver, ast.Name) and first is not None and site.receiver.id == first.arg
