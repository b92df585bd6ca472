"""Environments into which a real installer has put a client, with links into a cache as installers make them."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

from tests.origins.archives import Files, wheel


def environment(folder: Path) -> Path:
    """A new environment; its `site-packages`."""
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = folder.glob("lib/python3.*/site-packages")
    return site


def python(site: Path) -> Path:
    """The interpreter of an environment."""
    return site.parents[2] / "bin" / "python"


def install(site: Path, name: str, files: Files, *options: str) -> None:
    """Has uv install a wheel of these files, version 1.0, with nothing from an index."""
    home = site.parents[2]
    (home / "wheels").mkdir(exist_ok=True)
    file = home / "wheels" / f"{name}-1.0-py3-none-any.whl"
    file.write_bytes(wheel(name, "1.0", files))
    settings = {"UV_CACHE_DIR": str(home.parent / "uv-cache"), "UV_NO_CONFIG": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "VIRTUAL_ENV", "PYTHON"))}
    command = ["uv", "pip", "install", "--quiet", "--offline", "--no-index", "--no-deps", "--link-mode", "hardlink"]
    subprocess.run([*command, "--python", str(python(site)), *options, str(file)], check=True, env={**kept, **settings})


def output(site: Path, code: str, **variables: str) -> str:
    """What the environment's interpreter prints, started in a folder without files."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    (site.parents[2] / "empty").mkdir(exist_ok=True)
    command = [str(python(site)), "-c", code]
    done = subprocess.run(
        command, check=True, capture_output=True, env={**kept, **variables}, cwd=site.parents[2] / "empty"
    )
    return done.stdout.decode().strip()
