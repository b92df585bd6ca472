"""What the diagnostics of ty and pyright are about, told from their rules and texts, and which of them are new."""

from __future__ import annotations

import re

from benchmarks.checkers import Diagnostic

SORTS = (
    "import",
    "name",
    "attribute",
    "store",
    "unknown argument",
    "missing argument",
    "too many arguments",
    "abstract",
    "unpack",
    "override",
    "typing",
)
_TY = {
    "import-not-found": "import",
    "missing-module-member": "name",
    "possibly-missing-import": "name",
    "missing-attribute": "attribute",
    "possibly-missing-submodule": "attribute",
    "unknown-argument": "unknown argument",
    "parameter-already-assigned": "unknown argument",
    "positional-only-parameter-as-kwarg": "unknown argument",
    "missing-argument": "missing argument",
    "too-many-positional-arguments": "too many arguments",
    "abstract-class-instantiation": "abstract",
    "abstract-method-in-final-class": "abstract",
    "incompatible-method-override": "override",
    "incompatible-attribute-override": "typing",
    "incompatible-mutable-override": "typing",
    "incompatible-property-override": "override",
    "lost-keyword-for-regular-parameter": "override",
    "override-of-final-method": "override",
    "override-of-final-variable": "override",
}
_PYRIGHT = {
    "reportMissingImports": "import",
    "reportAbstractUsage": "abstract",
    "reportIncompatibleMethodOverride": "override",
    "reportIncompatibleVariableOverride": "typing",
}
# What the text says where the rule says too little; the first that fits.
_TEXTS = (
    (re.compile(r"values to unpack|[Tt]uple size mismatch"), "unpack"),
    (re.compile(r"^Unresolved attribute|^Cannot assign to attribute .* is unknown"), "store"),
    (re.compile(r"is unknown import symbol"), "name"),
    (re.compile(r"^Cannot (access|delete) attribute|is not a known attribute of module"), "attribute"),
    (re.compile(r"^No parameter named"), "unknown argument"),
    (re.compile(r"^Arguments? missing for parameter"), "missing argument"),
    (re.compile(r"^Expected \d+ (more )?positional argument"), "too many arguments"),
)
_TEXTS_TELL = frozenset(("missing-attribute", "invalid-assignment", "not-iterable", "reportAttributeAccessIssue",
                         "reportFunctionMemberAccess", "reportCallIssue", "reportAssignmentType"))  # fmt: skip
_UNION = re.compile(r"is not a known attribute of \"None\"|^Cannot access attribute .* for class \"(None|object)\"")
# What pyright says of an override apart from types.
_SHAPE = re.compile(
    r"Positional parameter count mismatch; base method has \d+, but override has \d+"
    r"|Parameter \d+ name mismatch: base parameter is named \S+ override parameter is named \S+"
    r"|Parameter \d+ mismatch: base parameter (?:\S+ is keyword|has default)"
    r"|Parameter \S+ (?:is missing in override|has no corresponding parameter)"
    r"|Base method is declared as an? \w+"
    r"|incorrectly overrides property"
)


def sort_of(diagnostic: Diagnostic) -> str:
    """What a diagnostic is about, one of SORTS."""
    if diagnostic.rule in _TEXTS_TELL:
        if _UNION.search(diagnostic.message):
            return "typing"
        for pattern, sort in _TEXTS:
            if pattern.search(diagnostic.message):
                return sort
    table = _TY if diagnostic.checker == "ty" else _PYRIGHT
    return table.get(diagnostic.rule, "typing")


def new_shape(message: str, before: str | None) -> bool:
    """True where pyright blames an override for more than types, and did not say so before."""
    return not set(_SHAPE.findall(message)) <= set(_SHAPE.findall(before or ""))


def told_of_names(message: str) -> bool:
    """True where what an override is blamed for, apart from types, is what its parameters are called."""
    shapes = _SHAPE.findall(message)
    return all("name mismatch" in shape for shape in shapes) if shapes else "disallows keyword arguments" in message
