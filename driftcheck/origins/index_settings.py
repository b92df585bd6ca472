"""The user's own index settings: the variables and configuration files of pip and uv."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Where releases are looked for, in this order, and how the connection is made.

    `urls` is empty where the user has switched the index off. `default` is True where no setting names an index, so
    that the public one counts as the first of them.
    """

    urls: tuple[str, ...]
    default: bool
    certificates: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None
    trusted_hosts: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A short hash of the indexes, without credentials: the same release may differ from index to index."""
        import hashlib

        text = "\n".join(("default",) * self.default + tuple(without_credentials(url) for url in self.urls))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def without_credentials(url: str) -> str:
    """The URL without the user name and password that it may carry."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


def read_index_settings(environment: Mapping[str, str] | None = None) -> IndexSettings:
    """The settings in force: variables before files, pip's before uv's, the public index where nothing is said."""
    variables = os.environ if environment is None else environment
    pip = dict(_pip_files(variables))
    for name, value in variables.items():
        if name.startswith("PIP_") and value:
            pip[name[4:].lower().replace("_", "-")] = value
    uv_default, uv_extra = _uv_indexes(variables)

    base = pip.get("index-url") or uv_default
    extra = pip.get("extra-index-url", "").split() + uv_extra
    switched_off = pip.get("no-index", "").lower() in ("1", "true", "yes", "on")
    urls = [] if switched_off else [url.strip() for url in ([base] if base else []) + extra if url.strip()]
    return IndexSettings(
        urls=tuple(dict.fromkeys(urls)),
        default=not base and not switched_off,
        certificates=pip.get("cert") or (None if _requests_certificates(variables) else variables.get("SSL_CERT_FILE")),
        client_certificate=pip.get("client-cert") or variables.get("SSL_CLIENT_CERT") or None,
        proxy=pip.get("proxy"),
        trusted_hosts=tuple(pip.get("trusted-host", "").split()),
    )


def _requests_certificates(variables: Mapping[str, str]) -> bool:
    return bool(variables.get("REQUESTS_CA_BUNDLE") or variables.get("CURL_CA_BUNDLE"))


def _pip_files(variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The options of pip's files, later ones replacing earlier ones: global, user, environment, PIP_CONFIG_FILE."""
    given = variables.get("PIP_CONFIG_FILE")
    if given == os.devnull:
        return
    files = list(_pip_places(variables))
    if given:
        files.append(Path(given))
    for file in files:
        if not file.is_file():
            continue
        import configparser

        parser = configparser.RawConfigParser()
        try:
            parser.read_string(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            # pip itself refuses such a file with a message of its own; an audit need not die of it.
            continue
        for section in ("global", "install"):
            if parser.has_section(section):
                for option, value in parser.items(section):
                    if value:
                        yield option.replace("_", "-"), value


def _pip_places(variables: Mapping[str, str]) -> Iterator[Path]:
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        yield Path(variables.get("PROGRAMDATA", "C:\\ProgramData"), "pip", "pip.ini")
        yield home / "pip" / "pip.ini"
        yield Path(variables.get("APPDATA", home / "AppData" / "Roaming"), "pip", "pip.ini")
        yield Path(variables.get("VIRTUAL_ENV", sys.prefix), "pip.ini")
        return
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
    for folder in reversed((variables.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
        yield Path(folder, "pip", "pip.conf")
    yield Path("/etc/pip.conf")
    yield home / ".pip" / "pip.conf"
    yield Path(variables.get("XDG_CONFIG_HOME") or home / ".config", "pip", "pip.conf")
    if sys.platform == "darwin":
        yield home / "Library/Application Support/pip/pip.conf"
    yield Path(variables.get("VIRTUAL_ENV") or sys.prefix, "pip.conf")


def _uv_indexes(variables: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """uv's default index, None where none is set, and the others."""
    default = variables.get("UV_DEFAULT_INDEX") or variables.get("UV_INDEX_URL")
    extra = (variables.get("UV_INDEX", "") + " " + variables.get("UV_EXTRA_INDEX_URL", "")).split()
    if not variables.get("UV_NO_CONFIG"):
        for table in _uv_tables(variables):
            default = default or _text(table.get("index-url"))
            extra += [url for url in _list(table.get("extra-index-url")) if isinstance(url, str)]
            for index in _list(table.get("index")):
                url = _text(index.get("url")) if isinstance(index, dict) else None
                if url is None or index.get("explicit"):
                    continue
                if index.get("default"):
                    default = default or url
                else:
                    extra.append(url)
    return _unnamed(default) if default else None, [_unnamed(url) for url in extra]


def _uv_tables(variables: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The tables of uv's files, the user's before the system's; a client's own files are not the user's settings."""
    given = variables.get("UV_CONFIG_FILE")
    home = Path(os.path.expanduser("~"))
    places = (
        [Path(given)]
        if given
        else [Path(variables.get("XDG_CONFIG_HOME") or home / ".config", "uv", "uv.toml"), Path("/etc/uv/uv.toml")]
    )
    for place in places:
        if place.is_file():
            from driftcheck.origins.metadata import parse_toml

            try:
                yield parse_toml(place.read_bytes())
            except (OSError, ValueError):
                continue


def _unnamed(index: str) -> str:
    """The URL of an index that uv lets be written as `name=url`."""
    return re.sub(r"^[A-Za-z0-9._-]+=(?=[a-z]+:)", "", index)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
