"""The suites of the package: frozen, each with a version. Change one, and raise its version.

``quick`` tells whether everything runs and how a report looks; what it scores is not learning but
its first moments, except on the diagnostic worlds, where a blank model does learn. ``standard``
trains small models until they have learned. ``full`` trains models of the papers' sizes with the
papers' settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .suite import BlankStart, Limits, NamedStart, Suite, SuiteEnv, SuiteRecipe, TaughtStart

_QUICK_CHAINS = {"groups_per_step": 4, "rollout.n": 4}
_QUICK_RECIPES: Mapping[str, Mapping[str, Any]] = {
    "grpo": _QUICK_CHAINS,
    "drgrpo": _QUICK_CHAINS,
    "dapo": {**_QUICK_CHAINS, "filter.max_rounds": 2},
    "gspo": _QUICK_CHAINS,
    "rloo": _QUICK_CHAINS,
    "reinforcepp": {"groups_per_step": 16},
    "spo": {"groups_per_step": 16, "tracker.pool": 64},
    "ppo": {"groups_per_step": 16},
    "treegrpo": {"groups_per_step": 3},
    "arpo": {"groups_per_step": 4, "rollout.initial": 2, "rollout.budget": 4},
    "tarl": _QUICK_CHAINS,
    "tarlturns": _QUICK_CHAINS,
    "tarlppo": {"groups_per_step": 16},
    "pasa": {"groups_per_step": 16, "optim.critic_only_steps": 0},
    "sft": {"groups_per_step": 16},
    "stepdpo": {"groups_per_step": 3},
}
"""Sixteen to eighteen episodes a step, so that a budget is a handful of steps for each."""
_PUPIL = TaughtStart(
    settings={
        "hidden": 64,
        "layers": 3,
        "heads": 2,
        "inner": 128,
        "vocab_size": 512,
        "texts": 400,
        "batch": 16,
        "lr": 2e-3,
        "warmup_steps": 10,
        "read_steps": 400,
        "read_until": 0.5,
        "read_least": 0.0,
        "held_out": 16,
        "err_steps": 0,
    }
)
"""Half taught, in seconds: it writes actions of the right form more often than good ones."""


def _quick(env_id: str, tokens: int, calls: int, max_tokens: int, **settings: Any) -> SuiteEnv:
    return SuiteEnv(
        id=env_id,
        settings={"size": "micro", **settings},
        start=_PUPIL,
        limits=Limits(tokens=tokens, calls=calls, steps=12),
        max_tokens=max_tokens,
        eval_tasks=12,
        eval_every=2,
    )


def _probe(env_id: str, calls: int) -> SuiteEnv:
    """A diagnostic world, where a model that knows nothing learns within seconds."""
    return SuiteEnv(
        id=env_id,
        settings={"size": "micro"},
        start=BlankStart(),
        limits=Limits(tokens=4 * calls, calls=calls),
        max_tokens=3,
        eval_tasks=48,
        eval_every=20,
        recipe_settings={"optim.lr": 1e-3},
    )


QUICK = Suite(
    name="quick",
    version=1,
    about="every recipe on every world at micro size: does it run, and how does the report look",
    recipes=tuple(
        SuiteRecipe(name=name, settings=dict(settings)) for name, settings in _QUICK_RECIPES.items()
    ),
    envs=(
        _probe("Bandit-v0", 1200),
        _probe("Password-v0", 3000),
        _quick("SearchQA-v0", 2500, 400, 16, hops=1),
        _quick("WebQA-v0", 2500, 400, 16, hops=1, max_turns=5),
        _quick("PaperCrawler-v0", 2500, 400, 12, max_actions=6),
        _quick("ScienceWorld-v0", 4000, 500, 12, max_turns=6),
        _quick("Retail-v0", 4000, 400, 24, max_turns=5),
        _quick("MathWord-v0", 2500, 160, 24),
        _quick("Game24-v0", 4000, 400, 12),
        _quick("WebShop-v0", 2500, 400, 12, max_turns=5),
        _quick("MixedTasks-v0", 2500, 400, 16),
    ),
    seeds=(0,),
    trials=2,
)

_LEARNER = TaughtStart(settings={"read_least": 0.0})
"""The package's starter, however well it came to read: where it reads badly, so do all recipes."""


