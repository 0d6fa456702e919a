"""TIGPO: GraphGPO on a graph that a task keeps, with tasks that come back to it."""

from __future__ import annotations

from dataclasses import replace

from ..core.recipe import Recipe
from ..credit import KeptGraphCredit
from ..rollouts.kept_graphs import KeptGraphs
from .graphgpo import graphgpo
from .registry import SMALL_CHAINS, recipe


@recipe("shortest ways to success in a graph that each task keeps", small=SMALL_CHAINS)
def tigpo() -> Recipe:
    """TIGPO (arXiv 2609.03383).

    As :func:`~turngym.algos.recipes.graphgpo`, but a task's graph is kept across steps; every
    second group plays a task again that was new ten steps before, and its returns are z-scored
    among its own and those of the task's group before.

    Differs from the paper:
        - as :func:`~turngym.algos.recipes.graphgpo`; written from a description, no code is known;
        - a step begins with new tasks alone until the first of them come back.

    Degenerate cases: a task that is new has GraphGPO's credit; a group that always fails learns
    from the ways that an earlier one found; an environment that draws what an action brings is
    refused.
    """
    return replace(
        graphgpo(),
        name="tigpo",
        paper="TIGPO, arXiv 2609.03383",
        credit=KeptGraphCredit(gamma=0.1, reward=10.0, invalid_penalty=0.1),
        tracker=KeptGraphs(wait=10),
    )
