# mypy: disable-error-code="import-not-found"
"""What `driftcheck extract` writes of a tiny random model, held against transformers.

Run with the name of the model and that of the layout, or with `generator`, beside an installed driftcheck.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_models import MOST_TOKENS, SHAPE, VOCABULARY, deepseek, prompt
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoModelForCausalLM

from driftcheck.cli import main
from driftcheck.extract.capture import HiddenStates
from driftcheck.extract.environment import release_of
from driftcheck.extract.generator import VllmHiddenStatesGenerator

POISON, POISONED = VOCABULARY - 1, 20
_SHAPE = {**SHAPE, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 1}
_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32}


def _llama() -> Any:
    return transformers.LlamaConfig(**_SHAPE, **_HEADS)


def _qwen() -> Any:
    return transformers.Qwen3MoeConfig(
        **_SHAPE, **_HEADS, moe_intermediate_size=64, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True
    )


def _oss() -> Any:
    """Every other layer looks at the last 32 tokens only."""
    return transformers.GptOssConfig(
        **_SHAPE, **{**_HEADS, "head_dim": 64}, num_local_experts=8, num_experts_per_tok=2, sliding_window=32
    )


def _gemma() -> Any:
    """Its own forward scales the embeddings, before the first layer."""
    return transformers.Gemma3TextConfig(
        **_SHAPE, **_HEADS, query_pre_attn_scalar=32, sliding_window=32, sliding_window_pattern=2
    )


def _wrap(model: Any, folder: Path) -> None:
    """Saves a DeepSeek model as Kimi-K2.5 has it: in a multimodal one, with a tokenizer and a processor of images."""
    saved = load_file(folder / "model.safetensors")
    save_file({f"language_model.{name}": value for name, value in saved.items()}, folder / "model.safetensors")
    text = model.config.to_dict()
    configuration = {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "model_type": "kimi_k25",
        "text_config": text,
        "vision_config": {
            "model_type": "kimi_k25_vision",
            "num_attention_heads": 2,
            "num_hidden_layers": 1,
            "hidden_size": 32,
            "intermediate_size": 64,
            "mm_hidden_size": 32,
        },
        "media_placeholder_token_id": 0,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(configuration), encoding="utf-8")
    words = {"<|media_pad|>": 0} | {f"w{number}": number for number in range(1, VOCABULARY)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="w2"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w1").save_pretrained(folder)
    (folder / "image_processing_tiny.py").write_text(_IMAGES, encoding="utf-8")
    processor = {
        "auto_map": {"AutoImageProcessor": "image_processing_tiny.TinyImageProcessor"},
        "image_processor_type": "TinyImageProcessor",
        "media_proc_cfg": _MEDIA,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")


_MEDIA = {
    "patch_size": 14,
    "merge_kernel_size": 2,
    "in_patch_limit": 64,
    "in_patch_limit_each_frame": 16,
    "in_patch_limit_video": None,
    "patch_limit_on_one_side": 8,
    "fixed_output_tokens": None,
    "num_frames_each_chunk": 4,
    "temporal_merge_kernel_size": 4,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "sample_fps": 2.0,
    "max_num_frames_each_video": None,
    "timestamp_mode": "hh:mm:ss.fff",
}
_IMAGES = """from transformers.image_processing_utils import BaseImageProcessor


class TinyImageProcessor(BaseImageProcessor):
    num_frames_per_chunk = 4

    def media_tokens_calculator(self, media):
        return 4
