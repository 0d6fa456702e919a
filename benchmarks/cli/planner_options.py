"""Options of planners on the command line, and the planners that they describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...agents.planning.budget import PlanningBudget
from ...agents.planning.mcts import Mcts
from ...agents.planning.objective import Objective, length_penalty, metric, price_penalty
from ...agents.planning.planners import BestOfN, Greedy, Reflexion, Sampling
from ...agents.planning.search import Planner
from ...agents.planning.settings import REWARD_FILE
from ...envs.core.errors import BadValueError
from ...envs.core.settings import check_integer, check_number

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
        tries: Maximum attempts of reflexion.
        threshold: Reward above which reflexion stops.
        rollouts: Simulations of mcts.
        candidates: Actions that mcts samples at a node.
        horizon: Maximum actions of a roll-out of mcts.
        rule: Selection rule of mcts.
        final: What mcts plays: the best trajectory seen, or the root's best action, after which it
            plans anew.
        search_temperature: Temperature of sampled trajectories and candidates; greedy ones and
            roll-outs of mcts have 0.
        token_budget: Maximum sampled tokens of one episode's planning.
        step_budget: Maximum environment steps of one episode's planning.
        length_penalty: Penalty on the standardised reward per action.
        price_penalty: Penalty on it, times the metric "price" of the finished episode.
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


USED_BY: Mapping[str, tuple[str, ...]] = {
    "reward_model": COMPARING,
    "samples": ("best-of-n",),
    "tries": ("reflexion",),
    "threshold": ("reflexion",),
    **dict.fromkeys(("rollouts", "candidates", "horizon", "rule", "final"), ("mcts",)),
    "search_temperature": PLANNING[1:],
    "token_budget": PLANNING,
    "step_budget": PLANNING,
    "length_penalty": COMPARING,
    "price_penalty": COMPARING,
}
"""Which planners look at an option."""


def check_planner_options(names: tuple[str, ...], options: PlannerOptions) -> None:
    """Refuse options that do not fit together, before anything is loaded.

    Raises:
        BadValueError: No reward model for a planner that compares, a value out of range, or an
            option that no planner looks at.
        DataError: The reward model's settings cannot be read.
    """
    comparing = [name for name in names if name in COMPARING]
    if comparing and options.reward_model is None:
        raise BadValueError(
            f"--agent {comparing[0]}: needs a reward model: --reward-model FOLDER, made by "
            "`turngym armap train`."
        )
    for name, users in USED_BY.items():
        if not any(user in names for user in users):
            refuse_unused(options, [name], f"goes with --agent {' or '.join(users)}")
    for name in PLANNING:
        if name in names:
            make_planner(name, options)
    make_budget(options, max_tokens=1)
    if comparing:
        REWARD_FILE.read(Path(options.reward_model or "").expanduser())


def make_planner(name: str, options: PlannerOptions) -> Planner:
    """Return the planner ``name`` with its options."""
    # named as they are typed: the planners have other names for these two
    heat = check_number("--search-temperature", options.search_temperature, "planner", min=0.0)
    if name == "greedy":
        return Greedy()
    if name == "sampling":
        return Sampling(temperature=heat)
    if name == "best-of-n":
        samples = check_integer("--samples", options.samples, name, min=1)
        return BestOfN(n=samples, temperature=heat)
    if name == "reflexion":
        return Reflexion(tries=options.tries, threshold=options.threshold, temperature=heat)
    return Mcts(
        rollouts=options.rollouts,
        candidates=options.candidates,
        horizon=options.horizon,
        rule=options.rule,
        final=options.final,
        temperature=heat,
    )


def make_budget(options: PlannerOptions, max_tokens: int) -> PlanningBudget:
    """Return what one episode's planning may cost.

    Raises:
        BadValueError: Out of range, or without room for one reply of ``max_tokens``.
    """
    budget = PlanningBudget(tokens=options.token_budget, steps=options.step_budget)
    if budget.tokens is not None and budget.tokens < max_tokens:
        raise BadValueError(
            f"--token-budget {budget.tokens}: has no room for one reply of {max_tokens} tokens, so "
            "that no action would be asked for; give more, or a smaller --max-tokens."
        )
    return budget


def make_objective(options: PlannerOptions) -> Objective:
    """Return what planners maximise: the learned reward less the penalties."""
    terms = []
    if options.length_penalty:
        terms.append(length_penalty(options.length_penalty))
    if options.price_penalty:
        terms.append(price_penalty(options.price_penalty, metric("price")))
    return Objective(terms)


def refuse_unused(options: Any, names: Iterable[str], reason: str) -> None:
    """Refuse options that would do nothing."""
    for name in names:
        if getattr(options, name) != getattr(type(options)(), name):
            raise BadValueError(f"--{name.replace('_', '-')}: {reason}.")
