"""Tabular credit: one advantage per turn, each rule as its recipe has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .rollouts import Batch
from .twins import Bools, Doubles, Ints

EPS = 1e-6


@dataclass(slots=True)
class Memory:
    """What credit learns from step to step.

    Attributes:
        values: The critic's value of every context ``[S, contexts]``.
        tracked: The tracker's value of every task of the pool ``[S, pool]``.
    """

    values: Doubles
    tracked: Doubles


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the credit rules.

    Attributes:
        lam: GAE's lambda.
        by_observation: Whether the critic takes equal observations for equal states.
        gamma1: Weight of the sessions that were asked for.
        outcome: Weight of the outcome beside verdicts (TARL, arXiv 2509.14480, section 3).
        turn_budget: Most that verdicts of +1 give together, and the cost of a -1.
        critic_rate: Share of the way that the critic goes to a batch's mean target.
        keep: Share of the past that the tracker keeps.
    """

    lam: float = 1.0
    by_observation: bool = False
    gamma1: float = 0.9
    outcome: float = 10.0
    turn_budget: float = 5.0
    critic_rate: float = 0.3
    keep: float = 0.9


Rule = Callable[[Batch, Memory, Settings], Doubles]
"""Advantages ``[S, G, P, T]`` of a batch; may learn in the memory."""


def standardise(values: Doubles, axes: int | tuple[int, ...], mask: Bools | None = None) -> Doubles:
    """Return z-scores with the unbiased deviation over some axes; 0 where all are equal."""
    weights = np.ones_like(values) if mask is None else np.broadcast_to(mask, values.shape)
    count = np.maximum(weights.sum(axes, keepdims=True), 1)
    mean = (values * weights).sum(axes, keepdims=True) / count
    centred = (values - mean) * weights
    deviation = np.sqrt((centred**2).sum(axes, keepdims=True) / np.maximum(count - 1, 1))
    return np.where(deviation > 1e-9, centred / (deviation + EPS), 0.0)


def to_go(rewards: Doubles) -> Doubles:
    """Sum over the last axis from each place to the end."""
    return rewards[..., ::-1].cumsum(-1)[..., ::-1]


def _spread(batch: Batch, of_path: Doubles) -> Doubles:
    return of_path[..., None] * batch.valid


