"""Tool calls as chat templates write them, and as environments read them.

Environments read ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, which is how templates
of Hermes' and Qwen's kind write calls too. Templates of Llama's kind let a message be the call:
``{"name": …, "parameters": {…}}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ....envs.core.errors import BadValueError
from ....envs.tools.action_parsing import dump_call, write_call
from .template import ChatTemplate, Message

Calls = Literal["tags", "message"]
_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_PYTHON = "<|python_tag|>"


def sample_call(tools: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    """A call for sample dialogues: the first tool's name, with a made-up value per argument."""
    function = tools[0].get("function", tools[0])
    names = list(function.get("parameters", {}).get("properties", {}))[:2]
    return str(function["name"]), {name: "a b" for name in names}


def call_message(name: str, arguments: Mapping[str, Any], before: str = "") -> Message:
    """Return an assistant's message with a call, in the form that templates take."""
    call = {"type": "function", "function": {"name": name, "arguments": dict(arguments)}}
    return {"role": "assistant", "content": before, "tool_calls": [call]}


def written_call(
    template: ChatTemplate, name: str, arguments: Mapping[str, Any], thought: str = ""
) -> str | None:
    """Return how a call is written after the prompt; None when the template knows no calls.

    Args:
        template: The chat template.
        name: Of the tool.
        arguments: By name.
        thought: What is thought before it; a prompt that opens a thought needs one.
    """
    before = template.head + template.thinking("", thought) if thought else ""
    try:
        text = template.written(call_message(name, arguments, before))
    except BadValueError:
        return None
    return text if name in text else None


def form_of(written: str | None) -> Calls:
    """Return the form of a written call; what is neither is left to the environment's own rules."""
    if written is not None and _read_message(written) is not None:
        return "message"
    return "tags"


def to_env_call(text: str, form: Calls) -> str:
    """Return an action with its call in the environment's form; other actions as they are."""
    call = _read_message(text) if form == "message" else None
    return text if call is None else write_call(**call)


def from_env_call(action: str, form: Calls) -> str:
    """Return an action of the environment with its call in the template's form.

    Others as they are.
    """
    found = _TAGGED.search(action)
    if form != "message" or found is None or found[0] != action.strip():
        return action
    try:
        call = json.loads(found[1])
        name, arguments = call["name"], call["arguments"]
    except (ValueError, KeyError, TypeError):
        return action  # the environment will say what is wrong with it
    return dump_call({"name": name, "parameters": arguments})


def _read_message(text: str) -> dict[str, Any] | None:
    """Return the call that a whole message is, None when it is something else."""
    try:
        call = json.loads(text.strip().removeprefix(_PYTHON).rstrip("; \n"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or call.pop("type", "function") != "function":
        return None  # small Llama models write the type of their tools along
    if set(call) != {"name", "parameters"}:
        return None
    return {"name": call["name"], "arguments": call["parameters"]}
