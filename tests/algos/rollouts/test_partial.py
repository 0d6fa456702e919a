"""Partial rollouts: who is trained when, under which weights, over restarts; and refusals."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helpers import straggler_world
from helpers.training_runs import (
    Killed,
    config,
    final_weights,
    kill_after,
    numbers,
    run,
    same,
    small,
)

from turngym.algos.core.annotators import OldLogprobs
from turngym.algos.core.forest import Forest, Group
from turngym.algos.recipes import make_recipe
from turngym.algos.recipes.grpo import grpo
from turngym.algos.rollouts import Chains
from turngym.algos.rollouts.partial import PartialRollouts, check_partial
from turngym.algos.runs.process_group import Ranks
from turngym.algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from turngym.algos.training.engines import make_partial
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, DataError

assert straggler_world.Stragglers
ENV = EnvConfig(id="Stragglers-v0")
SHARE = 0.3


def setup(model: Path, share: float | None, steps: int = 4, **more: Any) -> TrainConfig:
    """Six groups a step, of 1 to 4 turns."""
    recipe = replace(small(grpo), groups_per_step=6, rollout=Chains(n=2))
    given: dict[str, Any] = {"env": ENV, "recipe": recipe, "budget": Budget(steps=steps)}
    given |= {"evals": (), "checkpoint_every": 1, "partial_rollouts": share, "max_tokens": 4}
    return config(model, **{**given, **more})


def watched(trainer: Trainer) -> list[Forest]:
    """The forests that the trainer's updates are given."""
    found: list[Forest] = []
    learn = trainer._learn

    def seen(forest: Forest, *given: Any) -> Any:
        found.append(forest)
        return learn(forest, *given)

    trainer._learn = seen  # type: ignore[method-assign]
    return found


class Whole(NamedTuple):
    """An undisturbed run: its folder, what it trained on, and what was left at the end."""

    folder: Path
    forests: list[Forest]
    left: list[Group]


