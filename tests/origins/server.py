"""A package index on this machine, as obliging or as difficult as a test wants it."""

from __future__ import annotations

import hashlib
import html
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Release:
    """One file on the index."""

    name: str
    data: bytes
    uploaded: str | None = "2025-01-01T00:00:00Z"
    yanked: bool = False
    sha256: str | None = None

    @property
    def digest(self) -> str:
        return self.sha256 or hashlib.sha256(self.data).hexdigest()


@dataclass
class Index:
    """What the server has and how it behaves; `log` holds a line for every request."""

    projects: dict[str, list[Release]] = field(default_factory=dict)
    as_json: bool = True
    ranges: bool = True
    lying_ranges: bool = False
    status: int = 200
    delay: float = 0.0
    user: str | None = None
    cut_after: int | None = None
    log: list[str] = field(default_factory=list)
    sent: int = 0
    page_body: str | None = None
    url: str = ""

    def add(self, project: str, name: str, data: bytes, **details: object) -> Release:
        release = Release(name, data, **details)  # type: ignore[arg-type]
        self.projects.setdefault(project, []).append(release)
        return release

    def file_requests(self) -> list[str]:
        """The requests for files, not pages."""
        return [line for line in self.log if "/files/" in line]


class Handler(BaseHTTPRequestHandler):
    """Answers for the index that its server holds."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        index = self.server.index
        ranged = self.headers.get("Range", "")
        index.log.append(f"{self.path} {ranged}".strip())
        if self.server.stopping.wait(index.delay):
            return
        if index.user and self.headers.get("Authorization") != index.user:
            self.answer(401, b"", {})
        elif index.status != 200:
            self.answer(index.status, b"", {})
        elif page := re.fullmatch(r"/simple/([^/]+)/", self.path):
            self.page(page[1])
        elif file := re.fullmatch(r"/files/([^/]+)/([^/]+)", self.path):
            self.file(file[1], file[2], ranged)
        else:
            self.answer(404, b"", {})

    def page(self, project: str) -> None:
        index = self.server.index
        if project not in index.projects:
            self.answer(404, b"", {})
            return
        releases = index.projects[project]
        if index.as_json and "json" in self.headers.get("Accept", ""):
            files = []
            for release in releases:
                entry: dict[str, object] = {
                    "filename": release.name,
                    "url": f"../../files/{project}/{release.name}",
                    "hashes": {"sha256": release.digest},
                    "size": len(release.data),
                    "yanked": release.yanked,
                }
                if release.uploaded:
                    entry["upload-time"] = release.uploaded
                files.append(entry)
            body = json.dumps(
                {"meta": {"api-version": "1.1"}, "name": project, "files": files, "versions": []}
            ).encode()
            self.answer(200, body, {"Content-Type": "application/vnd.pypi.simple.v1+json"})
            return
        links = []
        for release in releases:
            name, mark = html.escape(release.name), ' data-yanked=""' if release.yanked else ""
            links.append(f'<a href="../../files/{project}/{name}#sha256={release.digest}"{mark}>{name}</a>')
        body = (index.page_body or f"<!DOCTYPE html><html><body>{'<br>'.join(links)}</body></html>").encode()
        self.answer(200, body, {"Content-Type": "text/html"})

    def file(self, project: str, name: str, ranged: str) -> None:
        index = self.server.index
        data = next(release.data for release in index.projects[project] if release.name == name)
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", ranged)
        if not wanted or not index.ranges:
            self.answer(200, data, {"Content-Type": "application/octet-stream"})
            return
        first, last = wanted.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        if index.lying_ranges:
            start = max(0, start - 1)
        self.answer(206, data[start:stop], {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"})

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = self.server.index.cut_after
        if cut is not None and "/files/" in self.path and cut < len(body):
            body = body[:cut]
            self.close_connection = True
        self.server.index.sent += len(body)
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


class Server(ThreadingHTTPServer):
    """Serves an index in threads of this process."""

    daemon_threads = True

    def __init__(self, index: Index):
        super().__init__(("127.0.0.1", 0), Handler)
        self.index = index
        index.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()
        self.thread.join()
