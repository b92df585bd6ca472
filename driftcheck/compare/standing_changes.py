"""What is different in what a symbol is, from one release to the next."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator

from driftcheck.compare.counterparts import counterparts, near_name
from driftcheck.compare.deprecation import ending_release
from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.symbol_history import Standing, SymbolChange

_POSITIONAL = (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL_OR_KEYWORD)


def standing_changes(before: Standing, after: Standing) -> Iterator[SymbolChange]:
    """The changes of a symbol that both releases have; of what one of them leaves open nothing is said."""
    if before.symbol and after.symbol and before.symbol != after.symbol:
        yield SymbolChange("defined-elsewhere", before=before.symbol, after=after.symbol)
    yield from _deprecation_changes(before.deprecation, after.deprecation)
    if not before.symbol or not after.symbol:
        return
    if before.sort != after.sort:
        yield SymbolChange("sort-changed", before=before.sort, after=after.sort)
    if before.bases != after.bases and before.sort == after.sort == "class":
        # Where a base is defined may change without it being another one.
        old, new = _names(before.bases), _names(after.bases)
        if old != new:
            yield SymbolChange("bases-changed", before=", ".join(old), after=", ".join(new))
    if before.signature is not None and after.signature is not None:
        yield from signature_changes(before.signature, after.signature)
    if before.field is not None and after.field is not None:
        yield from _field_changes(before.field, after.field)
    # The declared default says the same as the expression that reads a variable, and says it better.
    is_told = before.field != after.field
    if before.sort == after.sort and before.value and after.value and before.value != after.value and not is_told:
        yield SymbolChange("value-changed", before=before.value, after=after.value)


def signature_changes(before: Signature, after: Signature) -> Iterator[SymbolChange]:
    """The parameters that went, came or changed, then their order and what is given back."""
    continued = {old: new for old, new in counterparts(before, after).items() if _is_renamed(old, new, before, after)}
    old_names = {parameter.name for parameter in before.parameters}
    renamed = set(continued.values()) - old_names
    for parameter in before.parameters:
        if parameter.is_variadic:
            found = after.parameter(parameter.name)
            if found is None or found.kind is not parameter.kind:
                yield SymbolChange("parameter-removed", _starred(parameter), before=str(parameter))
            elif not same_annotation(parameter.annotation, found.annotation):
                yield _annotation(parameter, found)
            continue
        new_name = continued.get(parameter.name)
        if new_name is None:
            yield SymbolChange("parameter-removed", parameter.name, before=str(parameter))
            continue
        new = after.parameter(new_name)
        assert new is not None
        if new_name != parameter.name:
            yield SymbolChange("parameter-renamed", parameter.name, before=parameter.name, after=new_name)
        yield from _parameter_changes(parameter, new)
    kept = [parameter.name for parameter in after.parameters if parameter.name in continued.values()]
    for place, parameter in enumerate(after.parameters):
        if parameter.is_variadic:
            found = before.parameter(parameter.name)
            if found is None or found.kind is not parameter.kind:
                yield SymbolChange("parameter-added", _starred(parameter), after=str(parameter))
        elif parameter.name not in old_names and parameter.name not in renamed:
            following = [each.name for each in after.parameters[place + 1 :] if each.kind in _POSITIONAL]
            front = next((name for name in following if name in kept), "") if parameter.kind in _POSITIONAL else ""
            yield SymbolChange(
                "parameter-added",
                parameter.name,
                after=str(parameter),
                in_front_of=front,
                is_required=parameter.is_required,
            )
    old_order = [continued[each.name] for each in before.parameters if _is_kept(each, continued)]
    positional = {each.name for each in after.parameters if each.kind in _POSITIONAL}
    old_order = [name for name in old_order if name in positional]
    new_order = [each.name for each in after.parameters if each.name in old_order]
    if old_order != new_order:
        moved = ", ".join(_moved(old_order, new_order))
        yield SymbolChange("order-changed", moved, before=", ".join(old_order), after=", ".join(new_order))
    if not same_annotation(before.returns, after.returns):
        yield SymbolChange("returns-changed", before=before.returns, after=after.returns)


def _is_renamed(old: str, new: str, before: Signature, after: Signature) -> bool:
    """True for one parameter under two names: what merely stands in the place of another is a new one."""
    if old == new:
        return True
    one, other = before.parameter(old), after.parameter(new)
    assert one is not None and other is not None
    return near_name(old, (new,)) is not None and same_annotation(one.annotation, other.annotation)


def _moved(before: list[str], after: list[str]) -> list[str]:
    """The fewest names that have to be put elsewhere to come from one order to the other."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    stayed = {name for block in matcher.get_matching_blocks() for name in before[block.a : block.a + block.size]}
    return [name for name in after if name not in stayed]


