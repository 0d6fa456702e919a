"""Training by tokens: equally many steps for every recipe, whatever plays, killed or not."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.training_runs import Killed, config, final_weights, kill_after, numbers, run, same

from turngym.agents.models.random_init import BlankSettings, blank_model
from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Start, Unforked
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import RECIPES, make_recipe
from turngym.algos.rollouts.step_limits import EMPTY_STEPS, Played, check_going_on
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, EnvFault

LITTLE = BlankSettings(hidden=16, layers=1, inner=16, episodes=10)
TOKENS, STEPS = 100, 5
CHAINS = {"rollout.n": 2}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "spo": {"tracker.pool": 1000},
    "aepo": {"rollout.initial": 2, "rollout.budget": 3},
    "at2po": {"rollout.initial": 1, "rollout.nodes": 1},
    "arpo": {"rollout.initial": 2, "rollout.budget": 3},
    "treegrpo": {"rollout.trees": 1},
    "stepdpo": {"rollout.trees": 1},
    **{name: CHAINS for name in RECIPES if "rollout.n" in RECIPES[name].small},
}
OTHER = {"igpo": "Recall-v0"}  # a password is no answer
DISTINCT = ("grpo", "ppo", "dapo", "treegrpo", "arpo", "at2po", "tarl", "pasa", "spo", "igpo")
"""Recipes that play in a way of their own; the others are tried in the slow run."""
WORLDS = [
    pytest.param(
        name,
        OTHER.get(name, "Password-v0"),
        marks=() if name in DISTINCT else pytest.mark.slow,
    )
    for name in RECIPES
] + [("pasa", "Spawn-v0")]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[EnvConfig, Path]]:
    made = {}
    for env_id in ("Password-v0", "Spawn-v0", *OTHER.values()):
        env = EnvConfig(id=env_id, settings={"size": "micro"})
        made[env_id] = env, tmp_path_factory.mktemp("blank")
        blank_model(env.make(), made[env_id][1], LITTLE)
    return made


@pytest.mark.parametrize(("name", "env_id"), WORLDS)
def test_every_recipe_takes_equally_many_steps(
    name: str, env_id: str, worlds: Any, tmp_path: Path
) -> None:
    env, model = worlds[env_id]
    changes = {"tokens_per_step": TOKENS, "critic_only_steps": 0, **SETTINGS.get(name, {})}
    recipe = make_recipe(name, changes, small=True)
    setup = TrainConfig(
        env=env,
        model=str(model),
        recipe=recipe,
        budget=Budget(tokens=TOKENS * STEPS),
        max_tokens=3,
        checkpoint_every=10_000,
        keep_rollouts=0,
        engine_dtype="float32",
        device="cpu",
        learner=LearnerSettings(precision="float32"),
    )
    result = run(setup, tmp_path)
    assert result.steps == STEPS  # of so few, 5 % is none
    last = read_metrics(tmp_path / "metrics.jsonl")[-1]
    group = max(row["rollout/tokens"] / row["rollout/groups"] for row in rows_of(tmp_path))
    assert TOKENS * STEPS <= result.sampled_tokens <= TOKENS * STEPS + 2 * group
    assert result.optimizer_steps == last["budget/optimizer_steps"]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [r for r in read_metrics(folder / "metrics.jsonl") if "rollout/tokens" in r]


def by_tokens(model: Path, budget: int = 500, **more: Any) -> TrainConfig:
    """Steps of 120 tokens, so that the budget cuts the last one."""
    changes = {
        "tokens_per_step": 120,
        "rollout.n": 3,
        "epochs": 1,
        "minibatches": 4,
        "lr": 1e-3,
        "warmup_steps": 0,
        "loss.kl.coef": 0.0,
    }
    recipe = make_recipe(more.pop("name", "grpo"), changes, small=True)
    return config(model, recipe=recipe, budget=Budget(tokens=budget), evals=(), **more)


@pytest.mark.parametrize("lag", [None, 1])
def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(
    tiny_model: Path, tmp_path: Path, lag: int | None
) -> None:
    setup = by_tokens(tiny_model, max_lag=lag)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(setup, whole)
    with contextlib.suppress(Killed), Trainer(setup, cut) as trainer:
        kill_after(trainer, 3)
        trainer.run()
    run(setup, cut)
    assert len(rows_of(whole)) == 5
    # what lies behind the end is not kept
    assert not list(whole.glob("checkpoints/step-000005/trainer/ahead/*"))
    if lag is None:
        assert numbers(whole) == numbers(cut)
        assert same(final_weights(whole, 5), final_weights(cut, 5))
    else:  # what is sampled beside an update may be rounded otherwise
        for key in ("rollout/tokens", "rollout/groups", "update/loss", "budget/tokens"):
            one, two = ([row[key] for row in rows_of(folder)] for folder in (whole, cut))
            assert one == pytest.approx(two, rel=1e-4)


@dataclass(frozen=True, kw_only=True)
class Idle(Unforked):
    """A rollout of one's own that attaches no turn."""

    n: int = 2

    async def __call__(self, runner: Any, start: Start) -> Group:
        return Group(start.uid, str(start.task))


