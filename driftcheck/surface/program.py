"""The program under audit: the target's modules and the client's, loaded on demand, and what their names mean."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from driftcheck.surface.annotations import Annotations
from driftcheck.surface.class_decorators import ClassDecorators
from driftcheck.surface.classes import Classes
from driftcheck.surface.conditional_definitions import ConditionalDefinitions
from driftcheck.surface.declarations import (
    Attempt,
    Binding,
    ClassDeclaration,
    Condition,
    Context,
    FunctionDeclaration,
    ModuleDeclaration,
    UnreadableSource,
    declare_locals,
    declare_module,
)
from driftcheck.surface.exports import ModuleGetattr
from driftcheck.surface.facts import Facts
from driftcheck.surface.families import Families
from driftcheck.surface.heirs import Heirs
from driftcheck.surface.inference import Inference
from driftcheck.surface.installed import Installations
from driftcheck.surface.modules import ModuleIndex
from driftcheck.surface.name_chains import NameChains
from driftcheck.surface.scopes import ClassScope, FunctionScope, ModuleScope, Scope
from driftcheck.surface.shelf import Answer, Shelf
from driftcheck.surface.types import (
    NONE,
    Absent,
    Class,
    External,
    Module,
    Type,
    Unknown,
    builtin,
    inexact,
    is_unknown,
    members_of,
    union,
)
from driftcheck.surface.words import Source, Words, encoded, words_of
from driftcheck.tree import SourceTree

# Compiled or generated modules, which a source tree or a wheel for other hardware does not list.
_GENERATED = re.compile(r"(^|\.)(_\w*C|_C_\w+|\w+_C|\w+_pb2(_grpc)?|_version|_?commit_id)$")
_DYNAMIC_MODULE = re.compile(
    r"globals\(\)\s*\[\s*[^\"'\s\]][^\]]*\]\s*=[^=]|(globals|vars)\(\)\.update|setattr\(\s*sys\.modules"
    r"|=\s*sys\.modules\[__name__\]\s*$|sys\.modules\[__name__\]\s*=|sys\.modules\[__name__\]\.__dict__",
    re.MULTILINE,
)
_MODULE_ATTRIBUTES = frozenset(
    ("__name__", "__file__", "__doc__", "__dict__", "__path__", "__package__", "__spec__", "__loader__", "__all__",
     "__annotations__", "__builtins__", "__cached__", "__class__", "__getattribute__", "__dir__")
)  # fmt: skip
_REGISTRATION = re.compile(rb"""register_(?:parameter|buffer)\(\s*["'](\w+)["']""")
_CYCLIC = Unknown("cyclic definition")
NAME_ERRORS = frozenset(("ImportError", "Exception", "BaseException"))
IMPORT_ERRORS = NAME_ERRORS | {"ModuleNotFoundError"}
ATTRIBUTE_ERRORS = frozenset(("AttributeError", "Exception", "BaseException"))


class Program:
    """The target and the client as one body of code.

    Nothing is read before it is asked for. `unreadable` collects the modules that could not be parsed, by path.
    """

    def __init__(
        self,
        target: SourceTree,
        client: SourceTree | None = None,
        others: Sequence[SourceTree] = (),
        *,
        shared: dict[str, ModuleDeclaration] | None = None,
        client_words: Words | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self.target = target
        self.client = client
        self.target_index = ModuleIndex(target)
        self.client_index = self.target_index if client is target else ModuleIndex(client) if client else None
        self._indexes = [index for index in (self.client_index, self.target_index) if index is not None]
        self._indexes += [ModuleIndex(tree) for tree in others]
        self.unreadable: dict[str, str] = {}
        # Modules that the client itself writes into sys.modules.
        self.replaced_modules: set[str] = set()
        # The client's modules are the same whichever release they are held against.
        self._modules: dict[str, ModuleDeclaration | None] = dict(shared) if shared is not None else {}
        self._stores: dict[str, bool] = {}
        self._registered: frozenset[str] | None = None
        self._shelf = shelf
        self._read: dict[str, bytes] = {}
        self._target_words = Words(lambda: sorted(self.target_index.sources.values()), self._target_source, shelf)
        self._client_words = client_words or words_of(self.client_index)
        self._names: dict[tuple[str, str, bool], Type] = {}
        self._resolving: set[tuple[str, str, bool]] = set()
        self._attempts: dict[int, bool | None] = {}
        self._attempting: set[int] = set()
        self._function_scopes: dict[FunctionDeclaration, FunctionScope] = {}
        self._class_sources: dict[ClassDeclaration, str] = {}
        self._getattrs: dict[str, ModuleGetattr | None] = {}
        self.facts = Facts(self)
        self.conditional = ConditionalDefinitions(self)
        self.classes = Classes(self)
        self.annotations = Annotations(self)
        self.inference = Inference(self)
        self.class_decorators = ClassDecorators(self)
        self.heirs = Heirs(self)
        self.installations = Installations(self)
        self.families = Families(self)
        self.name_chains = NameChains(self)

    def kept(self, question: str, type_: type[Answer], asked: Callable[[], Answer]) -> Answer:
        """An answer that the target alone decides, from its shelf; asked anew where the client has a part in it."""
        index = self.client_index
        is_apart = index is None or index.top_level.isdisjoint(self.target_index.top_level)
        if self._shelf is None or not is_apart or any(map(self.is_target, self.replaced_modules)):
            return asked()
        return self._shelf.answer(question, type_, asked)

    # Modules

    def is_target(self, name: str) -> bool:
        """True where a dotted path leads into the target."""
        return name.partition(".")[0] in self.target_index.top_level

    def is_client(self, name: str) -> bool:
        """True where a dotted path leads into the client."""
        return self.client_index is not None and name.partition(".")[0] in self.client_index.top_level

    def _index_of(self, name: str) -> ModuleIndex | None:
        for index in self._indexes:
            if name in index:
                return index
        return None

    def has_module(self, name: str) -> bool:
        """True where the program holds a module of that name."""
        return self._index_of(name) is not None

    def is_inside(self, name: str) -> bool:
        """True where the program ought to hold a module of that name, whether it does or not."""
        top = name.partition(".")[0]
        return any(top in index.top_level for index in self._indexes)

    def module(self, name: str) -> ModuleDeclaration | None:
        """The declarations of a module; None where it has no readable source."""
        if name in self._modules:
            return self._modules[name]
        self._modules[name] = None
        for index in self._indexes:
            path = index.sources.get(name)
            if path is None:
                continue
            try:
                self._modules[name] = self._declared(index, name, path)
            except UnreadableSource as error:
                self.unreadable[path] = str(error)
            break
        return self._modules[name]

    def _declared(self, index: ModuleIndex, name: str, path: str) -> ModuleDeclaration:
        if index is self.client_index:
            return declare_module(name, path, index.tree.read(path), keep_tree=True)
        if index is not self.target_index:
            return declare_module(name, path, index.tree.read(path))
        parse = self._shelf.parse if self._shelf is not None else None
        return declare_module(name, path, self._target_source(path), parse=parse)

    def loaded_modules(self) -> Iterable[str]:
        """The names of the modules read so far."""
        return sorted(name for name, module in self._modules.items() if module is not None)

    def module_type(self, name: str) -> Type:
        """What `import name` gives."""
        if self.has_module(name):
            return Module(name)
        if name in self.replaced_modules:
            return Unknown("module that the client puts in place")
        if self.is_inside(name):
            if _GENERATED.search(name):
                return Unknown("compiled or generated module")
            parent = name.rpartition(".")[0]
            index = self._index_of(parent) if parent else None
            if index is not None and parent in index.extensions:
                return Unknown("compiled or generated module")
            return Absent(parent, name.rpartition(".")[2], is_module=True)
        return External(name)

    def module_attribute(self, name: str, attribute: str, *, typing: bool = False) -> Type:
        """What `module.attribute` is: a name of the module, else a submodule."""
        module = self.module(name)
        if module is not None:
            found = self.lookup(module, attribute, typing=typing)
            if not isinstance(found, Absent) and found != _CYCLIC:
                return found
        index = self._index_of(name)
        submodule = f"{name}.{attribute}"
        if self.has_module(submodule):
            return Module(submodule)
        if index is None:
            return Unknown(f"module {name} is not there")
        if _GENERATED.search(submodule):
            return Unknown("compiled or generated module")
        if module is None:
            if name in index.extensions:
                return Unknown("compiled or generated module")
            if name in index.sources:
                return Unknown("module that could not be read")
            if attribute in _MODULE_ATTRIBUTES:
                return builtin("str")
            return Absent(name, attribute)
        # `from . import submodule` in the package itself asks for the name that it is about to bind.
        return found

    # Names of a module

    def lookup(self, module: ModuleDeclaration, name: str, *, typing: bool = False) -> Type:
        """What a name of a module means, once the module has run; Absent where it surely binds no such name."""
        key = (module.name, name, typing)
        found = self._names.get(key)
        if found is not None:
            return found
        if key in self._resolving:
            return _CYCLIC
        self._resolving.add(key)
        try:
            found = self._lookup(module, name, typing)
        finally:
            self._resolving.discard(key)
        self._names[key] = found
        return found

    def _lookup(self, module: ModuleDeclaration, name: str, typing: bool) -> Type:
        bindings = module.names.get(name)
        typing_only = False
        absent: Absent | None = None
        if bindings:
            scope = ModuleScope(self, module)
            candidates: list[Type] = []
            for binding in reversed(bindings):
                alive = self.liveness(binding.contexts, scope, typing=typing, line=binding.line)
                if alive is False:
                    typing_only = typing_only or self.facts.is_typing_only(binding.contexts)
                    continue
                if binding.element == "del":
                    if alive and not candidates:
                        return Absent(module.name, name)
                    continue
                if binding.element == "augmented":
                    continue
                if binding.annotation is not None and binding.value is None and not typing:
                    # `name: int` alone declares a type and binds nothing.
                    typing_only = True
                    continue
                type_ = self.binding_type(binding, scope, typing=typing)
                if isinstance(type_, Absent):
                    absent = absent or type_
                    if self.is_guarded(binding.contexts):
                        # The import fails and a handler takes over: what the handler binds is another binding.
                        continue
                candidates.append(type_)
                if alive is True:
                    break
            if candidates and all(is_placeholder(candidate) for candidate in candidates):
                candidates += self._made_global(module, name)
            if candidates:
                known = [candidate for candidate in candidates if not isinstance(candidate, Absent)]
                return union(known) if known else candidates[0]
        if name in _MODULE_ATTRIBUTES:
            return builtin("str")
        found = self._star_name(module, name, typing)
        if found is not None:
            return found
        exports = self.module_getattr(module)
        if exports is not None:
            found = exports.lookup(name)
            if not isinstance(found, Absent):
                declared = self._said_to_checkers(module, name) if has_unknown(found) else None
                return found if declared is None else declared
        if "globals()" in module.text and re.search(rf"globals\(\)\[\s*[\"']{re.escape(name)}[\"']", module.text):
            return Unknown("name that is written into globals()")
        if _GENERATED.search(module.name):
            return Unknown("compiled or generated module")
        if typing_only and not typing and "sys.modules[__name__]" in module.text:
            # A module that replaces itself by a lazy one shows type checkers what its names will be.
            found = self.lookup(module, name, typing=True)
            if not is_unknown(found):
                return found
        if _DYNAMIC_MODULE.search(module.text):
            return Unknown("module that fills its own namespace, through globals() or the like")
        if "global " in module.text and re.search(rf"^\s+global\b.*\b{re.escape(name)}\b", module.text, re.MULTILINE):
            return Unknown("name that a function makes global")
        return absent if absent is not None and not typing_only else Absent(module.name, name, typing_only=typing_only)

    def _said_to_checkers(self, module: ModuleDeclaration, name: str) -> Type | None:
        """What a module declares under TYPE_CHECKING for a name that its `__getattr__` answers for."""
        if name not in module.names:
            return None
        found = self.lookup(module, name, typing=True)
        return None if is_unknown(found) else found

    def _made_global(self, module: ModuleDeclaration, name: str) -> list[Type]:
        """What functions of the module assign to a name that they declare global."""
        if "global " not in module.text:
            return []
        pattern = re.compile(rf"^[ \t]+global\b.*\b{re.escape(name)}\b")
        lines = [number for number, line in enumerate(module.lines, 1) if pattern.match(line)]
        types: list[Type] = []
        for function in _functions_of(module):
            if any(function.line <= line <= (function.node.end_lineno or 0) for line in lines):
                scope = self.function_scope(function)
                for binding in declare_locals(function).get(name, ()):
                    if binding.value is not None and binding.element != "augmented":
                        types.append(self.binding_type(binding, scope))
        return types

    def _star_name(self, module: ModuleDeclaration, name: str, typing: bool) -> Type | None:
        for star in reversed(module.star_imports):
            scope = ModuleScope(self, module)
            if self.liveness(star.contexts, scope, typing=typing, line=star.node.lineno) is False:
                continue
            base = self.import_base(module, star.node)
            if not self.is_inside(base):
                return Unknown(f"star import of {base}")
            source = self.module(base)
            if source is None:
                if self.has_module(base):
                    return Unknown(f"star import of {base}")
                continue
            public = self.exported_names(source)
            if (public is not None and name not in public) or (public is None and name.startswith("_")):
                continue
            found = self.lookup(source, name, typing=typing)
            if not isinstance(found, Absent):
                return found
        return None

    def exported_names(self, module: ModuleDeclaration) -> frozenset[str] | None:
        """The names in a literal `__all__`, None where there is none or it can't be read."""
        bindings = module.names.get("__all__")
        if not bindings:
            return None
        names: set[str] = set()
        for binding in bindings:
            if not isinstance(binding.value, ast.List | ast.Tuple):
                return None
            for element in binding.value.elts:
                if not isinstance(element, ast.Constant) or not isinstance(element.value, str):
                    return None
                names.add(element.value)
        return frozenset(names)

    def module_getattr(self, module: ModuleDeclaration) -> ModuleGetattr | None:
        """The module's own `__getattr__`, read."""
        if module.name not in self._getattrs:
            bindings = module.names.get("__getattr__", ())
            function = next((binding.function for binding in reversed(bindings) if binding.function), None)
            self._getattrs[module.name] = ModuleGetattr(self, function) if function is not None else None
        return self._getattrs[module.name]

    def import_base(self, module: ModuleDeclaration, node: ast.ImportFrom) -> str:
        """The absolute name of the module that a `from … import` names."""
        if not node.level:
            return node.module or ""
        package = module.package
        for _ in range(node.level - 1):
            package = package.rpartition(".")[0]
        if not node.module:
            return package
        return f"{package}.{node.module}" if package else node.module

    def imported(
        self, module: ModuleDeclaration, node: ast.Import | ast.ImportFrom, name: str, *, typing: bool
    ) -> Type:
        """What an import statement binds to `name`."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname == name:
                    return self.module_type(alias.name)
                if alias.asname is None and alias.name.partition(".")[0] == name:
                    return self.module_type(name)
            return Unknown("import")
        original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), name)
        return self.imported_name(self.import_base(module, node), original, typing=typing)

    def imported_name(self, base: str, name: str, *, typing: bool = False) -> Type:
        """What `from base import name` gives."""
        module = self.module_type(base)
        if isinstance(module, Module):
            return self.module_attribute(base, name, typing=typing)
        if isinstance(module, External):
            return External(f"{base}.{name}")
        return module

    def binding_type(self, binding: Binding, scope: Scope, *, typing: bool = False) -> Type:
        """What one binding gives its name."""
        if binding.class_ is not None:
            return self.classes.decorated(binding.class_, scope)
        if binding.function is not None:
            return self.inference.decorated(binding.function, scope)
        if isinstance(binding.node, ast.Import | ast.ImportFrom):
            return self.imported(scope.module, binding.node, binding.name, typing=typing)
        if binding.annotation is not None and not self.annotations.is_alias_marker(binding.annotation, scope):
            declared = self.annotations.instance(binding.annotation, scope)
            if not is_unknown(declared) or binding.value is None:
                return declared
        if binding.value is None:
            return Unknown("value of a pattern or declaration")
        if binding.element == "except":
            return self.inference.caught(binding.value, scope)
        found = self.inference.bound(binding, scope)
        # Whoever writes `Any` says that the value may be more than what is seen to be put there.
        is_declared = binding.annotation is not None and not self.annotations.is_alias_marker(binding.annotation, scope)
        return inexact(found) if is_declared else found

    # Branches

    def liveness(
        self, contexts: tuple[Context, ...], scope: Scope, *, typing: bool = False, line: int = 0
    ) -> bool | None:
        """Whether a statement in these branches runs: True, False, or None where it depends."""
        alive: bool | None = True
        for context in contexts:
            if isinstance(context, Condition):
                truth = self.facts.truth(context.test, scope, typing=typing)
                runs = None if truth is None else truth is context.value
            else:
                runs = self._attempt_liveness(context, scope, line)
            if runs is False:
                return False
            if runs is None:
                alive = None
        return alive

    def _attempt_liveness(self, attempt: Attempt, scope: Scope, line: int) -> bool | None:
        if attempt.part == "body":
            failing = self.failing_line(attempt.statement, scope)
            return True if failing is None else line < failing
        outcome = self.attempt_outcome(attempt.statement, scope)
        if attempt.part == "handler":
            if not self._errors_of(attempt.statement, scope).intersection(attempt.caught):
                return None
            return None if outcome is None else not outcome
        return outcome

    def _errors_of(self, statement: ast.Try, scope: Scope) -> frozenset[str]:
        """What catches the failure of the imports in a `try`: a missing name is no missing module."""
        failing = self.failing_line(statement, scope)
        for node in statement.body:
            if isinstance(node, ast.ImportFrom) and node.lineno == failing:
                missing = next(result for result in self._import_results(node, scope) if isinstance(result, Absent))
                return IMPORT_ERRORS if missing.is_module else NAME_ERRORS
        return IMPORT_ERRORS

    def attempt_outcome(self, statement: ast.Try, scope: Scope) -> bool | None:
        """Whether the imports in a `try` succeed: True, False, or None where that depends on other libraries."""
        key = id(statement)
        if key in self._attempts:
            return self._attempts[key]
        if key in self._attempting:
            return None
        self._attempting.add(key)
        try:
            outcome: bool | None = None
            seen = False
            for node in statement.body:
                if not isinstance(node, ast.Import | ast.ImportFrom):
                    continue
                result = self._import_outcome(node, scope)
                if result is False:
                    outcome, seen = False, True
                    break
                if result is None:
                    outcome, seen = None, True
                elif not seen:
                    outcome, seen = True, True
            if outcome is True and not all(isinstance(n, ast.Import | ast.ImportFrom) for n in statement.body):
                # Other statements may raise as well, but what the body imports is there.
                outcome = True
        finally:
            self._attempting.discard(key)
        self._attempts[key] = outcome
        return outcome

    def failing_line(self, statement: ast.Try, scope: Scope) -> int | None:
        """The line of the first import in a `try` that surely fails."""
        if self.attempt_outcome(statement, scope) is not False:
            return None
        for node in statement.body:
            if isinstance(node, ast.Import | ast.ImportFrom) and self._import_outcome(node, scope) is False:
                return node.lineno
        return None

    def _import_results(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> list[Type]:
        if isinstance(node, ast.Import):
            return [self.module_type(alias.name) for alias in node.names]
        base = self.import_base(scope.module, node)
        results: list[Type] = []
        for alias in node.names:
            if alias.name == "*" or self.facts.names_version(base, alias.name):
                results.append(self.module_type(base))
                continue
            result = self.imported_name(base, alias.name)
            # What a thing is may be unknown where it is sure that it is there.
            results.append(Module(base) if isinstance(result, Unknown) and self.defines(base, alias.name) else result)
        return results

    def defines(self, base: str, name: str) -> bool:
        """True where a module surely binds a name itself: by a definition or an assignment."""
        module = self.module(base)
        if module is None:
            return False
        scope = ModuleScope(self, module)
        return any(
            (binding.function is not None or binding.class_ is not None or binding.value is not None)
            and self.liveness(binding.contexts, scope, line=binding.line) is True
            for binding in module.names.get(name, ())
        )

    def _import_outcome(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> bool | None:
        outcome: bool | None = True
        for result in self._import_results(node, scope):
            if isinstance(result, Absent):
                return False
            if isinstance(result, External):
                if not is_standard_library(result.path):
                    outcome = None
            elif isinstance(result, Unknown) and result.reason != "cyclic definition":
                outcome = None
        return outcome

    def is_guarded(self, contexts: tuple[Context, ...], errors: frozenset[str] = IMPORT_ERRORS) -> bool:
        """True where a `try` around a statement catches the errors of an import."""
        for context in contexts:
            if isinstance(context, Attempt) and context.part == "body":
                for handler in context.statement.handlers:
                    from driftcheck.surface.declarations import caught_names

                    if errors.intersection(caught_names(handler.type)):
                        return True
        return False

    # Scopes

    def scope_of_class(self, class_: ClassDeclaration) -> Scope:
        """The scope in which a class's bases and decorators are evaluated."""
        if class_.outer is not None:
            return self.function_scope(class_.outer)
        if class_.owner is not None:
            return ClassScope(self, class_.owner, self.scope_of_class(class_.owner))
        return ModuleScope(self, class_.module)

    def class_scope(self, class_: ClassDeclaration) -> ClassScope:
        """The scope of the statements in a class body."""
        return ClassScope(self, class_, self.scope_of_class(class_))

    def scope_of_function(self, function: FunctionDeclaration) -> Scope:
        """The scope in which a function's defaults, annotations and decorators are evaluated."""
        if function.owner is not None:
            return self.class_scope(function.owner)
        if function.outer is not None:
            return self.function_scope(function.outer)
        return ModuleScope(self, function.module)

    def function_scope(self, function: FunctionDeclaration) -> FunctionScope:
        """The scope of a function's body, whose names are inferred as they are asked for."""
        scope = self._function_scopes.get(function)
        if scope is None:
            scope = FunctionScope(self, function, self.scope_of_function(function))
            self._function_scopes[function] = scope
        return scope

    # Where things are

    def _target_source(self, path: str) -> bytes:
        """The bytes of a source of the target; raises as the tree's `read` does."""
        found = self._read.get(path)
        if found is None:
            found = self._read[path] = self.target_index.tree.read(path)
        return found

    def target_holding(self, *words: str) -> list[Source]:
        """The sources of the target that hold all of these words."""
        return self._target_words.holding(*words)

    def client_holding(self, *words: str) -> list[Source]:
        """The sources of the client that hold all of these words, whether they have to do with the target or not."""
        return self._client_words.holding(*words)

    def client_modules_holding(self, word: str) -> Iterator[ModuleDeclaration]:
        """The modules of the client that are read and hold a word, in the order of their names."""
        index = self.client_index
        if index is None:
            return
        names = sorted(name for path, _ in self.client_holding(word) if (name := index.name_of(path)) is not None)
        for name in names:
            module = self._modules.get(name)
            if module is not None and module.has_tree:
                yield module

    def quotes(self, class_: ClassDeclaration, name: str) -> bool:
        """True where a class's source holds the name in quotes."""
        source = self._class_sources.get(class_)
        if source is None:
            lines = class_.module.lines[class_.line - 1 : class_.node.end_lineno]
            source = self._class_sources[class_] = "\n".join(lines)
        return f'"{name}"' in source or f"'{name}'" in source

    def registers(self, name: str) -> bool:
        """True where some source of the target registers a parameter or buffer of that name on a module of torch."""
        if self._registered is None:
            self._registered = frozenset(
                found.decode()
                for word in ("register_parameter", "register_buffer")
                for _, data in self.target_holding(word)
                for found in _REGISTRATION.findall(data)
            )
        return name in self._registered

    def mentions_store(self, name: str) -> bool:
        """True where some source of the target stores an attribute of that name, or a class declares one."""
        found = self._stores.get(name)
        if found is None:
            pattern = re.compile(
                rb"(\.%s\s*(:[^=\n]+)?=[^=]|[\"']%s[\"']|^\s+(async\s+)?def %s\b|^\s+%s\s*[:=])"
                % ((encoded(name),) * 4),
                re.MULTILINE,
            )
            found = any(pattern.search(data) for _, data in self.target_holding(name))
            self._stores[name] = found
        return found

    def self_type(self, class_: ClassDeclaration) -> Class:
        """The class object with its own type variables as arguments."""
        return Class(class_, self.classes.type_parameters(class_))


def is_placeholder(type_: Type) -> bool:
    """True for a value that only holds a name's place until something is assigned."""
    return type_ == NONE or isinstance(type_, Unknown)


def has_unknown(type_: Type) -> bool:
    """True where a value may be something of which nothing is known."""
    return any(isinstance(member, Unknown) for member in members_of(type_))


def _functions_of(module: ModuleDeclaration) -> Iterable[FunctionDeclaration]:
    for bindings in module.names.values():
        for binding in bindings:
            if binding.function is not None:
                yield binding.function
            elif binding.class_ is not None:
                yield from binding.class_.methods()


def is_standard_library(path: str) -> bool:
    """True where a dotted path leads into Python's own library."""
    import sys

    return path.partition(".")[0] in sys.stdlib_module_names


BUILTINS = frozenset(dir(builtins))
