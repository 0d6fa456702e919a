"""ARPO: branch where a tool's answer made the model uncertain."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit, SharedMean
from ..losses import Clip, PolicyLoss, TokenMean
from ..rewards.shaping import MultiToolBonus
from ..rollouts import Branch
from .registry import SMALL_STEP, recipe


@recipe(
    "branches where tools made the model uncertain",
    small={**SMALL_STEP, "groups_per_step": 16, "rollout.initial": 4, "rollout.budget": 8},
)
def arpo() -> Recipe:
    """Agentic Reinforced Policy Optimization (arXiv 2507.19849).

    8 chains grow to 16 by branching after tool answers with probability 0.5 + 0.2 times the rise of
    the entropy over 20 tokens (section 3.1; beam 2). The soft advantage: GRPO's over all paths,
    shared tokens in each of them (3.2); ``credit.shared=mean`` is the hard one. A bonus of 0.1 for
    success with both search and python (3.3). Clip 0.2, dual clip 3, no KL, 8 optimiser steps for
    128 prompts, learning rate 1e-6 (scripts).

    Differs from the paper:
        - the probe's full entropy in units of ln(vocabulary), where the paper divides by the
          vocabulary's size and the code sums the ten likeliest (``rollout.reference_compat``);
        - the probability is drawn (the code); ``rollout.threshold`` is the paper's fixed rule;
        - H_initial is each chain's own and starts anew with every batch;
        - the format term of -1 is the environment's business (or a
          :class:`~turngym.algos.rewards.shaping.FormatGate` before the bonus).

    Degenerate cases: ``rollout.budget=rollout.initial`` never branches, which is GRPO.
    """
    return Recipe(
        name="arpo",
        paper="ARPO, arXiv 2507.19849",
        rollout=Branch(initial=8, budget=16, beam=2, alpha=0.5, beta=0.2, probe_tokens=20),
        credit=SharedMean(of=GroupCredit(), shared="own"),
        loss=PolicyLoss(
            ratio="token", clip=Clip(low=0.2, high=0.2, dual=3.0), aggregate=TokenMean()
        ),
        shapers=(MultiToolBonus(bonus=0.1, tools=("search", "python")),),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=128,
    )
