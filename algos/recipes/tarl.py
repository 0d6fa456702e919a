"""TARL: turn-level verdicts of a judge besides the outcome, in three modes."""

from __future__ import annotations

from dataclasses import replace

from ..core.annotators import RefLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit, TurnReturns
from ..losses import Clip, Kl, PolicyLoss, TokenMean
from ..rewards.judges import RuleJudge
from ..rewards.shaping import VerdictRewards
from ..rollouts import Chains
from .ppo import SMALL_PPO, ppo
from .registry import SMALL_CHAINS, recipe
from .settings import with_settings

_PAPER = "TARL, arXiv 2509.14480; settings of Search-R1, arXiv 2503.09516"


@recipe("turns judged by rules or a model, with the outcome", small=SMALL_CHAINS)
def tarl() -> Recipe:
    """Process-Supervised RL for Interactive Multimodal Tool-Use Agents (arXiv 2509.14480).

    A judge gives each turn +1, 0 or, once, -1 (section 3). Success counts 10, the share of +1 turns
    up to 5, a -1 costs 5; the sum is one reward per trajectory, which the paper found best, and
    GRPO compares it within the prompt. With PPO: :func:`tarl_ppo`, also turn by turn; turn by turn
    without a critic: :func:`tarl_turns`.

    Differs from the paper:
        - the judge is the environment's own rules; an
        :class:`~turngym.algos.rewards.judges.LlmJudge` takes its
          place in ``shapers``;
        - a +1 is worth 5 / turns; 1 / turns is the other reading of the paper's scale
          (``shapers.verdict_rewards.turn_budget=1``);
        - group size, learning rate, clip and KL are GRPO's of Search-R1: the paper's are not known;
        - mixing in maths tasks is a choice of environments (``MixedTasks-v0``), not of the
          algorithm.

    Degenerate cases: where the environment never judges, S is ten times the outcome, which is GRPO.
    Where groups hold no success their verdicts alone are compared, and divided by the deviation
    they count as much as successes: in Retail's micro shop, where that is most groups,
    ``credit.scale=none`` was better (``benchmarks/RESULTS.md``).
    """
    return Recipe(
        name="tarl",
        paper=_PAPER,
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


@recipe("TARL turn by turn: returns of turns compared, no critic", small=SMALL_CHAINS)
def tarl_turns() -> Recipe:
    """TARL (arXiv 2509.14480) turn by turn without a critic.

    Each turn is rewarded at its end, 10 times the outcome at the last, and what a turn returns from
    there on is compared with all turns of its prompt (``credit.over=index``: with the turns of the
    same number). The paper found one reward per trajectory, :func:`~turngym.algos.recipes.tarl`,
    to train more stably.

    Differs from the paper:
        - as :func:`~turngym.algos.recipes.tarl`;
        - how turn returns are normalised is not stated there.

    Degenerate cases: episodes of one turn make it :func:`~turngym.algos.recipes.tarl`.
    """
    return replace(
        tarl(),
        name="tarlturns",
        credit=TurnReturns(over="turns"),
        shapers=(RuleJudge(), VerdictRewards(at="turns", outcome_weight=10.0)),
    )


@recipe(
    "TARL with PPO: critic and GAE, the reward at the end or at the turns",
    small=SMALL_PPO,
)
def tarl_ppo() -> Recipe:
    """TARL (arXiv 2509.14480) with PPO: its trajectory reward on the last token, a critic, GAE.

    ``shapers.verdict_rewards.at=turns`` puts each turn's reward at the turn's end and 10 times the
    outcome at the last instead; GAE hands them back over action tokens alone, so that what follows
    a turn is the next turn's first token (gamma 1 unless ``credit.gamma`` says otherwise).

    Differs from the paper:
        - as :func:`~turngym.algos.recipes.tarl`, the settings being PPO's of Search-R1;
        - the value clip is 5, ten times Search-R1's, since rewards are ten times as large.

    Degenerate cases: where the environment never judges it is PPO on ten times the outcome.
    """
    scaled = with_settings(ppo(), {"loss.value.clip": 5.0})
    return replace(scaled, name="tarlppo", paper=_PAPER, shapers=tarl().shapers)
