"""DPPO: tokens are dropped by how far their probability moved, not by their ratio."""

from __future__ import annotations

from ..core.annotators import OldLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import DppoLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe("a mask by the change of probability instead of a clip", small=SMALL_CHAINS)
def dppo() -> Recipe:
    """Rethinking the Trust Region (DPPO, arXiv 2602.04879), in prime-rl's form.

    GRPO's advantages. A token is dropped where its probability has risen by more than 0.2 above
    what the engine sampled it with and its advantage is positive, or fallen by as much where it is
    negative. All tokens, dropped or not, are tied to the policy that sampled by 0.001 times their
    squared log ratio. Mean over all tokens.

    Differs from the paper:
        - of the forms in use this is prime-rl's; ``loss.measure=binary-kl`` bounds the divergence
          instead (SkyRL), then choose ``loss.bound`` anew: a change of .2 is .02 to .13 nats;
        - group size, batch, mini batches and learning rate are Search-R1's.

    Degenerate cases: a group of one path is refused; a group of equal returns gets exactly 0 but
    for the tie. With one optimiser step per batch and an engine of the learner's precision this is
    GRPO without KL and entropy bonus. Importance weights are refused: the engine's
    log-probabilities are the base of the ratio already.
    """
    return Recipe(
        name="dppo",
        paper="DPPO, arXiv 2602.04879",
        rollout=Chains(n=5),
        credit=GroupCredit(baseline="mean", scale="std"),
        loss=DppoLoss(bound=0.2, measure="probability", tie=1e-3, aggregate=TokenMean()),
        annotators=(OldLogprobs(source="sampled"),),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
