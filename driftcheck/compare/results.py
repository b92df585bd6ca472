"""Is the result of a call taken apart like a list: subscripted, iterated, measured or unpacked, now or later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from driftcheck.compare.client_code import enclosing_class, enclosing_function
from driftcheck.compare.live_code import is_dead
from driftcheck.surface.declarations import ModuleDeclaration
from driftcheck.surface.program import Program
from driftcheck.surface.syntax import children, nodes_of

_TAKING_ITERABLES = frozenset(
    ("len", "list", "tuple", "iter", "enumerate", "zip", "sorted", "next", "sum", "any", "all")
)


def taken_apart(program: Program, module: ModuleDeclaration, call: ast.Call) -> ast.AST | None:
    """The first place where the result of a call is taken apart, None where nothing that can run shows it."""
    around = enclosing_class(module.tree, call.lineno)
    parents = {id(child): node for node in nodes_of(around) for child in children(node)}
    function = enclosing_function(module.tree, call.lineno)
    node: ast.AST = call
    parent = parents.get(id(node))
    while isinstance(parent, ast.Await):
        node, parent = parent, parents.get(id(parent))
    if parent is None:
        return None
    for place in _places(node, parent, function, around):
        if not is_dead(program, module, place, parents):
            return place
    return None


def _places(node: ast.AST, parent: ast.AST, function: ast.AST, around: ast.AST) -> Iterator[ast.AST]:
    """The places where a value is taken apart that stands right below `parent`, in its function or class."""
    if isinstance(parent, ast.comprehension) or _takes_apart(parent, node):
        yield node if isinstance(parent, ast.comprehension | ast.For | ast.AsyncFor) else parent
        return
    targets: list[ast.expr] = []
    if isinstance(parent, ast.Assign):
        targets = parent.targets
    elif isinstance(parent, ast.AnnAssign | ast.NamedExpr):
        targets = [parent.target]
    for target in targets:
        if isinstance(target, ast.Name):
            yield from _uses(function, target.id, parent)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            yield from _uses(around, ast.unparse(target), parent)


def _uses(root: ast.AST, name: str, assignment: ast.AST) -> Iterator[ast.AST]:
    """The places after an assignment where what a name stands for is taken apart; of attributes, all places."""
    if any(isinstance(node, ast.Call) and _is_type_test(node, name) for node in nodes_of(root)):
        # The client tells one reply from a list of them itself.
        return
    is_attribute = "." in name
    first = 0 if is_attribute else getattr(assignment, "end_lineno", None) or 0
    last: int | None = None
    shadowed = _shadowed(root, name)
    for node in _in_order(root):
        if node.lineno <= first or id(node) in shadowed:
            continue
        if last is not None and node.lineno > last:
            return
        if not is_attribute and _rebinds(node, name):
            # Its own new value may still be made of the old one.
            last = node.iter.end_lineno if isinstance(node, ast.For | ast.AsyncFor) else node.end_lineno
        for value in _values_in(node):
            if isinstance(value, ast.Name | ast.Attribute) and ast.unparse(value) == name and _takes_apart(node, value):
                yield value if isinstance(node, ast.For | ast.AsyncFor) else node


def _in_order(root: ast.AST) -> list[ast.expr | ast.stmt]:
    """The statements and expressions below a root by place."""
    found = [node for node in nodes_of(root) if isinstance(node, ast.expr | ast.stmt)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _values_in(node: ast.AST) -> list[ast.AST]:
    """What stands right below a node; of a comprehension also what it goes over."""
    below = children(node)
    return below + [each.iter for each in below if isinstance(each, ast.comprehension)]


def _rebinds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.For | ast.AsyncFor):
        targets = [node.target]
    else:
        return False
    return any(_binds(target, name) for target in targets)


def _binds(target: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes_of(target))


def _shadowed(root: ast.AST, name: str) -> set[int]:
    """The nodes below a root that stand where the name means something else: a parameter, or a comprehension's own."""
    found: set[int] = set()
    for node in nodes_of(root):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and node is not root:
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            if any(argument is not None and argument.arg == name for argument in every):
                found.update(id(inner) for inner in nodes_of(node))
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            if any(_binds(generator.target, name) for generator in node.generators):
                found.update(id(inner) for inner in nodes_of(node))
    return found


def _takes_apart(node: ast.AST, value: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return node.value is value
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter is value
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        return any(generator.iter is value for generator in node.generators)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _TAKING_ITERABLES and value in node.args
    if isinstance(node, ast.Assign):
        return node.value is value and any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
    return isinstance(node, ast.Starred)


def _is_type_test(node: ast.Call, name: str) -> bool:
    is_test = isinstance(node.func, ast.Name) and node.func.id == "isinstance" and bool(node.args)
    return is_test and ast.unparse(node.args[0]) == name