@pytest.mark.parametrize("changes", [{"tokens_per_step": TOKENS}, {}, {"max_lag": 1}], ids=str)
def test_a_rollout_that_plays_nothing_ends_the_run(
    changes: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    """No budget of tokens was ever used up."""
    lag = {"max_lag": changes["max_lag"]} if "max_lag" in changes else {}
    size = {"tokens_per_step": TOKENS} if "tokens_per_step" in changes else {}
    recipe = dataclasses.replace(make_recipe("grpo", size, small=True), rollout=Idle())
    setup = config(tiny_model, recipe=recipe, budget=Budget(tokens=1000), evals=(), **lag)
    with pytest.raises(BadValueError, match=r"groups of steps 1 to 8 have no turn.*Idle attached"):
        run(setup, tmp_path)


def test_environments_that_stay_broken_end_the_run() -> None:
    broken = [Group("u", "t", faults=2)]
    played = Played()
    for _ in range(EMPTY_STEPS):
        check_going_on(Idle(), played, broken, "")
        played = played.after(broken)
    assert played.after([]).empty == 0, "a step behind the end of the budget has no groups"
    with pytest.raises(EnvFault, match=r"broken in all episodes of steps 1 to 8.* no server. Once"):
        check_going_on(Idle(), played, broken, "no server.")


def test_the_last_step_takes_its_share_of_the_mini_batches(
    tiny_model: Path, tmp_path: Path
) -> None:
    run(by_tokens(tiny_model), tmp_path)
    rows = rows_of(tmp_path)
    assert [row["update/optimizer_steps"] for row in rows[:-1]] == [4] * 4
    assert rows[-1]["update/optimizer_steps"] == 1  # 20 of 120 tokens
    assert rows[-1]["budget/optimizer_steps"] == 17


def test_rounds_of_dynamic_sampling_end_with_the_budget(tiny_model: Path, tmp_path: Path) -> None:
    recipe = make_recipe("dapo", {"rollout.n": 2, "groups_per_step": 8}, small=True)
    setup = config(tiny_model, recipe=recipe, budget=Budget(tokens=150), evals=())
    result = run(setup, tmp_path)
    rows = rows_of(tmp_path)
    longest = 2 * 5 * 3  # two paths of three turns of five tokens
    assert 150 <= result.sampled_tokens < 150 + longest
    assert any(row.get("rollout/groups_left_out", 0) for row in rows)


def test_the_cut_step_is_the_beginning_of_the_whole_one(tiny_model: Path, tmp_path: Path) -> None:
    setup = by_tokens(tiny_model)
    longer = dataclasses.replace(setup, budget=Budget(tokens=600))
    run(setup, tmp_path / "one")
    run(longer, tmp_path / "two")
    one, two = rows_of(tmp_path / "one"), rows_of(tmp_path / "two")
    assert [r["rollout/tokens"] for r in one[:4]] == [r["rollout/tokens"] for r in two[:4]]
    assert one[4]["rollout/groups"] < two[4]["rollout/groups"]
