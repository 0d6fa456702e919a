"""The oracle: its twins keep their environments' rules, its arms the published order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from turngym.benchmarks.ladder.families import FAMILIES, Family, find_family
from turngym.benchmarks.ladder.oracle import forecast as forecasts
from turngym.benchmarks.ladder.oracle.arms import ARMS, arms_of, twin_of
from turngym.benchmarks.ladder.oracle.credit import RULES, Memory, Settings, standardise, to_go
from turngym.benchmarks.ladder.oracle.learning import Arm, Clip, Schedule, learn
from turngym.benchmarks.ladder.oracle.rollouts import Branches, Chains, Table, Trees
from turngym.benchmarks.ladder.oracle.twins import Corridor, Doors, Rooms, Twin
from turngym.envs.core.errors import UnknownNameError
from turngym.envs.diagnostic.rooms import KEYS

LOTTERY = Doors(doors=3, free=3, luck=0.8)
PUBLISHED = {
    "grpo n4": (0.522, Arm(rollout=Chains(n=4))),
    "grpo n8": (0.543, Arm(rollout=Chains(n=8))),
    "inter": (0.565, Arm(rollout=Trees())),
    "both": (0.602, Arm(rollout=Trees(), credit="both")),
    "intra": (0.611, Arm(rollout=Trees(), credit="intra")),
}
"""Areas of the right letters measured with another program, 60 seeds, learning rate .03."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_lottery_has_the_published_areas(name: str) -> None:
    wanted, arm = PUBLISHED[name]
    learned = learn(LOTTERY, arm, Schedule(seeds=20))
    assert learned.area.mean() == pytest.approx(wanted, abs=0.025)
    assert learned.steps == 51


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_lottery_has_the_published_areas_with_all_seeds(name: str) -> None:
    wanted, arm = PUBLISHED[name]
    assert learn(LOTTERY, arm, Schedule(seeds=60)).area.mean() == pytest.approx(wanted, abs=0.013)


def test_without_luck_all_arms_are_equal() -> None:
    schedule = Schedule(seeds=20, actions=8_000, lr=0.02)
    fair = replace(LOTTERY, luck=0.0)
    areas = [learn(fair, arm, schedule).area.mean() for _, arm in PUBLISHED.values()]
    assert min(areas) > 0.44
    assert max(areas) < 0.465


def test_the_same_seed_gives_the_same_numbers() -> None:
    schedule = Schedule(seeds=3, actions=2_000)
    first, again = (learn(LOTTERY, Arm(rollout=Trees(), credit="both"), schedule) for _ in "ab")
    assert (first.area == again.area).all()
    other = learn(LOTTERY, Arm(rollout=Trees(), credit="both"), replace(schedule, seed=1))
    assert (first.area != other.area).any()


@pytest.mark.parametrize(
    "rollout", [Chains(n=8), Trees(), Branches()], ids=["chains", "tree", "arpo"]
)
def test_arms_take_the_same_steps_for_the_same_actions(rollout: Any) -> None:
    learned = learn(LOTTERY, Arm(rollout=rollout), Schedule(seeds=5, actions=5_000))
    assert learned.steps == 16
    assert learned.actions == pytest.approx(5_000, rel=0.06)


def played(rollout: Any, twin: Twin, groups: int = 40) -> Any:
    table = Table(twin, np.zeros((2, twin.contexts, twin.letters)), np.random.default_rng(1))
    return rollout(table, groups)


@pytest.mark.parametrize("twin", [LOTTERY, Rooms(rooms=3)], ids=["doors", "rooms"])
def test_endings_of_a_tree_share_their_prefix(twin: Twin) -> None:
    batch = played(Trees(trees=2, nodes=2), twin)
    for first in (0, 3):
        for leaf in (first + 1, first + 2):
            copied = batch.valid[:, :, leaf] & ~batch.own[:, :, leaf]
            same = batch.action[:, :, leaf] == batch.action[:, :, first]
            assert same[copied].all()
            assert copied.any()
            assert (batch.tree[:, :, leaf] == batch.tree[:, :, first]).all()
    assert (batch.own.sum(-1)[..., 0] == batch.valid.sum(-1)[..., 0]).all()
    assert not batch.fresh[:, :, 1].any()
    assert batch.fresh[:, :, 3].all()


def test_forks_are_uniform_over_the_points_of_a_chain() -> None:
    batch = played(Trees(), LOTTERY, groups=400)
    shared = (batch.valid & ~batch.own).sum(-1)[:, :, [1, 2, 4, 5]]
    share = np.bincount(shared.reshape(-1), minlength=6) / shared.size
    assert share == pytest.approx(np.full(6, 1 / 6), abs=0.03)


