"""What an override is given where its base has changed."""

from __future__ import annotations

import pytest

from driftcheck.compare.derived_fixes import new_parameters
from driftcheck.model import Location
from tests.compare.notation import signature


@pytest.mark.parametrize(
    ("own", "base", "before", "added"),
    [
        ("a", "a, b", "a", ["b=None"]),
        ("a", "a, *, b=0", "a", ["b=0"]),
        # Left out already with the baseline: that was meant.
        ("a", "a, b", "a, b", None),
        # `a` is called `c` now, so nobody passes it.
        ("a", "c", "a", None),
        ("a", "c, b", "a", None),
        ("a=0", "c", "a=0", ["c=None"]),
        # Of a name of the client's own nothing follows: it may be passed by its place.
        ("x", "a, b", "a", ["b=None"]),
    ],
)
def test_new_parameters(own: str, base: str, before: str, added: list[str] | None) -> None:
    found = new_parameters(Location("app.py", 1), signature(own), signature(base), signature(before))
    assert (None if found is None else [edit.parameter("parameter") for edit in found.edits]) == added
