"""Judges single usages against one release: each fits, is broken, or cannot be judged, with the reason."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from driftcheck.compare.bind import BindingProblem, bind
from driftcheck.compare.deprecation import deprecation_of
from driftcheck.compare.environment import Variables
from driftcheck.compare.forwarding import Forwarding, Refusal
from driftcheck.compare.kinds import form_of
from driftcheck.compare.returns import Returns
from driftcheck.compare.strings import Strings, is_path
from driftcheck.knowledge import attributes_of_libraries, knowledge_of
from driftcheck.model import Argument, Arguments, ParameterKind
from driftcheck.surface.classes import ADDS_MEMBERS, STORES_BY_NAME
from driftcheck.surface.declarations import ClassDeclaration, FunctionDeclaration, ModuleDeclaration
from driftcheck.surface.heirs import Heirs
from driftcheck.surface.libraries import OUTSIDE
from driftcheck.surface.program import Program
from driftcheck.surface.signatures import Callee, Signatures
from driftcheck.surface.types import (
    NONE,
    Absent,
    Class,
    Dictionary,
    External,
    Function,
    Instance,
    Lambda,
    Module,
    Partial,
    Super,
    Type,
    TypeVariable,
    Unknown,
    members_of,
)
from driftcheck.surface.types import (
    Literal as LiteralType,
)
from driftcheck.usage.arguments import arguments_of
from driftcheck.usage.usages import (
    AttributeUsage,
    CallUsage,
    ClassUsage,
    EnvironmentUsage,
    FamilyUsage,
    ImportUsage,
    PatchUsage,
    ReferenceUsage,
    ReturnUsage,
    StringUsage,
    Usage,
)

Status = Literal["fits", "broken", "unresolved"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one release says of one usage.

    `absent` says what is not there, for imports and attributes; `problems` what does not bind, for calls, together with
    `callee`. `is_certain` is False where the receiver's type is only declared, so that the value at run time may know
    better. `symbol` is the canonical dotted path in the target. `is_wrapped` is True where only what a wrapper hides
    refuses the call, `is_partial` where some of the things that may be called take it, `is_own`
    where the call is the client's own affair, `is_handed_on` where another callable refuses what this one passes on to
    it, `form` is the sort of thing met (see `kinds`), `confirmed_by` says what in the target's interpreter agrees.
    `deprecation` is what the target says of a thing that is to go.
    """

    status: Status
    symbol: str = ""
    reason: str = ""
    absent: Absent | None = None
    callee: Callee | None = None
    arguments: Arguments | None = None
    problems: tuple[BindingProblem, ...] = ()
    is_certain: bool = True
    has_receiver: bool = False
    is_wrapped: bool = False
    is_partial: bool = False
    is_own: bool = False
    is_handed_on: bool = False
    confirmed_by: str | None = None
    form: str = ""
    deprecation: str | None = None


