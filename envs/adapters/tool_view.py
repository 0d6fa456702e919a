"""An environment's actions as tools: what to offer a model that acts by function calls."""

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
from ..tools.action_parsing import write_call

NOTE = "Act only by calling the tools; a tag or call that the rules name is written by them.\n"
"""Ends the rules of an environment that is played by tools."""
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
    """A tool whose calls are actions of an environment.

    Attributes:
        name: Its name.
        description: What it does.
        parameters: JSON Schema of its arguments, an object.
        write: The action, as text, that a call with these arguments is.
        enclose: The action that arguments are which nobody can read, for the environment to refuse.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    write: Callable[[Mapping[str, Any]], str]
    enclose: Callable[[str], str] = str

    @property
    def schema(self) -> dict[str, Any]:
        """The OpenAI function form."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


def action_tools(env: TextEnv[Any, Any]) -> dict[str, ActionTool]:
    """Return the actions of an environment as tools, by name.

    An environment with tools of its own shows these, and ``say`` for what is no call. Actions in
    tags are a tool per tag; for every other environment there is ``act``, which takes the action as
    it is.

    Raises:
        BadValueError: Two different tools of one name, in a mixture.
    """
    if not isinstance(env, MixedTasks):
        return {tool.name: tool for tool in _list_tools(env)}
    found: dict[str, ActionTool] = {}
    for member in env.members.values():
        for name, tool in action_tools(member).items():
            if found.setdefault(name, tool).schema != tool.schema:
                raise BadValueError(f"{env.name}: two members have different tools {name!r}.")
    return found


def _list_tools(env: TextEnv[Any, Any]) -> list[ActionTool]:
    tags = [found[1] for text in env.stop if (found := _CLOSING.fullmatch(text))]
    if env.tools:
        return [*(_make_call_tool(tool) for tool in env.tools), *_make_tag_tools(tags), _SAY]
    if tags and len(tags) == len(env.stop):
        return _make_tag_tools(tags)
    return [_ACT]


def _make_call_tool(schema: Mapping[str, Any]) -> ActionTool:
    function = schema["function"]
    name = function["name"]
    return ActionTool(
        name,
        function["description"],
        function["parameters"],
        write=partial(_write_call, name),
        enclose=f"<{_CALL}>{{}}</{_CALL}>".format,
    )


def _write_call(name: str, arguments: Mapping[str, Any]) -> str:
    return write_call(name, dict(arguments), _CALL)


def _make_tag_tools(tags: list[str]) -> list[ActionTool]:
    plain = ("text", "Take an action of this kind, as the rules say.", "What the tag holds.")
    return [
        _make_text_tool(tag, *_TAGS.get(tag, plain), f"<{tag}> {{}} </{tag}>")
        for tag in tags
        if tag != _CALL
    ]


def _make_text_tool(
    name: str, parameter: str, description: str, about: str, form: str = "{}"
) -> ActionTool:
    """Return a tool with one text argument."""
    properties = {parameter: {"type": "string", "description": about}}
    schema = {"type": "object", "properties": properties, "required": [parameter]}
    return ActionTool(name, description, schema, partial(_fill_form, form, parameter))


def _fill_form(form: str, parameter: str, arguments: Mapping[str, Any]) -> str:
    """Return the action; a call with other arguments goes to the environment as it is."""
    if set(arguments) == {parameter} and isinstance(arguments[parameter], str):
        return form.replace("{}", arguments[parameter])
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)


_SAY = _make_text_tool("say", "message", "Say something to the customer.", "The message.")
_ACT = _make_text_tool(
    "act", "action", "Take one action in the environment.", "The action, written as the rules say."
)
