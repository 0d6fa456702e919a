"""Training runs that a laptop ends in seconds: every recipe on the diagnostic worlds.

The settings are those of a random model of 0.1 million parameters: one optimiser step per batch at
a high rate, no KL, which holds it to knowing nothing; the recipes' own small settings are for a
model that can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from turngym.agents.warm_start.cache import ensure_starter
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe, settings_of
from turngym.algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from turngym.algos.training.trainer import train

LR = 2e-3
EPISODES = 64
"""Paths per step of the recipes whose groups do not compare paths; the others take 8 groups."""
STEPS = {"Bandit-v0": 40, "Password-v0": 60, "Recall-v0": 60, "Fork-v0": 110, "Spawn-v0": 90}
LADDER = tuple(
    f"{name}-v0"
    for name in ("Aliases", "Corridor", "Fog", "Judge", "Keys", "Lottery", "Noise", "Rare")
)
"""Diagnostic environments outside the table: each separates recipes, so not all learn it."""
LEAST = {"Bandit-v0": 0.9, "Password-v0": 0.8, "Recall-v0": 0.6, "Fork-v0": 0.35, "Spawn-v0": 0.2}
"""Success that counts as learned; a blank model's is under 0.25, in Fork and Spawn 0. Floors
against breakage, not claims of quality: they lie below the lowest of two seeds (Recall 0.72, Spawn
0.26, Fork 0.44 under its former rule), and the settings were chosen on the first of them."""

_CHAINS = {"optim.lr": LR, "groups_per_step": 8, "rollout.n": 8}
_SINGLE = {"optim.lr": LR, "groups_per_step": EPISODES}
_CRITIC = {**_SINGLE, "optim.critic_lr": 5e-3}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "aepo": {"optim.lr": LR, "groups_per_step": 8},
    "arpo": {"optim.lr": LR, "groups_per_step": 8},
    "at2po": {"optim.lr": LR, "groups_per_step": 8},
    "cispo": _CHAINS,
    "dapo": _CHAINS,
    "dppo": _CHAINS,
    "drgrpo": _CHAINS,
    "empg": _CHAINS,
    "g2po": _CHAINS,
    "gigpo": _CHAINS,
    "graphgpo": _CHAINS,
    "grpo": _CHAINS,
    "gspo": _CHAINS,
    "hcapo": _CHAINS,
    "hgpo": _CHAINS,
    "igpo": _CHAINS,
    "maxrl": _CHAINS,
    "opd": _SINGLE,
    "opid": _CHAINS,
    "opsd": _SINGLE,
    "pasa": {**_CRITIC, "rollout.window": 4},  # the short worlds are one session each
    "ppo": _CRITIC,
    "reinforcepp": _SINGLE,
    "rloo": _CHAINS,
    "sampo": _CHAINS,
    "sapo": _CHAINS,
    "sft": {"optim.lr": LR},
    "spear": {**_CHAINS, "tracker.paths": 32},
    "spo": {"optim.lr": LR, "groups_per_step": 48, "tracker.first": 0},
    "stepdpo": {"optim.lr": LR, "groups_per_step": 16},
    "tarl": _CHAINS,
    "tarlppo": _CRITIC,
    "tarlturns": _CHAINS,
    "tigpo": _CHAINS,
    "treegrpo": {"optim.lr": LR, "groups_per_step": 12},
}
EXTRA: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("arpo", "Password-v0"): {"groups_per_step": 12},  # with 8, seed 1 never met a first success
    ("at2po", "Password-v0"): {"groups_per_step": 16},  # 0.02 with 8, 0.98 with 16
    ("treegrpo", "Password-v0"): {"groups_per_step": 20},  # with 12, the same
    ("grpo", "Spawn-v0"): {"optim.lr": 3e-3, "groups_per_step": 12},
    ("tarl", "Spawn-v0"): {"optim.lr": 3e-3, "groups_per_step": 12},
    ("arpo", "Spawn-v0"): {"groups_per_step": 4},  # for time
    # with the recipe's two trees of three leaves too few pairs are of one room: chance, 0.25
    ("stepdpo", "Fork-v0"): {"groups_per_step": 12, "rollout.trees": 1, "rollout.nodes": 8},
    # a price of unreadable actions is a full score where all returns of a state are equal: 0.42
    ("gigpo", "Recall-v0"): {"credit.invalid_penalty": 0.0},
    ("hgpo", "Recall-v0"): {"credit.invalid_penalty": 0.0},
    ("gigpo", "Spawn-v0"): {  # as grpo, and no price: 0.00 with both at their defaults, then 1.00
        "optim.lr": 3e-3,
        "groups_per_step": 12,
        "credit.invalid_penalty": 0.0,
    },
    ("opid", "Recall-v0"): {"groups_per_step": 16},  # 0.42 with 8, 0.94 with 16
    ("spo", "Spawn-v0"): {"groups_per_step": 16},  # the split has 19 tasks, each at most once
}
NOT_LEARNED: Mapping[tuple[str, str], str] = {
    ("ppo", "Spawn-v0"): "0.00; by construction GAE ends with the session, so asking only costs",
    ("tarlppo", "Spawn-v0"): "0.16; GAE ends with the session, as in ppo",
    ("hgpo", "Spawn-v0"): "0.00 with two settings; it reads states that come again alone",
    ("hgpo", "Fork-v0"): "0.31, and 0.24 without a price of unreadable actions: slower than others",
    ("stepdpo", "Spawn-v0"): "0.00 with three settings; cause not established",
    **{("opsd", env_id): "a blank model cannot read a demonstration" for env_id in STEPS},
}
"""Cells that did not learn with what was tried, and what is known of the reason."""
REFUSED = frozenset(
    [
        *(("igpo", env_id) for env_id in STEPS if env_id != "Recall-v0"),
        *(("opd", env_id) for env_id in STEPS),
        ("maxrl", "Spawn-v0"),
    ]
)
"""Cells of recipes that make no sense there: tasks without an accepted answer, no teacher, returns
below 0."""


@dataclass(frozen=True)
class Learned:
    """Success on training tasks, sampled at temperature 1, before and after."""

    before: float
    after: float
    seconds: float


def blank_settings(recipe: str) -> dict[str, Any]:
    """One plain optimiser step per batch, and no KL."""
    known = settings_of(make_recipe(recipe, small=True))
    plain = {"optim.epochs": 1, "optim.minibatches": 1, "optim.warmup_steps": 0}
    return plain | {
        key: 0.0 for key in ("loss.kl.coef", "loss.of.kl.coef", "credit.kl_coef") if key in known
    }


def learn(recipe: str, env_id: str, folder: Path, seed: int = 0) -> Learned:
    """Train the blank model; ``folder`` holds the starters and the run."""
    settings = {**blank_settings(recipe), **SETTINGS[recipe], **EXTRA.get((recipe, env_id), {})}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        env = EnvConfig(id=env_id, settings={"size": "micro"})
        config = TrainConfig(
            env=env,
            model=str(ensure_starter(env_id, cache_dir=folder)),
            recipe=make_recipe(recipe, settings, small=True),
            budget=Budget(steps=STEPS[env_id]),
            evals=(EvalConfig(name="seen", env=env, split="train", n=100),),
            seed=seed,
            max_tokens=8,
            eval_every=0,
            eval_temperature=1.0,
            checkpoint_every=10_000,
            max_batch=128,
            engine_dtype="float32",
            device="cpu",
            learner=LearnerSettings(precision="float32"),
        )
        result = train(config, folder / f"{recipe}-{env_id}-{seed}")
    finally:
        torch.set_num_threads(threads)
    (before,), (after,) = result.before, result.after
    return Learned(before.success.mean, after.success.mean, result.seconds)
