"""Credit by state: a path's return among the group's, and each action among those of its state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ..core.checks import check_choices, check_weights
from ..core.forest import Forest
from ..core.protocols import Annotations, Credit, Credits
from .gae import Doubles
from .group import GroupCredit, by_prompt
from .state_terms import StateReturns, StateTerm, check_transitions
from .states import RECORDED, Comparison, Identity, Visits, find_visits, group_equal
from .turns import on_actions


@dataclass(frozen=True, kw_only=True)
class StateCredit(Credit):
    """``A = episode_weight * A_path + state_weight * A_action``, on every token of the action.

    ``A_path`` is the path's return among its group's, GRPO's advantage. ``A_action`` compares what
    was done in equal states; which states are equal is a setting, so that an exact identity can be
    set against a guessed one.

    Degenerate cases: where no state comes twice, the terms that compare visits of one state are 0
    (which leaves GRPO's advantage, or nothing with ``episode_weight=0``); returns of 0 give 0, but
    for penalties; where all succeed every term still prefers the shorter way.

    Attributes:
        term: What is compared among the visits of a state.
        identity: When two states are equal, see :data:`~turngym.algos.credit.states.Identity`.
        episode_weight: Weight of the path's advantage.
        state_weight: Weight of the action's; 0 is GRPO.
        scale: Divide both by the standard deviation of what is compared, or by nothing.
        eps: Keeps the divisions finite.
        over: Take the group's mean and deviation over paths, or over turns as verl-agent's code
            does, where long paths weigh more.
        invalid_penalty: Taken off what is compared in a state, where the environment could not
            read the action.
    """

    term: StateTerm = field(default_factory=StateReturns)
    identity: Identity = "state"
    episode_weight: float = 1.0
    state_weight: float = 1.0
    scale: Literal["std", "none"] = "std"
    eps: float = 1e-6
    over: Literal["paths", "turns"] = "paths"
    invalid_penalty: float = 0.0

    def __post_init__(self) -> None:
        check_choices(self)
        check_weights(self, "episode_weight", "state_weight", "invalid_penalty")
        self._compare()
        if not self.episode_weight + self.state_weight:
            raise BadValueError(
                "StateCredit: episode_weight and state_weight are both 0, so nothing is learned. "
                "Raise one."
            )

    @property
    def needs(self) -> frozenset[str]:
        """The states of turns, where the identity reads them."""
        return frozenset({"states"} if self.identity in RECORDED else ())

    @property
    def min_paths(self) -> int:
        """Two paths, unless one alone may come to a state again."""
        return 1 if self.state_weight else 2

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment without states, and distances where transitions are random.

        Raises:
            BadValueError: This credit makes no sense there.
        """
        if self.needs and not callable(getattr(env, "state_digest", None)):
            raise BadValueError(
                f"{env.name} has no state_digest, which credit by {self.identity!r} compares "
                "turns by. Use identity='history' or 'text', or another recipe."
            )
        if self.term.fixed_transitions and env.chance:
            raise BadValueError(
                f"{env.name} draws what an action brings, and the length of a way through states "
                "means nothing where transitions are random. Use gigpo, hgpo or g2po."
            )

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return one advantage per action ``[n_act]``, per path."""
        returns, groups = forest.returns(), by_prompt(forest)
        episodes = GroupCredit(scale=self.scale, eps=self.eps).within(forest, groups)
        advantages: list[Doubles] = [np.zeros(0)] * len(forest.paths)
        met, visited, spoken = 0, 0, 0
        for members in groups:
            visits = find_visits(forest, members, self.identity, self.term.gamma, returns)
            if self.term.fixed_transitions and self.identity in RECORDED:
                check_transitions(visits)
            if self.over == "turns":
                episodes[members] = self._over_turns(visits, members)
            visits.scores = visits.mean_of_paths(episodes)
            score = self.state_weight * self._score(visits)
            for at in members:
                advantages[at] = self.episode_weight * episodes[at] + score[visits.of_path[at]]
            places = group_equal(visits.states).values()
            met += sum(len(at) for at in places if len(at) > 1)
            visited += len(visits)
            spoken += any(advantages[at].any() for at in members)
        return Credits(
            advantages=on_actions(forest, advantages),
            metrics={
                "informative_groups_frac": spoken / max(len(groups), 1),
                "met_states_frac": met / max(visited, 1),
            },
        )

    def _score(self, visits: Visits) -> Doubles:
        if not self.state_weight:
            return np.zeros(len(visits))
        return self.term(visits, self.invalid_penalty * visits.invalid, self._compare())

    def _over_turns(self, visits: Visits, members: list[int]) -> Doubles:
        """Return the paths' scores ``[members]`` by the statistics of the group's turns."""
        scores = self._compare()(visits.returns)
        return np.array([scores[visits.of_path[at]].mean() for at in members])

    def _compare(self) -> Comparison:
        return Comparison(scale=self.scale, eps=self.eps)
