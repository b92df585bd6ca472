"""Runs the places where vLLM is wrong about itself in the interpreter of a vLLM, and prints what they raise.

    PYTHON benchmarks/vllm_faults.py RELEASE                    PYTHON has that release of vLLM installed
    PYTHONPATH=TREE PYTHON benchmarks/vllm_faults.py RELEASE    TREE holds its sources, PYTHON the libraries it needs

No accelerator is needed. Objects are made without their constructors, which would load weights: what is run is the line
that fails, with what that line reads put in place. Libraries that a module asks for and that are not there are stood in
for by empty ones, which no failing line touches. Exits with 1 where one of them raises nothing of the sort.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

_STOOD_IN_FOR = ("timm", "cutlass", "flashinfer", "cuda", "quack", "einops")


class StandIn:
    """A class, decorator, annotation or value of a library that is not there."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        pass

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        # A decorator gives back what it decorates.
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __getitem__(self, item: Any) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __fspath__(self) -> str:
        return "stand-in"

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


class StandInModule(ModuleType):
    """A module of such a library: capitalised names are classes, the others values."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = type(name, (StandIn,), {}) if name[:1].isupper() else StandIn()
        setattr(self, name, found)
        return found


class StandInFinder(MetaPathFinder, Loader):
    """Finds modules of the libraries that are not there."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """The stand-in for one of them; asked last, so that what is installed is taken."""
        if name.partition(".")[0] in _STOOD_IN_FOR:
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module."""
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"vllm.{name}")


def _bare(class_: Any, **attributes: Any) -> Any:
    """An object of a class whose constructor did not run."""
    nn = importlib.import_module("torch.nn")
    made = class_.__new__(class_)
    if isinstance(made, nn.Module):
        nn.Module.__init__(made)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


def _own_class(module: ModuleType, method: str) -> Any:
    """The first class of a module, not one that it imports, that has a method of that name."""
    return next(
        found for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__ and method in vars(found)
    )  # fmt: skip


def jais_activation() -> None:
    """jais.py, JAISMLP.forward: any activation but SwiGLU calls a function of two arguments with one."""
    torch = importlib.import_module("torch")
    jais = _module("model_executor.models.jais")
    layer = _bare(jais.JAISMLP, swiglu=False, act=jais.SwiGLUActivation(), c_fc=lambda x: (x, None))
    layer.forward(torch.ones(2, 8))


def poly_norm() -> None:
    """layernorm.py, poly_norm: asks _custom_ops for a function that it has not."""
    torch = importlib.import_module("torch")
    layernorm = _module("model_executor.layers.layernorm")
    layernorm.poly_norm(torch.ones(2, 8), torch.ones(3), torch.ones(1), 1e-6)


def hyperclovax_tokens() -> None:
    """hyperclovax_vision.py, HCXVisionProcessingInfo.get_max_image_tokens: calls its neighbour with other names."""
    module = _module("model_executor.models.hyperclovax_vision")
    size = SimpleNamespace(get_image_size=lambda: 336)
    information = _bare(module.HCXVisionProcessingInfo, get_vision_encoder_info=lambda: size)
    information.get_max_image_tokens()


def exaone_vocabulary() -> None:
    """exaone_moe.py, ExaoneMoeModel.__init__: reads fields that LoRAConfig no longer has."""
    module = _module("model_executor.models.exaone_moe")
    lora = _module("config.lora").LoRAConfig(max_lora_rank=8)
    experts = SimpleNamespace(eplb_config=SimpleNamespace(num_redundant_experts=0))
    config = SimpleNamespace(
        model_config=SimpleNamespace(hf_config=SimpleNamespace(vocab_size=8)),
        cache_config=None, quant_config=None, lora_config=lora, parallel_config=experts,
        compilation_config=SimpleNamespace(mode=None, level=0),
    )  # fmt: skip
    plain = next(base for base in module.ExaoneMoeModel.__mro__ if base.__name__ == "ExaoneMoeModel")
    constructor = plain.__dict__["__init__"]
    # The decorator for torch.compile keeps the constructor that it replaces in its closure.
    inner = [c.cell_contents for c in constructor.__closure__ or () if isinstance(c.cell_contents, FunctionType)]
    written = next((function for function in inner if function.__module__ == module.__name__), constructor)
    written(_bare(plain), vllm_config=config)


def cohere_attention() -> None:
    """cohere_asr.py, ConformerLayer.forward: the branch for local attention calls the other attention's forward."""
    torch = importlib.import_module("torch")
    module = _module("model_executor.models.cohere_asr")
    layer = _bare(
        module.ConformerLayer,
        self_attention_model="rel_pos_local_attn", fc_factor=0.5, norm_feed_forward1=lambda x: x,
        feed_forward1=lambda x: x, norm_self_att=lambda x: x,
    )  # fmt: skip
    layer.self_attn = _bare(module.RelPositionMultiHeadAttention)
    layer.forward(torch.ones(1, 2, 8), pos_emb=None, pad_mask=None)


def cohere_outputs() -> None:
    """cohere_asr.py, embed_multimodal: the branch for an object with input_features leaves out the lengths."""
    module = _module("model_executor.models.cohere_asr")
    client = _own_class(module, "embed_multimodal")
    features = type("Features", (dict,), {"input_features": None})(input_features=None)
    model = _bare(client, _parse_and_validate_audio_input=lambda **_: (features, None))
    model.model = _bare(module.CohereASRModel)
    model.embed_multimodal()


