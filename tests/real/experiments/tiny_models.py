# mypy: disable-error-code="import-not-found"
"""What the experiments with hidden states have in common: how large their tiny models are, and what they are asked."""

from __future__ import annotations

import random
from typing import Any

from transformers import DeepseekV3Config

VOCABULARY = 512
LAYERS = 4
MOST_TOKENS = 512
SHAPE: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": LAYERS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": MOST_TOKENS,
    "initializer_range": 0.1,  # enough for every layer to make a difference
}


def deepseek(**shape: Any) -> Any:
    """The method and the scores of the router stand in DeepSeek's own config, and not in transformers' defaults."""
    return DeepseekV3Config(
        **{
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "q_lora_rank": 64,
            "kv_lora_rank": 32,
            "qk_rope_head_dim": 32,
            "qk_nope_head_dim": 32,
            "v_head_dim": 32,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 64,
            "n_routed_experts": 8,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "topk_method": "noaux_tc",
            "scoring_func": "sigmoid",
            **shape,
        }
    )


def prompt(tokens: int, seed: int) -> list[int]:
    """So many random tokens, the same for the same seed."""
    return random.Random(seed).choices(range(2, VOCABULARY), k=tokens)
