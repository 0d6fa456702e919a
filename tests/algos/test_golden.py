"""Two updates of each recipe, held to recorded numbers: a change that moves them moves training.

The model's weights come from a formula, not from a generator, so that the numbers hold on any
version of torch; tolerances leave room for the order of float32 sums only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from grown import forest
from transformers import Qwen2Config, Qwen2ForCausalLM

from turngym.algos.learner import Learner
from turngym.algos.learner_settings import LearnerSettings
from turngym.algos.recipes import make_recipe

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


def model() -> Any:
    """Two layers of width 16; weight k of a tensor is 0.3 sin(k + 1)."""
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
            k = torch.arange(1, p.numel() + 1, dtype=torch.float64)
            p.copy_((0.3 * torch.sin(k)).view_as(p) + float(p.ndim == 1))
    return net


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", GOLDEN)
def test_two_updates(name: str, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngym.algos.micro_batch.SHARE_BELOW", np.inf)  # pack it, worth it or not
    recipe = make_recipe(name, SETTINGS[name])
    settings = LearnerSettings(precision="float32", shared_prefix=shared)
    learner = Learner(model(), recipe, pad_id=0, settings=settings, seed=5)
    seen: dict[str, float] = {}
    for step in (1, 2):
        grown = forest(seed=step)
        notes: dict[str, Any] = {}
        for annotate in recipe.used_annotators:
            notes |= annotate(grown, learner)
        row = learner.update(grown, notes, recipe.credit(grown, notes))
        seen |= {f"{k}@{step}": row[k] for k in ("update/loss", "update/grad_norm")}
    weights = torch.cat([p.detach().double().view(-1) for p in learner.policy.parameters()])
    seen["weights"] = float((weights * torch.cos(torch.arange(len(weights)).double())).sum())
    assert seen == pytest.approx(GOLDEN[name], rel=2e-4)
