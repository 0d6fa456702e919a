"""OPD: on-policy distillation from a teacher model."""

from __future__ import annotations

from ..core.annotators import OldLogprobs
from ..core.privileged import TeacherLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import NoCredit
from ..losses import RefKlLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_DISTILL, recipe


@recipe("a teacher's log-probabilities on the policy's own samples", small=SMALL_DISTILL)
def opd() -> Recipe:
    """On-policy distillation (GKD, arXiv 2306.13649, with reverse KL), in prime-rl's form.

    The policy plays, a teacher scores the sampled tokens, and each token is pushed by
    ``log teacher - log policy`` under the current policy. Tokens that have lost more than 0.2 of
    their probability since they were sampled are dropped, all are tied to the policy that sampled
    by 0.001. Rewards play no part. Name the teacher:
    ``--recipe.annotators.teacher_logprobs.model FOLDER``.

    Differs from the paper:
        - the divergence is that of the sampled token, not of the whole distribution;
        - one optimiser step per batch; batch and learning rate are Search-R1's.

    Degenerate cases: without a teacher, or one with another tokenizer, it is refused; a teacher
    that is the policy gives 0; what a token does to later states is not learned.
    """
    return Recipe(
        name="opd",
        paper="on-policy distillation, arXiv 2306.13649",
        rollout=Chains(n=1),
        credit=NoCredit(),
        loss=RefKlLoss(target="teacher_logprobs", drop=0.2, tie=1e-3, aggregate=TokenMean()),
        annotators=(OldLogprobs(source="sampled"), TeacherLogprobs()),
        optim=Optim(lr=1e-6),
        groups_per_step=512,
    )
