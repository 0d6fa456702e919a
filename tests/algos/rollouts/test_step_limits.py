"""Steps that end with a number of tokens: which groups they play, and how many at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from helpers.forests import tree, turn
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Start
from turngym.algos.core.recipe import Recipe
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts.collect import RolloutBatch, play_step
from turngym.algos.rollouts.step_limits import EMPTY_IN_A_ROW, Amount, Played, StepLimits
from turngym.algos.rollouts.task_order import OrderedTasks
from turngym.algos.rollouts.value_tracker import BetaTracker
from turngym.envs.core.errors import BadValueError

TASKS = OrderedTasks(0, "train", None)
SIZES = st.lists(st.integers(1, 60), min_size=4, max_size=30)
FREE = StepLimits()
NEW = Played()


@dataclass
class Runner:
    """Plays groups whose tokens are a function of their start; 0 stands for a broken one."""

    sizes: Sequence[int]
    blocks: list[int] = field(default_factory=list)
    equal: Sequence[bool] = (False,)

    async def groups(self, rollout: Any, starts: Sequence[Start]) -> list[Group]:
        self.blocks.append(len(starts))
        return [self.group(start) for start in starts]

    def group(self, start: Start) -> Group:
        size = self.sizes[start.seed % len(self.sizes)]
        if size == 0:
            return Group(start.uid, "t", faults=1)
        lost = 1.0 if self.equal[start.seed % len(self.equal)] else 0.0
        paths = [tree(turn(1.0, n=size, status="solved")), tree(turn(lost, n=1, status="failed"))]
        return Group(start.uid, "t", paths)


def play(
    recipe: Recipe, runner: Runner, before: Played = NEW, left: StepLimits = FREE
) -> RolloutBatch:
    played = play_step(recipe, runner, TASKS, before, left)  # type: ignore[arg-type]
    return asyncio.run(played)


def by_tokens(tokens: int, name: str = "grpo") -> Recipe:
    return make_recipe(name, {"tokens_per_step": tokens}, small=True)


def uids(batch: RolloutBatch) -> list[str]:
    return [group.uid for group in batch.all.groups]


@settings(max_examples=40)
@given(SIZES, st.integers(1, 400), st.integers(1, 12))
def test_steps_end_with_the_group_that_reaches_the_next_multiple(
    sizes: list[int], share: int, steps: int
) -> None:
    recipe, runner, before, seen = by_tokens(share), Runner(sizes), NEW, []
    for _ in range(steps):
        batch = play(recipe, runner, before)
        amounts = [Amount.of([group]).tokens for group in batch.all.groups]
        goal = (before.total.tokens // share + 1) * share
        assert before.total.tokens + sum(amounts[:-1]) < goal <= before.total.tokens + sum(amounts)
        assert batch.share == 1.0
        seen += uids(batch)
        before = before.after(batch.all.groups)
    # one order over all steps: no place is played twice or passed over
    assert [int(uid.split("/")[1]) for uid in seen] == list(range(len(seen)))
    assert before.total.tokens <= before.steps * (share + 60)  # 60 beyond a multiple at most


@settings(max_examples=40)
@given(SIZES, st.integers(1, 900), st.integers(0, 3000), st.integers(1, 40))
def test_the_groups_of_a_step_do_not_depend_on_what_is_played_at_once(
    sizes: list[int], share: int, guess: int, groups: int
) -> None:
    recipe = by_tokens(share)
    alone, guided = Runner(sizes), Runner(sizes)
    one = play(recipe, alone)
    other = play(recipe, guided, Played(last=Amount(guess, guess, groups)))
    assert uids(one) == uids(other)
    played = sum(guided.blocks) - len(other.all.groups)
    assert (other.unused_tokens > 0) == (played > 0)


def test_few_blocks_are_played_and_few_tokens_dropped() -> None:
    runner = Runner([20, 30, 25, 22, 28, 35, 15, 24])
    recipe, before, dropped = by_tokens(500), NEW, 0
    for _ in range(40):
        batch = play(recipe, runner, before)
        dropped += batch.unused_tokens
        before = before.after(batch.all.groups)
    assert len(runner.blocks) / 40 < 2.5
    assert dropped / before.total.tokens < 0.03


@settings(max_examples=40)
@given(SIZES, st.integers(1, 900), st.sampled_from([None, 50, 300]), st.booleans())
def test_a_budget_ends_within_a_step_and_passes_by_one_group_at_most(
    sizes: list[int], tokens: int, share: int | None, filtered: bool
) -> None:
    recipe = make_recipe(
        "dapo" if filtered else "grpo", {"tokens_per_step": share, "groups_per_step": 4}, small=True
    )
    runner, before = Runner(sizes, equal=(True, False, True)), NEW
    while before.total.tokens < tokens:
        left = StepLimits(tokens=tokens - before.total.tokens)
        batch = play(recipe, runner, before, left)
        last = Amount.of([batch.all.groups[-1]]).tokens
        before = before.after(batch.all.groups)
        assert before.total.tokens - last < tokens
        assert 0 <= batch.share <= 1
        assert len(batch.trained.groups) <= 4 or share is not None
    empty = play(recipe, runner, before, StepLimits(tokens=tokens - before.total.tokens))
    assert not empty.all.groups


def test_turns_are_a_limit_too_and_the_nearer_one_counts() -> None:
    runner = Runner([10])
    recipe = make_recipe("grpo", {"groups_per_step": 8}, small=True)
    batch = play(recipe, runner, left=StepLimits(tokens=1000, turns=5))  # two turns a group
    assert len(batch.all.groups) == 3
    assert batch.share == pytest.approx(3 / 8)
    assert len(play(recipe, runner, left=StepLimits(tokens=35, turns=100)).all.groups) == 4
    assert len(play(recipe, runner, left=StepLimits(turns=100)).all.groups) == 8


def test_without_limits_a_step_is_one_block() -> None:
    runner = Runner([10, 20])
    batch = play(make_recipe("grpo", {"groups_per_step": 8}, small=True), runner)
    assert runner.blocks == [8]
    assert batch.share == 1.0
    assert batch.metrics() == {}


def test_groups_that_a_filter_leaves_out_count_as_tokens() -> None:
    runner = Runner([10], equal=(True, False))
    batch = play(by_tokens(110, "dapo"), runner)
    assert len(batch.all.groups) == 10
    assert 0 < len(batch.trained.groups) < 10
    assert batch.metrics()["rollout/rounds"] == 1


def test_a_world_that_is_always_broken_ends_the_step() -> None:
    batch = play(by_tokens(100), Runner([0]))
    assert len(batch.all.groups) == EMPTY_IN_A_ROW
    assert not batch.trained.paths


def test_places_of_an_order_and_of_a_tracker_do_not_depend_on_the_blocks() -> None:
    memory = BetaTracker(pool=12, first=0).start(3, "train", 12, (0.0, 1.0))
    memory.beliefs = {i: (0.1 + i, 4.0) for i in range(12)}
    for tasks in (OrderedTasks(3, "train", 10), OrderedTasks(3, "train", None), memory):
        whole = tasks.starts_from(2, 7, 0, 12)
        cut = [tasks.starts_from(2, 7, at, n) for at, n in ((0, 1), (1, 5), (6, 6))]
        assert whole == list(itertools.chain(*cut))
        assert len({start.uid for start in whole}) == 12
    assert len({s.task for s in memory.starts_from(2, 7, 0, 12)}) == 12
    beyond = memory.starts_from(2, 0, 10, 20)  # the pool ends, and is drawn anew
    assert beyond == memory.starts_from(2, 0, 0, 30)[10:]
    assert len({s.task for s in beyond[2:14]}) == 12
    assert len({(s.task, s.seed) for s in memory.starts_from(2, 0, 0, 30)}) == 30


def test_an_order_goes_on_over_the_steps() -> None:
    tasks = OrderedTasks(1, "train", 5)
    one = [s.task for s in (*tasks.starts_from(1, 0, 0, 3), *tasks.starts_from(2, 3, 0, 7))]
    assert sorted(one[:5]) == sorted(one[5:]) == list(range(5))


@pytest.mark.parametrize("value", [0, -5])
def test_a_share_of_no_tokens_is_refused(value: int) -> None:
    with pytest.raises(BadValueError, match="tokens_per_step is"):
        by_tokens(value)


def test_the_setting_is_typed_like_any_other() -> None:
    assert make_recipe("grpo", {"tokens_per_step": "300"}).tokens_per_step == 300
    assert make_recipe("grpo", {"tokens_per_step": "none"}).tokens_per_step is None
    with pytest.raises(BadValueError, match="tokens_per_step: got 'many'"):
        make_recipe("grpo", {"tokens_per_step": "many"})
