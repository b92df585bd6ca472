"""What is known of other libraries: the names that their classes give, and what their functions hand out."""

from __future__ import annotations

import re

from driftcheck.knowledge import attributes_of_libraries
from driftcheck.surface.types import Type, Unknown

# A value that no code of the target has made, whatever exactly it is: nothing on it can be the target's.
OUTSIDE = Unknown("value of another library")

_TORCH_MODULE = re.compile(r"^torch\.nn\.(modules\.(\w+\.)?)?(?!Parameter$|Buffer$|Uninitialized)[A-Z]\w*$")
_PRETRAINED_MODEL = re.compile(r"^transformers\.(\w+\.)*\w*PreTrainedModel$")
_CONFIGURATION = re.compile(r"^transformers\.(\w+\.)*Pre[Tt]rainedConfig$")
_TENSOR = re.compile(r"^torch\.(Tensor|nn\.(parameter\.)?(Parameter|Buffer))$")

_MODEL = re.compile(r"^(pydantic\.(main\.)?BaseModel|pydantic_settings\.(main\.)?BaseSettings)$")
_FUNCTION = re.compile(r"^torch\.autograd\.(function\.)?Function$")
# The name under which each family of classes stands in the table of libraries, and what of it subclasses always write.
_FAMILIES: tuple[tuple[re.Pattern[str], str, frozenset[str]], ...] = (
    (_TORCH_MODULE, "torch.nn.Module", frozenset(("forward",))),
    (_PRETRAINED_MODEL, "torch.nn.Module", frozenset(("forward",))),
    (_MODEL, "pydantic.BaseModel", frozenset()),
    (_CONFIGURATION, "transformers.PretrainedConfig", frozenset()),
    (_TENSOR, "torch.Tensor", frozenset()),
    (_FUNCTION, "torch.autograd.Function", frozenset(("forward", "backward"))),
)

# Methods of a torch module that give the module itself.
_SELF = frozenset(
    ("to", "cuda", "cpu", "xpu", "eval", "train", "half", "float", "double", "bfloat16", "requires_grad_", "to_empty",
     "apply", "type", "share_memory")
)  # fmt: skip

# Libraries whose functions and methods make values of their own: they neither call back nor hand through what they get.
_MAKERS = frozenset(
    ("numpy", "triton", "regex", "cv2", "PIL", "soundfile", "librosa", "psutil", "safetensors",
     "huggingface_hub", "tiktoken", "cutlass", "sentencepiece", "prometheus_client", "opentelemetry", "einops",
     "scipy", "re", "os", "time", "math", "hashlib", "_hashlib", "pathlib", "datetime", "struct", "base64",
     "random", "string", "platform", "socket", "shutil", "subprocess", "tempfile", "uuid", "urllib",
     "textwrap", "logging", "json", "ctypes", "sys", "glob", "traceback", "array", "mmap", "zlib", "sqlite3")
)  # fmt: skip
# What of torch makes tensors, streams, generators and plain numbers.
_TORCH_PARTS = re.compile(
    r"^torch\.(ops\.|cuda\.|distributed\.(?!rpc\b)|profiler\.|linalg\.|fft\.|special\.|random\.|backends\.|accelerator\."
    r"|nn\.functional\.|nn\.init\.|Tensor\b|nn\.(parameter\.)?Parameter\b|Generator\b|Event\b|Stream\b|Size\b|dtype\b|device\b|finfo\b|iinfo\b"
    r"|(?!compile$|load$|vmap$|compiler\b|jit\b)[a-z]\w*$)"
)
# Functions that hand out what they were given or what somebody else stored, even in those libraries.
_HANDED_THROUGH = frozenset(
    ("numpy.load", "triton.jit", "triton.heuristics", "triton.autotune", "torch.cuda.make_graphed_callables",
     "sys.exc_info")
)  # fmt: skip
# Methods of a torch module that answer with plain values and tensors.
_MODULE_VALUES = frozenset(
    ("state_dict", "parameters", "named_parameters", "buffers", "named_buffers", "get_parameter", "get_buffer")
)


def is_torch_module(path: str) -> bool:
    """True for a class whose instances are called by way of `forward`."""
    return _TORCH_MODULE.match(path) is not None or _PRETRAINED_MODEL.match(path) is not None


def has_member(path: str, name: str) -> bool:
    """True where the outside class at a dotted path is known to give that name to its subclasses and instances."""
    for family, key, left_out in _FAMILIES:
        if family.match(path):
            return name not in left_out and (name == "__init__" or name in attributes_of_libraries().get(key, ()))
    return False


def gives_receiver(path: str) -> bool:
    """True for a method of an outside class, by its dotted path, that returns what it is called on."""
    owner, _, name = path.rpartition(".")
    return name in _SELF and is_torch_module(owner.removesuffix("()"))


def result_of(path: str) -> Type:
    """What a call of the outside function or method at a dotted path gives, as far as that is known."""
    head = path.partition("()")[0]
    library = head.partition(".")[0]
    if path not in _HANDED_THROUGH and (library in _MAKERS or _TORCH_PARTS.match(head)):
        return OUTSIDE
    owner, _, name = path.rpartition(".")
    if name in _MODULE_VALUES and is_torch_module(owner.removesuffix("()")):
        return OUTSIDE
    return Unknown(f"result of {library}")


def part_of(path: str) -> Type | None:
    """What an instance of the outside class at a dotted path holds; None where that may be anything."""
    return OUTSIDE if _TENSOR.match(path) or path.partition(".")[0] in _MAKERS else None
