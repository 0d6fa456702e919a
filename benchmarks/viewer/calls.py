"""Tool calls in what a model wrote, in any of the worlds' grammars."""

from __future__ import annotations

import json
import re
from typing import TypedDict

_NOT_TOOLS = ("think", "reasoning", "step", "information", "result", "documents", "tool_call")
_TAG = re.compile(r"<([a-z_]+)>(.*?)(?:</\1>|$)", re.DOTALL)
_TOOL_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)
_MARKER = re.compile(r"\[(Search|Expand|StopSearch|StopExpand)\]([^\[\n]*)")
_BRACKET = re.compile(r"^\s*([a-z]+)\[([^\]\n]*)\]\s*$", re.MULTILINE)


class Call(TypedDict):
    """One call.

    Attributes:
        tool: Its name.
        args: Its arguments as text.
    """

    tool: str
    args: str


def tool_calls(action: str) -> list[Call]:
    """The calls of an action in order: JSON in ``<tool_call>``, tags, markers or brackets."""
    found: list[tuple[int, Call]] = []
    for match in _TOOL_CALL.finditer(action):
        found.append((match.start(), _from_json(match[1])))
    for match in _TAG.finditer(action):
        if match[1] not in _NOT_TOOLS:
            found.append((match.start(), Call(tool=match[1], args=match[2].strip())))
    for pattern in (_MARKER, _BRACKET):
        for match in pattern.finditer(action):
            found.append((match.start(), Call(tool=match[1], args=match[2].strip())))
    return [call for _, call in sorted(found, key=lambda place: place[0])]


def _from_json(text: str) -> Call:
    try:
        call = json.loads(text)
    except ValueError:  # the model's mistake, shown as it is
        return Call(tool="tool_call", args=text.strip())
    if not isinstance(call, dict):
        return Call(tool="tool_call", args=text.strip())
    given = call.get("arguments", call.get("parameters", {}))
    if isinstance(given, dict):
        args = ", ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in given.items())
    else:
        args = json.dumps(given, ensure_ascii=False)
    return Call(tool=str(call.get("name", "tool_call")), args=args)
