"""ARPO: reasoning with 7B, deep search with 8B and 14B."""

from __future__ import annotations

from typing import Any

from .preset import Preset

_NOTES = (
    "the paper counts epochs (2 for reasoning, 5 for deep search); the number of steps is a "
    "choice made here",
    "the paper searches the web and runs Python: WebQA-v0 with --env.search_url does the first; "
    "here the generated world is searched",
)


def _preset(name: str, model: str, **own: Any) -> Preset:
    return Preset(
        name=name,
        paper="ARPO, arXiv 2507.19849",
        recipe="arpo",
        model=model,
        env="SearchQA-v0",
        env_settings={"size": "full", "tools": ["search", "python"], "max_turns": 4},
        steps=100,
        render="inline",
        notes=_NOTES,
        **own,
    )


PRESETS = (
    _preset(
        "arpo-7b",
        "Qwen/Qwen2.5-7B-Instruct",
        max_tokens=2048,
        max_context=5632,
        sampled_tokens=4096,
    ),
    _preset(
        "arpo-8b",
        "Qwen/Qwen3-8B",
        max_tokens=4096,
        max_context=12_000,
        sampled_tokens=10_000,
        max_batch=16,
    ),
    _preset(
        "arpo-14b",
        "Qwen/Qwen3-14B",
        recipe_settings={"groups_per_step": 64, "rollout.initial": 6, "rollout.budget": 12},
        max_tokens=4096,
        max_context=8192,
        sampled_tokens=6192,
        max_batch=8,
        gpus=16,
    ),
)
