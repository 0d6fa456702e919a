"""Tree-GRPO with Qwen2.5 from 1.5B to 14B."""

from __future__ import annotations

from .preset import Preset, Published

_OF_3B = (
    Published("multi-hop QA, mean exact match", "36.8", "GRPO 31.8"),
    Published("single-hop QA, mean exact match", "50.0", "GRPO 48.1"),
    Published("multi-hop, inter-tree advantage alone", "33.8"),
    Published("multi-hop, intra-tree advantage alone", "1.2"),
)
_NOTES = (
    "the paper searches Wikipedia of 2018: give --data and --corpus, or --env.retriever",
    "warm-up is 0.285 of the steps (single-hop); the paper has 0.5 for multi-hop: "
    "--recipe.warmup_steps 90",
)


def _preset(size: str) -> Preset:
    return Preset(
        name=f"tree-grpo-{size.lower()}",
        paper="Tree-GRPO, arXiv 2509.21240",
        recipe="treegrpo",
        model=f"Qwen/Qwen2.5-{size}",
        env="SearchQA-v0",
        env_settings={
            "size": "full",
            "prompt": "search-r1",
            "top_k": 3,
            "max_turns": 4,
            "max_observation_chars": 2000,
            "structure_score": 0.2,
            "format_score": 0.1,
        },
        steps=180,
        max_tokens=500,
        max_context=4096,
        sampled_tokens=2000,
        max_batch=16 if size == "14B" else 64,
        gpus=16 if size == "14B" else 8,
        published=_OF_3B if size == "3B" else (),
        render="inline",
        notes=_NOTES,
    )


PRESETS = tuple(_preset(size) for size in ("1.5B", "3B", "7B", "14B"))
