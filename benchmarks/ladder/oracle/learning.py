"""Train tabular policies: an arm on a twin, all seeds at once, at matched actions per step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ....envs.core.errors import BadValueError, UnknownNameError
from .credit import EPS, RULES, Memory, Settings
from .rollouts import Batch, Chains, Rollout, Table
from .twins import Bools, Doubles, Twin

BETAS = (0.9, 0.999)
MEASURED = 64
"""Groups that the last policy is measured with."""


@dataclass(frozen=True, kw_only=True)
class Clip:
    """How an importance ratio acts.

    Attributes:
        ratio: Of tokens, of whole paths (GSPO), or none at all.
        low: Clip below 1.
        high: Clip above 1.
        dual: Dual clip for negative advantages; None for none.
    """

    ratio: Literal["token", "sequence", "unclipped"] = "token"
    low: float = 0.2
    high: float = 0.2
    dual: float | None = None


@dataclass(frozen=True, kw_only=True)
class Arm:
    """An algorithm on tables.

    Attributes:
        rollout: Plays the groups.
        credit: Name of the rule, see :data:`~.credit.RULES`.
        settings: Settings of the rule.
        clip: The importance ratio.
        updates: Optimiser steps per batch: mini batches, and epochs where there are more than
            ``minibatches``.
        minibatches: Most parts of a batch.
        lag: Batches that the sampled policy is behind the trained one.
        filter: Leave out groups of equal returns and share their weight among the others (DAPO
            at equal actions).
        pool: Number of tasks that come back, for the tracker; 0 draws new ones.
    """

    rollout: Rollout = field(default_factory=lambda: Chains(n=8))
    credit: str = "group"
    settings: Settings = field(default_factory=Settings)
    clip: Clip = field(default_factory=Clip)
    updates: int = 1
    minibatches: int = 16
    lag: int = 0
    filter: bool = False
    pool: int = 0

    def __post_init__(self) -> None:
        if self.credit not in RULES:
            raise UnknownNameError("credit", self.credit, RULES, "oracle")
        if self.updates < 1 or self.minibatches < 1:
            raise BadValueError(
                f"arm: updates {self.updates}, minibatches {self.minibatches}; expected at least 1."
            )


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The budget of a run.

    Attributes:
        actions: Actions sampled for training.
        per_step: Actions of a step; whole groups are played until the steps' sum is reached.
        lr: Learning rate of Adam on the logits.
        seeds: Number of policies.
        seed: Seed of everything that is drawn.
    """

    actions: int = 16_000
    per_step: int = 312
    lr: float = 0.03
    seeds: int = 100
    seed: int = 0

    @property
    def steps(self) -> int:
        """Return the number of rollout batches, the same for every arm."""
        return max(1, round(self.actions / self.per_step))


@dataclass(frozen=True)
class Learned:
    """What training gave.

    Attributes:
        area: Mean of the measure over the budget, by seed ``[seeds]``.
        final: Measure of the last policy ``[seeds]``.
        steps: Rollout batches.
        actions: Mean actions sampled by a seed.
        spent: Actions after each step, from 0 ``[steps + 1]``.
        curve: Measure before the first and after every step ``[steps + 1, seeds]``.
    """

    area: Doubles
    final: Doubles
    steps: int
    actions: float
    spent: Doubles
    curve: Doubles


class Adam:
    """Adam on tables.

    Args:
        shape: Shape of the tables.
        lr: Learning rate.
    """

    def __init__(self, shape: tuple[int, ...], lr: float) -> None:
        self.lr = lr
        self.count = np.zeros((shape[0], 1, 1), dtype=np.int64)
        self.first, self.second = np.zeros(shape), np.zeros(shape)

    def step(self, gradient: Doubles, moving: Bools) -> Doubles:
        """Return the change that ascends ``gradient``; none for seeds that are not ``moving``."""
        self.count = self.count + moving[:, None, None]
        a, b = BETAS
        live = moving[:, None, None]
        self.first = np.where(live, a * self.first + (1 - a) * gradient, self.first)
        self.second = np.where(live, b * self.second + (1 - b) * gradient**2, self.second)
        count = np.maximum(self.count, 1)
        mean, square = self.first / (1 - a**count), self.second / (1 - b**count)
        return live * self.lr * mean / (np.sqrt(square) + 1e-8)


