"""The target's surface as its own interpreter sees it: what the probe says, as values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.progress import UNWATCHED, Progress
from driftcheck.surface.interpreter import Record, Session
from driftcheck.surface.runtime_cache import RuntimeCache

TIMEOUT = 120.0
_KINDS = tuple(ParameterKind)

Status = Literal["found", "missing", "failed", "unexamined"]


@dataclass(frozen=True, slots=True)
class RuntimeFailure:
    """Why something could not be read: what the interpreter was at, and the exception it met.

    `exception` is the exception's name, or "Crash", "Exit" or "Timeout" for what ended the interpreter itself.
    """

    subject: str
    exception: str
    message: str

    def __str__(self) -> str:
        first = self.message.strip().partition("\n")[0]
        return f"{self.exception}: {first}" if first else self.exception


@dataclass(frozen=True, slots=True)
class RuntimeSymbol:
    """What the interpreter says of one symbol.

    `status`: found; missing (its module is there, the name is not: an attribute that only instances have is missing
    too); failed (an exception other than that, see `failure`); unexamined (time or restarts ran out before).
    `kind`: module, class, function, async-function, builtin, callable, method, class-method, static-method,
    bound-method, property, declared (a field without a value on the class) or value. `signature` is without its
    receiver; `outer_signature` is what the outermost wrapper accepts, where `__wrapped__` says otherwise. A callable
    without a signature has `failure` set. `bases` is the whole resolution order without the class itself and object.
    """

    name: str
    status: Status
    kind: str | None = None
    module: str | None = None
    qualified_name: str | None = None
    signature: Signature | None = None
    outer_signature: Signature | None = None
    is_async: bool = False
    returns: str | None = None
    value_type: str | None = None
    bases: tuple[str, ...] = ()
    abstract: tuple[str, ...] = ()
    path: str | None = None
    line: int | None = None
    failure: RuntimeFailure | None = None


@dataclass(frozen=True, slots=True)
class RuntimeModule:
    """All that one module defines.

    `symbols` are named relative to the module ("Scheduler", "Scheduler.schedule"), classes with their own members.
    `names` are the module's other names: "module:name" where another module defines the value, "=class" for plain
    values, the module's name for modules. Where `failure` is set the module could not be imported.
    """

    name: str
    path: str | None = None
    symbols: tuple[RuntimeSymbol, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    failure: RuntimeFailure | None = None


@dataclass(frozen=True, slots=True)
class RuntimeSurface:
    """The answers to one `probe`; every symbol and module asked for is there, in the order asked.

    `failures` are distinct and sorted; `notice` is one line for the user where something could not be read, else None.
    `processes` counts the interpreters started: 0 where all was known.
    """

    symbols: Mapping[str, RuntimeSymbol]
    modules: Mapping[str, RuntimeModule]
    failures: tuple[RuntimeFailure, ...] = ()
    notice: str | None = None
    python: str | None = None
    processes: int = 0


def probe(
    interpreter: str | os.PathLike[str],
    symbols: Iterable[str] = (),
    modules: Iterable[str] = (),
    *,
    timeout: float = TIMEOUT,
    patience: float | None = None,
    cache_folder: Path | None = None,
    cache_key: str | None = None,
    environment: Mapping[str, str] | None = None,
    progress: Progress = UNWATCHED,
) -> RuntimeSurface:
    """Ask the target's interpreter for symbols (dotted paths, or `module:name` to be exact) and whole modules.

    One process answers everything; only where an import kills it, or takes longer than `patience` (half of `timeout`
    by default), another goes on without that import, a few times at most. `timeout` is in seconds and covers the whole.
    `environment` adds to the process's variables. With `cache_folder` and `cache_key` (a hash that changes with the
    target's files) what was found or missing is remembered, and a process is started only for what is not yet known.

    Whatever the target does is an answer. Raises DriftcheckError where `interpreter` is not Python 3.9 or later.
    """
    session = Session(interpreter, timeout, timeout / 2 if patience is None else patience, environment, progress)
    wanted = {"symbol": list(dict.fromkeys(symbols)), "module": list(dict.fromkeys(modules))}
    caches = {kind: RuntimeCache.open(cache_folder, cache_key, kind, session) for kind in wanted}
    known = {kind: caches[kind].answers if wanted[kind] else {} for kind in wanted}
    session.ask({kind: [name for name in names if name not in known[kind]] for kind, names in wanted.items()})
    for kind, cache in caches.items():
        cache.store(session.answers[kind], session)
    answers = {kind: {**known[kind], **session.answers[kind]} for kind in wanted}
    found = {name: _symbol(name, answers["symbol"].get(name), session) for name in wanted["symbol"]}
    whole = {name: _module(name, answers["module"].get(name), session) for name in wanted["module"]}
    failures = _failures(found, whole)
    python = session.python or next((cache.python for cache in caches.values() if cache.python), None)
    return RuntimeSurface(found, whole, failures, _notice(failures), python, session.processes)


def _failures(symbols: Mapping[str, RuntimeSymbol], modules: Mapping[str, RuntimeModule]) -> tuple[RuntimeFailure, ...]:
    """The distinct reasons why something could not be read; a name that is missing or has no signature is none."""
    reasons = {symbol.failure for symbol in symbols.values() if symbol.status in ("failed", "unexamined")}
    reasons |= {module.failure for module in modules.values()}
    present = [failure for failure in reasons if failure is not None]
    return tuple(sorted(present, key=lambda failure: (failure.subject, failure.exception, failure.message)))


def _notice(failures: tuple[RuntimeFailure, ...]) -> str | None:
    if not failures:
        return None
    first = min(failures, key=lambda failure: failure.subject.count("."))
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    what = f"importing {first.subject} failed" if first.subject else "reading the installed target failed"
    return f"{what} in the target's interpreter: {first}{more}; what it would have confirmed is judged statically"


# --- from records to values; a record that is not as the probe writes it counts as a failure -------------------------


def _symbol(name: str, record: Record | None, session: Session) -> RuntimeSymbol:
    if record is None:
        return RuntimeSymbol(name, "unexamined", failure=RuntimeFailure("", "Timeout", session.given_up))
    try:
        return _symbol_from(name, record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return RuntimeSymbol(name, "failed", failure=RuntimeFailure(name, "Garbage", "the answer can't be read"))


def _symbol_from(name: str, record: Record) -> RuntimeSymbol:
    status = record.get("status", "found")
    if status not in ("found", "missing", "failed"):
        raise ValueError(status)
    failure = record.get("failure") or record.get("no_signature")
    return RuntimeSymbol(
        name=name,
        status=status,
        kind=_text(record, "kind"),
        module=_text(record, "module"),
        qualified_name=_text(record, "qualified_name"),
        signature=_signature(record["signature"]) if "signature" in record else None,
        outer_signature=_signature(record["outer"]) if "outer" in record else None,
        is_async=record.get("asynchronous") is True,
        returns=_text(record, "returns"),
        value_type=_text(record, "type"),
        bases=tuple(map(str, record.get("mro", ()))),
        abstract=tuple(map(str, record.get("abstract", ()))),
        path=_text(record, "path"),
        line=record["line"] if isinstance(record.get("line"), int) else None,
        failure=_failure(failure) if failure else None,
    )


def _module(name: str, record: Record | None, session: Session) -> RuntimeModule:
    if record is None:
        return RuntimeModule(name, failure=RuntimeFailure("", "Timeout", session.given_up))
    try:
        if record.get("failure"):
            return RuntimeModule(name, failure=_failure(record["failure"]))
        symbols = tuple(_symbol_from(symbol["name"], symbol) for symbol in record["symbols"])
        names = {str(key): str(value) for key, value in record["names"].items()}
        return RuntimeModule(name, _text(record, "path"), symbols, names)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return RuntimeModule(name, failure=RuntimeFailure(name, "Garbage", "the answer can't be read"))


def _signature(record: Record) -> Signature:
    parameters = tuple(
        Parameter(str(name), _KINDS[kind], _optional(default), _optional(annotation))
        for name, kind, default, annotation in record["parameters"]
    )
    return Signature(parameters, _text(record, "returns"))


def _failure(record: Record) -> RuntimeFailure:
    return RuntimeFailure(str(record.get("subject", "")), str(record["exception"]), str(record["message"]))


def _text(record: Record, key: str) -> str | None:
    return _optional(record.get(key))


def _optional(value: object) -> str | None:
    return None if value is None else str(value)
