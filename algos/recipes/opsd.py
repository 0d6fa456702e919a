"""OPSD: the policy learns from itself with an expert's demonstration in the context."""

from __future__ import annotations

from ..core.annotators import OldLogprobs
from ..core.privileged import ContextLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import NoCredit
from ..losses import RefKlLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_DISTILL, SMALL_HINTS, recipe


@recipe(
    "its own log-probabilities behind an expert's demonstration",
    small={**SMALL_DISTILL, **SMALL_HINTS},
)
def opsd() -> Recipe:
    """On-policy self-distillation (SDFT, arXiv 2601.19897), in prime-rl's form.

    The teacher is the policy itself, at the same weights and without gradient, whose context begins
    with what the environment's expert would do from here; it scores the tokens that the policy
    sampled without it. Each token is pushed by the difference under the current policy. Rewards
    play no part, so it learns where nothing succeeds, if the policy can follow a demonstration.

    Differs from the paper:
        - the demonstration goes on from the policy's own state, turn by turn, in a fork of the
          environment; the paper has one per task;
        - it holds the expert's actions, at most 8, not what was observed between them;
        - the divergence is that of the sampled token; one optimiser step per batch, so that the
          teacher has the policy's weights; batch and learning rate are Search-R1's.

    With its live weights the teacher drifts with what it teaches: a small model moves towards the
    demonstrations and then both collapse to one another, since equal is the loss's minimum.
    ``annotators.context_logprobs.weights=start`` holds the teacher at the starting policy.

    Degenerate cases: an environment without an expert is refused; a turn without room for a
    demonstration teaches nothing; a policy that cannot read one learns noise. With
    ``annotators.context_logprobs.mistakes=1`` all demonstrations are wrong, which is the control.
    """
    return Recipe(
        name="opsd",
        paper="SDFT, arXiv 2601.19897",
        rollout=Chains(n=1),
        credit=NoCredit(),
        loss=RefKlLoss(target="context_logprobs", drop=0.2, tie=1e-3, aggregate=TokenMean()),
        annotators=(OldLogprobs(source="sampled"), ContextLogprobs(actions=8)),
        optim=Optim(lr=1e-6),
        groups_per_step=512,
    )
