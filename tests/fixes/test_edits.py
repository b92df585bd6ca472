"""Edits at many places: what comes out parses, differs where it should and nowhere else, and keeps every comment."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import driftcheck
from driftcheck.fixes.recipes import RECIPES, Planned, edited
from driftcheck.model import Edit, Location

OWN = sorted(Path(driftcheck.__file__).parent.rglob("*.py"))

CALLS = [
    "run(a=1)\n",
    "run(a=1, b=2)\n",
    "run(a=1, b=2,)\n",
    "run( a = 1 , b = 2 )\n",
    "run(\n    a=1,\n    b=2,\n)\n",
    "run(\n    a=1,\n    b=2\n)\n",
    "run(a=1,\n    b=2)\n",
    "run(a=1, b=2,\n    c=3, d=4)\n",
    "run(a=1,  # one\n    # above two\n    b=2,  # two\n    # at the end\n    )\n",
    "run(  # opening\n    # above one\n    a=1,  # one\n\n    # above two\n    b=2  # two\n    # last\n)  # end\n",
    "run(\n    a=1, b=2,  # both\n    c=3,\n)\n",
    "run(\n  a=1,\n  **{'b': 2, 'c': 3},\n)\n",
    "run(**{\n    'b': 2,  # two\n    # above three\n    'c': 3,  # three\n})\n",
    "run(*rest, a=1, **more)\n",
    "run(first, (second), a=run(a=1, b=run()))\n",
    "run(first, second := 2)\n",
    "run(item for item in a)\n",
    "run(lambda: run(a=1), a=lambda x, *y: (x, y))\n",
    "if x: run(a=1); run(b=2)\n",
    "for x in run(a=1): run(b=2)\n",
    "\tif 0: pass\n".lstrip() + "else:\n\trun(\n\t\ta=1,\n\t\tb=2,\n\t)\n",
    "async def f():\n  await run(a=1)\n  return await one.run(a=1, b=2)\n",
    "@run(a=1)\ndef f(): ...\n",
    "class A(run(a=1)):\n    x: run(a=1) = run(b=2)\n",
    "x = f'{run(a=1)} {one.two!r:>{run(b=2)}}'\n",
    "x = [run(a=1) for run.y in (run(a=1, b=2))]\n",
    "run(a='''\ntext # no comment\n''', b=2)\n",
    "x = (\n    one  # first\n    .two  # second\n    .run(a=1)\n)\n",
    "é = run('é', a='é', b='é')\n",
    "run(a=1, \\\n    b=2)\n",
    "x = 1\n\f\nrun(a=1, b=2)\n",
    "return_ = lambda:(one.run(a=1))if(one.two)else(one.two)\n",
    "print(one.two, one.two.three, one.run(a=1).two, *one.two, **one.two)\n",
    "one.two = one.two\none.two += one.two\nx: one.two = one.two\ndel one.two\n",
    "x = reply[0]\nreply[0] = reply[1]\nfor reply[0] in (run()[0])[0]: (x := reply[0])\nx[  # first\n    0\n]\n",
    "reply = run(\n    a=1,\n)[0]\nreturn_ = lambda: reply[0]if reply[0]else(reply[0])\n",
    "a, b = run(a=1)\n(a, b), [c, d] = run(a=1)\n(\n    a,  # first\n    b\n) = (c, ) = run()\nfor a, b in c: e\n",
    "(\n    a,\n    # about b\n    b,\n) = [\n    c, d,  # both\n] = run()\nx = [a for (a, b), c in run(b=2)]\n",
    "run('old.home', 'A.b', a=1)\nrun(\n    \"old.home\",  # where\n    'A.b')\n",
    "os.environ['A'] = '1'  # about\n# above\nx = 1\nif x:\n    # why\n    os.environ['B'] = 1\nos.environ['C'] = 2\n",
    "match one.two:\n    case one.two(two=one.two): run(a=1)\n",
]
IMPORTS = [
    "from old import a\n",
    "from old import a, b\n",
    "from old import a as x, b as b\n",
    "from old import a  # noqa: F401\n",
    "from old import a, b  # type: ignore[attr-defined]\n",
    "from old import (a, b)\n",
    "from old import (\n    a,\n    b,\n)\n",
    "from old import (\n    a,  # noqa: F401\n    # above b\n    b,  # about b\n    # at the end\n)\n",
    "from old import (  # opening\n    # above a\n    a,\n    b as c  # about b\n)\n",
    "from old import a, \\\n    b\n",
    "import x; from old import a, b; import y\n",
    "from old import a; import y\n",
    "import x; from old import a;\n",
    "import old.a as x, old.b as y\n",
    "import old.a as x  # noqa\n",
    "try:\n    from old import a\nexcept ImportError:\n    a = None\n",
    "try: from old import a\nexcept ImportError: a = None\n",
    "try:\n\tfrom old import a, b\nexcept ImportError:\n\ta = b = None\n",
    "if x:\n  from old import a\n  from old import b\n",
    "def f():\n    '''Says what it does.'''\n    # above\n    from old import a  # behind\n\n    return a\n",
    "'''Says what it is for.'''\n# above\nfrom old import a, b\n# below\n",
    "class A:\n\n    from old import a\n",
]
DEFINITIONS = [
    "class A:\n    def f(self): return super().f()\n",
    "class A:\n    def f(self, a, b=1, *, c=2, **rest):\n        return super().f(a, b, c=c, **rest)\n",
    (
        "class A:\n    def f(self, a, /, b: int = 1) -> int:\n"
        "        super(A, self).f(\n            a,  # about a\n            b=b,\n        )\n"
    ),
    (
        "class A:\n    def f(\n        self,\n        a,  # about a\n        # above b\n"
        "        b=None,  # about b\n        # at the end\n    ):\n        pass\n"
    ),
    "class A:\n    def f(\n        self,\n        a  # about a\n    ): pass\n",
    "class A:\n    def f(self,\n          a,\n          *args): pass\n",
    "class A:\n\tasync def f(self, *, a): return await super().f(a=a)\n",
    "class A:\n    @x\n    # above\n    def f(self, a=(1, 2), *args, b, **rest): pass\n",
    "def f(): pass\n",
    "def f(  # opening\n    # nothing yet\n): pass\n",
]
HELPER = """import functools

