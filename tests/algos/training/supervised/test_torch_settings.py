"""What a script has set for its own tensors changes nothing of what is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import gymnasium as gym
import pytest
import torch
from helpers import bookcase
from helpers.small_models import byte_level, model

from turngym.agents.drrn.settings import DrrnSettings, DrrnTraining
from turngym.agents.paper_selector.examples import PairSettings, rows_of, selector_pairs
from turngym.agents.paper_selector.settings import SelectorSettings
from turngym.agents.planning.records import Pair
from turngym.agents.planning.reward_model import RewardModel
from turngym.agents.planning.settings import ReadingSettings, RewardTraining
from turngym.agents.planning.trajectory import Move, Trajectory
from turngym.algos.training.supervised.drrn import train_drrn
from turngym.algos.training.supervised.reward_model import train_reward_model
from turngym.algos.training.supervised.selector import (
    MICRO,
    MICRO_SHAPE,
    small_model,
    train_selector,
)

Train = Callable[[], torch.nn.Module]


def selector() -> Train:
    rows = rows_of(selector_pairs(bookcase.bookcase(), "train", PairSettings(n=8)), "short")
    shape = replace(MICRO_SHAPE, hidden=16, heads=2, layers=1, inner=16, vocab_size=400)
    made, tokenizer = small_model(rows, shape)

    def train() -> torch.nn.Module:
        how = (SelectorSettings(prompt="short"), replace(MICRO, epochs=1))
        train_selector(made, tokenizer, rows, how)
        return made

    return train


def reward_model() -> Train:
    reading = ReadingSettings(request="?", stub=" ok", max_tokens=128)
    made = RewardModel(model("Qwen2"), byte_level(), reading)
    better, worse = (Trajectory("lamp", (Move(word, " 0"),)) for word in ("answer", "search"))

    def train() -> torch.nn.Module:
        pair = Pair("0", better, worse)
        train_reward_model(made, [pair] * 4, RewardTraining(epochs=1, batch=2))
        return made.model

    return train


def drrn() -> Train:
    env = gym.make("ScienceWorld-v0", size="micro")
    shape = DrrnSettings(buckets=64, embedding=8, hidden=8)
    return lambda: train_drrn(env, shape, DrrnTraining(steps=12, envs=2, batch=4))


@pytest.mark.parametrize("prepare", [selector, reward_model, drrn])
def test_the_weights_are_the_same(
    prepare: Callable[[], Train], request: pytest.FixtureRequest
) -> None:
    first, second = prepare(), prepare()
    usual = first().state_dict()
    request.getfixturevalue("other_torch")
    found = second().state_dict()
    assert {(w.dtype, w.device.type) for w in found.values()} == {(torch.float32, "cpu")}
    assert all(torch.equal(found[name], usual[name]) for name in usual)
