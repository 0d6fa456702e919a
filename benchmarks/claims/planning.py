"""Planning arms: ARMAP's planners with a trajectory reward learned from generated pairs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...agents.engines.factory import EngineSettings, build_engine
from ...agents.models.loading import load_model, load_tokenizer
from ...agents.planning.actors import EngineActor
from ...agents.planning.budget import PlanningBudget
from ...agents.planning.generation import PairMaker, PairSettings, planner_player
from ...agents.planning.mcts import Mcts
from ...agents.planning.planners import BestOfN, Greedy, Reflexion, Sampling
from ...agents.planning.reward_model import RewardModel
from ...agents.planning.search import PlannerSetup
from ...agents.planning.settings import ReadingSettings, RewardTraining
from ...agents.rendering.factory import make_renderer
from ...agents.scripted import text_env
from ...algos.evaluation.evaluate import UNSCORED, EvalSet
from ...algos.evaluation.planning import Planning as PlannedAgent
from ...algos.training.config import EnvConfig
from ...algos.training.supervised.reward_model import train_reward_model
from ..runtime.threads import prepare
from .cached_arms import OnProgress, Values, run_arms
from .experiments import PlannedArm, Planning
from .outcome import ArmRuns
from .playing import MAX_BATCH, start_folder

PLANNERS: dict[str, Any] = {
    "greedy": Greedy,
    "sampling": Sampling,
    "best-of-n": BestOfN,
    "reflexion": Reflexion,
    "mcts": Mcts,
}
READ_TOKENS = 1024


def run_planning(
    experiment: Planning, seeds: Sequence[int], folder: Path, on_progress: OnProgress
) -> tuple[ArmRuns, ...]:
    """Plan with every arm and seed; the arms of a seed share a reward model.

    Raises:
        TurngymError: A setting that does not exist, or too few pairs.
    """
    planners = Planners(experiment, on_progress)
    return run_arms(experiment, seeds, folder, on_progress, planners.plan)


class Planners:
    """The acting model, and the reward models by seed, made on first use.

    Args:
        experiment: The experiment.
        on_progress: Called with a message about each reward model.
    """

    def __init__(self, experiment: Planning, on_progress: OnProgress) -> None:
        self._experiment, self._on_progress = experiment, on_progress
        self._env = EnvConfig(id=experiment.env_id, settings=experiment.settings).make()
        self._actor: EngineActor | None = None
        self._rewards: dict[int, RewardModel] = {}

    def plan(self, arm: PlannedArm, seed: int) -> Values:
        """Return success and return by task."""
        experiment = self._experiment
        actor, scorer = self._acting(), self._reward(seed)
        budget = PlanningBudget(tokens=experiment.token_budget)
        planned = PlannedAgent(
            planner=PLANNERS[arm.planner](**arm.settings),
            tools=lambda: PlannerSetup(actor=actor.for_search(), scorer=scorer, budget=budget),
        )
        what = EvalSet(
            name="planned", env=self._env, split=experiment.split, n=experiment.tasks, seed=seed
        )
        episodes = asyncio.run(planned.evaluate(what)).episodes
        scored = {
            f"{experiment.split}/{task}": episode
            for task, episode in zip(what.tasks, episodes, strict=True)
            if episode.status not in UNSCORED
        }
        return {
            "success": {task: float(e.status == "solved") for task, e in scored.items()},
            "return": {task: e.return_ for task, e in scored.items()},
        }

    def _acting(self) -> EngineActor:
        if self._actor is None:
            prepare(small=True)
            folder = start_folder(self._experiment)
            tokenizer = load_tokenizer(folder)
            engine = build_engine(folder, tokenizer, EngineSettings(max_batch=MAX_BATCH))
            env = text_env(self._env)
            renderer = make_renderer(tokenizer, tools=env.tools)
            self._actor = EngineActor(engine, renderer, self._experiment.max_tokens)
        return self._actor

    def _reward(self, seed: int) -> RewardModel:
        """Train the seed's reward model on pairs of the model's own attempts."""
        if seed in self._rewards:
            return self._rewards[seed]
        experiment, actor = self._experiment, self._acting()
        player = planner_player(Sampling(), lambda: PlannerSetup(actor=actor.for_search()))
        settings = PairSettings(
            tasks=experiment.pair_tasks, tries=experiment.pair_tries, contrasts=2, seed=seed
        )
        maker = PairMaker(env=self._env, players=[player], settings=settings)
        pairs = asyncio.run(maker.pairs("train"))
        folder = start_folder(self._experiment)
        how = replace(RewardTraining(**experiment.reward), seed=seed)
        reward = RewardModel(
            load_model(folder),
            load_tokenizer(folder, pad="eos"),
            ReadingSettings(max_tokens=READ_TOKENS),
            seed=seed,
        )
        metrics = train_reward_model(reward, pairs, how)
        self._on_progress(
            f"reward model, seed {seed}: {len(pairs)} pairs, loss {metrics['loss']:.3f}"
        )
        self._rewards[seed] = reward
        return reward
