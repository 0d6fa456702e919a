"""Small models with random weights whose attention can be replaced."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SMALL: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.15,
    "attn_implementation": "sdpa",
}
FAMILIES: dict[str, Any] = {
    "qwen2": (Qwen2ForCausalLM, Qwen2Config),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config),
    "llama": (LlamaForCausalLM, LlamaConfig),
}


def small(family: str, **more: Any) -> Any:
    made, config = FAMILIES[family]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return made(config(**SMALL, **more)).eval()


def gemma3(window: int = 16, layers: int = 4, **more: Any) -> Any:
    """A small Gemma-3: every other layer slides, and every norm has weights of its own."""
    kinds = ["sliding_attention", "full_attention"]
    own = {"num_hidden_layers": layers, "layer_types": [kinds[i % 2] for i in range(layers)]}
    own |= {"sliding_window": window, "query_pre_attn_scalar": 12}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = Gemma3ForCausalLM(Gemma3TextConfig(**SMALL | own | more))
        for name, weight in made.named_parameters():
            if "norm" in name:
                torch.nn.init.normal_(weight, std=0.3)
    return made.eval()
