"""Retail-v0 as an environment: reward, rules, verdicts, forks, channels, settings."""

from __future__ import annotations

import json
import pickle
from typing import Any

import gymnasium as gym
import pytest
from helpers.bad_policies import BAD, Bad, applies, plays

from turngym.envs import all_ids, check_text_env, fork
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.retail.env import Retail
from turngym.envs.retail.expert import Expert
from turngym.envs.retail.shop.policy import RULES, write_policy
from turngym.envs.retail.shop.toolset import WRITES
from turngym.envs.wrappers.vector import TextVectorEnv

FULL, MICRO = Retail(), Retail(size="micro")


def solve(env: Retail, task: int | str, split: str = "dev", seed: int = 0) -> list[str]:
    """The expert's actions, which solve the task."""
    observation, info = env.reset(seed=seed, options={"split": split, "task": task})
    expert, actions = env.expert(), []
    while info["status"] == "running":
        actions.append(expert(env, observation, info))
        observation, *_, info = env.step(actions[-1])
    assert info["status"] == "solved"
    return actions


def replay(env: Retail, task: int | str, actions: list[str], split: str = "dev") -> dict[str, Any]:
    """The last info; what is left after the end is not played."""
    _, info = env.reset(seed=0, options={"split": split, "task": task})
    for action in actions:
        if info["status"] == "running":
            *_, info = env.step(action)
    return dict(info)


def call_in(action: str) -> dict[str, Any]:
    return json.loads(action.removeprefix("<tool_call>").removesuffix("</tool_call>"))


def is_write(action: str) -> bool:
    return action.startswith("<tool_call>") and call_in(action)["name"] in WRITES


def test_the_full_env_keeps_every_law() -> None:
    assert "Retail-v0" in all_ids()
    report = check_text_env("Retail-v0", size="full", tasks_checked=6)
    assert set(report.skipped) == {"legal actions are valid"}


@pytest.mark.parametrize("name", BAD)
def test_bad_policies_never_succeed(name: str) -> None:
    """P4."""
    policy: Bad = BAD[name]
    for env, step in ((FULL, 4), (MICRO, 2)):
        played = 0
        for i in range(0, 200 if env is FULL else 60, step):
            task = env.source.task("dev", i)
            if applies(name, task.payload):
                assert plays(env, policy, task.id, "dev") != "solved", task.id
                played += 1
        assert played > 15


def test_pairs_may_stand_in_any_order() -> None:
    """P5."""
    swapped = 0
    for i in range(200):
        task = FULL.source.task("dev", i).payload
        if not any(len(given.get("new_item_ids", ())) > 1 for _, given in task.accepted[0]):
            continue
        actions = solve(FULL, i)
        for at, action in enumerate(actions):
            if is_write(action):
                call = call_in(action)
                for key in ("item_ids", "new_item_ids"):
                    if key in call["arguments"]:
                        call["arguments"][key].reverse()
                actions[at] = f"<tool_call>{json.dumps(call)}</tool_call>"
        assert replay(FULL, i, actions)["status"] == "solved"
        swapped += 1
    assert swapped > 5


@pytest.mark.parametrize("task", range(0, 60, 3))
def test_more_reads_and_refused_calls_change_nothing(task: int) -> None:
    """P5."""
    actions = solve(FULL, task)
    longer = []
    for action in actions:
        if is_write(action):
            call = call_in(action)
            broken = {**call["arguments"], next(iter(call["arguments"])): "#W0"}
            longer.append(FULL.knowledge.tools.write(call["name"], broken))
            longer.append(FULL.knowledge.tools.write("list_all_product_types", {}))
        longer.append(action)
    env = Retail(max_turns=200)
    assert replay(env, task, longer)["status"] == "solved"


@pytest.mark.parametrize("task", range(1, 200, 9))
def test_any_changed_argument_of_a_write_fails(task: int) -> None:
    """P6."""
    actions = solve(FULL, task)
    for at, action in enumerate(actions):
        if not is_write(action):
            continue
        call = call_in(action)
        for key, value in call["arguments"].items():
            other = [*value[1:], "0"] if isinstance(value, list) else f"{value}0"
            changed = {**call["arguments"], key: other}
            wrong = FULL.knowledge.tools.write(call["name"], changed)
            info = replay(FULL, task, [*actions[:at], wrong, *actions[at + 1 :]])
            assert info["status"] != "solved", (call, key)


