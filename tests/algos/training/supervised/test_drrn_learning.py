"""DRRN learns: a password in seconds; the micro science world (slow)."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from turngym.agents.drrn.policy import DrrnPolicy, EpisodeReader
from turngym.agents.drrn.settings import DrrnSettings, DrrnTraining
from turngym.agents.scripted import RandomPolicy, run_episode
from turngym.algos.evaluation.evaluate import EvalSet, evaluate_policy
from turngym.algos.training.supervised.drrn import DrrnProgress, _Slot, train_drrn
from turngym.benchmarks.cli.main import main

SMALL = DrrnSettings(buckets=256, embedding=16, hidden=32)
SHORT = DrrnTraining(steps=80, envs=2, batch=8)


def test_it_learns_a_password() -> None:
    env = gym.make("Password-v0")
    seen: list[DrrnProgress] = []
    net = train_drrn(env, SMALL, DrrnTraining(steps=1500, lr=5e-3), on_progress=seen.append)
    assert run_episode(env, DrrnPolicy(net), seed=0).status == "solved"
    assert (seen[-1].steps, seen[-1].episodes) == (1504, 496)
    assert seen[-1].recent > seen[10].recent


def test_the_same_seed_gives_the_same_network() -> None:
    def trained(seed: int) -> torch.Tensor:
        training = DrrnTraining(steps=80, envs=2, batch=8, seed=seed)
        torch.rand(1)
        net = train_drrn(gym.make("Bandit-v0"), SMALL, training)
        return torch.cat([weights.flatten() for weights in net.parameters()])

    assert torch.equal(trained(3), trained(3))
    assert not torch.equal(trained(3), trained(4))


def test_the_caller_keeps_its_random_state_and_its_environment() -> None:
    env = gym.make("Password-v0")
    env.reset(seed=5)
    digest = env.unwrapped.digest()  # type: ignore[attr-defined]
    before = torch.random.get_rng_state()
    train_drrn(env, SMALL, SHORT)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert env.unwrapped.digest() == digest  # type: ignore[attr-defined]


def test_verdicts_end_the_values_and_the_turn_limit_does_not() -> None:
    net = train_drrn(gym.make("Password-v0"), SMALL, SHORT)

    def last(env: gym.Env[str, str], text: str) -> tuple[bool, float | None]:
        seat = _Slot(env, EpisodeReader(book := net.book(), 4), 0, {"split": "train"})
        for _ in range(200):
            actions = [int(a) for a in seat.situation.actions]
            place = actions.index(book.number(text)) if book.number(text) in actions else 0
            transition, total = seat.take(place)
            if total is not None:
                return transition.after is None, total
        raise AssertionError("the episode does not end")

    micro = {"size": "micro", "tasks": "7-1"}
    limited = gym.make("ScienceWorld-v0", max_turns=3, **micro)
    assert last(limited, "look around")[0] is False
    ended, total = last(gym.make("ScienceWorld-v0", **micro), "focus on air")
    assert (ended, total) == (True, -1.0)


def test_the_command_trains_saves_and_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--size", "micro", "--env.tasks", "7-1", "--steps", "40", "--envs", "2"]
    assert main(["drrn", *words, "--out", "d", "--eval-n", "1"]) == 0
    printed = capsys.readouterr().out
    assert "drrn" in printed
    assert "random" in printed
    play = ["--env", "ScienceWorld-v0", "--size", "micro", "--env.tasks", "7-1", "--n", "1"]
    assert main(["eval", "--agent", "drrn:d", *play]) == 0
    assert "drrn:d" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_beats_random_in_the_micro_science_world(seed: int) -> None:
    torch.set_num_threads(1)
    env = gym.make("ScienceWorld-v0", size="micro")
    net = train_drrn(env, DrrnSettings(), DrrnTraining(steps=3000, seed=seed))
    what = EvalSet(name="dev", env=env, split="dev", n=50)
    ours = evaluate_policy(what, lambda _: DrrnPolicy(net))
    theirs = evaluate_policy(what, RandomPolicy)
    print(f"seed {seed}: {ours.score().model_dump()} random {theirs.score().model_dump()}")
    assert np.isfinite(ours.mean("reached"))
    assert ours.mean("reached") > theirs.mean("reached") + 10
    assert ours.score().return_.low95 > theirs.score().return_.high95
