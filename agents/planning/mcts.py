"""Monte Carlo tree search over whole trajectories (ARMAP, section 3.3, as released).

Decision nodes are places where the actor has to act; chance nodes are its candidate actions there.
A simulation goes down by the selection rule until a candidate that was never taken, takes it, rolls
out greedily from there and scores the finished trajectory; that value goes up, discounted at every
level. Environments are deterministic under a fork, so that a chance node has one successor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import gymnasium as gym

from ...envs.core.errors import BadValueError, ContextFullError, UnknownNameError
from ...envs.core.settings import check_integer, check_number
from ..scripted import text_env
from .actors import Proposal
from .budget import BudgetExhausted, PlanningBudget
from .objective import ScoredAttempts
from .position import Position
from .search import PlannerSetup, PlanResult, TrajectorySearch, usable_proposals

Rule = Literal["released", "ucb1", "puct"]
RULES = ("released", "ucb1", "puct")
EXPLORE = 9.0 / math.sqrt(2.0)
"""Weight of the bonus in the released planners, 6.364."""
Final = Literal["best_trajectory", "best_action_replan"]
FINALS = ("best_trajectory", "best_action_replan")


def selection_value(
    best: float, parent_visits: int, visits: int, *, rule: Rule = "released", prior: float = 1.0
) -> float:
    """Return what a planner prefers a child by: its value and a bonus for being little explored.

    ``"released"`` adds ``c sqrt(ln N) / (1 + n)`` to the best return sampled through the child,
    which is neither of the others: ``"ucb1"`` adds ``c sqrt(ln N / n)`` (arXiv cs/0205073; a child
    that was never visited comes first), ``"puct"`` multiplies the released bonus by the prior.

    Args:
        best: Value of the child, 0 where nothing was sampled.
        parent_visits: N, 1 when the parent was made.
        visits: n, of the child.
        rule: The bonus.
        prior: Probability of the child's action among the candidates.

    Raises:
        UnknownNameError: No such rule.
    """
    if rule not in RULES:
        raise UnknownNameError("rule", rule, RULES, "selection_value")
    if rule == "ucb1":
        return best + EXPLORE * math.sqrt(math.log(parent_visits) / visits) if visits else math.inf
    bonus = EXPLORE * math.sqrt(math.log(parent_visits)) / (1 + visits)
    return best + (bonus * prior if rule == "puct" else bonus)


def discounted_returns(leaf: float, rewards: Sequence[float], discount: float = 0.9) -> list[float]:
    """Returns on the way from a leaf to the root: ``G <- r + discount G`` at every level.

    Args:
        leaf: Estimate of the leaf's value.
        rewards: Reward of each level, the deepest first.
        discount: Per level; the released planners have 0.9.
    """
    returns = []
    for reward in rewards:
        leaf = reward + discount * leaf
        returns.append(leaf)
    return returns


@dataclass(eq=False, slots=True)
class Chance:
    """A candidate action.

    Attributes:
        proposal: The action.
        prior: Its relative frequency among the candidates.
        samples: Of every simulation through it, the trajectory's place and the discount up to
            here. R' of a trajectory may change as more are tried; sampled returns follow it.
        after: The decision node behind it, None before it was taken.
    """

    proposal: Proposal
    prior: float
    samples: list[tuple[int, float]] = field(default_factory=list)
    after: Decision | None = None

    def best(self, tried: ScoredAttempts) -> float:
        """Return the highest return sampled through it, 0 where there is none."""
        return max((tried.value(i) * factor for i, factor in self.samples), default=0.0)

    def preference(self, parent_visits: int, tried: ScoredAttempts, rule: Rule) -> float:
        """Return what the selection rule makes of it."""
        return selection_value(
            self.best(tried), parent_visits, len(self.samples), rule=rule, prior=self.prior
        )


@dataclass(eq=False, slots=True)
class Decision:
    """A place where the actor has to act.

    Attributes:
        position: The place.
        visits: 1 when it is made, and 1 more for every simulation through it.
        actions: Candidates; empty until they are asked for.
        place: Of the trajectory that ended here, where it is one.
    """

    position: Position
    visits: int = 1
    actions: list[Chance] = field(default_factory=list)
    place: int | None = None


@dataclass(frozen=True, kw_only=True)
class Mcts:
    """The planner.

    Differs from the release: candidates are sampled (ScienceWorld's beam search is not needed for
    them), and asked for only when a simulation passes through their node, which changes no tree
    and saves the calls at leaves that are not met again; copies replace replays; what a horizon
    cut is finished greedily when it is the answer.

    Nothing is compared before the second simulation. In an episode of T turns two of them take up
    to ``candidates + 2 (T - 1)`` replies and ``2 T`` steps (T is at most ``horizon + 1``); a budget
    without room for them plays a sampled action and goes on greedily.

    Attributes:
        rollouts: Simulations per planning call (Game of 24: 100).
        candidates: Actions asked for at a decision node; equal texts are merged.
        horizon: Maximum number of actions of a leaf's roll-out, None for the episode's end.
        discount: Per level of the tree.
        rule: Selection: ``"released"``, ``"ucb1"`` or ``"puct"``.
        final: ``"best_trajectory"``: of all trajectories seen, the one with the highest R'.
            ``"best_action_replan"``: the root's best action, then a new tree behind it; each gets
            its share of the budget, or all that is left where a share has no room for a simulation.
        temperature: Of the candidates; roll-outs are greedy.
    """

    rollouts: int = 10
    candidates: int = 10
    horizon: int | None = 10
    discount: float = 0.9
    rule: Rule = "released"
    final: Final = "best_trajectory"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rollouts", "candidates"):
            check_integer(name, getattr(self, name), "mcts", min=1)
        if self.horizon is not None:
            check_integer("horizon", self.horizon, "mcts", min=1)
        if not 0 < self.discount <= 1:
            raise BadValueError(f"mcts: discount is {self.discount}; expected above 0, at most 1.")
        if self.rule not in RULES:
            raise UnknownNameError("rule", self.rule, RULES, "mcts")
        if self.final not in FINALS:
            raise UnknownNameError("final", self.final, FINALS, "mcts")
        check_number("temperature", self.temperature, "planner", min=0.0)

    async def plan(self, env: gym.Env[Any, Any], setup: PlannerSetup, seed: int) -> PlanResult:
        """See :class:`~turngym.agents.planning.search.Planner`."""
        search = TrajectorySearch(env, setup, seed)
        if self.final == "best_trajectory":
            await self._grow(search, Decision(search.start))
            return await search.answer()
        return await self._replan(search, setup.budget)

    async def _replan(self, search: TrajectorySearch, whole: PlanningBudget) -> PlanResult:
        """Plan, act, plan again; where the budget ends, on along the best trajectory seen."""
        here = search.start
        turns = text_env(here.env).max_turns
        while not here.over:
            root, taken = Decision(here), list[Chance]()
            for budget in (_share(search, whole, turns - len(here.moves)), whole):
                search.setup = replace(search.setup, budget=budget)
                if not taken:
                    await self._grow(search, root)
                    taken = [one for one in root.actions if one.samples]
            if not taken:
                break
            chosen = max(taken, key=lambda one: one.best(search.tried))
            assert chosen.after is not None
            here = chosen.after.position
        search.setup = replace(search.setup, budget=whole)
        played = here.attempt.trajectory.actions
        fit = [
            place
            for place, (attempt, _) in enumerate(search.tried.kept)
            if attempt.trajectory.actions[: len(played)] == played
        ]
        return await search.answer(search.tried.best(fit) if fit else None)

    async def _grow(self, search: TrajectorySearch, root: Decision) -> None:
        """Grow a tree."""
        with suppress(BudgetExhausted):
            for _ in range(self.rollouts):
                await self._simulate(search, root)

    async def _simulate(self, search: TrajectorySearch, root: Decision) -> None:
        node, path = root, list[tuple[Decision, Chance]]()
        fresh = False
        while not (fresh or node.position.over):
            try:
                chance = await self._select(search, node)
            except ContextFullError:
                break
            path.append((node, chance))
            if chance.after is None:
                chance.after = Decision(await search.step(node.position, chance.proposal))
            node = chance.after
            fresh = node.place is None
        ended = node.position.over
        if node.place is None:
            end = node.position
            if not ended:
                end = await search.roll_out(end, 0.0, self.horizon)
            node.place = search.keep(end)
        node.visits += 1
        self._back_up(path, node.place, ended)

    async def _select(self, search: TrajectorySearch, node: Decision) -> Chance:
        if not node.actions:
            proposals = await search.ask(node.position, self.temperature, self.candidates)
            node.actions = merge_proposals(proposals)
        prefer = [one.preference(node.visits, search.tried, self.rule) for one in node.actions]
        return node.actions[prefer.index(max(prefer))]

    def _back_up(self, path: list[tuple[Decision, Chance]], place: int, ended: bool) -> None:
        """Note the trajectory at every level.

        The transition into an episode's end pays R', undiscounted; elsewhere R' is the leaf's
        estimate.
        """
        rewards = [0.0] * len(path)
        if ended and rewards:
            rewards[0] = 1.0
        factors = discounted_returns(0.0 if ended else 1.0, rewards, self.discount)
        for (node, chance), factor in zip(reversed(path), factors, strict=True):
            chance.samples.append((place, factor))
            node.visits += 1


def merge_proposals(proposals: list[Proposal]) -> list[Chance]:
    """Return candidates with distinct texts, in the order of their first appearance."""
    fit = usable_proposals(proposals)
    first: dict[str, Proposal] = {}
    counts: dict[str, int] = {}
    for one in fit:
        key = one.text.strip()
        first.setdefault(key, one)
        counts[key] = counts.get(key, 0) + 1
    return [Chance(one, counts[key] / len(fit)) for key, one in first.items()]


def _share(search: TrajectorySearch, whole: PlanningBudget, turns: int) -> PlanningBudget:
    """Return what one of the remaining ``turns`` planning calls may have spent when it ends."""
    parts = max(1, turns)
    tokens, steps = whole.tokens, whole.steps
    used, taken = search.spent.sampled_tokens, search.spent.search_steps
    return PlanningBudget(
        tokens=None if tokens is None else max(1, used + (tokens - used) // parts),
        steps=None if steps is None else max(1, taken + (steps - taken) // parts),
    )
