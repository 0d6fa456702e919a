"""Options of planners in `turngym eval`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

PLANNING = ("greedy", "sampling", "best-of-n", "reflexion", "mcts")
"""The planners by name."""
COMPARING = PLANNING[2:]
"""Those that need a reward model."""


@dataclass(frozen=True, kw_only=True)
class PlannerOptions:
    """How greedy, sampling, best-of-n, reflexion and mcts search.

    Attributes:
        reward_model: Folder of the reward model (`turngym armap train`); for all but greedy and
            sampling.
        samples: Trajectories of best-of-n.
        tries: Most attempts of reflexion.
        threshold: Reward above which reflexion stops.
        rollouts: Simulations of mcts.
        candidates: Actions that mcts asks for at a place.
        horizon: Most actions of a roll-out of mcts.
        rule: What mcts goes down by.
        final: What mcts plays: the best trajectory seen, or the root's best action, then it plans
            anew.
        search_temperature: Of sampled trajectories and candidates; greedy ones and roll-outs of
            mcts have 0.
        token_budget: Most sampled tokens of one episode's planning.
        step_budget: Most environment steps of one episode's planning.
        length_penalty: Taken off the standardised reward per action.
        price_penalty: Taken off it times the metric "price" of the finished episode.
    """

    reward_model: str | None = None
    samples: int = 10
    tries: int = 10
    threshold: float = 0.0
    rollouts: int = 10
    candidates: int = 10
    horizon: int = 10
    rule: Literal["released", "ucb1", "puct"] = "released"
    final: Literal["best_trajectory", "best_action_replan"] = "best_trajectory"
    search_temperature: float = 1.0
    token_budget: int | None = None
    step_budget: int | None = None
    length_penalty: float = 0.0
    price_penalty: float = 0.0


Planners = Annotated[PlannerOptions, tyro.conf.arg(name="")]
