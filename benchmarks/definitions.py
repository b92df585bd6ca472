"""Asks pyright's language server where the things lie that a client calls.

A definition that is a function or a class answers at once. One that is anything else (a variable, an attribute, a
property) answers by the definition of its type. Answers are in files, relative to the folder of the target's sources.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from benchmarks.checkers import MEMORY

_BATCH = 200
"""Questions that wait for their answers at the same time."""
_PROPERTIES = ("property", "cached_property", "setter")


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A place in a file of the client; lines and columns count from 1."""

    path: str
    line: int
    column: int


class LanguageServer:
    """One pyright language server at work in a folder that has a `pyrightconfig.json`; `close` ends it."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self.python = python
        self._next = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "pyright.langserver", "--stdio"],
            cwd=folder,
            env={**os.environ, "NODE_OPTIONS": MEMORY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

        place = folder.as_uri()
        folders = [{"uri": place, "name": "client"}]
        options = {"processId": os.getpid(), "rootUri": place, "workspaceFolders": folders}
        self._ask([("initialize", {**options, "capabilities": {"workspace": {"configuration": True}}})])
        self._send({"method": "initialized", "params": {}})

    def close(self) -> None:
        """Ends the server."""
        self._server.kill()
        self._server.wait()

    def definitions(self, path: str, text: str, spots: Sequence[Spot], question: str) -> list[list[tuple[Path, int]]]:
        """The files and lines that are answered for each place of a file; `question` is a method of the protocol."""
        uri = (self.folder / path).as_uri()
        lines = text.split("\n")
        self._send({
            "method": "textDocument/didOpen",
            "params": {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": text}},
        })  # fmt: skip
        answers: list[list[tuple[Path, int]]] = []
        for start in range(0, len(spots), _BATCH):
            asked = [
                (f"textDocument/{question}", {"textDocument": {"uri": uri}, "position": _position(lines, spot)})
                for spot in spots[start : start + _BATCH]
            ]
            answers += [list(_places(found)) for found in self._ask(asked)]
        self._send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
        return answers

    def _ask(self, questions: Sequence[tuple[str, Any]]) -> list[Any]:
        waiting: dict[int, int] = {}
        answers: list[Any] = [None] * len(questions)
        for index, (method, parameters) in enumerate(questions):
            self._next += 1
            waiting[self._next] = index
            self._send({"id": self._next, "method": method, "params": parameters})
        while waiting:
            message = self._receive()
            if "method" in message:
                if "id" in message:
                    # The server asks too: for settings, and for leave to tell of its progress.
                    items = (message.get("params") or {}).get("items", ())
                    settings = [self._settings(item.get("section")) for item in items]
                    is_about_settings = message["method"] == "workspace/configuration"
                    self._send({"id": message["id"], "result": settings if is_about_settings else None})
            elif message.get("id") in waiting:
                answers[waiting.pop(message["id"])] = message.get("result")
        return answers

    def _settings(self, section: str | None) -> dict[str, str] | None:
        return {"pythonPath": str(self.python)} if section == "python" else None

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream = _open(self._server.stdin)
        stream.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        stream.flush()

    def _receive(self) -> dict[str, Any]:
        stream = _open(self._server.stdout)
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise SystemExit("pyright's language server ended")
        message: dict[str, Any] = json.loads(stream.read(length))
        return message


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _position(lines: list[str], spot: Spot) -> dict[str, int]:
    """A place as the protocol has it: from 0, columns in UTF-16."""
    before = lines[spot.line - 1][: spot.column - 1]
    return {"line": spot.line - 1, "character": len(before.encode("utf-16-le")) // 2}


def _places(found: Any) -> Iterator[tuple[Path, int]]:
    for place in found if isinstance(found, list) else [found] if found else ():
        uri, span = place.get("uri") or place["targetUri"], place.get("range") or place["targetSelectionRange"]
        yield Path(unquote(urlsplit(uri).path)), span["start"]["line"] + 1


class Definitions:
    """Which calls of a client lead into the target's sources."""

    def __init__(self, client: Path, target: Path, python: Path) -> None:
        self.client = client
        self.python = python
        self.target = target.resolve()
        self._callables: dict[Path, set[int]] = {}

    def leading_into_the_target(self, spots: Iterable[Spot]) -> set[Spot]:
        """The places at which something is named that the target defines, or that is of a type that it defines."""
        by_file: dict[str, list[Spot]] = {}
        for spot in sorted(spots):
            by_file.setdefault(spot.path, []).append(spot)
        leading: set[Spot] = set()
        server = LanguageServer(self.client, self.python)
        try:
            for path, inside in by_file.items():
                leading |= self._leading(server, path, inside)
        finally:
            server.close()
        return leading

    def _leading(self, server: LanguageServer, path: str, spots: list[Spot]) -> set[Spot]:
        text = (self.client / path).read_text(encoding="utf-8")
        leading: set[Spot] = set()
        doubtful: list[Spot] = []
        for spot, found in zip(spots, server.definitions(path, text, spots, "definition"), strict=True):
            places = [place for place in found if self._is_target(place[0])]
            if any(self._is_callable(*place) for place in places):
                leading.add(spot)
            elif places:
                doubtful.append(spot)
        types = server.definitions(path, text, doubtful, "typeDefinition") if doubtful else []
        for spot, found in zip(doubtful, types, strict=True):
            if any(self._is_target(place) for place, _ in found):
                leading.add(spot)
        return leading

    def _is_target(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.target)

    def _is_callable(self, path: Path, line: int) -> bool:
        """True where a function or a class, and no property, is defined on a line."""
        if path not in self._callables:
            tree = ast.parse(path.read_bytes())
            self._callables[path] = {
                node.lineno
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not _is_property(node)
            }
        return line in self._callables[path]


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    names = (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in node.decorator_list)
    return any(name in _PROPERTIES for name in names)