def group(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """GRPO: the return's z-score within the prompt."""
    del memory, settings
    return _spread(batch, standardise(batch.returns, 2))


def rloo(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """RLOO: the return less the mean of the prompt's other paths, not divided."""
    del memory, settings
    returns = batch.returns
    n = returns.shape[2]
    return _spread(batch, (returns - returns.mean(2, keepdims=True)) * n / (n - 1))


def intra(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """Tree-GRPO's second term alone: the z-score within the tree."""
    del memory, settings
    returns, scores = batch.returns, np.zeros_like(batch.returns)
    for tree in np.unique(batch.tree):
        mask = batch.tree == tree
        scores += standardise(returns, 2, mask)
    return _spread(batch, scores)


def both(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """Tree-GRPO: the z-score within the prompt plus the one within the tree."""
    return group(batch, memory, settings) + intra(batch, memory, settings)


def batch_norm(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """REINFORCE++: returns to go, whitened over all turns of the batch."""
    del memory, settings
    gains = to_go(batch.reward * batch.valid)
    return standardise(gains, (1, 2, 3), batch.valid) * batch.valid


def session_batch(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """REINFORCE++ where every session is a path of its own: returns to go end with it."""
    del memory, settings
    rewards = batch.reward * batch.valid
    gains, later = np.zeros_like(rewards), np.zeros(rewards.shape[:-1])
    for t in range(rewards.shape[-1] - 1, -1, -1):
        later = rewards[..., t] + ~batch.closed[..., t] * later
        gains[..., t] = later
    return standardise(gains, (1, 2, 3), batch.valid) * batch.valid


def critic(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """PPO: GAE on a critic of contexts, whitened; the critic then learns its targets."""
    rewards = batch.reward * batch.valid
    return _with_critic(batch, memory, settings, rewards, np.zeros_like(batch.closed))


def sessions(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """PaSa: returns end with the session; sessions asked for count by their first value."""
    worth = np.take_along_axis(
        memory.values[:, None, None, :], np.maximum(batch.spawned, 0), axis=-1
    )
    rewards = batch.reward + settings.gamma1 * np.where(batch.spawned >= 0, worth, 0.0)
    return _with_critic(batch, memory, settings, rewards * batch.valid, batch.closed)


def session_critic(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """PPO where every session is a path of its own, which sees only its own rewards."""
    return _with_critic(batch, memory, settings, batch.reward * batch.valid, batch.closed)


def _with_critic(
    batch: Batch, memory: Memory, settings: Settings, rewards: Doubles, ends: Bools
) -> Doubles:
    states = batch.observed if settings.by_observation else batch.context
    values = np.take_along_axis(memory.values[:, None, None, :], states, axis=-1) * batch.valid
    advantages = np.zeros_like(rewards)
    later = following = np.zeros(rewards.shape[:-1])
    for t in range(rewards.shape[-1] - 1, -1, -1):
        onward = ~ends[..., t]
        delta = rewards[..., t] + onward * following - values[..., t]
        later = (delta + settings.lam * onward * later) * batch.valid[..., t]
        advantages[..., t], following = later, values[..., t]
    _learn_values(memory, settings, states, batch.valid, advantages + values)
    return standardise(advantages, (1, 2, 3), batch.valid) * batch.valid


def _learn_values(
    memory: Memory, settings: Settings, states: Ints, valid: Bools, targets: Doubles
) -> None:
    seeds, contexts = memory.values.shape
    rows = np.arange(seeds)[:, None, None, None] * contexts + states
    flat, live = rows[valid], targets[valid]
    count = np.bincount(flat, minlength=seeds * contexts).reshape(seeds, contexts)
    total = np.bincount(flat, live, minlength=seeds * contexts).reshape(seeds, contexts)
    mean = total / np.maximum(count, 1)
    memory.values += settings.critic_rate * (count > 0) * (mean - memory.values)


def tracked(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """SPO: the return less the tracked value of the task, whitened over the batch's paths."""
    returns = batch.returns
    values = np.take_along_axis(memory.tracked, batch.task, axis=1)
    scores = standardise(returns - values[..., None], (1, 2))
    seeds, pool = memory.tracked.shape
    flat = (np.arange(seeds)[:, None] * pool + batch.task).reshape(-1)
    count = np.bincount(flat, minlength=seeds * pool).reshape(seeds, pool)
    total = np.bincount(flat, returns.mean(2).reshape(-1), minlength=seeds * pool)
    mean = total.reshape(seeds, pool) / np.maximum(count, 1)
    memory.tracked += (1 - settings.keep) * (count > 0) * (mean - memory.tracked)
    return _spread(batch, scores)


def verdict_rewards(batch: Batch, settings: Settings) -> Doubles:
    """Return TARL's turn rewards: a share per +1, once the cost of a -1, the outcome at the end."""
    turns = np.maximum(batch.valid.sum(-1, keepdims=True), 1)
    wrong = (batch.verdict < 0) & batch.valid
    first = wrong & (wrong.cumsum(-1) == 1)
    rewards = settings.turn_budget * ((batch.verdict > 0) & batch.valid) / turns
    rewards = rewards - settings.turn_budget * first
    last = np.arange(batch.valid.shape[-1]) == turns - 1
    return rewards + last * settings.outcome * batch.returns[..., None]


def verdict_group(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """TARL: outcome and verdicts in one reward per path, compared within the prompt."""
    del memory
    return _spread(batch, standardise(verdict_rewards(batch, settings).sum(-1), 2))


def verdict_turns(batch: Batch, memory: Memory, settings: Settings) -> Doubles:
    """TARL turn by turn: what a turn returns from there on, against all turns of the prompt."""
    del memory
    gains = to_go(verdict_rewards(batch, settings) * batch.valid)
    return standardise(gains, (2, 3), batch.valid) * batch.valid


RULES: Mapping[str, Rule] = {
    "group": group,
    "rloo": rloo,
    "both": both,
    "intra": intra,
    "batch": batch_norm,
    "session-batch": session_batch,
    "critic": critic,
    "session-critic": session_critic,
    "sessions": sessions,
    "tracked": tracked,
    "verdict-group": verdict_group,
    "verdict-turns": verdict_turns,
}
"""The rules by name; one of states would read ``Batch.context`` or ``Batch.observed``."""
