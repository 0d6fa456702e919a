"""G2PO: actions by the values of the states that they led to, as the group has found them."""

from __future__ import annotations

from dataclasses import replace

from ..core.recipe import Recipe
from ..credit import StateCredit, StateValues
from .gigpo import gigpo
from .registry import SMALL_CHAINS, recipe


@recipe("values of states from the group's visits; siblings and differences", small=SMALL_CHAINS)
def g2po() -> Recipe:
    """G2PO (arXiv 2606.22995), settings of its code for ALFWorld.

    The value of a state is the mean discounted outcome (0.95) of its visits in the group. To the
    path's z-score come that of the next state's value among actions of the same state, and that of
    ``V(next) - V(state)`` among all turns of the group. All else as in
    :func:`~turngym.algos.recipes.gigpo`.

    Differs from the paper:
        - as :func:`~turngym.algos.recipes.gigpo`: states by the environment's identity, the group's
          mean over paths, a row is a whole path;
        - an end is worth the reward it brought, and rewards on the way count where they fall; the
          code knows success (10) and 0, although partial rewards enter its values;
        - the comparison of siblings is the code's; the abstract tells of the differences alone
          (``credit.term.terms=differences``).

    Degenerate cases: a group of one turn, or of differences that are all equal, adds 0 (the code
    divides by a deviation of one number); where no state comes twice the differences remain, which
    rise along a success by the discount alone; a group of returns of 0 gets exactly 0 (but for what
    unreadable actions cost), and where all succeed the discount prefers the shorter way.
    """
    return replace(
        gigpo(),
        name="g2po",
        paper="G2PO, arXiv 2606.22995",
        credit=StateCredit(term=StateValues(gamma=0.95), invalid_penalty=0.01),
    )
