"""Marks what is tried of all models and releases, beyond those that .ci/run has the time for."""

from __future__ import annotations

from typing import Any

import pytest


def wide(*values: str) -> Any:
    """A set of parameters that `pytest -m wide` tries, and .ci/run does not."""
    return pytest.param(*values, marks=pytest.mark.wide)
