"""SPEAR's store: the reference's numbers, what is imitated when, and what a checkpoint keeps."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.forests import Fixed, single_turns, tree, turn
from helpers.training_runs import Killed, config, final_weights, kill_after, numbers, run, same

from turngym.algos.core.forest import Edge, Forest, Group
from turngym.algos.core.protocols import Replay
from turngym.algos.core.recipe import Recipe
from turngym.algos.credit import GroupCredit
from turngym.algos.losses import Kl, PolicyLoss
from turngym.algos.recipes import make_recipe
from turngym.algos.rewards.shaping import TurnBonus
from turngym.algos.rollouts.self_imitation import SelfImitation, chain_of
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError

NONE = np.zeros(0, np.int64)


class Scorer(Fixed):
    """Finds every token equally likely, so that no covariance is above 0."""

    def logprobs(self, forest: Forest) -> Any:
        return [np.full(forest.n_act(path), -1.0, np.float32) for path in forest]


def store(**settings: Any) -> Any:
    return SelfImitation(**settings).start(7, "train", 10, (0.0, 1.0))


def play(kept: Any, step: int, *groups: list[float]) -> Replay | None:
    forest = single_turns(*groups, n=2)
    kept.starts(step, 1)
    return kept.replay(forest, {}, GroupCredit()(forest, {}), Scorer())


def test_e4_weights_and_bonus() -> None:
    rule, bonus = SelfImitation(), TurnBonus()
    assert [rule.weight(u) for u in (0, 25, 50, 100, 999)] == pytest.approx(
        [0.0, 0.146447, 0.5, 1.0, 1.0], abs=1e-6
    )
    assert SelfImitation(warmup=0).weight(0) == 1.0
    assert bonus.amount(4, 50) == pytest.approx(0.341421, abs=1e-6)
    assert [bonus.amount(1, 0), bonus.amount(99, 0), bonus.amount(4, 200)] == [0.1, 1.0, 0.0]


def test_the_bonus_is_of_the_policys_steps_and_of_turns() -> None:
    path = [
        turn(n=2, partial=True),
        turn(parent=0, obs_ids=NONE),
        turn(0.5, parent=1, status="solved"),
    ]
    made = tree(*(replace(t, version=50) for t in path))
    (last,) = TurnBonus()(Forest.of([Group("g", "t", [made])])).paths
    seen = TurnBonus()(Forest.of([Group("g", "t", [made])]))
    assert seen.reward(last) == pytest.approx(0.5 + 0.2 * 0.853553, abs=1e-6)
    assert seen.turns(last)[-1].reward_terms[-1][0] == "turns"


def test_e4_recalibrated_by_the_median_of_all_groups() -> None:
    kept = store(paths=4, fill=0.75, warmup=0)
    kept.means = [0.1, 0.25, 0.25, 0.75, 0.875, 1.0]
    assert play(kept, 1, [1.0, 0.0]) is None  # its mean of .5 makes the median .5
    kept.means = kept.means[:-1]
    again = play(kept, 2, [0.75, 0.25], [0.25, 0.15], [0.5, 0.5])
    assert again is None  # three of three are not more than three
    kept.means = [0.1, 0.25, 0.25, 0.5, 0.75, 0.875, 1.0]
    again = play(kept, 3)
    assert again is None
    rows = list(kept.rows)
    assert [row.worth for row in rows] == [1.0, 0.75, 0.25]
    kept.rule = replace(kept.rule, fill=0.5)
    again = play(kept, 3)
    assert again is not None
    assert kept.rows == []
    found = {row.tolist()[0] for row in again.credits.advantages}
    assert found == {0.5, 0.25}  # a return of .25 is dropped
    assert [row.tolist() for row in again.annotations["old_logprobs"]] == [[-1.0, -1.0]] * 2


def test_only_paths_with_an_advantage_are_stored_and_the_old_ones_go() -> None:
    kept = store(age=1)
    play(kept, 1, [1.0, 0.0, 0.5], [0.3, 0.3], [0.9])
    assert [row.worth for row in kept.rows] == [1.0]
    assert kept.learn(Forest.of([]), Scorer()) == {"stored_paths": 1.0}
    play(kept, 2, [0.0, 0.25])
    assert [row.worth for row in kept.rows] == [1.0, 0.25]
    play(kept, 3, [1.0, 1.0])
    assert [row.worth for row in kept.rows] == [0.25]
    assert len(kept.means) == 5
    kept.rule = replace(kept.rule, groups=2)
    play(kept, 3, [0.5])
    assert kept.means == [1.0, 0.5]


def test_a_power_of_two_at_random_and_weighted() -> None:
    seen = set()
    for step in range(1, 9):
        kept = store(paths=4, fill=1.0, warmup=16)
        again = play(kept, step, *[[0.5 + i, -1.0 - i] for i in range(7)])
        assert again is not None
        assert len(again.forest.paths) == 4
        weight = kept.rule.weight(step)
        median = np.percentile(kept.means, 50)
        for path, row in zip(again.forest, again.credits.advantages, strict=True):
            assert row == pytest.approx([weight * (again.forest.reward(path) - median)] * 2)
        seen.add(tuple(group.uid.split("/")[1] for group in again.forest.groups))
    assert len(seen) > 2
    for n, count in ((1, 1), (2, 2), (3, 2)):
        again = play(store(paths=4, fill=0.0), 1, *[[9.0, 0.0]] * n, *[[0.0, 0.0]] * (n + 1))
        assert again is not None
        assert len(again.forest.paths) == count


def test_tokens_are_left_out_by_covariance() -> None:
    rule = SelfImitation(drop=0.25, covariance=(2.0, 60.0))
    logprobs = np.array([-9.0, -9.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0], np.float32)
    worth = np.array([-3.0, -3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], np.float32)
    # centred by -3 and 0: the first two have 18, the others 2
    out = rule.left_out(logprobs, worth, np.random.default_rng(0))
    assert out.tolist() == [True, True, *[False] * 6]
    wide = replace(rule, covariance=(1.0, 60.0))
    assert wide.left_out(logprobs, worth, np.random.default_rng(0)).sum() == 2
    none = replace(rule, drop=0.0)
    assert not none.left_out(logprobs, worth, np.random.default_rng(0)).any()
    assert not rule.left_out(logprobs, -worth, np.random.default_rng(0)).any()


def test_a_path_of_a_tree_becomes_a_chain() -> None:
    made = tree(
        turn(1.0, spawned=(np.array([4]),)),
        turn(2.0, parent=0, edge=Edge.SPAWN, previous=0, n=3),
        turn(3.0, parent=1, status="solved", debug_info={"text": "long"}),
    )
    forest = Forest.of([Group("g", "t", [made])])
    for path in forest:
        chain = Forest.of([Group("g", "t", [chain_of(forest, path)])])
        (alone,) = chain.paths
        assert chain.reward(alone) == forest.reward(path)
        assert [t.act_ids.tolist() for t in chain.turns(alone)] == [
            t.act_ids.tolist() for t in forest.turns(path)
        ]


def test_a_checkpoint_keeps_the_store() -> None:
    settings: dict[str, Any] = {"paths": 2, "fill": 1.0}
    kept, other = store(**settings), store(**settings)
    play(kept, 1, [1 / 3, 0.0], [0.1, 0.7])
    other.load(json.loads(json.dumps(kept.state())))
    assert other.means == kept.means
    one, two = (play(s, 2, [2.0, 0.0]) for s in (kept, other))
    assert one is not None
    assert two is not None
    for a, b in zip(one.credits.advantages, two.credits.advantages, strict=True):
        assert a.tobytes() == b.tobytes()
    assert repr(one.annotations) == repr(two.annotations)


def replaying(model: Path) -> Any:
    changes = {"rollout.n": 3, "groups_per_step": 4, "tracker.paths": 3, "warmup_steps": 0}
    recipe = make_recipe("spear", {**changes, "tracker.warmup": 2, "lr": 3e-3}, small=True)
    return config(model, recipe=recipe, budget=Budget(steps=5), evals=())


def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup, whole, cut = replaying(tiny_model), tmp_path / "whole", tmp_path / "cut"
    run(setup, whole)
    with contextlib.suppress(Killed), Trainer(setup, cut) as trainer:
        kill_after(trainer, 3)
        trainer.run()
    run(setup, cut)
    assert numbers(whole) == numbers(cut)
    assert same(final_weights(whole, 5), final_weights(cut, 5))
    rows = read_metrics(whole / "metrics.jsonl")
    again = [row for row in rows if "replay/paths" in row]
    assert 0 < len(again) < 5  # between updates the store fills
    assert any(row["replay/grad_norm"] > 0 for row in again)
    assert any(row["tracker/stored_paths"] > 0 for row in rows)
    kinds = [
        f"{of}/{kind}_steps" for of in ("update", "replay") for kind in ("optimizer", "skipped")
    ]
    taken = sum(row.get(kind, 0.0) for row in rows for kind in kinds)
    assert taken == rows[-1]["budget/optimizer_steps"] > 5


@pytest.mark.parametrize(
    "bad", [{"paths": 0}, {"age": -1}, {"drop": 1.5}, {"covariance": (2.0, 2.0)}, {"groups": 0}]
)
def test_settings_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(BadValueError):
        SelfImitation(**bad)
    with pytest.raises(BadValueError):
        TurnBonus(until=0)


def test_what_stored_paths_do_not_have_is_refused() -> None:
    recipe: Recipe = make_recipe("spear")
    with pytest.raises(BadValueError, match="reads ref_logprobs, and stored paths"):
        replace(make_recipe("grpo"), tracker=SelfImitation())
    with pytest.raises(BadValueError, match="stored paths"):
        replace(make_recipe("ppo"), tracker=SelfImitation())
    with pytest.raises(BadValueError, match="train_observations"):
        replace(recipe, train_observations=True)
    with pytest.raises(BadValueError, match="samples nothing"):
        replace(make_recipe("sft"), loss=PolicyLoss(), tracker=SelfImitation())
    assert replace(recipe, loss=PolicyLoss(kl=Kl(coef=0.0))).tracker == SelfImitation()
