"""ARMAP from nothing: a reward learned from pairs makes planners better than greedy play.

The reward model does not read the observation that answers the last action: in this game it tells
the verdict, which the paper's reward model does not get to see either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import turngym.envs  # noqa: F401 - registers the worlds
from turngym.agents.armap.actors import EngineActor
from turngym.agents.armap.budget import Budget
from turngym.agents.armap.generation import Maker, PairSettings, planner_player
from turngym.agents.armap.mcts import Mcts
from turngym.agents.armap.pair_scores import evaluate_pairs
from turngym.agents.armap.planners import BestOfN, Greedy, Sampling
from turngym.agents.armap.records import Pair
from turngym.agents.armap.reward_model import RewardModel
from turngym.agents.armap.reward_training import train_reward_model
from turngym.agents.armap.search import Planner, Tools
from turngym.agents.armap.settings import ReadingSettings, RewardTraining
from turngym.agents.armap.target import Scorer
from turngym.agents.loading import load_model, load_tokenizer
from turngym.agents.render import make_renderer
from turngym.agents.starter import LESSONS, ensure_starter
from turngym.agents.transformers_engine import TransformersEngine
from turngym.algos.evaluate import EvalSet
from turngym.algos.evaluate_planning import Planning
from turngym.benchmarks.stats import paired

WORLD = "Game24-v0"
TOKENS = 160
"""Most sampled tokens of a puzzle, the same for every planner."""
WARM = 0.7
PLANNERS: Mapping[str, Planner] = {
    "greedy": Greedy(),
    "best of n": BestOfN(n=6, temperature=WARM),
    "MCTS": Mcts(rollouts=6, candidates=4),
}


class Player:
    """The policy, and everything that is done with it under one seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.env: gym.Env[Any, Any] = gym.make(WORLD, size="micro")
        tokenizer = load_tokenizer(self.folder)
        engine = TransformersEngine(load_model(self.folder, device="cpu"), tokenizer, max_batch=128)
        self.actor = EngineActor(engine, make_renderer(tokenizer), max_tokens=14)

    def tools(self, scorer: Scorer | None = None) -> Tools:
        return Tools(actor=self.actor.for_search(), scorer=scorer, budget=Budget(tokens=TOKENS))

    def pairs(self, split: str, **how: int) -> list[Pair]:
        """Of the policy's own attempts, ranked by their outcome, and of edited ones."""
        alone = planner_player(Sampling(temperature=WARM), self.tools)
        settings = PairSettings(seed=self.seed, concurrency=128, **how)
        return asyncio.run(Maker(env=self.env, players=[alone], settings=settings).pairs(split))

    def reward(self, pairs: Sequence[Pair]) -> RewardModel:
        model = load_model(self.folder, device="cpu")
        reading = ReadingSettings(max_tokens=256, closing=False)
        tokenizer = load_tokenizer(self.folder, pad="eos")
        reward = RewardModel(model, tokenizer, reading, seed=self.seed)
        train_reward_model(
            reward, pairs, RewardTraining(lr=5e-4, epochs=3, batch=16, seed=self.seed)
        )
        return reward

    def solved(self, planner: Planner, scorer: Scorer) -> list[float]:
        """1 for every held-out puzzle that is solved, else 0."""
        seat = Planning(planner=planner, tools=lambda: self.tools(scorer), concurrency=128)
        found: list[float] = []
        for split in ("dev", "test"):
            what = EvalSet(name=split, env=self.env, split=split, n=1000, seed=self.seed)
            scored = asyncio.run(seat.evaluate(what)).scored
            assert max(episode.tokens for episode in scored) <= TOKENS
            found += [float(episode.status == "solved") for episode in scored]
        return found


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_planners_beat_greedy_at_the_same_limit_of_tokens(tmp_path: Path) -> None:
    folder = ensure_starter(WORLD, settings=LESSONS[WORLD], cache_dir=tmp_path)
    solved: dict[str, list[list[float]]] = {name: [] for name in PLANNERS}
    for seed in range(3):
        player = Player(folder, seed)
        made = player.pairs("train", tasks=1000, tries=4, contrasts=2, edits=1)
        reward = player.reward(made)
        held = evaluate_pairs(
            reward, player.pairs("dev", tasks=1000, tries=4, contrasts=6, edits=0)
        )
        print(f"seed {seed}: {len(made)} pairs; held out {held.accuracy:.3f} of {held.n}")
        for name, planner in PLANNERS.items():
            solved[name].append(player.solved(planner, reward))
            print(f"seed {seed}: {name} {np.mean(solved[name][-1]):.3f}")
    greedy = np.mean(solved["greedy"], axis=0)
    for name in ("best of n", "MCTS"):
        test = paired(np.mean(solved[name], axis=0).tolist(), greedy.tolist())
        print(f"{name} less greedy: {test}")
        assert test.low95 > 0
        assert test.p_value < 0.05
        for ours, theirs in zip(solved[name], solved["greedy"], strict=True):
            assert np.mean(ours) > np.mean(theirs)