@functools.cache
def _own(f):
    return f

def _helped(f, *args, **kwargs):
    return _own(f)(*args, **kwargs)
"""

# Recipes whose edits say something of the place as it was, so that another edit there makes a difference.
APART = ("insert-call-after",)

Tree = ast.Module
Change = Callable[[Tree, ast.AST], None]


@dataclass(frozen=True)
class Case:
    """An edit, the node that it is about by its number in the tree, and what it does to the tree."""

    edit: Edit
    node: int
    change: Change
    removed: tuple[int, int] = (0, -1)


class Cases:
    """The edits that could be made to a file."""

    def __init__(self, source: bytes) -> None:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        self.lines = source.decode(encoding).replace("\r\n", "\n").split("\n")
        self.tree = ast.parse(source)

    def all(self) -> Iterator[Case]:
        for number, node in enumerate(ast.walk(self.tree)):
            for edit, change, *removed in self._of(node):
                yield Case(edit, number, change, *removed)

    def _of(self, node: ast.AST) -> Iterator[tuple[Any, ...]]:
        if isinstance(node, ast.Call):
            yield from self._of_call(node)
        elif isinstance(node, ast.keyword):
            yield _edit("rename-argument", self._at(node), to="new_name"), _rename_argument
            yield _edit("remove-argument", self._at(node)), _remove, (node.lineno, node.end_lineno)
        elif isinstance(node, ast.Attribute):
            place = self._name_of(node)
            yield _edit("rename-attribute", place, to="new_name"), _rename_attribute
            yield _edit("move-attribute", place, to="new_home.new_thing", was="old_home.old_thing"), _move_attribute
            yield _edit("replace-attribute", place, attribute=node.attr, value="1234"), _replace_attribute
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            if len(node.targets) == 1 and isinstance(node.value, ast.Constant):
                lines = (node.lineno, node.end_lineno)
                yield _edit("remove-statement", self._at(node.targets[0])), _remove_statement, lines
        elif isinstance(node, ast.alias) and node.name != "*":
            yield _edit("move-import", self._at(node), to="new_home.New"), partial(_move_import, "new_home.New")
            same = f"other.{node.name}"
            yield _edit("move-import", self._at(node), to=same), partial(_move_import, same)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            line = self.lines[node.lineno - 1]
            start = line.index("def ") + 5
            place = Location("x.py", node.lineno, start, node.lineno, start + len(node.name))
            for written, more in (
                ("added=None", {"after": node.args.args[0].arg if node.args.args else ""}),
                ("added: int = 0", {"keyword-only": "yes"}),
                ("**added", {}),
                ("*added", {}),
            ):
                yield _edit("add-parameter", place, parameter=written, **more), partial(_add_parameter, written, more)
        elif isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
            if not any(isinstance(each, ast.Starred) for each in node.elts):
                yield _edit("take-rest", self._at(node)), _take_rest
        elif isinstance(node, ast.Subscript):
            yield _edit("unwrap-subscript", self._at(node)), _unwrap
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _edit("rename-string", self._at(node), was=node.value, to="new text"), _rename_string
            if node.value == "old.home":
                yield _edit("rename-strings", self._at(node), was="old.home:A.b", to="new.home:B.b"), _rename_strings

    def _of_call(self, node: ast.Call) -> Iterator[tuple[Any, ...]]:
        callee = self._name_of(node.func) if isinstance(node.func, ast.Attribute) else self._at(node.func)
        for index, argument in enumerate(node.args):
            lines = (argument.lineno, argument.end_lineno)
            yield _edit("remove-argument", self._at(argument)), partial(_remove_positional, index), lines
        yield _edit("add-argument", callee, argument="added", value="a or b"), _add_argument
        names = [f"name{index}" for index in range(len(node.args))]
        for first in range(min(2, len(names))):
            edit = _edit("positional-to-keyword", callee, first=str(first), names=",".join(names))
            yield edit, partial(_name_arguments, names, first)
        yield _edit("insert-call-after", callee, call="if {result}:\n    then({result})\n"), _insert_call
        yield _edit("insert-helper", callee, helper=HELPER), _insert_helper

    def _name_of(self, node: ast.Attribute) -> Location:
        place = self._at(node)
        return Location("x.py", place.end_line, place.end_column - len(node.attr), place.end_line, place.end_column)

    def _at(self, node: Any) -> Location:
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        return Location("x.py", start[0], self._column(*start), end[0], self._column(*end))

    def _column(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1].encode()[:offset].decode(errors="replace")) + 1


def _edit(recipe: str, place: Location, **parameters: str) -> Edit:
    return Edit(recipe, place, tuple(sorted(parameters.items())))


# What the edits do, said of Python's own tree


def _rename_argument(_: Tree, node: Any) -> None:
    node.arg = "new_name"


def _remove(tree: Tree, node: Any) -> None:
    holder = _holder(tree, node)
    if holder is not None:
        holder.keywords.remove(node)


def _remove_positional(index: int, _: Tree, node: Any) -> None:
    node.args[index] = None


def _holder(tree: Tree, node: ast.AST) -> Any:
    """What a node is part of, None where another edit has taken that out."""
    nodes = (each for each in ast.walk(tree) if any(child is node for child in ast.iter_child_nodes(each)))
    return next(nodes, None)


def _rename_attribute(_: Tree, node: Any) -> None:
    node.attr = "new_name"


def _put(tree: Tree, old: ast.AST, new: Any) -> None:
    holder = _holder(tree, old)
    for name, value in ast.iter_fields(holder) if holder is not None else ():
        if value is old:
            setattr(holder, name, new)
        elif isinstance(value, list) and any(each is old for each in value):
            value[:] = [
                part
                for each in value
                for part in ((new if isinstance(new, list) else [new]) if each is old else [each])
            ]


def _move_attribute(tree: Tree, node: Any) -> None:
    _put(tree, node, ast.Name("new_thing", node.ctx))
    tree.body.insert(0, ast.ImportFrom("new_home", [ast.alias("new_thing")], 0))


def _move_import(to: str, tree: Tree, node: Any) -> None:
    statement = _holder(tree, node)
    if isinstance(statement, ast.Import):
        node.name = to
        return
    module, _, name = to.rpartition(".")
    local = node.asname or node.name
    is_handed_on = node.asname == node.name
    moved = ast.alias(name, local if is_handed_on or local != name else None)
    statement.names.remove(node)
    _put(tree, statement, [*([statement] if statement.names else []), ast.ImportFrom(module, [moved], 0)])
    # Others of the same statement are looked for in what is left of it.
    if not statement.names:
        statement.module = None


def _add_parameter(written: str, more: dict[str, str], tree: Tree, node: Any) -> None:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    is_annotated = any(each.annotation for each in every if each is not None)
    annotation = ast.Name("int", ast.Load()) if "int" in written and is_annotated else None
    made = ast.arg("added", annotation)
    if written.startswith("**"):
        arguments.kwarg = made
        return
    if written.startswith("*"):
        arguments.vararg = made
        return
    default = ast.Constant(0 if "int" in written else None)
    if "keyword-only" in more or arguments.vararg is not None:
        arguments.kwonlyargs.append(made)
        arguments.kw_defaults.append(default)
    else:
        required = len(arguments.args) - len(arguments.defaults)
        place = next((i + 1 for i, each in enumerate(arguments.args) if each.arg == more["after"]), 0)
        place = len(arguments.args) if place < required else place
        arguments.args.insert(place, made)
        arguments.defaults.insert(max(0, place - max(0, required)) + max(0, -required), default)
    for call in _within(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == node.name:
            base = call.func.value
            is_base = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"
            if is_base and all(each.arg is not None for each in call.keywords):
                call.keywords.append(ast.keyword("added", ast.Name("added", ast.Load())))


def _within(function: Any) -> Iterator[ast.AST]:
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _unwrap(tree: Tree, node: Any) -> None:
    _put(tree, node, node.value)


def _replace_attribute(tree: Tree, node: Any) -> None:
    _put(tree, node, ast.Constant(1234))


def _remove_statement(tree: Tree, node: Any) -> None:
    is_alone = any(value == [node] for _, value in ast.iter_fields(_holder(tree, node)))
    _put(tree, node, [ast.Pass()] if is_alone else [])


def _take_rest(_: Tree, node: Any) -> None:
    node.elts.append(ast.Starred(ast.Name("_", ast.Store()), ast.Store()))


def _rename_string(_: Tree, node: Any) -> None:
    node.value = "new text"


def _rename_strings(tree: Tree, node: Any) -> None:
    call = _holder(tree, node)
    node.value, call.args[1].value = "new.home", "B.b"


def _add_argument(_: Tree, node: Any) -> None:
    either = ast.BoolOp(ast.Or(), [ast.Name("a", ast.Load()), ast.Name("b", ast.Load())])
    node.keywords.append(ast.keyword("added", either))


def _name_arguments(names: list[str], first: int, _: Tree, node: Any) -> None:
    named = list(zip(names, node.args, strict=True))[first:]
    node.keywords[:0] = [ast.keyword(name, value) for name, value in named if value is not None]
    node.args[first:] = []


def _insert_call(tree: Tree, node: Any) -> None:
    statement = _holder(tree, node)
    then = "if {0}:\n    then({0})\n"
    if isinstance(statement, ast.Assign):
        result = ast.unparse(statement.targets[0])
        _put(tree, statement, [statement, *ast.parse(then.format(result)).body])
        return
    made = ast.parse(f"output = f()\n{then.format('output')}return output\n").body
    made[0].value = node  # type: ignore[attr-defined]
    _put(tree, statement, made if isinstance(statement, ast.Return) else made[:-1])


def _insert_helper(tree: Tree, node: Any) -> None:
    if not any(isinstance(each, ast.FunctionDef) and each.name == "_helped" for each in tree.body):
        tree.body[:0] = ast.parse(HELPER).body
    node.args.insert(0, node.func)
    node.func = ast.Name("_helped", ast.Load())


# What is held against what


def _dumped(tree: Tree) -> str:
    """The tree in words: imports one a name and in order, and what stands at the head before all else."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, _in_order(value))
            elif name == "args" and isinstance(value, list):
                node.args = [each for each in value if each is not None]  # type: ignore[attr-defined]
    return "\n".join(ast.dump(each) for each in _head_first(tree.body))


