"""ARMAP from nothing: a reward learned from pairs makes planners better than greedy play.

The reward model does not read the observation that answers the last action: in the game of 24 it
tells the verdict, which the paper's reward model does not get to see either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import turngym.envs  # noqa: F401 - registers the worlds
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.planning.actors import EngineActor
from turngym.agents.planning.budget import PlanningBudget
from turngym.agents.planning.generation import PairMaker, PairSettings, planner_player
from turngym.agents.planning.mcts import Mcts
from turngym.agents.planning.objective import Scorer
from turngym.agents.planning.pair_scores import evaluate_pairs
from turngym.agents.planning.planners import BestOfN, Greedy, Sampling
from turngym.agents.planning.records import Pair
from turngym.agents.planning.reward_model import RewardModel
from turngym.agents.planning.search import Planner, PlannerSetup
from turngym.agents.planning.settings import ReadingSettings, RewardTraining
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.warm_start.cache import ensure_starter
from turngym.agents.warm_start.settings import starter_settings
from turngym.algos.evaluation.evaluate import EvalSet
from turngym.algos.evaluation.planning import Planning
from turngym.algos.training.supervised.reward_model import train_reward_model
from turngym.envs.utils.statistics import paired

WARM = 0.7


@dataclass(frozen=True)
class Case:
    """A world, and what it takes there.

    Attributes:
        world: Registered id.
        settings: What it is made with.
        tokens: Most sampled tokens of a task, the same for every planner.
        max_tokens: Of an action.
        reading: Most tokens that the reward model reads.
        n: Most tasks of a split that are played.
    """

    world: str
    settings: Mapping[str, Any]
    tokens: int
    max_tokens: int
    reading: int
    n: int = 1000


CASES = {
    "game24": Case("Game24-v0", {"size": "micro"}, 160, 14, 256),
    "scienceworld": Case("ScienceWorld-v0", {"size": "micro", "max_turns": 20}, 800, 16, 1024, 100),
}
PLANNERS: Mapping[str, Planner] = {
    "greedy": Greedy(),
    "best of n": BestOfN(n=6, temperature=WARM),
    "MCTS": Mcts(rollouts=6, candidates=4),
}


class Player:
    """The policy, and everything that is done with it under one seed."""

    def __init__(self, case: Case, folder: Path, seed: int) -> None:
        self.case, self.folder, self.seed = case, folder, seed
        self.env: gym.Env[Any, Any] = gym.make(case.world, **case.settings)
        tokenizer = load_tokenizer(self.folder)
        engine = TransformersEngine(load_model(self.folder, device="cpu"), tokenizer, max_batch=128)
        self.actor = EngineActor(engine, make_renderer(tokenizer), max_tokens=case.max_tokens)

    def tools(self, scorer: Scorer | None = None) -> PlannerSetup:
        return PlannerSetup(
            actor=self.actor.for_search(),
            scorer=scorer,
            budget=PlanningBudget(tokens=self.case.tokens),
        )

    def pairs(self, split: str, **how: int) -> list[Pair]:
        """Of the policy's own attempts, ranked by their outcome, and of edited ones."""
        alone = planner_player(Sampling(temperature=WARM), self.tools)
        settings = PairSettings(seed=self.seed, concurrency=128, **how)
        return asyncio.run(PairMaker(env=self.env, players=[alone], settings=settings).pairs(split))

    def reward(self, pairs: Sequence[Pair]) -> RewardModel:
        model = load_model(self.folder, device="cpu")
        reading = ReadingSettings(max_tokens=self.case.reading, closing=False)
        tokenizer = load_tokenizer(self.folder, pad="eos")
        reward = RewardModel(model, tokenizer, reading, seed=self.seed)
        train_reward_model(
            reward, pairs, RewardTraining(lr=5e-4, epochs=3, batch=16, seed=self.seed)
        )
        return reward

    def solved(self, planner: Planner, scorer: Scorer) -> list[float]:
        """1 for every held-out task that is solved, else 0."""
        seat = Planning(planner=planner, tools=lambda: self.tools(scorer), concurrency=128)
        found: list[float] = []
        for split in ("dev", "test"):
            what = EvalSet(name=split, env=self.env, split=split, n=self.case.n, seed=self.seed)
            scored = asyncio.run(seat.evaluate(what)).scored
            assert max(episode.tokens for episode in scored) <= self.case.tokens
            found += [float(episode.status == "solved") for episode in scored]
        return found


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", CASES)
def test_planners_beat_greedy_at_the_same_limit_of_tokens(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    folder = ensure_starter(case.world, settings=starter_settings(case.world), cache_dir=tmp_path)
    solved: dict[str, list[list[float]]] = {name: [] for name in PLANNERS}
    for seed in range(3):
        player = Player(case, folder, seed)
        made = player.pairs("train", tasks=1000, tries=4, contrasts=2, edits=1)
        reward = player.reward(made)
        held = evaluate_pairs(
            reward, player.pairs("dev", tasks=1000, tries=4, contrasts=6, edits=0)
        )
        print(f"seed {seed}: {len(made)} pairs; held out {held.accuracy:.3f} of {held.n}")
        for which, planner in PLANNERS.items():
            solved[which].append(player.solved(planner, reward))
            print(f"seed {seed}: {which} {np.mean(solved[which][-1]):.3f}")
    greedy = np.mean(solved["greedy"], axis=0)
    for which in ("best of n", "MCTS"):
        test = paired(np.mean(solved[which], axis=0).tolist(), greedy.tolist())
        print(f"{which} less greedy: {test}")
        assert test.low95 > 0
        assert test.p_value < 0.05
        for ours, theirs in zip(solved[which], solved["greedy"], strict=True):
            assert np.mean(ours) > np.mean(theirs)
