"""Reads the target's API in the target's own interpreter; run as a script, with nothing but the standard library.

    python probe.py REQUEST ANSWER

REQUEST is a file with one JSON object: `symbols` (dotted paths), `modules` (dump all that each defines), `refused`
(what killed an earlier run: module, symbol or `module:name` to `exception` and `message`), `answer_limit` (bytes).
ANSWER gets one JSON object a line as soon as it is known, so that a crash loses only what follows: `start`; then for
each task `begin` and its result (`import`, `symbol` or `module`); at last `end`. Of the target this imports, takes
attributes and signatures, and calls nothing. It is one file, long as it is, because it runs alone; it loads on Python
3.7, so that an interpreter that is too old can say so.
"""

# ruff: noqa: BLE001  (what the target raises, SystemExit included, is an answer like any other)

from __future__ import annotations

# The folder of this script must not shadow modules of the target, so it leaves the path before anything is imported.
import sys

if __name__ == "__main__" and sys.path and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

import contextlib
import enum
import functools
import gc
import importlib
import importlib.util
import inspect
import json
import os
import re
import types
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Record = dict[str, Any]
    Loaded = tuple[types.ModuleType | None, Record | None]

PROTOCOL = 1
OLDEST = (3, 9)
TEXT_LIMIT = 500
DEFAULT_LIMIT = 200
DEPTH_LIMIT = 4
VALUES_LIMIT = 500
NAMES_LIMIT = 20000
NESTING_LIMIT = 8
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: unset for types written in C, whose repr runs none of the target's Python
_PLAIN_MODULES = ("pathlib", "datetime", "decimal", "fractions", "uuid", "re", "ipaddress", "zoneinfo")
# Types written in C that show what they hold, by the target's own __repr__ where it is the target's; and which don't.
_HOLDERS = ("builtins", "collections", "functools", "itertools", "types")
_HOLD_NOTHING = ("range", "bytearray", "memoryview", "GenericAlias", "UnionType", "Union")
_VALUES = (type(None), bool, int, float, complex, type(Ellipsis), type(NotImplemented))


class Answer:
    """The file that answers go to, opened for each line, since what is imported may close every descriptor."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._left = limit
        self._process = os.getpid()

    def write(self, record: str, **values: Any) -> None:
        """Append one line; ends the process where the limit is reached or the target has forked it."""
        if os.getpid() != self._process:
            os._exit(0)
        values["record"] = record
        line = (json.dumps(values) + "\n").encode("ascii")
        self._left -= len(line)
        if self._left < 0:
            line = b'{"record": "limit"}\n'
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            while line:
                line = line[os.write(descriptor, line) :]
        finally:
            os.close(descriptor)
        if self._left < 0:
            os._exit(0)


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """`isinstance` that asks nothing of the value, whose `__class__` may lie or raise."""
    return issubclass(type(value), kinds)


# --- text -----------------------------------------------------------------------------------------------------------


def bounded(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text as plain str, cut at the limit, without lone surrogates and memory addresses."""
    text = str.__str__(text)[: limit * 4].encode("utf-8", "replace").decode("utf-8")
    text = _ADDRESS.sub("", text)
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


@functools.lru_cache(maxsize=1)
def _folders() -> list[str]:
    folders = {os.path.abspath(entry) for entry in sys.path if _is_text(entry) and entry}
    return sorted((folder.rstrip(os.sep) + os.sep for folder in folders if len(folder) > 1), key=len, reverse=True)


def relative(path: Any) -> str | None:
    """The path below the longest entry of sys.path that holds it, POSIX, or None."""
    if not isinstance(path, str):
        return None
    path = os.path.abspath(path)
    for folder in _folders():
        if path.startswith(folder):
            return bounded(path[len(folder) :].replace(os.sep, "/"))
    return None


def failure_of(error: BaseException, subject: str) -> Record:
    """An exception as data, without this machine's folders; its own __str__ may fail or be anything."""
    try:
        message = str.__str__(str(error))[: TEXT_LIMIT * 8]
        for folder in _folders():
            message = message.replace(folder, "")
        message = bounded(message)
    except BaseException:
        message = ""
    failure = {"exception": bounded(type(error).__name__), "message": message, "subject": subject}
    if isinstance(error, ImportError) and isinstance(error.name, str):
        failure["missing"] = bounded(error.name)
    return failure


