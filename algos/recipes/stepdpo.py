"""Step-level DPO on the forks of a tree."""

from __future__ import annotations

from ..core.annotators import RefLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import StepPairs
from ..losses import StepDpoLoss
from ..rollouts import Expand
from .registry import SMALL_STEP, recipe


@recipe(
    "better against worse step at every fork of a tree", small={**SMALL_STEP, "groups_per_step": 32}
)
def stepdpo() -> Recipe:
    """DPO (arXiv 2305.18290) between the steps of a fork (Step-DPO, arXiv 2406.18629).

    The baseline that Tree-GRPO sets its intra-tree advantage against (arXiv 2509.21240, section
    3.4): the same trees, and at each fork the better side raised against the worse with beta 0.1.

    Differs from the paper:
        - the pairs are the model's own and fresh in every batch (online), a side's worth is the
          mean return of the paths through it;
        - one pair per fork, best against worst.

    Degenerate cases: a batch without a fork of unequal sides changes nothing but by momentum.
    """
    return Recipe(
        name="stepdpo",
        paper="Step-DPO, arXiv 2406.18629; trees of Tree-GRPO, arXiv 2509.21240",
        rollout=Expand(trees=2, nodes=2, rounds=1),
        credit=StepPairs(),
        loss=StepDpoLoss(beta=0.1),
        annotators=(RefLogprobs(),),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=512,
    )
