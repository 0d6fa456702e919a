"""Every environment by function calls: the expert's actions as calls, schemas, wrong calls."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from helpers.adapter_play import MICRO, TALKING, a_row, as_call, played

from turngym.envs import read_transcripts, replay
from turngym.envs.adapters.openai_tools import ToolConversation, tool_schemas
from turngym.envs.adapters.tool_view import NOTE, action_tools
from turngym.envs.adapters.trl_environment import make_tool_method, to_python_type
from turngym.envs.core.errors import BadValueError, EpisodeError, UnknownNameError
from turngym.envs.tools.schema import tool_schema

NAMES = {
    "SearchQA-v0": ["search", "answer"],
    "WebQA-v0": ["search", "open", "answer"],
    "MathWord-v0": ["answer"],
    "WebShop-v0": ["act"],
    "ScienceWorld-v0": ["act"],
}


@pytest.mark.parametrize("env_id", TALKING)
def test_the_expert_s_calls_reach_what_its_actions_reach(env_id: str) -> None:
    direct = played(env_id)
    game = ToolConversation(env_id, MICRO)
    prompt = game.start(direct.row)
    assert prompt.replace(NOTE, "", 1) == direct.prompt
    for action in direct.actions:
        name, arguments = as_call(action, game.action_tools)
        reply = game.call(name, json.dumps(arguments))
    assert reply.done
    assert reply.info["status"] == direct.status
    assert game.talk.terms == pytest.approx(direct.terms)


@pytest.mark.parametrize("env_id", ["SearchQA-v0", "Retail-v0"])
def test_calls_are_recorded_as_the_actions_that_they_are(env_id: str, tmp_path: Path) -> None:
    direct, file = played(env_id), tmp_path / "episodes.jsonl"
    game = ToolConversation(env_id, MICRO, record=file)
    game.start(direct.row)
    for action in direct.actions:
        name, arguments = as_call(action, game.action_tools)
        game.call(name, json.dumps(arguments))
    game.start(direct.row)
    game.call(*as_call(direct.actions[0], game.action_tools))
    game.talk.close()
    with pytest.raises(EpisodeError, match="closed; start"):  # nothing would record it
        game.call(*as_call(direct.actions[1], game.action_tools))
    whole, given_up = read_transcripts(file)
    assert whole.status == direct.status
    assert sum(sum(step.terms.values()) for step in whole.steps) == pytest.approx(
        sum(direct.terms.values())
    )
    assert (given_up.status, len(given_up.steps)) == ("running", 1)
    assert whole.seed == given_up.seed == direct.row["seed"]
    for transcript in (whole, given_up):
        assert replay(transcript).same
    game.start(direct.row)
    game.call(*as_call(direct.actions[0], game.action_tools))
    game.talk.close()
    assert len(list(read_transcripts(file))) == 3


@pytest.mark.parametrize(("env_id", "names"), NAMES.items())
def test_tools_of_worlds(env_id: str, names: list[str]) -> None:
    assert [tool["function"]["name"] for tool in tool_schemas(env_id, MICRO)] == names


def test_a_world_s_own_tools_keep_their_schemas() -> None:
    game = ToolConversation("Retail-v0")
    own = game.talk.env.tools
    assert len(own) == 17
    assert game.tools[:17] == [dict(tool) for tool in own]
    assert game.tools[17]["function"]["name"] == "say"


def test_a_mixture_offers_the_tools_of_all_members() -> None:
    members = [[name, MICRO, 1] for name in ("SearchQA-v0", "Game24-v0", "Retail-v0")]
    game = ToolConversation("MixedTasks-v0", {"members": members})
    names = [tool["function"]["name"] for tool in game.tools]
    assert {"search", "answer", "act", "say", "get_order_details"} <= set(names)
    assert len(names) == len(set(names))


def test_two_members_with_different_tools_of_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [[name, MICRO, 1] for name in ("SearchQA-v0", "Retail-v0")]
    game = ToolConversation("MixedTasks-v0", {"members": members})
    world: Any = game.talk.env

    def search(words: str) -> str:
        """Search the shop."""
        return words

    monkeypatch.setattr(world.members["Retail"], "tools", (tool_schema(search),))
    with pytest.raises(BadValueError, match="different tools 'search'"):
        action_tools(world)


def test_a_wrong_call_is_a_move_and_an_unknown_tool_is_not() -> None:
    game = ToolConversation("SearchQA-v0", MICRO)
    game.start(a_row("SearchQA-v0"))
    for turn, arguments in enumerate(('{"words": "x"}', '{"query": 3}', "{broken", "[1]", {}), 1):
        reply = game.call("search", arguments)
        assert reply.info["turn"] == turn
        assert not reply.info["valid_action"]
    assert reply.done
    with pytest.raises(EpisodeError):
        game.call("search", {"query": "x"})
    with pytest.raises(UnknownNameError, match="search"):
        game.call("serach", {"query": "x"})


@pytest.mark.parametrize("nothing", [None, "", "null", " null\n", {}])
def test_a_call_with_nothing_is_one_without_arguments(nothing: Any) -> None:
    game = ToolConversation("Retail-v0", {"size": "micro"})
    game.start({"split": "dev", "task": 0, "seed": 1})
    reply = game.call("get_order_details", nothing)
    assert not reply.info["valid_action"]
    assert "'order_id' is missing" in reply.text
    assert "Customer:" not in reply.text


def test_methods_have_the_types_of_their_schemas() -> None:
    tools = action_tools(ToolConversation("Retail-v0").talk.env)
    seen: list[str] = []
    for name, tool in tools.items():
        method = make_tool_method(tool, lambda self, action: seen.append(action))
        signature = inspect.signature(method)
        properties = tool.parameters["properties"]
        assert set(signature.parameters) == {"self", *properties}
        for parameter, schema in properties.items():
            assert signature.parameters[parameter].annotation == to_python_type(schema)
            assert parameter in (method.__doc__ or "")
        assert method.__name__ == name
    make_tool_method(tools["get_order_details"], lambda self, action: seen.append(action))(
        None, order_id="#W1"
    )
    assert seen == [
        '<tool_call>{"name": "get_order_details", "arguments": {"order_id": "#W1"}}</tool_call>'
    ]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, str),
        ({"type": "integer"}, int),
        ({"type": "number"}, float),
        ({"type": "boolean"}, bool),
        ({"type": "object"}, dict),
        ({"type": "array"}, list),
        ({"type": "array", "items": {"type": "string"}}, list[str]),
        ({"enum": ["a", "b"], "type": "string"}, Literal["a", "b"]),
        ({"const": 3}, Literal[3]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, str | None),
        ({"type": ["string", "null"], "description": "a name"}, str | None),
        ({"type": ["integer"]}, int),
        (
            {"type": ["array", "null"], "items": {"type": ["integer", "null"]}},
            list[int | None] | None,
        ),
    ],
)
def test_python_types(schema: dict[str, Any], expected: Any) -> None:
    assert to_python_type(schema) == expected


@pytest.mark.parametrize("arguments", ["[" * 100_000, "9" * 5_000, '{"query": '])
def test_arguments_that_python_cannot_read_are_a_mistake_like_others(arguments: str) -> None:
    game = ToolConversation("SearchQA-v0", MICRO)
    game.start({"split": "train", "task": 0, "seed": 0})
    assert not game.call("search", arguments).info["valid_action"]


@pytest.mark.parametrize("arguments", ['{"email": ', "[1]", "ann@x.org", [1], 5, False, b"x"])
def test_arguments_of_a_tool_that_nobody_can_read_are_not_said_to_the_customer(
    arguments: Any,
) -> None:
    game = ToolConversation("Retail-v0", MICRO)
    game.start(a_row("Retail-v0"))
    reply = game.call("find_user_id_by_email", arguments)
    assert not reply.info["valid_action"]
    assert reply.text.startswith("Tool: ")