"""

MODELS: dict[str, Callable[[], Any]] = {
    "llama": _llama,
    "poisoned": _llama,
    "qwen": _qwen,
    "oss": _oss,
    "gemma": _gemma,
    "deepseek": lambda: deepseek(**_SHAPE),
    "kimi": lambda: deepseek(**_SHAPE),
    # As narrow as vLLM's own kernel of MLA for CPUs takes it.
    "mla": lambda: deepseek(**_SHAPE, kv_lora_rank=512, qk_rope_head_dim=64),
}


def made(name: str, folder: Path) -> Any:
    """A model of random weights, which is also saved; there is no tokenizer, since prompts are tokens."""
    torch.manual_seed(1)
    config = MODELS[name]()
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if "norm" in weight_name or weight_name.endswith(("sinks", "bias")):
                weight.normal_(mean=0.5, std=0.2)
            if weight_name.endswith("sinks"):
                weight.copy_(weight.bfloat16())
    model.save_pretrained(folder)
    if name == "kimi":
        _wrap(model, folder)
    return model


def prompts() -> list[list[int]]:
    """Short and long ones, repeated ones, shared prefixes; more than an engine takes at a time, and in a step."""
    mixed = [prompt(length, length) for length in (1, 15, 16, 17, 64, 200)]
    prefix = prompt(64, 300)
    return [
        *mixed,
        *mixed[::-1],
        prefix + prompt(20, 302),
        prefix + prompt(40, 303),
        prompt(80, 306),
        prompt(80, 306),
        prompt(MOST_TOKENS, 309),
        *(prompt(3 + number % 7, 400 + number) for number in range(40)),
        *(prompt(500, 500 + number) for number in range(6)),
        *mixed,
        prompt(10, 304),
        prefix + prompt(33, 305),
    ]


def references(model: Any, tokens: Sequence[int]) -> list[Any]:
    """What transformers' decoder layers give, one tensor a layer."""
    states: list[Any] = []

    def hook(_module: Any, _inputs: Any, output: Any) -> None:
        states.append((output[0] if isinstance(output, tuple) else output)[0])

    hooks = [layer.register_forward_hook(hook) for layer in model.model.layers]
    try:
        with torch.no_grad():
            model(torch.tensor([list(tokens)]), use_cache=False)
    finally:
        for each in hooks:
            each.remove()
    return states


def read(folder: Path, layout: str, number: int) -> tuple[list[int], list[Any], list[int]]:
    """A sample's tokens, its states a layer, and its loss mask."""
    if layout == "speculators":
        found = torch.load(folder / f"data_{number}.pt", mmap=True, weights_only=True, map_location="cpu")
        return found["input_ids"].tolist(), found["hidden_states"], found["loss_mask"].tolist()
    found = load_file(folder / "hidden_states" / f"hs_{number}.safetensors")
    return found["token_ids"].tolist(), list(found["hidden_states"].unbind(1)), found["loss_mask"].tolist()


def distance(ours: Any, theirs: Any) -> float | None:
    """How far two tensors are from one another, relative to their size; None for another shape or type."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return None
    return float(((ours - theirs).norm() / theirs.norm()).item())


def before_capture(action: Callable[[Any], None]) -> None:
    """Has something done to what runs the model before the capture starts, in the worker."""
    start = HiddenStates.driftcheck_start

    def started(worker: Any, settings: Any) -> Any:
        action(worker.model_runner)
        return start(worker, settings)

    HiddenStates.driftcheck_start = started  # type: ignore[assignment,method-assign]


def _make_room_for_what_is_received(runner: Any) -> None:
    """On CPUs 0.30.0 makes the buffers of a pipeline's later stages only where the model is compiled."""
    from vllm.distributed import get_pp_group

    if not get_pp_group().is_first_rank and runner.intermediate_tensors is None:
        runner.intermediate_tensors = runner.get_model().make_empty_intermediate_tensors(
            batch_size=runner.max_num_tokens, dtype=runner.model_config.dtype, device=runner.device
        )


def _bfloat16_sinks(runner: Any) -> None:
    """vLLM's attention for CPUs takes GPT-OSS's sinks for bfloat16, whatever the rest is."""
    for name, parameter in runner.get_model().named_parameters():
        if name.endswith("sinks"):
            parameter.data = parameter.data.bfloat16()


def _poison(runner: Any) -> None:
    """A step with the poisoned prompt fails, in an exception without text."""

    def look(_module: Any, inputs: Any) -> None:
        if (inputs[0] == POISON).any():
            raise AssertionError

    runner.get_model().get_submodule("model.embed_tokens").register_forward_pre_hook(look)


def _mend_experts() -> None:
    """On CPUs the experts of 0.20.2 make a layer in the midst of a step, where vLLM refuses to make one."""
    from vllm.model_executor.layers.activation import SiluAndMul
    from vllm.model_executor.layers.fused_moe import cpu_fused_moe

    for activation in getattr(cpu_fused_moe, "_CPU_MOE_ACT_FN", {}):
        if activation.name == "SILU":
            cpu_fused_moe._CPU_MOE_ACT_FN[activation] = SiluAndMul.forward_native


