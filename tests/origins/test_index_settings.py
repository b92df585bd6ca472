"""The user's own index settings, and what is said when no index answers."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.origins import index_settings
from driftcheck.origins.index_settings import IndexSettings, read_index_settings
from driftcheck.origins.select import target_tree
from driftcheck.origins.settings import Settings
from tests.origins.archives import wheel
from tests.origins.server import Index, Server

NOTHING = {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}
SOURCES = {"engine/__init__.py": "A = 1\n"}


def test_nothing_said_means_the_public_index() -> None:
    settings = read_index_settings(NOTHING)
    assert settings.default
    assert settings.urls == ()


@pytest.mark.parametrize(
    ("variables", "urls", "default"),
    [
        ({"PIP_INDEX_URL": "http://a/s"}, ("http://a/s",), False),
        ({"PIP_EXTRA_INDEX_URL": "http://a/s http://b/s"}, ("http://a/s", "http://b/s"), True),
        ({"UV_INDEX_URL": "http://u/s"}, ("http://u/s",), False),
        ({"UV_DEFAULT_INDEX": "mine=http://u/s", "UV_INDEX_URL": "http://v/s"}, ("http://u/s",), False),
        ({"UV_INDEX": "one=http://u/s http://v/s"}, ("http://u/s", "http://v/s"), True),
        ({"PIP_INDEX_URL": "http://a/s", "UV_DEFAULT_INDEX": "http://u/s"}, ("http://a/s",), False),
        ({"PIP_NO_INDEX": "1", "PIP_INDEX_URL": "http://a/s"}, (), False),
        ({"PIP_INDEX_URL": ""}, (), True),
    ],
)
def test_variables(variables: dict[str, str], urls: tuple[str, ...], default: bool) -> None:
    settings = read_index_settings(NOTHING | variables)
    assert (settings.urls, settings.default) == (urls, default)


def test_pip_file(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = http://a/s\nextra-index-url =\n    http://b/s\n    http://c/s\n"
        "cert = /etc/mine.pem\nproxy = http://proxy:3128\ntrusted-host = a b\n[install]\nindex-url = http://d/s\n"
    )
    settings = read_index_settings({"PIP_CONFIG_FILE": str(file), "UV_NO_CONFIG": "1"})
    assert settings.urls == ("http://d/s", "http://b/s", "http://c/s")
    assert (settings.certificates, settings.proxy) == ("/etc/mine.pem", "http://proxy:3128")
    assert settings.trusted_hosts == ("a", "b")
    overridden = {"PIP_CONFIG_FILE": str(file), "UV_NO_CONFIG": "1", "PIP_INDEX_URL": "http://e/s", "PIP_CERT": "/x"}
    assert read_index_settings(overridden).urls[0] == "http://e/s"
    assert read_index_settings(overridden).certificates == "/x"


@pytest.mark.skipif(os.name != "posix", reason="pip keeps its files elsewhere")
def test_places_of_pip_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    user = home / ".config" / "pip" / "pip.conf"
    environment = tmp_path / "venv" / "pip.conf"
    for file, url in ((user, "http://user/s"), (environment, "http://venv/s")):
        file.parent.mkdir(parents=True)
        file.write_text(f"[global]\nindex-url = {url}\n")
    variables = {"UV_NO_CONFIG": "1", "VIRTUAL_ENV": str(tmp_path / "none")}
    assert read_index_settings(variables).urls[0] == "http://user/s"
    variables["VIRTUAL_ENV"] = str(tmp_path / "venv")
    assert read_index_settings(variables).urls[0] == "http://venv/s"


@pytest.mark.parametrize("text", ["index-url = http://a/s\n", "[global\n", "[global]\nx\n  y = %(z)s\n", "\0"])
def test_damaged_pip_file_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(index_settings, "_pip_places", lambda variables: [])
    file = tmp_path / "pip.conf"
    file.write_text(text)
    assert read_index_settings({"PIP_CONFIG_FILE": str(file), "UV_NO_CONFIG": "1"}).urls == ()


def test_uv_file(tmp_path: Path) -> None:
    file = tmp_path / "uv.toml"
    file.write_text(
        '[[index]]\nname = "torch"\nurl = "http://t/s"\nexplicit = true\n'
        '[[index]]\nname = "mine"\nurl = "http://m/s"\ndefault = true\n'
        '[[index]]\nurl = "http://n/s"\n'
    )
    settings = read_index_settings({"PIP_CONFIG_FILE": os.devnull, "UV_CONFIG_FILE": str(file)})
    assert (settings.urls, settings.default) == (("http://m/s", "http://n/s"), False)
    file.write_text("index-url = [broken")
    assert read_index_settings({"PIP_CONFIG_FILE": os.devnull, "UV_CONFIG_FILE": str(file)}).default


def test_key_ignores_credentials_and_tells_indexes_apart() -> None:
    def key(*urls: str) -> str:
        return IndexSettings(urls=urls, default=False).key

    assert key("http://me:secret@a/s") == key("http://a/s") == key("http://me:other@a/s")
    assert len({key("http://a/s"), key("http://b/s"), key("http://a/s", "http://b/s"), key()}) == 4


def test_certificates_of_the_environment() -> None:
    assert read_index_settings(NOTHING | {"SSL_CERT_FILE": "/a.pem"}).certificates == "/a.pem"
    # requests itself reads this one, and it stands above SSL_CERT_FILE.
    given = NOTHING | {"SSL_CERT_FILE": "/a.pem", "REQUESTS_CA_BUNDLE": "/b.pem"}
    assert read_index_settings(given).certificates is None


def message(specification: str, settings: Settings) -> str:
    with pytest.raises(DriftcheckError) as caught:
        target_tree(specification, settings=settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_missing_package_and_version(index: Index, settings: Settings) -> None:
    for version in ("0.9", "1.0", "1.1", "1.2", "2.0", "2.1rc1"):
        index.add("engine", f"engine-{version}-py3-none-any.whl", wheel("engine", version, SOURCES))
    assert message("nothing==1.0", settings).startswith("no package nothing on the index")
    assert message("engine==1.1.5", settings) == "no release 1.1.5 of engine on the index; nearest are 1.0, 1.1, 1.2"
    assert message("engine==9", settings).endswith("nearest are 1.1, 1.2, 2.0")
    assert message("engine==0.1", settings).endswith("nearest are 0.9, 1.0, 1.1")
    assert "'newest' in engine==newest is not a version" in message("engine==newest", settings)


def test_missing_offline(settings: Settings, offline: Settings, index: Index) -> None:
    assert "engine 1.0 is not in the cache (no release of it is), and --offline" in message("engine==1.0", offline)
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    target_tree("engine==1.0", settings=settings)
    assert "(only 1.0 of it is)" in message("engine==1.1", offline)
    assert "no release of other in the cache" in message("other==latest", offline)
    assert len(index.log) == 2


def test_unreachable_index(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:secret@127.0.0.1:{port}/simple")
    text = message("engine==1.0", settings)
    assert f"cannot reach http://127.0.0.1:{port}/simple/engine/: connection refused" in text
    assert "--offline" in text
    assert "proxy" in text
    assert "secret" not in text


def test_unreachable_proxy(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("PIP_PROXY", f"http://me:secret@127.0.0.1:{port}")
    text = message("engine==1.0", settings)
    assert f"through the proxy http://127.0.0.1:{port}: connection refused" in text
    assert "secret" not in text
    assert index.log == []


def test_proxy_is_used(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("PIP_PROXY", index.url)
    monkeypatch.setenv("PIP_INDEX_URL", "http://nowhere.invalid/simple")
    assert "no package engine" in message("engine==1.0", settings)
    assert index.log == ["http://nowhere.invalid/simple/engine/"]


def test_credentials_are_sent_and_never_shown(
    index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
    index.user = "Basic " + base64.b64encode(b"me:secret").decode()
    text = message("engine==1.0", settings)
    assert "answered 401" in text
    assert "credentials" in text
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple".replace("://", "://me:secret@"))
    assert target_tree("engine==1.0", settings=settings).read("engine/__init__.py") == b"A = 1\n"
    assert not [file for file in settings.cache.rglob("*") if file.is_file() and b"secret" in file.read_bytes()]
    assert "secret" not in message("engine==3", settings)


@pytest.mark.parametrize("status", [403, 500])
def test_refusing_index(index: Index, settings: Settings, status: int) -> None:
    index.status = status
    assert f"answered {status}" in message("engine==1.0", settings)


def test_page_that_is_none(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "simple" / "engine" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<html><body>Sign in</body></html>")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    assert "no package engine on the index" in message("engine==1.0", settings)


def test_index_of_files(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = "engine-1.0-py3-none-any.whl"
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / name).write_bytes(wheel("engine", "1.0", SOURCES))
    page = tmp_path / "simple" / "engine" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<html><body><a href="../../files/{name}">{name}</a></body></html>')
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    assert target_tree("engine==1.0", settings=settings).read("engine/__init__.py") == b"A = 1\n"
    (tmp_path / "files" / name).unlink()
    assert "cannot read" in message("engine==1.0", Settings(cache_folder=tmp_path / "other"))


def test_foreign_page_names_no_file_of_this_machine(index: Index, settings: Settings, tmp_path: Path) -> None:
    name = "engine-1.0-py3-none-any.whl"
    (tmp_path / name).write_bytes(wheel("engine", "1.0", SOURCES))
    index.as_json = False
    index.add("engine", name, b"")
    index.page_body = f'<a href="{(tmp_path / name).as_uri()}">{name}</a>'
    assert "no package engine" in message("engine==1.0", settings)


def test_second_index_answers_where_the_first_does_not(
    index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Index()
    server = Server(other)
    try:
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{other.url}/simple")
        index.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", SOURCES))
        other.add("engine", "engine-1.0-py3-none-any.whl", wheel("engine", "1.0", {"engine/__init__.py": "A = 9\n"}))
        other.add("engine", "engine-2.0-py3-none-any.whl", wheel("engine", "2.0", SOURCES))
        assert target_tree("engine==1.0", settings=settings).read("engine/__init__.py") == b"A = 1\n"
        assert other.log == []
        assert target_tree("engine==latest", settings=settings).version == "2.0"
        index.status = 500
        fresh = Settings(cache_folder=settings.cache / "fresh")
        assert target_tree("engine==1.0", settings=fresh).read("engine/__init__.py") == b"A = 9\n"
        other.status = 500
        assert "answered 500" in message("engine==3.0", settings)
    finally:
        server.stop()


def test_index_switched_off(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert "no-index" in message("engine==1.0", settings)


def test_missing_certificates(index: Index, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", "/nowhere/mine.pem")
    assert "/nowhere/mine.pem" in message("engine==1.0", settings)
    assert index.log == []
