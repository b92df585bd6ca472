"""What is known of other libraries: the names that their classes give to subclasses, and what their functions hand out."""

from __future__ import annotations

import re

from driftcheck.surface.types import Type, Unknown

# A value that no code of the target has made, whatever exactly it is: nothing on it can be the target's.
OUTSIDE = Unknown("value of another library")

_TORCH_MODULE = re.compile(r"^torch\.nn\.(modules\.(\w+\.)?)?(?!Parameter$|Buffer$|Uninitialized)[A-Z]\w*$")
_PRETRAINED_MODEL = re.compile(r"^transformers\.(\w+\.)*\w*PreTrainedModel$")
_CONFIGURATION = re.compile(r"^transformers\.(\w+\.)*Pre[Tt]rainedConfig$")
_TENSOR = re.compile(r"^torch\.(Tensor|nn\.(parameter\.)?(Parameter|Buffer))$")

_MODULE_NAMES = frozenset(
    "__call__ __setattr__ __delattr__ __getattr__ __dir__ __setstate__ _apply _buffers _modules _parameters _get_name "
    "_load_from_state_dict _save_to_state_dict _register_load_state_dict_pre_hook _register_state_dict_hook "
    "add_module apply bfloat16 buffers children compile cpu cuda double eval extra_repr float get_buffer get_extra_state "
    "get_parameter get_submodule half load_state_dict modules named_buffers named_children named_modules "
    "named_parameters parameters register_backward_hook register_buffer register_forward_hook "
    "register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
    "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter "
    "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule "
    "share_memory state_dict to to_empty train training type xpu zero_grad".split()
)
_MODEL_NAMES = frozenset("__class_getitem__ model_config model_fields model_computed_fields model_extra model_fields_set "
    "model_construct model_copy model_dump model_dump_json model_json_schema model_parametrized_name model_post_init "
    "model_rebuild model_validate model_validate_json model_validate_strings construct copy dict from_orm json parse_file "
    "parse_obj parse_raw schema schema_json update_forward_refs validate __fields__ __fields_set__ "
    "__pydantic_extra__ __pydantic_fields_set__ __pydantic_private__".split()
)  # fmt: skip
_CONFIGURATION_NAMES = frozenset(
    "from_dict from_json_file from_pretrained get_config_dict get_text_config name_or_path num_labels push_to_hub "
    "register_for_auto_class save_pretrained to_dict to_diff_dict to_json_file to_json_string torch_dtype update "
    "use_return_dict attribute_map model_type sub_configs".split()
)
_TENSOR_NAMES = frozenset(
    "data dtype device shape grad requires_grad is_cuda is_meta layout ndim size dim numel stride item tolist numpy cpu "
    "cuda to view view_as reshape flatten unflatten squeeze unsqueeze transpose permute contiguous is_contiguous clone "
    "detach copy_ fill_ zero_ expand repeat chunk split narrow select t T mT type float half bfloat16 int long bool "
    "element_size data_ptr nelement storage untyped_storage new_empty new_zeros new_ones new_tensor new_full add_ mul_ "
    "sub_ div_ normal_ uniform_ clamp_ requires_grad_ sum mean max min abs __getitem__ __setitem__ __len__ "
    "__torch_function__ _is_view is_floating_point masked_fill index_select gather scatter_ storage_offset".split()
)
_FUNCTION_NAMES = frozenset(
    ("apply", "name", "save_for_backward", "mark_dirty", "mark_non_differentiable", "saved_tensors")
)

# Methods of a torch module that give the module itself.
_SELF = frozenset(
    ("to", "cuda", "cpu", "xpu", "eval", "train", "half", "float", "double", "bfloat16", "requires_grad_", "to_empty", "apply",
     "type", "share_memory")
)  # fmt: skip

# Libraries whose functions and methods make values of their own: they neither call back nor hand through what they get.
_MAKERS = frozenset(
    ("numpy", "triton", "regex", "cv2", "PIL", "soundfile", "librosa", "psutil", "safetensors", "huggingface_hub", "tiktoken",
     "sentencepiece", "prometheus_client", "opentelemetry", "einops", "scipy",
     "re", "os", "time", "math", "hashlib", "_hashlib", "pathlib", "datetime", "struct", "base64", "random", "string",
     "platform", "socket", "shutil", "subprocess", "tempfile", "uuid", "urllib", "textwrap", "logging", "json", "ctypes",
     "sys", "glob", "traceback", "array", "mmap", "zlib")
)  # fmt: skip
# What of torch makes tensors, streams, generators and plain numbers.
_TORCH_PARTS = re.compile(
    r"^torch\.(ops\.|cuda\.|linalg\.|fft\.|special\.|random\.|backends\.|accelerator\.|nn\.functional\.|nn\.init\.|Tensor\b"
    r"|nn\.(parameter\.)?Parameter\b|Generator\b|Event\b|Stream\b|Size\b|dtype\b|device\b|finfo\b|iinfo\b"
    r"|(?!compile$|load$|vmap$|compiler\b|jit\b)[a-z]\w*$)"
)
_TORCH_CALLBACKS = frozenset(("torch.cuda.make_graphed_callables",))
# Functions that answer with what they were given or told, even in those libraries.
_HANDED_THROUGH = frozenset(
    ("recv_pyobj", "loads", "load", "unpickle", "get_submodule", "children", "modules", "named_children", "named_modules",
     "register", "wraps", "jit", "heuristics", "autotune", "signature", "unwrap", "getmodule", "currentframe", "stack", "start_span")
)  # fmt: skip


def is_torch_module(path: str) -> bool:
    """True for a class whose instances are called by way of `forward`."""
    return _TORCH_MODULE.match(path) is not None or _PRETRAINED_MODEL.match(path) is not None


def has_member(path: str, name: str) -> bool:
    """True where the outside class at a dotted path is known to give that name to its subclasses and instances."""
    if is_torch_module(path):
        return name in _MODULE_NAMES or name == "__init__"
    if path in ("pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic_settings.BaseSettings"):
        return name in _MODEL_NAMES or name == "__init__"
    if _CONFIGURATION.match(path):
        return name in _CONFIGURATION_NAMES or name == "__init__"
    if _TENSOR.match(path):
        return name in _TENSOR_NAMES
    if path in ("torch.autograd.Function", "torch.autograd.function.Function"):
        return name in _FUNCTION_NAMES
    return False


def gives_receiver(path: str) -> bool:
    """True for a method of an outside class, by its dotted path, that returns what it is called on."""
    owner, _, name = path.rpartition(".")
    return name in _SELF and is_torch_module(owner.removesuffix("()"))


def result_of(path: str) -> Type:
    """What a call of the outside function or method at a dotted path gives, as far as that is known."""
    head = path.partition("()")[0]
    library = head.partition(".")[0]
    name = path.rpartition(".")[2]
    if name not in _HANDED_THROUGH and path not in _TORCH_CALLBACKS:
        if library in _MAKERS or _TORCH_PARTS.match(head):
            return OUTSIDE
    return Unknown(f"result of {library}")


def part_of(path: str) -> Type | None:
    """What an instance of the outside class at a dotted path holds; None where that may be anything."""
    return OUTSIDE if _TENSOR.match(path) or path.partition(".")[0] in _MAKERS else None