def _is_kept(parameter: Parameter, continued: dict[str, str]) -> bool:
    return parameter.kind in _POSITIONAL and parameter.name in continued


def _parameter_changes(before: Parameter, after: Parameter) -> Iterator[SymbolChange]:
    name = after.name
    if before.kind is not after.kind:
        yield SymbolChange("kind-changed", name, before.kind.value, after.kind.value)
    yield from _field_changes(before, after)


def _field_changes(before: Parameter, after: Parameter) -> Iterator[SymbolChange]:
    """The changes of a parameter, or of a field: required or not, default, declared type."""
    name = after.name
    if before.default is not None and after.default is None:
        yield SymbolChange("parameter-required", name, before=before.default, is_required=True)
    elif before.default is None and after.default is not None:
        yield SymbolChange("parameter-optional", name, after=after.default)
    elif before.default != after.default:
        yield SymbolChange("default-changed", name, before.default, after.default)
    if not same_annotation(before.annotation, after.annotation):
        yield _annotation(before, after)


def _annotation(before: Parameter, after: Parameter) -> SymbolChange:
    return SymbolChange("annotation-changed", _starred(after), before.annotation, after.annotation)


def _deprecation_changes(before: str | None, after: str | None) -> Iterator[SymbolChange]:
    if before is None and after is not None:
        yield SymbolChange("deprecated", after=" ".join(after.split()))
    elif before is not None and after is None:
        yield SymbolChange("deprecation-lifted", before=" ".join(before.split()))
    elif before is not None and after is not None:
        old, new = ending_release(before), ending_release(after)
        if old != new:
            yield SymbolChange("deprecation-changed", before=old, after=new)


def _starred(parameter: Parameter) -> str:
    stars = {ParameterKind.VAR_POSITIONAL: "*", ParameterKind.VAR_KEYWORD: "**"}
    return stars.get(parameter.kind, "") + parameter.name


def _names(paths: tuple[str, ...]) -> list[str]:
    return [path.rpartition(".")[2] for path in paths]


def same_annotation(before: str | None, after: str | None) -> bool:
    """True for annotations that mean the same in another spelling: `Optional[List[int]]` and `list[int] | None`."""
    return before == after or (before is not None and after is not None and _spelled(before) == _spelled(after))


def is_part_of(annotation: str | None, whole: str | None) -> bool:
    """True where every member of an annotation is one of another's, however both are spelled."""
    if annotation is None or whole is None:
        return False
    return set(_spelled(annotation).split(" | ")) <= set(_spelled(whole).split(" | "))


def _spelled(annotation: str) -> str:
    try:
        tree = ast.parse(annotation, mode="eval").body
        return ast.unparse(_Respelled().visit(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return annotation


class _Respelled(ast.NodeTransformer):
    """Spells annotations one way: unions with `|` and sorted, built-in containers, nothing in quotes or of `typing`."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            try:
                found: ast.expr = self.visit(ast.parse(node.value.strip(), mode="eval").body)
            except SyntaxError:
                return node
            return found
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in ("typing", "t", "typing_extensions"):
            return self.visit_Name(ast.Name(node.attr))
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(_BUILT_IN.get(node.id, node.id))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return _united(self.visit(part) for part in (node.left, node.right))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = self.visit(node.value)
        if isinstance(value, ast.Name) and value.id == "Literal":
            return ast.Subscript(value, node.slice)
        inside: ast.expr = self.visit(node.slice)
        if isinstance(value, ast.Name) and value.id == "Optional":
            return _united([inside, ast.Constant(None)])
        if isinstance(value, ast.Name) and value.id == "Union":
            return _united(inside.elts if isinstance(inside, ast.Tuple) else [inside])
        return ast.Subscript(value, inside)


_BUILT_IN = {
    "List": "list", "Dict": "dict", "Set": "set", "FrozenSet": "frozenset", "Tuple": "tuple", "Type": "type",
    "Deque": "deque", "DefaultDict": "defaultdict", "Text": "str",
}  # fmt: skip


def _united(members: Iterable[ast.expr]) -> ast.expr:
    """A union of these, flat and sorted, so that their order is no difference."""
    texts = {part for member in members for part in _parts(member)}
    return ast.Name(" | ".join(sorted(texts)))


def _parts(member: ast.expr) -> list[str]:
    # What is united already stands in a name, its members side by side.
    text = ast.unparse(member)
    return text.split(" | ") if isinstance(member, ast.Name) else [text]
