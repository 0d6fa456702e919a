"""Thoughts before experts' calls: read off the call, never before anything else."""

from __future__ import annotations

import gymnasium as gym
import pytest

import turngym.envs  # noqa: F401 - registers
from turngym.agents.scripted import run_episode
from turngym.agents.warm_start.thoughts import with_thought

TOOLS = ({"function": {"name": "get_user_details"}},)
CALL = '<tool_call>{"name": "get_user_details", "arguments": {"user_id": "ann"}}</tool_call>'


def test_a_call_is_thought_about_first() -> None:
    assert with_thought(CALL, TOOLS) == f"<think> I need to get user details. </think> {CALL}"


@pytest.mark.parametrize(
    "action",
    [
        "Which order is it about?",
        f"<think> hm </think> {CALL}",
        "<tool_call>{broken</tool_call>",
        "<tool_call>[1]</tool_call>",
    ],
)
def test_other_actions_stay(action: str) -> None:
    assert with_thought(action, TOOLS) == action


def test_without_tools_nothing_is_added() -> None:
    assert with_thought(CALL, ()) == CALL


def test_the_shop_reads_thoughtful_calls_as_it_reads_calls() -> None:
    env = gym.make("Retail-v0", size="micro").unwrapped
    plain = env.expert()
    spoken = env.expert()

    def speak(where, observation, info):  # type: ignore[no-untyped-def]
        return with_thought(spoken(where, observation, info), env.tools)

    calls = 0
    for seed in range(6):
        one = run_episode(env, plain, seed=seed)
        two = run_episode(env, speak, seed=seed)
        assert (one.status, one.turns) == (two.status, two.turns) == ("solved", one.turns)
        calls += sum(action.startswith("<think> I need to ") for action in two.actions)
    assert calls > 6
