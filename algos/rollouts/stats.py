"""Metrics of a forest of rollouts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ...envs.utils.response_stats import compute_response_metrics
from ..core.forest import ROOT, Edge, Forest, Group, Turn

_OWN_KEYS = frozenset({"success", "return", "turns", "invalid_actions"})
"""Metrics of every environment that have a key of their own."""


def tokens_sampled(forest: Forest) -> int:
    """Count sampled action tokens, including those of failed and pruned episodes."""
    return sum(group_tokens(group) for group in forest.groups)


def group_tokens(group: Group) -> int:
    """Count the sampled action tokens of a group, as :func:`tokens_sampled`."""
    return group.pruned_tokens + sum(len(t.act_ids) for tree in group.trees for t in tree.turns)


def tokens_read_again(forest: Forest, read: int) -> dict[str, float]:
    """Return the share of the tokens that a model read which it had read before, as a metric.

    Every token has to be read once: the first prompt of a group's trees, each observation, each
    sampled token but the last one of a path. Whatever else goes through the model are contexts
    whose keys and values were lost, episodes that failed, and paths that were pruned. An engine
    that reads what prompts of several groups have in common once for all may read less than that;
    the share is then 0.

    Args:
        forest: The groups that were played.
        read: Tokens that went through the model: context tokens that were not cached, and sampled
            ones but the last of each action.
    """
    needed = 0
    for group in forest.groups:
        known: set[tuple[int, int, bytes]] = set()
        for number, tree in enumerate(group.trees):
            needed += sum(len(t.act_ids) for t in tree.turns) - len(tree.leaves())
            for at, turn in enumerate(tree.turns):
                ids = np.asarray(turn.obs_ids, np.int64).tobytes()
                if turn.edge is Edge.SPAWN:
                    key = (number, at, b"")
                else:
                    key = (-1 if turn.parent == ROOT else number, turn.parent, ids)
                needed += 0 if key in known else len(turn.obs_ids)
                known.add(key)
    return {"engine/read_again_frac": max(0.0, 1.0 - needed / read) if read else 0.0}


def turns_taken(forest: Forest) -> int:
    """Count environment steps, including those of pruned episodes."""
    return sum(group_turns(group) for group in forest.groups)


def group_turns(group: Group) -> int:
    """Count the environment steps of a group, as :func:`turns_taken`."""
    return group.pruned_turns + sum(not t.partial for tree in group.trees for t in tree.turns)


def fault_warning(step: int, forest: Forest, fault: str) -> str:
    """Return a warning about episodes that failed with env_error, empty if there are none.

    Args:
        step: The training step.
        forest: The step's rollouts.
        fault: The environment's last error message.
    """
    if not (broken := forest.env_errors):
        return ""
    detail = f" {fault}" if fault else ""
    return (
        f"step {step}: {broken} of {broken + len(forest.paths)} episodes failed (env_error) and "
        f"are excluded.{detail}"
    )


def rollout_metrics(forest: Forest) -> dict[str, float]:
    """Return declared ``rollout/*`` metrics of a forest."""
    paths = [forest.turns(p) for p in forest]
    row = {
        "rollout/groups": float(len(forest.groups)),
        "rollout/paths": float(len(paths)),
        "rollout/env_errors": float(forest.env_errors),
        "rollout/tokens": float(tokens_sampled(forest)),
    }
    if not paths:
        return row
    returns = np.array([forest.reward(p) for p in forest], dtype=np.float64)
    row |= {
        "rollout/return_mean": returns.mean(),
        "rollout/return_std": returns.std(),
        "rollout/success_frac": np.mean([line[-1].status == "solved" for line in paths]),
        "rollout/truncated_frac": np.mean([line[-1].status == "truncated" for line in paths]),
        "rollout/overflow_frac": np.mean([line[-1].overflow for line in paths]),
        "rollout/turns_mean": np.mean([_steps(line) for line in paths]),
        "rollout/tokens_mean": np.mean([sum(len(t.act_ids) for t in line) for line in paths]),
        "rollout/context_tokens_mean": np.mean(
            [sum(len(t.obs_ids) + len(t.act_ids) for t in line) for line in paths]
        ),
        "rollout/invalid_actions_mean": np.mean([sum(not t.valid for t in line) for line in paths]),
    }
    turns = [t for line in paths for t in line if not t.partial]
    row["rollout/cut_actions_frac"] = np.mean([t.stop == "length" for t in turns])
    row["rollout/entropy_nats"] = np.concatenate(
        [t.entropies for line in paths for t in line]
    ).mean()
    terms = _sums(turn.reward_terms for turn in turns)
    row |= {f"rollout/term_{name}_mean": value / len(paths) for name, value in terms.items()}
    row |= {f"rollout/metric_{name}_mean": value for name, value in _measures(paths).items()}
    return {key: float(value) for key, value in row.items()}


def lag_metrics(forest: Forest, version: int, *, of_tokens: bool = False) -> dict[str, float]:
    """Return how many updates the sampling weights were behind ``version``.

    Args:
        forest: What was sampled.
        version: Number of updates of the weights that are trained.
        of_tokens: Also by token, and the share of tokens that are behind at all: where the turns
            of one episode were sampled by different weights.
    """
    lags = [version - turn.version for turn in _all_turns(forest)]
    if not lags:
        return {}
    row = {"rollout/lag_mean": float(np.mean(lags)), "rollout/lag_max": float(max(lags))}
    if of_tokens:
        counts = np.array([len(turn.act_ids) for turn in _all_turns(forest)], dtype=np.float64)
        late, every = np.array(lags), max(1.0, counts.sum())
        row["rollout/lag_token_mean"] = float(counts @ late / every)
        row["rollout/lagged_tokens_frac"] = float(counts @ (late > 0) / every)
    return row


def response_metrics(turns: Sequence[Turn]) -> dict[str, float]:
    """Return length and self-correction metrics of a path's responses.

    See :func:`turngym.envs.utils.response_stats.compute_response_metrics`; an action that was cut
    for a fork inside it is one text.
    """
    texts = [""]
    for turn in turns:
        texts[-1] += turn.action
        if not turn.partial:
            texts.append("")
    return compute_response_metrics(texts)


def _measures(paths: Sequence[Sequence[Turn]]) -> dict[str, float]:
    """Return the mean of each metric over the paths that report it."""
    values: dict[str, list[float]] = defaultdict(list)
    for line in paths:
        for name, value in (response_metrics(line) | dict(line[-1].metrics)).items():
            if name not in _OWN_KEYS:
                values[name].append(value)
    return {name: float(np.mean(found)) for name, found in values.items()}


def shaped_metrics(forest: Forest) -> dict[str, float]:
    """Return declared ``shaped/*`` and ``judge/*`` metrics of a forest after a recipe's shapers."""
    lines = [forest.turns(path) for path in forest]
    if not lines:
        return {}
    verdicts = np.array([t.verdict for line in lines for t in line if not t.partial])
    row = {
        "shaped/return_mean": forest.returns().mean(),
        "judge/right_frac": (verdicts == 1).mean() if len(verdicts) else 0.0,
        "judge/wrong_frac": (verdicts == -1).mean() if len(verdicts) else 0.0,
    }
    terms = _sums(turn.reward_terms for line in lines for turn in line)
    row |= {f"shaped/term_{name}_mean": value / len(lines) for name, value in terms.items()}
    faults = _sums(line[-1].metrics for line in lines)
    row |= {
        f"judge/{name.removeprefix('judge_')}_frac": value / len(lines)
        for name, value in faults.items()
        if name.startswith("judge_")
    }
    return {key: float(value) for key, value in row.items()}


def _sums(named: Iterable[Iterable[tuple[str, float]]]) -> dict[str, float]:
    """Sum of the values by name."""
    sums: dict[str, float] = defaultdict(float)
    for pairs in named:
        for name, value in pairs:
            sums[name] += value
    return dict(sums)


def _steps(line: list[Turn]) -> int:
    """Return the number of environment steps of a path."""
    return sum(not turn.partial for turn in line)


def _all_turns(forest: Forest) -> list[Turn]:
    return [turn for group in forest.groups for tree in group.trees for turn in tree.turns]
