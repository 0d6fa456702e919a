"""Training keeps some groups: right numbers, at the right steps, and without any influence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.training_runs import config, final_weights, numbers, run, same, small
from helpers.walk_world import DiceEngine

from turngym.agents.engines.base import Sampling
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.algos.core.forest import Forest
from turngym.algos.core.forest_io import load_forest, save_forest
from turngym.algos.core.protocols import Start
from turngym.algos.learner.learner import Learner
from turngym.algos.recipes.ppo import ppo
from turngym.algos.rollouts import Demonstrations, EpisodeRunner
from turngym.algos.training.config import Budget
from turngym.algos.training.rollout_dump import SUFFIX, read_dump
from turngym.envs.core.errors import BadValueError


def kept_files(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "trajectories").glob(f"*{SUFFIX}"))


def test_groups_are_kept_with_the_numbers_of_the_step(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model, recipe=small(ppo), budget=Budget(steps=2), keep_rollouts=1)
    run(setup, tmp_path)
    assert kept_files(tmp_path) == [f"step-00000{s}-train{SUFFIX}" for s in (1, 2)]
    stem = tmp_path / "trajectories" / "step-000002-train"
    kept = read_dump(f"{stem}{SUFFIX}")
    assert kept.step == 2
    assert kept.about == {"recipe": "ppo", "env": "Letters-v0", "sampled": True}
    played = load_forest(f"{stem}.jsonl")
    assert len(kept.forest.groups) == 1
    group = played.groups[0]
    assert kept.forest.groups[0].uid == group.uid
    assert {"advantages", "values", "value_targets", "new_logprobs"} <= kept.streams.keys()
    folder = tmp_path / "checkpoints" / "step-000002"
    policy = load_model(str(folder), device="cpu")
    learner = Learner(policy, setup.recipe, pad_id=0, settings=setup.learner)
    for mine, theirs in zip(
        kept.streams["new_logprobs"], learner.logprobs(kept.forest), strict=True
    ):
        assert np.allclose(mine, theirs, atol=1e-5)
    renderer = make_renderer(load_tokenizer(str(tiny_model)))
    for t, tree in enumerate(group.trees):
        for i, turn in enumerate(tree.turns):
            obs, act = kept.pieces[0][t][i]
            assert "".join(act).startswith(turn.action)
            assert "".join(obs) == renderer.text(turn.obs_ids.tolist())


def test_keeping_changes_nothing_and_can_be_left_out(tiny_model: Path, tmp_path: Path) -> None:
    for count in (0, 2):
        run(config(tiny_model, keep_rollouts=count), tmp_path / str(count))
    assert kept_files(tmp_path / "0") == []
    assert len(kept_files(tmp_path / "2")) == 3
    assert numbers(tmp_path / "0") == numbers(tmp_path / "2")
    assert same(final_weights(tmp_path / "0"), final_weights(tmp_path / "2"))


def test_a_negative_number_is_refused(tiny_model: Path) -> None:
    with pytest.raises(BadValueError, match="keep_rollouts is -1"):
        config(tiny_model, keep_rollouts=-1)


def test_the_player_takes_down_what_a_crawl_found(tiny_model: Path, tmp_path: Path) -> None:
    env = gym.make("PaperCrawler-v0", size="micro")
    engine: Any = DiceEngine()
    engine.max_context = 100_000
    renderer = make_renderer(load_tokenizer(str(tiny_model)))
    runner = EpisodeRunner(env, engine, renderer, Sampling(max_tokens=64))
    group = asyncio.run(Demonstrations(n=1)(runner, Start("train", 3, 5, "1/0")))
    turns = group.trees[0].turns
    found = [p for t in turns for d in t.debug_info["crawl"]["actions"] for p in d["found"]]
    assert len(found) == turns[-1].debug_info["crawl"]["queue"] > 0
    save_forest(tmp_path / "x.jsonl", Forest.of([group]))
    back = load_forest(tmp_path / "x.jsonl")
    assert [t.debug_info for t in back.groups[0].trees[0].turns] == [t.debug_info for t in turns]