def test_branches_fill_the_budget_and_continue_what_was_played() -> None:
    batch = played(Branches(initial=4, budget=8), LOTTERY)
    assert batch.valid.any(-1).all()
    copied = batch.valid & ~batch.own
    assert not copied[:, :, :4].any()
    assert copied[:, :, 4:].any()
    assert not copied[..., 0].any() or copied[..., 1:].any()


def test_credit_of_three_paths_by_hand() -> None:
    batch = played(Chains(n=3), Doors(doors=2), groups=1)
    batch.reward[:] = 0.0
    batch.reward[0, 0, :, 1] = [1.0, 0.0, 0.5]
    memory = Memory(np.zeros((2, 2)), np.zeros((2, 1)))
    grpo = RULES["group"](batch, memory, Settings())[0, 0]
    assert grpo[:, 0] == pytest.approx([1.0, -1.0, 0.0], abs=1e-5)
    assert grpo[:, 1] == pytest.approx(grpo[:, 0])
    rloo = RULES["rloo"](batch, memory, Settings())[0, 0]
    assert rloo[:, 0] == pytest.approx([0.75, -0.75, 0.0])
    assert (RULES["intra"](batch, memory, Settings())[0] == 0).all()  # trees of one path
    assert to_go(np.array([1.0, 2.0, 4.0])).tolist() == [7.0, 6.0, 4.0]
    assert (standardise(np.full((1, 3), 2.0), 1) == 0).all()


def test_the_critic_learns_the_value_of_its_contexts() -> None:
    memory = Memory(np.zeros((2, 4)), np.zeros((2, 1)))
    for _ in range(60):
        batch = played(Chains(n=1), Doors(doors=4), groups=300)
        RULES["critic"](batch, memory, Settings())
    assert memory.values == pytest.approx(np.full((2, 4), 1 / 3), abs=0.03)


def test_a_critic_of_observations_confuses_rooms_that_look_the_same() -> None:
    twin = Rooms(rooms=3, dead_ends=False, aliases=3)
    batch = played(Chains(n=1), twin, groups=200)
    assert set(np.unique(batch.context[batch.valid])) == {0, 1, 2}
    assert set(np.unique(batch.observed[batch.valid])) == {0}
    memory = Memory(np.zeros((2, 6)), np.zeros((2, 1)))
    RULES["critic"](batch, memory, Settings(by_observation=True))
    assert (memory.values[:, 0] > 0).all()
    assert not memory.values[:, 1:].any()


def test_a_clip_holds_the_table_near_its_data() -> None:
    twin = Doors(doors=4, noise=0.5)
    schedule = Schedule(seeds=4, actions=2_000, per_step=1_000, lr=0.12)
    finals = [
        learn(twin, Arm(updates=64, clip=clip), schedule).final.mean()
        for clip in (Clip(), Clip(ratio="sequence", low=3e-4, high=4e-4))
    ]
    assert finals[0] > finals[1] + 0.05


def test_unknown_credit_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="group"):
        Arm(credit="grupo")


def replay(env_id: str, twin: Twin, letters: Any, settings: dict[str, Any], walks: int) -> None:
    """Play the same letters in an environment and in its tabular twin, and compare."""
    env: Any = gym.make(env_id, size="micro", **settings).unwrapped
    rng = np.random.default_rng(3)
    for walk in range(walks):
        env.reset(seed=walk, options={"split": "train", "task": walk})
        tasks = twin.draw_tasks(np.random.default_rng(walk), 1)
        if isinstance(twin, Corridor):
            tasks[:] = 0
        states = twin.begin(tasks)
        done = False
        while not done:
            action = int(rng.choice(3, p=[0.6, 0.2, 0.2]))
            letter = letters(env, action)
            _, reward, terminated, truncated, _ = env.step(letter)
            moves = twin.step(states, np.array([action]), tasks, rng)
            states, done = moves.states, bool(moves.done[0])
            assert reward == pytest.approx(moves.reward[0])
            assert done == (terminated or truncated)


def key_letter(env: Any, action: int) -> str:
    key = KEYS[min(env.episode.state.room, len(KEYS) - 1)]
    return "abc"[("abc".index(key) + action) % 3]


def door_letter(env: Any, action: int) -> str:
    code = env.code[len(env.episode.state.written)]
    return "abc"[("abc".index(code) + action) % 3]


@pytest.mark.parametrize(
    ("family", "size"), [("Keys", 4), ("Keys", "control"), ("Aliases", 3), ("Aliases", "control")]
)
def test_rooms_keep_the_rules_of_their_environment(family: str, size: Any) -> None:
    found = find_family(family)
    replay(found.env_id, twin_of(found, size), key_letter, found.settings(size), walks=30)


@pytest.mark.parametrize(("family", "size"), [("Judge", 4), ("Rare", 3), ("Noise", "control")])
def test_doors_keep_the_rules_of_their_environment(family: str, size: Any) -> None:
    found = find_family(family)
    replay(found.env_id, twin_of(found, size), door_letter, found.settings(size), walks=30)