def class_path(kind: type) -> str:
    """`module.Qualified.Name` of a class, whatever its metaclass makes of these attributes."""
    module, name = type.__dict__["__module__"].__get__(kind), type.__dict__["__qualname__"].__get__(kind)
    return bounded(name if module == "builtins" or not isinstance(module, str) else module + "." + name)


def namespace_of(kind: type) -> Any:
    """A class's own attributes, whatever its metaclass says of them."""
    return type.__dict__["__dict__"].__get__(kind)


def resolution_order(kind: type) -> tuple[type, ...]:
    """A class and its bases in order, whatever its metaclass says of them."""
    order: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return order


def default_text(value: Any) -> str:
    """A default's text, exact for plain values; takes nothing from the target's own __repr__, and never fails."""
    try:
        return bounded(_render(value, [VALUES_LIMIT], 0), DEFAULT_LIMIT)
    except BaseException:
        return f"<{class_path(type(value))}>"


def _render(value: Any, left: list[int], depth: int) -> str:
    kind = type(value)
    left[0] -= 1
    if kind in _VALUES:
        return repr(value) if kind is not int or value.bit_length() < DEFAULT_LIMIT * 4 else "<int>"
    if kind in (str, bytes):
        return repr(value[:DEFAULT_LIMIT])
    if kind in (tuple, list, set, frozenset, dict):
        return _render_container(value, left, depth + 1)
    if issubclass(kind, type):
        return class_path(value)
    if issubclass(kind, enum.Enum):
        return f"{kind.__qualname__}.{value._value_ if value._name_ is None else value._name_}"
    if kind in (types.FunctionType, types.BuiltinFunctionType):
        return str(value.__qualname__)
    if issubclass(kind, types.ModuleType):
        return f"<module {value.__name__}>"
    if kind.__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
        return "<factory>"
    if kind is types.MethodType:
        return str(value.__func__.__qualname__)
    if kind.__module__ in _HOLDERS and kind.__name__ not in _HOLD_NOTHING:
        return f"<{class_path(kind)}>"
    if not kind.__flags__ & _HEAP_TYPE or kind.__module__.split(".")[0] in _PLAIN_MODULES:
        return repr(value)
    return f"<{class_path(kind)}>"


def _render_container(value: Any, left: list[int], depth: int) -> str:
    kind = type(value)
    if depth > DEPTH_LIMIT or len(value) > left[0]:
        return f"<{kind.__name__}>"
    if kind is dict:
        pairs = [f"{_render(key, left, depth)}: {_render(item, left, depth)}" for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    items = [_render(item, left, depth) for item in value]
    if kind is list:
        return "[" + ", ".join(items) + "]"
    if kind is tuple:
        return "(" + ", ".join(items) + (",)" if len(items) == 1 else ")")
    text = "{" + ", ".join(sorted(items)) + "}" if items else ""
    return f"frozenset({text})" if kind is frozenset else text or "set()"


def annotation_text(value: Any) -> str | None:
    """An annotation as source text; None where there is none."""
    if value is inspect.Parameter.empty:
        return None
    try:
        return bounded(value if is_a(value, str) else inspect.formatannotation(value))
    except BaseException:
        return f"<{class_path(type(value))}>"


def return_text(getter: Any) -> str | None:
    """The return annotation of a property's getter."""
    try:
        return annotation_text(take_signature(getter, True).return_annotation)
    except BaseException:
        return None


# --- signatures -----------------------------------------------------------------------------------------------------


def take_signature(value: Any, follow: bool) -> inspect.Signature:
    """`inspect.signature` without evaluating annotations, which on Python 3.14 may name what does not exist."""
    options: Record = {"follow_wrapped": follow}
    if sys.version_info >= (3, 14):
        options["annotation_format"] = importlib.import_module("annotationlib").Format.STRING
    return inspect.signature(value, **options)


def signature_data(signature: inspect.Signature, receiver: bool) -> Record:
    """Parameters as lists [name, kind, default or None, annotation or None]; a receiver takes the first away."""
    parameters = list(signature.parameters.values())
    if receiver:
        if not parameters or parameters[0].kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_KEYWORD,
        ):
            raise ValueError("takes no receiver")
        if parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            del parameters[0]
    return {
        "parameters": [
            [
                bounded(parameter.name),
                int(parameter.kind),
                None if parameter.default is inspect.Parameter.empty else default_text(parameter.default),
                annotation_text(parameter.annotation),
            ]
            for parameter in parameters
        ],
        "returns": annotation_text(signature.return_annotation),
    }


