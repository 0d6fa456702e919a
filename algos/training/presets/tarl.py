"""TARL with Qwen3-8B in the shop."""

from __future__ import annotations

from .preset import Preset, Published

PRESETS = (
    Preset(
        name="tarl-8b",
        paper="TARL, arXiv 2509.14480",
        recipe="tarl",
        recipe_settings={"groups_per_step": 64, "optim.minibatches": 4, "rollout.n": 8},
        model="Qwen/Qwen3-8B",
        env="Retail-v0",
        env_settings={"size": "full"},
        steps=100,
        max_tokens=1024,
        max_context=16_384,
        sampled_tokens=8192,
        max_batch=8,
        published=(
            Published("tau-bench retail, pass^1 (GRPO with TARL)", "55.4", "GRPO 51.2"),
            Published("pass^4", "17.1", "GRPO 15.3"),
            Published("pass^1 with maths tasks mixed in", "57.4", "Qwen3-8B 42.1"),
            Published("pass^4 with maths tasks mixed in", "17.9", "Qwen3-8B 11.2"),
        ),
        notes=(
            "batch, group size, learning rate, lengths and steps are not stated in the paper; "
            "those here are a choice",
            "maths is mixed in by --env MixedTasks-v0 with Retail-v0 and MathWord-v0 as members; "
            "the paper does not state the ratio",
            "the judge is the shop's own rules, the paper's is a language model",
        ),
    ),
)
