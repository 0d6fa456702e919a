"""Short thoughts before scripted experts' tool calls, so that they speak as a chat model would."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_THINK = "<think>"


def with_thought(action: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """Return an expert's action as a chat model would write it: a short thought, then the call.

    The thought is made of the tool's name, so equal calls have equal thoughts. Messages, actions
    that hold a thought already, and those of environments without tools stay as they are: there the
    expert writes what the instructions ask for (SearchQA's thinks by itself), or a form that has no
    room for a thought (a line of ScienceWorld's house, a marked query of PaperCrawler's).

    Args:
        action: What the expert does.
        tools: JSON Schemas of the environment's tools.
    """
    found = _CALL.search(action)
    if not tools or found is None or _THINK in action:
        return action
    try:
        name = str(json.loads(found[1])["name"])
    except (ValueError, KeyError, TypeError):
        return action  # one of the mistakes that experts make on request
    return f"{_THINK} I need to {name.replace('_', ' ')}. </think> {action}"
