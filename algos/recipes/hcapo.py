"""HCAPO: the policy itself says, told the end, which actions made it likely."""

from __future__ import annotations

from dataclasses import replace

from ..core.annotators import RefLogprobs
from ..core.hindsight import HindsightLogprobs
from ..core.recipe import Recipe
from ..credit import HindsightCredit
from .gigpo import gigpo
from .registry import SMALL_CHAINS, recipe


@recipe("actions weighed by how likely the episode's end makes them", small=SMALL_CHAINS)
def hcapo() -> Recipe:
    """HCAPO (arXiv 2603.08754) in its simplest form; 8 paths for each of 16 tasks.

    Each action is scored once more with the end of its episode in front of the prompt. Its mean
    log-probability over 5, against the path's mean, is a ratio (0.8 to 1.2) on the discounted
    return (0.95); that is z-scored over all actions of the group and added to the path's z-score.
    In successes what falls below 0 counts as 0. The rest is :func:`~turngym.algos.recipes.gigpo`'s.

    Differs from the paper:
        - the end is the last observation and the last action, put before the first prompt, without
          words around them: an untrained reader of hints would not know such words;
        - statistics are the whole group's, as in its algorithm; its text says per time step;
        - a success is a return above 0; no averaging of neighbours (``credit.smooth=true``).

    Degenerate cases: ``credit.clip=1,1`` leaves "later actions of successes are better", the
    ablation that this should be run against; a group of returns of 0, or one whose returns are
    equal and actions alone, gets exactly 0; an episode that just fits the context is scored beyond
    it, by as much as its end is long.
    """
    return replace(
        gigpo(),
        name="hcapo",
        paper="HCAPO, arXiv 2603.08754",
        credit=HindsightCredit(gamma=0.95, weight=1.0, temperature=5.0, clip=(0.8, 1.2)),
        annotators=(RefLogprobs(), HindsightLogprobs()),
    )
