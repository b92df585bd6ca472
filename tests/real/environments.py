"""Environments with a real vLLM, made by uv outside the tree from the pins beside this file and kept between runs."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import filelock
import platformdirs

PINS = Path(__file__).parent
FOLDER_VARIABLE = "DRIFTCHECK_REAL_ENVIRONMENTS"
_COMPLETE = "complete"


def environment_names() -> list[str]:
    """The environments there are pins for, such as `vllm-0.16.0`."""
    return sorted(path.stem for path in PINS.glob("*.txt") if not path.stem.endswith(".overrides"))


def interpreter_of(name: str) -> Path:
    """The Python of the environment of that name, which is made first where it does not exist.

    The folder is named after the pins' hash, so changed pins make another environment. Safe under parallel runs; what
    an interrupted one left is made anew.
    """
    pins, overrides = PINS / f"{name}.txt", PINS / f"{name}.overrides.txt"
    content = pins.read_bytes() + b"\0" + overrides.read_bytes() + b"\0" + sys.version.encode()
    root = _root()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    with filelock.FileLock(f"{folder}.lock"):
        if not (folder / _COMPLETE).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            interpreter = folder / "bin" / "python"
            _uv("venv", "--python", sys.executable, str(folder))
            _uv("pip", "install", "--python", str(interpreter), "--override", str(overrides), "-r", str(pins))
            (folder / _COMPLETE).touch()
    return folder / "bin" / "python"


def bytecode_folder() -> Path:
    """Where interpreters of these environments keep what they compile, outside the environments."""
    return _root() / "bytecode"


def modules_of(interpreter: Path, package: str) -> list[str]:
    """The dotted names of a package's modules in that environment, sorted, without what runs when imported."""
    (site_packages,) = interpreter.parents[1].glob("lib/python3.*/site-packages")
    names = set()
    for path in (site_packages / package).rglob("*.py"):
        parts = path.relative_to(site_packages).with_suffix("").parts
        if parts[-1] != "__main__" and all(part.isidentifier() for part in parts):
            names.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return sorted(names)


def _root() -> Path:
    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_cache_path("driftcheck") / "real-environments"


def _uv(*arguments: str) -> None:
    found = shutil.which("uv")
    if found is None and importlib.util.find_spec("uv") is None:
        raise RuntimeError("uv is needed to make the environments with a real vLLM: pip install uv")
    command = [found] if found else [sys.executable, "-m", "uv"]
    finished = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"uv {arguments[0]} failed: {finished.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    for chosen_name in sys.argv[1:] or environment_names():
        print(interpreter_of(chosen_name))