def test_copies_in_turns_equal_copies_alone() -> None:
    """P9."""
    tasks = range(5)
    alone = [solve(FULL, t) for t in tasks]
    copies = [Retail() for _ in tasks]
    for env, task in zip(copies, tasks, strict=True):
        env.reset(seed=0, options={"split": "dev", "task": task})
    for turn in range(max(map(len, alone))):
        for env, actions in zip(copies, alone, strict=True):
            if turn < len(actions):
                env.step(actions[turn])
    assert all(env.episode.status == "solved" for env in copies)


def test_forks_and_pickles_in_the_middle_go_on_alike() -> None:
    """P18."""
    actions = solve(FULL, 3)
    for at in range(len(actions)):
        FULL.reset(seed=0, options={"split": "dev", "task": 3})
        for action in actions[:at]:
            FULL.step(action)
        others = [fork(FULL), pickle.loads(pickle.dumps(FULL))]
        for action in actions[at:]:
            want = FULL.step(action)
            assert [other.step(action) for other in others] == [want, want]


def test_the_judge_blames_once_and_never_the_expert() -> None:
    for task in range(0, 200, 8):
        solve(FULL, task)
        FULL.reset(seed=0, options={"split": "dev", "task": task})
        expert, verdicts = FULL.expert(), []
        info: Any = {"status": "running"}
        while info["status"] == "running":
            *_, info = FULL.step(expert(FULL, "", info))
            verdicts.append(info["verdict"])
        assert -1 not in verdicts
        assert verdicts.count(1) >= len(verdicts) / 2
    for name, policy in BAD.items():
        for task in range(0, 200, 20):
            FULL.reset(seed=0, options={"split": "dev", "task": task})
            info, observation, verdicts = {"status": "running"}, FULL.episode.observation, []
            while info["status"] == "running":
                observation, *_, info = FULL.step(policy(FULL, observation))
                verdicts.append(info["verdict"])
            assert set(verdicts) <= {-1, 0, 1}, name
            assert verdicts.count(-1) <= 1


def write_task() -> int:
    """A task of one write."""
    return next(i for i in range(200) if FULL.source.task("dev", i).payload.features["writes"] == 1)


def test_every_scored_rule_costs_the_success() -> None:
    task = write_task()
    actions = solve(FULL, task)
    at = next(i for i, action in enumerate(actions) if is_write(action))
    before = at - 1  # the proposal
    broken = {
        "confirm_first": [*actions[:before], *actions[at:]],
        "one_thing": [*actions[:at], f"I do it. {actions[at]}", *actions[at + 1 :]],
    }
    for key, changed in broken.items():
        info = replay(FULL, task, changed)
        assert key in {rule for _, rule in FULL.episode.state.violations}
        assert (info["metrics"]["policy"], info["status"]) == (0.0, "failed")
        assert info["metrics"]["data"] == 1.0
    loose = Retail(policy=False)
    assert replay(loose, task, broken["one_thing"])["status"] == "solved"


def play_expert(env: Retail, expert: Expert, task: int) -> dict[str, Any]:
    """The last info of an episode that an expert plays."""
    observation, info = env.reset(seed=0, options={"split": "train", "task": task})
    while info["status"] == "running":
        observation, *_, info = env.step(expert(env, observation, info))
    return info


def test_haste_changes_the_shop_without_a_yes_and_loses_what_it_changed() -> None:
    for task in range(60):
        info = play_expert(MICRO, Expert(haste=1.0), task)
        rules = {rule for _, rule in MICRO.episode.state.violations}
        wrote = info["metrics"]["writes"] > 0
        assert rules == ({"confirm_first"} if wrote else set())
        assert info["status"] == ("failed" if wrote else "solved")
    hurried = [play_expert(MICRO, Expert(seed=i, haste=0.5), i)["status"] for i in range(60)]
    assert {"failed", "solved"} <= set(hurried)


def test_without_haste_nothing_is_drawn() -> None:
    for mistakes in (0.0, 0.3):
        for task in range(10):
            plain = play_expert(MICRO, MICRO.expert(mistakes, seed=task), task)
            assert play_expert(MICRO, Expert(mistakes, task, 0.0), task) == plain
    with pytest.raises(BadValueError, match="haste is -1"):
        Expert(haste=-1)


def test_where_the_transfer_itself_ends_the_talk_it_can_succeed() -> None:
    env = Retail(mode="tau1")
    scenarios = [FULL.source.task("dev", i).payload.scenario for i in range(200)]
    handed = [
        i
        for i, scenario in enumerate(scenarios)
        if scenario and any(goal.last().expect == "transferred" for goal in scenario.goals)
    ]
    assert len(handed) > 2
    for task in handed:
        assert '"transfer_to_human_agents"' in solve(env, task)[-1]


