"""States of turns: recorded where a credit reads them, in training and in rollout actors alike."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from helpers.talk_world import LetterRenderer, ScriptEngine, Talk
from helpers.training_runs import config, run, small

from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import Forest, Group, Turn
from turngym.algos.core.protocols import Annotations, Credits, Start
from turngym.algos.core.recipe import Recipe
from turngym.algos.credit import GroupCredit
from turngym.algos.ray.actor import RolloutActor
from turngym.algos.ray.work import Work
from turngym.algos.recipes.grpo import grpo
from turngym.algos.rollouts import Branch, Chains, EpisodeRunner
from turngym.envs.core.episode import GoldAnswer
from turngym.envs.core.errors import BadValueError

START = Start("train", 2, 5, "u")
SEEN: list[str] = []


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateReader(GroupCredit):
    """Notes the states of the turns that it gives credit for."""

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {"states"}

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        SEEN.extend(turn.state for path in forest for turn in forest.turns(path))
        return super().__call__(forest, annotations)


def reading() -> Recipe:
    return dataclasses.replace(small(grpo), credit=StateReader())


def play(rollout: Any, *actions: str, **more: Any) -> list[Turn]:
    renderer: Any = LetterRenderer()
    engine = ScriptEngine(actions)
    runner = EpisodeRunner(Talk(), engine, renderer, Sampling(max_tokens=8), **more)
    group: Group = asyncio.run(rollout(runner, START))
    return [turn for tree in group.trees for turn in tree.turns]


def test_a_turn_holds_the_state_before_its_action() -> None:
    turns = play(Chains(n=1), "x.", "yy.", "f.", record_states=True)
    env = Talk()
    env.reset(seed=5, options={"split": "train", "task": 2})
    for turn in turns:
        assert turn.state == env.state_digest()
        env.step(turn.action)
    assert len({turn.state for turn in turns}) == 3


@pytest.mark.parametrize("end", ["f.", "s.", "x."])
def test_the_last_turn_holds_the_state_at_the_end(end: str) -> None:
    turns = play(Chains(n=1), "x.", *[end] * 5, record_states=True)
    env = Talk()
    env.reset(seed=5, options={"split": "train", "task": 2})
    for turn in turns:
        env.step(turn.action)
    assert turns[-1].status == {"f.": "failed", "s.": "solved", "x.": "truncated"}[end]
    assert turns[-1].end_state == env.state_digest()
    assert {turn.end_state for turn in turns[:-1]} == {""}


def test_an_episode_that_leaves_no_room_holds_the_state_it_was_left_in() -> None:
    renderer: Any = LetterRenderer()
    sampling = Sampling(max_tokens=8)
    runner = EpisodeRunner(Talk(), ScriptEngine(["x."] * 9), renderer, sampling, 20, True)
    group: Group = asyncio.run(Chains(n=1)(runner, START))
    last = group.trees[0].turns[-1]
    assert last.overflow
    env = Talk()
    env.reset(seed=5, options={"split": "train", "task": 2})
    for turn in group.trees[0].turns:
        env.step(turn.action)
    assert last.end_state == env.state_digest()


class Answered(Talk):
    """Every task has two accepted answers."""

    has_gold = True
    opener = "<"

    def gold_answers(self, episode: Any) -> list[GoldAnswer]:
        return [GoldAnswer("<", f"{episode.task.payload}>"), GoldAnswer(self.opener, "no")]


class WritingRenderer(LetterRenderer):
    def write(self, text: str) -> list[int]:
        return [ord(c) for c in text]


def golden(world: Talk) -> list[Turn]:
    renderer: Any = WritingRenderer()
    engine = ScriptEngine(["x.", "r.", "y.", "f."])
    runner = EpisodeRunner(world, engine, renderer, Sampling(max_tokens=8))
    runner.record_gold = True
    return asyncio.run(Chains(n=1)(runner, START)).trees[0].turns


def test_contexts_begin_with_the_accepted_answers() -> None:
    turns = golden(Answered())
    begins = [turn.parent == -1 or turn.edge == "spawn" for turn in turns]
    assert begins == [True, False, True, False]
    for turn, begin in zip(turns, begins, strict=True):
        texts = ["".join(map(chr, answer)) for answer in turn.gold]
        assert texts == (["2>", "no"] if begin else [])
        assert turn.gold_opener.tolist() == ([ord("<")] if begin else [])
    assert {turn.gold for turn in play(Chains(n=1), "x.", "f.")} == {()}


def test_answers_behind_different_openers_and_tasks_without_are_refused() -> None:
    world = Answered()
    world.opener = "("
    with pytest.raises(BadValueError, match=r"2 accepted answers.*behind the same opener"):
        golden(world)
    with pytest.raises(BadValueError, match="0 accepted answers"):
        golden(Talk())


def test_nothing_is_computed_where_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("turngym.envs.core.env.TextEnv.state_digest")
    assert {turn.state for turn in play(Chains(n=2), "x.", "f.", "x.", "f.")} == {""}


def test_both_sides_of_a_fork_have_the_state_of_the_fork() -> None:
    plan = Branch(initial=1, budget=4, alpha=1.0)
    turns = play(plan, *["x."] * 30, record_states=True)
    by_parent: dict[int, set[str]] = {}
    for turn in turns:
        by_parent.setdefault(turn.parent, set()).add(turn.state)
    assert len(turns) > len(by_parent)
    assert all(len(states) == 1 and "" not in states for states in by_parent.values())


def test_a_credit_that_reads_states_gets_them(tiny_model: Path, tmp_path: Path) -> None:
    SEEN.clear()
    setup = config(tiny_model, recipe=reading(), evals=())
    assert setup.recipe.reads_states
    assert not small(grpo).reads_states
    assert setup.recipe.needs == small(grpo).needs
    run(dataclasses.replace(setup, budget=dataclasses.replace(setup.budget, steps=1)), tmp_path)
    assert SEEN
    assert all(len(state) == 32 for state in SEEN)


@pytest.mark.parametrize(("scene", "recorded"), [("", True), ("dev", False)])
def test_a_rollout_actor_records_them_in_training_only(
    tiny_model: Path, scene: str, recorded: bool
) -> None:
    setup = config(tiny_model, recipe=reading())
    actor = RolloutActor(lambda: setup)
    asyncio.run(actor.take(0, None))
    split = "dev" if scene else "train"
    work = Work(scene, Chains(n=1), Start(split, 0, 5, "u"), 0)
    group = asyncio.run(actor.play(work)).group
    assert {bool(turn.state) for turn in group.trees[0].turns} == {recorded}
