"""HGPO: comparisons among turns that share their last states, the longer the heavier."""

from __future__ import annotations

from dataclasses import replace

from ..core.recipe import Recipe
from ..credit import StateCredit, WindowReturns
from .gigpo import gigpo
from .registry import SMALL_CHAINS, recipe


@recipe("returns among turns that share their last one, two, .. states", small=SMALL_CHAINS)
def hgpo() -> Recipe:
    """HGPO (arXiv 2602.22817), settings of its ALFWorld script.

    Discounted rewards to go (0.95) are z-scored, by the population's deviation, among turns of the
    group whose last 1, 2 and 3 states are equal; the scores are averaged with weights 2 : 3 : 4.
    There is no term of the whole path by default. All else as in
    :func:`~turngym.algos.recipes.gigpo`.

    Differs from the paper:
        - as :func:`~turngym.algos.recipes.gigpo`: states by the environment's identity, where the
          code compares observations; a row is a whole path;
        - the paper counts contexts from 0 and the code windows from 1; the weights are the code's,
          ``credit.term.offset=0`` makes them 1 : 2 : 3.

    Degenerate cases: where no state comes twice nothing is learned (``credit.term.base=true`` or
    ``credit.episode_weight=1`` puts the path's z-score in); a comparison that is exactly 0 is left
    out of the mean, not averaged in; ``credit.term.context=0`` is GiGPO's term with the
    population's deviation.
    """
    return replace(
        gigpo(),
        name="hgpo",
        paper="HGPO, arXiv 2602.22817",
        credit=StateCredit(
            term=WindowReturns(context=2, alpha=1.0, offset=1, gamma=0.95),
            episode_weight=0.0,
            invalid_penalty=0.01,
        ),
    )
