"""Tool calls of Hermes', Qwen3's and Llama's kind reach the world in its own form."""

from __future__ import annotations

import json
import sys

import gymnasium as gym
import pytest
from helpers.chat_templates import GEMMA3, HERMES, LLAMA32, QWEN3, QWEN3_THINKING, TOOL
from helpers.small_models import byte_level
from hypothesis import given
from hypothesis import strategies as st

from turngym.agents.rendering.chat.calls import form_of, from_env_call, to_env_call, written_call
from turngym.agents.rendering.chat.template import ChatTemplate
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.scripted import ExpertPolicy, text_env
from turngym.envs.core.errors import MissingExtraError
from turngym.envs.tools.action_parsing import ToolCall, ToolGrammar
from turngym.envs.tools.schema import make_tool


def look(thing: str) -> str:
    """Look at a thing.

    Args:
        thing: What to look at.
    """
    return thing


GRAMMAR = ToolGrammar([make_tool(look)])
WANTED = ToolCall("look", {"thing": 'a "red" lamp'})
HERMES_CALL = '<tool_call>\n{"name": "look", "arguments": {"thing": "a b"}}\n</tool_call>'
LLAMA_CALL = '{"name": "look", "parameters": {"thing": "a b"}}'


@pytest.mark.parametrize(
    ("template", "written", "form"),
    [
        (HERMES, HERMES_CALL, "tags"),
        (QWEN3, HERMES_CALL, "tags"),
        (LLAMA32, LLAMA_CALL, "message"),
        (GEMMA3, None, "tags"),
    ],
)
def test_a_templates_calls_are_read_off(template: str, written: str | None, form: str) -> None:
    chat = ChatTemplate(byte_level(template), [TOOL])
    got = written_call(chat, "look", {"thing": "a b"})
    assert got == written
    assert form_of(got) == form


@pytest.mark.parametrize("template", [HERMES, QWEN3, QWEN3_THINKING, LLAMA32, GEMMA3])
def test_every_kind_plays_a_world_with_tools(template: str) -> None:
    render = make_renderer(byte_level(template), tools=[TOOL])
    ids = render.write(GRAMMAR.write("look", thing='a "red" lamp'))
    assert GRAMMAR.parse(render.action(ids)) == WANTED


def test_jinja_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = ChatTemplate(byte_level(HERMES), [TOOL])
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"'jinja2', which is not.*turngym\[train\]"):
        chat.render([{"role": "user", "content": "look"}])


def test_a_call_whose_value_spells_a_closing_tag_is_read() -> None:
    render = make_renderer(byte_level(LLAMA32), tools=[TOOL])
    said = '{"name": "look", "parameters": {"thing": "a </tool_call> b"}}'
    action = render.action(render.write(said))
    assert GRAMMAR.parse(action) == ToolCall("look", {"thing": "a </tool_call> b"})
    written = render.text(render.write(action))  # a rollout would end at the tag
    assert written == said.replace("</tool_call>", r"<\/tool_call>")
    assert render.action(render.write(written)) == action


def test_tools_are_shown_in_the_prompt() -> None:
    tokenizer = byte_level(HERMES)
    shown = tokenizer.decode(make_renderer(tokenizer, tools=[TOOL]).open("", "go"))
    assert '"description": "Look at a thing."' in shown


NAMES = st.text("abc_", min_size=1, max_size=5)
VALUES = st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.lists(st.integers()))


@given(name=NAMES, arguments=st.dictionaries(NAMES, VALUES, max_size=3))
def test_calls_survive_both_ways(name: str, arguments: dict[str, object]) -> None:
    world = f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
    back = to_env_call(from_env_call(world, "message"), "message")
    inner = json.loads(back.removeprefix("<tool_call>").removesuffix("</tool_call>"))
    assert inner == {"name": name, "arguments": arguments}
    assert to_env_call(from_env_call(world, "tags"), "tags") == world


@pytest.mark.parametrize(
    "text",
    [
        *(
            "hello",
            '{"name": "look"}',
            '{"name": "x", "parameters": {}, "more": 1}',
            "[1]",
            "{",
            "",
        ),
        '{"type": "object", "name": "x", "parameters": {}}',
    ],
)
def test_what_is_no_call_is_left_alone(text: str) -> None:
    assert to_env_call(text, "message") == text


def test_the_type_of_a_tool_may_stand_beside_its_name() -> None:
    text = '{"type": "function", "name": "look", "parameters": {"thing": "x"}}'
    assert GRAMMAR.parse(to_env_call(text, "message")) == ToolCall("look", {"thing": "x"})


def test_pythons_tag_is_not_part_of_the_call() -> None:
    text = '<|python_tag|>{"name": "look", "parameters": {"thing": "x"}}'
    assert GRAMMAR.parse(to_env_call(text, "message")) == ToolCall("look", {"thing": "x"})


@pytest.mark.parametrize("template", [HERMES, QWEN3_THINKING, LLAMA32])
def test_the_shop_is_served_in_every_dialect(template: str) -> None:
    env = gym.make("Retail-v0", size="micro")
    world = text_env(env)
    render = make_renderer(byte_level(template), tools=world.tools)
    policy, calls = ExpertPolicy(seed=0), 0
    observation, info = env.reset(seed=3)
    while info["status"] == "running":
        action = policy(env, observation, info)
        written = render.write(action)
        calls += "parameters" in render.text(written)
        observation, _, _, _, info = env.step(render.action(written))
        assert info["valid_action"]
    assert info["status"] == "solved"
    assert (calls > 0) == (template == LLAMA32)
