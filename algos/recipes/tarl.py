"""TARL: a judge's view of every turn beside the outcome."""

from __future__ import annotations

from ..annotate import RefLogprobs
from ..credit import GroupCredit
from ..judges import RuleJudge
from ..losses import Clip, Kl, PolicyLoss, TokenMean
from ..recipe import Optim, Recipe
from ..rollouts import Chains
from ..shapers import VerdictRewards


def tarl() -> Recipe:
    """Process-Supervised RL for Interactive Multimodal Tool-Use Agents (arXiv 2509.14480).

    A judge gives each turn +1, 0 or, once, -1 (section 3). Success counts 10, the share of +1 turns
    up to 5, a -1 costs 5; the sum is one reward per trajectory, which the paper found best, and
    GRPO compares it within the prompt.

    Differs from the paper:
        - the judge is the world's own rules; an :class:`~turngym.algos.judges.LlmJudge` takes its
          place in ``shapers``;
        - a +1 is worth 5 / turns; 1 / turns is the other reading of the paper's scale
          (``shapers.verdict_rewards.turn_budget=1``);
        - group size, learning rate, clip and KL are GRPO's of Search-R1: the paper's are not known;
        - mixing in maths tasks is a choice of environments, not of the algorithm.

    Degenerate cases: where the world never judges, S is ten times the outcome, which is GRPO.
    """
    return Recipe(
        name="tarl",
        paper="TARL, arXiv 2509.14480; settings of Search-R1, arXiv 2503.09516",
        rollout=Chains(n=5),
        credit=GroupCredit(baseline="mean", scale="std"),
        loss=PolicyLoss(
            ratio="token",
            clip=Clip(low=0.2, high=0.2),
            aggregate=TokenMean(),
            kl=Kl(coef=0.001, kind="k3"),
        ),
        annotators=(RefLogprobs(),),
        shapers=(RuleJudge(), VerdictRewards(at="trajectory", outcome_weight=10.0)),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