def add_signature(description: Record, value: Any, receiver: bool) -> None:
    """Put the signature in, and the outer one where `__wrapped__` hides it; a callable without says why."""
    try:
        description["signature"] = signature_data(take_signature(value, True), receiver)
    except BaseException as error:
        description["no_signature"] = failure_of(error, description["name"])
    try:
        outer = signature_data(take_signature(value, False), receiver)
    except BaseException:
        return
    if outer != description.get("signature"):
        description["outer"] = outer


# --- descriptions ---------------------------------------------------------------------------------------------------


def text_attribute(value: Any, name: str) -> str | None:
    """An attribute that ought to be text, or None."""
    try:
        found: Any = getattr(value, name, None)
        return bounded(found) if is_a(found, str) else None
    except BaseException:
        return None


def add_place(description: Record, value: Any) -> None:
    """Where the value says it was defined: module, qualified name, and for what has code, file and line."""
    for key, name in (("module", "__module__"), ("qualified_name", "__qualname__")):
        text = text_attribute(value, name)
        if text is not None:
            description[key] = text
    code: Any = None
    with contextlib.suppress(BaseException):
        code = getattr(inspect.unwrap(value), "__code__", None)
    if is_a(code, types.CodeType):
        description["path"], description["line"] = relative(code.co_filename), code.co_firstlineno
    elif is_a(value, type):
        module = sys.modules.get(description.get("module") or "")
        description["path"] = relative(getattr(module, "__file__", None))


def describe(value: Any, name: str) -> Record:
    """What a value that is no class's own attribute is."""
    description: Record = {"name": name}
    if is_a(value, types.ModuleType):
        description.update(kind="module", module=text_attribute(value, "__name__"))
        description["path"] = relative(getattr(value, "__file__", None))
        return description
    if is_a(value, type):
        description["kind"] = "class"
        add_place(description, value)
        description["mro"] = [class_path(base) for base in resolution_order(value)[1:-1]][:50]
        abstract = namespace_of(value).get("__abstractmethods__")
        if is_a(abstract, frozenset) and abstract:
            description["abstract"] = sorted(bounded(member) for member in abstract if is_a(member, str))
        add_signature(description, value, False)
        return description
    if callable(value):
        description["kind"] = callable_kind(value)
        add_place(description, value)
        add_signature(description, value, False)
        return description
    description.update(kind="value", type=class_path(type(value)))
    return description


def callable_kind(value: Any) -> str:
    """`function`, `async-function`, `builtin`, `bound-method`, or `callable` for instances."""
    kind = type(value)
    if kind is types.FunctionType:
        asynchronous = inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)
        return "async-function" if asynchronous else "function"
    if kind is types.BuiltinFunctionType:
        return "builtin"
    return "bound-method" if kind is types.MethodType else "callable"


def describe_member(raw: Any, value: Any, name: str) -> Record:
    """What a class's attribute is: `raw` as it stands in the class, `value` as taken from the class."""
    if is_a(raw, (property, functools.cached_property, types.GetSetDescriptorType)):
        description: Record = {"name": name, "kind": "property"}
        getter = getattr(raw, "fget", None) or getattr(raw, "func", None)
        if getter is not None:
            add_place(description, getter)
            description["returns"] = return_text(getter)
        return description
    if is_a(raw, types.MemberDescriptorType):
        return {"name": name, "kind": "declared"}
    if is_a(raw, type) or not callable(value):
        return describe(value, name)
    if is_a(raw, (staticmethod, classmethod)):
        kind, receiver = "static-method" if is_a(raw, staticmethod) else "class-method", False
    elif hasattr(type(raw), "__get__"):
        # What binds when taken from an instance; bound already where the metaclass or a descriptor did it.
        kind, receiver = "method", not is_a(value, types.MethodType)
    else:
        return describe(value, name)
    description = {"name": name, "kind": kind}
    inner = value.__func__ if is_a(value, types.MethodType) else value
    if is_a(inner, types.FunctionType) and callable_kind(inner) == "async-function":
        description["asynchronous"] = True
    add_place(description, value)
    add_signature(description, value, receiver)
    return description


