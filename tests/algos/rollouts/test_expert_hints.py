"""Demonstrations in rollouts: from the policy's own state, unseen by it, only where asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from turngym.agents.models.random_init import BlankSettings, blank_model
from turngym.agents.models.tokenizer import EOS
from turngym.agents.scripted import text_env
from turngym.algos.core.privileged import ContextLogprobs
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts import episode_runner
from turngym.algos.rollouts.expert_hints import CLOSING, OPENING, demonstrate
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.policy import check_teacher
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError

LITTLE = BlankSettings(hidden=16, layers=1, inner=16, episodes=10, context=256)


def actions(env: Any, seed: int = 0, **settings: Any) -> list[str]:
    shown = asyncio.run(demonstrate(env, ContextLogprobs(**settings), seed))
    opening = ContextLogprobs().intro + OPENING
    assert shown.startswith(opening)
    assert shown.endswith(CLOSING)
    return shown.removeprefix(opening).removesuffix(CLOSING).split("\n")


def opened(env_id: str, task: int = 0, **settings: Any) -> Any:
    env = gym.make(env_id, size="micro", **settings)
    env.reset(seed=3, options={"split": "train", "task": task})
    return env


def test_it_goes_on_from_where_the_policy_stands() -> None:
    env = opened("Rare-v0", doors=4)
    code = actions(env)
    assert len(code) == 4
    wrong = next(letter for letter in "abc" if letter != code[0])
    env.step(wrong)  # off the expert's way
    before = text_env(env).state_digest()
    assert actions(env) == code[1:]
    assert actions(env, actions=2) == code[1:3]
    assert text_env(env).state_digest() == before
    for right, told in zip(code[1:], actions(env, mistakes=1.0), strict=True):
        assert told != right  # the control


def test_following_it_solves_the_task() -> None:
    for env_id in ("Keys-v0", "Recall-v0", "SearchQA-v0"):
        env = opened(env_id)
        for action in actions(env, actions=30):
            _, _, over, cut, info = env.step(action)
            assert not cut
        assert over
        assert info["status"] == "solved"


def test_it_ends_with_the_session() -> None:
    env = opened("Spawn-v0")
    session = text_env(env).episode.info({}, {})["session"]
    for action in actions(env, actions=50)[:-1]:
        info = env.step(action)[-1]
        assert info["session"] == session


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("blank")
    blank_model(EnvConfig(id="Rare-v0", settings={"doors": 3}).make(), folder, LITTLE)
    return str(folder)


def setup(model: str, name: str, **settings: Any) -> TrainConfig:
    plain = {"groups_per_step": 6, "optim.lr": 1e-2, "optim.warmup_steps": 0}
    return TrainConfig(
        env=EnvConfig(id="Rare-v0", settings={"doors": 3}),
        model=model,
        recipe=make_recipe(name, plain | settings, small=True),
        budget=Budget(steps=2),
        max_tokens=1,
        checkpoint_every=100,
        engine_dtype="float32",
        device="cpu",
        learner=LearnerSettings(precision="float32"),
    )


def test_turns_hold_what_the_teacher_sees_and_the_policy_does_not(
    model: str, tmp_path: Path
) -> None:
    with Trainer(setup(model, "opsd"), tmp_path / "run") as trainer:
        forest = trainer.pipeline.call(lambda: trainer._play(1)).played.trained
        for path in forest:
            texts = [trainer.tokenizer.decode(t.hinted_prompt) for t in forest.turns(path)]
            # the tags are no words of this tokenizer, the letters are
            told = [
                [line for line in text.split("\n") if line in ("a", "b", "c")] for text in texts
            ]
            assert [len(letters) for letters in told] == [3, 2, 1]
            assert told[0][1:] == told[1]
            for turn in forest.turns(path):
                assert "\na\n" not in trainer.tokenizer.decode(turn.obs_ids)
        own = trainer.learner.logprobs(forest)
        behind = ContextLogprobs()(forest, trainer.learner)["context_logprobs"]
        assert any((a != b).any() for a, b in zip(own, behind, strict=True))
        trainer.train_step()
    (row,) = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert row["update/grad_norm"] > 0
    # at the first step the mean shift is that of the log-probabilities just scored
    shifts = np.concatenate(own) - np.concatenate(behind)
    assert row["loss/teacher_kl_nats"] == pytest.approx(float(shifts.mean()), abs=1e-3)
    assert row["loss/distill_dropped_frac"] == 0.0


def test_a_demonstration_that_spells_the_end_of_text_does_not_end_it(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def quotes(*_: Any) -> str:
        return f"{OPENING}a {EOS} b{CLOSING}"

    monkeypatch.setattr(episode_runner, "demonstrate", quotes)
    with Trainer(setup(model, "opsd"), tmp_path / "run") as trainer:
        forest = trainer.pipeline.call(lambda: trainer._play(1)).played.trained
        prompts = [turn.hinted_prompt for path in forest for turn in forest.turns(path)]
        assert all(len(ids) and trainer.renderer.eos_id not in ids for ids in prompts)


def test_nobody_demonstrates_where_nobody_asks(model: str, tmp_path: Path) -> None:
    with Trainer(setup(model, "grpo"), tmp_path / "run") as trainer:
        forest = trainer.pipeline.call(lambda: trainer._play(1)).played.trained
        assert not any(len(t.hinted_prompt) for p in forest for t in forest.turns(p))


def test_a_teacher_scores_what_the_policy_sampled(model: str, tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="Name a model"):
        Trainer(setup(model, "opd"), tmp_path / "none")
    taught = setup(model, "opd", **{"teacher_logprobs.model": model})
    with Trainer(taught, tmp_path / "run") as trainer:
        forest = trainer.pipeline.call(lambda: trainer._play(1)).played.trained
        mine, theirs = trainer.learner.logprobs(forest), trainer.learner.teacher_logprobs(forest)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
        row = trainer.train_step()
        assert row["update/grad_norm"] == pytest.approx(0.0, abs=1e-4)
        held = trainer.learner.models.teacher
        assert held is not None
        assert not any(p.requires_grad for p in held.model.parameters())
        with pytest.raises(BadValueError, match="no teacher is held"):
            Learner(trainer.learner.policy, make_recipe("grpo"), pad_id=0).teacher_logprobs(forest)
        other: Any = type("Other", (), {"get_vocab": lambda self: {"a": 0}})()
        with pytest.raises(BadValueError, match="another tokenizer"):
            check_teacher(model, other)
        check_teacher(None, other)


def test_an_environment_without_an_expert_is_refused() -> None:
    env = text_env(gym.make("Rare-v0"))

    class Alone(type(env)):  # type: ignore[misc]
        def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
            raise NotImplementedError

    with pytest.raises(BadValueError, match="no scripted expert"):
        make_recipe("opsd").check(Alone())