def test_looking_before_finding_out_who_breaks_a_rule() -> None:
    FULL.reset(seed=0, options={"split": "dev", "task": 0})
    order = next(iter(FULL.episode.state.overlay.shop.orders))
    FULL.step(FULL.knowledge.tools.write("get_order_details", {"order_id": order}))
    assert FULL.episode.state.violations == ((1, "identify_first"),)


def test_rules_are_text_and_data() -> None:
    assert len({rule.key for rule in RULES}) == len(RULES)
    assert all(rule.text in write_policy() for rule in RULES)
    assert all(rule.text in FULL.instructions for rule in RULES)
    assert "exchange_delivered_order_items(" in FULL.instructions


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("<tool_call>{broken</tool_call>", "not valid JSON"),
        ('<tool_call>{"name": "get_order", "arguments": {}}</tool_call>', "Did you mean"),
        ('<tool_call>{"name": "calculate", "arguments": {"expression": 3}}</tool_call>', "string"),
        ("<tool_call>", "not closed"),
        ("", "message is empty"),
        ("<think>hm</think>", "message is empty"),
    ],
)
def test_what_cannot_be_read_teaches(action: str, said: str) -> None:
    FULL.reset(seed=0)
    observation, reward, ended, cut, info = FULL.step(action)
    assert said in observation
    assert (reward, ended, cut, info["valid_action"]) == (0.0, False, False, False)


def test_metrics_name_the_parts_and_the_tier() -> None:
    info = replay(FULL, 5, solve(FULL, 5))
    metrics, task = info["metrics"], FULL.source.task("dev", 5).payload
    parts = ("data", "communicated", "ended", "evidence", "policy", "success")
    assert all(metrics[part] == 1.0 for part in parts)
    assert metrics["tier"] == task.tier
    assert metrics["writes"] == task.features["writes"]


def test_tiers_can_be_chosen() -> None:
    env = Retail(tiers=(1, 3))
    tiers = {env.source.task("dev", i).payload.tier for i in range(env.source.sizes()["dev"] or 0)}
    assert tiers == {1, 3}
    task = env.source.task("dev", 1)
    assert env.source.index_of("dev", task.id) == 1
    assert task.digest == FULL.source.task("dev", FULL.source.index_of("dev", task.id) or 0).digest


def test_knowledge_can_be_shared() -> None:
    env = Retail(data=MICRO.knowledge)
    assert env.source is MICRO.source
    assert (env.max_turns, env.instructions) == (MICRO.max_turns, MICRO.instructions)
    solve(env, 0)
    with pytest.raises(BadValueError, match="size"):
        Retail(data=MICRO.knowledge, size="micro")


def test_batches_of_the_env() -> None:
    envs = TextVectorEnv(MICRO, 4)
    observations, _ = envs.reset(seed=3)
    experts = [env.expert() for env in envs.envs]
    for _ in range(3):
        actions = [
            e(env, o, {}) for e, env, o in zip(experts, envs.envs, observations, strict=True)
        ]
        observations, *_ = envs.step(actions)
    assert all(text.startswith(("Customer: ", "Tool: ")) for text in observations)


MODEL = {"url": "http://localhost:9/v1", "model": "customer"}


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"size": "mikro"}, UnknownNameError, "Did you mean 'micro'"),
        ({"mode": "tau3"}, UnknownNameError, "mode"),
        ({"tiers": 6}, BadValueError, "tiers"),
        ({"tiers": (3,), "size": "micro"}, BadValueError, "micro"),
        ({"world_seed": -1}, BadValueError, "world_seed"),
        ({"customer": "gpt"}, UnknownNameError, "customer"),
        ({"customer": 3}, BadValueError, "customer"),
        ({"strictness": "harsh"}, UnknownNameError, "strictness"),
        ({"patience_turns": 0}, BadValueError, "patience"),
        ({"customer": MODEL, "strictness": "strict"}, BadValueError, "strictness='strict' is of"),
        ({"customer": MODEL, "patience_turns": 2}, BadValueError, "patience_turns=2 is of"),
        ({"channel": "smoke"}, UnknownNameError, "channel"),
        ({"channel": 3}, BadValueError, "channel"),
        ({"max_turn": 3}, UnknownNameError, "max_turns"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        gym.make("Retail-v0", **settings)


def test_a_shop_as_it_is_keeps_the_mode_of_its_tools() -> None:
    knowledge = Retail(size="micro", mode="tau").knowledge
    assert Retail(data=knowledge, mode="tau").mode == Retail(data=knowledge).mode == "tau"
    with pytest.raises(BadValueError, match="mode is 'strict', but data is a Knowledge"):
        Retail(data=knowledge, mode="strict")