def pipeline_names() -> None:
    """flash_fwd_combine.py reads names of its own pipeline module that only CUTLASS's has."""
    pipeline = _module("third_party.tml_fa4.pipeline")
    names = [name for name in ("CooperativeGroup", "Agent") if name not in vars(pipeline)]
    if names:
        getattr(pipeline, names[0])


def sequence_lengths() -> None:
    """mask.py, get_trip_start_count_via_block_info: leaves out a field of SeqlenInfoQK that has no default."""
    masks = _module("third_party.tml_fa4.mask")
    masks.Sm100FusedMask.get_trip_start_count_via_block_info((0,), (128, 128), 8, 8)


def sarvam_experts() -> None:
    """sarvam.py, SarvamMixtureOfExperts.set_eplb_state: hands one argument to a method that takes four."""
    module = _module("model_executor.models.sarvam")
    runner = _bare(_module("model_executor.layers.fused_moe.runner.moe_runner").MoERunner)
    _bare(module.SarvamMixtureOfExperts, moe_layers=[runner]).set_eplb_state(None)


def laguna_scales() -> None:
    """laguna_dflash.py, load_weights: asks the quantization for a method that became get_cache_scale_mapper."""
    module = _module("model_executor.models.laguna_dflash")
    quantization = _bare(_module("model_executor.layers.quantization.fp8").Fp8Config)
    model = _bare(_own_class(module, "load_weights"), quant_config=quantization)
    model.load_weights([("layers.0.scale", None)])


def worker_path() -> None:
    """platforms/cuda.py names a worker class of a package that is no longer there."""
    importlib.import_module("vllm.worker.worker")


def no_attention() -> None:
    """attention/backends/registry.py: a member of the registry names a module that is not there."""
    registry = _module("v1.attention.backends.registry")
    registry.AttentionBackendEnum.NO_ATTENTION.get_class()


def manager_workspace() -> None:
    """flashinfer_cutlass_prepare_finalize.py reads prepare_workspace, which is called prepare_workspace_tensor."""
    torch = importlib.import_module("torch")
    module = _module("model_executor.layers.fused_moe.flashinfer_cutlass_prepare_finalize")
    managers = _module("distributed.device_communicators.all2all")
    manager = _bare(managers.FlashInferAllToAllManager, rank=0, world_size=1, prepare_workspace_tensor=None)
    manager.ensure_alltoall_workspace_initialized = lambda: True
    vars(importlib.import_module("flashinfer.comm.trtllm_alltoall"))["MnnvlMoe"] = StandIn()
    module.flashinfer_alltoall_dispatch(manager, None, torch.ones(1, 1), None, None, None, 1, 1, None)


@dataclass(frozen=True)
class Fault:
    """One of them: the file, the releases that have it, whether the audit is sure of it, and how it is run."""

    path: str
    releases: tuple[str, ...]
    is_certain: bool
    run: Callable[[], None]


FAULTS = (
    Fault("vllm/model_executor/models/jais.py", ("0.11.0", "0.16.0", "0.20.2"), True, jais_activation),
    Fault("vllm/model_executor/layers/layernorm.py", ("0.16.0", "0.20.2", "0.26.0", "0.33.0"), True, poly_norm),
    Fault("vllm/model_executor/models/cohere_asr.py", ("0.20.2", "0.26.0", "0.33.0"), True, cohere_attention),
    Fault("vllm/model_executor/models/cohere_asr.py", ("0.20.2", "0.26.0"), True, cohere_outputs),
    Fault("vllm/third_party/tml_fa4/flash_fwd_combine.py", ("0.26.0", "0.33.0"), True, pipeline_names),
    Fault("vllm/third_party/tml_fa4/mask.py", ("0.26.0", "0.33.0"), True, sequence_lengths),
    Fault(
        "vllm/model_executor/models/hyperclovax_vision.py",
        ("0.11.0", "0.16.0", "0.20.2", "0.26.0"), False, hyperclovax_tokens,
    ),
    Fault("vllm/model_executor/models/exaone_moe.py", ("0.16.0", "0.20.2", "0.26.0"), False, exaone_vocabulary),
    Fault("vllm/model_executor/models/sarvam.py", ("0.26.0",), False, sarvam_experts),
    Fault("vllm/model_executor/models/laguna_dflash.py", ("0.26.0",), False, laguna_scales),
    Fault(
        "vllm/model_executor/layers/fused_moe/flashinfer_cutlass_prepare_finalize.py",
        ("0.11.0",), False, manager_workspace,
    ),
    Fault("vllm/platforms/cuda.py", ("0.11.0",), False, worker_path),
    Fault(
        "vllm/v1/attention/backends/registry.py",
        ("0.16.0", "0.20.2", "0.26.0", "0.33.0"), False, no_attention,
    ),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Runs those of a release and prints one line for each."""
    release = arguments[0] if arguments else ""
    faults = [fault for fault in FAULTS if release in fault.releases]
    if not faults:
        known = sorted({release for fault in FAULTS for release in fault.releases})
        sys.stderr.write(f"usage: vllm_faults.py RELEASE, which is one of {', '.join(known)}\n")
        return 2
    sys.meta_path.append(StandInFinder())
    failed = 0
    for fault in faults:
        raised = "raises nothing"
        try:
            fault.run()
        except (TypeError, AttributeError, ImportError) as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/vllm/" in frame.filename]
            line = f":{frames[-1].lineno}" if frames and frames[-1].filename.endswith(fault.path) else ""
            raised = f"{fault.path}{line}\n    {type(error).__name__}: {error}"
        else:
            failed += 1
        sys.stdout.write(f"{fault.run.__name__}: {raised}\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
