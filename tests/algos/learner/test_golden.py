"""Two updates of each recipe, held to recorded numbers: a change that moves them moves training.

The first table is of chains; the second of forests with forks, cut actions and sessions, where
every recipe has its paper's settings but for the learning rates.

The model's weights come from a formula, not from a generator, so that the numbers hold on any
version of torch; tolerances leave room for the order of float32 sums only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.grown import forest
from helpers.path_notes import annotations_for
from transformers import Qwen2Config, Qwen2ForCausalLM

from turngym.algos.core.forest import Forest
from turngym.algos.core.recipe import Recipe
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import RECIPES, make_recipe

SETTINGS: dict[str, dict[str, Any]] = {
    "grpo": {"optim.lr": 1e-3, "optim.warmup_steps": 0, "optim.minibatches": 2, "kl.coef": 0.1},
    "ppo": {
        "optim.lr": 1e-3, "optim.critic_lr": 1e-2, "optim.warmup_steps": 0, "optim.epochs": 2,
        "optim.minibatches": 1, "credit.kl_coef": 0.1,
    },
}  # fmt: skip
GOLDEN: dict[str, dict[str, float]] = {
    "grpo": {
        "update/loss@1": -0.0395923,
        "update/grad_norm@1": 4.129053,
        "update/loss@2": 0.1378555,
        "update/grad_norm@2": 2.476610,
        "weights": 483.786300,
    },
    "ppo": {
        "update/loss@1": 0.4856188,
        "update/grad_norm@1": 1.839903,
        "update/loss@2": 0.1500367,
        "update/grad_norm@2": 1.943259,
        "weights": 483.945977,
    },
}
FAST = {
    "optim.lr": 1e-3, "optim.critic_lr": 1e-2, "optim.warmup_steps": 0,
    "optim.critic_only_steps": 0,
}  # fmt: skip
TREES: dict[str, tuple[float, float, float, float]] = {
    "grpo": (-0.377196, 1.498444, -0.0877757, 1.102853),
    "drgrpo": (-0.00099113, 0.003894761, -0.0001710879, 0.002147927),
    "dapo": (-0.374123, 1.409504, -0.08172169, 1.070138),
    "gspo": (-0.02689912, 1.314309, -0.03930988, 1.260591),
    "rloo": (0.02978675, 7.278327, 0.007374102, 6.364604),
    "reinforcepp": (0.04012816, 1.266291, 0.04767056, 1.131115),
    "spo": (-0.2194649, 1.304187, -0.03049726, 1.145308),
    "ppo": (0.3694955, 1.001437, 0.1222921, 0.846025),
    "treegrpo": (-0.6352684, 2.37326, -0.1880151, 1.987502),
    "arpo": (-0.3715972, 1.497221, -0.08217357, 1.104518),
    "tarl": (-0.3924981, 1.53476, -0.1622901, 1.079616),
    "tarlturns": (-0.0391319, 4.52426, 0.1589835, 2.67269),
    "tarlppo": (61.6222, 0.8515055, 39.97706, 1.43272),
    "pasa": (3.237692, 2.077639, 1.208254, 1.573569),
    "sft": (5.671375, 4.146482, 5.562626, 2.495208),
    "stepdpo": (0.6973345, 0.6786424, 0.7026466, 0.5399986),
    "cispo": (-0.379464, 1.442171, -0.0810717, 1.019455),
    "sapo": (-0.1250821, 0.955922, -0.1212828, 1.532459),
    "sampo": (-0.1329014, 2.8255, -0.2775448, 2.650948),
    "dppo": (-0.3794503, 1.441725, -0.08105498, 1.02057),
    "opd": (0.02417409, 1.825681, 0.03994299, 0.8545455),
    "opsd": (0.02936552, 0.6064017, 0.004213692, 0.1346675),
    "aepo": (-0.3729577, 1.322952, -0.09689646, 1.159387),
    "at2po": (-0.02895863, 1.232269, -0.04686162, 1.124631),
    "spear": (-0.001861927, 0.007090529, -0.0004407295, 0.004216031),
    "opid": (-0.3717009, 1.509351, -0.08049516, 1.079267),
    "maxrl": (-0.2514211, 0.9769839, -0.04575669, 0.6923298),
    "empg": (-0.1015093, 0.966797, 0.2100194, 1.817165),
    "gigpo": (-0.6795833, 3.160981, -0.0836268, 1.953526),
    "hgpo": (-0.3512535, 1.91876, -0.03149881, 0.8890963),
    "g2po": (-1.067909, 5.062951, -0.05890857, 3.019399),
    "graphgpo": (-0.2136594, 1.251221, -0.1409446, 1.744692),
    "tigpo": (-0.1736146, 2.562444, -0.0006227886, 1.249813),
    "igpo": (-0.2818837, 1.078553, -0.08063238, 1.256386),
    "hcapo": (-0.7614261, 3.244601, -0.3643499, 1.75579),
}
"""Loss and gradient norm of the first update, and of the second on what the first made."""
_RESCORED = {"old_logprobs.source": "learner"}
OWN: dict[str, dict[str, Any]] = {
    "dppo": _RESCORED,
    "opsd": _RESCORED,
    "opd": {**_RESCORED, "teacher_logprobs.model": "teacher"},
}
"""The forests were not sampled by the model: by what they record all tokens would be dropped."""
ON_CHAINS = ("tarlturns",)
"""Recipes that reward turns, which no two paths may share."""


def model(first: int = 1) -> Any:
    """Two layers of width 16; weight k of a tensor is 0.3 sin(k + first)."""
    net = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=300,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=24,
            max_position_embeddings=64,
            tie_word_embeddings=True,
        )
    )
    with torch.no_grad():
        for p in net.parameters():
            k = torch.arange(first, p.numel() + first, dtype=torch.float64)
            p.copy_((0.3 * torch.sin(k)).view_as(p) + float(p.ndim == 1))
    return net


def two_updates(recipe: Recipe, forests: list[Forest], shared: bool) -> dict[str, float]:
    settings = LearnerSettings(precision="float32", shared_prefix=shared)
    learner = Learner(model(), recipe, pad_id=0, settings=settings, seed=5)
    seen: dict[str, float] = {}
    for step, grown in enumerate(forests, 1):
        for shape in recipe.shapers:
            grown = shape(grown)
        names = ("tracked_values", "kept_distances", "earlier_returns")
        annotations: dict[str, Any] = {name: annotations_for(grown)[name] for name in names}
        for annotate in recipe.used_annotators:
            annotations |= annotate(grown, learner)
        row = learner.update(grown, annotations, recipe.credit(grown, annotations))
        seen |= {f"{k}@{step}": row[k] for k in ("update/loss", "update/grad_norm")}
    weights = torch.cat([p.detach().double().view(-1) for p in learner.policy.parameters()])
    seen["weights"] = float((weights * torch.cos(torch.arange(len(weights)).double())).sum())
    return seen


@pytest.fixture(autouse=True)
def pack_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "turngym.algos.learner.batching.micro_batch.SHARE_BELOW", np.inf
    )  # worth it or not
    monkeypatch.setattr("turngym.algos.learner.model_bundle.load_model", lambda *_, **__: model(2))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", GOLDEN)
def test_two_updates(name: str, shared: bool) -> None:
    recipe = make_recipe(name, SETTINGS[name])
    seen = two_updates(recipe, [forest(seed=step) for step in (1, 2)], shared)
    assert seen == pytest.approx(GOLDEN[name], rel=2e-4)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", RECIPES)
def test_two_updates_of_trees(name: str, shared: bool) -> None:
    recipe = make_recipe(name, {**FAST, "optim.minibatches": 2, **OWN.get(name, {})})
    forked = [branching(step, groups=3, trees=3, turns=8) for step in (1, 2)]
    forests = [forest(seed=step) for step in (1, 2)] if name in ON_CHAINS else forked
    seen = two_updates(recipe, forests, shared)
    seen.pop("weights")
    assert list(seen.values()) == pytest.approx(TREES[name], rel=2e-4)