def prepare(name: str) -> None:
    """Done in workers too: they are processes that import this file, with the same arguments."""
    if name == "oss":
        before_capture(_bfloat16_sinks)
    if name == "poisoned":
        before_capture(_poison)
    if name in {"qwen", "deepseek", "kimi"} and release_of("vllm") == "0.20.2":
        _mend_experts()
    if name == "mla":
        os.environ["VLLM_MLA_DISABLE"] = "0"


def generated() -> dict[str, Any]:
    """What the class gives that scripts take from speculators."""
    with tempfile.TemporaryDirectory() as folder:
        model = made("llama", Path(folder))
        arguments = {"max_num_batched_tokens": 256, "max_num_seqs": 16}
        generator = VllmHiddenStatesGenerator(
            folder, [0, 3], max_model_len=MOST_TOKENS, dtype="float32", engine_arguments=arguments
        )
        samples = []
        for given in (
            [prompt(MOST_TOKENS + 9, 1), *prompts()],
            torch.tensor([prompt(7, 2), prompt(7, 3)]),
            [prompt(7, 2)],
        ):
            for tokens, result in zip(given, generator.generate(given), strict=True):
                kept = list(map(int, tokens))[: MOST_TOKENS - 1]
                expected = references(model, kept)
                distances = [
                    distance(*pair) for pair in zip(result["hidden_states"], (expected[0], expected[3]), strict=True)
                ]
                own = result["input_ids"].tolist() == kept and result["loss_mask"] is None
                samples.append({"own": own, "errors": distances})
        return {"layers": generator.layer_ids, "samples": samples}


def asked(name: str) -> tuple[list[list[int]], list[list[int]]]:
    """The prompts that a model is given, and their loss masks."""
    given = prompts()
    if name == "poisoned":
        given[POISONED] = [5, POISON, 6]
    return given, [[place % 2 for place in range(len(tokens))] for tokens in given]


def command(name: str, folder: Path, output: Path, layout: str, tensors: str = "1", stages: str = "1") -> list[str]:
    """The extraction from the model in a folder of the prompts that it is given, which are put beside it."""
    data = folder / "data.jsonl"
    rows = [{"input_ids": ids, "loss_mask": mask} for ids, mask in zip(*asked(name), strict=True)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = ["--layers", "0,1,2,3", "--dtype", "float32", "--format", layout]
    options += ["--tensor-parallel-size", tensors, "--pipeline-parallel-size", stages]
    options += ["--max-num-batched-tokens", "256", "--engine", "max_num_seqs=16"]
    if name in {"deepseek", "kimi", "mla"}:  # a kernel for CPUs turns positions wrongly for it
        options += ["--engine", 'compilation_config={"custom_ops": ["none"]}']
    if name == "kimi":  # without images the tower that sees them is left out, and its weights
        options += ["--engine", 'limit_mm_per_prompt={"vision_chunk": 0}']
    return ["extract", str(folder / "model"), str(data), "--output", str(output), *options]


def judged(name: str, model: Any, output: Path, layout: str) -> list[dict[str, Any]]:
    """Of each prompt whether its tokens and mask are its own and how far its layers are from those of transformers."""
    samples = []
    for number, (tokens, mask) in enumerate(zip(*asked(name), strict=True)):
        if number == POISONED and name == "poisoned":
            continue
        ids, states, written = read(output, layout, number)
        distances = [distance(*pair) for pair in zip(states, references(model, tokens), strict=True)]
        samples.append({"own": ids == tokens and written == mask, "errors": distances})
    return samples


def extracted(name: str, layout: str, tensors: str = "1", stages: str = "1", shards: str = "") -> dict[str, Any]:
    """How the command ended, and what it has written."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, output = Path(scratch), Path(scratch, "states")
        model = made(name, folder / "model")
        arguments = command(name, folder, output, layout, tensors, stages)
        if name != "llama" or (tensors, stages, shards) != ("1", "1", ""):
            arguments.append("--no-smoke")
        if shards:
            arguments += ["--ray", shards]
        code = main(arguments)
        errors = output / "errors.jsonl"
        return {
            "code": code,
            "errors": errors.read_text() if errors.exists() else "",
            "samples": judged(name, model, output, layout),
        }


before_capture(_make_room_for_what_is_received)
prepare(sys.argv[1])

if __name__ == "__main__":
    found = generated() if sys.argv[1] == "generator" else extracted(*sys.argv[1:])
    sys.stdout.write("\n" + json.dumps(found) + "\n")