def is_declared(owner: type, name: str) -> bool:
    """Whether an attribute without a value is declared: a field of a dataclass or model, or a bare annotation."""
    for base in resolution_order(owner):
        namespace = namespace_of(base)
        for key in ("__annotations__", "__dataclass_fields__", "__pydantic_fields__"):
            if isinstance(namespace.get(key), dict) and name in namespace[key]:
                return True
        fields = namespace.get("__struct_fields__")
        if isinstance(fields, tuple) and name in fields:
            return True
        if sys.version_info >= (3, 14) and name in _lazy_annotations(base):
            return True
    return False


def _lazy_annotations(owner: type) -> Any:
    """A class's own annotations on Python 3.14 and later, which computes them on demand."""
    try:
        library = importlib.import_module("annotationlib")
        return library.get_annotations(owner, format=library.Format.STRING)
    except BaseException:
        return {}


# --- tasks ----------------------------------------------------------------------------------------------------------


class Stop(Exception):
    """A symbol that can't be answered as found; carries the answer."""


class Probe:
    """Imports on demand, each module once, and answers what was asked."""

    def __init__(self, answer: Answer, refused: dict[str, Record]) -> None:
        self._answer = answer
        self._refused = refused
        self._imports: dict[str, Loaded] = {}

    def load(self, name: str) -> Loaded:
        """The module and None, or None and why it can't be imported."""
        if name not in self._imports:
            if name in self._refused:
                self._imports[name] = (None, dict(self._refused[name], subject=name))
            else:
                self._answer.write("begin", subject=name)
                self._imports[name] = self._import(name)
                self._answer.write("import", name=name, failure=self._imports[name][1])
        return self._imports[name]

    def _import(self, name: str) -> Loaded:
        try:
            module = importlib.import_module(name)
        except BaseException as error:
            return None, failure_of(error, name)
        finally:
            sys.argv[1:] = []
        return module, None

    def symbol(self, name: str) -> Record:
        """The answer for one dotted path; `module:qualified.name` says where the module ends."""
        if name in self._refused:
            return {"name": name, "status": "failed", "failure": dict(self._refused[name], subject=name)}
        self._answer.write("begin", subject=name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                description = self._resolve(name)
        except Stop as stop:
            description = stop.args[0]
            description.setdefault("name", name)
        except BaseException as error:
            description = {"name": name, "status": "failed", "failure": failure_of(error, name)}
        description.setdefault("status", "found")
        return description

    def _resolve(self, name: str) -> Record:
        if ":" in name:
            module_name, _, rest = name.partition(":")
            parts = rest.split(".") if rest else []
            module = self._require(module_name)
        else:
            first, *parts = name.split(".")
            module = self._require(first)
            while parts and self._is_submodule(module, parts):
                module = self._require(module.__name__ + "." + parts[0])
                parts = parts[1:]
        return self._member(module, parts, name)

    def _require(self, name: str) -> types.ModuleType:
        module, failure = self.load(name)
        if module is not None:
            return module
        assert failure is not None
        absent = failure["exception"] == "ModuleNotFoundError" and f"{name}.".startswith(f"{failure.get('missing')}.")
        raise Stop({"status": "missing" if absent else "failed", "failure": failure})

    def _is_submodule(self, module: types.ModuleType, parts: Sequence[str]) -> bool:
        """Whether the next part is a module rather than a name of the package.

        Seen as `from package import name` sees it, and where more follows, as `from package.name import more` does.
        """
        full = module.__name__ + "." + parts[0]
        if len(parts) == 1:
            held = vars(module).get(parts[0])
            if held is not None and not is_a(held, types.ModuleType):
                return False
        try:
            if full in sys.modules:
                return True
            return hasattr(module, "__path__") and importlib.util.find_spec(full) is not None
        except BaseException:
            return False

    def _member(self, value: Any, parts: Sequence[str], name: str) -> Record:
        owner: type | None = None
        raw = None
        for index, part in enumerate(parts):
            owner, raw = (value, _raw(value, part)) if is_a(value, type) else (None, None)
            try:
                value = getattr(value, part)
            except AttributeError as error:
                if owner is not None and index == len(parts) - 1 and is_declared(owner, part):
                    return {"name": name, "kind": "declared"}
                raise Stop({"status": "missing", "failure": failure_of(error, name)}) from None
        if owner is not None and raw is not None:
            return describe_member(raw, value, name)
        return describe(value, name)

    def module(self, name: str) -> Record:
        """All that a module defines, classes with their own members, and its other names with where they come from."""
        module, failure = self.load(name)
        if module is None:
            return {"name": name, "failure": failure}
        names: dict[str, str] = {}
        symbols: list[Record] = []
        for key in sorted(filter(_is_text, vars(module)))[:NAMES_LIMIT]:
            value = vars(module)[key]
            home = text_attribute(value, "__module__") if callable(value) else None
            if home != module.__name__:
                names[bounded(key)] = _origin(value, home)
                continue
            subject = name + ":" + bounded(key)
            if subject in self._refused:
                failure = dict(self._refused[subject], subject=subject)
                symbols.append({"name": bounded(key), "status": "failed", "failure": failure})
                continue
            self._answer.write("begin", subject=subject)
            symbols.extend(_dump(value, bounded(key), name, 0))
        return {
            "name": name,
            "path": relative(getattr(module, "__file__", None)),
            "names": names,
            "symbols": symbols,
        }


def _is_text(value: Any) -> bool:
    return type(value) is str


def _raw(owner: type, name: str) -> Any:
    for base in resolution_order(owner):
        namespace = namespace_of(base)
        if name in namespace:
            return namespace[name]
    return None


def _origin(value: Any, home: str | None) -> str:
    """`module:name` of what another module defines, or the class of a plain value."""
    if is_a(value, types.ModuleType):
        return bounded(value.__name__)
    qualified = text_attribute(value, "__qualname__")
    return f"{home}:{qualified}" if home and qualified else "=" + class_path(type(value))


def _dump(value: Any, key: str, module: str, depth: int) -> Iterator[Record]:
    description = describe(value, key)
    yield description
    if not is_a(value, type) or depth >= NESTING_LIMIT:
        return
    prefix = text_attribute(value, "__qualname__")
    for name, raw in sorted(namespace_of(value).items(), key=lambda item: str(item[0])):
        if not is_a(name, str) or name in ("__class__", "__dict__", "__weakref__"):
            continue
        path = f"{key}.{bounded(name)}"
        try:
            member = getattr(value, name)
        except BaseException as error:
            yield {"name": path, "status": "failed", "failure": failure_of(error, path)}
            continue
        if is_a(raw, type):
            own = text_attribute(raw, "__module__") == module
            if own and text_attribute(raw, "__qualname__") == f"{prefix}.{name}":
                yield from _dump(raw, path, module, depth + 1)
        elif callable(member) or is_a(raw, (property, functools.cached_property)):
            yield describe_member(raw, member, path)


def main(request_path: str, answer_path: str) -> NoReturn:
    """Answer the request line by line, then end at once: no exit handler and no thread of the target is waited for."""
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    answer = Answer(answer_path, request.get("answer_limit", 1 << 30))
    sys.argv[1:] = []
    answer.write("start", protocol=PROTOCOL, python=list(sys.version_info[:3]), path=_package_folders())
    if sys.version_info < OLDEST:
        os._exit(0)
    _forbid_core_files()
    # Importing makes objects by the million and frees next to none: a seventh of its time went into collecting.
    gc.disable()
    probe = Probe(answer, request.get("refused", {}))
    for name in request.get("symbols", ()):
        answer.write("symbol", answer=probe.symbol(name))
    for name in request.get("modules", ()):
        answer.write("module", answer=probe.module(name))
    answer.write("end")
    os._exit(0)


def _package_folders() -> list[str]:
    """The folders that packages are installed in: what decides whether an earlier answer still holds."""
    return [entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")]


def _forbid_core_files() -> None:
    try:
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except Exception:
        return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
