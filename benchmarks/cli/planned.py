"""Planners on the command line: what they need, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...agents.planning.actors import Actor, EngineActor, TextActor
from ...agents.planning.budget import PlanningBudget
from ...agents.planning.mcts import Mcts
from ...agents.planning.objective import Objective, Scorer, length_penalty, metric, price_penalty
from ...agents.planning.planners import BestOfN, Greedy, Reflexion, Sampling
from ...agents.planning.search import Planner, PlannerSetup
from ...algos.evaluation.planning import Planning
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from .planner_options import COMPARING, PLANNING, PlannerOptions
from .prompted import Asked, transcripts
from .train_options import EvalCommand

USED_BY: Mapping[str, tuple[str, ...]] = {
    "reward_model": COMPARING,
    "samples": ("best-of-n",),
    "tries": ("reflexion",),
    "threshold": ("reflexion",),
    "rollouts": ("mcts",),
    "candidates": ("mcts",),
    "horizon": ("mcts",),
    "rule": ("mcts",),
    "final": ("mcts",),
    "search_temperature": PLANNING[1:],
    "token_budget": PLANNING,
    "step_budget": PLANNING,
    "length_penalty": COMPARING,
    "price_penalty": COMPARING,
}
"""Which planners look at an option."""


def check_planning(names: tuple[str, ...], options: PlannerOptions) -> None:
    """Refuse options that do not fit together, before anything is loaded.

    Raises:
        BadValueError: No reward model for a planner that compares, or an option that no planner
            looks at.
    """
    comparing = [name for name in names if name in COMPARING]
    if comparing and options.reward_model is None:
        raise BadValueError(
            f"--agent {comparing[0]}: needs a reward model: --reward-model FOLDER, made by "
            "`turngym armap train`."
        )
    for name, users in USED_BY.items():
        given = getattr(options, name) != getattr(PlannerOptions(), name)
        if given and not any(user in names for user in users):
            raise BadValueError(
                f"--{name.replace('_', '-')}: goes with --agent {' or '.join(users)}."
            )


def planning(name: str, command: EvalCommand, asked: Asked, world: TextEnv[Any, Any]) -> Planning:
    """The planner ``name`` with its model and reward model.

    Raises:
        BadValueError: A setting out of range, or no reward model in the folder.
        DataError: A file of the reward model cannot be read.
    """
    options = command.planner
    scorer: Scorer | None = None
    if name in COMPARING and options.reward_model is not None:
        from ...agents.planning.reward_model import open_reward_model

        scorer = open_reward_model(options.reward_model, device=command.sampler.device)
    objective = _objective(options) if scorer is not None else Objective()
    budget = PlanningBudget(tokens=options.token_budget, steps=options.step_budget)
    actor_of = _actors(command, asked, world)
    return Planning(
        planner=_planner(name, options),
        tools=lambda: PlannerSetup(
            actor=actor_of(), scorer=scorer, objective=objective, budget=budget
        ),
        concurrency=asked.concurrency(command),
        folder=transcripts(command.out, name),
    )


def _planner(name: str, options: PlannerOptions) -> Planner:
    heat = options.search_temperature
    if name == "greedy":
        return Greedy()
    if name == "sampling":
        return Sampling(temperature=heat)
    if name == "best-of-n":
        return BestOfN(n=options.samples, temperature=heat)
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


def _objective(options: PlannerOptions) -> Objective:
    terms = []
    if options.length_penalty:
        terms.append(length_penalty(options.length_penalty))
    if options.price_penalty:
        terms.append(price_penalty(options.price_penalty, metric("price")))
    return Objective(terms)


def _actors(command: EvalCommand, asked: Asked, world: TextEnv[Any, Any]) -> Callable[[], Actor]:
    """Makes an actor per episode; they share the model."""
    most = asked.max_tokens(command)
    if asked.engine is None:
        return lambda: TextActor(asked.model, most, chat=asked.dialect == "chat")
    from ...agents.rendering.factory import make_renderer

    style = "plain" if asked.dialect == "tags" else "auto"
    renderer = make_renderer(asked.tokenizer, style, tools=world.tools)
    first = EngineActor(asked.engine, renderer, most)
    return first.for_search
