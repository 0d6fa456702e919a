"""REINFORCE++: returns to go, normalised over the whole batch."""

from __future__ import annotations

from ..core.annotators import OldLogprobs, RefLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import ReturnsToGo
from ..losses import Clip, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_SINGLE, recipe


@recipe("returns to go, whitened over the batch", small=SMALL_SINGLE)
def reinforcepp() -> Recipe:
    """REINFORCE++ (arXiv 2501.03262).

    Token rewards are the outcome on the last token less 0.01 * k1 (section 3.1); their sums to go
    with gamma 1 are whitened over all tokens of the global batch (3.2) instead of a group, and
    PPO's clip does the rest. ``credit.baseline=group-mean`` with ``rollout.n`` above 1 is its
    baseline variant.

    Differs from the paper:
        - the sum runs over action tokens only and passes observations by (the released code
          multiplies the running return by the mask and loses what came before an observation);
        - batch and learning rate are Search-R1's.

    Degenerate cases: a batch in which all tokens return the same whitens to 0. Where the outcomes
    are equal and the policy has left its reference, the penalty alone is whitened, to the size of
    any other batch.
    """
    return Recipe(
        name="reinforcepp",
        paper="REINFORCE++, arXiv 2501.03262",
        rollout=Chains(n=1),
        credit=ReturnsToGo(gamma=1.0, kl_coef=0.01),
        loss=PolicyLoss(ratio="token", clip=Clip(low=0.2, high=0.2), aggregate=TokenMean()),
        annotators=(OldLogprobs(), RefLogprobs()),
        optim=Optim(lr=1e-6, minibatches=2),
        groups_per_step=512,
    )