class Judge:
    """Judges usages against the target of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.signatures = Signatures(program)
        self.heirs = Heirs(program, with_client=True)
        self.forwarding = Forwarding(program, self.signatures)
        self.returns = Returns(program)
        knowledge = knowledge_of(program.target_index.top_level)
        self.strings = Strings(program, knowledge.rpc if knowledge is not None else None)
        # The methods of the client's own classes, any of which may extend a worker.
        self.client_methods: set[str] = set()
        self._target_bases: dict[ClassDeclaration, Class | None] = {}
        self.variables = Variables(program, knowledge.environment if knowledge is not None else None)

    def verdict(self, usage: Usage) -> Verdict | None:
        """What the release says of a usage, None where the usage is no affair of the target's."""
        if isinstance(usage, ImportUsage):
            return self.imported(usage)
        if isinstance(usage, AttributeUsage):
            return self.attribute(usage)
        if isinstance(usage, CallUsage):
            return self.call(usage)
        if isinstance(usage, ReturnUsage):
            return self.returned(usage)
        if isinstance(usage, EnvironmentUsage):
            return self.variable(usage)
        if isinstance(usage, StringUsage):
            return self.string(usage)
        if isinstance(usage, ClassUsage):
            return Verdict("fits") if self._derives_from_target(usage) else None
        if isinstance(usage, PatchUsage):
            return Verdict("fits")
        if isinstance(usage, FamilyUsage):
            return Verdict("fits", is_own=True)
        if isinstance(usage, ReferenceUsage):
            return Verdict("fits", form=form_of(usage.type), symbol=_symbol_of(usage.type))
        return None

    # What concerns the target

    def concerns(self, type_: Type) -> bool:
        """True where a value comes from the target, or from a class of the client's that derives from one of it."""
        return any(map(self._concerns, members_of(type_)))

    def _concerns(self, type_: Type) -> bool:
        if isinstance(type_, (Unknown, External)):
            return False
        if isinstance(type_, Module):
            return self.program.is_target(type_.name)
        if isinstance(type_, Class):
            return self.target_base(type_) is not None
        if isinstance(type_, Instance):
            return isinstance(type_.class_, Class) and self.target_base(type_.class_) is not None
        if isinstance(type_, Function):
            return self.program.is_target(type_.declaration.module.name)
        if isinstance(type_, Absent):
            return self.program.is_target(type_.owner)
        if isinstance(type_, Super):
            return self.target_base(type_.class_) is not None
        if isinstance(type_, Partial):
            return self.concerns(type_.function)
        if isinstance(type_, Lambda):
            return self.program.is_target(type_.module.name)
        if isinstance(type_, TypeVariable):
            return type_.bound is not None and self.concerns(type_.bound)
        return False

    def _derives_from_target(self, usage: ClassUsage) -> bool:
        declaration = usage.declaration
        return not self.program.is_target(declaration.module.name) and self.target_base(Class(declaration)) is not None

    def target_base(self, class_: Class) -> Class | None:
        """The class itself where it is the target's, else the first of its bases that is."""
        declaration = class_.declaration
        if declaration not in self._target_bases:
            self._target_bases[declaration] = next(
                (
                    base
                    for base in self.program.classes.linearize(declaration)
                    if isinstance(base, Class) and self.program.is_target(base.declaration.module.name)
                ),
                None,
            )
        return self._target_bases[declaration]

    # Imports

    def imported(self, usage: ImportUsage) -> Verdict | None:
        """The verdict on an import, None where it is not of the target."""
        if not self.program.is_target(usage.module):
            return None
        path = f"{usage.module}.{usage.name}" if usage.name else usage.module
        for member in members_of(usage.result):
            if isinstance(member, Absent):
                return Verdict("broken", path, absent=member)
            if isinstance(member, Unknown) and not _is_there(member):
                return Verdict("unresolved", path, member.reason)
        return Verdict("fits", path, deprecation=self._shim(usage.module, usage.name) if usage.name else None)

    def _shim(self, module: str, name: str) -> str | None:
        """What a module says when it answers for a deprecated name; None where it says nothing."""
        declaration = self.program.module(module)
        if declaration is None or name in declaration.names:
            return None
        exports = self.program.module_getattr(declaration)
        found = exports.deprecated.get(name) if exports is not None else None
        return found.message if found is not None else None

    # Attributes

    def attribute(self, usage: AttributeUsage) -> Verdict | None:
        """The verdict on an attribute, None where its receiver has nothing to do with the target."""
        receivers = [member for member in members_of(usage.receiver) if member != NONE]
        concerned = [member for member in receivers if self._concerns(member)]
        if not concerned or usage.is_stored:
            return None
        if usage.is_protocol and not any(isinstance(member, Instance) for member in concerned):
            return None
        results = members_of(usage.result)
        absent = next((result for result in results if isinstance(result, Absent)), None)
        if absent is None:
            unknown = next((result for result in results if isinstance(result, Unknown)), None)
            symbol = self._attribute_symbol(concerned[0], usage.name)
            if unknown is not None and len(results) == 1 and not _is_harmless(unknown):
                return Verdict("unresolved", symbol, unknown.reason, self.hidden(concerned, usage.name, unknown))
            receiver = concerned[0]
            shim = self._shim(receiver.name, usage.name) if isinstance(receiver, Module) else None
            return Verdict("fits", symbol, form=form_of(usage.result), deprecation=shim)
        if len(concerned) < len(receivers):
            return Verdict("unresolved", absent.owner, "one of several types")
        owner = self._absent_owner(concerned[0], absent)
        certain = all(_is_certain(member) for member in concerned)
        return Verdict("broken", f"{owner}.{usage.name}", absent=absent, is_certain=certain)

    def extended(self, usage: AttributeUsage) -> list[tuple[str, str]]:
        """The classes and modules of the target that a store puts an attribute on, as (owner, name)."""
        owners: list[tuple[str, str]] = []
        if not any(isinstance(member, Module | Class) for member in members_of(usage.receiver)):
            # What an instance holds may change, and what it held stays what it is.
            return owners
        for result in members_of(usage.result):
            # What is replaced is replaced for those who import it from where it is defined, too.
            if isinstance(result, Class | Function) and result.declaration.name == usage.name:
                owners.append((result.declaration.symbol.rpartition(".")[0], usage.name))
        for member in members_of(usage.receiver):
            if isinstance(member, Module) and self.program.is_target(member.name):
                owners.append((member.name, usage.name))
            elif isinstance(member, Class) and self.program.is_target(member.declaration.module.name):
                owners.append((member.declaration.symbol, usage.name))
        return owners

    def extended_by(self, usage: CallUsage) -> list[tuple[str, str]]:
        """The target's enumeration that a helper of another library is told to add a member to, as (class, name)."""
        arguments = usage.node.args
        if not isinstance(usage.callee, External) or usage.first is None or len(arguments) < 2:
            return []
        name = arguments[1]
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or not isinstance(usage.first, Class):
            return []
        if not self.program.classes.is_enum(usage.first.declaration):
            return []
        return [(usage.first.declaration.symbol, name.value)]

    def stored(self, usage: AttributeUsage) -> list[tuple[str, str]]:
        """The classes on whose instances a store puts an attribute, as (class, name)."""
        return [
            (member.class_.declaration.symbol, usage.name)
            for member in members_of(usage.receiver)
            if isinstance(member, Instance) and isinstance(member.class_, Class)
        ]

    def hidden(self, concerned: Sequence[Type], name: str, unknown: Unknown) -> Absent | None:
        """What is absent where only a base outside the target, or a member added while it runs, may still be it.

        If the target's own class had it in the baseline, that base did not, and does not now.
        """
        if len(concerned) != 1 or not unknown.reason.endswith(("is outside the target", ADDS_MEMBERS, STORES_BY_NAME)):
            return None
        receiver = concerned[0]
        class_ = receiver.class_ if isinstance(receiver, Instance) else receiver
        base = self.target_base(class_) if isinstance(class_, Class) else None
        if base is None or not isinstance(class_, Class):
            return None
        outside = set(self.program.classes.external_bases(base.declaration))
        if not outside.issuperset(self.program.classes.external_bases(class_.declaration)):
            # A base that only the client adds was never asked.
            return None
        if any(name in attributes_of_libraries().get(path, ()) for path in outside):
            return None
        for entry in self.program.classes.linearize(base.declaration):
            # A quoted name may be what `register_buffer`, `add_module` or a table of properties makes of it.
            if isinstance(entry, Class) and self.program.quotes(entry.declaration, name):
                return None
        return Absent(base.declaration.symbol, name)

    def _attribute_symbol(self, receiver: Type, name: str) -> str:
        class_ = receiver.class_ if isinstance(receiver, Instance) else receiver
        if isinstance(class_, Module):
            return f"{class_.name}.{name}"
        if isinstance(class_, Class):
            for base in self.program.classes.linearize(class_.declaration):
                if not isinstance(base, Class):
                    continue
                if name in base.declaration.members or next(self.program.classes.stores(base.declaration, name), None):
                    return f"{base.declaration.symbol}.{name}"
            # Another library's base has it, or somebody else puts it there.
            return ""
        return name

    def _absent_owner(self, receiver: Type, absent: Absent) -> str:
        class_ = receiver.class_ if isinstance(receiver, Instance | Super) else receiver
        if isinstance(class_, Class):
            base = self.target_base(class_)
            if base is not None:
                return base.declaration.symbol
        return absent.owner

    # Calls

    def call(self, usage: CallUsage) -> Verdict | None:
        """The verdict on a call, None where what is called has nothing to do with the target."""
        if isinstance(usage.callee, External) and usage.callee.path.startswith("functools.partial"):
            return self._partial(usage)
        verdicts: list[Verdict] = []
        members = [member for member in members_of(usage.callee) if member != NONE]
        for member in members:
            verdict = self._call(member, usage)
            if verdict is not None:
                verdicts.append(verdict)
        if not verdicts:
            return None
        if len(verdicts) < len(members) and any(verdict.status == "broken" for verdict in verdicts):
            return Verdict("unresolved", verdicts[0].symbol, "one of several types")
        broken = [verdict for verdict in verdicts if verdict.status == "broken"]
        unresolved = [verdict for verdict in verdicts if verdict.status == "unresolved"]
        if unresolved:
            return unresolved[0]
        if broken and len(broken) < len(verdicts):
            fitting = next(verdict for verdict in verdicts if verdict.status == "fits")
            if all(verdict.symbol == fitting.symbol for verdict in broken):
                # Definitions in several branches of the target: which one runs, the target decides.
                return fitting
            return replace(broken[0], is_partial=True, is_certain=False)
        return verdicts[0]

    def _call(self, callee: Type, usage: CallUsage) -> Verdict | None:
        partial: Partial | None = None
        if isinstance(callee, Partial):
            partial, callee = callee, callee.function
        if isinstance(callee, Unknown):
            return Verdict("unresolved", "", callee.reason) if usage.is_rooted and callee != OUTSIDE else None
        if isinstance(callee, Absent):
            return None
        if not self._concerns(callee):
            handed_on = self._handed_on(callee, usage) if isinstance(callee, Function | Class) else None
            if handed_on is not None:
                return handed_on
            # What the target inherits from another library is there (torch.nn.Module.to); all else is not its affair.
            return Verdict("fits", callee.path) if usage.is_member and isinstance(callee, External) else None
        found = self.signatures.callee(callee)
        if isinstance(found, Unknown):
            return Verdict("unresolved", "", found.reason)
        home = found.declaration if isinstance(found.declaration, ModuleDeclaration) else found.declaration.module
        if isinstance(found.declaration, ClassDeclaration) and not self.program.is_target(home.name):
            inherited = self._inherited_fields(found.declaration)
            if inherited is not None:
                return self._bound(replace(found, symbol=inherited), self.arguments(usage), callee)
        if not self.program.is_target(home.name):
            # The client's own override or constructor answers: an affair of the target's only where it hands on.
            return self._handed_on(callee, usage) if isinstance(callee, Function | Class) else None
        if not self.program.is_target(found.symbol):
            # A class of the client's that inherits its constructor.
            maker = found.declaration
            if isinstance(maker, FunctionDeclaration):
                found = replace(found, symbol=maker.symbol)
            elif isinstance(maker, ClassDeclaration):
                found = replace(found, symbol=f"{maker.symbol}.__init__")
        arguments = self.arguments(usage)
        if partial is not None:
            arguments = _joined(arguments_of(partial.call), arguments)
        return self._bound(found, arguments, callee)

    def _inherited_fields(self, class_: ClassDeclaration) -> str | None:
        """The constructor of the target's class whose fields a class of the client's inherits into its own."""
        if "__init__" in class_.members or "__new__" in class_.members:
            return None
        base = self.target_base(Class(class_))
        return f"{base.declaration.symbol}.__init__" if base is not None else None

    def _bound(self, found: Callee, arguments: Arguments, callee: Type) -> Verdict:
        has_receiver = isinstance(callee, Function) and callee.skips_first
        problems = bind(found.signature, arguments, callee=found.name, has_receiver=has_receiver)
        if not problems:
            owner = callee.receiver if isinstance(callee, Function) else None
            owner = owner.class_ if isinstance(owner, Instance) else owner
            receiver = owner if isinstance(owner, Class) else None
            refusals = self.forwarding.refusals(found, arguments, receiver=receiver)
            refused = self._refused(refusals or self.forwarding.missing(found, arguments), found, arguments)
            if refused is not None:
                return refused
        return Verdict(
            "broken" if problems else "fits",
            found.symbol,
            callee=found,
            arguments=arguments,
            problems=problems,
            is_certain=not found.is_declared and not (isinstance(callee, Class) and callee.is_open),
            has_receiver=has_receiver,
            deprecation=deprecation_of(found.declaration),
        )

    # Results, variables

    def returned(self, usage: ReturnUsage) -> Verdict:
        """The verdict on what is done with a result."""
        answer, text = self.returns.judge(usage)
        callee = self.signatures.callee(usage.callee)
        found = callee if isinstance(callee, Callee) else None
        return Verdict(answer, found.symbol if found is not None else "", text, callee=found)

    def variable(self, usage: EnvironmentUsage) -> Verdict | None:
        """The verdict on an environment variable, None for one that is not the target's."""
        if not self.variables.concerns(usage.name):
            return None
        known = self.variables.knows(usage.name)
        symbol = self.variables.symbol(usage.name)
        if known is None:
            return Verdict("unresolved", symbol, "the release's variables can't be read")
        return Verdict("fits" if known else "broken", symbol)

    def string(self, usage: StringUsage) -> Verdict | None:
        """The verdict on a string that names something of the target."""
        if usage.role == "method":
            if not self.strings.is_rpc(usage.caller) or usage.text in self.client_methods:
                return None
            return Verdict(self.strings.worker_method(usage.text), usage.text, "the workers' classes are not there")
        if not is_path(usage.text):
            return None
        answer, absent = self.strings.path(usage.text)
        return Verdict(answer, usage.text.replace(":", "."), "path into what can't be read", absent)

    def _handed_on(self, callee: Function | Class, usage: CallUsage) -> Verdict | None:
        """The verdict on keywords that the client's own function passes on to the target."""
        if not usage.node.keywords:
            return None
        found = self.signatures.callee(callee)
        if isinstance(found, Unknown) or all(
            p.kind is not ParameterKind.VAR_KEYWORD for p in found.signature.parameters
        ):
            return None
        arguments = self.arguments(usage)
        refusals = [r for r in self.forwarding.refusals(found, arguments) if self.program.is_target(r.callee.symbol)]
        # Without a refusal the call is the client's own affair; the baseline is still asked, and says that it fits.
        return self._refused(tuple(refusals), found, arguments) or Verdict("fits", is_own=True)

    def _refused(self, refusals: tuple[Refusal, ...], found: Callee, arguments: Arguments) -> Verdict | None:
        if not refusals:
            return None
        callee = refusals[0].callee
        problems = tuple(refusal.problem for refusal in refusals if refusal.callee.symbol == callee.symbol)
        return Verdict(
            "broken",
            callee.symbol,
            callee=callee,
            arguments=arguments,
            problems=problems,
            is_certain=not found.is_declared and all(refusal.is_certain for refusal in refusals),
            is_handed_on=True,
        )

    def _partial(self, usage: CallUsage) -> Verdict | None:
        if not usage.node.args or usage.first is None or not self.concerns(usage.first):
            return None
        found = self.signatures.callee(usage.first)
        if isinstance(found, Unknown) or not self.program.is_target(found.symbol):
            return None
        given = arguments_of(usage.node, locate=usage.locate)
        # What is still to come is unknown, so only what no later argument can mend counts.
        more = Argument("…", unpacked=True)
        arguments = Arguments((*given.positional[1:], more), (*given.keywords, more))
        return self._bound(found, arguments, usage.first)

    def arguments(self, usage: CallUsage) -> Arguments:
        """The arguments of a call, dicts whose keys are known spread out."""

        def follow(node: ast.expr) -> ast.expr | None:
            type_ = usage.unpacked.get(id(node))
            if not isinstance(type_, Dictionary):
                return None
            keys: list[ast.expr | None] = [ast.Constant(key) for key, _ in type_.items]
            values: list[ast.expr] = [
                ast.Constant(None) if value == LiteralType(None) else ast.Name("…") for _, value in type_.items
            ]
            if type_.is_open:
                keys.append(None)
                values.append(ast.Name("…"))
            return ast.Dict(keys, values)

        return arguments_of(usage.node, locate=usage.locate, follow=follow if usage.unpacked else None)


