"""What all planners share: asking, stepping copies, rolling out, keeping, within one budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import gymnasium as gym

from ...envs.core.batched_calls import call_env
from ...envs.core.errors import BadValueError, ContextFullError, EpisodeError
from ...envs.core.randomness import derive_seed
from ..scripted import text_env
from .actors import Actor, Proposal, ProposalSettings
from .budget import BudgetExhausted, PlanningBudget, PlanningCost
from .objective import Objective, ScoredAttempts, Scorer
from .position import Position
from .trajectory import Attempt


@dataclass(frozen=True, kw_only=True)
class PlannerSetup:
    """What a planner is given.

    Attributes:
        actor: Proposes actions.
        scorer: The reward model; None for planners that compare nothing.
        objective: What is maximised.
        budget: What one episode's planning may cost.
    """

    actor: Actor
    scorer: Scorer | None = None
    objective: Objective = field(default_factory=Objective)
    budget: PlanningBudget = field(default_factory=PlanningBudget)


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """What a planner decided on.

    Attributes:
        actions: To be played from the start of the episode.
        attempt: The trajectory that they gave in a copy of the environment.
        value: R' of it; None where nothing was scored.
        tried: Every trajectory that was compared, with its R'.
        spent: What it cost.
        context_full: Whether the model's context had no room to go on with the answer.
    """

    actions: tuple[str, ...]
    attempt: Attempt
    value: float | None
    tried: tuple[tuple[Attempt, float], ...]
    spent: PlanningCost
    context_full: bool = False


class Planner(Protocol):
    """Decides on a whole episode by trying in copies of the environment."""

    async def plan(self, env: gym.Env[Any, Any], setup: PlannerSetup, seed: int) -> PlanResult:
        """Plan the episode that ``env`` has just begun; ``env`` itself is not stepped.

        Raises:
            EnvFault: The environment broke.
        """
        ...


class TrajectorySearch:
    """One episode's planning: everything is counted, and stops where the budget ends.

    Args:
        env: A new episode; it is only forked.
        setup: See :class:`PlannerSetup`.
        seed: Everything that is drawn follows from it, in the order in which it is asked for.
    """

    def __init__(self, env: gym.Env[Any, Any], setup: PlannerSetup, seed: int) -> None:
        self.start = Position.of(env)
        self.setup = setup
        self.spent = PlanningCost()
        self.tried = ScoredAttempts(setup.objective)
        self.places: list[Position] = []  # where each tried trajectory ended
        self._seed = seed
        self._asked = 0
        self._cut: Position | None = None  # the furthest place that the budget cut off
        self._full = False

    # ------------------------------------------------------------------ asking and stepping

    async def ask(self, position: Position, temperature: float, n: int = 1) -> list[Proposal]:
        """Up to ``n`` actions for ``position``, fewer where the budget has room for fewer only.

        Raises:
            BudgetExhausted: There is room for none.
            ContextFullError: The dialogue leaves the model no room.
        """
        count = self._affordable(n)
        if not count:
            self._note(position)
            raise BudgetExhausted
        asks = [ProposalSettings(temperature, self._next_seed()) for _ in range(count)]
        actor = self.setup.actor
        proposals = await asyncio.gather(*(actor.act(position, each) for each in asks))
        for proposal in proposals:
            self._count(proposal)
        return proposals

    async def reflect(self, position: Position, temperature: float) -> str:
        """Return a plan for the next attempt.

        Empty where neither budget nor context has room for it.
        """
        if not self._affordable(1):
            return ""
        try:
            plan = await self.setup.actor.reflect(
                position, ProposalSettings(temperature, self._next_seed())
            )
        except ContextFullError:
            return ""
        self._count(plan)
        return plan.text

    async def step(self, position: Position, proposal: Proposal, *, copy: bool = True) -> Position:
        """Take an action, in a copy unless the position is not needed any more.

        Raises:
            BudgetExhausted: No step is left.
            EnvFault: The environment broke.
        """
        limit = self.setup.budget.steps
        if limit is not None and self.spent.search_steps >= limit:
            self._note(position)
            raise BudgetExhausted
        here = self.fork(position) if copy else position
        self.spent.search_steps += 1
        return await here.step(proposal.text, proposal.memory)

    def fork(self, position: Position) -> Position:
        """Return a copy, which is counted."""
        self.spent.forks += 1
        return position.fork()

    async def roll_out(
        self, position: Position, temperature: float, horizon: int | None = None
    ) -> Position:
        """Go on from a copy of ``position`` to the episode's end, or for ``horizon`` actions.

        A dialogue that fills the model's context ends there.

        Raises:
            BudgetExhausted: Before the end.
            EnvFault: The environment broke.
        """
        here, left = self.fork(position), horizon
        while not here.over and left != 0:
            try:
                proposal = (await self.ask(here, temperature))[0]
            except ContextFullError:
                self._full = True
                return here
            here = await self.step(here, proposal, copy=False)
            left = None if left is None else left - 1
        return here

    # ------------------------------------------------------------------ keeping and answering

    def keep(self, position: Position, scored: bool = True) -> int:
        """Score the trajectory that ends here and keep it; returns its place.

        Raises:
            BadValueError: There is no reward model, or its score is no number.
        """
        attempt, reward = position.attempt, 0.0
        if scored:
            if self.setup.scorer is None:
                raise BadValueError("planner: needs a reward model to compare trajectories with.")
            reward = self.setup.scorer.score([attempt.trajectory])[0]
        self.spent.trajectories += 1
        self.places.append(position)
        return self.tried.add(attempt, float(reward))

    async def answer(self, place: int | None = None, scored: bool = True) -> PlanResult:
        """Return the trajectory at ``place``, the best one when left out; a cut one is completed.

        Where the budget ended before a first trajectory was whole, the furthest part of one.
        """
        if self.places:
            place = self.tried.best() if place is None else place
            position = self.places[place]
            value = self.tried.value(place) if scored else None
        else:
            position, value = self._cut or self.start, None
        self._full = False
        position = await self._finished(position)
        self.setup.actor.forget()
        attempt = position.attempt
        tried = range(len(self.places)) if scored else ()
        return PlanResult(
            actions=attempt.trajectory.actions,
            attempt=attempt,
            value=value,
            tried=tuple((self.tried.kept[i][0], self.tried.value(i)) for i in tried),
            spent=self.spent,
            context_full=self._full,
        )

    async def _finished(self, position: Position) -> Position:
        """Greedily on from a trajectory that a horizon cut, as far as the budget goes."""
        if position.over:
            return position
        self._cut = None
        try:
            return await self.roll_out(position, 0.0)
        except BudgetExhausted:
            return self._cut or position

    def _note(self, position: Position) -> None:
        if self._cut is None or len(position.moves) > len(self._cut.moves):
            self._cut = position

    def _affordable(self, n: int) -> int:
        """Return how many of ``n`` replies fit into what is left, however long they become."""
        limit, longest = self.setup.budget.tokens, self.setup.actor.max_tokens
        if limit is None or not longest:
            return n
        return min(n, max(0, limit - self.spent.sampled_tokens) // longest)

    def _count(self, proposal: Proposal) -> None:
        self.spent.model_calls += 1
        self.spent.sampled_tokens += proposal.sampled_tokens
        self.spent.prompt_tokens += proposal.prompt_tokens

    def _next_seed(self) -> int:
        self._asked += 1
        return derive_seed(self._seed, self._asked)


async def play(env: gym.Env[Any, Any], planned: PlanResult) -> Position:
    """Play what was planned as one ordinary episode in ``env``, which is at its start.

    Raises:
        EnvFault: The environment broke.
        EpisodeError: The environment does not answer as its copy did.
    """
    here = Position.of(env)
    for number, (action, seen) in enumerate(planned.attempt.trajectory.moves, start=1):
        here = await here.step(action)
        if here.observation != seen:
            raise EpisodeError(
                f"planner: {text_env(env).name} answers action {number} otherwise than its copy "
                f"did (planned {seen[:80]!r}, played {here.observation[:80]!r}): its forks are "
                "not faithful, or this is another episode."
            )
    return here


async def reset_env(
    env: gym.Env[Any, Any], seed: int, split: str, task: int | str
) -> gym.Env[Any, Any]:
    """Return ``env`` after its reset.

    Raises:
        EnvFault: The environment is broken.
    """
    options = {"split": split, "task": task}
    await call_env(env, lambda: env.reset(seed=seed, options=options))
    return env


def add_plan(position: Position, note: str) -> Position:
    """Return the start of an episode with a plan shown before the task."""
    return replace(position, note=note)


def usable_proposals(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals that are complete and not blank; all of them where there is none."""
    usable = [one for one in proposals if one.complete and one.text.strip()]
    return usable or list(proposals)
