"""What matters in an environment for the choice of an algorithm, measured in seconds.

A tree, or a branch, helps where what lies before the fork explains much of the return: then paths
that share it are fair rivals. So trees are grown with the starting policy, and the share of the
return's variance within a prompt that a shared prefix explains is estimated by its depth.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...agents.engines.base import Engine, Sampling
from ...agents.rendering.factory import Renderer
from ...agents.scripted import scripted, text_env
from ...algos.core.forest import Group, Tree
from ...algos.core.protocols import Start
from ...algos.evaluation.evaluate import EvalSet, Evaluation, evaluate_model, evaluate_policy
from ...algos.rollouts import EpisodeRunner, Expand
from ...envs.core.errors import BadValueError
from ...envs.utils.seed_tests import seed_interval
from ...envs.utils.statistics import Estimate

NODES = 4
"""Endings added to every tree."""
MIN_PAIRS = 20
"""Fewest pairs of paths for which a depth is shown."""
NO_VARIANCE = 1e-12
_SEED = 5_000


@dataclass(frozen=True)
class DepthShare:
    """The share of the return's variance that the first ``depth`` turns explain.

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
        paths: Their paths.
        siblings: By depth; empty where returns do not vary within a prompt.
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
        prompts: Tasks of the training split on which trees are grown.
        trees: Trees per prompt, whose first chains are independent.
        sampling: How actions are sampled.

    Raises:
        BadValueError: Fewer than two prompts, or fewer than three trees.
    """
    if prompts < 2 or trees < 3:
        raise BadValueError(
            f"probe: prompts {prompts}, trees {trees}; expected at least 2 prompts (an interval) "
            "and 3 trees (a mean of others beside two that are compared)."
        )
    began = time.monotonic()
    runner = EpisodeRunner(what.env, engine, renderer, sampling, record_states=True)
    rule = Expand(trees=trees, nodes=NODES, rounds=1)
    size = text_env(what.env).source.sizes()["train"]
    starts = [
        Start("train", i if size is None else i % size, _SEED + i, f"probe/{i}")
        for i in range(prompts)
    ]

    async def play() -> tuple[list[Group], Evaluation]:
        groups = await asyncio.gather(*(rule(runner, start) for start in starts))
        return list(groups), await evaluate_model(runner, what)

    groups, played = asyncio.run(play())
    first, later = entropies(groups)
    siblings, variance = sibling_shares(groups)
    revisited, shared = repeated_states(groups)
    lengths = [len(tree.chain(leaf)) for tree in _trees(groups) for leaf in tree.leaves()[:1]]
    cold = played.greedy
    return Probe(
        prompts=prompts,
        paths=sum(len(tree.leaves()) for tree in _trees(groups)),
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


def sibling_shares(groups: Sequence[Group]) -> tuple[tuple[DepthShare, ...], float]:
    """Estimate the share of the return's variance that shared turns explain, by their number.

    The first chains of a prompt's trees are independent. A pair is a tree's first chain and another
    path of it; the product of their distances from the mean of the other trees' first chains, less
    that mean's own variance, estimates their covariance without bias.

    Returns:
        One per depth with at least 20 pairs in two prompts, rising, and the variance within a
        prompt.
    """
    products: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    variances = []
    for group in groups:
        rows = [_rows(tree) for tree in group.trees if tree.turns]
        rows = [paths for paths in rows if paths]
        if len(rows) < 3:
            continue
        firsts = np.array([paths[0][1] for paths in rows])
        variance = float(firsts.var(ddof=1))
        for place, paths in enumerate(rows):
            rest = float(np.delete(firsts, place).mean())
            chain, value = paths[0]
            for other, gained in paths[1:]:
                depth = len(set(chain) & set(other))
                product = (value - rest) * (gained - rest) - variance / (len(firsts) - 1)
                products[depth][len(variances)].append(product)
        variances.append(variance)
    mean = float(np.mean(variances)) if variances else 0.0
    if mean <= NO_VARIANCE:
        return (), mean
    found = []
    for depth, by_prompt in sorted(products.items()):
        pairs = sum(map(len, by_prompt.values()))
        if depth and pairs >= MIN_PAIRS and len(by_prompt) >= 2:
            found.append(DepthShare(depth, _ratio(by_prompt, variances), pairs))
    return tuple(found), mean


def _ratio(by_prompt: Mapping[int, Sequence[float]], variances: Sequence[float]) -> Estimate:
    """Return covariance over variance, with an interval by linearisation over prompts."""
    sums = np.array([sum(p) for p in by_prompt.values()])
    counts = np.array([len(p) for p in by_prompt.values()], dtype=np.float64)
    mean = float(np.mean(variances))
    share = float(sums.sum() / counts.sum() / mean)
    spread = np.array([variances[i] for i in by_prompt])
    bent = (sums - counts * share * spread) / counts.mean() / mean
    half = seed_interval(list(bent)).high95 - float(bent.mean())
    return Estimate(mean=share, low95=share - half, high95=share + half)


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


def _trees(groups: Iterable[Group]) -> list[Tree]:
    return [tree for group in groups for tree in group.trees if tree.turns]


def _rows(tree: Tree) -> list[tuple[tuple[int, ...], float]]:
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
