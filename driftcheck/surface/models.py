"""pydantic's models: what their fields and their configuration make of a constructor."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from driftcheck.model import Parameter, ParameterKind, Signature
from driftcheck.surface.accepted import DROPPED, Constructor, with_parameter
from driftcheck.surface.classes import Base, known_class
from driftcheck.surface.declarations import ClassDeclaration
from driftcheck.surface.fields import MODELS, Field, Fields, parameters_of_fields
from driftcheck.surface.literals import Written
from driftcheck.surface.types import Class, External, Unknown

if TYPE_CHECKING:
    from driftcheck.surface.program import Program

VALIDATION_ERROR = "ValidationError"
_BY_NAME = ("populate_by_name", "validate_by_name", "allow_population_by_field_name")
_GENERIC = frozenset(("typing.Generic", "typing_extensions.Generic", "builtins.object", "abc.ABC", "typing.Protocol"))


class Models:
    """Makes the constructors of pydantic models."""

    def __init__(self, program: Program, fields: Fields) -> None:
        self.program = program
        self.fields = fields

    def constructor(
        self, path: str, class_: ClassDeclaration, linear: Sequence[Base], written: Constructor | None = None
    ) -> Constructor | Unknown:
        """Keywords only, unknown ones dropped unless the configuration says otherwise.

        `path` is the base of pydantic's; `written` an `__init__` that stands before it and is what a call meets.
        """
        for base in linear:
            if isinstance(base, Unknown):
                return base
            if isinstance(base, External) and base.path not in MODELS | _GENERIC and known_class(base.path) is None:
                return Unknown(f"outside the target: base {base.path}")
        fields = self.fields.of_model(class_)
        configuration = self._configuration(linear)
        literals = self.fields.literals
        extra = literals.text(configuration.get("extra")) or "ignore"
        if written is not None:
            return replace(written, stated=_merged(written.seen, fields, is_open=extra == "allow"))
        if "RootModel" in path:
            root = Parameter("root", ParameterKind.POSITIONAL_OR_KEYWORD, "PydanticUndefined")
            stated = Signature((root,))
            return Constructor(with_parameter(stated, DROPPED), class_, class_.name, stated, VALIDATION_ERROR)
        is_renamed = path.startswith("pydantic_settings") or "alias_generator" in configuration
        by_name = any(literals.flag(*configuration[key]) for key in _BY_NAME if key in configuration)
        stated = Signature(parameters_of_fields(fields), "None")
        accepted = tuple(
            field.as_parameter(is_optional=is_renamed or field.has_other_names or (by_name and field.is_aliased))
            for field in fields.values()
        )
        signature = Signature(accepted, "None")
        other_names = is_renamed or any(
            field.has_other_names or (by_name and field.is_aliased) for field in fields.values()
        )
        if extra != "forbid" or other_names:
            signature = with_parameter(signature, DROPPED)
        if extra == "allow":
            stated = with_parameter(stated, Parameter("extra_data", ParameterKind.VAR_KEYWORD))
        drops = extra == "ignore" and not other_names
        return Constructor(signature, class_, class_.name, stated, VALIDATION_ERROR, drops_keywords=drops)

    def _configuration(self, linear: Sequence[Base]) -> dict[str, Written]:
        """The configuration of a model, its bases' included: `model_config`, `class Config`, the class line."""
        found: dict[str, Written] = {}
        for base in reversed(linear):
            if not isinstance(base, Class):
                continue
            declaration = base.declaration
            scope = self.program.class_scope(declaration)
            value = self.fields.class_value(declaration, "model_config")
            if isinstance(value, ast.expr):
                found.update(self.fields.literals.entries(value, scope))
            for binding in declaration.members.get("Config", ()):
                if binding.class_ is not None:
                    inner = self.program.class_scope(binding.class_)
                    for name in binding.class_.members:
                        setting = self.fields.class_value(binding.class_, name)
                        if isinstance(setting, ast.expr):
                            found[name] = (setting, inner)
            for keyword in declaration.node.keywords:
                if keyword.arg is not None and keyword.arg != "metaclass":
                    found[keyword.arg] = (keyword.value, self.program.scope_of_class(declaration))
        return found


def _merged(written: Signature, fields: Mapping[str, Field], *, is_open: bool) -> Signature:
    """What pydantic states for a model with an `__init__` of its own: the fields stand for its `**data`."""
    variadic = next((p for p in written.parameters if p.kind is ParameterKind.VAR_KEYWORD), None)
    if variadic is None:
        return written
    kept = tuple(parameter for parameter in written.parameters if parameter is not variadic)
    names = {parameter.name for parameter in kept}
    added = tuple(field.as_parameter() for field in fields.values() if field.parameter not in names)
    return Signature((*kept, *added, *((variadic,) if is_open else ())), written.returns)
