"""EMPG: turns that the policy was sure of are rewarded and punished more."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import EmpgCredit, GroupCredit
from ..losses import Clip, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe(
    "advantages scaled by each turn's entropy, a bonus for clear next turns", small=SMALL_CHAINS
)
def empg() -> Recipe:
    """Entropy-Modulated Policy Gradients (EMPG, arXiv 2509.09265), as ARL-Arena has it.

    GRPO's advantage of a path, turn by turn times ``exp(-h)`` over its mean, h being the turn's
    mean token entropy scaled to [0, 1] over the batch, plus 0.05 ``exp(-h)`` of the next turn, less
    the mean over all turns (k = k' = 1, zeta 0.05).

    Differs from the paper:
        - entropies are of the whole distribution as sampled, of action tokens alone;
        - group size, batch, mini batches, clip and learning rate are Search-R1's; no KL.

    Degenerate cases: a group of one path is refused. A group of equal returns still has the bonus
    and the mean that is taken off, so it is not without gradient; with ``credit.bonus=0`` and equal
    entropies this is GRPO less the batch's mean advantage.
    """
    return Recipe(
        name="empg",
        paper="EMPG, arXiv 2509.09265; ARL-Arena, arXiv 2602.21534",
        rollout=Chains(n=5),
        credit=EmpgCredit(of=GroupCredit(), sharpness=1.0, bonus_sharpness=1.0, bonus=0.05),
        loss=PolicyLoss(ratio="token", clip=Clip(low=0.2, high=0.2), aggregate=TokenMean()),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
