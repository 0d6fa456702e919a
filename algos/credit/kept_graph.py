"""Credit by a graph of states that is kept across steps: TIGPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...envs.core.env import TextEnv
from ..core.checks import check_above_zero, check_shares, check_weights
from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .by_state import StateCredit
from .gae import Doubles
from .group import by_prompt, score_episodes
from .state_terms import GoalDistances
from .states import Behind, Comparison, find_visits
from .turns import action_means, on_actions


@dataclass(frozen=True, kw_only=True)
class KeptGraphCredit(Credit):
    """``A = episode_weight * A_path + state_weight * A_action`` (TIGPO, arXiv 2609.03383).

    ``A_action`` is GraphGPO's score by distances that a tracker computes on the graph of this and
    all earlier groups of the task, so that a group without a success may learn from others'.
    ``A_path`` is the z-score of the episode's return among those of the group and of the task's
    last group; an episode of many sessions counts once.

    Degenerate cases: a task that is played for the first time has GraphGPO's credit.

    Attributes:
        gamma: Factor per edge, in (0, 1).
        reward: Scale of what an action earns, against ``invalid_penalty``.
        episode_weight: Weight of the path's score.
        state_weight: Weight of the action's.
        invalid_penalty: Taken off where the environment could not read the action.
        eps: Keeps the divisions finite.
    """

    gamma: float = 0.1
    reward: float = 10.0
    episode_weight: float = 1.0
    state_weight: float = 1.0
    invalid_penalty: float = 0.0
    eps: float = 1e-6

    def __post_init__(self) -> None:
        check_shares(self, "gamma")
        check_above_zero(self, "gamma", "reward", "eps")
        check_weights(self, "episode_weight", "state_weight", "invalid_penalty")

    @property
    def needs(self) -> frozenset[str]:
        """The tracker's distances and returns, and states."""
        return frozenset({"states", "kept_distances", "earlier_returns"})

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment without states, or with random transitions.

        Raises:
            BadValueError: This credit makes no sense there.
        """
        StateCredit(term=GoalDistances()).check(env)

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one advantage per action ``[n_act]``, per path."""
        returns, compare = forest.returns(), Comparison(eps=self.eps)
        rows: list[Doubles] = [np.zeros(0)] * len(forest.paths)
        for members in by_prompt(forest):
            visits = find_visits(forest, members, "state", 1.0, returns)
            far = np.zeros(len(visits))
            for at in members:
                far[visits.of_path[at]] = action_means(
                    forest, at, annotations["kept_distances"][at]
                )
            earned = self.reward * self.gamma**far - self.invalid_penalty * visits.invalid
            score = compare.among_equals(visits.states, earned)
            earlier = annotations["earlier_returns"][members[0]].astype(np.float64)
            behind = Behind(earlier, compare)
            whole = self.episode_weight * score_episodes(forest, [members], behind)
            for at in members:
                rows[at] = whole[at] + self.state_weight * score[visits.of_path[at]]
        return Credits(advantages=on_actions(forest, rows))
