# mypy: disable-error-code="import-not-found"
"""What a run will use: releases and GPUs, found without importing vLLM or torch and without touching a GPU."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from driftcheck.extract.plan import size

_DRIVER = Path("/proc/driver/nvidia")


def environment() -> dict[str, str]:
    """Names and values, in the order in which they are shown; what is not there says so."""
    return {
        "vllm": release_of("vllm") or "not installed in this Python",
        "torch": release_of("torch") or "not installed in this Python",
        "driver": _driver() or "no GPU driver",
        "GPUs": _gpus() or "none",
    }


def release_of(package: str) -> str | None:
    """The installed release of what is imported by that name, whichever distribution brings it."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    names = metadata.packages_distributions().get(package)
    return metadata.version(names[0]) if names else None


def _driver() -> str | None:
    with suppress(OSError):
        found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", (_DRIVER / "version").read_text(encoding="utf-8"))
        return found[1] if found else None
    return None


def _gpus() -> str | None:
    """How many, which, and how much memory they have; only NVIDIA's own library knows the last."""
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            handles = [pynvml.nvmlDeviceGetHandleByIndex(place) for place in range(pynvml.nvmlDeviceGetCount())]
            found = [
                f"{pynvml.nvmlDeviceGetName(handle)} with {size(pynvml.nvmlDeviceGetMemoryInfo(handle).total)}"
                for handle in handles
            ]
        finally:
            pynvml.nvmlShutdown()
    except Exception:  # noqa: BLE001 (no library, no driver, no permission: then the driver's own files have to do)
        found = _gpu_names()
    return ", ".join(f"{found.count(name)} x {name}" for name in dict.fromkeys(found)) or None


def _gpu_names() -> list[str]:
    names = []
    for path in sorted(_DRIVER.glob("gpus/*/information")):
        with suppress(OSError):
            found = re.search(r"^Model:\s*(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            names.append(found[1].strip() if found else "unknown")
    return names