def test_only_the_first_letter_of_a_corridor_counts() -> None:
    twin = Corridor(delay=3)
    tasks = twin.draw_tasks(np.random.default_rng(0), 3)
    for first, wanted in ((0, 1.0), (1, 0.0)):
        states, gained, over = twin.begin(tasks), np.zeros(3), np.zeros(3, dtype=bool)
        for turn in range(4):
            moves = twin.step(
                states, np.full(3, first if turn == 0 else 2), tasks, np.random.default_rng(0)
            )
            states, gained, over = moves.states, gained + moves.reward, moves.done
        assert over.all()
        assert gained.tolist() == [wanted] * 3


def test_boxes_pay_for_coins_and_cost_for_asks() -> None:
    twin = twin_of(find_family("Spawn"), 3)
    tasks = np.array([[1.0, 0.0]])
    states, total, rng = twin.begin(tasks), 0.0, np.random.default_rng(0)
    for action in (0, 3, 2, 3):  # ask for the box, stop, take its coin, stop
        moves = twin.step(states, np.array([action]), tasks, rng)
        states, total = moves.states, total + float(moves.reward[0])
    assert moves.done.all()
    assert total == pytest.approx(1.0)
    assert twin.measure(states, tasks) == pytest.approx([1.0])


def test_sessions_need_credit_that_reaches_across_them() -> None:
    family = find_family("Spawn")
    arms, twin = arms_of(family, 3), twin_of(family, 3)
    schedule = Schedule(seeds=6, actions=6_000, per_step=256, lr=0.12)
    finals = {n: learn(twin, arms[n], schedule).final.mean() for n in ("pasa", "ppo", "grpo")}
    assert finals["ppo"] < 0.2
    assert min(finals["pasa"], finals["grpo"]) > 0.8


def test_verdicts_show_where_the_outcome_is_all_or_nothing() -> None:
    twin = Doors(doors=6, all_or_nothing=True, judged=True)
    schedule = Schedule(seeds=6, actions=6_000, per_step=256, lr=0.12)
    areas = {n: learn(twin, ARMS[n], schedule).area.mean() for n in ("grpo", "tarl", "tarlturns")}
    assert min(areas["tarl"], areas["tarlturns"]) > areas["grpo"] + 0.1


def test_a_forecast_says_what_can_show_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "oracle.json"
    small = find_family("Lottery").model_copy(
        update={"tokens": 6_000, "rows": ("grpo", "treegrpo")}
    )
    oracle = forecasts.consult([small], seeds=12, path=path)
    found = oracle.find("Lottery")
    assert found is not None
    tree, control = (found.find("treegrpo", f"Lottery-{n}") for n in ("0.9", "control"))
    assert tree is not None
    assert tree.says == "can show"
    assert tree.against is not None
    assert tree.against.difference > 0.02
    assert control is not None
    assert control.says == "equal"

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr(forecasts, "forecast", fail)
    assert forecasts.consult([small], seeds=12, path=path) == oracle
    with pytest.raises(AssertionError, match="again"):
        forecasts.consult([small.model_copy(update={"tokens": 6_001})], seeds=12, path=path)


def test_two_processes_may_ask_about_families_of_one_ladder_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, (mine, theirs, earlier) = tmp_path / "oracle.json", list(FAMILIES.values())[:3]
    part = path.with_name("oracle.json.part")

    def play(family: Family, **_: Any) -> forecasts.FamilyForecast:
        return forecasts.FamilyForecast(family=family.name, digest="", baseline="grpo", rows=())

    def play_beside(family: Family, **_: Any) -> forecasts.FamilyForecast:
        with monkeypatch.context() as patch:
            patch.setattr(forecasts, "forecast", play)
            forecasts.consult([theirs], path=path)
        part.write_text("half of what a third one writes")
        return play(family)

    with monkeypatch.context() as patch:
        patch.setattr(forecasts, "forecast", play)
        forecasts.consult([earlier], path=path)
    monkeypatch.setattr(forecasts, "forecast", play_beside)
    found = forecasts.consult([mine], path=path)
    assert {family.family for family in found.families} == {mine.name, theirs.name, earlier.name}
    assert forecasts.Oracle.read(path) == found
    assert part.exists()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_a_twin_and_an_arm_per_row(name: str) -> None:
    family = FAMILIES[name]
    for size in (*family.sizes, "control"):
        twin, arms = twin_of(family, size), arms_of(family, size)
        assert set(family.rows) <= set(arms)
        assert twin.contexts > 0
    twin, arm = twin_of(family, family.middle), arms_of(family)[family.rows[-1]]
    learned = learn(twin, arm, Schedule(seeds=2, actions=600, per_step=200))
    assert np.isfinite(learned.area).all()
