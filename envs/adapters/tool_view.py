"""A world's actions as tools: what to offer a model that acts by function calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.env import TextEnv
from ..core.errors import BadValueError
from ..mixed_tasks.env import MixedTasks

NOTE = "Act only by calling the tools; a tag or call that the rules name is written by them.\n"
"""Ends the rules of a world that is played by tools."""
_CLOSING = re.compile(r"</([A-Za-z][A-Za-z0-9_\-]*)>")
_CALL = "tool_call"
_TAGS: Mapping[str, tuple[str, str, str]] = {
    "search": ("query", "Search; the best results come back.", "What to look for."),
    "open": ("page", "Open a page.", "Its address, or its number in the results."),
    "python": ("code", "Run Python code; what it prints comes back.", "The code."),
    "answer": ("answer", "Give the final answer, which ends the task.", "The answer alone."),
}


@dataclass(frozen=True)
class ActionTool:
    """A tool whose calls are actions of a world.

    Attributes:
        name: Its name.
        description: What it does.
        parameters: JSON Schema of its arguments, an object.
        write: The action, as text, that a call with these arguments is.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    write: Callable[[Mapping[str, Any]], str]

    @property
    def schema(self) -> dict[str, Any]:
        """The OpenAI function form."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


def action_tools(world: TextEnv[Any, Any]) -> dict[str, ActionTool]:
    """The actions of a world as tools, by name.

    A world with tools of its own shows these, and ``say`` for what is no call. Actions in tags are
    a tool per tag; for every other world there is ``act``, which takes the action as it is.

    Raises:
        BadValueError: Two different tools of one name, in a mixture.
    """
    if not isinstance(world, MixedTasks):
        return {tool.name: tool for tool in _tools(world)}
    found: dict[str, ActionTool] = {}
    for member in world.members.values():
        for name, tool in action_tools(member).items():
            if found.setdefault(name, tool).schema != tool.schema:
                raise BadValueError(f"{world.name}: two members have different tools {name!r}.")
    return found


def _tools(world: TextEnv[Any, Any]) -> list[ActionTool]:
    tags = [found[1] for text in world.stop if (found := _CLOSING.fullmatch(text))]
    if world.tools:
        return [*(_called(tool) for tool in world.tools), *_tagged(tags), _SAY]
    if tags and len(tags) == len(world.stop):
        return _tagged(tags)
    return [_ACT]


def _called(schema: Mapping[str, Any]) -> ActionTool:
    function = schema["function"]
    name = function["name"]
    return ActionTool(name, function["description"], function["parameters"], partial(_call, name))


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    call = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
    return f"<{_CALL}>{call}</{_CALL}>"


def _tagged(tags: list[str]) -> list[ActionTool]:
    plain = ("text", "Take an action of this kind, as the rules say.", "What the tag holds.")
    return [
        _text_tool(tag, *_TAGS.get(tag, plain), f"<{tag}> {{}} </{tag}>")
        for tag in tags
        if tag != _CALL
    ]


def _text_tool(
    name: str, parameter: str, description: str, about: str, form: str = "{}"
) -> ActionTool:
    """A tool of one text."""
    properties = {parameter: {"type": "string", "description": about}}
    schema = {"type": "object", "properties": properties, "required": [parameter]}
    return ActionTool(name, description, schema, partial(_filled, form, parameter))


def _filled(form: str, parameter: str, arguments: Mapping[str, Any]) -> str:
    """The action, or the call as it came when it is not one text: the world says what is wrong."""
    if set(arguments) == {parameter} and isinstance(arguments[parameter], str):
        return form.replace("{}", arguments[parameter])
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)


_SAY = _text_tool("say", "message", "Say something to the customer.", "The message.")
_ACT = _text_tool(
    "act", "action", "Take one action in the world.", "The action, written as the rules say."
)