def learn(twin: Twin, arm: Arm, schedule: Schedule) -> Learned:
    """Train ``schedule.seeds`` policies of an arm.

    Args:
        twin: The twin.
        arm: The algorithm.
        schedule: Its budget.

    Returns:
        Areas, final measures and the curve, by seed. The measure comes from paths that began at
        the start, before each update; the last policy is measured with groups of its own.
    """
    rng = np.random.default_rng([schedule.seed, 17])
    start = np.broadcast_to(twin.bias(), (schedule.seeds, twin.contexts, twin.letters))
    table = Table(twin, start.copy(), rng, arm.pool)
    memory = Memory(
        np.zeros((schedule.seeds, twin.contexts)), np.full((schedule.seeds, max(arm.pool, 1)), 0.5)
    )
    adam = Adam(table.logits.shape, schedule.lr)
    spent, curve, cost = [0.0], [], float(arm.rollout.paths * twin.horizon)
    behind = deque([table.logits], maxlen=1 + arm.lag)
    for _ in range(schedule.steps):
        due = schedule.per_step * len(spent) - spent[-1]
        groups = max(1, round(due / cost))
        old = replace(table, logits=behind[0])
        batch = arm.rollout(old, groups)
        cost = float(batch.cost.mean())
        spent.append(spent[-1] + cost * groups)
        curve.append(batch.measured)
        _update(table, batch, arm, memory, adam, old.log_probabilities)
        behind.append(table.logits)
    last = Chains(n=8)(replace(table, pool=0), MEASURED).measured
    curve.append(last)
    x, y = np.array(spent), np.array(curve)
    area = np.trapezoid(y, x, axis=0) / x[-1]
    return Learned(area, last, len(spent) - 1, spent[-1], x, y)


def _update(table: Table, batch: Batch, arm: Arm, memory: Memory, adam: Adam, old: Doubles) -> None:
    advantages = RULES[arm.credit](batch, memory, arm.settings)
    kept = batch.valid
    if arm.filter:
        kept = kept & (advantages != 0).any((2, 3), keepdims=True)
    weights = kept.astype(np.float64)
    if arm.clip.ratio == "sequence":
        weights = weights / np.maximum(batch.valid.sum(-1, keepdims=True), 1)
    weights = weights / np.maximum(weights.sum((1, 2, 3), keepdims=True), EPS)
    moving: Bools = np.asarray(kept.any((1, 2, 3)))
    groups = batch.valid.shape[1]
    parts = min(arm.updates, arm.minibatches, groups)
    for number in range(arm.updates):
        part = np.arange(groups) % parts == number % parts
        gradient = _gradient(table, batch, advantages * weights, old, part, arm.clip)
        table.logits = table.logits + adam.step(gradient * groups / part.sum(), moving)


def _gradient(
    table: Table,
    batch: Batch,
    advantages: Doubles,
    old: Doubles,
    part: Bools,
    clip: Clip,
) -> Doubles:
    """Return the gradient of the surrogate by the logits ``[S, contexts, letters]``."""
    new = table.log_probabilities
    seeds, contexts, letters = new.shape
    context, action = batch.context[:, part], batch.action[:, part]
    rows = np.arange(seeds)[:, None, None, None] * contexts + context
    cells = rows * letters + action
    moved = (new - old).reshape(-1)[cells]
    valid, signs = batch.valid[:, part], advantages[:, part]
    if clip.ratio == "sequence":
        lengths = np.maximum(valid.sum(-1, keepdims=True), 1)
        moved = np.broadcast_to((moved * valid).sum(-1, keepdims=True) / lengths, moved.shape)
    ratio = np.exp(moved)
    factor = ratio
    if clip.ratio != "unclipped":
        over = (signs > 0) & (ratio > 1 + clip.high)
        under = (signs < 0) & (ratio < 1 - clip.low)
        dual = (signs < 0) & (ratio > clip.dual) if clip.dual else np.zeros_like(over)
        factor = np.where(over | under | dual, 0.0, ratio)
    strength = (signs * factor * valid).reshape(-1)
    by_cell = np.bincount(cells.reshape(-1), strength, minlength=seeds * contexts * letters)
    by_row = np.bincount(rows.reshape(-1), strength, minlength=seeds * contexts)
    pulled = np.exp(new) * by_row.reshape(seeds, contexts, 1)
    return np.asarray(by_cell.reshape(new.shape) - pulled, dtype=np.float64)
