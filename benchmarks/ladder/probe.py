"""What matters in an environment for the choice of an algorithm, measured in seconds.

A tree, or a branch, helps where what lies before the fork explains much of the return: then paths
that share it are fair rivals. So trees are grown with the starting policy, and the share of the
return's variance within a prompt that a shared prefix explains is estimated by its depth.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...agents.engines.base import Engine, Sampling
from ...agents.rendering.factory import Renderer
from ...agents.scripted import scripted, text_env
from ...algos.core.forest import Group, Tree
from ...algos.core.protocols import Start
from ...algos.evaluation.evaluate import EvalSet, Evaluation, evaluate_model, evaluate_policy
from ...algos.rollouts import EpisodeRunner, Expand
from ...envs.core.errors import BadValueError
from ...envs.core.tasks import get_split_size
from ...envs.utils.seed_tests import seed_interval
from ...envs.utils.statistics import Estimate

NODES = 4
"""Endings added to every tree."""
MIN_PAIRS = 20
"""Fewest pairs of paths for which a depth is shown."""
MIN_VARYING = 5
"""Fewest prompts whose returns vary at a depth for which it is shown."""
NO_VARIANCE = 1e-12
_SEED = 5_000
_Paths = list[tuple[tuple[int, ...], float]]
"""The episodes of a tree with their returns, the one that was played first at first."""


@dataclass(frozen=True)
class DepthShare:
    """The share of the return's variance that the first ``depth`` turns explain.

    It is that of episodes which go on behind them: a fork hangs at no other.

    Attributes:
        depth: Turns that two paths share.
        share: Correlation of the returns of paths that share them, with Student's interval over
            prompts; 0 where the prefix tells nothing, 1 where it tells all.
        pairs: Number of pairs of paths.
    """

    depth: int
    share: Estimate
    pairs: int


@dataclass(frozen=True)
class Probe:
    """What was measured in an environment with its starting policy.

    Attributes:
        prompts: Tasks on which trees were grown.
        paths: Their episodes.
        siblings: By depth; empty where returns do not vary within a prompt, where episodes have one
            turn, and where too few of them are longer.
        variance: Mean variance of the return within a prompt.
        revisited_frac: Share of turns taken in a state that the same episode was in before.
        shared_frac: Share of turns whose state a path of another tree of the prompt was in too.
        first_entropy: Mean entropy of the first token of the first action, in nats.
        later_entropy: The same after an answer of the environment; None in episodes of one turn.
        turns: Mean turns of an episode.
        sampled: Success at the start, sampled; None where no episode could be scored.
        greedy: Success at the start, greedy.
        ceiling: Success of the scripted expert; None where there is none.
        seconds: Duration.
    """

    prompts: int
    paths: int
    siblings: tuple[DepthShare, ...]
    variance: float
    revisited_frac: float
    shared_frac: float
    first_entropy: float
    later_entropy: float | None
    turns: float
    sampled: Estimate | None
    greedy: Estimate | None
    ceiling: Estimate | None
    seconds: float


def probe(
    what: EvalSet,
    engine: Engine,
    renderer: Renderer,
    *,
    prompts: int = 40,
    trees: int = 4,
    sampling: Sampling,
) -> Probe:
    """Measure an environment with a policy.

    Args:
        what: The tasks that success is measured on, and the environment.
        engine: Samples actions.
        renderer: Of the model.
        prompts: Tasks of the training split on which trees are grown, all where it holds fewer.
        trees: Trees per prompt, whose first chains are independent.
        sampling: How actions are sampled.

    Raises:
        BadValueError: Fewer than two prompts, or fewer than three trees; no two training tasks.
    """
    check_numbers(prompts, trees)
    began = time.monotonic()
    runner = EpisodeRunner(what.env, engine, renderer, sampling, record_states=True)
    rule = Expand(trees=trees, nodes=NODES, rounds=1)
    base = text_env(what.env)
    size = get_split_size(base.source, "train", base.name)
    prompts = prompts if size is None else min(prompts, size)
    check_numbers(prompts, trees)
    starts = [Start("train", i, _SEED + i, f"probe/{i}") for i in range(prompts)]

    async def play() -> tuple[list[Group], Evaluation]:
        groups = await asyncio.gather(*(rule(runner, start) for start in starts))
        return list(groups), await evaluate_model(runner, what)

    groups, played = asyncio.run(play())
    first, later = entropies(groups)
    siblings, variance = sibling_shares(groups)
    revisited, shared = repeated_states(groups)
    lengths = first_lengths(groups)
    cold = played.greedy
    return Probe(
        prompts=prompts,
        paths=sum(len(tree.finals()) for tree in _trees(groups)),
        siblings=siblings,
        variance=variance,
        revisited_frac=revisited,
        shared_frac=shared,
        first_entropy=float(np.mean(first)) if first else 0.0,
        later_entropy=float(np.mean(later)) if later else None,
        turns=float(np.mean(lengths)) if lengths else 0.0,
        sampled=_success(played),
        greedy=None if cold is None else _success(cold),
        ceiling=_ceiling(what),
        seconds=time.monotonic() - began,
    )


def check_numbers(prompts: int, trees: int) -> None:
    """Refuse numbers of prompts and trees that nothing can be estimated from.

    Raises:
        BadValueError: Fewer than two prompts, or fewer than three trees.
    """
    if prompts < 2 or trees < 3:
        raise BadValueError(
            f"probe: prompts {prompts}, trees {trees}; expected at least 2 prompts (an interval) "
            "and 3 trees (a mean of others beside two that are compared)."
        )


def sibling_shares(groups: Sequence[Group]) -> tuple[tuple[DepthShare, ...], float]:
    """Estimate the share of the return's variance that shared turns explain, by their number.

    The first chains of a prompt's trees are independent. A pair is a tree's first chain and another
    path of it; the product of their distances from the mean of the other trees' first chains, less
    that mean's own variance, estimates their covariance without bias. At each depth the chains are
    those of more turns: where length and return hang together (a success ends an episode), the
    others have another mean and another variance. A chain forks as often at each of its turns, so
    pairs of longer ones are rarer at a depth, and weigh more.

    Returns:
        One per depth with at least 20 pairs, and with 5 prompts whose returns vary there, rising;
        and the variance within a prompt.
    """
    rows = [[_rows(tree) for tree in group.trees if tree.turns] for group in groups]
    prompts = [[paths for paths in trees if paths] for trees in rows]
    variances = [_variance(trees) for trees in prompts if len(trees) > 2]
    mean = float(np.mean(variances)) if variances else 0.0
    deepest = max((len(paths[0][0]) for trees in prompts for paths in trees), default=0)
    shares = (_depth_share(prompts, depth) for depth in range(1, deepest))
    return tuple(share for share in shares if share is not None), mean


def _depth_share(prompts: Sequence[Sequence[_Paths]], depth: int) -> DepthShare | None:
    """Return what the first turns explain; None where too little was seen."""
    by_prompt = []
    pairs = varying = 0
    for trees in prompts:
        longer = [paths for paths in trees if len(paths[0][0]) > depth]
        if len(longer) < 3:
            continue
        variance = _variance(longer)
        firsts = np.array([paths[0][1] for paths in longer])
        covariance = weights = 0.0
        for place, paths in enumerate(longer):
            rest = float(np.delete(firsts, place).mean())
            chain, value = paths[0]
            for other, gained in paths[1:]:
                if len(set(chain) & set(other)) != depth:
                    continue
                product = (value - rest) * (gained - rest) - variance / (len(firsts) - 1)
                covariance += len(chain) * product
                weights += len(chain)
                pairs += 1
        by_prompt.append((covariance, weights * variance))
        varying += weights * variance > NO_VARIANCE
    if pairs < MIN_PAIRS or varying < MIN_VARYING:
        return None
    return DepthShare(depth, _ratio(np.array(by_prompt)), pairs)


def _ratio(sums: npt.NDArray[np.float64]) -> Estimate:
    """Return covariance over variance, with an interval by linearisation over prompts.

    The estimate has no bound; the interval ends where correlations do, but contains the estimate.
    """
    above, below = sums.T
    share = float(above.sum() / below.sum())
    bent = (above - share * below) / below.mean()
    half = seed_interval(bent).high95 - float(bent.mean())
    low, high = max(share - half, -1.0), min(share + half, 1.0)
    return Estimate(mean=share, low95=min(low, share), high95=max(high, share))


def _variance(trees: Sequence[_Paths]) -> float:
    """Return the variance of the return, by the first chains of trees."""
    return float(np.var([paths[0][1] for paths in trees], ddof=1))


def repeated_states(groups: Sequence[Group]) -> tuple[float, float]:
    """Return the shares of turns in a state that came before in the episode, or in another tree.

    Returns:
        Both as shares of all turns; 0 without a turn.
    """
    again = shared = total = 0
    for group in groups:
        seen = [{turn.state for turn in tree.turns} for tree in group.trees]
        for number, tree in enumerate(group.trees):
            others = set[str]().union(*(s for i, s in enumerate(seen) if i != number))
            shared += sum(turn.state in others for turn in tree.turns)
            again += _came_again(tree)
            total += len(tree.turns)
    return (again / total, shared / total) if total else (0.0, 0.0)


def _came_again(tree: Tree) -> int:
    """Count the turns whose state an earlier turn of their episode was taken in."""
    count = 0
    for at, turn in enumerate(tree.turns):
        before = tree.episode(at)[:-1]
        count += any(tree.turns[i].state == turn.state for i in before)
    return count


def entropies(groups: Iterable[Group]) -> tuple[list[float], list[float]]:
    """Return the entropies in nats of first tokens: of first actions, and of later ones."""
    first: list[float] = []
    later: list[float] = []
    for tree in _trees(groups):
        for at, turn in enumerate(tree.turns):
            begins = len(tree.episode(at)) == 1
            (first if begins else later).append(float(turn.entropies[0]))
    return first, later


def first_lengths(groups: Iterable[Group]) -> list[int]:
    """Return the turns of the episodes that were played first in each tree."""
    return [len(tree.episode(min(tree.finals()))) for tree in _trees(groups)]


def _trees(groups: Iterable[Group]) -> list[Tree]:
    return [tree for group in groups for tree in group.trees if tree.turns]


def _rows(tree: Tree) -> _Paths:
    """Return a tree's episodes with their returns, its first chain first; none where that broke."""
    finals = sorted(tree.finals())
    if tree.turns[finals[0]].status == "env_error":
        return []
    whole = [last for last in finals if tree.turns[last].status != "env_error"]
    lines = [tree.episode(last) for last in whole]
    return [(line, sum(tree.turns[i].reward for i in line)) for line in lines]


def _success(played: Evaluation) -> Estimate | None:
    return played.success if played.scored else None


def _ceiling(what: EvalSet) -> Estimate | None:
    env: Any = text_env(what.env)
    if env.find_expert() is None:
        return None
    return _success(evaluate_policy(what, lambda seed: scripted("expert", seed, env)))
