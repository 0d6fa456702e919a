"""Demonstrations as a rollout, and filters and trackers in the loop."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.forests import tree, turn
from helpers.letters_world import Letters
from helpers.training_runs import Killed, config, final_weights, kill_after, numbers, run, same
from helpers.walk_world import DiceEngine, Walk, WalkRenderer

from turngym.agents.engines.base import Sampling
from turngym.agents.models.loading import load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.algos.core.filters import DynamicSampling
from turngym.algos.core.forest import Edge, Forest, Group, Tree
from turngym.algos.core.protocols import Start
from turngym.algos.core.recipe import Recipe
from turngym.algos.recipes import dapo, make_recipe, pasa, ppo, sft, spo
from turngym.algos.rollouts import Demonstrations, EpisodeRunner, SpokenDemonstrations
from turngym.algos.rollouts.collect import play_step
from turngym.algos.rollouts.step_limits import Played, StepLimits
from turngym.algos.rollouts.task_order import OrderedTasks
from turngym.algos.rollouts.value_tracker import BetaMemory
from turngym.algos.runs.metrics import OF_SAMPLING
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, UnknownNameError


def test_the_expert_s_episodes_are_rendered_as_the_model_would_write_them(
    tiny_model: Path,
) -> None:
    env = gym.make("SearchQA-v0", size="micro")
    renderer = make_renderer(load_tokenizer(str(tiny_model)))
    engine: Any = DiceEngine()
    runner = EpisodeRunner(env, engine, renderer, Sampling(max_tokens=64))
    start = Start("train", 3, 5, "1/0")
    group = asyncio.run(Demonstrations(n=2)(runner, start))
    forest = Forest.of([group])
    assert engine.requests == 0
    assert [forest.turns(p)[-1].status for p in forest] == ["solved", "solved"]
    for path in forest:
        for t in forest.turns(path):
            assert renderer.text(t.act_ids.tolist()) == t.action
            assert t.action.endswith(env.unwrapped.stop)  # type: ignore[attr-defined]
            assert t.stop == "stop"
            assert not t.logprobs.any()
    assert (forest.turns(forest.paths[0])[0].obs_ids == group.trees[1].turns[0].obs_ids).all()


def test_mistakes_differ_between_the_episodes_of_a_task(tiny_model: Path) -> None:
    env = gym.make("SearchQA-v0", size="micro")
    renderer = make_renderer(load_tokenizer(str(tiny_model)))
    engine: Any = DiceEngine()
    runner = EpisodeRunner(env, engine, renderer, Sampling(max_tokens=64))
    rollout = Demonstrations(n=8, mistakes=0.8)
    groups = [asyncio.run(rollout(runner, Start("train", 3, 5, "1/0"))) for _ in range(2)]
    said = [[tuple(t.action for t in tree.turns) for tree in g.trees] for g in groups]
    assert said[0] == said[1]
    assert len(set(said[0])) > 1


def test_an_interrupt_ends_a_group_behind_the_episode_that_plays() -> None:
    """The expert waits for nothing, so that Ctrl-C found no gap within a group."""
    played: list[int] = []

    class Taught(Walk):
        def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
            played.append(seed)
            if len(played) == 2:
                signal.raise_signal(signal.SIGINT)
            return lambda env, observation, info: "aa"

    engine: Any = DiceEngine()
    renderer: Any = WalkRenderer()
    runner = EpisodeRunner(Taught(2), engine, renderer, Sampling(max_tokens=9))
    starts = [Start("train", task, 5, str(task)) for task in range(3)]
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(runner.groups(Demonstrations(n=8), starts))
    assert len(played) <= 3


def test_an_action_without_a_stop_string_ends_with_end_of_text() -> None:
    class Taught(Walk):
        def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
            return lambda env, observation, info: "aa" if "<" in observation else "b!"

    renderer: Any = WalkRenderer()
    engine: Any = DiceEngine()
    runner = EpisodeRunner(Taught(2), engine, renderer, Sampling(max_tokens=9))
    group = asyncio.run(Demonstrations()(runner, Start("train", 1, 5, "u")))
    acts = [t.act_ids.tolist() for t in group.trees[0].turns]
    assert acts == [[98, 33], [97, 97, renderer.eos_id]]


def test_the_sessions_that_the_expert_opens_hang_by_spawn(tiny_model: Path) -> None:
    env = gym.make("Spawn-v0", size="micro")
    renderer = make_renderer(load_tokenizer(str(tiny_model)))
    engine: Any = DiceEngine()
    runner = EpisodeRunner(env, engine, renderer, Sampling(max_tokens=64))
    forest = Forest.of([asyncio.run(Demonstrations(n=2)(runner, Start("train", 1, 5, "1/0")))])
    for shown in forest.groups[0].trees:
        (end,) = shown.finals()
        assert shown.episode(end) == tuple(range(len(shown.turns)))
        assert shown.turns[end].status == "solved"
        assert {t.edge for t in shown.turns} == {Edge.CONTINUE, Edge.SPAWN}
        assert any(t.spawned for t in shown.turns)
    assert len(forest.paths) > len(forest.groups[0].trees)


def test_a_world_without_an_expert_is_refused_before_anything_is_written(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadValueError, match="no scripted expert"):
        Demonstrations().check(Walk(2))
    with pytest.raises(BadValueError, match="no scripted expert"):
        SpokenDemonstrations(player="looker").check(Walk(2))
    with pytest.raises(UnknownNameError, match="'looker'"):
        SpokenDemonstrations(player="looker").check(Letters())
    monkeypatch.delattr("helpers.letters_world.Letters.expert")
    with pytest.raises(BadValueError, match="no scripted expert"):
        Trainer(config(tiny_model, recipe=little(sft())), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    for bad in ({"n": 0}, {"mistakes": 1.5}):
        with pytest.raises(BadValueError):
            Demonstrations(**bad)


def little(recipe: Recipe, **more: Any) -> Recipe:
    optim = dataclasses.replace(
        recipe.optim, lr=1e-3, critic_lr=1e-3, warmup_steps=0, minibatches=1
    )
    return dataclasses.replace(recipe, groups_per_step=3, optim=optim, **more)


def test_supervised_training_lowers_the_likelihood_loss(tiny_model: Path, tmp_path: Path) -> None:
    run(config(tiny_model, recipe=little(sft())), tmp_path / "run")
    losses = [row["loss/nll"] for row in numbers(tmp_path / "run") if "loss/nll" in row]
    assert losses[-1] < losses[0]  # type: ignore[operator]
    # nothing was sampled, so there is nothing to compare the learner with
    assert not any(OF_SAMPLING & row.keys() for row in numbers(tmp_path / "run"))


def test_groups_that_are_left_out_are_played_anew_and_paid_for(
    tiny_model: Path, tmp_path: Path
) -> None:
    recipe = make_recipe("dapo", {"rollout.n": 2, "filter.max_rounds": 3})
    run(config(tiny_model, recipe=little(recipe)), tmp_path / "run")
    rows = [row for row in numbers(tmp_path / "run") if "rollout/rounds" in row]
    assert len(rows) == 4
    for row in rows:
        rounds, left = row["rollout/rounds"], row["rollout/groups_left_out"]
        assert row["rollout/groups"] == 3 * rounds  # type: ignore[operator]
        assert left >= 3 * (rounds - 1)  # type: ignore[operator]
    assert any(row["rollout/rounds"] > 1 for row in rows)  # type: ignore[operator]
    assert rows[-1]["budget/tokens"] == sum(row["rollout/tokens"] for row in rows)  # type: ignore[misc]


def test_a_filter_sees_episodes_not_their_sessions() -> None:
    """One episode of three sessions is a single one, which is kept; two equal ones are not."""

    def episode(reward: float) -> Tree:
        first = turn(0.0, spawned=(np.array([5]),))
        return tree(first, turn(reward, parent=0, edge=Edge.SPAWN, previous=0, status="solved"))

    def kept(*rewards: float) -> int:
        group = Group("u", "t", [episode(r) for r in rewards])

        async def groups(rollout: Any, starts: Any, *_: Any) -> list[Group]:
            return [group for _ in starts]

        recipe: Any = SimpleNamespace(
            rollout=None,
            filter=DynamicSampling(max_rounds=1),
            groups_per_step=1,
            tokens_per_step=None,
        )
        runner: Any = SimpleNamespace(groups=groups)
        played = play_step(recipe, runner, OrderedTasks(0, "train", 1), Played(), StepLimits())
        return len(asyncio.run(played).trained.groups)

    assert kept(1.0) == 1
    assert kept(1.0, 1.0) == 0
    assert kept(1.0, 0.0) == 1


def test_a_tracker_s_memory_survives_being_killed(tiny_model: Path, tmp_path: Path) -> None:
    recipe = little(make_recipe("spo", {"tracker.pool": 6, "tracker.first": 2}))
    setup = config(tiny_model, recipe=recipe)
    straight = run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "killed") as trainer:
        kill_after(trainer, 3)
        with pytest.raises(Killed):
            trainer.run()
    resumed = run(setup, tmp_path / "killed")
    assert numbers(tmp_path / "straight") == numbers(tmp_path / "killed")
    assert same(final_weights(tmp_path / "straight"), final_weights(tmp_path / "killed"))
    assert (straight.sampled_tokens, straight.env_turns) == (
        resumed.sampled_tokens,
        resumed.env_turns,
    )
    rows = [row for row in numbers(tmp_path / "straight") if "tracker/value_mean" in row]
    assert len(rows) == 4
    assert any(row["tracker/drift_mean_nats"] > 0 for row in rows)  # type: ignore[operator]


@pytest.mark.parametrize("where", ["between parts", "after all"])
def test_an_interrupt_around_the_first_episodes_pays_them_once(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    recipe = little(make_recipe("spo", {"tracker.pool": 6, "tracker.first": 2}))
    setup = config(tiny_model, recipe=recipe)
    run(setup, tmp_path / "straight")
    monkeypatch.setattr(
        "turngym.algos.rollouts.collect.FIRST_AT_ONCE", 5
    )  # three parts change nothing
    inner, parts = BetaMemory.score_first, []

    def cut_off(memory: BetaMemory, part: Forest) -> None:
        inner(memory, part)
        parts.append(part)
        if len(parts) == 2:
            raise KeyboardInterrupt

    def no_step() -> dict[str, float]:
        raise KeyboardInterrupt

    with Trainer(setup, tmp_path / "broken") as trainer:
        if where == "after all":
            trainer.train_step = no_step  # type: ignore[method-assign]
        else:
            monkeypatch.setattr(BetaMemory, "score_first", cut_off)
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    monkeypatch.undo()
    run(setup, tmp_path / "broken")
    assert numbers(tmp_path / "straight") == numbers(tmp_path / "broken")
    assert same(final_weights(tmp_path / "straight"), final_weights(tmp_path / "broken"))


def test_further_rounds_of_playing_survive_being_killed(tiny_model: Path, tmp_path: Path) -> None:
    recipe = little(make_recipe("dapo", {"rollout.n": 2, "filter.max_rounds": 3}))
    setup = config(tiny_model, recipe=recipe)
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "killed") as trainer:
        kill_after(trainer, 3)
        with pytest.raises(Killed):
            trainer.run()
    run(setup, tmp_path / "killed")
    assert numbers(tmp_path / "straight") == numbers(tmp_path / "killed")
    assert same(final_weights(tmp_path / "straight"), final_weights(tmp_path / "killed"))


def test_the_critic_can_learn_first(tiny_model: Path, tmp_path: Path) -> None:
    recipe = little(ppo())
    optim = dataclasses.replace(recipe.optim, critic_only_steps=4)
    frozen = dataclasses.replace(recipe, optim=optim)
    with Trainer(config(tiny_model, recipe=frozen), tmp_path / "frozen") as trainer:
        assert trainer.learner.critic is not None
        before = {k: v.clone() for k, v in trainer.learner.policy.state_dict().items()}
        value = trainer.learner.critic.head.weight.clone()
        rates = [trainer.train_step()["update/lr"] for _ in range(4)]
        assert rates == [0.0] * 4  # before, the rate that it would have had
        after = trainer.learner.policy.state_dict()
        assert all(bool((before[k] == after[k]).all()) for k in before)
        assert not bool((value == trainer.learner.critic.head.weight).all())
        assert trainer.train_step()["update/lr"] > 0
        after = trainer.learner.policy.state_dict()
        assert not all(bool((before[k] == after[k]).all()) for k in before)


def test_illegal_pairs_are_refused_with_the_reason() -> None:
    with pytest.raises(BadValueError, match="only one of"):
        dataclasses.replace(spo(), filter=dapo().filter)
    with pytest.raises(BadValueError, match="SpawnedValues"):
        dataclasses.replace(pasa(), annotators=ppo().annotators)
    with pytest.raises(BadValueError, match="tracker"):
        dataclasses.replace(spo(), tracker=None)
    optim = dataclasses.replace(sft().optim, critic_only_steps=1)
    with pytest.raises(BadValueError, match="no critic"):
        dataclasses.replace(sft(), optim=optim)
