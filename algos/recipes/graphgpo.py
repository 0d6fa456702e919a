"""GraphGPO: actions by the length of the shortest way to success that the group has found."""

from __future__ import annotations

from dataclasses import replace

from ..core.recipe import Recipe
from ..credit import GoalDistances, StateCredit
from .gigpo import gigpo
from .registry import SMALL_CHAINS, recipe


@recipe("shortest ways to success in the group's graph of states", small=SMALL_CHAINS)
def graphgpo() -> Recipe:
    """GraphGPO (arXiv 2605.26684), settings of its code for ALFWorld.

    The transitions of all paths of a group make a graph, with an edge from the end of each success
    to a common node. An action earns ``10 * 0.1 ** d``, d being the number of edges to that node
    from where it led; this is z-scored among actions of the same state and added to the path's
    z-score. All else as in :func:`~turngym.algos.recipes.gigpo`.

    Differs from the paper:
        - as :func:`~turngym.algos.recipes.gigpo`: states by the environment's identity, the group's
          mean over paths, a row is a whole path;
        - refused where the environment draws what an action brings, and where an action is seen to
          lead from one state to two: the length of a way then means nothing.

    Degenerate cases: without a success in the group all distances are 1, so they add 0 (but for
    what unreadable actions cost) and partial rewards alone are compared; where all succeed it still
    prefers the shorter way; a state with one known successor adds 0, so unique states make it GRPO.
    It credits the best way that anybody found, not what the policy makes of it, so its mean
    gradient is not the return's.
    """
    return replace(
        gigpo(),
        name="graphgpo",
        paper="GraphGPO, arXiv 2605.26684",
        credit=StateCredit(
            term=GoalDistances(gamma=0.1, reward=10.0),
            invalid_penalty=0.1,  # a hundredth of the success's reward, as in GiGPO
        ),
    )
