"""SFT: imitate the environment's expert."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import Imitation
from ..losses import ImitationLoss, TokenMean
from ..rollouts import Demonstrations
from .registry import recipe


@recipe(
    "imitation of the environment's expert",
    small={"optim.lr": 3e-4, "optim.minibatches": 4, "optim.warmup_steps": 10},
)
def sft() -> Recipe:
    """Supervised fine-tuning on demonstrations, as PaSa starts its agents (arXiv 2501.10120, 4.2).

    The negative log-likelihood of the expert's action tokens, given all that came before them;
    learning rate 1e-5, weight decay 0.01, batches of 32 (8 devices of 4; table 12).

    Differs from the paper:
        - the demonstrations are the environment's scripted expert's, fresh at every step, instead
          of a language model's;
        - the warm-up of 0.01 is counted over a thousand steps.

    Degenerate cases: an environment without an expert is refused.
    """
    return Recipe(
        name="sft",
        paper="supervised fine-tuning; settings of PaSa, arXiv 2501.10120",
        rollout=Demonstrations(n=1),
        credit=Imitation(),
        loss=ImitationLoss(aggregate=TokenMean()),
        optim=Optim(lr=1e-5, warmup_steps=10),
        groups_per_step=32,
    )
