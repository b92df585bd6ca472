"""A fix that edits several files is made in all of them or in none."""

from __future__ import annotations

from driftcheck.fixes.recipes import Planned, edited_files
from driftcheck.fixes.sharing import is_taken_from
from driftcheck.model import Edit, Location
from driftcheck.tree import MemoryTree

SOURCES = {
    "a.py": b"run(a=1)\n",
    "b.py": b"run(a=(b := 2))\n",
    "c.py": b"run(a=1, c=1)\n",
    "odd\\name.py": b"run(a=1)\n",
    ".hidden/d.py": b"run(a=1)\n",
}


def _argument(path: str, name: str = "a") -> Edit:
    source = SOURCES[path].decode()
    start = source.index(f"{name}=") + 1
    place = Location(path, 1, start, 1, start + 3)
    return Edit("remove-argument", place, (("argument", name),))


def test_what_is_refused_in_one_file_is_made_in_none() -> None:
    whole, single = Planned((_argument("a.py"), _argument("b.py"))), Planned((_argument("c.py", "c"),))
    result = edited_files(SOURCES.__getitem__, [whole, single, Planned((_argument("a.py"), _argument("c.py")))])
    assert list(result.refused) == [0]
    assert "does something" in result.refused[0]
    assert result.files == {"a.py": b"run()\n", "c.py": b"run()\n"}
    alone = edited_files(SOURCES.__getitem__, [whole, single])
    assert alone.files == {"c.py": b"run(a=1)\n"}


def test_a_file_that_may_not_be_changed_leaves_the_others_to_their_fixes() -> None:
    paths = ["odd\\name.py", ".hidden/d.py", "a.py"]
    result = edited_files(SOURCES.__getitem__, [Planned((_argument(path),)) for path in paths])
    assert result.files == {"a.py": b"run()\n"}
    assert [result.refused[index].split(" is ")[0] for index in (0, 1)] == ["'odd\\\\name.py'", "'.hidden/d.py'"]


def test_which_names_other_files_take() -> None:
    tree = MemoryTree(
        {
            "p/settings.py": b"from x import FIRST, SECOND, THIRD, FOURTH, FIFTH\n",
            "p/__init__.py": b"from x import SIXTH\n",
            "p/one.py": b"from .settings import FIRST\nfrom .others import FIFTH  # settings\n",
            "p/two.py": b"from p import settings\nprint(settings.SECOND)\n",
            "p/three.py": b"mock.patch('p.settings.THIRD')\n",
        },
        "client",
    )
    names = ["FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH"]
    assert [name for name in names if is_taken_from(tree, "p/settings.py", name)] == names[:3]
    assert is_taken_from(tree, "p/__init__.py", "SIXTH")