def _symbol_of(type_: Type) -> str:
    if isinstance(type_, Class | Function):
        return type_.declaration.symbol
    return type_.name if isinstance(type_, Module) else ""


def _joined(first: Arguments, then: Arguments) -> Arguments:
    """The arguments that a partial object hands on: its own, then the call's, which win."""
    given = {argument.keyword for argument in then.keywords}
    kept = tuple(argument for argument in first.keywords if argument.keyword not in given or argument.keyword is None)
    return Arguments((*first.positional[1:], *then.positional), (*kept, *then.keywords))


def _is_there(unknown: Unknown) -> bool:
    """True where only the type of a name is unknown, not whether there is such a name."""
    return not unknown.reason.startswith(("module ", "star import", "compiled or generated", "name that a function"))


def _is_certain(receiver: Type) -> bool:
    if isinstance(receiver, Instance):
        return receiver.exact
    if isinstance(receiver, Class):
        return not receiver.is_open
    return isinstance(receiver, Module)


def _is_harmless(unknown: Unknown) -> bool:
    """True for what is there though its type is not known: slots, names of `object`, declared values."""
    doubtful = ("base", "module __getattr__", "star import", "metaclass", "class decorator")
    return not unknown.reason.startswith(doubtful) and not unknown.reason.endswith((ADDS_MEMBERS, STORES_BY_NAME))
