"""Search-R1's PPO and GRPO with Qwen2.5-3B and 7B."""

from __future__ import annotations

from .preset import Preset, Published

_GAIN = {"3B": "+20 % (relative)", "7B": "+24 % (relative)"}
_NOTES = (
    "the paper searches Wikipedia of 2018 (21 million passages): give --data and --corpus, or "
    "--env.retriever; without them the generated world is searched",
    "the scripts train 1,005 steps (286 of warm-up), the paper tells of 500",
    "contexts are 2,048 tokens of prompt and 4,096 of response; the scripts cut longer ones from "
    "the left, here such an episode ends",
    "the scripts draw GRPO's samples with top_p 0.95, here from the whole distribution",
)


def _preset(recipe: str, size: str) -> Preset:
    return Preset(
        name=f"search-r1-{recipe}-{size.lower()}",
        paper="Search-R1, arXiv 2503.09516",
        recipe=recipe,
        model=f"Qwen/Qwen2.5-{size}",
        env="SearchQA-v0",
        env_settings={
            "size": "full",
            "prompt": "search-r1",
            "top_k": 3,
            "max_turns": 5,
            "max_observation_chars": 2000,
        },
        steps=1005,
        max_tokens=500,
        max_context=6144,
        sampled_tokens=2500,
        max_batch=48 if recipe == "ppo" else 64,
        published=(
            Published("seven QA sets, gain over retrieval-augmented baselines", _GAIN[size]),
        ),
        render="inline",
        notes=_NOTES,
    )


PRESETS = tuple(_preset(recipe, size) for recipe in ("ppo", "grpo") for size in ("3B", "7B"))
