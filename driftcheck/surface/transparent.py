"""Decorators of other libraries that leave a function's signature as it is written."""

from __future__ import annotations

# By the dotted path of what decorates; the last parts of a path with an instance in it follow `()`.
_LIBRARIES: dict[str, tuple[str, ...]] = {
    "functools": ("lru_cache", "cache", "wraps", "update_wrapper", "cached_property", "singledispatch",
                  "singledispatchmethod"),
    "typing": ("final", "override", "no_type_check", "runtime_checkable", "dataclass_transform"),
    "typing_extensions": ("final", "override", "deprecated", "runtime_checkable", "dataclass_transform"),
    "warnings": ("deprecated",),
    "abc": ("abstractmethod", "abstractclassmethod", "abstractstaticmethod", "abstractproperty"),
    "builtins": ("staticmethod", "classmethod", "property"),
    "atexit": ("register",),
    "contextlib": ("suppress",),
    "torch": ("no_grad", "inference_mode", "enable_grad", "compile", "jit.ignore", "jit.unused", "jit.export",
              "jit.script_if_tracing", "compiler.disable", "compiler.allow_in_graph", "_dynamo.disable",
              "_dynamo.allow_in_graph", "_dynamo.utils.dynamo_timed", "library.register_fake", "library.impl_abstract",
              "library.impl", "amp.custom_fwd", "amp.custom_bwd", "cuda.amp.custom_fwd",
              "cuda.amp.custom_bwd"),
    "numba": ("jit", "njit"),
    "cutlass": ("cute.jit", "cute.kernel", "cutlass_dsl.dsl_user_op"),
    "pydantic": ("model_validator", "field_validator", "root_validator", "validator", "field_serializer",
                 "model_serializer", "computed_field", "validate_call"),
    "fastapi": ("APIRouter().*", "FastAPI().*"),
    "pytest": ("fixture", "mark.*"),
}  # fmt: skip
_PATHS = frozenset(f"{top}.{name}" for top, names in _LIBRARIES.items() for name in names if not name.endswith(".*"))
_PREFIXES = tuple(f"{top}.{name[:-1]}" for top, names in _LIBRARIES.items() for name in names if name.endswith(".*"))


def is_transparent(path: str) -> bool:
    """True where what is decorated with the thing at that dotted path keeps its signature."""
    return path in _PATHS or path.startswith(_PREFIXES) or path.rpartition(".")[2].endswith("property")
