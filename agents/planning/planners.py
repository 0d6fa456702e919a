"""Planners without a tree: greedy, sampling, best-of-N and Reflexion (ARMAP, section 3.3)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from ...envs.core.settings import check_integer, check_number
from .budget import BudgetExhausted
from .search import PlannerSetup, PlanResult, TrajectorySearch, add_plan

PLAN = "Plan after a failed attempt: {plan}\n"
"""How a corrective plan is shown before the task."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """One trajectory; nothing is compared.

    Attributes:
        temperature: 0 is greedy.
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, "planner", min=0.0)

    async def plan(self, env: gym.Env[Any, Any], setup: PlannerSetup, seed: int) -> PlanResult:
        """See :class:`~turngym.agents.planning.search.Planner`."""
        search = TrajectorySearch(env, setup, seed)
        with suppress(BudgetExhausted):
            search.keep(await search.roll_out(search.start, self.temperature), scored=False)
        return await search.answer(scored=False)


@dataclass(frozen=True, kw_only=True)
class Greedy(Sampling):
    """The likeliest action, again and again."""

    temperature: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BestOfN:
    """Independent trajectories, of which the one with the highest R' is played.

    Attributes:
        n: How many; the paper has 10 (Game of 24: 100).
        temperature: Of their sampling; the paper has 0.5 in ScienceWorld, 0.7 in the Game of 24.
        max_chars: Longer trajectories are not chosen (ScienceWorld: 10,000), None chooses any.
        only_valid: Trajectories with an action that the environment could not read are not chosen.
            Where all are left out, any may be.
    """

    n: int = 10
    temperature: float = 1.0
    max_chars: int | None = None
    only_valid: bool = False

    def __post_init__(self) -> None:
        check_integer("n", self.n, "best-of-n", min=1)
        check_number("temperature", self.temperature, "planner", min=0.0)

    async def plan(self, env: gym.Env[Any, Any], setup: PlannerSetup, seed: int) -> PlanResult:
        """See :class:`~turngym.agents.planning.search.Planner`."""
        search = TrajectorySearch(env, setup, seed)
        with suppress(BudgetExhausted):
            for _ in range(self.n):
                search.keep(await search.roll_out(search.start, self.temperature))
        fit = [i for i in range(len(search.places)) if self._fits(search, i)]
        return await search.answer(search.tried.best(fit) if fit else None)

    def _fits(self, search: TrajectorySearch, place: int) -> bool:
        attempt = search.tried.kept[place][0]
        short = self.max_chars is None or attempt.trajectory.chars <= self.max_chars
        return short and not (self.only_valid and attempt.invalid)


@dataclass(frozen=True, kw_only=True)
class Reflexion:
    """Attempts until one is good enough; after each failure the actor writes a corrective plan.

    Differs from the release: where no attempt passes, it takes the first one (ScienceWorld) or the
    last; here the one with the highest R' is played. Actors that write no plan try again unaided.

    Attributes:
        tries: Maximum number of attempts.
        threshold: R' above which an attempt passes. The paper has 7.25 in ScienceWorld and 0 in
            the Game of 24; it belongs to a reward model.
        temperature: Of actions and plans.
    """

    tries: int = 10
    threshold: float = 0.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_integer("tries", self.tries, "reflexion", min=1)
        check_number("temperature", self.temperature, "planner", min=0.0)

    async def plan(self, env: gym.Env[Any, Any], setup: PlannerSetup, seed: int) -> PlanResult:
        """See :class:`~turngym.agents.planning.search.Planner`."""
        search = TrajectorySearch(env, setup, seed)
        begin = search.start
        with suppress(BudgetExhausted):
            for left in reversed(range(self.tries)):
                end = await search.roll_out(begin, self.temperature)
                place = search.keep(end)
                if search.tried.value(place) > self.threshold or not left:
                    break
                plan = await search.reflect(end, self.temperature)
                begin = add_plan(search.start, PLAN.format(plan=plan) if plan else "")
        return await search.answer()
