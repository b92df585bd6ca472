"""Fixtures for tests that probe a real interpreter over small packages."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from driftcheck.surface.runtime import RuntimeSurface, probe

from .probing import Ask


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """The folder that stands on the probed interpreter's path."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    return folder


@pytest.fixture
def ask(packages: Path) -> Ask:
    """Writes files, then probes symbols and modules among them."""

    def _ask(
        files: Mapping[str, str],
        symbols: tuple[str, ...] = (),
        modules: tuple[str, ...] = (),
        timeout: float = 60.0,
        patience: float | None = None,
        cache_folder: Path | None = None,
        program: str | Path = sys.executable,
    ) -> RuntimeSurface:
        for name, text in files.items():
            path = packages / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), "utf-8")
        return probe(
            program,
            symbols,
            modules,
            timeout=timeout,
            patience=patience,
            cache_folder=cache_folder,
            cache_key="a hash" if cache_folder else None,
            environment={"PYTHONPATH": str(packages)},
        )

    return _ask
