"""Slim trees hold what ordinary ones hold, and pass for them."""

from __future__ import annotations

import ast
import copy
import pickle
import sysconfig
from pathlib import Path

import pytest

from driftcheck.surface.slim_trees import for_slim_nodes, slim
from driftcheck.surface.syntax import nodes_of

LIBRARY = Path(sysconfig.get_path("stdlib"))
SOURCE = '''@d(1, k=u"x")
async def f(a: int, /, b=1, *c, d: "str" = 2, **e) -> None:  # type: ignore
    """Text."""
    global g
    x: int
    async with a as (b, *c), d:
        y[1:2, ...] = lambda *p: (yield)
    try:
        return {**a, "k": f"{b!r:>{c}}"} if (w := -x) < 3 <= 4 else [i async for i in j if i]
    except (A, B) as error:
        raise C from error
    match a:
        case {"k": [1, *rest], **others} | D(x=None) as whole if whole:
            del a.b
        case _:
            from ..m import n as o, p
'''


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("[a-f]*.py")), ids=lambda path: path.stem)
def test_a_slim_tree_says_the_same(path: Path) -> None:
    text = path.read_text("utf-8", "replace")
    ordinary, thin = ast.parse(text), slim(ast.parse(text))
    assert ast.unparse(thin) == ast.unparse(ordinary)
    assert ast.dump(copy.deepcopy(thin), include_attributes=True) == ast.dump(ordinary, include_attributes=True)
    assert [type(node).__name__ for node in nodes_of(thin)] == [type(node).__name__ for node in nodes_of(ordinary)]


def test_nodes_of_all_sorts_have_no_dictionary() -> None:
    thin = slim(ast.parse(SOURCE))
    kept = {type(node).__name__: vars(node) for node in nodes_of(thin) if vars(node)}
    # What nearly no node has stays outside of the slots.
    assert kept == {"Constant": {"kind": "u"}}
    assert ast.unparse(thin) == ast.unparse(ast.parse(SOURCE))


def test_they_are_what_they_stand_for() -> None:
    (statement,) = slim(ast.parse("a.b = 3000")).body
    assert isinstance(statement, ast.Assign)
    target = statement.targets[0]
    assert isinstance(target, ast.Attribute | ast.Name)
    assert isinstance(target.ctx, ast.Store)
    assert for_slim_nodes({ast.Assign: 1})[type(statement)] == 1
    assert for_slim_nodes({ast.Assign: 1})[ast.Assign] == 1


def test_copies_and_pickles_are_ordinary() -> None:
    thin = slim(ast.parse(SOURCE))
    for again in (copy.deepcopy(thin), pickle.loads(pickle.dumps(thin))):
        assert {type(node) for node in ast.walk(again)} == {type(node) for node in ast.walk(ast.parse(SOURCE))}
        assert ast.dump(again, include_attributes=True) == ast.dump(ast.parse(SOURCE), include_attributes=True)


def test_lines_far_down_are_true() -> None:
    thin = slim(ast.parse("\n" * 30_000 + "x"))
    assert [(node.lineno, node.end_lineno) for node in nodes_of(thin) if isinstance(node, ast.Name)] == [(30_001,) * 2]


def test_what_is_nested_too_deeply_stays_usable() -> None:
    text = "x = 1\ny = " + " + ".join(["a"] * 1_500) + "\nz = 2\n"
    thin = slim(ast.parse(text))
    assert [node.id for node in nodes_of(thin) if isinstance(node, ast.Name)].count("a") == 1_500
    assert [ast.unparse(statement) for statement in thin.body[::2]] == ["x = 1", "z = 2"]