def _in_order(body: list[ast.stmt]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    run: list[ast.stmt] = []
    for statement in [*body, ast.Pass()]:
        if isinstance(statement, ast.ImportFrom | ast.Import):
            for alias in statement.names:
                single = (
                    ast.ImportFrom(statement.module, [alias], statement.level)
                    if isinstance(statement, ast.ImportFrom)
                    else ast.Import([alias])
                )
                run.append(single)
            continue
        made += sorted(run, key=ast.dump)
        run = []
        made.append(statement)
    return made[:-1]


def _head_first(body: list[ast.stmt]) -> list[ast.stmt]:
    own = {ast.dump(each) for each in _in_order(ast.parse(f"from new_home import new_thing\n{HELPER}").body)}
    head = {ast.dump(each): each for each in body if ast.dump(each) in own}
    rest = [each for each in body if ast.dump(each) not in own]
    return [*(head[each] for each in sorted(head)), *_in_order(rest)]


def _expected(source: bytes, cases: Sequence[Case]) -> str:
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    # Those go first that tell by what stands there where they are to be made.
    first = ["insert-helper", "positional-to-keyword", "remove-argument", "add-parameter"]
    ranks = {recipe: -index for index, recipe in enumerate(first)}
    for case in sorted(cases, key=lambda case: ranks.get(case.edit.recipe, 0)):
        case.change(tree, nodes[case.node])
    return _dumped(tree)


def _comments(source: bytes) -> list[tuple[int, str]]:
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


def _check(source: bytes, cases: Sequence[Case], *, is_guarded: bool = False) -> list[Case]:
    """Makes the edits and holds what comes out against what should; gives those that were made.

    What a guard decides as it runs is not held against anything but Python's grammar.
    """
    result = edited(source, [Planned((case.edit,), is_guarded) for case in cases])
    made = [case for index, case in enumerate(cases) if index not in result.refused]
    told = "\n".join(
        [
            *(str(case.edit) for case in made),
            source.decode(errors="replace"),
            ">>>",
            result.source.decode(errors="replace"),
            str(dict(result.refused)),
        ]
    )
    if not made:
        assert result.source == source, told
        return []
    is_expected = is_guarded or _dumped(ast.parse(result.source)) == _expected(source, made)
    assert is_expected, told
    lost = Counter(
        text for line, text in _comments(source) if not any(case.removed[0] <= line <= case.removed[1] for case in made)
    )
    lost.subtract(text for _, text in _comments(result.source))
    assert not +lost, f"{+lost}\n{told}"
    if b"\r\n" in source:
        assert result.source.count(b"\n") == result.source.count(b"\r\n"), told
    assert _indents(result.source) <= (_indents(source) or {"    "}), told
    assert not [
        line
        for line in result.source.split(b"\n")
        if line != line.rstrip(b" \t") and line.strip() and line not in source.split(b"\n")
    ], told
    return made


def _indents(source: bytes) -> set[str]:
    """What blocks of statements are indented with, one level."""
    found = set()
    level = [""]
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.INDENT:
            found.add(token.string[len(level[-1]) :])
            level.append(token.string)
        elif token.type == tokenize.DEDENT:
            level.pop()
    return found


SNIPPETS = [*CALLS, *IMPORTS, *DEFINITIONS]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_edit_of_a_snippet(snippet: str) -> None:
    for text in (snippet, snippet.replace("\n", "\r\n")):
        source = text.encode()
        for case in Cases(source).all():
            _check(source, [case])


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_guarded_edit_of_a_snippet(snippet: str) -> None:
    source = snippet.encode()
    for case in Cases(source).all():
        _check(source, [case], is_guarded=True)


@pytest.mark.parametrize(
    "source",
    [
        "\ufeffé = run('é', a='é')  # é\nfrom old import é, b\n".encode(),
        "# coding: latin-1\né = run('é', a='é')  # é\nfrom old import é, b\n".encode("latin-1"),
        "#!/bin/python\n# vim: set fileencoding=cp1252 :\nrun('€', a='€')  # €\n".encode("cp1252"),
        b"import x\n\x0c\nrun(\n    a=1,  # one\n\x0c\n    b=2,\n)\n",
        b"run(a=1)",
        b"from old import a, b",
        b"class A:\n    def f(self): return run(a=1)",
    ],
)
def test_every_edit_of_an_odd_file(source: bytes) -> None:
    made = [case for each in Cases(source).all() for case in _check(source, [each])]
    assert made


STAYING = ("add-argument", "add-parameter", "rename-argument", "rename-attribute", "positional-to-keyword")


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_an_edit_that_is_made_again_makes_no_difference(snippet: str) -> None:
    source = snippet.encode()
    for case in Cases(source).all():
        if case.edit.recipe in STAYING:
            once = edited(source, [Planned((case.edit,))])
            again = edited(once.source, [Planned((case.edit,))])
            assert again.source == once.source


def test_every_recipe_is_made_somewhere() -> None:
    made = set()
    for snippet in SNIPPETS:
        source = snippet.encode()
        made |= {case.edit.recipe for each in Cases(source).all() for case in _check(source, [each])}
    assert made == set(RECIPES)


@settings(max_examples=150, deadline=None, derandomize=True, phases=[Phase.generate])
@given(st.data())
def test_several_edits_at_once(data: st.DataObject) -> None:
    snippets = data.draw(st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=3))
    _check_some(data, "".join(snippets).encode(), 6)


@settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])
@given(st.data())
def test_edits_of_own_sources(data: st.DataObject) -> None:
    _check_some(data, data.draw(st.sampled_from(OWN)).read_bytes(), 20)


def _check_some(data: st.DataObject, source: bytes, most: int) -> None:
    possible = [case for case in Cases(source).all() if case.edit.recipe not in APART]
    if possible:
        _check(source, data.draw(st.lists(st.sampled_from(possible), max_size=most, unique_by=lambda case: case.edit)))
