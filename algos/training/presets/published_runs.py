"""The published runs: Search-R1, Tree-GRPO, ARPO, TARL and PaSa."""

from __future__ import annotations

from typing import Any

from .preset import Preset, Published

_WIKIPEDIA = {
    "size": "full",
    "prompt": "search-r1",
    "top_k": 3,
    "max_turns": 5,
    "max_observation_chars": 2000,
}
_SEARCH_R1_GAIN = {"3B": "+20 % (relative)", "7B": "+24 % (relative)"}
_SEARCH_R1_NOTES = (
    "the paper searches Wikipedia of 2018 (21 million passages): give --data and --corpus, or "
    "--env.retriever; without them the generated world is searched",
    "the scripts train 1,005 steps (286 of warm-up), the paper reports 500",
    "contexts are 2,048 tokens of prompt and 4,096 of response; the scripts cut longer ones from "
    "the left, here such an episode ends",
    "the scripts draw GRPO's samples with top_p 0.95, here from the whole distribution",
)


def _search_r1(recipe: str, size: str) -> Preset:
    return Preset(
        name=f"search-r1-{recipe}-{size.lower()}",
        paper="Search-R1, arXiv 2503.09516",
        recipe=recipe,
        model=f"Qwen/Qwen2.5-{size}",
        env="SearchQA-v0",
        env_settings=dict(_WIKIPEDIA),
        steps=1005,
        max_tokens=500,
        max_context=6144,
        sampled_tokens=2500,
        max_batch=40 if recipe == "ppo" else 64,
        published=(
            Published(
                "seven QA sets, gain over retrieval-augmented baselines", _SEARCH_R1_GAIN[size]
            ),
        ),
        render="inline",
        notes=_SEARCH_R1_NOTES,
    )


_SEARCH_R1 = tuple(_search_r1(recipe, size) for recipe in ("ppo", "grpo") for size in ("3B", "7B"))

_TREE_GRPO_3B = (
    Published("multi-hop QA, mean exact match", "36.8", "GRPO 31.8"),
    Published("single-hop QA, mean exact match", "50.0", "GRPO 48.1"),
    Published("multi-hop, inter-tree advantage alone", "33.8"),
    Published("multi-hop, intra-tree advantage alone", "1.2"),
)
_TREE_GRPO_NOTES = (
    "the paper searches Wikipedia of 2018: give --data and --corpus, or --env.retriever",
    "warm-up is 0.285 of the steps (single-hop); the paper has 0.5 for multi-hop: "
    "--recipe.warmup_steps 90",
)


def _tree_grpo(size: str) -> Preset:
    return Preset(
        name=f"tree-grpo-{size.lower()}",
        paper="Tree-GRPO, arXiv 2509.21240",
        recipe="treegrpo",
        model=f"Qwen/Qwen2.5-{size}",
        env="SearchQA-v0",
        env_settings={**_WIKIPEDIA, "max_turns": 4, "structure_score": 0.2, "format_score": 0.1},
        steps=180,
        max_tokens=500,
        max_context=4096,
        sampled_tokens=2000,
        max_batch=12 if size == "14B" else 64,
        gpus=16 if size == "14B" else 8,
        published=_TREE_GRPO_3B if size == "3B" else (),
        render="inline",
        notes=_TREE_GRPO_NOTES,
    )


_TREE_GRPO = tuple(_tree_grpo(size) for size in ("1.5B", "3B", "7B", "14B"))

_ARPO_NOTES = (
    "the paper counts epochs (2 for reasoning, 5 for deep search); the number of steps is a "
    "choice made here",
    "the paper searches the web and runs Python: WebQA-v0 with --env.search_url does the first; "
    "here the generated world is searched",
)


def _arpo(name: str, model: str, **own: Any) -> Preset:
    return Preset(
        name=name,
        paper="ARPO, arXiv 2507.19849",
        recipe="arpo",
        model=model,
        env="SearchQA-v0",
        env_settings={"size": "full", "tools": ["search", "python"], "max_turns": 4},
        steps=100,
        render="inline",
        notes=_ARPO_NOTES,
        **own,
    )


_ARPO = (
    _arpo(
        "arpo-7b",
        "Qwen/Qwen2.5-7B-Instruct",
        max_tokens=2048,
        max_context=5632,
        sampled_tokens=4096,
    ),
    _arpo(
        "arpo-8b",
        "Qwen/Qwen3-8B",
        max_tokens=4096,
        max_context=12_000,
        sampled_tokens=10_000,
        max_batch=14,
    ),
    _arpo(
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

_TARL = (
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

_PASA = (
    Preset(
        name="pasa-7b",
        paper="PaSa, arXiv 2501.10120",
        recipe="pasa",
        model="Qwen/Qwen2.5-7B-Instruct",
        env="PaperCrawler-v0",
        env_settings={"size": "full", "prompt": "pasa", "granularity": "action"},
        steps=250,
        max_tokens=1024,
        max_context=2048,
        sampled_tokens=1024,
        trained_paths=4,
        gpus=16,
        published=(
            Published("AutoScholarQuery, crawler recall", ".7931", "without RL .6556"),
            Published("AutoScholarQuery, recall", ".4834", "without RL .4210"),
            Published("AutoScholarQuery, precision", ".1448", "without RL .1476"),
            Published("RealScholarQuery, recall", ".6111", "without RL .4115"),
        ),
        notes=(
            "the paper starts from the crawler after imitation (learning rate 1e-5, one epoch of "
            "5,000 requests): train it with the recipe sft first and name it by --model",
            "the paper's papers and requests are data and papers of the environment; without them "
            "the generated world is crawled",
            "whole crawls are played and 4 sessions per request trained on, so more is sampled "
            "than the plan counts",
        ),
    ),
)

RUNS: tuple[Preset, ...] = (*_SEARCH_R1, *_TREE_GRPO, *_ARPO, *_TARL, *_PASA)
