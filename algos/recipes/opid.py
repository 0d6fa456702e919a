"""OPID: GRPO plus what a demonstration in the context shifts, token by token."""

from __future__ import annotations

from ..core.annotators import OldLogprobs
from ..core.privileged import ContextLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit, HintedCredit
from ..losses import Clip, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, SMALL_HINTS, recipe


@recipe(
    "GRPO plus the shift that a demonstration makes to each token",
    small={**SMALL_CHAINS, **SMALL_HINTS},
)
def opid() -> Recipe:
    """The token term of OPID (arXiv 2606.26790) beside GRPO's advantage.

    ``A + w (log pi(token | demonstration) - log pi(token))``, both under the policy that sampled.

    Differs from the paper:
        - the skill in the prompt is the environment's expert going on from the turn's own state;
          the paper has a language model write one skill per episode and up to five per step;
        - w is 0.1; the scripts' 0.001 makes the term a thousandth of the credit where both are
          about 1 (the classes' default is 1): sweep ``credit.weight``;
        - group size, batch, mini batches, clip and learning rate are Search-R1's; no KL.

    Degenerate cases: an environment without an expert is refused. A group of equal returns has the
    shift alone; with ``credit.weight=0`` this is GRPO without KL and entropy bonus.
    """
    return Recipe(
        name="opid",
        paper="OPID, arXiv 2606.26790",
        rollout=Chains(n=5),
        credit=HintedCredit(of=GroupCredit(), weight=0.1, clip=None),
        loss=PolicyLoss(ratio="token", clip=Clip(low=0.2, high=0.2), aggregate=TokenMean()),
        annotators=(OldLogprobs(), ContextLogprobs(actions=8)),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
