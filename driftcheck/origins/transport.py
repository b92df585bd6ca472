"""Requests to an index: pages, ranges of files and whole files, within bounds and without credentials in messages."""

from __future__ import annotations

import contextlib
import os
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from driftcheck.errors import DriftcheckError
from driftcheck.origins.index_settings import IndexSettings, without_credentials
from driftcheck.origins.limits import DOWNLOAD_BYTES, PAGE_BYTES
from driftcheck.origins.settings import Settings

if TYPE_CHECKING:
    import requests

CONNECTIONS = 6
_CHUNK = 256 * 1024
_CONNECT_SECONDS = 10.0
_READ_SECONDS = 30.0
_REPEATS = 1


class Unreachable(DriftcheckError):
    """An index or a file on it that could not be reached; another index may still answer."""


class Transport:
    """One session with connections that are reused, opened with the first request."""

    def __init__(self, index_settings: IndexSettings, settings: Settings):
        self._settings = index_settings
        self._progress = settings.progress
        self._traffic = settings.traffic
        read_seconds = settings.timeout or _READ_SECONDS
        self._seconds = (min(read_seconds, _CONNECT_SECONDS), read_seconds)
        self._session: requests.Session | None = None
        self._lock = threading.Lock()

    def page(self, url: str, accept: str) -> tuple[bytes, str, str] | None:
        """A page's bytes, its content type and the URL that answered; None where the server says there is none."""
        local = local_path(url)
        if local is not None:
            page = local / "index.html" if local.is_dir() else local
            try:
                return page.read_bytes(), "text/html", f"{url.rstrip('/')}/"
            except OSError:
                return None
        response = self._get(url, {"Accept": accept})
        with response:
            if response.status_code in (404, 410):
                return None
            self._check(response, url)
            data = b"".join(self._pieces(response, PAGE_BYTES, url))
            return data, response.headers.get("Content-Type", "text/html"), response.url

    def tail(self, url: str, length: int, size: int | None) -> tuple[bytes, int] | None:
        """The last bytes of a file and the file's size; None where the server refuses ranges.

        Where the whole file is no longer than `length`, all of it is returned.
        """
        wanted = f"bytes={max(0, size - length)}-{size - 1}" if size else f"bytes=-{length}"
        response = self._get(url, {"Range": wanted, "Accept-Encoding": "identity"})
        with response:
            if response.status_code == 200 and size is not None and size <= length:
                return b"".join(self._pieces(response, length, url)), size
            if response.status_code in (200, 416, 501):
                return None
            self._check(response, url)
            span = _content_range(response)
            if span is None:
                return None
            first, last, whole = span
            sound = last == whole - 1 and last - first < length
            data = b"".join(self._pieces(response, length, url)) if sound else b""
            if len(data) != last - first + 1:
                raise Unreachable(f"{shown(url)} answered a range of its bytes with other ones; try again")
            return data, whole

    def range(self, url: str, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, exclusive; an answer that breaks off is asked for again."""
        for _ in range(_REPEATS):
            with contextlib.suppress(Unreachable):
                return self._range(url, start, stop)
        return self._range(url, start, stop)

    def _range(self, url: str, start: int, stop: int) -> bytes:
        response = self._get(url, {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"})
        with response:
            self._check(response, url)
            if response.status_code != 206 or _content_range(response, start, stop) is None:
                raise Unreachable(f"{shown(url)} answered a range of its bytes with other ones; try again")
            data = b"".join(self._pieces(response, stop - start, url))
            if len(data) != stop - start:
                raise Unreachable(f"{shown(url)} broke off in the middle of its answer; try again")
            return data

    def download(self, url: str, sink: BinaryIO, label: str) -> None:
        """Write a whole file to `sink`, telling how far it is."""
        local = local_path(url)
        if local is not None:
            try:
                sink.write(local.read_bytes())
            except OSError as error:
                raise Unreachable(f"cannot read {local}: {error.strerror}") from error
            return
        response = self._get(url, {"Accept-Encoding": "identity"})
        with response:
            self._check(response, url)
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            if total is not None and total > DOWNLOAD_BYTES:
                raise DriftcheckError(
                    f"{shown(url)} has {total:,} bytes, more than the {DOWNLOAD_BYTES:,} that are read"
                )
            done = 0
            for piece in self._pieces(response, DOWNLOAD_BYTES, url):
                sink.write(piece)
                done += len(piece)
                self.tell(label, done, total)
            if total is not None and done != total:
                raise Unreachable(f"{shown(url)} broke off after {done:,} of {total:,} bytes; try again")

    def tell(self, label: str, done: int, total: int | None) -> None:
        """Pass progress on to the caller."""
        if self._progress is not None:
            self._progress(label, done, total)

    def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            self._session.close()

    def _get(self, url: str, headers: dict[str, str]) -> requests.Response:
        import requests

        with self._lock:
            self._traffic.count(requests=1)
            if self._session is None:
                self._session = self._opened()
        host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
        trusted = {host, host.partition(":")[0]} & set(self._settings.trusted_hosts)
        proxy = self._settings.proxy
        try:
            return self._session.get(
                url,
                headers=headers,
                stream=True,
                timeout=self._seconds,
                # Given with the request, both win over the variables that requests reads by itself.
                verify=False if trusted else self._session.verify,
                proxies={"http": proxy, "https": proxy} if proxy else None,
            )
        except (requests.RequestException, OSError, ValueError) as error:
            way = proxy or requests.utils.select_proxy(url, requests.utils.get_environ_proxies(url))
            through = f" through the proxy {without_credentials(way)}" if way else ""
            raise Unreachable(f"cannot reach {shown(url)}{through}: {_reason(error)}; {_advice(error)}") from error

    def _opened(self) -> requests.Session:
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        from driftcheck import __version__

        session = requests.Session()
        session.headers["User-Agent"] = f"driftcheck/{__version__}"
        # A server that asks for a long wait is not waited for: an audit that hangs is worse than one that says why.
        retry = Retry(
            total=2,
            connect=1,
            read=1,
            backoff_factor=0.3,
            status_forcelist=(429, 502, 503, 504),
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        adapter = HTTPAdapter(pool_maxsize=CONNECTIONS, max_retries=retry)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        if self._settings.certificates:
            if not os.path.exists(self._settings.certificates):
                raise DriftcheckError(
                    f"the certificate file {self._settings.certificates} is missing; mend pip's cert or SSL_CERT_FILE"
                )
            session.verify = self._settings.certificates
        if self._settings.client_certificate:
            session.cert = self._settings.client_certificate
        if self._settings.trusted_hosts:
            import urllib3

            # The user has said to trust these hosts unseen: saying so at every request helps nobody.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        return session

    def _check(self, response: requests.Response, url: str) -> None:
        if response.status_code >= 400:
            advice = "check the credentials of the index" if response.status_code in (401, 403) else "try again later"
            raise Unreachable(f"{shown(url)} answered {response.status_code} {response.reason}; {advice}")

    def _pieces(self, response: requests.Response, bound: int, url: str) -> Iterator[bytes]:
        import requests

        count = 0
        try:
            for piece in response.iter_content(_CHUNK):
                count += len(piece)
                if count > bound:
                    raise DriftcheckError(f"{shown(url)} sends more than the {bound:,} bytes that are read of it")
                yield piece
        except (requests.RequestException, OSError) as error:
            raise Unreachable(
                f"{shown(url)} broke off in the middle of its answer: {_reason(error)}; try again"
            ) from error
        finally:
            self._traffic.count(received=count)


def local_path(url: str) -> Path | None:
    """The path that a `file:` URL names, None for any other."""
    parts = urllib.parse.urlsplit(url)
    return Path(urllib.request.url2pathname(parts.path)) if parts.scheme == "file" else None


def shown(url: str) -> str:
    """The URL as messages may show it: without credentials, query and fragment."""
    return without_credentials(url).partition("#")[0].partition("?")[0]


def _content_range(
    response: requests.Response, start: int | None = None, stop: int | None = None
) -> tuple[int, int, int] | None:
    """First byte, last byte and size as the answer states them; None where it doesn't, or states other ones."""
    import re

    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers.get("Content-Range", "").strip())
    if match is None or response.status_code != 206:
        return None
    first, last, size = (int(group) for group in match.groups())
    if (start is not None and first != start) or (stop is not None and last != stop - 1):
        return None
    return first, last, size


def _reason(error: Exception) -> str:
    """The innermost cause in one line, without the URL, which may carry credentials."""
    import re

    text = str(error)
    for known, words in (
        ("NameResolutionError", "the host name is not known"),
        ("Name or service not known", "the host name is not known"),
        ("CERTIFICATE_VERIFY_FAILED", "its certificate could not be verified"),
        ("Connection refused", "connection refused"),
        ("Network is unreachable", "the network is unreachable"),
        ("ProxyError", "the proxy refuses the connection"),
        ("timed out", "timed out"),
    ):
        if known in text:
            return words
    return re.sub(r"\S+://\S+", "…", " ".join(text.split()))[:200] or type(error).__name__


def _advice(error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "name your certificates with REQUESTS_CA_BUNDLE or pip's cert setting"
    return "check the network, the proxy (HTTPS_PROXY) and the index settings, or use --offline for what is cached"
