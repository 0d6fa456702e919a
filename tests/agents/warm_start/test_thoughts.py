"""Thoughts before experts' calls: read off the call, never before anything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import gymnasium as gym
import pytest
from helpers.chat_templates import HERMES, LLAMA32, QWEN3_THINKING, TOOL
from helpers.small_models import byte_level

import turngym.envs  # noqa: F401 - registers
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.scripted import run_episode
from turngym.agents.warm_start.thoughts import with_thought
from turngym.algos.rollouts import SpokenDemonstrations
from turngym.envs.tools.action_parsing import ToolCall, ToolGrammar
from turngym.envs.tools.schema import make_tool

TOOLS = ({"function": {"name": "get_user_details"}},)
LOOK = '<tool_call>{"name": "look", "arguments": {"thing": "lamp"}}</tool_call>'
CALL = '<tool_call>{"name": "get_user_details", "arguments": {"user_id": "ann"}}</tool_call>'


def look(thing: str) -> str:
    """Look at a thing.

    Args:
        thing: What to look at.
    """
    return thing


GRAMMAR = ToolGrammar([make_tool(look)])


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


@pytest.mark.parametrize(
    ("template", "taught"),
    [
        (HERMES, f"<think> I need to look. </think> {LOOK}"),
        (LLAMA32, '{"name": "look", "parameters": {"thing": "lamp"}}'),  # the message is the call
        (QWEN3_THINKING, f"\n</think>\n\n{LOOK}"),  # the prompt opens a thought
    ],
)
def test_a_thought_is_taught_where_the_models_format_has_room(template: str, taught: str) -> None:
    render = make_renderer(byte_level(template), tools=[TOOL])
    env = SimpleNamespace(tools=[TOOL])
    spoken = SpokenDemonstrations().speak(LOOK, cast("Any", env), render)
    assert render.text(render.write(spoken)).strip("\n") == taught.strip("\n")
    assert GRAMMAR.parse(render.action(render.write(spoken))) == ToolCall("look", {"thing": "lamp"})


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
