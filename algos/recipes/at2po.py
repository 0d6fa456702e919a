"""AT2PO: a tree grown where the policy is unsure, and the values of its nodes as credit."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import NodeValueCredit
from ..losses import Clip, PathMeanTokenMean, PolicyLoss
from ..rollouts import EntropyExpand
from .registry import SMALL_STEP, recipe


@recipe(
    "a tree that grows where the policy is unsure, values of its nodes as credit",
    small={**SMALL_STEP, "groups_per_step": 16, "rollout.initial": 4, "rollout.nodes": 2},
)
def at2po() -> Recipe:
    """AT2PO, turn-based policy optimisation by tree search (arXiv 2601.04767).

    Ten chains, then two rounds of one new ending from each of the six turns with the highest mean
    ``-log p``, less 0.05 for every branch beside it: 22 endings. Their returns are z-scored within
    the tree; a turn's credit is the mean of its continuations' values, weighted by the softmax of
    their ``-log p``. Ratios of turns, clipped at 3e-3 and 4e-3; no KL.

    Differs from the paper:
        - the penalty is subtracted, as in the released code, where another form is commented out;
        - the softmax gives the root a value, so the credit has a bias, as released;
          ``credit.relative=root`` takes it off;
        - turns are what the runner recorded, not runs of the action mask;
        - batch, mini batches and learning rate are ARPO's.

    Degenerate cases: episodes of one turn make this chains compared with each other; a tree of
    equal returns learns nothing; a rollout whose trees never fork is refused.
    """
    return Recipe(
        name="at2po",
        paper="AT2PO, arXiv 2601.04767",
        rollout=EntropyExpand(initial=10, nodes=6, rounds=2, penalty=0.05),
        credit=NodeValueCredit(mean="softmax", relative="value"),
        loss=PolicyLoss(
            ratio="turn", clip=Clip(low=3e-3, high=4e-3), aggregate=PathMeanTokenMean()
        ),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=128,
    )
