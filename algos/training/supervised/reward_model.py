"""Training of a reward model: pairwise ranking, no reinforcement learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from ....agents.models.lora import with_lora
from ....agents.models.usual_torch import seeded_draws, usual_torch
from ....agents.planning.records import Pair
from ....agents.planning.reward_model import RewardModel
from ....agents.planning.settings import ARMAP_LORA, RewardTraining
from ....agents.warm_start.imitation import WarmupAdamW, chunk_tokens, in_chunks
from ....envs.core.errors import BadValueError
from .epochs import BatchMetrics, OnProgress, count_steps, ignore_progress, run_epochs


class PairLoss(NamedTuple):
    """The loss of a batch of pairs.

    Attributes:
        ranking: Mean of ``-log sigmoid(r+ - r-)`` (Bradley-Terry).
        centring: ``|mean(r+ + r-)|``.
    """

    ranking: torch.Tensor
    centring: torch.Tensor

    def total(self, weight: float = 1e-3) -> torch.Tensor:
        """Return the sum, the centring term times ``weight``."""
        return self.ranking + weight * self.centring


def pair_loss(better: torch.Tensor, worse: torch.Tensor) -> PairLoss:
    """Return the loss of rewards ``[pairs]`` of the better and the worse trajectories."""
    ranking = -functional.logsigmoid(better - worse).mean()
    return PairLoss(ranking, (better + worse).mean().abs())


@usual_torch()
def train_reward_model(
    reward: RewardModel,
    pairs: Sequence[Pair],
    how: RewardTraining,
    on_progress: OnProgress = ignore_progress,
) -> dict[str, float]:
    """Train ``reward`` in place.

    Pairs of similar length go through the model together; the centring term is taken over each such
    part of a step, as it is over each device's part in the release.

    Args:
        reward: With float32 weights.
        pairs: What it learns.
        how: Learning rate and so on.
        on_progress: Called after every step.

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
        reward.backbone = _with_lora(whole, how)
    _, warmup_steps = count_steps(len(rows), how.epochs, how.batch, how.warmup)
    learning = (p for p in reward.backbone.parameters() if p.requires_grad)
    optimizer = WarmupAdamW(
        [*learning, *reward.head.parameters()],
        lr=how.lr,
        warmup_steps=warmup_steps,
        max_norm=how.max_norm,
        weight_decay=how.weight_decay,
    )

    def step(part: list[tuple[list[int], list[int]]]) -> BatchMetrics:
        found = accumulate_gradients(reward, part, how.centring)
        optimizer.step()
        return found

    rng = np.random.default_rng([how.seed, 3])
    with seeded_draws(how.seed, next(whole.parameters()).device):  # of dropout
        report = run_epochs(rows, how.epochs, how.batch, rng, step, on_progress)
    if how.lora is not None:
        reward.backbone.merge_and_unload()
        reward.backbone = whole
    reward.backbone.eval()
    return report


def accumulate_gradients(
    reward: RewardModel, rows: Sequence[tuple[list[int], list[int]]], centring: float
) -> BatchMetrics:
    """Add up the gradients of one step; return its loss and the share of pairs ranked correctly."""
    reward.backbone.train()
    loss = right = 0.0
    widths = [2 * max(len(a), len(b)) for a, b in rows]
    for places in in_chunks(widths, chunk_tokens(reward.backbone)):
        part = [rows[i] for i in places]
        values = reward.rewards([row for pair in part for row in pair]).view(-1, 2)
        share = len(part) / len(rows)
        total = pair_loss(values[:, 0], values[:, 1]).total(centring) * share
        total.backward()
        loss += float(total.detach())
        right += float((values[:, 0] > values[:, 1]).sum())
    return BatchMetrics(loss, right / len(rows))


def _with_lora(backbone: Any, how: RewardTraining) -> Any:
    """Return the backbone with low-rank updates on those of the named layers that it has."""
    settings = how.lora or ARMAP_LORA
    names = {name.rsplit(".", 1)[-1] for name, _ in backbone.named_modules()}
    targets = tuple(name for name in settings.targets if name in names) or ("all-linear",)
    return with_lora(
        backbone, replace(settings, targets=targets), how.seed, dropout=how.lora_dropout, task=None
    )
