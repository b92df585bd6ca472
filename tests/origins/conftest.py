"""An index on this machine and a cache of its own for every test, shut off from the user's settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from driftcheck.origins.settings import Settings
from tests.origins.server import Index, Server

_USER_SETTINGS = ("PIP_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "DRIFTCHECK_", "GIT_", "PYTHONPATH")


@pytest.fixture(autouse=True)
def no_user_settings(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The settings of whoever runs the tests count only where a test asks the real index."""
    if request.node.get_closest_marker("index") is not None:
        return
    for name in list(os.environ):
        if name.upper().startswith(_USER_SETTINGS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a cache folder of the test's own."""
    return Settings(cache_folder=tmp_path / "cache")


@pytest.fixture
def offline(settings: Settings) -> Settings:
    """The same cache, and nothing else."""
    return Settings(offline=True, cache_folder=settings.cache_folder)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index that answers, named as pip's."""
    index = Index()
    server = Server(index)
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    try:
        yield index
    finally:
        server.stop()
