"""Outlines parse to the very trees that the whole sources give once the bodies of functions are dropped."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest

from driftcheck.surface.declarations import UnreadableSource, declare_module, decode_source, parse_source
from driftcheck.surface.outlines import outline_of
from driftcheck.surface.syntax import drop_bodies

LIBRARY = Path(sysconfig.get_path("stdlib"))
FORMS = {
    "on one line": "def f(a): return a\nx = 1\n",
    "several statements on the line": "def f(): a = 1; return a\n",
    "a single letter": "def f(): x\ndef g(): 1\n",
    "a body that ends further left": "def f():\n    return g(\n1,\n)\nx = 2\n",
    "a text that ends at the left edge": 'class A:\n    def f(self):\n        return """\n"""\n    y = 1\n',
    "a text of many lines": 'def f():\n    """One\n\nTwo\n"""\n',
    "a body that begins on the line of def": "def f(): return (\n1)\n",
    "a decorated function inside": "def f():\n    @g\n    def h(): pass\n    return h\n",
    "a decorated class inside": "class A:\n    def f(self):\n        @g(\n1)\n        class B: pass\n",
    "letters of several bytes": 'def f(å="é", b="ü"):  # ö\n    return "ä" + b"x" if å else "\\N{BULLET}"\nß = 1\n',
    "letters of several bytes on one line": 'def fé(å="é"): return "ä"\n',
    "branches": "if a:\n    def f(): pass\nelif b:\n    def f():\n        pass\n"
    "else:\n    class C:\n        def g(self): ...\n",
    "try": "try:\n    def f():\n        1\nexcept E:\n    def f(): 2\n"
    "else:\n    def g(): 3\nfinally:\n    def h():\n        4\n",
    "loops and with": "for a in b:\n    def f():\n        1\nwhile 1:\n    def f(): 2\n"
    "with a:\n    async def f():\n        3\n",
    "match": "match a:\n    case 1:\n        def f():\n            return 1\n    case _:\n        def f(): return 2\n",
    "a backslash at the end": "def f():\n    return 1 + \\\n        2\nx = 1\n",
    "tabs": "class A:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n\ty = 2\n",
    "a comment behind": "def f():\n    return 1  # one\n    # two\nx = 1  # three\n",
    "no line end": "def f():\n    return 1",
    "a class without functions": "class A:\n    x: int = 1\n",
}


def shown(text: str) -> str:
    """The tree of a source without the bodies of its functions, with the place of every node."""
    tree = parse_source(text)
    drop_bodies(tree)
    return ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_an_outline_says_the_same(text: str) -> None:
    outline = outline_of(text, parse_source(text))
    assert outline is not None
    assert shown(outline) == shown(text)


def test_pythons_own_modules_have_outlines() -> None:
    whole = kept = 0
    for file in sorted([*LIBRARY.glob("*.py"), *(LIBRARY / "asyncio").glob("*.py")]):
        try:
            text = decode_source(file.read_bytes())
            tree = parse_source(text)
        except UnreadableSource:
            continue
        outline = outline_of(text, tree)
        assert outline is not None, file.name
        assert shown(outline) == shown(text), file.name
        whole, kept = whole + len(text), kept + len(outline)
    assert 0 < kept < whole / 2


def test_bodies_are_read_from_the_source_all_the_same() -> None:
    text = "class A:\n    def f(self):\n        # a comment\n        return [\n            1]\n"
    outline = outline_of(text, parse_source(text))
    assert outline is not None
    parsed = [
        declare_module("m", "m.py", text.encode(), parse=parse) for parse in (None, lambda *_: ast.parse(outline))
    ]
    bodies = [next(module.names["A"][0].class_.methods()).body for module in parsed if module.names["A"][0].class_]
    assert len(bodies) == 2
    first, second = ([ast.dump(node, include_attributes=True) for node in body] for body in bodies)
    assert first == second
    assert "lineno=4" in first[0]