def _standard(
    env_id: str, tokens: int, calls: int, max_tokens: int = 64, **settings: Any
) -> SuiteEnv:
    return SuiteEnv(
        id=env_id,
        settings={"size": "micro", **settings},
        start=_LEARNER,
        limits=Limits(tokens=tokens, calls=calls, steps=400),
        max_tokens=max_tokens,
        eval_tasks=100,
        eval_every=10,
    )


STANDARD = Suite(
    name="standard",
    version=1,
    about="small taught models that learn for real, three seeds, on one workstation",
    recipes=tuple(SuiteRecipe(name=name) for name in _QUICK_RECIPES),
    envs=(
        SuiteEnv(
            id="SearchQA-v0",
            settings={"size": "micro", "hops": 1},
            start=TaughtStart(world={"size": "micro", "hops": (1, 2)}),
            limits=Limits(tokens=80_000, calls=16_000),
            max_tokens=64,
            eval_tasks=200,
            eval_every=10,
        ),
        _standard("WebQA-v0", 200_000, 30_000),
        SuiteEnv(
            id="PaperCrawler-v0",
            settings={"size": "micro", "schedule": "sampled", "per_layer": 3},
            start=TaughtStart(),
            limits=Limits(tokens=400_000, calls=80_000, steps=400),
            max_tokens=32,
            eval_tasks=100,
            eval_every=10,
        ),
        _standard("ScienceWorld-v0", 400_000, 60_000, 32, max_turns=20),
        _standard("Retail-v0", 400_000, 30_000, 96),
        _standard("MathWord-v0", 200_000, 8_000, 96),
        _standard("Game24-v0", 200_000, 16_000, 32),
        _standard("WebShop-v0", 200_000, 30_000, 32),
        _standard("MixedTasks-v0", 200_000, 30_000, 96),
    ),
    seeds=(0, 1, 2),
    trials=4,
    device="auto",
    dtype="auto",
)

_MODEL = NamedStart(name="Qwen/Qwen2.5-3B-Instruct")
"""The size that Search-R1's and Tree-GRPO's comparisons have in common."""


def _full(env_id: str, calls: int, max_tokens: int = 512, **settings: Any) -> SuiteEnv:
    return SuiteEnv(
        id=env_id,
        settings={"size": "full", **settings},
        start=_MODEL,
        limits=Limits(tokens=20_000_000, calls=calls),
        max_tokens=max_tokens,
        max_context=8192,
        eval_tasks=500,
        eval_every=10,
    )


FULL = Suite(
    name="full",
    version=1,
    about="a model of the papers' size with the papers' settings, three seeds, on GPUs",
    recipes=tuple(SuiteRecipe(name=name) for name in _QUICK_RECIPES),
    envs=(
        _full("SearchQA-v0", 250_000),
        _full("WebQA-v0", 250_000),
        _full("PaperCrawler-v0", 400_000, 256),
        _full("ScienceWorld-v0", 400_000, 128),
        _full("Retail-v0", 200_000),
        _full("MathWord-v0", 100_000),
        _full("Game24-v0", 250_000, 128),
        _full("WebShop-v0", 250_000, 128),
        _full("MixedTasks-v0", 250_000),
    ),
    seeds=(0, 1, 2),
    small=False,
    trials=4,
    max_batch=256,
    device="cuda",
    dtype="bfloat16",
    gpu_memory_gb=70.0,
)

SUITES: Mapping[str, Suite] = {suite.name: suite for suite in (QUICK, STANDARD, FULL)}
