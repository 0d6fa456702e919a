"""Training of a reward model: pairwise ranking, no reinforcement learning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from ...envs.errors import BadValueError, MissingExtraError
from .records import Pair
from .reward_model import RewardModel, in_chunks
from .settings import LoraSettings, RewardTraining

LORA_ON = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Layers that ARMAP trains; of models that name theirs otherwise, every linear one."""


class Lesson(NamedTuple):
    """How far training is.

    Attributes:
        step: Steps taken.
        steps: Steps in all.
        loss: Of the step's pairs, before it.
        accuracy: Share of the step's pairs that were told apart, before it.
    """

    step: int
    steps: int
    loss: float
    accuracy: float


class PairLoss(NamedTuple):
    """The loss of a batch of pairs.

    Attributes:
        ranking: Mean of ``-log sigmoid(r+ - r-)`` (Bradley-Terry).
        centring: ``|mean(r+ + r-)|``.
    """

    ranking: torch.Tensor
    centring: torch.Tensor

    def total(self, weight: float = 1e-3) -> torch.Tensor:
        """Both, the centring term times ``weight``."""
        return self.ranking + weight * self.centring


def pair_loss(better: torch.Tensor, worse: torch.Tensor) -> PairLoss:
    """The loss of rewards ``[pairs]`` of the better and the worse trajectories."""
    ranking = -functional.logsigmoid(better - worse).mean()
    return PairLoss(ranking, (better + worse).mean().abs())


def train_reward_model(
    reward: RewardModel,
    pairs: Sequence[Pair],
    how: RewardTraining,
    tell: Callable[[Lesson], None] = lambda _: None,
) -> dict[str, float]:
    """Train ``reward`` in place.

    Pairs of similar length go through the model together; the centring term is taken over each such
    part of a step, as it is over each device's part in the release.

    Args:
        reward: With float32 weights.
        pairs: What it learns.
        how: Learning rate and so on.
        tell: Called after every step.

    Returns:
        ``steps``, and means over the last tenth of them: ``loss``, ``accuracy``.

    Raises:
        BadValueError: No pairs.
        MissingExtraError: LoRA without peft.
    """
    if not pairs:
        raise BadValueError("reward training: got no pairs; expected at least one.")
    rows = [(reward.reader.ids(p.better), reward.reader.ids(p.worse)) for p in pairs]
    whole = reward.backbone
    if how.lora is not None:
        reward.backbone = _with_lora(whole, how.lora, how.seed)
    weights = [*(p for p in reward.backbone.parameters() if p.requires_grad)]
    weights += reward.head.parameters()
    optimizer = torch.optim.AdamW(weights, lr=how.lr, weight_decay=how.weight_decay)
    steps = how.epochs * math.ceil(len(rows) / how.batch)
    warmup = max(1, math.ceil(how.warmup * steps))
    rng = np.random.default_rng([how.seed, 3])
    lessons: list[Lesson] = []
    for _ in range(how.epochs):
        order = rng.permutation(len(rows))
        for start in range(0, len(order), how.batch):
            part = [rows[i] for i in order[start : start + how.batch]]
            loss, accuracy = _learn(reward, part, how.centring)
            torch.nn.utils.clip_grad_norm_(weights, how.max_norm)
            for group in optimizer.param_groups:
                group["lr"] = how.lr * min(1.0, (len(lessons) + 1) / warmup)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            lessons.append(Lesson(len(lessons) + 1, steps, loss, accuracy))
            tell(lessons[-1])
    if how.lora is not None:
        reward.backbone.merge_and_unload()
        reward.backbone = whole
    reward.backbone.eval()
    last = lessons[-max(1, len(lessons) // 10) :]
    told = {"steps": float(steps)}
    for name in ("loss", "accuracy"):
        told[name] = sum(getattr(lesson, name) for lesson in last) / len(last)
    return told


def _learn(
    reward: RewardModel, rows: Sequence[tuple[list[int], list[int]]], centring: float
) -> tuple[float, float]:
    """Gradients of one step; its loss and the share of pairs told apart."""
    reward.backbone.train()
    loss = right = 0.0
    for places in in_chunks([2 * max(len(a), len(b)) for a, b in rows]):
        part = [rows[i] for i in places]
        values = reward.rewards([row for pair in part for row in pair]).view(-1, 2)
        share = len(part) / len(rows)
        total = pair_loss(values[:, 0], values[:, 1]).total(centring) * share
        total.backward()
        loss += float(total.detach())
        right += float((values[:, 0] > values[:, 1]).sum())
    return loss, right / len(rows)


def _with_lora(backbone: Any, settings: LoraSettings, seed: int) -> Any:
    """The backbone with trainable low-rank updates; its own weights are frozen."""
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as fault:
        raise MissingExtraError("low-rank training", "peft", "train") from fault
    names = {name.rsplit(".", 1)[-1] for name, _ in backbone.named_modules()}
    on = [name for name in LORA_ON if name in names]
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=on or "all-linear",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return get_peft_model(backbone, config)