@pytest.fixture(scope="module")
def whole(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("partial") / "whole"
    with Trainer(setup(tiny_model, SHARE), folder) as trainer:
        assert trainer.partial is not None
        forests = watched(trainer)
        trainer.run()
        return Whole(folder, forests, [group.closed() for group in trainer.partial._open])


def test_steps_end_early_and_every_group_is_trained_once(whole: Whole) -> None:
    folder, forests, left = whole
    assert all(len(forest.groups) >= 2 for forest in forests)
    assert min(len(forest.groups) for forest in forests) < 6
    played = [group for forest in forests for group in forest.groups] + left
    places = sorted(int(group.uid.partition("/")[2]) for group in played)
    assert places == list(range(len(places))), "no group is begun twice, or left out"
    late = 0
    for step, forest in enumerate(forests, start=1):
        for group in forest.groups:
            for tree in group.trees:
                versions = [turn.version for turn in tree.turns]
                assert tree.turns[-1].status != "running"
                assert versions == sorted(versions)
                assert versions[-1] == step - 1, "the last turn is of the newest weights"
                assert versions[0] == int(group.uid.partition("/")[0]) - 1
                late += versions[0] < versions[-1]
    assert late > 0
    rows = [row for row in numbers(folder) if "loss/policy" in row]
    for row, forest in zip(rows, forests, strict=True):
        turns = [t for group in forest.groups for tree in group.trees for t in tree.turns]
        lags = [int(row["step"]) - 1 - t.version for t in turns]  # type: ignore[call-overload]
        tokens = [len(t.act_ids) for t in turns]
        mean = sum(a * b for a, b in zip(lags, tokens, strict=True)) / sum(tokens)
        assert row["rollout/lag_token_mean"] == pytest.approx(mean)
        behind = sum(n for n, lag in zip(tokens, lags, strict=True) if lag) / sum(tokens)
        assert row["rollout/lagged_tokens_frac"] == pytest.approx(behind)
        assert row["rollout/lag_max"] == max(lags)
        assert row["rollout/groups_carried"] == 6 - len(forest.groups)
        assert row["rollout/tokens_carried"] == _tokens_before(
            [*forests, Forest.of(left)], int(str(row["step"]))
        )
        assert "update/importance_mean" in row, "truncated importance weights are on"
    assert max(float(row["rollout/lag_max"]) for row in rows) >= 2  # type: ignore[arg-type]


def _tokens_before(forests: Sequence[Forest], step: int) -> int:
    """Tokens of later steps' groups that the weights of a step or older ones sampled."""
    return sum(
        len(turn.act_ids)
        for forest in forests[step:]
        for group in forest.groups
        for tree in group.trees
        for turn in tree.turns
        if turn.version < step
    )


def test_whole_steps_are_those_of_a_run_without(tiny_model: Path, tmp_path: Path) -> None:
    """With all groups required nothing is carried: the same, up to the rounding of batches."""
    run(setup(tiny_model, None, 2, importance_cap=2.0), tmp_path / "whole")
    run(setup(tiny_model, 1.0, 2), tmp_path / "partial")
    extra = {"rollout/groups_carried", "rollout/lag_token_mean", "rollout/lagged_tokens_frac"}
    extra.add("rollout/tokens_carried")
    # turns in step are batched otherwise, so other contexts are found in the cache
    extra |= {"engine/prefix_hit_frac", "engine/read_again_frac"}
    for one, two in zip(numbers(tmp_path / "whole"), numbers(tmp_path / "partial"), strict=True):
        assert two.pop("rollout/groups_carried", 0.0) == 0.0
        assert two.pop("rollout/tokens_carried", 0.0) == 0.0
        one, two = ({k: v for k, v in row.items() if k not in extra} for row in (one, two))
        assert one == pytest.approx(two, abs=2e-5, rel=2e-5)


@pytest.mark.parametrize(
    "how",
    [pytest.param("ended", marks=pytest.mark.slow), "killed", "interrupted"],
)
def test_a_resumed_run_is_the_same_to_the_bit(
    tiny_model: Path, tmp_path: Path, whole: Whole, how: str
) -> None:
    made = setup(tiny_model, SHARE)
    if how == "ended":
        run(replace(made, budget=Budget(steps=2)), tmp_path)
    else:
        with handled_interrupts(), Trainer(made, tmp_path) as trainer:
            if how == "killed":
                kill_after(trainer, 2)
            else:
                interrupt_in(trainer, 3)
            with pytest.raises(Killed if how == "killed" else KeyboardInterrupt):
                trainer.run()
    memory = tmp_path / "checkpoints" / "step-000002" / "trainer" / "memory.json"
    assert json.loads(memory.read_text())["open_groups"], "nothing was carried; nothing is shown"
    run(made, tmp_path)
    assert numbers(whole.folder) == numbers(tmp_path)
    assert same(final_weights(whole.folder), final_weights(tmp_path))


@contextmanager
def handled_interrupts() -> Iterator[None]:
    """A shell's background jobs ignore Ctrl-C, and so would this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt_in(trainer: Trainer, step: int) -> None:
    """Ctrl-C once some turns of a step are played."""
    runner_of = trainer._runner

    def runner(*given: Any) -> Any:
        made = runner_of(*given)
        turn = made.turn

        async def interrupted(handle: Any, tree: Any) -> Any:
            if trainer.counters.step == step - 1 and tree.turns:
                signal.raise_signal(signal.SIGINT)
                await asyncio.sleep(0)
            return await turn(handle, tree)

        made.turn = interrupted
        return made

    trainer._runner = runner  # type: ignore[method-assign]


@pytest.mark.parametrize("damage", ["digests", "group", "json"])
def test_open_groups_that_do_not_play_back(
    tiny_model: Path, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another world: the episodes begin anew, and it is said. Damage: refused."""
    run(setup(tiny_model, 0.5, 2), tmp_path)
    with Trainer(setup(tiny_model, 0.5, 3), tmp_path) as trainer:
        assert trainer.partial is not None
        state = trainer.partial.state(2)
        if damage != "digests":
            bad: Any = {} if damage == "json" else json.loads(json.dumps(state))
            if damage == "group":
                bad["open_groups"][0]["group"]["trees"][0][0]["parent"] = 7
            with pytest.raises(DataError, match="groups that were open are damaged"):
                trainer.partial.load(2, bad)
            return
        said: list[str] = []
        monkeypatch.setattr(trainer.report, "note", said.append)
        for row in state["open_groups"]:
            row["digests"] = ["another world" for _ in row["digests"]]
        trainer.partial.load(2, state)
        forests = watched(trainer)
        trainer.run()
    assert any("begin anew" in line for line in said)
    turns = [t for f in forests for g in f.groups for tree in g.trees for t in tree.turns]
    assert {turn.version for turn in turns} == {2}, "nothing old is trained on"


def refused(model: Path, share: float = 0.5, **more: Any) -> str:
    with pytest.raises(BadValueError) as caught:
        setup(model, share, **more)
    return str(caught.value)


def test_what_makes_no_sense_is_refused(tiny_model: Path) -> None:
    def by(name: str, **changes: Any) -> dict[str, Any]:
        return {"recipe": make_recipe(name, changes)}

    assert "a share of the groups in (0, 1]" in refused(tiny_model, 0.0)
    assert "a share of the groups in (0, 1]" in refused(tiny_model, 1.5)
    assert "where its next turn is attached" in refused(tiny_model, **by("treegrpo"))
    assert "plays a step in rounds" in refused(tiny_model, **by("dapo"))
    assert "chooses tasks by statistics" in refused(tiny_model, **by("spo"))
    assert "tokens_per_step" in refused(tiny_model, **by("grpo", tokens_per_step=900))
    limited = replace(small(grpo), rollout=Chains(n=2, limit_calls=3))
    assert "limits of tokens or calls" in refused(tiny_model, recipe=limited)
    with pytest.raises(BadValueError, match="must be weighed, and it compares paths"):
        check_partial(small(grpo), 0.5, "it compares paths. Leave it out.")
    assert "plays whole steps ahead" in refused(tiny_model, max_lag=1)
    assert "importance_cap is 0" in refused(tiny_model, importance_cap=0.0)
    assert "complete only later" in refused(tiny_model, budget=Budget(tokens=99))
    assert "complete only later" in refused(tiny_model, budget=Budget(calls=99))


def test_groups_that_others_play_are_refused(tiny_model: Path) -> None:
    class Elsewhere:
        make_runner: Callable[..., Any] = staticmethod(lambda *given: None)

    made: Any = setup(tiny_model, 0.5)
    with pytest.raises(BadValueError, match="keep no group from one step to the next"):
        make_partial(made, Elsewhere(), Ranks())  # type: ignore[arg-type]


def test_a_ratio_over_the_sampled_logprobs_needs_no_further_weights(
    tiny_model: Path, tmp_path: Path
) -> None:
    recipe = setup(tiny_model, 0.5).recipe
    annotators = (*recipe.annotators, OldLogprobs(source="sampled"))
    sampled = replace(recipe, annotators=annotators)
    run(setup(tiny_model, SHARE, 3, recipe=sampled), tmp_path)
    rows = [row for row in numbers(tmp_path) if "loss/policy" in row]
    assert all("update/importance_mean" not in row for row in rows)
    assert any(float(row["rollout/lag_max"]) > 0 for row in rows)  # type: ignore[arg-type]


def test_runs_without_it_have_the_configuration_of_before(tiny_model: Path) -> None:
    found = setup(tiny_model, None).resolved("x")
    assert not {"partial_rollouts", "http"} & found.keys()
    assert "tensor_parallel" not in found["vllm"]
    assert setup(tiny_model, 0.5).resolved("x")["partial_rollouts"] == 0.5
    assert PartialRollouts(0.5).state(0) == {"open_groups": []}
    assert EvalConfig(env=ENV).name == "dev"
